//! Writing, refreshing and removing the server's own lock file. Protocol: "Lock files", rules for writers.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval_at, sleep};

use super::ServerError;
use crate::blocking::blocking;
use crate::env::{Clock, Patience, millis};
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::lock_file::{MAX_BYTES, OwnLock};
use crate::trusted::{Distrust, Modes, TrustedDir};
use crate::watch::FolderWatch;

/// Somebody who removes the file again and again is not answered faster than this.
const RESTORE_EVERY: Duration = Duration::from_secs(1);

/// What the lock file says, and where.
pub(super) struct NewLock {
    pub(super) folder: PathBuf,
    /// Whether the folder is the product's own, so that its mode may be mended.
    pub(super) is_own_folder: bool,
    pub(super) ide: String,
    pub(super) name: String,
    pub(super) port: u16,
    pub(super) token: String,
    pub(super) workspace_folders: Vec<String>,
    pub(super) running_in_windows: bool,
    pub(super) host_id: Option<String>,
    pub(super) heartbeat: Duration,
    pub(super) clock: Clock,
    pub(super) patience: Patience,
}

/// What a refresh changes besides the time.
pub(super) enum Change {
    WorkspaceFolders(Vec<String>),
    Focused,
}

/// Handle of the one task that owns the file, so that writes never overlap and happen in the order of the calls.
pub(super) struct LockWriter {
    path: PathBuf,
    orders: mpsc::UnboundedSender<Order>,
    gone: Arc<Mutex<bool>>,
}

enum Order {
    Refresh(Change, oneshot::Sender<Result<(), ServerError>>),
    Remove(oneshot::Sender<()>),
}

impl LockWriter {
    /// Writes the file for the first time and keeps it fresh from then on.
    pub(super) async fn start(new: NewLock) -> Result<Self, ServerError> {
        let now = rfc3339(new.clock.now());
        let lock = OwnLock {
            version: PROTOCOL_VERSION,
            ide: new.ide,
            name: new.name,
            transport: "ws",
            host: "127.0.0.1".into(),
            port: new.port,
            auth_token: new.token,
            workspace_folders: new.workspace_folders,
            pid: std::process::id(),
            running_in_windows: new.running_in_windows,
            created_at: now.clone(),
            updated_at: now,
            host_id: new.host_id,
            focused_at: None,
        };
        let gone = Arc::new(Mutex::new(false));
        let path = new.folder.join(lock.file_name());
        let NewLock { folder, is_own_folder, clock, patience, .. } = new;
        let file = OwnFile { path, folder, is_own_folder, lock, clock, patience, gone: Arc::clone(&gone) };
        file.check_size()?;
        file.write().await?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let path = file.path.clone();
        tokio::spawn(keep_fresh(file, inbox, new.heartbeat));
        Ok(Self { path, orders, gone })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Orders a new version of the file, at once; the future tells when it is written.
    pub(super) fn refresh(&self, change: Change) -> impl Future<Output = Result<(), ServerError>> + use<> {
        let (reply, done) = oneshot::channel();
        // A task that has ended drops the reply, which is answer enough.
        let _ = self.orders.send(Order::Refresh(change, reply));
        async { done.await.unwrap_or(Err(ServerError::Closed)) }
    }

    /// Removes the file at once and for good, whatever was ordered. Blocks on a write that is under way.
    pub(super) fn remove_now(&self) {
        remove_for_good(&self.path, &self.gone);
    }

    /// Removes the file after every refresh that was accepted before.
    pub(super) async fn remove(&self) {
        let (reply, done) = oneshot::channel();
        if self.orders.send(Order::Remove(reply)).is_ok() {
            // The task ends only by a removal, so an error means that it was done already.
            let _ = done.await;
        }
    }
}

/// Ends with the removal of the file, at the latest when the handle is dropped.
async fn keep_fresh(mut file: OwnFile, mut orders: mpsc::UnboundedReceiver<Order>, heartbeat: Duration) {
    let mut beat = interval_at(Instant::now() + heartbeat, heartbeat);
    let watch = FolderWatch::new(file.patience.clone());
    loop {
        if watch.arm(vec![file.folder.clone()]).await && file.is_missing().await {
            // The next change, beat or poll tries again.
            let _ = file.write().await;
        }
        let order = tokio::select! {
            order = orders.recv() => order,
            _ = beat.tick() => {
                // The next beat tries again; a reader keeps the old file while this process lives.
                let _ = file.write().await;
                continue;
            }
            () = watch.changed() => {
                if file.is_missing().await {
                    let _ = file.write().await;
                    sleep(RESTORE_EVERY).await;
                }
                continue;
            }
        };
        match order {
            Some(Order::Refresh(change, reply)) => {
                // A caller that does not wait does not need the outcome.
                let _ = reply.send(file.change(change).await);
            }
            Some(Order::Remove(reply)) => {
                file.remove().await;
                let _ = reply.send(());
                return;
            }
            // The server was dropped without a word.
            None => return file.remove().await,
        }
    }
}

/// The file and what it says.
#[derive(Clone)]
struct OwnFile {
    folder: PathBuf,
    is_own_folder: bool,
    path: PathBuf,
    lock: OwnLock,
    clock: Clock,
    patience: Patience,
    /// Set once the file was removed for good; held while it is written.
    gone: Arc<Mutex<bool>>,
}

impl OwnFile {
    async fn change(&mut self, change: Change) -> Result<(), ServerError> {
        match change {
            Change::WorkspaceFolders(folders) => {
                let before = std::mem::replace(&mut self.lock.workspace_folders, folders);
                if let Err(too_large) = self.check_size() {
                    self.lock.workspace_folders = before;
                    return Err(too_large);
                }
            }
            Change::Focused => self.lock.focused_at = Some(millis(self.clock.now())),
        }
        self.write().await
    }

