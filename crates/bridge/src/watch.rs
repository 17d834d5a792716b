//! Waking up when a lock file appears, changes or goes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::sleep;

/// Between two looks where the folder cannot be watched.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// A look from time to time even where it can be watched, in case an event was lost.
const SAFETY_POLL_EVERY: Duration = Duration::from_secs(30);

/// A writer makes several events (temporary file, rename); they count as one.
const SETTLE: Duration = Duration::from_millis(15);

/// Watches one lock folder, or the nearest folder above it that exists until it does.
pub(crate) struct LockFolderWatch {
    folder: PathBuf,
    changed: Arc<Notify>,
    watched: Option<Watched>,
}

struct Watched {
    path: PathBuf,
    /// The folder of this path was removed or renamed, even if there is another one by now.
    gone: Arc<AtomicBool>,
    _watcher: RecommendedWatcher,
}

impl LockFolderWatch {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, changed: Arc::new(Notify::new()), watched: None }
    }

    /// Watches what exists now; to be called before a look at the folder, so that nothing falls between the two. True
    /// when it has just begun to watch: what happened before was not seen.
    pub(crate) fn arm(&mut self) -> bool {
        let target = nearest_existing(&self.folder);
        let is_watched =
            |watched: &Watched| Some(watched.path.as_path()) == target && !watched.gone.load(Ordering::Relaxed);
        if self.watched.as_ref().is_some_and(is_watched) {
            return false;
        }
        // Dropped first, since two watches of one folder share a descriptor that the first one would take along.
        self.watched = None;
        self.watched = target.and_then(|target| self.watch(target).ok());
        true
    }

    /// Waits for a change since the last call, or for the next poll.
    pub(crate) async fn changed(&self) {
        let poll = if self.watched.is_some() { SAFETY_POLL_EVERY } else { POLL_EVERY };
        tokio::select! {
            () = self.changed.notified() => sleep(SETTLE).await,
            () = sleep(poll) => {}
        }
    }

    fn watch(&self, target: &Path) -> notify::Result<Watched> {
        let gone = Arc::new(AtomicBool::new(false));
        let (changed, folder) = (Arc::clone(&self.changed), self.folder.clone());
        let (path, is_gone) = (target.to_owned(), Arc::clone(&gone));
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let Ok(event) = event else { return };
            if is_end_of(&event, &path) {
                is_gone.store(true, Ordering::Relaxed);
            }
            if concerns(&event, &folder) {
                changed.notify_one();
            }
        })?;
        watcher.watch(target, RecursiveMode::NonRecursive)?;
        Ok(Watched { path: target.to_owned(), gone, _watcher: watcher })
    }
}

fn is_end_of(event: &Event, watched: &Path) -> bool {
    let ends = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    ends && event.paths.iter().any(|path| path == watched)
}

/// Reading the folder makes access events of its own, and a folder above it has a life of its own.
fn concerns(event: &Event, folder: &Path) -> bool {
    let related = |path: &PathBuf| path.starts_with(folder) || folder.starts_with(path);
    !event.kind.is_access() && (event.need_rescan() || event.paths.iter().any(related))
}

fn nearest_existing(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|path| path.is_dir())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::time::timeout;

    use super::*;

    async fn sees(watch: &LockFolderWatch) -> bool {
        timeout(Duration::from_secs(1), watch.changed()).await.is_ok()
    }

    #[tokio::test]
    async fn a_folder_is_watched_before_it_exists_and_after_it_was_replaced() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/lock");
        let mut watch = LockFolderWatch::new(folder.clone());
        assert!(watch.arm());
        fs::create_dir_all(&folder).unwrap();
        assert!(sees(&watch).await, "created");
        assert!(watch.arm());
        assert!(!watch.arm());
        for round in 0..2 {
            fs::write(folder.join("x.lock"), "").unwrap();
            assert!(sees(&watch).await, "written in round {round}");
            fs::remove_dir_all(home.path().join("a")).unwrap();
            fs::create_dir_all(&folder).unwrap();
            assert!(sees(&watch).await, "replaced in round {round}");
            watch.arm();
        }
        fs::write(home.path().join("other"), "").unwrap();
        fs::read_dir(&folder).unwrap().for_each(drop);
        while sees(&watch).await {}
    }
}
