//! From a candidate to an open link, whatever the transport. Of a lock file: it is read again, its hosts found, the
//! folders of both sides brought together.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::error::ConnectError;
use crate::blocking::blocking;
use crate::connection::{self, CloseReason, EventSink, Target, Timings, open};
use crate::discovery::{self, Candidate, Standing, Transport, read_lock, respellings};
use crate::env::Env;
use crate::host::{Network, authority};
use crate::paths::{PathMapping, respell};
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::json_rpc::{ClientName, InitializeParams, ServerInfo};
use crate::protocol::lock_file::LockFile;
use crate::zed;

/// Folders of an editor on a drive that hangs keep their spelling.
const RESPELL_WITHIN: Duration = Duration::from_millis(300);

/// A link, and how the paths that come over it are spelt from pi's folder.
pub(super) struct Opened {
    pub(super) link: Link,
    pub(super) respellings: Vec<PathMapping>,
}

/// An open link to one editor.
pub(super) enum Link {
    /// A WebSocket.
    Ws(Box<connection::Link>),
    /// A database of Zed.
    Zed(Box<zed::Link>),
}

impl Link {
    /// Who answered.
    pub(super) fn server(&self) -> &ServerInfo {
        match self {
            Self::Ws(link) => &link.server,
            Self::Zed(link) => &link.server,
        }
    }

    /// Hands on events until the link ends. Cancel-safe.
    pub(super) async fn run(&mut self, sink: &impl EventSink) -> CloseReason {
        match self {
            Self::Ws(link) => link.run(sink).await,
            Self::Zed(link) => link.run(sink).await,
        }
    }

    /// Tells the editor that the user submitted a prompt. Cancel-safe.
    pub(super) async fn prompted(&mut self) {
        match self {
            Self::Ws(link) => link.prompted().await,
            // Nobody to tell.
            Self::Zed(_) => {}
        }
    }

    /// Ends it, politely where there is somebody to be polite to.
    pub(super) async fn close(self) {
        match self {
            Self::Ws(link) => link.close().await,
            Self::Zed(link) => drop(link),
        }
    }
}

/// Opens a link to one editor within `timings.connect`. Dropping the future closes whatever is open by then.
pub(super) async fn open_candidate(
    env: &Arc<Env>,
    cwd: &str,
    candidate: &Candidate,
    timings: Timings,
) -> Result<Opened, ConnectError> {
    match candidate.transport {
        Transport::Ws => Ok(open_lock(env, cwd, candidate, timings).await?),
        Transport::Zed => Ok(open_zed(env, cwd, candidate, timings).await?),
    }
}

async fn open_zed(env: &Arc<Env>, cwd: &str, candidate: &Candidate, timings: Timings) -> Result<Opened, zed::ZedError> {
    let deadline = Instant::now() + timings.connect;
    let place = {
        let (env, candidate) = (Arc::clone(env), candidate.clone());
        let missing = zed::ZedError::Missing(candidate.id.clone().into());
        let find = timeout_at(deadline, blocking(move || zed::place_of(&env, &candidate))).await;
        find.map_err(|_| zed::ZedError::Slow)?.flatten().ok_or(missing)?
    };
    let scope = if candidate.direct { zed::Scope::Containing } else { zed::Scope::Any };
    let link = zed::Link::open(Arc::clone(env), cwd.to_owned(), place, scope, deadline).await?;
    // The reader brings paths into pi's spelling, as workspaces may come and go while it follows.
    Ok(Opened { link: Link::Zed(Box::new(link)), respellings: Vec::new() })
}

async fn open_lock(
    env: &Arc<Env>,
    cwd: &str,
    candidate: &Candidate,
    timings: Timings,
) -> Result<Opened, connection::ConnectError> {
    use connection::ConnectError;

    // One that did not answer a probe may do so now; a refused host is judged below, by the lock as it is then.
    if !matches!(candidate.standing, Standing::Usable | Standing::NotAnswering | Standing::HostRefused) {
        return Err(ConnectError::NotUsable(candidate.reason.clone()));
    }
    let deadline = Instant::now() + timings.connect;
    let too_late = |_| ConnectError::Timeout { authority: shown_authority(candidate), within: timings.connect };
    let (lock, network) = {
        let (env, id) = (Arc::clone(env), candidate.id.clone());
        let read = timeout_at(deadline, blocking(move || read(&env, &id))).await.map_err(too_late)?;
        // Fails only when the runtime is going down.
        read.unwrap_or_else(|| Err(ConnectError::NotUsable("cannot be read: pi is shutting down".into())))?
    };
    let server = discovery::server(env, &network, &lock);
    let hosts = timeout_at(deadline, server.hosts_to_dial()).await.map_err(too_late)?;
    let hosts = hosts.map_err(|_| ConnectError::HostRefused(lock.host.clone()))?;
    let respellings = spell(env, cwd, lock.workspace_folders).await;
    let target = Target { hosts, port: lock.port, token: lock.auth_token, patience: env.patience.clone() };
    let hello = hello(env, cwd, &respellings);
    let left = Timings { connect: deadline.saturating_duration_since(Instant::now()), ..timings };
    match open(&target, &hello, left).await {
        Ok(link) => Ok(Opened { link: Link::Ws(Box::new(link)), respellings }),
        Err(ConnectError::Timeout { authority, .. }) => {
            Err(ConnectError::Timeout { authority, within: timings.connect })
        }
        Err(error) => Err(error),
    }
}

fn read(env: &Env, id: &str) -> Result<(LockFile, Network), connection::ConnectError> {
    let lock = read_lock(env, id)?;
    let is_across = lock.running_in_windows && env.host.wsl.is_some() && env.host_override().is_none();
    let network = if is_across { discovery::network(env) } else { Network::NATIVE };
    Ok((lock, network))
}

async fn spell(env: &Arc<Env>, cwd: &str, workspace_folders: Vec<String>) -> Vec<PathMapping> {
    let Some(place) = workspace_folders.first().cloned() else {
        return Vec::new();
    };
    let (snapshot, cwd) = (Arc::clone(env), cwd.to_owned());
    let look = move || respellings(&snapshot, &cwd, &workspace_folders);
    let deadline = Instant::now() + RESPELL_WITHIN;
    env.patience.run(place, deadline, look).await.unwrap_or_default()
}

/// pi tells its folder as the editor knows it, so that the editor can tell which pi a file is for.
fn hello(env: &Env, cwd: &str, respellings: &[PathMapping]) -> InitializeParams {
    let back: Vec<_> = respellings.iter().map(PathMapping::reversed).collect();
    let cwd = respell(&env.host, &back, cwd).unwrap_or_else(|| cwd.to_owned());
    InitializeParams {
        protocol_version: PROTOCOL_VERSION as f64,
        client: ClientName { name: "pi-x-ide".into(), version: env!("CARGO_PKG_VERSION").into() },
        cwd: Some(env.delocalise(&cwd).into_owned()),
        terminal_session_id: env.var("PI_X_IDE_TERMINAL_SESSION_ID").map(str::to_owned),
    }
}

fn shown_authority(candidate: &Candidate) -> String {
    candidate.address.as_ref().map_or_else(|| candidate.name.clone(), |(host, port)| authority(host, *port))
}
