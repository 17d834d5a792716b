//! What went wrong in the background: a short memory that `/ide doctor` shows, and the file that `PI_X_IDE_LOG` names.
//! No entry ever holds a token.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::blocking::blocking;
use crate::env::{Clock, Env, millis};
use crate::escape::escape_controls;

/// Entries that are remembered.
const REMEMBERED: usize = 100;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When it happened last, in milliseconds since the epoch.
    pub time: u64,
    /// What happened, as a sentence; control characters are escaped.
    pub message: String,
}

/// The last things that happened, oldest first.
#[derive(Debug)]
pub(crate) struct Journal {
    clock: Clock,
    entries: Mutex<VecDeque<Entry>>,
    file: Option<mpsc::UnboundedSender<Entry>>,
}

impl Journal {
    /// A journal that also writes to the file of `PI_X_IDE_LOG`, if that is an absolute path. To be called on a
    /// runtime.
    pub(crate) fn new(env: &Env) -> Self {
        let file = env.var("PI_X_IDE_LOG").map(PathBuf::from).filter(|path| path.is_absolute());
        let file = file.map(|path| {
            let (sender, entries) = mpsc::unbounded_channel();
            tokio::spawn(write_all(path, entries));
            sender
        });
        Self { clock: env.clock, entries: Mutex::default(), file }
    }

    /// Notes what happened; the same again only renews the time.
    pub(crate) fn note(&self, message: impl Into<String>) {
        let entry = Entry { time: millis(self.clock.now()), message: escape_controls(&message.into()).into_owned() };
        let mut entries = self.lock();
        if let Some(last) = entries.back_mut().filter(|last| last.message == entry.message) {
            last.time = entry.time;
            return;
        }
        if entries.len() == REMEMBERED {
            entries.pop_front();
        }
        if let Some(file) = &self.file {
            // Fails when the file could not be written, which was noted nowhere: there is no other place to say so.
            let _ = file.send(entry.clone());
        }
        entries.push_back(entry);
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write_all(path: PathBuf, mut entries: mpsc::UnboundedReceiver<Entry>) {
    while let Some(entry) = entries.recv().await {
        let path = path.clone();
        if !matches!(blocking(move || append(&path, &entry)).await, Some(Ok(()))) {
            return;
        }
    }
}

fn append(path: &Path, entry: &Entry) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe without a reader must not hang us.
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(entry.time);
    let line = format!("{} {}\n", humantime::format_rfc3339_millis(time), entry.message);
    options.open(path)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{env_with_home, until};

    #[tokio::test]
    async fn the_last_entries_are_remembered_and_written_to_the_file() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("log");
        let mut env = (*env_with_home(home.path())).clone();
        env.vars.insert("PI_X_IDE_LOG".into(), file.to_str().unwrap().into());
        let journal = Journal::new(&env);
        for n in 0..=REMEMBERED {
            journal.note(format!("line {n}"));
            journal.note(format!("line {n}"));
        }
        let entries = journal.entries();
        assert_eq!((entries.len(), entries[0].message.as_str()), (REMEMBERED, "line 1"));
        let text = || std::fs::read_to_string(&file).unwrap_or_default();
        until("all written", || text().ends_with(&format!("line {REMEMBERED}\n"))).await;
        assert_eq!(text().lines().count(), REMEMBERED + 1);
    }

    #[tokio::test]
    async fn names_from_editors_move_no_cursor() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::new(&env_with_home(home.path()));
        journal.note("ev\u{1b}[31mil\r\nFAKE");
        assert_eq!(journal.entries()[0].message, r"ev\u{1b}[31mil\u{d}\u{a}FAKE");
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let mut env = (*env_with_home(home.path())).clone();
        for path in [home.path().to_str().unwrap(), "relative/log"] {
            env.vars.insert("PI_X_IDE_LOG".into(), path.into());
            let journal = Journal::new(&env);
            journal.note("one");
            journal.note("two");
            assert_eq!(journal.entries().len(), 2);
        }
    }
}