    /// No pi would read a larger one.
    fn check_size(&self) -> Result<(), ServerError> {
        let bytes = self.lock.to_text().len() as u64;
        if bytes > MAX_BYTES { Err(ServerError::TooLarge { bytes, limit: MAX_BYTES }) } else { Ok(()) }
    }

    async fn write(&self) -> Result<(), ServerError> {
        let mut file = self.clone();
        file.lock.updated_at = rfc3339(self.clock.now());
        blocking(move || file.write_now()).await.unwrap_or(Err(ServerError::Closed))
    }

    fn write_now(&self) -> Result<(), ServerError> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        if *gone {
            return Err(ServerError::Closed);
        }
        prepare_folder(&self.folder, self.is_own_folder)?;
        let write = || -> io::Result<()> {
            // Unique, exclusive, 0600; gone again if anything fails.
            let mut temporary = tempfile::Builder::new().prefix(".lock-").suffix(".tmp").tempfile_in(&self.folder)?;
            temporary.write_all(self.lock.to_text().as_bytes())?;
            temporary.as_file().sync_all()?;
            persist(temporary, &self.path)
        };
        write().map_err(|source| ServerError::Write { path: self.path.clone(), source })
    }

    async fn is_missing(&self) -> bool {
        let path = self.path.clone();
        blocking(move || matches!(path.try_exists(), Ok(false))).await.unwrap_or(false)
    }

    async fn remove(&self) {
        let file = self.clone();
        // Without a runtime the process ends, and its exit hook removes the file.
        let _ = blocking(move || remove_for_good(&file.path, &file.gone)).await;
    }
}

fn remove_for_good(path: &Path, gone: &Mutex<bool>) {
    let mut gone = gone.lock().unwrap_or_else(PoisonError::into_inner);
    *gone = true;
    // Gone already is as good, and of anything else nobody is left to be told.
    let _ = std::fs::remove_file(path);
}

/// Windows refuses to replace a file that anybody has open just now, so some tries are worth it there.
fn persist(mut temporary: tempfile::NamedTempFile, path: &Path) -> io::Result<()> {
    let mut tries = if cfg!(windows) { 6 } else { 1 };
    loop {
        tries -= 1;
        match temporary.persist(path) {
            Ok(_) => return Ok(()),
            Err(refused) if tries == 0 => return Err(refused.error),
            Err(refused) => {
                temporary = refused.file;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Makes the folder, private, and checks that nobody else can write it. The mode of a folder that somebody else named
/// is not ours to change.
fn prepare_folder(folder: &Path, is_own: bool) -> Result<(), ServerError> {
    let refused = |source: Distrust| ServerError::Folder { folder: folder.to_owned(), source };
    make_private(folder, is_own).map_err(|error| refused(Distrust::Io(error)))?;
    TrustedDir::open_dir(folder, Modes::Checked).map(drop).map_err(refused)
}

#[cfg(unix)]
fn make_private(folder: &Path, is_own: bool) -> io::Result<()> {
    use std::fs::{DirBuilder, Permissions, set_permissions, symlink_metadata};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};

    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = symlink_metadata(folder)?;
    // An older version may have made it with the user's umask.
    let may_mend = is_own && found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if may_mend && found.mode() & 0o077 != 0 {
        // A file system without such bits refuses; the check that follows knows those.
        let _ = set_permissions(folder, Permissions::from_mode(0o700));
    }
    Ok(())
}

#[cfg(not(unix))]
fn make_private(folder: &Path, _is_own: bool) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
