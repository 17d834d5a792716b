//! Waking up when a lock file appears, changes or goes: by the system's events where there are any, else by looking.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use notify::event::ModifyKind;
use notify::{ErrorKind, Event, EventHandler, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use crate::blocking::Patience;
use crate::file_system::silent_kind;

/// Between two looks where the system reports no changes.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// A look from time to time even where it does, in case an event was lost.
const SAFETY_LOOK_EVERY: Duration = Duration::from_secs(30);

/// A writer makes several events (temporary file, rename); they count as one.
const SETTLE: Duration = Duration::from_millis(15);

/// A drive that hangs is not waited for longer.
const LOOK_WITHIN: Duration = Duration::from_millis(400);

/// Watches lock folders, each or the nearest folder above it that exists until it does.
pub(crate) struct FolderWatch {
    changed: Arc<Notify>,
    watching: Arc<Mutex<Watching>>,
    patience: Patience,
    /// Some folder has no events.
    polls: Arc<AtomicBool>,
}

/// How one folder is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedFolder {
    /// Which one.
    pub path: PathBuf,
    /// Why it is looked at every two seconds, as a sentence about "it"; `None` where the system reports changes.
    pub polled: Option<Polled>,
}

/// Why a folder is looked at every two seconds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Polled {
    /// Its file system reports no changes.
    #[error("lies on {0}, which reports no changes")]
    SilentDrive(&'static str),
    /// The system watches no more folders for this user.
    #[error("cannot be watched: {0}")]
    Limit(String),
    /// Anything else that the system says.
    #[error("cannot be watched: {0}")]
    Refused(String),
}

impl Polled {
    /// Whether the user could raise a limit.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit(_))
    }
}

type MakeWatcher = fn(Handler) -> notify::Result<RecommendedWatcher>;

struct Watching {
    make_watcher: MakeWatcher,
    folders: Vec<Folder>,
    /// A watched folder was removed or renamed, even if there is another one by now.
    gone: Arc<AtomicBool>,
    watcher: Option<RecommendedWatcher>,
}

struct Folder {
    path: PathBuf,
    target: Option<Target>,
    polled: Option<Polled>,
    seen: Looks,
}

/// What is watched for a folder: itself, or the nearest one above it that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    path: PathBuf,
    /// Device and number: another folder may have come under the same name.
    id: (u64, u64),
}

/// Names, times and sizes of the lock files in a folder; `None` where it cannot be read.
type Looks = Option<Vec<(OsString, Option<SystemTime>, u64)>>;

impl Folder {
    fn is_polled(&self) -> bool {
        self.polled.is_some() || self.target.is_none()
    }
}

impl FolderWatch {
    pub(crate) fn new(patience: Patience) -> Self {
        Self::with(notify::recommended_watcher, patience)
    }

    fn with(make_watcher: MakeWatcher, patience: Patience) -> Self {
        let watching = Watching { make_watcher, folders: Vec::new(), gone: Arc::default(), watcher: None };
        Self { changed: Arc::default(), watching: Arc::new(Mutex::new(watching)), patience, polls: Arc::default() }
    }

    /// Watches what exists now; to be called before a look at the folders, so that nothing falls between the two. True
    /// when it may just have begun to watch: what happened before was not seen.
    pub(crate) async fn arm(&self, folders: Vec<PathBuf>) -> bool {
        let (watching, changed) = (Arc::clone(&self.watching), Arc::clone(&self.changed));
        let polls = Arc::clone(&self.polls);
        let arm = move || {
            let mut watching = lock(&watching);
            let has_begun = watching.arm(folders, &changed);
            polls.store(watching.folders.iter().any(Folder::is_polled), Ordering::Relaxed);
            has_begun
        };
        self.look(arm).await.unwrap_or(true)
    }

    /// Waits for a change since the last call, or until it is time to look anyway.
    pub(crate) async fn changed(&self) {
        let look_anyway = Instant::now() + SAFETY_LOOK_EVERY;
        loop {
            tokio::select! {
                () = self.changed.notified() => return sleep(SETTLE).await,
                () = sleep_until(look_anyway) => return,
                () = sleep(POLL_EVERY), if self.polls.load(Ordering::Relaxed) => {
                    let watching = Arc::clone(&self.watching);
                    if self.look(move || lock(&watching).poll()).await.unwrap_or(false) {
                        return;
                    }
                }
            }
        }
    }

