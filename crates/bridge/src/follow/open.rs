//! From a candidate to an open link: its lock read again, its hosts found, the folders of both sides brought together.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::blocking::blocking;
use crate::connection::{ConnectError, Link, Target, Timings, open};
use crate::discovery::{self, Candidate, Standing, read_lock, respellings};
use crate::env::Env;
use crate::host::{Network, authority};
use crate::paths::{PathMapping, respell};
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::json_rpc::{ClientName, InitializeParams};
use crate::protocol::lock_file::LockFile;

/// Folders of an editor on a drive that hangs keep their spelling.
const RESPELL_WITHIN: Duration = Duration::from_millis(300);

/// A link, and how the paths that come over it are spelt from pi's folder.
pub(super) struct Opened {
    pub(super) link: Link,
    pub(super) respellings: Vec<PathMapping>,
}

/// Opens a link to one editor within `timings.connect`. Dropping the future closes whatever is open by then.
pub(super) async fn open_candidate(
    env: &Arc<Env>,
    cwd: &str,
    candidate: &Candidate,
    timings: Timings,
) -> Result<Opened, ConnectError> {
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
    let target = Target { hosts, port: lock.port, token: lock.auth_token };
    let hello = hello(env, cwd, &respellings);
    let left = Timings { connect: deadline.saturating_duration_since(Instant::now()), ..timings };
    match open(&target, &hello, left).await {
        Ok(link) => Ok(Opened { link, respellings }),
        Err(ConnectError::Timeout { authority, .. }) => {
            Err(ConnectError::Timeout { authority, within: timings.connect })
        }
        Err(error) => Err(error),
    }
}

fn read(env: &Env, id: &str) -> Result<(LockFile, Network), ConnectError> {
    let lock = read_lock(env, id)?;
    let is_across = lock.running_in_windows && env.host.wsl.is_some() && env.host_override().is_none();
    let network = if is_across { discovery::network(env) } else { Network::NATIVE };
    Ok((lock, network))
}

async fn spell(env: &Arc<Env>, cwd: &str, workspace_folders: Vec<String>) -> Vec<PathMapping> {
    let (snapshot, cwd) = (Arc::clone(env), cwd.to_owned());
    let look = move || respellings(&snapshot, &cwd, &workspace_folders);
    let deadline = Instant::now() + RESPELL_WITHIN;
    env.patience.run("the workspace folders", deadline, look).await.unwrap_or_default()
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
