//! One editor that may be connected to, or the reason why not.

use std::path::Path;

use super::checks::{Checks, HostProbe, ParsedAs, PidCheck};
use super::matching::{Relations, localised};
use super::rank::{self, Ranked};
use super::scan::{Content, Entry, Refusal};
use crate::env::{Env, millis};
use crate::host::{Network, Probe, authority};
use crate::paths::Match;
use crate::protocol::lock_file::parse_name;

/// One editor, with how well it fits pi's folder and whether it can be used. Carries no token.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// How it is reached.
    pub transport: Transport,
    /// Path of the lock file, or of the database.
    pub id: String,
    /// Kind of editor.
    pub ide: String,
    /// Name for people.
    pub name: String,
    /// Process that owns the socket.
    pub pid: Option<u64>,
    /// Host as the editor sees itself, and port.
    pub address: Option<(String, u16)>,
    /// The folder that fits best, else the first one; in this host's form.
    pub workspace_folder: Option<String>,
    /// All open folders in this host's form.
    pub workspace_folders: Vec<String>,
    /// See [`crate::paths::Match::length`].
    pub match_length: u32,
    /// Whether a folder contains pi's folder.
    pub direct: bool,
    /// Whether it may connect by itself: a direct match, of Zed only in a terminal of Zed.
    pub by_itself: bool,
    /// Last focus in milliseconds since the epoch, where the editor tells.
    pub focused_at: Option<f64>,
    /// Last change of the lock file in milliseconds since the epoch.
    pub modified_at: u64,
    /// Whether it can be used.
    pub standing: Standing,
    /// Why it stands so, as a sentence about "it" without a full stop.
    pub reason: String,
    /// What was looked at.
    pub checks: Checks,
}

/// How an editor is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A WebSocket that a lock file tells of.
    Ws,
    /// A database of Zed.
    Zed,
}

/// Whether a candidate can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may be connected to.
    Usable,
    /// It names a host that is neither this machine nor one that the user meant.
    HostRefused,
    /// Nothing answers at its port, although its process seems to live.
    NotAnswering,
    /// Of another machine that shares the home folder.
    ForeignHost,
    /// A lock of another protocol version.
    Unsupported,
    /// No valid lock, left alone.
    Malformed,
    /// A file or folder that may not be trusted, or cannot be read.
    Untrusted,
    /// Its editor seems gone; the file is left alone.
    Stale,
    /// Its editor was proven gone and the file was removed.
    Removed,
}

impl Candidate {
    /// Last focus, else last change of the lock file, in milliseconds since the epoch.
    pub fn last_activity(&self) -> f64 {
        self.focused_at.unwrap_or(self.modified_at as f64)
    }

    fn ranked(self) -> Ranked<Self> {
        Ranked {
            path: self.id.clone(),
            match_length: self.match_length,
            direct: self.by_itself,
            focused_at: self.focused_at,
            mtime: self.modified_at as f64,
            connectable: self.standing == Standing::Usable,
            id: self,
        }
    }
}

impl Candidate {
    /// A lock that is listed.
    pub(super) fn kept(env: &Env, network: &Network, cwd: &str, entry: &Entry, relations: &Relations) -> Self {
        let mut candidate = Self::described(entry);
        let Some(lock) = entry.lock() else {
            candidate.standing = Standing::Unsupported;
            candidate.reason = "is of a protocol version that this pi-x-ide does not speak".into();
            return candidate;
        };
        candidate.workspace_folders = localised(env, &lock.workspace_folders);
        let found = relations.best(env, cwd, &candidate.workspace_folders);
        let are_absent = relations.are_absent(&candidate.workspace_folders);
        candidate.reason = relation(cwd, &candidate.workspace_folders, &found, are_absent);
        candidate.workspace_folder = found.folder.or_else(|| candidate.workspace_folders.first().cloned());
        (candidate.match_length, candidate.direct) = (found.length, found.direct);
        candidate.by_itself = found.direct;
        if entry.is_foreign {
            candidate.standing = Standing::ForeignHost;
            candidate.reason = "runs on another machine that shares this home folder".into();
        } else if entry.names_a_stranger(env, network) {
            candidate.standing = Standing::HostRefused;
            candidate.reason = format!("names the host {}, which is not this machine and is not dialled", lock.host);
        } else if entry.answer().is_some_and(|outcome| outcome != Probe::Reachable) {
            candidate.standing = Standing::NotAnswering;
            let process = if candidate.checks.pid == PidCheck::Alive { "its process lives, but " } else { "" };
            candidate.reason = format!("{process}nothing answers: {}", outcomes(&candidate));
        }
        candidate
    }

    /// A lock that is not listed, and why.
    pub(super) fn hidden(entry: &Entry) -> Self {
        let mut candidate = Self::described(entry);
        (candidate.standing, candidate.reason) = match &entry.content {
            Content::Malformed(reason) => (Standing::Malformed, format!("is no valid lock file: {reason}")),
            Content::Unreadable(error) => (Standing::Untrusted, format!("the lock file {error}")),
            _ => (Standing::Stale, gone(&candidate)),
        };
        candidate
    }

    /// A lock whose file was removed.
    pub(super) fn removed(entry: &Entry) -> Self {
        let mut candidate = Self::hidden(entry);
        candidate.standing = Standing::Removed;
        candidate.reason.push_str("; the file was removed");
        candidate
    }

