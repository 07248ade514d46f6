//! What clients of a live pod may ask of its process.

use super::failure::undone;
use crate::undo::in_live_pod;
use crate::words::Words;
use pod::control::BetweenTurns;
use pod::ipc::HostActions;
use protocol::method::Undone;
use rustix::process::{Signal, getpid, kill_process};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;

/// Bytes of the lines of an undo.
const MAX_UNDONE: usize = 1 << 20;

/// Between two signals of the same kind.
const APART: Duration = Duration::from_millis(50);

pub(super) struct PodActions {
    pub(super) dir: PathBuf,
    pub(super) name: String,
    /// The runtime of the control thread.
    pub(super) runtime: Handle,
    pub(super) words: Words,
}

impl HostActions for PodActions {
    fn undo(&self, to: u64, turns: BetweenTurns) -> Undone {
        let (mut lines, done) = in_live_pod(&self.dir, &self.name, to, &turns, &self.runtime);
        let mut room = MAX_UNDONE;
        let shown = lines.iter().take_while(|line| {
            room = room.saturating_sub(line.len());
            room > 0
        });
        let shown = shown.count();
        let all = lines.len();
        if shown < all {
            lines.truncate(shown);
            lines.push(format!("… {} more lines", all - shown));
        }
        undone(lines, done, self.words)
    }

    /// As a supervisor of processes stops one: SIGTERM ends the turn and the pod in good order, a second one leaves.
    fn shut_down(&self, now: bool) -> Result<(), String> {
        signalled()?;
        if now {
            // Two of a kind that arrive together are one.
            thread::sleep(APART);
            signalled()?;
        }
        Ok(())
    }
}

fn signalled() -> Result<(), String> {
    kill_process(getpid(), Signal::TERM)
        .map_err(|error| format!("the pod cannot signal itself: {error}"))
}
