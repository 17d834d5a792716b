//! The connected clients and what each of them still has to be told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::routing::{ClientInfo, RoutedClient, Subject, choose};
use crate::mailbox::{Mailbox, Supersede};
use crate::paths::{Host, normalise};
use crate::protocol::json_rpc::{InitializeParams, ServerInfo, notification_message};
use crate::protocol::snapshot::Snapshot;

/// A serialised message, shared by all clients that get it.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) text: Utf8Bytes,
    is_state: bool,
}

impl Supersede for Outgoing {
    fn is_superseded_by_newer(&self) -> bool {
        self.is_state
    }
}

impl Outgoing {
    /// State of the editor; `None` when there is no active one.
    pub(super) fn selection(snapshot: Option<Snapshot>, server: &ServerInfo) -> Self {
        let text = match snapshot {
            Some(snapshot) => notification_message("selection_changed", &snapshot),
            None => {
                let source = server.ide.as_deref().unwrap_or("unknown");
                notification_message("selection_cleared", &Cleared { source, reason: "no-active-editor" })
            }
        };
        Self { text: text.into(), is_state: true }
    }

    pub(super) fn mention(snapshot: &Snapshot) -> Self {
        // Readers compute mentions themselves, but the member is required.
        Self::word(notification_message("at_mentioned", &Mention { snapshot, range_text: "" }))
    }

    pub(super) fn word(text: String) -> Self {
        Self { text: text.into(), is_state: false }
    }
}

#[derive(Serialize)]
struct Cleared<'a> {
    source: &'a str,
    reason: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Mention<'a> {
    #[serde(flatten)]
    snapshot: &'a Snapshot,
    range_text: &'static str,
}

/// All clients and the present state of the editor.
pub(super) struct Roster {
    host: Host,
    members: Mutex<Members>,
}

struct Members {
    clients: Vec<Client>,
    state: Option<Outgoing>,
    workspace_folders: Vec<String>,
    next_id: u64,
    /// Counts up with each use, so that the client used last can be told.
    uses: u64,
}

/// One client.
struct Client {
    info: ClientInfo,
    outbox: Arc<Mailbox<Outgoing>>,
    /// When it was chosen, joined or prompted last, in uses.
    last_use: u64,
}

impl Roster {
    /// Nobody yet, of an editor with these open folders.
    pub(super) fn new(host: Host, workspace_folders: Vec<String>) -> Self {
        let members = Members { clients: Vec::new(), state: None, workspace_folders, next_id: 0, uses: 0 };
        Self { host, members: Mutex::new(members) }
    }

    /// Notes that other folders are open now.
    pub(super) fn set_workspace_folders(&self, folders: Vec<String>) {
        self.lock().workspace_folders = folders;
    }

    /// Adds a client that has sent `initialize`; its outbox holds the present state of the editor.
    pub(super) fn join(&self, params: InitializeParams, server: &ServerInfo) -> (u64, Arc<Mailbox<Outgoing>>) {
        let mut members = self.lock();
        members.next_id += 1;
        members.uses += 1;
        let InitializeParams { client, cwd, terminal_session_id, .. } = params;
        let info = ClientInfo {
            id: members.next_id,
            name: client.name,
            version: client.version,
            cwd: cwd.map(|cwd| normalise(&self.host, &cwd).into_owned()),
            terminal_session_id: terminal_session_id.filter(|id| !id.is_empty()),
        };
        let outbox = Arc::new(Mailbox::default());
        outbox.push(members.state.clone().unwrap_or_else(|| Outgoing::selection(None, server)));
        let (id, last_use) = (info.id, members.uses);
        members.clients.push(Client { info, outbox: Arc::clone(&outbox), last_use });
        (id, outbox)
    }

    pub(super) fn leave(&self, id: u64) {
        self.lock().clients.retain(|client| client.info.id != id);
    }

    /// The present state again, as after a repeated `initialize`.
    pub(super) fn repeat_state(&self, id: u64, server: &ServerInfo) {
        let state = self.lock().state.clone().unwrap_or_else(|| Outgoing::selection(None, server));
        self.send(id, state);
    }

    pub(super) fn clients(&self) -> Vec<ClientInfo> {
        self.lock().clients.iter().map(|client| client.info.clone()).collect()
    }

    /// Keeps a state of the editor and gives it to every client.
    pub(super) fn broadcast(&self, state: Outgoing) {
        let mut members = self.lock();
        for client in &members.clients {
            client.outbox.push(state.clone());
        }
        members.state = Some(state);
    }

    /// Gives a message to one client. One that takes nothing any more loses its place, see `client::serve`.
    pub(super) fn send(&self, id: u64, message: Outgoing) {
        if let Some(client) = self.lock().clients.iter().find(|client| client.info.id == id) {
            client.outbox.push(message);
        }
    }

    /// The client that a message is for, which counts as a use of it; `None` when there is no client.
    pub(super) fn route(&self, about: &Subject<'_>) -> Option<RoutedClient> {
        let mut members = self.lock();
        let clients = members.clients.iter().map(|client| (&client.info, client.last_use));
        let (at, chosen_by) = choose(&self.host, &members.workspace_folders, clients, about)?;
        Some(RoutedClient { client: members.use_at(at).clone(), chosen_by })
    }

    /// Notes that the user has turned to a client.
    pub(super) fn note_use(&self, id: u64) {
        let mut members = self.lock();
        if let Some(at) = members.clients.iter().position(|client| client.info.id == id) {
            members.use_at(at);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Members {
    /// Makes a client the one used last.
    fn use_at(&mut self, at: usize) -> &ClientInfo {
        self.uses += 1;
        let client = &mut self.clients[at];
        client.last_use = self.uses;
        &client.info
    }
}
