//! File work away from the runtime's worker, which carries every link.

/// Runs `work` on the blocking pool; `None` when the runtime is going down.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