    /// How each folder is watched; empty while a drive hangs.
    pub(crate) fn folders(&self) -> Vec<WatchedFolder> {
        // Not waited for: whoever holds it may hang.
        let Ok(watching) = self.watching.try_lock() else {
            return Vec::new();
        };
        let shown = |folder: &Folder| WatchedFolder { path: folder.path.clone(), polled: folder.polled.clone() };
        watching.folders.iter().map(shown).collect()
    }

    async fn look<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.patience.run("the watched folders", Instant::now() + LOOK_WITHIN, work).await
    }
}

fn lock(watching: &Mutex<Watching>) -> std::sync::MutexGuard<'_, Watching> {
    watching.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watching {
    fn arm(&mut self, folders: Vec<PathBuf>, changed: &Arc<Notify>) -> bool {
        let wanted: Vec<_> = folders.into_iter().map(|path| (nearest_existing(&path), path)).collect();
        let watched = self.folders.iter().map(|folder| (&folder.target, &folder.path));
        if watched.eq(wanted.iter().map(|(target, path)| (target, path))) && !self.gone.load(Ordering::Relaxed) {
            return false;
        }
        self.watch_anew(wanted, changed);
        // A folder may go between being found and being watched; what is refused again and again is polled.
        for _ in 0..3 {
            if !self.folders.iter().any(|folder| matches!(folder.polled, Some(Polled::Refused(_)))) {
                break;
            }
            let again = std::mem::take(&mut self.folders);
            let wanted = again.into_iter().map(|folder| (nearest_existing(&folder.path), folder.path)).collect();
            self.watch_anew(wanted, changed);
        }
        true
    }

    fn watch_anew(&mut self, wanted: Vec<(Option<Target>, PathBuf)>, changed: &Arc<Notify>) {
        // Dropped first, since two watches of one folder share a descriptor that the first one would take along.
        self.watcher = None;
        self.gone = Arc::default();
        let handler = Handler {
            targets: wanted.iter().filter_map(|(target, _)| Some(target.as_ref()?.path.clone())).collect(),
            folders: wanted.iter().map(|(_, path)| path.clone()).collect(),
            gone: Arc::clone(&self.gone),
            changed: Arc::clone(changed),
        };
        let mut watcher = (self.make_watcher)(handler);
        let watch = |(target, path): (Option<Target>, PathBuf)| {
            let polled = target.as_ref().and_then(|target| watch(&mut watcher, &target.path).err());
            Folder { seen: looks(&path), path, target, polled }
        };
        self.folders = wanted.into_iter().map(watch).collect();
        self.watcher = watcher.ok();
    }

    /// Looks at the folders without events; true when one of them changed.
    fn poll(&mut self) -> bool {
        let mut changed = false;
        for folder in self.folders.iter_mut().filter(|folder| folder.is_polled()) {
            let now = looks(&folder.path);
            changed |= now != folder.seen;
            folder.seen = now;
        }
        changed
    }
}

fn watch(watcher: &mut notify::Result<RecommendedWatcher>, target: &Path) -> Result<(), Polled> {
    if let Some(kind) = silent_kind(target) {
        return Err(Polled::SilentDrive(kind));
    }
    match watcher {
        Ok(watcher) => watcher.watch(target, RecursiveMode::NonRecursive).map_err(|error| polled(&error)),
        Err(error) => Err(polled(error)),
    }
}

fn polled(error: &notify::Error) -> Polled {
    match &error.kind {
        ErrorKind::MaxFilesWatch => Polled::Limit("the limit fs.inotify.max_user_watches is reached".into()),
        ErrorKind::Io(error) if is_out_of_instances(error) => {
            Polled::Limit("the limit fs.inotify.max_user_instances is reached".into())
        }
        _ => Polled::Refused(error.to_string()),
    }
}

/// What `inotify_init` answers with EMFILE.
fn is_out_of_instances(error: &io::Error) -> bool {
    const EMFILE: i32 = 24;
    cfg!(target_os = "linux") && error.raw_os_error() == Some(EMFILE)
}

fn looks(folder: &Path) -> Looks {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let locks = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".lock"));
    let look = |entry: fs::DirEntry| {
        let metadata = entry.metadata().ok();
        let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        (entry.file_name(), modified, metadata.map_or(0, |metadata| metadata.len()))
    };
    let mut looks: Vec<_> = locks.map(look).collect();
    looks.sort();
    Some(looks)
}

