//! Why a server could not start, or its lock file not be written.

use std::io;
use std::path::PathBuf;

use crate::trusted::Distrust;

/// Failure of an editor's server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// There is no home folder and no lock folder was given.
    #[error("there is no home folder to put the lock file in")]
    NoHome,
    /// No port could be had.
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(#[source] io::Error),
    /// The system gave no random numbers.
    #[error("no random numbers for the token: {0}")]
    Random(String),
    /// The lock folder may not be trusted.
    #[error("the lock folder {} {source}", folder.display())]
    Folder {
        /// Which one.
        folder: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Distrust,
    },
    /// The lock file could not be written.
    #[error("cannot write the lock file {}: {source}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// A lock file of this size is read by nobody.
    #[error("the lock file would have {bytes} bytes, more than {limit}: name fewer workspace folders")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// What readers take.
        limit: u64,
    },
    /// The server is closed.
    #[error("the server is closed")]
    Closed,
}

impl ServerError {
    /// Stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoHome => "PIX_NO_HOME",
            Self::Listen(_) => "PIX_LISTEN",
            Self::TooLarge { .. } => "PIX_TOO_LARGE",
            Self::Random(_) => "PIX_RANDOM",
            Self::Folder { .. } => "PIX_LOCK_FOLDER",
            Self::Write { .. } => "PIX_LOCK_WRITE",
            Self::Closed => "PIX_CLOSED",
        }
    }
}
