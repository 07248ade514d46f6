//! The end of a turn that is over, read from the journal.

use llm_worker::Outcome;
use pod::control::TurnEnd;
use pod::record::{InputId, Record};
use pod::session::fold::SessionState;
use pod::session::restore::decode;
use pod::session::spent::Spent;
use session_store::Reader;
use std::path::Path;

/// The end of the turn that took an input; none if there is none, or the journal cannot be read.
pub(crate) fn past_end(dir: &Path, input: InputId) -> Option<TurnEnd> {
    let (mut state, mut taken) = (SessionState::default(), false);
    for frame in Reader::open(dir).ok()?.frames() {
        let record = decode(&frame.ok()?).ok()?;
        state.apply(&record).ok()?;
        taken |= matches!(&record, Record::InputConsumed(consumed) if consumed.input == input);
        // One that waits for a person goes on in the next.
        if let Record::TurnFinished(finished) = record
            && taken
            && finished.outcome != Outcome::Waiting
        {
            let Spent { requests, usage, cost, wall_us: _ } = state.spent().since(state.turn_began);
            return Some(TurnEnd {
                outcome: finished.outcome,
                answer: state.last_answer,
                refused: state.refused,
                shortfall: state.shortfall,
                steps: requests,
                usage,
                cost,
                paused: None,
                held: None,
            });
        }
    }
    None
}
