//! Reading one lock folder, and what of it has to be probed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::checks::{HostProbe, PidCheck};
use super::folders::{LockFolder, modes_of};
use super::verdict::{self, Facts, PidState, Validity, Verdict};
use crate::env::Env;
use crate::host::{Network, Probe, Server, overall};
use crate::process::may_be_alive;
use crate::protocol::lock_file::{self, LockFile, Parsed};
use crate::trusted::{Distrust, TrustedDir, TrustedText};

/// One lock folder as it was found.
pub(super) struct Scan {
    pub(super) folder: PathBuf,
    pub(super) entries: Vec<Entry>,
    /// Why nothing of the folder was read, or not all of it.
    pub(super) refusal: Option<Refusal>,
}

/// Why a folder was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// It may not be trusted, or cannot be read.
    #[error("the lock folder {0}")]
    Distrust(Distrust),
    /// A drive that hangs.
    #[error("the lock folder did not answer in time")]
    Hangs,
    /// Reading all of it would take too long.
    #[error("the lock folder holds too many files; only {0} of them were read")]
    TooMany(usize),
}

/// One `*.lock` file.
pub(super) struct Entry {
    dir: Arc<TrustedDir>,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) content: Content,
    /// Present where the file could be read.
    pub(super) read: Option<TrustedText>,
    /// Another machine's: not dialled, not deleted.
    pub(super) is_foreign: bool,
    /// Of an editor on Windows, seen from WSL.
    in_windows: bool,
    pid: Option<PidState>,
    /// What its liveness depends on.
    rule: Rule,
    /// What its hosts said, in the order they would be dialled; empty where nobody was asked.
    pub(super) probes: Vec<HostProbe>,
}

/// Host without brackets, and port.
pub(super) type Place = (String, u16);

pub(super) enum Content {
    Valid(Box<LockFile>),
    Unsupported,
    Malformed(String),
    Unreadable(Distrust),
}

/// What tells whether an editor lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Its pid, then its port.
    Pid,
    /// Its port alone, at the host that the user named.
    Override,
    /// Its age alone.
    Age,
}

impl Rule {
    pub(super) fn of(env: &Env, check_pid: bool) -> Self {
        match (check_pid && !env.is_switched_off("PI_X_IDE_PID_CHECK"), env.host_override()) {
            (false, _) => Self::Age,
            (true, Some(_)) => Self::Override,
            (true, None) => Self::Pid,
        }
    }
}

impl Scan {
    /// Reads every `*.lock` file, as far as the time reaches. Blocks.
    pub(super) fn read(env: &Env, folder: &LockFolder, rule: Rule, until: Instant) -> Self {
        let empty = |refusal| Self { folder: folder.path.clone(), entries: Vec::new(), refusal };
        let opened = TrustedDir::open_dir(&folder.path, modes_of(env, &folder.path));
        let (mut names, dir) = match opened.and_then(|dir| Ok((dir.names()?, dir))) {
            Ok((names, dir)) => (names, Arc::new(dir)),
            Err(Distrust::Missing) => return empty(None),
            Err(error) => return empty(Some(Refusal::Distrust(error))),
        };
        names.retain(|name| name.ends_with(".lock"));
        let mut entries = Vec::with_capacity(names.len());
        let mut refusal = None;
        for name in names {
            if Instant::now() >= until {
                refusal = Some(Refusal::TooMany(entries.len()));
                break;
            }
            entries.extend(Entry::read(env, &dir, name, rule));
        }
        Self { folder: folder.path.clone(), entries, refusal }
    }

    /// A folder on a drive that does not answer.
    pub(super) fn hung(folder: &LockFolder) -> Self {
        Self { folder: folder.path.clone(), entries: Vec::new(), refusal: Some(Refusal::Hangs) }
    }
}

