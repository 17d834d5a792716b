//! One editor that may be connected to, or the reason why not.

use std::path::Path;

use super::matching::Matcher;
use super::rank::{self, Ranked};
use super::scan::{Content, Entry, is_foreign};
use crate::env::{Env, millis};
use crate::protocol::lock_file::parse_name;
use crate::trusted::Distrust;

/// One editor, with how well it fits pi's folder and whether it can be used. Carries no token.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Path of the lock file.
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
    /// Whether a folder contains pi's folder, so that it may connect by itself.
    pub direct: bool,
    /// Last focus in milliseconds since the epoch, where the editor tells.
    pub focused_at: Option<f64>,
    /// Last change of the lock file in milliseconds since the epoch.
    pub modified_at: u64,
    /// Whether it can be used.
    pub standing: Standing,
    /// Why it stands so, as a sentence without a full stop.
    pub reason: String,
}

/// Whether a candidate can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may be connected to.
    Usable,
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
            direct: self.direct,
            focused_at: self.focused_at,
            mtime: self.modified_at as f64,
            connectable: self.standing == Standing::Usable,
            id: self,
        }
    }
}

/// Best first.
pub(super) fn rank(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut ranked: Vec<_> = candidates.into_iter().map(Candidate::ranked).collect();
    rank::sort(&mut ranked);
    ranked.into_iter().map(|ranked| ranked.id).collect()
}

/// The candidate that connects by itself, `failed` ones last. Expects ranked candidates.
pub fn auto_connect(candidates: &[Candidate], failed: &[String]) -> Option<Candidate> {
    let ranked: Vec<_> = candidates.iter().cloned().map(Candidate::ranked).collect();
    let failed: Vec<_> = candidates.iter().filter(|candidate| failed.contains(&candidate.id)).cloned().collect();
    rank::auto_connect(&ranked, &failed).map(|ranked| ranked.id.clone())
}

pub(super) fn kept(env: &Env, entry: Entry, matcher: &mut Matcher<'_>) -> Candidate {
    let mut candidate = described(&entry);
    let Content::Valid(lock) = entry.content else {
        candidate.standing = Standing::Unsupported;
        candidate.reason = "is of a protocol version that this pi-x-ide does not speak".into();
        return candidate;
    };
    let found = matcher.best(&lock.workspace_folders);
    candidate.workspace_folders = matcher.normalised(&lock.workspace_folders);
    candidate.reason = match (&found.folder, found.direct) {
        (Some(folder), true) => format!("{folder} contains this folder"),
        (Some(folder), false) => format!("{folder} lies inside this folder; pick it by hand"),
        (None, _) => "is open for another folder; pick it by hand".into(),
    };
    candidate.workspace_folder = found.folder.or_else(|| candidate.workspace_folders.first().cloned());
    (candidate.match_length, candidate.direct) = (found.length, found.direct);
    if is_foreign(env, &lock) {
        candidate.standing = Standing::ForeignHost;
        candidate.reason = "runs on another machine that shares this home folder".into();
    }
    candidate
}

pub(super) fn hidden(entry: Entry) -> Candidate {
    let mut candidate = described(&entry);
    (candidate.standing, candidate.reason) = match entry.content {
        Content::Malformed(reason) => (Standing::Malformed, format!("is no valid lock file: {reason}")),
        Content::Unreadable(error) => (Standing::Untrusted, format!("the lock file {error}")),
        _ => (Standing::Stale, "its process is gone and its port does not answer".into()),
    };
    candidate
}

pub(super) fn removed(entry: Entry, removed: bool) -> Candidate {
    let mut candidate = hidden(entry);
    if removed {
        candidate.standing = Standing::Removed;
        candidate.reason.push_str("; the file was removed");
    }
    candidate
}

pub(super) fn untrusted_folder(folder: &Path, error: &Distrust) -> Candidate {
    Candidate {
        id: folder.to_string_lossy().into_owned(),
        standing: Standing::Untrusted,
        reason: format!("the lock folder {error}"),
        ..blank()
    }
}

fn described(entry: &Entry) -> Candidate {
    let blank = Candidate { id: entry.path.clone(), modified_at: millis(entry.modified()), ..blank() };
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

fn blank() -> Candidate {
    Candidate {
        id: String::new(),
        ide: "unknown".into(),
        name: "unknown".into(),
        pid: None,
        address: None,
        workspace_folder: None,
        workspace_folders: Vec::new(),
        match_length: 0,
        direct: false,
        focused_at: None,
        modified_at: 0,
        standing: Standing::Usable,
        reason: String::new(),
    }
}