/// Takes the events of the system, on a thread of `notify`.
struct Handler {
    targets: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    gone: Arc<AtomicBool>,
    changed: Arc<Notify>,
}

impl EventHandler for Handler {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        let Ok(event) = event else { return };
        if self.targets.iter().any(|target| is_end_of(&event, target)) {
            self.gone.store(true, Ordering::Relaxed);
        }
        if self.folders.iter().any(|folder| concerns(&event, folder)) {
            self.changed.notify_one();
        }
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

fn nearest_existing(folder: &Path) -> Option<Target> {
    folder.ancestors().find_map(|path| {
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
        Some(Target { path: path.to_owned(), id: id_of(&metadata) })
    })
}

#[cfg(unix)]
fn id_of(metadata: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;

    (metadata.dev(), metadata.ino())
}

/// Windows refuses to rename a folder that is watched.
#[cfg(not(unix))]
fn id_of(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    async fn sees(watch: &FolderWatch) -> bool {
        timeout(Duration::from_secs(1), watch.changed()).await.is_ok()
    }

    #[tokio::test]
    async fn folders_are_watched_before_they_exist_and_after_they_were_replaced() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/lock");
        let all = vec![home.path().join("other/lock"), folder.clone()];
        let watch = FolderWatch::new(Patience::default());
        assert!(watch.arm(all.clone()).await);
        fs::create_dir_all(&folder).unwrap();
        assert!(sees(&watch).await, "created");
        assert!(watch.arm(all.clone()).await);
        assert!(!watch.arm(all.clone()).await);
        for round in 0..2 {
            fs::write(folder.join("x.lock"), "").unwrap();
            assert!(sees(&watch).await, "written in round {round}");
            fs::remove_dir_all(home.path().join("a")).unwrap();
            fs::create_dir_all(&folder).unwrap();
            assert!(sees(&watch).await, "replaced in round {round}");
            watch.arm(all.clone()).await;
        }
        fs::write(home.path().join("unrelated"), "").unwrap();
        fs::read_dir(&folder).unwrap().for_each(drop);
        while sees(&watch).await {}
        assert!(watch.folders().iter().all(|folder| folder.polled.is_none()), "{:?}", watch.folders());
    }

    #[tokio::test]
    #[cfg(unix)]
    async fn a_folder_that_took_the_place_of_another_one_is_watched() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b/lock");
        fs::create_dir_all(&folder).unwrap();
        let watch = FolderWatch::new(Patience::default());
        assert!(watch.arm(vec![folder.clone()]).await);
        // Nobody is told of a rename further up; the next look finds it.
        fs::rename(home.path().join("a"), home.path().join("old")).unwrap();
        fs::create_dir_all(&folder).unwrap();
        assert!(watch.arm(vec![folder.clone()]).await);
        fs::write(folder.join("x.lock"), "").unwrap();
        assert!(sees(&watch).await);
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn without_events_the_folder_is_looked_at() {
        let out_of_instances: MakeWatcher = |_| Err(io::Error::from_raw_os_error(24).into());
        let out_of_watches: MakeWatcher = |_| Err(notify::Error::new(ErrorKind::MaxFilesWatch));
        for (make, limit) in [(out_of_instances, "max_user_instances"), (out_of_watches, "max_user_watches")] {
            let home = tempfile::tempdir().unwrap();
            let folder = home.path().join("lock");
            let watch = FolderWatch::with(make, Patience::default());
            assert!(watch.arm(vec![folder.clone()]).await);
            let polled = watch.folders().remove(0).polled.unwrap();
            assert!(matches!(&polled, Polled::Limit(reason) if reason.contains(limit)), "{polled}");
            let mut changes = Vec::new();
            for change in 0..3 {
                match change {
                    0 => fs::create_dir(&folder).unwrap(),
                    1 => fs::write(folder.join("x.lock"), "a").unwrap(),
                    _ => fs::remove_file(folder.join("x.lock")).unwrap(),
                }
                changes.push(timeout(Duration::from_secs(20), watch.changed()).await.is_ok());
                watch.arm(vec![folder.clone()]).await;
            }
            assert_eq!(changes, [true; 3]);
        }
    }
}
