//! The pod's end of its socket: clients connect, ask, and are told what happens. All of it runs on a thread of its own, so
//! that a slow, idle or hostile client costs the turn nothing. Records are read from the journal's files by cursor: a
//! client that is behind costs a number, and what it misses is only transient.
//!
//! ```text
//!   socket ─> server ─> connection ─┬─> requests ─> control::Client     (answers once durable)
//!                                   └─< feed <─┬─ tail: the newest records, read once for all clients
//!                                              ├─ files: older records
//!                                              └─ deltas, alerts, status, draft
//! ```

mod answers;
mod connection;
mod convert;
mod feed;
mod held_files;
mod hub;
mod incoming;
mod out;
mod requests;
mod server;
mod tail;

pub use convert::{approval, background_tasks, job, outcome, queued};
pub use server::Served;

use crate::control::{BetweenTurns, Client};
use protocol::method::Undone;
use protocol::status::Host;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long the pod waits for a client: for the rest of a request that it began, and until it takes some of what waits for
/// it. A client that stopped sending may wait as long for its answers.
const CLIENT_TIME: Duration = Duration::from_secs(10);

/// A pod as its clients reach it.
pub struct ServedPod {
    pub client: Client,
    /// The session's directory.
    pub dir: PathBuf,
    pub name: String,
    /// The session's id.
    pub session: String,
    /// The process, as it is now.
    pub host: watch::Receiver<Host>,
    pub actions: Arc<dyn HostActions>,
}

/// What a client may ask of the process that hosts the pod. Called on a thread that may block.
pub trait HostActions: Send + Sync {
    /// Undoes file changes after a record; no turn begins meanwhile.
    fn undo(&self, to: u64, turns: BetweenTurns) -> Undone;

    /// Begins to end the process in good order; with `now` without waiting for what runs.
    ///
    /// # Errors
    /// Why it cannot.
    fn shut_down(&self, now: bool) -> Result<(), String>;
}
