//! Why an editor could not be connected to, whatever the transport.

use crate::connection;
use crate::zed::ZedError;

/// Why an editor could not be connected to. No message holds a token.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Over a WebSocket.
    #[error(transparent)]
    Link(#[from] connection::ConnectError),
    /// Of Zed's database.
    #[error(transparent)]
    Zed(#[from] ZedError),
}

impl ConnectError {
    /// Stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Link(error) => error.code(),
            Self::Zed(error) => error.code(),
        }
    }
}
