//! What a scan looked at to judge one lock file.

use crate::host::Probe;

/// What a scan looked at to judge one lock file; its workspace score is [`super::Candidate::match_length`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checks {
    /// What its text is.
    pub parsed: ParsedAs,
    /// What its pid says.
    pub pid: PidCheck,
    /// Hosts that were asked, in the order they would be dialled.
    pub probes: Vec<HostProbe>,
}

/// What the text of a lock file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParsedAs {
    /// A lock of our version.
    Valid,
    /// A lock of another version.
    Unsupported,
    /// No lock.
    Malformed,
    /// It was not read.
    #[default]
    Unreadable,
}

/// What the pid of a lock file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PidCheck {
    /// Such a process lives, or may live.
    Alive,
    /// There is no such process.
    Dead,
    /// The file has no pid, or none that could be one.
    Unusable,
    /// It says nothing here, or is not asked.
    #[default]
    NotChecked,
}

/// What one host said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostProbe {
    /// Host without brackets.
    pub host: String,
    /// What it said.
    pub outcome: Probe,
}
