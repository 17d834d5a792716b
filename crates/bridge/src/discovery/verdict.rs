//! What a scan does with one lock file: keep, hide or delete. Pure; nothing is deleted that is not proven
//! dead, or a day old without a process that could be asked.

use std::time::Duration;

use crate::host::Probe;

/// A lock without a usable pid is old after this long.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);
/// Two heartbeats of a writer.
const TWO_HEARTBEATS: Duration = Duration::from_secs(30 * 60);
/// A file that is no lock may still be half written for this long.
const HALF_WRITTEN: Duration = Duration::from_secs(10);

/// What reading the file gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// A lock of our version.
    Valid,
    /// A lock of another version.
    Unsupported,
    /// No lock.
    Malformed {
        /// Whether its name has the form `<ide>-<pid>-<port>.lock`.
        own_name: bool,
        /// State of the pid in the name.
        pid: PidState,
    },
}

/// What a signal-0 test of a usable pid said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PidState {
    /// Alive, no permission to ask, or anything unknown.
    Alive,
    /// No such process.
    Dead,
}

/// Everything the verdict depends on.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// What reading the file gave.
    pub validity: Validity,
    /// State of the lock's pid; `None` where it has no usable one.
    pub pid: Option<PidState>,
    /// Whether pids are checked at all.
    pub pid_check: bool,
    /// Whether pi runs in WSL and the editor on Windows, so that only reachability tells.
    pub windows_lock_in_wsl: bool,
    /// Whether the lock names another machine.
    pub foreign_host: bool,
    /// Outcome over all candidate hosts; `None` when nobody was asked.
    pub probe: Option<Probe>,
    /// Now minus the file's last change.
    pub age: Duration,
}

/// What a scan does with a lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// List it.
    Keep,
    /// Leave it alone, unlisted.
    Hide,
    /// Remove it.
    Delete,
}

/// The verdict for one lock file. Protocol: "Lock files", rules on liveness, made safe for firewalls, containers and
/// shared home folders.
pub fn judge(facts: &Facts) -> Verdict {
    match facts.validity {
        Validity::Unsupported => return Verdict::Keep,
        Validity::Malformed { own_name, pid } => return judge_malformed(own_name, pid, facts),
        Validity::Valid => {}
    }
    if facts.foreign_host && !facts.windows_lock_in_wsl {
        return Verdict::Keep;
    }
    if facts.pid_check && facts.windows_lock_in_wsl {
        return match facts.probe {
            Some(Probe::Reachable) => Verdict::Keep,
            _ if facts.age > TWO_HEARTBEATS => Verdict::Delete,
            _ => Verdict::Hide,
        };
    }
    match facts.pid.filter(|_| facts.pid_check) {
        Some(PidState::Alive) => Verdict::Keep,
        Some(PidState::Dead) => match facts.probe {
            Some(Probe::Reachable) => Verdict::Keep,
            Some(Probe::Refused) => Verdict::Delete,
            _ => Verdict::Hide,
        },
        None if facts.age > OLD => Verdict::Delete,
        None => Verdict::Keep,
    }
}

fn judge_malformed(own_name: bool, pid: PidState, facts: &Facts) -> Verdict {
    if own_name && facts.pid_check && pid == PidState::Dead && facts.age >= HALF_WRITTEN {
        Verdict::Delete
    } else {
        Verdict::Hide
    }
}
