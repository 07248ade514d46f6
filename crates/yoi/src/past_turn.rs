//! The end of a turn that is over, read from the journal.

use llm_worker::Outcome;
use pod::control::TurnEnd;
use pod::record::{InputId, Record};
use pod::session::fold::SessionState;
use pod::session::restore::decode;
use pod::session::spent::Spent;
use session_store::Reader;
use std::path::Path;
use std::sync::Arc;

/// The end of the turn that took an input, or of the newest one that goes on with it; none if there is none, or the journal
/// cannot be read.
pub(crate) fn past_end(dir: &Path, input: InputId) -> Option<TurnEnd> {
    let mut state = SessionState::default();
    let mut taken = false;
    let mut is_call = false;
    let mut result = None;
    let mut end = None::<TurnEnd>;
    for frame in Reader::open(dir).ok()?.frames() {
        let record = decode(&frame.ok()?).ok()?;
        if taken && matches!(record, Record::TurnStarted(_)) && !state.is_interrupted() {
            break;
        }
        state.apply(&record).ok()?;
        if let Record::InputQueued(queued) = &record
            && queued.input == input
        {
            is_call = queued.run || queued.call.is_some();
        }
        taken |= matches!(&record, Record::InputConsumed(consumed) if consumed.input == input);
        // Gates judge it behind its end.
        if let Some(end) = &mut end {
            end.shortfall = state.shortfall;
        }
        if let Record::ToolFinished(finished) = &record
            && taken
        {
            result = Some(finished.clone());
        }
        if let Record::TurnFinished(finished) = record
            && taken
        {
            let Spent {
                requests,
                usage,
                cost,
                wall_us: _,
            } = state.spent().since(state.turn_began);
            // One that waits for a person goes on in the next.
            end = (finished.outcome != Outcome::Waiting).then(|| TurnEnd {
                outcome: finished.outcome,
                answer: state.last_answer.clone(),
                refused: state.refused.clone(),
                shortfall: state.shortfall,
                steps: requests,
                usage,
                cost,
                paused: None,
                held: None,
                result: result.take().filter(|_| is_call).map(Arc::new),
            });
        }
    }
    end
}
