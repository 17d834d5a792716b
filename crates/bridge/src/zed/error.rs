//! Why nothing is read of Zed's database.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why nothing is read. Each one is a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZedError {
    /// There is no such file.
    #[error("there is no database {}", .0.display())]
    Missing(PathBuf),
    /// What the database tells is from a time when Zed ran.
    #[error("Zed does not run")]
    NotRunning,
    /// This user may not read the file or its folder.
    #[error("no permission to read {}", .0.display())]
    Denied(PathBuf),
    /// The file is no database, or a broken one.
    #[error("the database of Zed is damaged: {0}")]
    Damaged(String),
    /// A table or column that is needed is not there.
    #[error("the database of Zed has a form that this pi-x-ide does not know: {0}")]
    UnknownSchema(String),
    /// Zed is recovering or closing it just now.
    #[error("the database of Zed is busy")]
    Busy,
    /// It did not answer in time.
    #[error("the database of Zed does not answer in time")]
    Slow,
    /// Anything else.
    #[error("the database of Zed cannot be read: {0}")]
    Unreadable(String),
}

impl ZedError {
    /// Stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing(_) => "PIX_ZED_MISSING",
            Self::NotRunning => "PIX_ZED_NOT_RUNNING",
            Self::Denied(_) => "PIX_ZED_DENIED",
            Self::Damaged(_) => "PIX_ZED_DAMAGED",
            Self::UnknownSchema(_) => "PIX_ZED_SCHEMA",
            Self::Busy => "PIX_ZED_BUSY",
            Self::Slow => "PIX_ZED_SLOW",
            Self::Unreadable(_) => "PIX_ZED_UNREADABLE",
        }
    }

    /// Of the operating system, about a file.
    pub(super) fn of_io(path: &Path, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Self::Missing(path.to_owned()),
            std::io::ErrorKind::PermissionDenied => Self::Denied(path.to_owned()),
            _ => Self::Unreadable(error.to_string()),
        }
    }

    /// Of SQLite, about the database at `path`.
    pub(super) fn of_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(text),
            Some(ErrorCode::OperationInterrupted) => Self::Slow,
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                match std::fs::File::open(path) {
                    Err(error) => Self::of_io(path, &error),
                    Ok(_) => Self::Unreadable(text),
                }
            }
            // Of the statement itself: a table or column is missing.
            Some(ErrorCode::Unknown) => Self::UnknownSchema(text),
            _ => Self::Unreadable(text),
        }
    }
}
