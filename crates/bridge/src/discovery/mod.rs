//! Finding the editors of this machine: lock folders → candidates with a verdict, ranked. Connects to nobody (a probe
//! of a port whose owner cannot be judged otherwise is all).

mod candidate;
mod checks;
mod folders;
mod matching;
pub mod rank;
mod scan;
pub mod verdict;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use crate::blocking::blocking;
use crate::env::Env;
use crate::host::{Network, PROBE_TIMEOUT, Probe, addresses, probe};
use crate::protocol::lock_file::{self, LockFile, Parsed};
use crate::trusted::{Distrust, TrustedDir};
pub(crate) use candidate::rank;
pub use candidate::{Candidate, Standing, Transport, auto_connect};
pub use checks::{Checks, HostProbe, ParsedAs, PidCheck};
pub use folders::LockFolder;
use folders::{Surroundings, modes_of};
pub(crate) use matching::best_folder;
pub use matching::respellings;
use matching::{Relations, localised, spelt};
pub(crate) use scan::server;
use scan::{Entry, Place, Rule, Scan};
use verdict::Verdict;

/// A scan takes no longer than this and [`SCAN_WITHIN`] together, one second, unless the machine is too busy to read.
const FIND_FOLDERS_WITHIN: Duration = Duration::from_millis(250);
const SCAN_WITHIN: Duration = Duration::from_millis(750);

/// What of a folder is not read by then is left out, so that time for probes remains. Less for a folder on a Windows
/// drive, which may hang, than for the user's own one, which a busy machine must not hide.
const READ_WITHIN: Duration = Duration::from_millis(500);
const READ_WINDOWS_WITHIN: Duration = Duration::from_millis(200);

/// What is read by then has still to come over from its thread.
const HAND_OVER_WITHIN: Duration = Duration::from_millis(150);

/// Workspace folders on a drive that hangs count as spelt.
const RELATE_WITHIN: Duration = Duration::from_millis(200);

/// Sockets that one scan has open, far below any limit on descriptors.
const PROBES_AT_ONCE: usize = 64;

/// What a scan looks at and what it may do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Also return what is hidden or cannot be used, each with its reason, and ask every port whether it answers.
    pub all: bool,
    /// Remove lock files that are proven dead.
    pub clean_up: bool,
    /// Whether the pid of a lock tells if it is alive; `PI_X_IDE_PID_CHECK=0` switches it off everywhere.
    pub check_pid: bool,
    /// Look only at this folder instead of the user's lock folders.
    pub lock_dir: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { all: false, clean_up: true, check_pid: true, lock_dir: None }
    }
}

/// One look at every lock folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// How this process sees Windows.
    pub network: Network,
    /// The folders, the user's own first.
    pub folders: Vec<SurveyedFolder>,
    /// What their files tell of, best match first, usable ones before all others.
    pub candidates: Vec<Candidate>,
}

/// One lock folder of a [`Survey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurveyedFolder {
    /// Which one.
    pub folder: LockFolder,
    /// Lock files read in it.
    pub locks: usize,
    /// Why it was not read, or not to its end, as a sentence.
    pub problem: Option<String>,
}

impl SurveyedFolder {
    fn of(folder: LockFolder, scan: &Scan) -> Self {
        Self { folder, locks: scan.entries.len(), problem: scan.refusal.as_ref().map(ToString::to_string) }
    }
}

/// Looks at the lock folders again and again.
pub struct Scanner {
    env: Arc<Env>,
    options: Options,
}

impl Scanner {
    /// A scanner of this user's folders.
    pub fn new(env: Arc<Env>, options: Options) -> Self {
        Self { env, options }
    }

    /// One look at every folder, in parallel.
    pub async fn survey(&self, cwd: &str) -> Survey {
        self.survey_in(self.surroundings().await, cwd).await
    }

    /// The folders that there are, and how Windows is reached.
    pub(crate) async fn surroundings(&self) -> Surroundings {
        let deadline = Instant::now() + FIND_FOLDERS_WITHIN;
        let (env, given) = (Arc::clone(&self.env), self.options.lock_dir.clone());
        let read = move || Surroundings::read(&env, given.as_deref());
        let read = self.env.patience.run("the Windows drives", deadline, read).await;
        read.unwrap_or_else(|| Surroundings::own(&self.env, self.options.lock_dir.as_deref()))
    }

    /// Like [`Scanner::survey`], of folders that were found before.
    pub(crate) async fn survey_in(&self, surroundings: Surroundings, cwd: &str) -> Survey {
        let began = Instant::now();
        // Reading that took long on a busy machine must neither make every port silent nor every folder a stranger.
        let end_by = |at_least| (began + SCAN_WITHIN).max(Instant::now() + at_least);
        let Surroundings { folders, network } = surroundings;
        let scans = join_all(folders.iter().map(|folder| self.scan(folder, began))).await;
        let refused = |scan: &Scan| scan.refusal.as_ref().map(|refusal| Candidate::of_folder(&scan.folder, refusal));
        let refused: Vec<Candidate> = scans.iter().filter_map(refused).collect();
        let folders = folders.into_iter().zip(&scans).map(|(folder, scan)| SurveyedFolder::of(folder, scan)).collect();
        let mut entries: Vec<Entry> = scans.into_iter().flat_map(|scan| scan.entries).collect();
        self.probe(&mut entries, &network, end_by(PROBE_TIMEOUT)).await;
        let now = self.env.now();
        let judged: Vec<_> = entries.into_iter().map(|entry| (entry.verdict(now), entry)).collect();
        let relations = self.relations(cwd, &judged, end_by(RELATE_WITHIN)).await;
        let (env, options, cwd) = (Arc::clone(&self.env), self.options.clone(), cwd.to_owned());
        let reached_by = network.clone();
        let conclude = move || {
            let concluded = judged.into_iter().map(|(verdict, entry)| match verdict {
                Verdict::Keep => Candidate::kept(&env, &reached_by, &cwd, &entry, &relations),
                Verdict::Hide => Candidate::hidden(&entry),
                Verdict::Delete if options.clean_up && entry.delete(&env, &reached_by) => Candidate::removed(&entry),
                Verdict::Delete => Candidate::hidden(&entry),
            });
            let all = refused.into_iter().chain(concluded);
            rank(all.filter(|candidate| options.all || candidate.standing == Standing::Usable).collect())
        };
        Survey { network, folders, candidates: blocking(conclude).await.unwrap_or_default() }
    }

