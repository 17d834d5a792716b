//! The editor's side: a WebSocket server on this machine and the lock file that tells of it. Knows no editor.

mod client;
mod error;
mod gatekeeper;
mod listen;
mod lock_writer;
mod roster;
mod routing;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OnceCell, watch};

use crate::env::Env;
use crate::mailbox::{Mailbox, Supersede};
use crate::paths::Os;
use crate::protocol::MAX_MESSAGE_BYTES;
use crate::protocol::diagnostics::DiagnosticFix;
use crate::protocol::json_rpc::{ServerInfo, notification_message};
use crate::protocol::snapshot::{Snapshot, hex};
pub use error::ServerError;
use gatekeeper::Gatekeeper;
use listen::FurtherAddresses;
use lock_writer::{Change, LockWriter, NewLock};
use roster::{Outgoing, Roster};
use routing::Subject;
pub use routing::{ChosenBy, ClientInfo, RoutedClient};

/// How a server presents itself.
#[derive(Debug, Clone)]
pub struct Options {
    /// Kind of editor: `vscode`, `zed`, `nvim`, `jetbrains` or `unknown`.
    pub ide: String,
    /// Name for people.
    pub name: String,
    /// Version of the editor's plugin.
    pub version: Option<String>,
    /// Open folders.
    pub workspace_folders: Vec<String>,
    /// Where the lock file goes instead of the user's lock folder.
    pub lock_dir: Option<PathBuf>,
    /// Names, besides `localhost`, that a `Host` header may carry.
    pub allowed_hosts: Vec<String>,
    /// Between two refreshes of the lock file.
    pub heartbeat: Duration,
    /// Whether to listen on the adapter of WSL as well, so that a pi in a WSL behind NAT reaches an editor of native
    /// Windows. On other systems it does nothing. Protocol: "WSL2 discovery and host resolution".
    pub wsl_listener: bool,
}

impl Options {
    /// The writers' heartbeat. Protocol: "Lock files".
    pub const HEARTBEAT: Duration = Duration::from_secs(15 * 60);
}

/// A running server with its lock file. Dropping it ends both soon; [`Server::close`] tells when.
pub struct Server {
    port: u16,
    lock: LockWriter,
    inner: Arc<Inner>,
    closed: OnceCell<()>,
    closing: watch::Sender<bool>,
}

struct Inner {
    gatekeeper: Gatekeeper,
    info: ServerInfo,
    roster: Roster,
    /// What the editor has published and is not serialised yet.
    outbox: Mailbox<Publication>,
}

/// One thing to tell the clients.
enum Publication {
    Selection(Option<Snapshot>),
    Mention { client: u64, snapshot: Snapshot },
    DiagnosticFix { client: u64, request: DiagnosticFix },
}

impl Supersede for Publication {
    fn is_superseded_by_newer(&self) -> bool {
        matches!(self, Self::Selection(_))
    }
}

impl Server {
    /// Listens on a free port of 127.0.0.1 and writes the lock file.
    ///
    /// Fails when there is no lock folder to write to, it cannot be trusted, or no port can be had. An adapter of WSL
    /// that is not there or has the port taken is no failure: it is looked for until the server closes.
    pub async fn start(env: Arc<Env>, options: Options) -> Result<Self, ServerError> {
        let further = options.wsl_listener.then(FurtherAddresses::of_wsl).flatten();
        Self::start_on(env, options, further).await
    }

