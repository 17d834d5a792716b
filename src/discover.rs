//! `discover` and its candidates.

use std::path::PathBuf;

use napi::bindgen_prelude::{AsyncBlock, Object};
use napi::{Env, Result};
use napi_derive::napi;
use pi_x_ide_bridge::discovery::{self as bridge, Standing};
use pi_x_ide_bridge::host::Probe;
use pi_x_ide_bridge::sources;

use pi_x_ide_bridge::env::Variables;
use serde::Serialize;

use crate::abort::AbortListener;
use crate::host::{absolute, env_of};
use crate::promise::{Settled, abortable};

/// How an editor is reached.
#[napi(string_enum = "lowercase")]
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A WebSocket that a lock file tells of.
    Ws,
    /// A state database of Zed.
    Zed,
}

/// Whether a candidate can be used.
#[napi(string_enum = "kebab-case")]
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It may be connected to.
    Usable,
    /// It names a host that is neither this machine nor one that the user meant; it is not dialled.
    HostRefused,
    /// Nothing answers at its port, although its process seems to live; found out with `all` only.
    NotAnswering,
    /// Of another machine that shares the home folder.
    ForeignHost,
    /// A lock file of another protocol version.
    Unsupported,
    /// No valid lock file, left alone.
    Malformed,
    /// A file or folder that may not be trusted, or cannot be read.
    Untrusted,
    /// Its editor seems gone; the file is left alone.
    Stale,
    /// Its editor was proven gone and the file was removed.
    Removed,
}

/// One editor, with how well it fits a folder and whether it can be used. Carries no token.
#[napi(object)]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// Names the candidate: path of its lock file, or of its database.
    pub id: String,
    /// How it is reached.
    pub transport: Transport,
    /// Kind of editor, such as `vscode`.
    pub ide: String,
    /// Name for people.
    pub name: String,
    /// Process that owns the socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<f64>,
    /// Host as the editor sees itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Port of its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<f64>,
    /// The open folder that fits best, else the first one; in this host's form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_folder: Option<String>,
    /// All open folders in this host's form.
    pub workspace_folders: Vec<String>,
    /// `10000 + length` of a folder that contains the asked one, else the asked one's length where a folder lies inside
    /// it, else 0. Lengths count characters.
    pub match_length: f64,
    /// Whether an open folder contains the asked one: only such an editor is connected without asking.
    pub direct: bool,
    /// Last focus, else last change of the lock file, in milliseconds since the epoch.
    pub last_activity: f64,
    /// Whether it can be used.
    pub verdict: Verdict,
    /// Why, as a sentence about "it". Not escaped: it holds names as the editor wrote them.
    pub reason: String,
    /// What was looked at to judge it, besides `matchLength`.
    pub checks: CandidateChecks,
}

/// What was looked at to judge a lock file.
#[napi(object)]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateChecks {
    /// What its text is.
    pub parsed: ParsedAs,
    /// What its pid says.
    pub pid: PidCheck,
    /// Hosts that were asked, in the order they would be dialled; empty where nobody was.
    pub probes: Vec<HostProbe>,
}

/// What the text of a lock file is.
#[napi(string_enum = "lowercase")]
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ParsedAs {
    /// A lock file of our version.
    Valid,
    /// A lock file of another version.
    Unsupported,
    /// No lock file.
    Malformed,
    /// It was not read.
    Unreadable,
}

/// What the pid of a lock file says.
#[napi(string_enum = "kebab-case")]
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PidCheck {
    /// Such a process lives, or may live.
    Alive,
    /// There is no such process.
    Dead,
    /// The file has no pid, or none that could be one.
    Unusable,
    /// It says nothing here, or is not asked.
    NotChecked,
}

/// What one host said.
#[napi(object)]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostProbe {
    /// Host without brackets.
    pub host: String,
    /// What it said.
    pub outcome: ProbeOutcome,
}