    async fn scan(&self, folder: &LockFolder, began: Instant) -> Scan {
        let rule = Rule::of(&self.env, self.options.check_pid);
        let (env, wanted) = (Arc::clone(&self.env), folder.clone());
        let deadline = began + if folder.of_windows { READ_WINDOWS_WITHIN } else { READ_WITHIN };
        let read = move || Scan::read(&env, &wanted, rule, deadline.into_std());
        let late = deadline + HAND_OVER_WITHIN;
        self.env.patience.run(&folder.path, late, read).await.unwrap_or_else(|| Scan::hung(folder))
    }

    /// One probe per host and port, many at once, so that ten dead locks cost no more than one. A place without an
    /// outcome by the deadline counts as silent.
    async fn probe(&self, entries: &mut [Entry], network: &Network, deadline: Instant) {
        let places: Vec<_> =
            entries.iter().map(|entry| entry.places_to_probe(&self.env, network, self.options.all)).collect();
        let distinct: HashSet<_> = places.iter().flatten().cloned().collect();
        let addresses = self.resolve(distinct.iter().map(|(host, _)| host.clone()).collect(), deadline).await;
        let probes = distinct.into_iter().map(|place| {
            let addresses = &addresses[&place.0];
            async move { (probe(addresses, place.1).await, place) }
        });
        let mut probes = stream::iter(probes).buffer_unordered(PROBES_AT_ONCE);
        let mut outcomes = HashMap::new();
        while let Ok(Some((outcome, place))) = timeout_at(deadline, probes.next()).await {
            outcomes.insert(place, outcome);
        }
        for (entry, places) in entries.iter_mut().zip(places) {
            let outcome = |place: &Place| outcomes.get(place).copied().unwrap_or(Probe::Timeout);
            entry.probes =
                places.into_iter().map(|place| HostProbe { outcome: outcome(&place), host: place.0 }).collect();
        }
    }

    /// Addresses of each host. Each is looked up once, since resolving a name may hang; without an answer there are
    /// none.
    async fn resolve(&self, hosts: HashSet<String>, deadline: Instant) -> HashMap<String, Vec<IpAddr>> {
        let lookups = hosts.into_iter().map(|host| async move {
            let name = host.clone();
            let looked_up = self.env.patience.run(&name, deadline, move || addresses(&host)).await;
            (name, looked_up.and_then(Result::ok).unwrap_or_default())
        });
        join_all(lookups).await.into_iter().collect()
    }

    /// How the folders of the listed editors relate to pi's, where their spelling does not tell; nothing of an editor
    /// whose drive hangs.
    async fn relations(&self, cwd: &str, judged: &[(Verdict, Entry)], deadline: Instant) -> Relations {
        let kept = judged.iter().filter(|(verdict, _)| *verdict == Verdict::Keep);
        let looks = kept.filter_map(|(_, entry)| {
            let folders = localised(&self.env, &entry.lock()?.workspace_folders);
            // Each editor for itself: what hangs for one must not hide another.
            let place = folders.first().filter(|_| !spelt(&self.env, cwd, &folders).direct)?.clone();
            let (env, cwd) = (Arc::clone(&self.env), cwd.to_owned());
            let look = move || Relations::of(&env, &cwd, folders);
            Some(async move { self.env.patience.run(place, deadline, look).await.unwrap_or_default() })
        });
        join_all(looks).await.into_iter().collect()
    }
}

/// Reads the lock file of a candidate again, for its token. `id` is [`Candidate::id`].
///
/// Fails where the file is gone, cannot be trusted, or is no lock any more. Blocks.
pub fn read_lock(env: &Env, id: &str) -> Result<LockFile, LockGone> {
    let path = Path::new(id);
    let (folder, name) =
        path.parent().zip(path.file_name().and_then(|name| name.to_str())).ok_or(LockGone::NotALock)?;
    let text = TrustedDir::open_dir(folder, modes_of(env, folder))?.read(name, lock_file::MAX_BYTES)?;
    match lock_file::parse(&text.text) {
        Parsed::Valid(lock) => Ok(lock),
        _ => Err(LockGone::NotALock),
    }
}

/// How this process sees Windows now. Blocks on small files, under WSL also on Windows drives.
pub fn network(env: &Env) -> Network {
    Surroundings::read(env, None).network
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

#[cfg(test)]
#[cfg(unix)]
mod tests;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod wsl_tests;
