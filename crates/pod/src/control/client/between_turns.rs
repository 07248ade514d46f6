//! Changes that the program makes to a pod while no turn runs, such as undoing file changes. No turn begins meanwhile.

use super::Command;
use crate::control::submit_error::SubmitError;
use crate::mailbox::requests::answered;
use crate::record::Record;
use session_store::Blobs;
use tokio::sync::{mpsc, oneshot};

/// Keeps turns from beginning until it is dropped.
#[derive(Debug)]
pub struct BetweenTurns {
    pub(in crate::control) commands: mpsc::Sender<Command>,
    pub(in crate::control) opened: Opened,
}

/// The actor's side of it, as far as the program needs it.
#[derive(Debug)]
pub(crate) struct Opened {
    blobs: Blobs,
    _released: oneshot::Sender<()>,
}

impl BetweenTurns {
    /// Appends records that belong to no turn. Returns once they are durable and folded.
    ///
    /// # Errors
    /// The disk refused, or the pod has ended.
    pub async fn append(&self, records: Vec<Record>) -> Result<(), SubmitError> {
        let (reply, done) = oneshot::channel();
        self.commands
            .send(Command::Append(records, reply))
            .await
            .map_err(|_closed| SubmitError::Closed)?;
        answered(&self.commands, done)
            .await
            .unwrap_or(Err(SubmitError::Closed))
    }

    /// The pod's blobs.
    #[must_use]
    pub fn blobs(&self) -> &Blobs {
        &self.opened.blobs
    }
}

/// Whether a [`BetweenTurns`] keeps turns from beginning, as the actor sees it.
#[derive(Default)]
pub(crate) struct TurnBlock {
    released: Option<oneshot::Receiver<()>>,
}

impl TurnBlock {
    /// Begins, unless one is in force.
    pub(crate) fn open(&mut self, blobs: Blobs) -> Option<Opened> {
        if self.is_active() {
            return None;
        }
        let (_released, released) = oneshot::channel();
        self.released = Some(released);
        Some(Opened { blobs, _released })
    }

    /// Whether no turn may begin.
    pub(crate) fn is_active(&self) -> bool {
        self.released.is_some()
    }

    /// Resolves when the program is done; pending without one. Cancel-safe.
    pub(crate) async fn released(&mut self) {
        match &mut self.released {
            // An error is the end of the program's side, the only thing that comes.
            Some(released) => drop(released.await),
            None => std::future::pending().await,
        }
        self.released = None;
    }
}
