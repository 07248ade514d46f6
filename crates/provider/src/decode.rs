//! The interface of vendors' decoders: bytes in, events out, whatever the fragmentation. Does not depend on any vendor.

use crate::sse::{MAX_EVENT, SseEvent, TooLong};
use crate::vendor_error::VendorError;
use llm_worker::ModelEvent;
use serde_json::error::Category;

/// Decodes the answer to one request, while its bytes arrive.
pub(crate) trait Decode: Default + Send {
    /// Decodes some bytes.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// Whether the provider reported the end of the answer.
    fn done(&self) -> bool;

    /// Whether the answer is one JSON document, whose end is recognisable.
    fn one_document(&self) -> bool;

    /// Called when the body ended properly, or the provider reported the end: yields the stop event, or the error if
    /// there is none.
    fn finish(self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// Decodes one event of a stream.
    fn event(&mut self, event: SseEvent, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// Decodes events up to the last one of the answer.
    fn events(&mut self, events: Vec<SseEvent>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        for event in events {
            if self.done() {
                return Ok(());
            }
            self.event(event, out)?;
        }
        Ok(())
    }

    /// As [`Self::events`], of a stream that ended. An event without its blank line may be incomplete: if it is not
    /// JSON, the stream was cut, not malformed.
    fn last_events(&mut self, events: Vec<SseEvent>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        self.events(events, out).map_err(|error| match error {
            DecodeError::Malformed(_) => DecodeError::Cut,
            other => other,
        })
    }
}

/// The error of decoding an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum DecodeError {
    /// The provider reported an error instead of an answer.
    Vendor(VendorError),
    /// The bytes are not an answer of this API, with the reason.
    Malformed(String),
    /// The stream ended before the answer was complete.
    Cut,
}

impl DecodeError {
    /// Bytes that are no JSON, or JSON of another kind, which `what` says.
    pub(crate) fn of_json(what: &str, why: &serde_json::Error) -> Self {
        Self::Malformed(match why.classify() {
            Category::Data => format!("{what}: {why}"),
            Category::Io | Category::Syntax | Category::Eof => {
                format!("invalid JSON (line {}, column {})", why.line(), why.column())
            }
        })
    }
}

impl From<TooLong> for DecodeError {
    fn from(_: TooLong) -> Self {
        Self::Malformed(format!("a line or event over {} MiB", MAX_EVENT >> 20))
    }
}

/// Adds an event of this text, unless it is empty.
pub(crate) fn push_text(words: String, event: fn(String) -> ModelEvent, out: &mut Vec<ModelEvent>) {
    out.extend(Some(words).filter(|words| !words.is_empty()).map(event));
}
