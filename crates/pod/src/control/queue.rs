//! What the pod takes next of what waits. Pure: it sees the queue and the hold, and decides.

use crate::record::InputId;
use crate::record::InputMode;
use crate::session::fold::SessionState;
use crate::session::queue::{InputQueue, QueuedInput};
use llm_worker::effect::Outcome;

/// Inputs that may wait for a turn.
pub const MAX_QUEUED: usize = 64;

/// Which inputs a turn takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeRule {
    /// One input, one turn. A turn without an input begins for a notification that wakes the pod, and for work that was
    /// interrupted.
    One,
    /// The first turn of a run takes everything that waits: what the run before it accepted and did not do comes with
    /// the new input.
    All,
}

/// The inputs of the turn that begins now; none if no turn begins.
pub(super) fn next_turn(state: &SessionState, rule: TakeRule) -> Option<Vec<InputId>> {
    if state.held.is_some() || state.turn_open {
        return None;
    }
    match rule {
        TakeRule::All => {
            let all: Vec<_> = state.queued.iter().map(|waiting| waiting.input).take(MAX_QUEUED).collect();
            (!all.is_empty()).then_some(all)
        }
        TakeRule::One if is_owed(state) => Some(Vec::new()),
        TakeRule::One => first(&state.queued).map(|input| vec![input]),
    }
}

/// The steered inputs, for the next step of the running turn.
pub(super) fn joining(queue: &InputQueue) -> impl Iterator<Item = &QueuedInput> {
    queue.iter().filter(|waiting| waiting.mode == InputMode::Steer)
}

/// What was meant for the turn before comes first.
fn first(queue: &InputQueue) -> Option<InputId> {
    joining(queue).chain(queue.iter()).map(|waiting| waiting.input).next()
}

/// Whether a turn without an input is owed: interrupted work goes on before anything else. A turn with an input delivers
/// notifications, too, so they alone begin one only if no input waits.
fn is_owed(state: &SessionState) -> bool {
    let interrupted = state.last_outcome == Some(Outcome::Interrupted);
    let woken = state.queued.is_empty() && state.notices.values().any(|notice| notice.wake);
    interrupted || woken
}

#[cfg(test)]
mod tests;
