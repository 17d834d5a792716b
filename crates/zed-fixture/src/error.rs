use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::Generation;

/// Why a fixture could not be built or driven.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FixtureError {
    /// A file or folder of the fixture could not be written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// SQLite refused a statement.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// `expected.json` could not be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The root is not UTF-8; Zed's text columns and `expected.json` cannot hold it exactly.
    #[error("not a UTF-8 path: {}", .0.display())]
    NotUtf8(PathBuf),
    /// A scenario selects a text that its buffer does not have: a mistake in this crate.
    #[error("no occurrence {nth} of {needle:?} in the text")]
    NoSuchText {
        /// The text looked for.
        needle: String,
        /// Which occurrence, from 0.
        nth: usize,
    },
    /// No generation has this name.
    #[error("unknown generation {0:?}")]
    UnknownGeneration(String),
    /// No scenario has this name.
    #[error("unknown scenario {0:?}")]
    UnknownScenario(String),
    /// [`live`](crate::live()) needs `editor_selections`, which came with 2025a.
    #[error("generation {0} has no editor_selections to write live")]
    NoSelections(Generation),
    /// The active workspace has no editor that [`live`](crate::live()) could move a cursor in.
    #[error("no editor to write live in workspace {0}")]
    NoEditors(i64),
    /// More cursors than one INSERT takes.
    #[error("{0} cursors are more than one statement takes")]
    TooManyCursors(usize),
}

/// Names the path in an I/O error.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> FixtureError + '_ {
    move |source| FixtureError::Io { path: path.to_owned(), source }
}
