//! What a listener of one editor is told.

use std::sync::Arc;

use crate::context::AttachState;
use crate::discovery::Candidate;
use crate::mailbox::Supersede;
use crate::protocol::diagnostics::DiagnosticFix;
use crate::protocol::json_rpc::ServerInfo;
use crate::protocol::snapshot::HashedSnapshot;

/// What a listener of one editor is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The selection or the open file changed.
    Selection {
        /// State of the editor.
        snapshot: Arc<HashedSnapshot>,
        /// Where it stands with the next prompt.
        attach: AttachState,
    },
    /// There is no active editor any more.
    Cleared,
    /// The user attached a selection in the editor.
    Mention {
        /// State of the editor, without text: many mentions may wait for a busy listener.
        snapshot: Arc<HashedSnapshot>,
        /// One mention per range, to be put in the input box.
        mentions: Vec<String>,
    },
    /// The user asked for a fix in the editor.
    DiagnosticFix(Arc<DiagnosticFix>),
    /// The link changed its state.
    Status(Arc<Status>),
    /// Something in the background that the user should know, once per cause.
    Error {
        /// Stable code for programs.
        code: &'static str,
        /// What is wrong and what to do, as sentences.
        message: String,
    },
    /// The connection is closed for good; nothing follows.
    Closed {
        /// Why, as a sentence.
        reason: String,
    },
}

impl Event {
    /// Whether nothing else tells of it later, as the latest snapshot and the status tell of the others.
    pub fn is_told_once(&self) -> bool {
        match self {
            Self::Selection { .. } | Self::Cleared | Self::Closed { .. } => false,
            Self::Status(status) => status.message.is_some(),
            Self::Mention { .. } | Self::DiagnosticFix(_) | Self::Error { .. } => true,
        }
    }
}

impl Supersede for Event {
    fn is_superseded_by_newer(&self) -> bool {
        matches!(self, Self::Selection { .. } | Self::Cleared)
    }
}

/// State of the link, and with whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// What the link does now.
    pub state: LinkState,
    /// The editor that it is about.
    pub candidate: Option<Candidate>,
    /// Who answered; present while connected.
    pub server: Option<ServerInfo>,
    /// Something that the user should know, once per cause.
    pub message: Option<String>,
}

/// What a link does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// No editor of this folder runs; lock folders are watched.
    Searching,
    /// A scan or a handshake is under way.
    Connecting,
    /// `initialize` was answered.
    Connected,
    /// The editor could not be reached; another try follows.
    Waiting,
    /// Closed for good.
    Closed,
}
