//! Every source of a folder at one look: lock files and Zed's databases, as one list of candidates.

use std::sync::Arc;

use futures_util::future::join;

use crate::discovery::{Candidate, Options, Scanner, Standing, Survey, Transport, rank};
use crate::env::Env;
use crate::zed;

/// Every editor of this machine, best match for `cwd` first, usable ones before all others.
///
/// Never fails: what cannot be read or trusted is a candidate with its reason, shown with [`Options::all`]. Takes a
/// second at most on a machine that is not overloaded. Protocol: "Lock files".
pub async fn discover(env: &Arc<Env>, cwd: &str, options: &Options) -> Vec<Candidate> {
    survey(env, cwd, options).await.candidates
}

/// Like [`discover`], with what was looked at.
pub(crate) async fn survey(env: &Arc<Env>, cwd: &str, options: &Options) -> Survey {
    let scanner = Scanner::new(Arc::clone(env), options.clone());
    with_zed(env, cwd, options, scanner.survey(cwd)).await
}

/// Adds Zed to what the lock files tell. Whoever names a lock folder wants nothing else.
pub(crate) async fn with_zed(
    env: &Arc<Env>,
    cwd: &str,
    options: &Options,
    locks: impl Future<Output = Survey>,
) -> Survey {
    if options.lock_dir.is_some() {
        return locks.await;
    }
    let (mut survey, of_zed) = join(locks, zed::survey(env, cwd)).await;
    if of_zed.is_empty() {
        return survey;
    }
    survey.candidates.extend(of_zed.into_iter().filter(|c| options.all || c.standing == Standing::Usable));
    survey.candidates = rank(survey.candidates);
    // In a terminal of Zed its own workspace is meant, however well another editor fits.
    survey.candidates.sort_by_key(|c| !(c.transport == Transport::Zed && c.by_itself));
    survey
}
