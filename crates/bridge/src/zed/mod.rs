//! Zed, which has no plugin: what it shows is read from its state database. Nothing is ever written beside it.
//!
//! The pure part (`folders`, `choice`, `offsets`, `text`) goes from rows to a snapshot; `database`, `copy`, `locate`
//! and `running` are its shell; `reader` joins the two and `link` follows one database.

mod choice;
mod copy;
mod database;
mod error;
mod folders;
mod link;
mod locate;
mod offsets;
mod reader;
mod running;
mod text;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::discovery::{Candidate, Standing};
use crate::env::{Env, millis};
use crate::protocol::snapshot::Snapshot;
pub use error::ZedError;
pub use folders::{FolderColumns, folders};
pub use link::Link;
pub use locate::{Place, place_at, places};
pub use offsets::{Offsets, ranges};
use reader::Reader;
pub use reader::{OpenWorkspace, Reading, Scope, ranges_in_file};
use running::{Running, last_written};
pub use text::NotText;

/// All databases together are looked at no longer.
const SURVEY_WITHIN: Duration = Duration::from_millis(800);

/// Whether this terminal is one of Zed's, so that Zed connects by itself.
pub fn is_in_terminal_of_zed(env: &Env) -> bool {
    let is = |name, value: &str| env.var(name).is_some_and(|found| found.eq_ignore_ascii_case(value));
    is("ZED_TERM", "true") || is("TERM_PROGRAM", "zed")
}

/// A candidate for each database: usable where Zed runs and it could be read, else with the reason why not.
pub async fn survey(env: &Arc<Env>, cwd: &str) -> Vec<Candidate> {
    let (snapshot, cwd) = (Arc::clone(env), cwd.to_owned());
    let look = move || places(&snapshot).into_iter().map(|place| candidate(&snapshot, &cwd, &place)).collect();
    env.patience.run("the databases of Zed", Instant::now() + SURVEY_WITHIN, look).await.unwrap_or_default()
}

/// What Zed shows for pi's folder; `None` where no workspace of it contains that folder, or no file is open.
///
/// Of several databases the one that was written last and fits; only `database` where it is given.
pub async fn read(env: &Arc<Env>, cwd: &str, database: Option<String>) -> Result<Option<Snapshot>, ZedError> {
    let (snapshot, cwd) = (Arc::clone(env), cwd.to_owned());
    let look = move || {
        let mut places = match database {
            Some(path) => match place_at(&snapshot, &snapshot.localise(&path), "Zed", false) {
                Some(place) => vec![place],
                None => return Err(ZedError::Missing(path.into())),
            },
            None => places(&snapshot),
        };
        places.sort_by_key(|place| std::cmp::Reverse(last_written(&place.path)));
        let mut failure = None;
        for place in places {
            if Running::find(&snapshot, &place).is_none() {
                continue;
            }
            match Reader::new(Arc::clone(&snapshot), cwd.clone(), place, Scope::Containing).read() {
                Ok(Reading { workspace: Some(_), snapshot: shown, .. }) => {
                    let received_at = Some(snapshot.now_ms() as f64);
                    return Ok(shown.map(|shown| Snapshot { received_at, ..shown }));
                }
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(None), Err)
    };
    let deadline = Instant::now() + link::READ_WITHIN;
    env.patience.run("the databases of Zed", deadline, look).await.unwrap_or(Err(ZedError::Slow))
}

fn candidate(env: &Arc<Env>, cwd: &str, place: &Place) -> Candidate {
    let running = Running::find(env, place);
    let modified_at = last_written(&place.path).map_or(0, millis);
    let blank = Candidate::of_zed(place.path.to_string_lossy().into_owned(), place.name.clone(), modified_at);
    let Some(running) = running else {
        return Candidate { standing: Standing::Stale, reason: ZedError::NotRunning.to_string(), ..blank };
    };
    let blank = Candidate { pid: running.pid(), ..blank };
    match Reader::new(Arc::clone(env), cwd.to_owned(), place.clone(), Scope::Any).read() {
        Ok(Reading { workspace: Some(open), .. }) => {
            blank.open_for(cwd, open.folders, open.found, is_in_terminal_of_zed(env))
        }
        Ok(_) => Candidate { reason: "has no folder open; pick it by hand".into(), ..blank },
        Err(error @ ZedError::UnknownSchema(_)) => {
            Candidate { standing: Standing::Unsupported, reason: error.to_string(), ..blank }
        }
        Err(error) => Candidate { standing: Standing::Untrusted, reason: error.to_string(), ..blank },
    }
}

/// The place of a candidate, found again by its id.
pub fn place_of(env: &Env, candidate: &Candidate) -> Option<Place> {
    let known = places(env).into_iter().find(|place| place.path.to_string_lossy() == candidate.id);
    known.or_else(|| place_at(env, &candidate.id, &candidate.name, false))
}
