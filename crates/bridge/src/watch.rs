//! Waking up when a lock file appears, changes or goes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
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
    watched: Option<(PathBuf, RecommendedWatcher)>,
}

impl LockFolderWatch {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, changed: Arc::new(Notify::new()), watched: None }
    }

    /// Starts watching what exists now. To be called before a scan, so that nothing falls between the two.
    pub(crate) fn arm(&mut self) {
        let Some(target) = nearest_existing(&self.folder) else { return self.watched = None };
        if self.watched.as_ref().is_none_or(|(watched, _)| watched != target) {
            self.watched = self.watch(target).ok().map(|watcher| (target.to_owned(), watcher));
        }
    }

    /// Waits for a change since the last call, or for the next poll.
    pub(crate) async fn changed(&self) {
        let poll = if self.watched.is_some() { SAFETY_POLL_EVERY } else { POLL_EVERY };
        tokio::select! {
            () = self.changed.notified() => sleep(SETTLE).await,
            () = sleep(poll) => {}
        }
    }

    fn watch(&self, target: &Path) -> notify::Result<RecommendedWatcher> {
        let (changed, folder) = (Arc::clone(&self.changed), self.folder.clone());
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| concerns(&event, &folder)) {
                changed.notify_one();
            }
        })?;
        watcher.watch(target, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    }
}

/// Reading the folder makes access events of its own, and a folder above it has a life of its own.
fn concerns(event: &notify::Event, folder: &Path) -> bool {
    let related = |path: &PathBuf| path.starts_with(folder) || folder.starts_with(path);
    !event.kind.is_access() && (event.need_rescan() || event.paths.iter().any(related))
}

fn nearest_existing(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|path| path.is_dir())
}
