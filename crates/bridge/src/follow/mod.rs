//! Ties the sources together: finds the editor of a folder, holds the link to it, follows it as it reloads, and gives
//! one stream of events. Parses nothing itself.

mod backoff;
mod driver;
mod error;
mod open;
mod session;
mod state;

use std::sync::Arc;

use crate::connection::Timings;
use crate::discovery::{self, Candidate, rank};
use crate::env::Env;
use crate::sources::discover;
use crate::zed::{self, ZedError};
use driver::{Driver, Plan};
pub use error::ConnectError;
use open::{Opened, open_candidate};
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
    let opened = open_candidate(&env, &cwd, &candidate, options.timings).await?;
    let session = hold(env, cwd, options, candidate, opened);
    session.shared().pick_by_hand();
    Ok(session)
}

/// Connects to the best editor of a folder, the next one where the best cannot be reached; `None` when no editor has
/// it open. The session ends when the link ends.
pub async fn connect_best(env: Arc<Env>, cwd: String, options: Options) -> Result<Option<Session>, AllFailed> {
    let candidates = discover(&env, &cwd, &options.discovery).await;
    let mut failures = Vec::new();
    for candidate in candidates.into_iter().filter(|candidate| candidate.by_itself) {
        match open_candidate(&env, &cwd, &candidate, options.timings).await {
            Ok(opened) => return Ok(Some(hold(env, cwd, options, candidate, opened))),
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

/// Follows one database of Zed: the one at `database`, else the best one for pi's folder. The session ends with Zed, or
/// when its database cannot be read any more.
pub async fn watch_zed(
    env: Arc<Env>,
    cwd: String,
    database: Option<String>,
    options: Options,
) -> Result<Session, ConnectError> {
    let candidate = match database {
        Some(database) => Candidate { direct: true, ..Candidate::of_zed(database, "Zed".into(), 0) },
        None => {
            let found = zed::survey(&env, &cwd).await;
            let best = rank(found).into_iter().next().ok_or(ZedError::NotRunning)?;
            Candidate { direct: true, ..best }
        }
    };
    let opened = open_candidate(&env, &cwd, &candidate, options.timings).await?;
    Ok(hold(env, cwd, options, candidate, opened))
}

/// A session over a link that is open already, and that ends with it.
fn hold(env: Arc<Env>, cwd: String, options: Options, candidate: Candidate, opened: Opened) -> Session {
    let (session, mut driver) = Driver::new(env, cwd, options, false);
    let plan = driver.connected(candidate, opened);
    tokio::spawn(driver.run(plan));
    session
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
