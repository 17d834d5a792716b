//! Finding the editors of this machine: lock folders → candidates with a verdict, ranked. Connects to nobody (a
//! probe of a port whose owner seems dead is all).

mod candidate;
mod matching;
pub mod rank;
mod scan;
pub mod verdict;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use crate::blocking::blocking;
use crate::env::Env;
use crate::host::{Probe, probe_loopback};
use crate::protocol::lock_file::{self, LockFile, Parsed};
use crate::trusted::{Distrust, TrustedDir};
pub use candidate::{Candidate, Standing, auto_connect};
use matching::Matcher;
use scan::{Entry, Scan};
use verdict::Verdict;

/// No probe may keep a scan longer than this.
const SCAN_PROBE_LIMIT: Duration = Duration::from_secs(1);

/// Sockets that one scan has open, far below any limit on descriptors.
const PROBES_AT_ONCE: usize = 64;

/// Largest lock file that is read. Real ones have some hundred bytes.
const MAX_LOCK_BYTES: u64 = 1024 * 1024;

/// What a scan looks at and what it may do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Also return what is hidden or cannot be used, each with its reason.
    pub all: bool,
    /// Remove lock files that are proven dead.
    pub clean_up: bool,
    /// Whether the pid of a lock tells if it is alive; `PI_X_IDE_PID_CHECK=0` switches it off everywhere.
    pub check_pid: bool,
    /// Look only at this folder instead of the user's lock folder.
    pub lock_dir: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { all: false, clean_up: true, check_pid: true, lock_dir: None }
    }
}

impl Options {
    /// The folder that a scan with these options looks at; `None` where there is no home folder.
    pub fn folder(&self, env: &Env) -> Option<PathBuf> {
        self.lock_dir.clone().or_else(|| env.lock_dir())
    }
}

/// Every editor that a lock file tells of, best match for `cwd` first.
///
/// Never fails: a folder or file that cannot be read or trusted is a candidate with its reason, shown with
/// [`Options::all`]. Protocol: "Lock files".
pub async fn discover(env: &Arc<Env>, cwd: &str, options: &Options) -> Vec<Candidate> {
    let Some(folder) = options.folder(env) else {
        return Vec::new();
    };
    let check_pid = options.check_pid && !env.is_switched_off("PI_X_IDE_PID_CHECK");
    let scan = {
        let env = Arc::clone(env);
        blocking(move || Scan::read(&env, &folder, check_pid)).await
    };
    let Some(scan) = scan else { return Vec::new() };
    let probes = probe_ports(scan.ports_to_probe()).await;
    let (env, cwd, options) = (Arc::clone(env), cwd.to_owned(), options.clone());
    blocking(move || conclude(&env, &cwd, &options, scan, &probes)).await.unwrap_or_default()
}

/// Reads the lock file of a candidate again, for its token. `id` is [`Candidate::id`].
///
/// Fails where the file is gone, cannot be trusted, or is no lock any more.
pub fn read_lock(id: &str) -> Result<LockFile, LockGone> {
    let path = Path::new(id);
    let (folder, name) =
        path.parent().zip(path.file_name().and_then(|name| name.to_str())).ok_or(LockGone::NotALock)?;
    let text = TrustedDir::open_dir(folder)?.read(name, MAX_LOCK_BYTES)?;
    match lock_file::parse(&text.text) {
        Parsed::Valid(lock) => Ok(lock),
        _ => Err(LockGone::NotALock),
    }
}

/// Why a candidate's lock file could not be read again.
#[derive(Debug, thiserror::Error)]
pub enum LockGone {
    /// The file or its folder.
    #[error("the lock file {0}")]
    Distrust(#[from] Distrust),
    /// Readable, but no lock of our version.
    #[error("the lock file is no valid lock any more")]
    NotALock,
}

/// One probe per port, many at once, cut off after a second: ten dead locks cost no more than one. A port without an
/// outcome counts as silent.
async fn probe_ports(ports: Vec<u16>) -> HashMap<u16, Probe> {
    let limit = Instant::now() + SCAN_PROBE_LIMIT;
    let probes = ports.into_iter().map(|port| async move { (port, probe_loopback(port).await) });
    let mut probes = stream::iter(probes).buffer_unordered(PROBES_AT_ONCE);
    let mut outcomes = HashMap::new();
    while let Ok(Some((port, outcome))) = timeout_at(limit, probes.next()).await {
        outcomes.insert(port, outcome);
    }
    outcomes
}

fn conclude(env: &Env, cwd: &str, options: &Options, scan: Scan, probes: &HashMap<u16, Probe>) -> Vec<Candidate> {
    let mut matcher = Matcher::new(&env.host, cwd);
    let Scan { dir, entries, refusal } = scan;
    let refused = refusal.map(|(folder, error)| candidate::untrusted_folder(&folder, &error));
    let mut candidates: Vec<Candidate> = refused.into_iter().collect();
    for entry in entries {
        let candidate = match judge(env, &entry, probes) {
            Verdict::Delete if options.clean_up && may_delete(env, &entry) => {
                let removed =
                    dir.as_ref().zip(entry.read.as_ref()).map(|(dir, read)| dir.remove_if_unchanged(&entry.name, read));
                candidate::removed(entry, matches!(removed, Some(Ok(true))))
            }
            Verdict::Delete | Verdict::Hide => candidate::hidden(entry),
            Verdict::Keep => candidate::kept(env, entry, &mut matcher),
        };
        candidates.push(candidate);
    }
    candidates.retain(|candidate| options.all || candidate.standing == Standing::Usable);
    candidate::rank(candidates)
}

fn judge(env: &Env, entry: &Entry, probes: &HashMap<u16, Probe>) -> Verdict {
    let now = env.now();
    let port = entry.lock().map(|lock| lock.port);
    entry
        .facts(env, now, port.and_then(|port| probes.get(&port).copied()))
        .map_or(Verdict::Hide, |facts| verdict::judge(&facts))
}

/// A process that cannot see the editor's machine (a container, a host override) deletes nothing.
fn may_delete(env: &Env, entry: &Entry) -> bool {
    let same_machine =
        entry.lock().and_then(|lock| lock.host_id.as_ref()).is_none_or(|id| env.host_id.as_ref() == Some(id));
    same_machine && env.var("PI_X_IDE_HOST_OVERRIDE").is_none()
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
