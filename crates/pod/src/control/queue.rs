//! What the pod takes next of what waits. Pure: it sees the queue and the hold, and decides.

pub(super) mod submission;

use crate::record::{HoldCause, InputId};
use crate::session::fold::SessionState;
use crate::session::queue::{InputQueue, QueuedInput};

/// Inputs that may wait for a turn.
pub const MAX_QUEUED: usize = 64;

/// Which turns begin, and which inputs they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeRule {
    /// A pod that stays: one input, one turn. A turn without an input begins for a notification that wakes the pod, for
    /// work that was interrupted, and for work that a limit ended once the pod is resumed.
    Stay,
    /// A run does what is submitted to it: one input, one turn. What an earlier start accepted, up to this input, comes
    /// with the first one. A turn without an input begins if somebody waits for one that was interrupted.
    Run { opened_at: InputId, goes_on: bool },
}

/// The inputs of the turn that begins now; none if no turn begins. One without inputs goes on with calls that wait for a
/// person.
pub(super) fn next_turn(state: &SessionState, rule: TakeRule) -> Option<Vec<InputId>> {
    if state.turn_open {
        return None;
    }
    let crashing = state
        .held
        .as_ref()
        .is_some_and(|hold| hold.cause == HoldCause::Bug);
    if !(state.approvals.open.is_empty() || crashing) {
        // Its calls are answered in a turn, also in one of a held pod.
        return Some(Vec::new());
    }
    if state.held.is_some() {
        return None;
    }
    let waiting = || state.queued.iter().map(|waiting| waiting.input);
    // A command of a person and a call of a client have a turn of their own.
    let until_command = || {
        state
            .queued
            .iter()
            .take_while(|waiting| !waiting.is_call())
            .map(|waiting| waiting.input)
    };
    match rule {
        TakeRule::Stay if is_owed(state) => return Some(Vec::new()),
        TakeRule::Run { goes_on: true, .. } => return Some(Vec::new()),
        TakeRule::Run { opened_at, .. } if waiting().all(|input| input <= opened_at) => {
            return None;
        }
        TakeRule::Run { opened_at, .. } if until_command().any(|input| input <= opened_at) => {
            return Some(until_command().take(MAX_QUEUED).collect());
        }
        TakeRule::Stay | TakeRule::Run { .. } => {}
    }
    first(&state.queued).map(|input| vec![input])
}

/// The steered inputs, for the next step of the running turn.
pub(super) fn joining(queue: &InputQueue) -> impl Iterator<Item = &QueuedInput> {
    queue.iter().filter(|waiting| waiting.mode.steers())
}

/// What goes on with the turn before comes first, then what was meant for it.
fn first(queue: &InputQueue) -> Option<InputId> {
    let going_on = queue.iter().filter(|waiting| waiting.again.is_some());
    going_on
        .chain(joining(queue))
        .chain(queue.iter())
        .map(|waiting| waiting.input)
        .next()
}

/// Whether a turn without an input is owed: interrupted work goes on before anything else. A turn with an input delivers
/// notifications, too, so they alone begin one only if no input waits.
fn is_owed(state: &SessionState) -> bool {
    let woken = state.queued.is_empty() && state.notices.values().any(|notice| notice.wake);
    state.is_interrupted() || state.is_resumed_at_limit() || woken
}

#[cfg(test)]
mod tests;