    /// A folder of which nothing, or not all, was read.
    pub(super) fn of_folder(folder: &Path, refusal: &Refusal) -> Self {
        let id = folder.to_string_lossy().into_owned();
        Self { id, standing: Standing::Untrusted, reason: refusal.to_string(), ..blank() }
    }

    fn described(entry: &Entry) -> Self {
        let parsed = match &entry.content {
            Content::Valid(_) => ParsedAs::Valid,
            Content::Unsupported => ParsedAs::Unsupported,
            Content::Malformed(_) => ParsedAs::Malformed,
            Content::Unreadable(_) => ParsedAs::Unreadable,
        };
        let checks = Checks { parsed, pid: entry.pid_check(), probes: entry.probes.clone() };
        let blank = Candidate { id: entry.path.clone(), modified_at: millis(entry.modified()), checks, ..blank() };
        if let Content::Valid(lock) = &entry.content {
            return Candidate {
                ide: lock.ide.clone(),
                name: lock.name.clone(),
                pid: lock.pid,
                address: Some((lock.host.clone(), lock.port)),
                focused_at: lock.focused_at,
                ..blank
            };
        }
        let (ide, pid) = parse_name(&entry.name).map_or(("unknown", None), |(ide, pid, _)| (ide, Some(pid)));
        Candidate { ide: ide.to_owned(), name: ide.to_owned(), pid, ..blank }
    }
}

impl Candidate {
    /// A database of Zed, of which nothing else is known yet.
    pub fn of_zed(id: String, name: String, modified_at: u64) -> Self {
        Self { transport: Transport::Zed, id, ide: "zed".into(), name, modified_at, ..blank() }
    }

    /// The same with the workspace that is meant.
    pub fn open_for(self, cwd: &str, folders: Vec<String>, found: Match, may_connect: bool) -> Self {
        let reason = relation(cwd, &folders, &found, false);
        Self {
            reason,
            checks: Checks { parsed: ParsedAs::Valid, ..self.checks },
            workspace_folder: found.folder.or_else(|| folders.first().cloned()),
            workspace_folders: folders,
            match_length: found.length,
            direct: found.direct,
            by_itself: found.direct && may_connect,
            ..self
        }
    }
}

/// Best first: what connects by itself in a terminal of its own, then usable ones, then those that may be tried by hand, then all others.
pub(crate) fn rank(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut ranked: Vec<_> = candidates.into_iter().map(Candidate::ranked).collect();
    rank::sort(&mut ranked);
    ranked.sort_by_key(|ranked| match ranked.id.standing {
        Standing::Usable => 0,
        Standing::NotAnswering => 1,
        _ => 2,
    });
    ranked.into_iter().map(|ranked| ranked.id).collect()
}

/// The candidate that connects by itself, `failed` ones last. Expects ranked candidates.
pub fn auto_connect(candidates: &[Candidate], failed: &[String]) -> Option<Candidate> {
    let ranked: Vec<_> = candidates.iter().cloned().map(Candidate::ranked).collect();
    let failed: Vec<_> = candidates.iter().filter(|candidate| failed.contains(&candidate.id)).cloned().collect();
    rank::auto_connect(&ranked, &failed).map(|ranked| ranked.id.clone())
}

/// How its folders relate to pi's.
fn relation(cwd: &str, folders: &[String], found: &Match, are_absent: bool) -> String {
    match (&found.folder, found.direct, folders) {
        (Some(folder), true, _) => format!("{folder} contains this folder"),
        (Some(folder), false, _) => format!("{folder} lies inside {cwd}; pick it by hand"),
        (None, _, []) => "has no folder open; pick it by hand".into(),
        (None, _, folders) if are_absent => format!(
            "is open for {}, which does not exist here: paths will differ unless pathMap in the configuration maps it",
            folders.join(", ")
        ),
        (None, _, folders) => format!("is open for {}, not for {cwd}; pick it by hand", folders.join(", ")),
    }
}

fn gone(candidate: &Candidate) -> String {
    let probed = !candidate.checks.probes.is_empty();
    let answers = candidate.checks.probes.iter().any(|probe| probe.outcome == Probe::Reachable);
    match candidate.checks.pid {
        PidCheck::Dead if probed => format!("its process is gone and {}", outcomes(candidate)),
        PidCheck::Dead => "its process is gone and nobody could be asked at its port".into(),
        _ if probed && !answers => format!("its editor does not answer: {}", outcomes(candidate)),
        _ => "names no process that could be checked and is older than a day".into(),
    }
}

/// `127.0.0.1:48123 refuses, [::1]:48123 is silent`
fn outcomes(candidate: &Candidate) -> String {
    let port = candidate.address.as_ref().map_or(0, |(_, port)| *port);
    let said = candidate.checks.probes.iter().map(|HostProbe { host, outcome }| {
        let says = match outcome {
            Probe::Reachable => "answers",
            Probe::Refused => "refuses",
            Probe::Timeout => "is silent",
        };
        format!("{} {says}", authority(host, port))
    });
    said.collect::<Vec<_>>().join(", ")
}

fn blank() -> Candidate {
    Candidate {
        transport: Transport::Ws,
        id: String::new(),
        ide: "unknown".into(),
        name: "unknown".into(),
        pid: None,
        address: None,
        workspace_folder: None,
        workspace_folders: Vec::new(),
        match_length: 0,
        direct: false,
        by_itself: false,
        focused_at: None,
        modified_at: 0,
        standing: Standing::Usable,
        reason: String::new(),
        checks: Checks::default(),
    }
}
