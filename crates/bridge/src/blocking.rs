//! File work away from the runtime's worker, which carries every link.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::{Instant, timeout_at};

/// Runs `work` on the blocking pool; `None` when the runtime is going down.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// Work on places that may hang, as network drives do: waited for only so long, and not begun again on a place where the
/// last one still hangs, so that a dead drive costs one thread and not one per look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patience {
    busy: Arc<Mutex<HashSet<OsString>>>,
}

impl Patience {
    /// The result of `work` on a place, a folder or a name for several; `None` when it is not there by `deadline`, or earlier work still hangs.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        place: impl AsRef<OsStr>,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let place = place.as_ref().to_owned();
        if !self.lock().insert(place.clone()) {
            return None;
        }
        let patience = self.clone();
        let work = blocking(move || {
            // Also when the work panics.
            let _busy = Busy { patience, place };
            work()
        });
        timeout_at(deadline, work).await.ok().flatten()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<OsString>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Busy {
    patience: Patience,
    place: OsString,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.patience.lock().remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn hanging_work_is_left_and_not_begun_again() {
        let patience = Patience::default();
        let soon = || Instant::now() + Duration::from_millis(20);
        let (release, held) = mpsc::channel::<()>();
        let hung = patience.run("/dead", soon(), move || held.recv().is_ok()).await;
        assert_eq!(hung, None);
        assert_eq!(patience.run("/dead", soon(), || 1).await, None, "begun again");
        let later = || Instant::now() + Duration::from_secs(10);
        assert_eq!(patience.run("/other", later(), || 2).await, Some(2));
        release.send(()).unwrap();
        while patience.run("/dead", later(), || 3).await != Some(3) {
            tokio::task::yield_now().await;
        }
    }
}
