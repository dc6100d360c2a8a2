//! Threads for clients whose work must not delay what is measured.

use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::error::LoadError;

/// A thread with a runtime of its own; what runs there ends when this is dropped.
pub(crate) struct OwnThread {
    _stop: oneshot::Sender<()>,
    _thread: JoinHandle<()>,
}

impl OwnThread {
    /// Starts something there, waits until it has started, and keeps the result.
    pub async fn start<T: Send + 'static>(
        name: &str,
        begin: impl Future<Output = Result<T, LoadError>> + Send + 'static,
    ) -> Result<Self, LoadError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LoadError::Thread)?;
        let (stop, stopped) = oneshot::channel();
        let (began, beginning) = oneshot::channel();
        let work = async move {
            let kept = match begin.await {
                Ok(kept) => kept,
                // The run was dropped: nobody waits for the result.
                Err(error) => return drop(began.send(Err(error))),
            };
            let _ = began.send(Ok(()));
            // Ends when the other side is dropped.
            let _ = stopped.await;
            drop(kept);
        };
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || runtime.block_on(work))
            .map_err(LoadError::Thread)?;
        beginning.await.map_err(|_| LoadError::Ended)??;
        Ok(OwnThread { _stop: stop, _thread: thread })
    }
}
