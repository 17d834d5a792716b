//! Ties the sources together: finds the editor of a folder, holds the link to it, follows it as it reloads, and gives
//! one stream of events. Parses nothing itself.

mod backoff;
mod driver;
mod session;
mod state;

use std::sync::Arc;

use crate::blocking::blocking;
use crate::connection::{ConnectError, Link, Target, Timings, open};
use crate::discovery::{self, Candidate, discover};
use crate::env::Env;
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::json_rpc::{ClientName, InitializeParams};
use driver::{Driver, Plan};
pub use session::{Session, Subscription};
pub use state::Prepared;

/// How a connection is made and kept.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How editors are searched.
    pub discovery: discovery::Options,
    /// Time limits of a link.
    pub timings: Timings,
    /// Content hash of the snapshot that the pi session injected last.
    pub last_injected: Option<String>,
}

/// Every editor of this folder refused or did not answer.
#[derive(Debug, thiserror::Error)]
#[error("no editor of this folder could be reached: {}", summary(.0))]
pub struct AllFailed(pub Vec<(Candidate, ConnectError)>);

fn summary(failures: &[(Candidate, ConnectError)]) -> String {
    let lines: Vec<_> = failures.iter().map(|(candidate, error)| format!("{}: {error}", candidate.name)).collect();
    lines.join("; ")
}

/// Connects to one editor. The session ends when the link ends. `cwd` is pi's folder.
pub async fn connect(
    env: Arc<Env>,
    cwd: String,
    candidate: Candidate,
    options: Options,
) -> Result<Session, ConnectError> {
    let link = open_candidate(&env, &cwd, &candidate, options.timings).await?;
    let session = hold(env, cwd, options, candidate, link);
    session.shared().pick_by_hand();
    Ok(session)
}

/// Connects to the best editor of a folder, the next one where the best cannot be reached; `None` when no editor has
/// it open. The session ends when the link ends.
pub async fn connect_best(env: Arc<Env>, cwd: String, options: Options) -> Result<Option<Session>, AllFailed> {
    let candidates = discover(&env, &cwd, &options.discovery).await;
    let mut failures = Vec::new();
    for candidate in candidates.into_iter().filter(|candidate| candidate.direct) {
        match open_candidate(&env, &cwd, &candidate, options.timings).await {
            Ok(link) => return Ok(Some(hold(env, cwd, options, candidate, link))),
            Err(error) => failures.push((candidate, error)),
        }
    }
    if failures.is_empty() { Ok(None) } else { Err(AllFailed(failures)) }
}

/// A session that follows the editors of a folder as they come, go and reload, until it is closed. Returns at once:
/// the first scan goes on in the background.
pub fn follow(env: Arc<Env>, cwd: String, options: Options) -> Session {
    let (session, driver) = Driver::new(env, cwd, options, true);
    tokio::spawn(driver.run(Plan::Find));
    session
}

/// A session over a link that is open already, and that ends with it.
fn hold(env: Arc<Env>, cwd: String, options: Options, candidate: Candidate, link: Link) -> Session {
    let (session, driver) = Driver::new(env, cwd, options, false);
    driver.connected(&candidate, &link);
    tokio::spawn(driver.run(Plan::hold(candidate, link)));
    session
}

async fn open_candidate(
    env: &Arc<Env>,
    cwd: &str,
    candidate: &Candidate,
    timings: Timings,
) -> Result<Link, ConnectError> {
    let target = {
        let (env, candidate) = (Arc::clone(env), candidate.clone());
        // Fails only when the runtime is going down.
        let target = blocking(move || Target::of(&env, &candidate)).await;
        target.unwrap_or_else(|| Err(ConnectError::NotUsable("cannot be read: pi is shutting down".into())))?
    };
    let hello = InitializeParams {
        protocol_version: PROTOCOL_VERSION as f64,
        client: ClientName { name: "pi-x-ide".into(), version: env!("CARGO_PKG_VERSION").into() },
        cwd: Some(cwd.to_owned()),
    };
    open(&target, &hello, timings).await
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
