//! The addon's own tokio runtime: made at first use, taken down when the last environment goes.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use napi::bindgen_prelude::{AsyncRuntime, AsyncRuntimeRejection, AsyncRuntimeTask};
use napi::{Error, Result, Status};
use tokio::runtime::{Builder, Handle};

/// Running file work is not waited for longer at the end.
const SHUTDOWN_WITHIN: Duration = Duration::from_millis(100);

/// Threads are made when there is file work and go when there is none. So many that drives which hang, each of which
/// may keep some (`Patience`), leave threads for everything else.
const MOST_FILE_THREADS: usize = 64;

/// Registered once per process. Holds no thread until something is spawned.
#[derive(Default)]
pub struct Runtime {
    tokio: Mutex<Option<tokio::runtime::Runtime>>,
}

impl Runtime {
    fn handle(&self) -> Result<Handle> {
        let mut tokio = self.lock();
        if tokio.is_none() {
            let built = Builder::new_multi_thread()
                .worker_threads(1)
                .max_blocking_threads(MOST_FILE_THREADS)
                .thread_keep_alive(Duration::from_secs(5))
                .thread_name("pi-x-ide")
                // Given, so that no thread start reads the environment beside a program that changes it.
                .thread_stack_size(2 * 1024 * 1024)
                .enable_all()
                .build();
            *tokio = Some(built.map_err(|error| Error::new(Status::GenericFailure, error.to_string()))?);
        }
        tokio.as_ref().map(|tokio| tokio.handle().clone()).ok_or_else(|| Error::from_status(Status::Closing))
    }

    fn lock(&self) -> MutexGuard<'_, Option<tokio::runtime::Runtime>> {
        self.tokio.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: an accepted task is owned by tokio, which polls it to its end or drops it at shutdown; `block_on` drives the
// borrowed future to its end before it returns; `shutdown` takes the runtime, so nothing is accepted by the old one
// afterwards, and may run again at any time.
unsafe impl AsyncRuntime for Runtime {
    fn spawn(&self, task: AsyncRuntimeTask) -> std::result::Result<(), AsyncRuntimeRejection<AsyncRuntimeTask>> {
        match self.handle() {
            Ok(handle) => {
                handle.spawn(task);
                Ok(())
            }
            Err(error) => Err(AsyncRuntimeRejection::new(task, error)),
        }
    }

    fn block_on(&self, future: Pin<&mut dyn Future<Output = ()>>) -> Result<()> {
        self.handle()?.block_on(future);
        Ok(())
    }

    fn shutdown(&self) -> Result<()> {
        let tokio = self.lock().take();
        if let Some(tokio) = tokio {
            tokio.shutdown_timeout(SHUTDOWN_WITHIN);
        }
        Ok(())
    }
}
