//! The connected clients, and which of them a message is for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::mailbox::{Mailbox, Supersede};
use crate::paths::{Host, best_match, contains};
use crate::protocol::json_rpc::{InitializeParams, ServerInfo, notification_message};
use crate::protocol::snapshot::Snapshot;

/// A client that has completed the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientInfo {
    /// Number of the link, never used twice in one server.
    pub id: u64,
    /// Its name, `pi-x-ide` for this product.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its working folder, where it told one.
    pub cwd: Option<String>,
}

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
#[derive(Default)]
pub(super) struct Roster {
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    clients: Vec<Client>,
    state: Option<Outgoing>,
    next_id: u64,
    /// Counts up with each use, so that the client used last can be told.
    uses: u64,
}

struct Client {
    info: ClientInfo,
    outbox: Arc<Mailbox<Outgoing>>,
    last_use: u64,
}

impl Roster {
    /// Adds a client that has sent `initialize`; its outbox holds the present state of the editor.
    pub(super) fn join(&self, params: InitializeParams, server: &ServerInfo) -> (u64, Arc<Mailbox<Outgoing>>) {
        let mut members = self.lock();
        members.next_id += 1;
        members.uses += 1;
        let InitializeParams { client, cwd, .. } = params;
        let info = ClientInfo { id: members.next_id, name: client.name, version: client.version, cwd };
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

    /// The client that a message about `file` is for: of those whose folder contains it the nearest, else the one
    /// used last.
    pub(super) fn route(&self, host: &Host, file: &str) -> Option<ClientInfo> {
        let mut members = self.lock();
        members.uses += 1;
        let now = members.uses;
        let nearness = |client: &Client| {
            let cwd = client.info.cwd.as_deref()?;
            let inside = contains(host, cwd, file, host.ignores_case());
            inside.then(|| best_match(host, &[cwd], cwd, host.ignores_case()).length)
        };
        let chosen = members.clients.iter_mut().max_by_key(|client| (nearness(client), client.last_use))?;
        chosen.last_use = now;
        Some(chosen.info.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Os;
    use crate::protocol::json_rpc::ClientName;

    fn join(roster: &Roster, cwd: &str) -> u64 {
        let server = ServerInfo { name: "x".into(), version: None, ide: None };
        let params =
            InitializeParams { protocol_version: 1.0, client: ClientName::default(), cwd: Some(cwd.to_owned()) };
        roster.join(params, &server).0
    }

    #[test]
    fn a_message_goes_to_the_nearest_client_else_to_the_last_one_used() {
        let host = Host { os: Os::Linux, wsl: None };
        let roster = Roster::default();
        assert_eq!(roster.route(&host, "/w/a/x.ts"), None);
        let (repo, package, other) = (join(&roster, "/w"), join(&roster, "/w/a"), join(&roster, "/elsewhere"));
        let route = |file| roster.route(&host, file).map(|client| client.id);
        assert_eq!(route("/w/a/x.ts"), Some(package));
        assert_eq!(route("/w/b/x.ts"), Some(repo));
        assert_eq!(route("/tmp/x.ts"), Some(repo), "used last");
        assert_eq!(route("/elsewhere/x.ts"), Some(other));
        assert_eq!(route("/tmp/x.ts"), Some(other));
        roster.leave(other);
        assert_eq!(route("/elsewhere/x.ts"), Some(repo));
    }
}