/// What a connect to a port showed: somebody accepts, the machine says that nobody listens, no answer.
#[napi(string_enum = "lowercase")]
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeOutcome {
    /// Somebody accepts.
    Reachable,
    /// The machine says that nobody listens.
    Refused,
    /// No answer in 500 milliseconds, or an error that proves nothing.
    Timeout,
}

/// What a scan looks at and what it may do.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct DiscoverOptions<'env> {
    /// Also return what is hidden or cannot be used, each with its reason, and ask every port whether it answers.
    /// Default: false.
    pub all: Option<bool>,
    /// Remove lock files that are proven dead. Default: true.
    pub clean_up: Option<bool>,
    /// Whether the pid in a lock file tells if its editor lives. Default: true; `PI_X_IDE_PID_CHECK=0` switches it off.
    pub check_pid: Option<bool>,
    /// Absolute path of the folder to look at instead of the user's lock folders.
    pub lock_dir: Option<String>,
    /// Ends the scan early; the promise rejects with its reason.
    #[napi(ts_type = "AbortSignal")]
    pub signal: Option<Object<'env>>,
}

/// Finds every editor whose lock file is there, best match for `cwd` (absolute) first, usable ones before all others:
/// in `~/.pi/pi-x-ide/lock` and, under WSL, that folder of each Windows profile. Takes a second at most.
///
/// What cannot be read or trusted is skipped with a reason, see `all`. Rejects with `PIX_INVALID_ARGUMENT` only.
/// Protocol: "Lock files".
#[napi(catch_unwind, ts_return_type = "Promise<Candidate[]>")]
pub fn discover(
    env: &Env,
    cwd: String,
    options: Option<DiscoverOptions>,
) -> Result<AsyncBlock<Settled<Vec<Candidate>>>> {
    let options = options.unwrap_or_default();
    let abort = AbortListener::attach(env, options.signal)?;
    let (all, clean_up) = (options.all.unwrap_or(false), options.clean_up.unwrap_or(true));
    let (check_pid, lock_dir) = (options.check_pid.unwrap_or(true), options.lock_dir);
    let variables = Variables::current();
    let work = async move {
        let cwd = absolute("cwd", cwd)?;
        let lock_dir = lock_dir.map(|dir| absolute("lockDir", dir)).transpose()?.map(PathBuf::from);
        let options = bridge::Options { all, clean_up, check_pid, lock_dir };
        Ok(sources::discover(&env_of(variables).await?, &cwd, &options).await)
    };
    abortable(env, abort, work, |_, candidates| Ok(candidates.into_iter().map(Candidate::from).collect()))
}

impl From<bridge::Candidate> for Candidate {
    fn from(candidate: bridge::Candidate) -> Self {
        let last_activity = candidate.last_activity();
        let (host, port) = candidate.address.unzip();
        Self {
            id: candidate.id,
            transport: match candidate.transport {
                bridge::Transport::Ws => Transport::Ws,
                bridge::Transport::Zed => Transport::Zed,
            },
            ide: candidate.ide,
            name: candidate.name,
            pid: candidate.pid.map(|pid| pid as f64),
            host,
            port: port.map(f64::from),
            workspace_folder: candidate.workspace_folder,
            workspace_folders: candidate.workspace_folders,
            match_length: f64::from(candidate.match_length),
            direct: candidate.direct,
            last_activity,
            verdict: candidate.standing.into(),
            reason: candidate.reason,
            checks: candidate.checks.into(),
        }
    }
}

