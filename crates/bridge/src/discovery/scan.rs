//! Reading one lock folder.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::MAX_LOCK_BYTES;
use super::verdict::{Facts, PidState, Validity};
use crate::env::Env;
use crate::host::Probe;
use crate::process::may_be_alive;
use crate::protocol::lock_file::{self, LockFile, Parsed};
use crate::trusted::{Distrust, TrustedDir, TrustedText};

/// One lock folder as it was found.
pub(super) struct Scan {
    pub(super) dir: Option<TrustedDir>,
    pub(super) entries: Vec<Entry>,
    /// The folder, and why nothing of it was read.
    pub(super) refusal: Option<(PathBuf, Distrust)>,
}

/// One `*.lock` file.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) content: Content,
    /// Present where the file could be read.
    pub(super) read: Option<TrustedText>,
    pid: Option<PidState>,
    check_pid: bool,
}

pub(super) enum Content {
    Valid(Box<LockFile>),
    Unsupported,
    Malformed(String),
    Unreadable(Distrust),
}

impl Scan {
    pub(super) fn read(env: &Env, folder: &Path, check_pid: bool) -> Self {
        let empty = |refusal| Self { dir: None, entries: Vec::new(), refusal };
        let opened = TrustedDir::open_dir(folder).and_then(|dir| Ok((dir.names()?, dir)));
        let (mut names, dir) = match opened {
            Ok(opened) => opened,
            Err(Distrust::Missing) => return empty(None),
            Err(error) => return empty(Some((folder.to_owned(), error))),
        };
        names.retain(|name| name.ends_with(".lock"));
        let entries = names.into_iter().filter_map(|name| Entry::read(env, &dir, name, check_pid)).collect();
        Self { dir: Some(dir), entries, refusal: None }
    }

    /// Ports of locks whose process is gone: somebody else may own the socket.
    pub(super) fn ports_to_probe(&self) -> Vec<u16> {
        let mut ports: Vec<u16> = self
            .entries
            .iter()
            .filter(|entry| entry.check_pid && entry.pid == Some(PidState::Dead))
            .filter_map(|entry| entry.lock().map(|lock| lock.port))
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

impl Entry {
    /// `None` for a file that vanished since the folder was listed.
    fn read(env: &Env, dir: &TrustedDir, name: String, check_pid: bool) -> Option<Self> {
        let (content, read) = match dir.read(&name, MAX_LOCK_BYTES) {
            Err(Distrust::Missing) => return None,
            Err(error) => (Content::Unreadable(error), None),
            Ok(read) => {
                let content = match lock_file::parse(&read.text) {
                    Parsed::Valid(lock) => Content::Valid(Box::new(lock)),
                    Parsed::Unsupported => Content::Unsupported,
                    Parsed::Malformed(reason) => Content::Malformed(reason),
                };
                (content, Some(read))
            }
        };
        let pid = match &content {
            // A Windows pid means nothing here.
            Content::Valid(lock) if lock.running_in_windows && env.host.wsl.is_some() => None,
            Content::Valid(lock) => lock.pid.map(pid_state),
            _ => lock_file::parse_name(&name).map(|(_, pid, _)| pid_state(pid)),
        };
        let path = dir.path().join(&name).to_string_lossy().into_owned();
        Some(Self { name, path, content, read, pid, check_pid })
    }

    pub(super) fn lock(&self) -> Option<&LockFile> {
        if let Content::Valid(lock) = &self.content { Some(lock) } else { None }
    }

    pub(super) fn modified(&self) -> SystemTime {
        self.read.as_ref().map_or(SystemTime::UNIX_EPOCH, |read| read.modified)
    }

    /// What the verdict depends on; `None` for a file that could not be read.
    pub(super) fn facts(&self, env: &Env, now: SystemTime, probe: Option<Probe>) -> Option<Facts> {
        let lock = self.lock();
        let validity = match &self.content {
            Content::Valid(_) => Validity::Valid,
            Content::Unsupported => Validity::Unsupported,
            Content::Malformed(_) => {
                Validity::Malformed { own_name: self.pid.is_some(), pid: self.pid.unwrap_or(PidState::Alive) }
            }
            Content::Unreadable(_) => return None,
        };
        Some(Facts {
            validity,
            pid: self.pid,
            pid_check: self.check_pid,
            windows_lock_in_wsl: env.host.wsl.is_some() && lock.is_some_and(|lock| lock.running_in_windows),
            foreign_host: lock.is_some_and(|lock| is_foreign(env, lock)),
            probe,
            // A clock that was set back makes a file young, never old.
            age: now.duration_since(self.modified()).unwrap_or(Duration::ZERO),
        })
    }
}

/// Whether the lock names another machine. Does not count when the user named a host.
pub(super) fn is_foreign(env: &Env, lock: &LockFile) -> bool {
    let other = matches!((&lock.host_id, &env.host_id), (Some(theirs), Some(ours)) if theirs != ours);
    other && env.var("PI_X_IDE_HOST_OVERRIDE").is_none()
}

fn pid_state(pid: u64) -> PidState {
    if may_be_alive(pid) { PidState::Alive } else { PidState::Dead }
}
