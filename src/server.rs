//! `IdeServer`: the editor's side.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use napi::bindgen_prelude::AsyncBlock;
use napi::{Env, Result};
use napi_derive::napi;
use pi_x_ide_bridge::env::Variables;
use pi_x_ide_bridge::server::{self as bridge, Options, Server};

use crate::diagnostics::DiagnosticFix;
use crate::failure::Failure;
use crate::host::{absolute, env_of};
use crate::promise::{millis, promise};
use crate::snapshot::SnapshotInput;

/// Servers of this process, for the hook at its end.
static SERVERS: Mutex<Vec<Weak<Server>>> = Mutex::new(Vec::new());

/// How a server presents itself.
#[napi(object, object_to_js = false)]
pub struct IdeServerOptions {
    /// Kind of editor: `vscode`, `zed`, `nvim`, `jetbrains` or `unknown`.
    pub ide: String,
    /// Name for people.
    pub name: String,
    /// Version of the editor's plugin.
    pub version: Option<String>,
    /// Absolute paths of the open folders.
    pub workspace_folders: Vec<String>,
    /// Absolute path of the folder for the lock file instead of `~/.pi/pi-x-ide/lock`.
    pub lock_dir: Option<String>,
    /// Names, besides `localhost` and any address, that a client may use for this machine.
    pub allowed_hosts: Option<Vec<String>>,
    /// Between two refreshes of the lock file, in milliseconds. Default: 900000.
    pub heartbeat_ms: Option<f64>,
    /// Under native Windows also listens on the adapter of WSL, on the same port, so that a pi in a WSL with NAT
    /// networking reaches the editor; the adapter is waited for, and looked for again every 30 seconds. Everything in
    /// the WSL machine can then knock, and only the token lets in. Elsewhere it does nothing. Default: false.
    pub wsl_listener: Option<bool>,
}

/// A client that has completed the handshake.
#[napi(object, object_from_js = false)]
pub struct ClientInfo {
    /// Number of the link, never used twice in one server.
    pub id: f64,
    /// Its name, `pi-x-ide` for this product.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its working folder in this host's form, where it told one.
    pub cwd: Option<String>,
    /// Name of the editor's terminal that it runs in, where it told one: its `PI_X_IDE_TERMINAL_SESSION_ID`.
    pub terminal_session_id: Option<String>,
}

/// Which client a mention or a request is for.
#[napi(object, object_to_js = false)]
#[derive(Default)]
pub struct RouteOptions {
    /// The terminal whose client is meant, as the editor has named it in `PI_X_IDE_TERMINAL_SESSION_ID`.
    pub terminal_session_id: Option<String>,
}

/// What decided for a client: it runs in the terminal that was asked for, it belongs to the workspace of the file, or
/// it was only the one used last.
#[napi(string_enum = "kebab-case")]
pub enum ChosenBy {
    /// It runs in the terminal that was asked for.
    Terminal,
    /// Its folder contains the file, or belongs to the same workspace folder.
    Workspace,
    /// Nothing but that it was chosen, joined or prompted last.
    LastUsed,
}

/// The client that something was given to, with the reason, so that the editor can tell its user.
#[napi(object, object_from_js = false)]
pub struct RoutedClient {
    /// Number of the link, never used twice in one server.
    pub id: f64,
    /// Its name, `pi-x-ide` for this product.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its working folder in this host's form, where it told one.
    pub cwd: Option<String>,
    /// Name of the editor's terminal that it runs in, where it told one.
    pub terminal_session_id: Option<String>,
    /// Why it was this one.
    pub chosen_by: ChosenBy,
}

/// A WebSocket server on 127.0.0.1 and the lock file that tells pi of it. Does not keep the process alive, and ends
/// when nothing refers to it any more. Protocol: "Lock files", "Handshake".
#[napi]
pub struct IdeServer {
    server: Arc<Server>,
    ide: String,
}

#[napi]
impl IdeServer {
    /// Listens on a free port and writes the lock file: 0600 in a 0700 folder, with a fresh random token.
    ///
    /// Rejects with `PIX_NO_HOME`, `PIX_LISTEN`, `PIX_RANDOM`, `PIX_LOCK_FOLDER`, `PIX_LOCK_WRITE`, `PIX_TOO_LARGE` or
    /// `PIX_INVALID_ARGUMENT`.
    #[napi(catch_unwind)]
    pub fn start(env: &Env, options: IdeServerOptions) -> Result<AsyncBlock<IdeServer>> {
        let variables = Variables::current();
        let work = async move {
            let ide = options.ide;
            if ide.is_empty() || ide.contains(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
                return Err(Failure::invalid(format!("ide must be letters, digits and hyphens, not {ide:?}")));
            }
            let lock_dir = options.lock_dir.map(|dir| absolute("lockDir", dir)).transpose()?.map(PathBuf::from);
            let bridge_options = Options {
                ide: ide.clone(),
                name: options.name,
                version: options.version,
                workspace_folders: options.workspace_folders,
                lock_dir,
                allowed_hosts: options.allowed_hosts.unwrap_or_default(),
                heartbeat: millis("heartbeatMs", options.heartbeat_ms, 1.0)?.unwrap_or(Options::HEARTBEAT),
                wsl_listener: options.wsl_listener.unwrap_or(false),
            };
            let server = Arc::new(Server::start(env_of(variables).await?, bridge_options).await?);
            remember(&server);
            Ok(IdeServer { server, ide })
        };
        promise(env, work, |_, server| Ok(server))
    }