impl From<bridge::Checks> for CandidateChecks {
    fn from(checks: bridge::Checks) -> Self {
        let probe = |probe: bridge::HostProbe| HostProbe {
            host: probe.host,
            outcome: match probe.outcome {
                Probe::Reachable => ProbeOutcome::Reachable,
                Probe::Refused => ProbeOutcome::Refused,
                Probe::Timeout => ProbeOutcome::Timeout,
            },
        };
        Self {
            parsed: match checks.parsed {
                bridge::ParsedAs::Valid => ParsedAs::Valid,
                bridge::ParsedAs::Unsupported => ParsedAs::Unsupported,
                bridge::ParsedAs::Malformed => ParsedAs::Malformed,
                bridge::ParsedAs::Unreadable => ParsedAs::Unreadable,
            },
            pid: match checks.pid {
                bridge::PidCheck::Alive => PidCheck::Alive,
                bridge::PidCheck::Dead => PidCheck::Dead,
                bridge::PidCheck::Unusable => PidCheck::Unusable,
                bridge::PidCheck::NotChecked => PidCheck::NotChecked,
            },
            probes: checks.probes.into_iter().map(probe).collect(),
        }
    }
}

impl From<CandidateChecks> for bridge::Checks {
    fn from(checks: CandidateChecks) -> Self {
        let probe = |probe: HostProbe| bridge::HostProbe {
            host: probe.host,
            outcome: match probe.outcome {
                ProbeOutcome::Reachable => Probe::Reachable,
                ProbeOutcome::Refused => Probe::Refused,
                ProbeOutcome::Timeout => Probe::Timeout,
            },
        };
        Self {
            parsed: match checks.parsed {
                ParsedAs::Valid => bridge::ParsedAs::Valid,
                ParsedAs::Unsupported => bridge::ParsedAs::Unsupported,
                ParsedAs::Malformed => bridge::ParsedAs::Malformed,
                ParsedAs::Unreadable => bridge::ParsedAs::Unreadable,
            },
            pid: match checks.pid {
                PidCheck::Alive => bridge::PidCheck::Alive,
                PidCheck::Dead => bridge::PidCheck::Dead,
                PidCheck::Unusable => bridge::PidCheck::Unusable,
                PidCheck::NotChecked => bridge::PidCheck::NotChecked,
            },
            probes: checks.probes.into_iter().map(probe).collect(),
        }
    }
}

impl From<Standing> for Verdict {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Usable => Self::Usable,
            Standing::HostRefused => Self::HostRefused,
            Standing::NotAnswering => Self::NotAnswering,
            Standing::ForeignHost => Self::ForeignHost,
            Standing::Unsupported => Self::Unsupported,
            Standing::Malformed => Self::Malformed,
            Standing::Untrusted => Self::Untrusted,
            Standing::Stale => Self::Stale,
            Standing::Removed => Self::Removed,
        }
    }
}

impl From<Verdict> for Standing {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Usable => Self::Usable,
            Verdict::HostRefused => Self::HostRefused,
            Verdict::NotAnswering => Self::NotAnswering,
            Verdict::ForeignHost => Self::ForeignHost,
            Verdict::Unsupported => Self::Unsupported,
            Verdict::Malformed => Self::Malformed,
            Verdict::Untrusted => Self::Untrusted,
            Verdict::Stale => Self::Stale,
            Verdict::Removed => Self::Removed,
        }
    }
}

impl From<Candidate> for bridge::Candidate {
    /// Only `id` and the verdict decide on a connection; the rest is for people.
    fn from(candidate: Candidate) -> Self {
        Self {
            transport: match candidate.transport {
                Transport::Ws => bridge::Transport::Ws,
                Transport::Zed => bridge::Transport::Zed,
            },
            id: candidate.id,
            ide: candidate.ide,
            name: candidate.name,
            pid: candidate.pid.map(|pid| pid as u64),
            address: candidate.host.zip(candidate.port.map(|port| port as u16)),
            workspace_folder: candidate.workspace_folder,
            workspace_folders: candidate.workspace_folders,
            match_length: candidate.match_length as u32,
            direct: candidate.direct,
            by_itself: candidate.direct,
            focused_at: Some(candidate.last_activity),
            modified_at: candidate.last_activity as u64,
            standing: candidate.verdict.into(),
            reason: candidate.reason,
            checks: candidate.checks.into(),
        }
    }
}
