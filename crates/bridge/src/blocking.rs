//! File work away from the runtime's worker, which carries every link.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// Runs `work` on the blocking pool; `None` when the runtime is going down.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// How many times at once a place may be worked on; as many threads are lost where it hangs.
const AT_ONCE: usize = 4;

/// Work on places that may hang, as network drives and name servers do: waited for only so long, and not begun while
/// earlier work on the same place still hangs, so that a dead drive costs some threads and not one per look. One is
/// shared by everything in a process.
#[derive(Debug, Clone, Default)]
pub struct Patience {
    places: Arc<Mutex<HashMap<OsString, Weak<Semaphore>>>>,
}

impl Patience {
    /// The result of `work` on a place, a folder or a name for several; `None` when it is not there by `deadline`.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        place: impl AsRef<OsStr>,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let turn = timeout_at(deadline, self.turns(place.as_ref()).acquire_owned()).await.ok()?.ok()?;
        let work = blocking(move || {
            // Given back when the work ends, also when nobody waits for it any more.
            let _turn = turn;
            work()
        });
        timeout_at(deadline, work).await.ok().flatten()
    }

    /// The turns of one place, which last as long as anybody has or wants one.
    fn turns(&self, place: &OsStr) -> Arc<Semaphore> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = places.get(place).and_then(Weak::upgrade) {
            return turns;
        }
        places.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        places.insert(place.to_owned(), Arc::downgrade(&turns));
        turns
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn hanging_work_is_left_and_not_begun_without_end() {
        let patience = Patience::default();
        let soon = || Instant::now() + Duration::from_millis(20);
        let later = || Instant::now() + Duration::from_secs(10);
        let (begun, starts) = mpsc::channel();
        let mut held = Vec::new();
        for _ in 0..AT_ONCE + 3 {
            let (release, hold) = mpsc::channel::<()>();
            let begun = begun.clone();
            let hung = patience.run("/dead", soon(), move || {
                begun.send(()).unwrap();
                hold.recv().is_ok()
            });
            assert_eq!(hung.await, None);
            held.push(release);
        }
        assert_eq!(patience.run("/other", later(), || 2).await, Some(2), "another place is not held up");
        assert_eq!(starts.try_iter().count(), AT_ONCE);
        drop(held);
        assert_eq!(patience.run("/dead", later(), || 3).await, Some(3), "it answers again");
        assert_eq!(patience.run("/third", later(), || 4).await, Some(4));
        assert!(patience.places.lock().unwrap().len() <= 2, "places that nobody works on are forgotten");
    }

    #[tokio::test]
    async fn many_at_once_take_turns() {
        let patience = Patience::default();
        let deadline = Instant::now() + Duration::from_secs(10);
        let all = (0..50).map(|n| patience.run("/busy", deadline, move || n));
        let done: Vec<_> = futures_util::future::join_all(all).await.into_iter().flatten().collect();
        assert_eq!(done, (0..50).collect::<Vec<_>>());
    }
}
