//! The answer under way: what of it an editor was told as it arrived. The records of the answer add the rest. Text that does
//! not continue what was told, because parts were lost or the request was sent again, is told whole in a new message.

use crate::update::chunk;
use protocol::event::DeltaPart;
use serde_json::Value;
use std::collections::VecDeque;

const TEXT: &str = "agent_message_chunk";
const THOUGHT: &str = "agent_thought_chunk";

/// Bytes of an answer that are told before its records.
const MAX_STREAMED: usize = 4 << 20;

/// The answer to the newest request.
#[derive(Default)]
pub(super) struct Answer {
    /// The newest request whose record was seen; 0 before.
    request: u64,
    /// Messages so far.
    messages: u64,
    /// What was told and has no record yet, in order.
    told: VecDeque<Told>,
    bytes: usize,
    /// Parts are missing: the rest is told from the records.
    is_broken: bool,
}

/// A part of an answer that was told.
struct Told {
    kind: &'static str,
    message: String,
    text: String,
    /// Later text of the same kind belongs to another item.
    is_over: bool,
}

impl Answer {
    /// A request is about to be sent.
    pub(super) fn begin(&mut self, request: u64) {
        *self = Self {
            request,
            ..Self::default()
        };
    }

    /// Parts were lost, or some may have been told to nobody.
    pub(super) fn missed(&mut self) {
        self.is_broken = true;
    }

    /// Takes a part as it arrives.
    pub(super) fn part(&mut self, request: u64, part: &DeltaPart) -> Option<Value> {
        if request != self.request {
            return None;
        }
        match part {
            DeltaPart::Text { text } => self.stream(TEXT, text),
            DeltaPart::Reasoning { text } => self.stream(THOUGHT, text),
            DeltaPart::CallStarted { .. } => {
                self.call();
                None
            }
            DeltaPart::Retrying {
                attempt,
                delay_ms,
                why,
            } => self.retry(&tui::transcript::retrying(why, *attempt, *delay_ms)),
            DeltaPart::Output { .. } | DeltaPart::Unknown => None,
        }
    }

    fn stream(&mut self, kind: &'static str, text: &str) -> Option<Value> {
        self.bytes = self.bytes.saturating_add(text.len());
        self.is_broken |= self.bytes > MAX_STREAMED;
        if self.is_broken || text.is_empty() {
            return None;
        }
        let continues = |told: &Told| told.kind == kind && !told.is_over;
        if !self.told.back().is_some_and(continues) {
            self.call();
            let message = self.message();
            self.told.push_back(Told {
                kind,
                message,
                text: String::new(),
                is_over: false,
            });
        }
        let told = self.told.back_mut()?;
        told.text.push_str(text);
        Some(chunk(kind, text, &told.message))
    }

    fn message(&mut self) -> String {
        self.messages += 1;
        format!("request-{}-{}", self.request, self.messages)
    }

    /// What was told is void. Says so, if there was something.
    fn retry(&mut self, why: &str) -> Option<Value> {
        let void = self.told.drain(..).any(|told| told.kind == TEXT);
        self.bytes = 0;
        self.is_broken = false;
        void.then(|| {
            let message = self.message();
            chunk(
                TEXT,
                &format!("\n\n({why}; the answer begins again)\n\n"),
                &message,
            )
        })
    }

    /// A call stands between two texts.
    pub(super) fn call(&mut self) {
        if let Some(told) = self.told.back_mut() {
            told.is_over = true;
        }
    }

    /// Takes the record of a text.
    pub(super) fn text(&mut self, text: &str) -> Vec<Value> {
        self.item(TEXT, text)
    }

    /// Takes the record of reasoning, which may have no text.
    pub(super) fn reasoning(&mut self, text: &str) -> Vec<Value> {
        self.item(THOUGHT, text)
    }

    fn item(&mut self, kind: &'static str, text: &str) -> Vec<Value> {
        // The answer is complete, so nothing of it arrives any more.
        self.is_broken = true;
        let at = self.told.iter().position(|told| told.kind == kind);
        let told = at.and_then(|at| self.told.remove(at));
        let (rest, message) = match told {
            Some(told) => match text.strip_prefix(&told.text) {
                Some(rest) => (rest, told.message),
                None => (text, self.message()),
            },
            None => (text, self.message()),
        };
        let is_told = !rest.is_empty();
        is_told
            .then(|| chunk(kind, rest, &message))
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> DeltaPart {
        DeltaPart::Text {
            text: text.to_owned(),
        }
    }

    fn said(told: impl IntoIterator<Item = Value>) -> Vec<(String, String)> {
        let of = |value: &Value| value.as_str().unwrap().to_owned();
        told.into_iter()
            .map(|chunk| (of(&chunk["content"]["text"]), of(&chunk["messageId"])))
            .collect()
    }

    fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(text, id): &(&str, &str)| ((*text).to_owned(), (*id).to_owned());
        wanted.iter().map(owned).collect()
    }

    #[test]
    fn a_record_adds_what_was_not_told_of_its_text() {
        let mut answer = Answer::default();
        answer.begin(3);
        let mut told: Vec<Value> = ["Hel", "lo"]
            .iter()
            .filter_map(|part| answer.part(3, &text(part)))
            .collect();
        told.extend(answer.part(
            3,
            &DeltaPart::CallStarted {
                index: 0,
                name: "Read".to_owned(),
            },
        ));
        told.extend(answer.part(3, &text("more")));
        told.extend(answer.text("Hello, you"));
        told.extend(answer.text("more"));
        let wanted = [
            ("Hel", "request-3-1"),
            ("lo", "request-3-1"),
            ("more", "request-3-2"),
            (", you", "request-3-1"),
        ];
        assert_eq!(said(told), pairs(&wanted));
    }

    #[test]
    fn what_was_lost_is_told_from_the_record() {
        let mut answer = Answer::default();
        answer.begin(1);
        let mut told: Vec<Value> = answer.part(1, &text("one ")).into_iter().collect();
        answer.missed();
        told.extend(answer.part(1, &text("three")));
        // Of another request, whose record was not seen.
        told.extend(answer.part(2, &text("x")));
        told.extend(answer.text("one two three"));
        let wanted = [("one ", "request-1-1"), ("two three", "request-1-1")];
        assert_eq!(said(told), pairs(&wanted));
    }

    #[test]
    fn a_request_that_is_sent_again_begins_a_new_message() {
        let mut answer = Answer::default();
        answer.begin(1);
        let retrying = DeltaPart::Retrying {
            attempt: 1,
            delay_ms: 0,
            why: "cut".to_owned(),
        };
        assert_eq!(answer.part(1, &retrying), None);
        let mut told: Vec<Value> = answer.part(1, &text("Hel")).into_iter().collect();
        told.extend(answer.part(1, &retrying));
        told.extend(answer.part(1, &text("Good")));
        told.extend(answer.text("Good day"));
        let said = said(told);
        assert!(said[1].0.contains("the answer begins again"), "{said:?}");
        assert_eq!(said[2].1, "request-1-3");
        assert_eq!(said[3], (" day".to_owned(), "request-1-3".to_owned()));
    }

    #[test]
    fn another_text_than_was_told_is_told_whole() {
        let mut answer = Answer::default();
        answer.begin(1);
        answer.part(1, &text("the key is abc"));
        assert_eq!(
            said(answer.text("the key is [hidden]")),
            pairs(&[("the key is [hidden]", "request-1-2")])
        );
        assert!(answer.reasoning("").is_empty());
    }
}
