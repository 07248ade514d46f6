//! The answer under way, from deltas. Its records replace it.

use protocol::event::{DeltaEvent, DeltaPart};
use protocol::record::RecordBody;

/// Bytes of a live text that are kept at least, once there are more than twice as many: the newest.
const MAX_LIVE: usize = 512 << 10;

/// Tool calls of one answer that are kept, and the characters of a tool's name.
const MAX_CALLS: usize = 256;
const MAX_NAME: usize = 128;

/// The part of an answer that arrived and is not durable yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveAnswer {
    pub turn: u64,
    /// The number of the request.
    pub request: u64,
    pub text: String,
    pub reasoning: String,
    /// The tools of the calls that the model has started, in order.
    pub calls: Vec<String>,
    /// The request is sent again; nothing of the new attempt has arrived.
    pub retry: Option<RetryNotice>,
    /// A part is missing: before the rest or within it.
    pub incomplete: bool,
}

/// Why a request is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryNotice {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    pub delay_ms: u64,
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Live {
    answer: Option<LiveAnswer>,
    /// The newest request whose record was seen.
    request: u64,
    /// The newest request whose answer is in records.
    answered: u64,
    /// The newest turn whose end was seen.
    ended: u64,
    /// Deltas of the answer under way are missing.
    missed: bool,
}

impl Live {
    pub(super) fn answer(&self) -> Option<&LiveAnswer> {
        self.answer.as_ref()
    }

    /// Takes a delta, unless its answer is in records already or a newer one is under way.
    pub(super) fn take(&mut self, delta: &DeltaEvent) {
        let DeltaEvent {
            turn,
            request,
            part,
        } = delta;
        if *request <= self.answered || *turn <= self.ended {
            return;
        }
        if self
            .answer
            .as_ref()
            .is_none_or(|answer| answer.request < *request)
        {
            let fresh = LiveAnswer {
                turn: *turn,
                request: *request,
                incomplete: self.missed,
                ..LiveAnswer::default()
            };
            self.answer = Some(fresh);
        }
        let Some(answer) = self
            .answer
            .as_mut()
            .filter(|answer| answer.request == *request)
        else {
            return;
        };
        match part {
            DeltaPart::Text { text } => answer.incomplete |= append(&mut answer.text, text),
            DeltaPart::Reasoning { text } => {
                answer.incomplete |= append(&mut answer.reasoning, text)
            }
            DeltaPart::CallStarted { name, .. } if answer.calls.len() < MAX_CALLS => {
                answer.calls.push(name.chars().take(MAX_NAME).collect());
            }
            DeltaPart::CallStarted { .. } => answer.incomplete = true,
            DeltaPart::Retrying {
                attempt,
                delay_ms,
                why,
            } => {
                let retry = Some(RetryNotice {
                    attempt: *attempt,
                    delay_ms: *delay_ms,
                    why: why.clone(),
                });
                (self.missed, *answer) = (
                    false,
                    LiveAnswer {
                        turn: *turn,
                        request: *request,
                        retry,
                        ..LiveAnswer::default()
                    },
                );
                return;
            }
            // The output of a call is no part of the answer.
            DeltaPart::Output { .. } | DeltaPart::Unknown => return,
        }
        answer.retry = None;
    }

    /// Deltas were dropped on their way.
    pub(super) fn missed(&mut self) {
        self.missed = true;
        if let Some(answer) = &mut self.answer {
            answer.incomplete = true;
        }
    }

    /// The connection was lost, and deltas with it.
    pub(super) fn lost(&mut self) {
        (self.answer, self.missed) = (None, true);
    }

    pub(super) fn fold(&mut self, body: &RecordBody) {
        match body {
            RecordBody::Request(request) => self.request = self.request.max(request.number),
            RecordBody::ItemAdded(_) | RecordBody::Response(_) => {
                self.answered = self.request;
                // The number of a request before the first page is not known.
                self.over(|answer, answered| answered == 0 || answer.request <= answered);
            }
            RecordBody::TurnFinished(finished) => {
                self.ended = self.ended.max(finished.turn);
                self.over(|answer, _| answer.turn <= finished.turn);
            }
            _ => {}
        }
    }

    fn over(&mut self, is_over: impl Fn(&LiveAnswer, u64) -> bool) {
        let answered = self.answered;
        if self
            .answer
            .as_ref()
            .is_none_or(|answer| is_over(answer, answered))
        {
            (self.answer, self.missed) = (None, false);
        }
    }
}

/// Appends a part; returns whether the beginning was dropped.
fn append(text: &mut String, part: &str) -> bool {
    text.push_str(part);
    let long = text.len() > 2 * MAX_LIVE;
    if long {
        text.drain(..text.floor_char_boundary(text.len() - MAX_LIVE));
    }
    long
}