    async fn start_on(env: Arc<Env>, options: Options, further: Option<FurtherAddresses>) -> Result<Self, ServerError> {
        let is_own_folder = options.lock_dir.is_none();
        let folder = options.lock_dir.or_else(|| env.lock_dir()).ok_or(ServerError::NoHome)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ServerError::Listen)?;
        let port = listener.local_addr().map_err(ServerError::Listen)?.port();
        let token = new_token()?;
        let lock = LockWriter::start(NewLock {
            folder,
            is_own_folder,
            ide: options.ide.clone(),
            name: options.name.clone(),
            port,
            token: token.clone(),
            workspace_folders: options.workspace_folders.clone(),
            running_in_windows: env.host.os == Os::Windows,
            host_id: env.host_id.clone(),
            heartbeat: options.heartbeat,
            clock: env.clock,
            patience: env.patience.clone(),
        })
        .await?;
        let inner = Arc::new(Inner {
            gatekeeper: Gatekeeper::new(token, options.allowed_hosts),
            info: ServerInfo { name: options.name, version: options.version, ide: Some(options.ide) },
            roster: Roster::new(env.host.clone(), options.workspace_folders),
            outbox: Mailbox::default(),
        });
        let (closing, end) = watch::channel(false);
        tokio::spawn(listen::serve(Arc::clone(&inner), listener, port, further, end.clone()));
        tokio::spawn(Arc::clone(&inner).distribute(end));
        Ok(Self { port, lock, inner, closed: OnceCell::new(), closing })
    }

    /// Port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path of the lock file.
    pub fn lock_file(&self) -> &std::path::Path {
        self.lock.path()
    }

    /// Tells every client the state of the editor; a later state supersedes one that was not sent yet.
    pub fn publish(&self, snapshot: Snapshot) {
        self.inner.outbox.push(Publication::Selection(Some(snapshot)));
    }

    /// Tells every client that there is no active editor.
    pub fn clear(&self) {
        self.inner.outbox.push(Publication::Selection(None));
    }

    /// Puts a selection in the input box of exactly one client. Returns it; `None` when no client is connected.
    ///
    /// It is the client in the terminal of this id. Else one of the same workspace: of the clients whose folder
    /// contains the file the nearest; else of those whose folder lies in, or contains, the workspace folder of the file
    /// (the snapshot's, else the longest open one that contains the file) the one used last. Else the one used last of
    /// all. A client is used when it is chosen, joins, or tells of a prompt; among equals, the one used last counts.
    pub fn mention(&self, snapshot: Snapshot, terminal_session_id: Option<&str>) -> Option<RoutedClient> {
        let routed = self.inner.roster.route(&Subject {
            terminal_session_id,
            file: &snapshot.file_path.0,
            workspace_folder: snapshot.workspace_folder.as_ref().map(|folder| folder.0.as_str()),
        })?;
        self.inner.outbox.push(Publication::Mention { client: routed.client.id, snapshot });
        Some(routed)
    }

    /// Asks one client, chosen like for [`Server::mention`], to look at diagnostics.
    pub fn request_fix(&self, request: DiagnosticFix, terminal_session_id: Option<&str>) -> Option<RoutedClient> {
        let routed = self.inner.roster.route(&Subject {
            terminal_session_id,
            file: &request.file_path.0,
            workspace_folder: request.workspace_folder.as_ref().map(|folder| folder.0.as_str()),
        })?;
        self.inner.outbox.push(Publication::DiagnosticFix { client: routed.client.id, request });
        Some(routed)
    }

    /// Puts other workspace folders in the lock file, in the order of the calls; the future tells when it is written.
    /// Mentions are routed by them from now on.
    pub fn set_workspace_folders(&self, folders: Vec<String>) -> impl Future<Output = Result<(), ServerError>> + use<> {
        self.inner.roster.set_workspace_folders(folders.clone());
        self.lock.refresh(Change::WorkspaceFolders(folders))
    }

    /// Notes in the lock file that the editor's window has the focus now; the future tells when it is written.
    pub fn focus(&self) -> impl Future<Output = Result<(), ServerError>> + use<> {
        self.lock.refresh(Change::Focused)
    }

    /// Clients that have completed the handshake, longest connected first.
    pub fn clients(&self) -> Vec<ClientInfo> {
        self.inner.roster.clients()
    }

    /// Removes the lock file at once and for good, for the end of the process. Blocks on a write that is under way.
    pub fn remove_lock_file_now(&self) {
        self.lock.remove_now();
    }

    /// Removes the lock file after every accepted refresh is written, then ends all links. Closing twice is the same
    /// as once.
    pub async fn close(&self) {
        self.closed
            .get_or_init(|| async {
                self.lock.remove().await;
                self.closing.send_replace(true);
                self.closing.closed().await;
            })
            .await;
    }
}

impl Inner {
    async fn serve(&self, socket: TcpStream, mut end: watch::Receiver<bool>) {
        let admitted = tokio::select! {
            admitted = self.gatekeeper.admit(socket) => admitted,
            _ = end.wait_for(|end| *end) => return,
        };
        // A peer that is refused, or breaks the handshake, learns it from the HTTP answer; it is no fault of ours.
        if let Ok(socket) = admitted {
            client::serve(socket, &self.roster, &self.info, end).await;
        }
    }

    async fn distribute(self: Arc<Self>, mut end: watch::Receiver<bool>) {
        loop {
            let publication = tokio::select! {
                publication = self.outbox.next() => publication,
                _ = end.wait_for(|end| *end) => return,
            };
            match publication {
                Publication::Selection(snapshot) => {
                    let state = Outgoing::selection(snapshot, &self.info);
                    // Escapes can double a text; a client would break the link over a longer message.
                    if state.text.len() <= MAX_MESSAGE_BYTES {
                        self.roster.broadcast(state);
                    }
                }
                Publication::Mention { client, snapshot } => self.roster.send(client, Outgoing::mention(&snapshot)),
                Publication::DiagnosticFix { client, request } => {
                    let message = notification_message("diagnostic_fix_requested", &request);
                    self.roster.send(client, Outgoing::word(message));
                }
            }
        }
    }
}

/// 32 random bytes as 64 hex digits. Protocol: "Authentication".
fn new_token() -> Result<String, ServerError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| ServerError::Random(error.to_string()))?;
    Ok(hex(&bytes))
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