    /// Port on 127.0.0.1.
    #[napi(getter, catch_unwind)]
    pub fn port(&self) -> f64 {
        f64::from(self.server.port())
    }

    /// Path of the lock file.
    #[napi(getter, catch_unwind)]
    pub fn lock_file(&self) -> String {
        self.server.lock_file().to_string_lossy().into_owned()
    }

    /// Tells every client the state of the editor. A later state supersedes one that was not sent yet.
    ///
    /// Throws `PIX_INVALID_ARGUMENT`, and `PIX_TOO_LARGE` for more than 12 MiB of selected text.
    #[napi(catch_unwind)]
    pub fn publish(&self, env: &Env, snapshot: SnapshotInput) -> Result<()> {
        let snapshot = snapshot.into_wire(&self.ide).map_err(|failure| failure.into_error(env))?;
        self.server.publish(snapshot);
        Ok(())
    }

    /// Tells every client that there is no active editor.
    #[napi(catch_unwind)]
    pub fn clear(&self) {
        self.server.clear();
    }

    /// Puts a selection in the input box of exactly one client. Returns it; null when no client is connected.
    ///
    /// It is the client in the terminal that the options name. Else one of the same workspace: of the clients whose
    /// folder contains the file the nearest; else of those whose folder lies in, or contains, the workspace folder of
    /// the file (the snapshot's, else the longest open one that contains the file) the one used last. Else the one used
    /// last of all. A client is used when it is chosen, joins, or gets a prompt; among equals, the one used last
    /// counts. Throws as `publish` does.
    #[napi(catch_unwind, strict)]
    pub fn mention(
        &self,
        env: &Env,
        snapshot: SnapshotInput,
        options: Option<RouteOptions>,
    ) -> Result<Option<RoutedClient>> {
        let snapshot = snapshot.into_wire(&self.ide).map_err(|failure| failure.into_error(env))?;
        let terminal = options.unwrap_or_default().terminal_session_id;
        Ok(self.server.mention(snapshot, terminal.as_deref()).map(RoutedClient::from))
    }

    /// Asks one client, chosen as for `mention`, to look at diagnostics. Returns it; null when no client is connected.
    /// Throws `PIX_INVALID_ARGUMENT`.
    #[napi(catch_unwind, strict)]
    pub fn request_fix(
        &self,
        env: &Env,
        request: DiagnosticFix,
        options: Option<RouteOptions>,
    ) -> Result<Option<RoutedClient>> {
        let request = request.into_wire().map_err(|failure| failure.into_error(env))?;
        let terminal = options.unwrap_or_default().terminal_session_id;
        Ok(self.server.request_fix(request, terminal.as_deref()).map(RoutedClient::from))
    }

    /// Writes other workspace folders to the lock file, and routes mentions by them from now on; resolves when the file
    /// is written. Rejects with `PIX_TOO_LARGE`, and leaves the file as it is, when that would have more than 1 MiB.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn set_workspace_folders(&self, env: &Env, folders: Vec<String>) -> Result<AsyncBlock<()>> {
        let written = self.server.set_workspace_folders(folders);
        promise(env, async { Ok(written.await?) }, |_, ()| Ok(()))
    }

    /// Notes in the lock file that the editor's window has the focus now; resolves when it is written.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn focus(&self, env: &Env) -> Result<AsyncBlock<()>> {
        let written = self.server.focus();
        promise(env, async { Ok(written.await?) }, |_, ()| Ok(()))
    }

    /// Clients that have completed the handshake, longest connected first.
    #[napi(catch_unwind)]
    pub fn clients(&self) -> Vec<ClientInfo> {
        self.server.clients().into_iter().map(ClientInfo::from).collect()
    }

    /// Removes the lock file after every accepted refresh is written, then ends all links. Closing twice is the same as
    /// once.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn close(&self, env: &Env) -> Result<AsyncBlock<()>> {
        let server = Arc::clone(&self.server);
        let work = async move {
            server.close().await;
            Ok(())
        };
        promise(env, work, |_, ()| Ok(()))
    }
}

/// Removes the lock files of servers that were not closed. For the exit hook of the package, since a process that
/// exits runs no destructors; blocks on one unlink per server.
#[napi(catch_unwind, skip_typescript)]
pub fn remove_owned_files() {
    for server in servers().drain(..).filter_map(|server| server.upgrade()) {
        server.remove_lock_file_now();
    }
}

fn remember(server: &Arc<Server>) {
    let mut servers = servers();
    servers.retain(|server| server.strong_count() > 0);
    servers.push(Arc::downgrade(server));
}

fn servers() -> MutexGuard<'static, Vec<Weak<Server>>> {
    SERVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<bridge::ClientInfo> for ClientInfo {
    fn from(client: bridge::ClientInfo) -> Self {
        let bridge::ClientInfo { id, name, version, cwd, terminal_session_id } = client;
        Self { id: id as f64, name, version, cwd, terminal_session_id }
    }
}

impl From<bridge::RoutedClient> for RoutedClient {
    fn from(bridge::RoutedClient { client, chosen_by }: bridge::RoutedClient) -> Self {
        let ClientInfo { id, name, version, cwd, terminal_session_id } = client.into();
        let chosen_by = match chosen_by {
            bridge::ChosenBy::Terminal => ChosenBy::Terminal,
            bridge::ChosenBy::Workspace => ChosenBy::Workspace,
            bridge::ChosenBy::LastUsed => ChosenBy::LastUsed,
        };
        Self { id, name, version, cwd, terminal_session_id, chosen_by }
    }
}