impl Entry {
    /// `None` for a file that vanished since the folder was listed.
    fn read(env: &Env, dir: &Arc<TrustedDir>, name: String, rule: Rule) -> Option<Self> {
        let (content, read) = match dir.read(&name, lock_file::MAX_BYTES) {
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
        let lock = if let Content::Valid(lock) = &content { Some(lock) } else { None };
        let in_windows = env.host.wsl.is_some() && lock.is_some_and(|lock| lock.running_in_windows);
        let is_foreign = lock.is_some_and(|lock| is_of_another_machine(env, lock, in_windows));
        let pid = match &content {
            // A Windows pid means nothing here.
            Content::Valid(lock) => lock.pid.filter(|_| !in_windows).map(pid_state),
            _ => lock_file::parse_name(&name).map(|(_, pid, _)| pid_state(pid)),
        };
        let path = dir.path().join(&name).to_string_lossy().into_owned();
        let dir = Arc::clone(dir);
        Some(Self { dir, name, path, content, read, is_foreign, in_windows, pid, rule, probes: Vec::new() })
    }

    pub(super) fn lock(&self) -> Option<&LockFile> {
        if let Content::Valid(lock) = &self.content { Some(lock) } else { None }
    }

    pub(super) fn modified(&self) -> SystemTime {
        self.read.as_ref().map_or(SystemTime::UNIX_EPOCH, |read| read.modified)
    }

    /// What its pid said, for people.
    pub(super) fn pid_check(&self) -> PidCheck {
        if self.rule != Rule::Pid || self.in_windows || self.is_foreign {
            return PidCheck::NotChecked;
        }
        match (self.pid, &self.content) {
            (Some(PidState::Alive), _) => PidCheck::Alive,
            (Some(PidState::Dead), _) => PidCheck::Dead,
            (None, Content::Valid(_)) => PidCheck::Unusable,
            (None, _) => PidCheck::NotChecked,
        }
    }

    /// Whether its host may not be dialled, see `host::resolve`.
    pub(super) fn names_a_stranger(&self, env: &Env, network: &Network) -> bool {
        self.lock().is_some_and(|lock| server(env, network, lock).hosts_to_probe().is_err())
    }

    /// The hosts and port whose answer decides on it, or just tells when `everything` is asked; none where nobody needs
    /// to be asked.
    pub(super) fn places_to_probe(&self, env: &Env, network: &Network, everything: bool) -> Vec<Place> {
        let Some(lock) = self.lock().filter(|_| !self.is_foreign) else {
            return Vec::new();
        };
        let decides = match self.rule {
            Rule::Pid => self.in_windows || self.pid == Some(PidState::Dead),
            Rule::Override => true,
            Rule::Age => false,
        };
        if !decides && !everything {
            return Vec::new();
        }
        let hosts = server(env, network, lock).hosts_to_probe().unwrap_or_default();
        hosts.into_iter().map(|host| (host, lock.port)).collect()
    }

    /// What its hosts say together.
    pub(super) fn answer(&self) -> Option<Probe> {
        overall(self.probes.iter().map(|probe| probe.outcome))
    }

    /// What is to be done with it; a file that could not be read is hidden.
    pub(super) fn verdict(&self, now: SystemTime) -> Verdict {
        self.facts(now).map_or(Verdict::Hide, |facts| verdict::judge(&facts))
    }

    /// Removes the file if it is still the one that was read. A process that cannot see the editor's machine (a
    /// container, a host override, a host that is not asked) removes nothing.
    pub(super) fn delete(&self, env: &Env, network: &Network) -> bool {
        let named = self.lock().filter(|_| !self.in_windows).and_then(|lock| lock.host_id.as_ref());
        let is_ours = named.is_none_or(|id| env.host_id.as_ref() == Some(id)) && !self.names_a_stranger(env, network);
        let read = self.read.as_ref().filter(|_| is_ours && env.host_override().is_none());
        read.is_some_and(|read| matches!(self.dir.remove_if_unchanged(&self.name, read), Ok(true)))
    }

    fn facts(&self, now: SystemTime) -> Option<Facts> {
        let validity = match &self.content {
            Content::Valid(_) => Validity::Valid,
            Content::Unsupported => Validity::Unsupported,
            Content::Malformed(_) => {
                Validity::Malformed { own_name: self.pid.is_some(), pid: self.pid.unwrap_or(PidState::Alive) }
            }
            Content::Unreadable(_) => return None,
        };
        // Where the user named a host, a pid is one of another machine, and a missing one misses nothing: the port
        // tells.
        let pid = if self.rule == Rule::Override { Some(PidState::Dead) } else { self.pid };
        Some(Facts {
            validity,
            pid,
            pid_check: self.rule != Rule::Age,
            windows_lock_in_wsl: self.in_windows,
            foreign_host: self.is_foreign,
            probe: self.answer(),
            // A clock that was set back makes a file young, never old.
            age: now.duration_since(self.modified()).unwrap_or(Duration::ZERO),
        })
    }
}

/// A lock's server, seen from here.
pub(crate) fn server<'a>(env: &'a Env, network: &'a Network, lock: &'a LockFile) -> Server<'a> {
    Server {
        override_host: env.host_override(),
        network,
        lock_host: &lock.host,
        port: lock.port,
        running_in_windows: lock.running_in_windows,
    }
}

/// Whether the lock names another machine: Windows is one by that measure, and so is a host that the user named.
fn is_of_another_machine(env: &Env, lock: &LockFile, in_windows: bool) -> bool {
    let other = matches!((&lock.host_id, &env.host_id), (Some(theirs), Some(ours)) if theirs != ours);
    other && !in_windows && env.host_override().is_none()
}

fn pid_state(pid: u64) -> PidState {
    if may_be_alive(pid) { PidState::Alive } else { PidState::Dead }
}
