//! The interface of vendors' decoders: bytes in, events out, whatever the fragmentation. Knows no vendor.

use crate::sse::{MAX_EVENT, SseEvent, TooLong};
use crate::vendor_error::VendorError;
use llm_worker::ModelEvent;

/// The answer to one request, while its bytes come.
pub(crate) trait Decode: Default + Send {
    /// Takes some bytes.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// Whether the vendor said that nothing follows.
    fn done(&self) -> bool;

    /// Whether the answer is one document, which shows by itself whether it is whole.
    fn one_document(&self) -> bool;

    /// The body came to its proper end, or the vendor said that nothing follows: yields the stop event, or says why
    /// there is none.
    fn finish(self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// Takes one event of a stream.
    fn event(&mut self, event: SseEvent, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// Takes events up to the one behind which nothing follows.
    fn events(&mut self, events: Vec<SseEvent>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        for event in events {
            if self.done() {
                return Ok(());
            }
            self.event(event, out)?;
        }
        Ok(())
    }

    /// As [`Self::events`], of a stream that is over. An event without its blank line may be half of one: not JSON then
    /// means cut, not malformed.
    fn last_events(&mut self, events: Vec<SseEvent>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        self.events(events, out).map_err(|error| match error {
            DecodeError::Malformed(_) => DecodeError::Cut,
            other => other,
        })
    }
}

/// Why bytes did not make an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum DecodeError {
    /// The vendor reported an error where the answer should be.
    Vendor(VendorError),
    /// Not what this API's answers look like; says what.
    Malformed(String),
    /// The stream ended before the answer did.
    Cut,
}

impl From<TooLong> for DecodeError {
    fn from(_: TooLong) -> Self {
        Self::Malformed(format!("a line or event over {} MiB", MAX_EVENT >> 20))
    }
}

/// An event of these words, if there are any.
pub(crate) fn push_text(words: String, event: fn(String) -> ModelEvent, out: &mut Vec<ModelEvent>) {
    out.extend(Some(words).filter(|words| !words.is_empty()).map(event));
}
