//! Work that may block, beside the tasks of the agent.

use crate::message::{FAILED, RpcError};
use crate::pods::PodRefusal;
use tokio::task::spawn_blocking;

/// Runs what may block on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PodRefusal> + Send + 'static,
) -> Result<T, RpcError> {
    match spawn_blocking(work).await {
        Ok(done) => done.map_err(RpcError::from),
        Err(_panicked) => Err(RpcError::new(
            FAILED,
            "a fault in yoi ended the request",
            "try again",
        )),
    }
}
