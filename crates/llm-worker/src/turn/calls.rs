//! Handling an answer's calls: judging them, or ending them with a cut answer or a stopped turn.

use super::answer::{Answer, called};
use super::phase::{CallState, Judging, Phase, Proposed, Review};
use super::{Payload, Turn};
use crate::ErrorKind;
use crate::effect::{CallVerdict, Fact, NewCall, Outcome};
use crate::item::{CallId, ResultStatus, ToolOutcome};
use crate::model::StopReason;

const CUT: &str = "not run: the answer reached the output limit, so none of its calls was run; call again with less at once";
const DECLINED: &str = "not run: the answer it belongs to is a refusal";
pub(super) const CANCELLED: &str = "not run: the turn was cancelled";

impl<P: Payload> Turn<P> {
    /// Handles a complete answer. Its calls are judged, unless the answer was cut or refused.
    pub(super) fn answered(&mut self, answer: Answer, stop: StopReason) {
        let outcome = answer.outcome(&stop);
        let has_calls = answer.has_calls();
        let cut = match stop {
            StopReason::MaxTokens => Some((ResultStatus::Error, CUT)),
            StopReason::Refusal => Some((ResultStatus::Refused, DECLINED)),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::Paused
            | StopReason::Other(_) => None,
        };
        let goes_on = stop == StopReason::Paused && outcome == Outcome::Done;
        let review = self.review.take();
        let Some(mut judging) =
            answer.into_judging(stop, self.history.counters().calls, self.history.surface())
        else {
            return self.end(Vec::new(), no_numbers());
        };
        if let Some(Review {
            authorization,
            halt,
        }) = review
        {
            judging.answer.push(Fact::Judged(authorization));
            if let Some(reason) = halt {
                let words = format!("not run: the turn was ended: {reason}");
                let mut facts = judging.answer;
                facts.extend(
                    judging
                        .calls
                        .iter()
                        .map(|call| finished(call.id, ResultStatus::Cancelled, &words)),
                );
                return self.end(facts, Outcome::Aborted { reason });
            }
        }
        if !has_calls && goes_on {
            // Continues like after calls that have their results.
            self.prepare(judging.answer);
            self.phase = Phase::Starting;
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
        facts.extend(
            judging
                .calls
                .iter()
                .map(|call| finished(call.id, status, why)),
        );
        if outcome == Outcome::Refused {
            self.end(facts, outcome);
        } else {
            self.prepare(facts);
            self.phase = Phase::Starting;
        }
    }

    /// Has a call judged that no model proposed; it and these facts are one commit.
    pub(super) fn supply(&mut self, mut facts: Vec<Fact<P>>, NewCall { name, arguments }: NewCall) {
        let Some(id) = CallId::new(self.history.counters().calls + 1) else {
            return self.end(facts, no_numbers());
        };
        facts.push(Fact::Item(called(id, &name, &arguments)));
        let calls = vec![Proposed {
            id,
            name,
            arguments,
            state: CallState::Proposed,
        }];
        self.phase = Phase::Judging(Judging {
            answer: facts,
            calls,
        });
    }

    /// Called when every call is judged. Commits the answer, the verdicts, the starts and the results of calls that do
    /// not run, as one commit. When one verdict aborts the turn, nothing starts and this is the last commit.
    pub(super) fn start_calls(&mut self, judging: Judging<P>) {
        let abort = judging.calls.iter().find_map(|call| {
            let CallState::Judged(CallVerdict::Abort { reason }, _) = &call.state else {
                return None;
            };
            Some(reason.clone())
        });
        let aborted = abort
            .as_ref()
            .map(|reason| format!("not run: the turn was ended: {reason}"));
        let facts = answer_facts(judging, aborted.as_deref());
        match abort {
            Some(reason) => self.end(facts, Outcome::Aborted { reason }),
            None => {
                self.prepare(facts);
                self.phase = Phase::Starting;
            }
        }
    }
}

fn no_numbers() -> Outcome {
    let message = format!(
        "the pod has used all of its {} tool call numbers",
        CallId::MAX
    );
    Outcome::ModelFailed {
        kind: ErrorKind::Exhausted,
        message,
        help: Some("use a new pod".to_owned()),
    }
}

/// The facts of an answer whose calls are judged. If the turn ends with it, `halt` is the result of its calls that are
/// allowed or not judged: none of them starts.
pub(super) fn answer_facts<P: Payload>(judging: Judging<P>, halt: Option<&str>) -> Vec<Fact<P>> {
    let mut facts = judging.answer;
    let mut starts = Vec::new();
    let mut results = Vec::new();
    let mut parked = Vec::new();
    for Proposed { id, state, .. } in judging.calls {
        let verdict = match state {
            CallState::Proposed | CallState::Asked => None,
            CallState::Judged(verdict, authorization) => {
                facts.push(Fact::Judged(authorization));
                Some(verdict)
            }
        };
        match verdict {
            Some(CallVerdict::Allow(start)) if halt.is_none() => {
                starts.push(Fact::Started { call: id, start })
            }
            Some(CallVerdict::Ask(question)) if halt.is_none() => {
                parked.push(Fact::Parked { call: id, question })
            }
            Some(CallVerdict::Allow(_) | CallVerdict::Ask(_)) | None => {
                results.push(finished(
                    id,
                    ResultStatus::Cancelled,
                    halt.unwrap_or(CANCELLED),
                ));
            }
            Some(CallVerdict::Refuse { reason } | CallVerdict::Abort { reason }) => {
                results.push(finished(id, ResultStatus::Refused, &reason));
            }
            Some(CallVerdict::Invalid { problem }) => {
                results.push(finished(id, ResultStatus::Error, &problem))
            }
        }
    }
    facts.append(&mut parked);
    facts.append(&mut starts);
    facts.append(&mut results);
    facts
}

/// The result of a call whose start is durable, and that an early end kept from running.
pub(super) fn cancelled<P: Payload>((call, start): (CallId, P::Start)) -> Fact<P> {
    let outcome = ToolOutcome::of(ResultStatus::Cancelled, CANCELLED);
    Fact::Finished {
        call,
        outcome,
        ending: Some(start.into()),
    }
}

pub(super) fn finished<P: Payload>(call: CallId, status: ResultStatus, words: &str) -> Fact<P> {
    Fact::Finished {
        call,
        outcome: ToolOutcome::of(status, words),
        ending: None,
    }
}
