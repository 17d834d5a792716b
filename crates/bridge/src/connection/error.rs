//! Why a link could not be made, or ended.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio_tungstenite::tungstenite;

use crate::discovery::LockGone;

/// Why a link could not be made. No message holds the token.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The lock file cannot be read any more.
    #[error(transparent)]
    Lock(#[from] LockGone),
    /// The candidate cannot be dialled, see its reason.
    #[error("the editor {0}")]
    NotUsable(String),
    /// Another command came first, or the connection was closed.
    #[error("another choice or the end of the connection came first")]
    Superseded,
    /// The lock names a host that is neither loopback nor meant by the user; the token stays here.
    #[error("the lock file names the host {0}, which is not this machine; set PI_X_IDE_HOST_OVERRIDE to allow one")]
    HostRefused(String),
    /// Nobody listens, or the network says no.
    #[error("nothing answers at {authority}")]
    Unreachable {
        /// `host:port`.
        authority: String,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// No full handshake in time.
    #[error("{authority} did not complete the handshake within {} ms", within.as_millis())]
    Timeout {
        /// `host:port`.
        authority: String,
        /// The limit.
        within: Duration,
    },
    /// The server refused the upgrade.
    #[error("the editor refused the connection with HTTP {status}{}", hint(*status))]
    Refused {
        /// HTTP status.
        status: u16,
    },
    /// The server's answer was no WebSocket.
    #[error("what listens at {authority} is no editor server: {source}")]
    Handshake {
        /// `host:port`.
        authority: String,
        /// What was wrong.
        #[source]
        source: Box<tungstenite::Error>,
    },
    /// The link ended before `initialize` was answered.
    #[error("the editor closed the connection before the handshake was complete: {0}")]
    Closed(CloseReason),
    /// `initialize` was answered with an error.
    #[error("the editor refused the handshake: {0}")]
    InitializeRefused(String),
    /// The editor speaks another version.
    #[error("the editor speaks protocol version {0}, this pi-x-ide speaks version 1")]
    ProtocolVersion(String),
}

impl ConnectError {
    /// The same without the token, which an editor may have repeated.
    pub(super) fn without(self, token: &str) -> Self {
        match self {
            Self::Closed(reason) => Self::Closed(reason.without(token)),
            Self::InitializeRefused(reason) => Self::InitializeRefused(blank_out(&reason, token)),
            Self::ProtocolVersion(version) => Self::ProtocolVersion(blank_out(&version, token)),
            Self::Handshake { authority, source } if source.to_string().contains(token) => {
                let error = io::Error::other(blank_out(&source.to_string(), token));
                Self::Handshake { authority, source: Box::new(error.into()) }
            }
            other => other,
        }
    }
}

impl CloseReason {
    /// The same without the token, which an editor may have repeated.
    pub(super) fn without(self, token: &str) -> Self {
        match self {
            Self::Theirs(Some((code, text))) => Self::Theirs(Some((code, blank_out(&text, token)))),
            Self::Protocol(text) => Self::Protocol(blank_out(&text, token)),
            Self::Broken(text) => Self::Broken(blank_out(&text, token)),
            other => other,
        }
    }
}

/// An empty token is no secret, and is everywhere.
fn blank_out(text: &str, token: &str) -> String {
    if token.is_empty() { text.to_owned() } else { text.replace(token, "[token]") }
}

fn hint(status: u16) -> &'static str {
    match status {
        401 => " (it does not accept the token of its lock file; reload the editor window)",
        403 => " (it does not accept this host)",
        _ => "",
    }
}

impl ConnectError {
    /// Stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Lock(_) => "PIX_LOCK_GONE",
            Self::NotUsable(_) => "PIX_NOT_USABLE",
            Self::Superseded => "PIX_SUPERSEDED",
            Self::HostRefused(_) => "PIX_HOST_REFUSED",
            Self::Unreachable { .. } => "PIX_UNREACHABLE",
            Self::Timeout { .. } => "PIX_TIMEOUT",
            Self::Refused { .. } => "PIX_REFUSED",
            Self::Handshake { .. } => "PIX_HANDSHAKE",
            Self::Closed(_) => "PIX_CLOSED",
            Self::InitializeRefused(_) => "PIX_INITIALIZE_REFUSED",
            Self::ProtocolVersion(_) => "PIX_PROTOCOL_VERSION",
        }
    }
}

/// Why a link ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// We closed it.
    Ours,
    /// The editor closed it, with a WebSocket code and text where it gave them.
    Theirs(Option<(u16, String)>),
    /// The editor did not answer a ping.
    Silent,
    /// The editor broke the WebSocket protocol or sent too much.
    Protocol(String),
    /// The network broke it.
    Broken(String),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours => f.write_str("closed"),
            Self::Theirs(None) => f.write_str("closed by the editor"),
            Self::Theirs(Some((code, text))) if text.is_empty() => write!(f, "closed by the editor (code {code})"),
            Self::Theirs(Some((code, text))) => write!(f, "closed by the editor (code {code}: {text})"),
            Self::Silent => f.write_str("the editor does not answer any more"),
            Self::Protocol(what) => write!(f, "the editor sent what is no valid message: {what}"),
            Self::Broken(what) => write!(f, "the connection broke: {what}"),
        }
    }
}

impl From<tungstenite::Error> for CloseReason {
    fn from(error: tungstenite::Error) -> Self {
        use tungstenite::Error;
        use tungstenite::error::ProtocolError;
        match error {
            Error::ConnectionClosed | Error::AlreadyClosed => Self::Theirs(None),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Theirs(None),
            Error::Io(error) => Self::Broken(error.to_string()),
            error => Self::Protocol(error.to_string()),
        }
    }
}
