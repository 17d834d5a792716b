//! The editor's side: a WebSocket server on loopback and the lock file that tells of it. Knows no editor.

mod client;
mod error;
mod gatekeeper;
mod lock_writer;
mod roster;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OnceCell, Semaphore, watch};
use tokio::task::JoinSet;

use crate::env::Env;
use crate::mailbox::{Mailbox, Supersede};
use crate::paths::{Host, Os};
use crate::protocol::MAX_MESSAGE_BYTES;
use crate::protocol::diagnostics::DiagnosticFix;
use crate::protocol::json_rpc::{ServerInfo, notification_message};
use crate::protocol::snapshot::{Snapshot, hex};
pub use error::ServerError;
use gatekeeper::Gatekeeper;
use lock_writer::{Change, LockWriter, NewLock};
pub use roster::ClientInfo;
use roster::{Outgoing, Roster};

/// More sockets than this at once are turned away: pi opens one each.
const MAX_SOCKETS: usize = 64;

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
    host: Host,
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
    /// Fails when there is no lock folder to write to, it cannot be trusted, or no port can be had.
    pub async fn start(env: Arc<Env>, options: Options) -> Result<Self, ServerError> {
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
            workspace_folders: options.workspace_folders,
            running_in_windows: env.host.os == Os::Windows,
            host_id: env.host_id.clone(),
            heartbeat: options.heartbeat,
        })
        .await?;
        let inner = Arc::new(Inner {
            host: env.host.clone(),
            gatekeeper: Gatekeeper::new(token, options.allowed_hosts),
            info: ServerInfo { name: options.name, version: options.version, ide: Some(options.ide) },
            roster: Roster::default(),
            outbox: Mailbox::default(),
        });
        let (closing, end) = watch::channel(false);
        tokio::spawn(Arc::clone(&inner).accept(listener, end.clone()));
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

    /// Puts a selection in the input box of one client: of those whose folder contains the file the nearest, else
    /// the one that was chosen or joined last. Returns it; `None` when no client is connected.
    pub fn mention(&self, snapshot: Snapshot) -> Option<ClientInfo> {
        let client = self.inner.route(&snapshot.file_path.0)?;
        self.inner.outbox.push(Publication::Mention { client: client.id, snapshot });
        Some(client)
    }

    /// Asks one client, chosen like for [`Server::mention`], to look at diagnostics.
    pub fn request_fix(&self, request: DiagnosticFix) -> Option<ClientInfo> {
        let client = self.inner.route(&request.file_path.0)?;
        self.inner.outbox.push(Publication::DiagnosticFix { client: client.id, request });
        Some(client)
    }

    /// Puts other workspace folders in the lock file, in the order of the calls; the future tells when it is written.
    pub fn set_workspace_folders(&self, folders: Vec<String>) -> impl Future<Output = Result<(), ServerError>> + use<> {
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
    fn route(&self, file: &str) -> Option<ClientInfo> {
        self.roster.route(&self.host, file)
    }

    async fn accept(self: Arc<Self>, listener: TcpListener, mut end: watch::Receiver<bool>) {
        let places = Arc::new(Semaphore::new(MAX_SOCKETS));
        let mut clients = JoinSet::new();
        loop {
            let socket = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = clients.join_next() => continue,
                _ = end.wait_for(|end| *end) => break,
            };
            match (socket, Arc::clone(&places).try_acquire_owned()) {
                (Ok((socket, _)), Ok(place)) => {
                    let (inner, end) = (Arc::clone(&self), end.clone());
                    clients.spawn(async move {
                        inner.serve(socket, end).await;
                        drop(place);
                    });
                }
                (Ok(_), Err(_)) => {}
                // Out of descriptors, most likely: give others time to close some.
                (Err(_), _) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        drop(listener);
        while clients.join_next().await.is_some() {}
    }

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
