//! What becomes of an answer's calls: judged, cut off, or stopped with the turn.

use super::answer::Answer;
use super::phase::{Judging, Phase, Standing};
use super::{Acknowledged, Turn};
use crate::effect::{Fact, Outcome, Verdict};
use crate::item::{CallId, ResultStatus, ToolOutcome};
use crate::model::{ErrorKind, StopReason};
use std::collections::VecDeque;

const CUT: &str =
    "not run: the answer was cut by the output limit, so no call of it was run; call again with less at once";
const DECLINED: &str = "not run: the answer it belongs to is a refusal";
pub(super) const CANCELLED: &str = "not run: the turn was cancelled";

impl<A: Acknowledged> Turn<A> {
    /// A whole answer. With calls they are judged, unless the answer was cut or refused.
    pub(super) fn answered(&mut self, answer: Answer, stop: StopReason) {
        let outcome = answer.outcome(&stop);
        let has_calls = answer.has_calls();
        let cut = match stop {
            StopReason::MaxTokens => Some((ResultStatus::Error, CUT)),
            StopReason::Refusal => Some((ResultStatus::Refused, DECLINED)),
            StopReason::EndTurn | StopReason::ToolUse | StopReason::Paused | StopReason::Other(_) => None,
        };
        let goes_on = stop == StopReason::Paused && outcome == Outcome::Done;
        let Some(judging) = answer.into_judging(stop, self.history.counters().calls, self.history.surface()) else {
            let message = format!("the session has used all of its {} tool call numbers", CallId::MAX);
            let help = Some("start a new session".to_owned());
            self.end(Vec::new(), Outcome::ModelFailed { kind: ErrorKind::Exhausted, message, help });
            return;
        };
        if !has_calls && goes_on {
            // The same as behind calls that have their results, but there are none.
            self.write(judging.answer);
            self.phase = Phase::Starting(VecDeque::new());
            return;
        }
        if !has_calls {
            return self.end(judging.answer, outcome);
        }
        let Some((status, why)) = cut else {
            self.phase = Phase::Judging(judging);
            return;
        };
        let mut facts = judging.answer;
        facts.extend(judging.calls.iter().map(|call| finished(call.id, status, why)));
        if outcome == Outcome::Refused {
            self.end(facts, outcome);
        } else {
            self.write(facts);
            self.phase = Phase::Starting(VecDeque::new());
        }
    }

    /// Every call is judged: the answer, the verdicts, the starts and the results of what does not run, as one
    /// commit. When one verdict aborts the turn, nothing starts and this is the last commit.
    pub(super) fn start_calls(&mut self, judging: Judging) {
        let abort = judging.calls.iter().find_map(|call| match &call.standing {
            Standing::Judged(Verdict::Abort { reason }) => Some(reason.clone()),
            Standing::Judged(Verdict::Allow | Verdict::Refuse { .. } | Verdict::Invalid { .. })
            | Standing::Proposed
            | Standing::Asked => None,
        });
        let aborted = abort.as_ref().map(|reason| format!("not run: the turn was ended: {reason}"));
        let (facts, allowed) = rule(judging, aborted.as_deref());
        match abort {
            Some(reason) => self.end(facts, Outcome::Aborted { reason }),
            None => {
                self.write(facts);
                self.phase = Phase::Starting(allowed);
            }
        }
    }
}

/// The facts of an answer, and the calls that may start. With `halt` none does: allowed and unjudged calls get a
/// cancelled result saying so.
pub(super) fn rule(judging: Judging, halt: Option<&str>) -> (Vec<Fact>, VecDeque<CallId>) {
    let (mut verdicts, mut starts, mut results) = (Vec::new(), Vec::new(), Vec::new());
    let mut allowed = VecDeque::new();
    for call in judging.calls {
        let id = call.id;
        let verdict = match call.standing {
            Standing::Judged(verdict) => Some(verdict),
            Standing::Proposed | Standing::Asked => None,
        };
        match (&verdict, halt) {
            (Some(Verdict::Refuse { reason } | Verdict::Abort { reason }), _) => {
                results.push(finished(id, ResultStatus::Refused, reason));
            }
            (Some(Verdict::Invalid { problem }), _) => results.push(finished(id, ResultStatus::Error, problem)),
            (Some(Verdict::Allow) | None, Some(why)) => results.push(finished(id, ResultStatus::Cancelled, why)),
            (Some(Verdict::Allow), None) => {
                starts.push(Fact::Started { call: id });
                allowed.push_back(id);
            }
            (None, None) => results.push(cancelled(id)),
        }
        verdicts.extend(verdict.map(|verdict| Fact::Judged { call: id, verdict }));
    }
    let mut facts = judging.answer;
    facts.append(&mut verdicts);
    facts.append(&mut starts);
    facts.append(&mut results);
    (facts, allowed)
}

/// The result of a call that a cancel kept from running.
pub(super) fn cancelled(id: CallId) -> Fact {
    finished(id, ResultStatus::Cancelled, CANCELLED)
}

fn finished(call: CallId, status: ResultStatus, words: &str) -> Fact {
    Fact::Finished { call, outcome: ToolOutcome::of(status, words) }
}
