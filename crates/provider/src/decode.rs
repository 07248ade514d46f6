//! The interface of vendors' decoders: bytes in, events out, whatever the fragmentation. Does not depend on any vendor.

use crate::sse::{MAX_EVENT, Sse, SseEvent, TooLong};
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

    /// The events that were skipped so far.
    fn skipped(&mut self) -> &mut Skipped;

    /// Decodes events up to the last one of the answer. An event that cannot be read is skipped, up to
    /// [`Skipped::MOST`] in a row.
    fn events(&mut self, events: Vec<SseEvent>, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        for event in events {
            if self.done() {
                return Ok(());
            }
            // A comment where a comment cannot be: a sign of life of some gateways.
            if event.data.starts_with(b":") {
                continue;
            }
            match self.event(event, out) {
                Err(DecodeError::Malformed(why)) => self.skipped().add(why)?,
                read => {
                    read?;
                    self.skipped().row = 0;
                }
            }
        }
        Ok(())
    }

    /// As [`Self::events`], of the last ones of a stream. An event without its blank line may be incomplete: if it is not
    /// JSON, the stream was cut, not malformed. A body without any event is the provider's words.
    fn last_events(&mut self, sse: Sse, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        if let Some(words) = sse.finish(&mut events)? {
            return Err(DecodeError::Vendor(VendorError::read_bytes(&words)));
        }
        for event in events {
            if self.done() {
                return Ok(());
            }
            self.event(event, out).map_err(|error| match error {
                DecodeError::Malformed(_) => DecodeError::Cut,
                other => other,
            })?;
        }
        Ok(())
    }
}

/// Events of a stream that could not be read.
#[derive(Default)]
pub(crate) struct Skipped {
    count: usize,
    /// How many came one after the other.
    row: usize,
    first: Option<String>,
}

impl Skipped {
    /// More in a row are an error: this is no answer of the API.
    const MOST: usize = 16;

    fn add(&mut self, why: String) -> Result<(), DecodeError> {
        if self.row >= Self::MOST {
            return Err(DecodeError::Malformed(why));
        }
        self.row += 1;
        self.count += 1;
        self.first.get_or_insert(why);
        Ok(())
    }

    /// The error of an answer without an end.
    pub(crate) fn cut(&mut self) -> DecodeError {
        self.first.take().map_or(DecodeError::Cut, DecodeError::Malformed)
    }

    /// What people are told about a complete answer.
    pub(crate) fn notice(&self) -> Option<ModelEvent> {
        let why = self.first.as_ref()?;
        let lines = if self.count == 1 { "1 line" } else { &format!("{} lines", self.count) };
        Some(ModelEvent::Notice(format!(
            "the answer of the model has {lines} that could not be read and were skipped: {why}"
        )))
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
    /// Text that is no JSON object of the API, which `what` names: an error of the provider in a form of its own, JSON of
    /// another kind, or no JSON.
    pub(crate) fn unreadable(json: &str, what: &str) -> Self {
        let value = serde_json::from_str(json);
        if let Some(error) = value.as_ref().ok().and_then(VendorError::in_document) {
            return Self::Vendor(error);
        }
        Self::Malformed(match value {
            Ok(_) => what.to_owned(),
            Err(why) if why.classify() == Category::Data => format!("{what}: {why}"),
            Err(why) => format!("invalid JSON (line {}, column {})", why.line(), why.column()),
        })
    }
}

impl From<TooLong> for DecodeError {
    fn from(_: TooLong) -> Self {
        Self::Malformed(format!("a line or event over {} MiB", MAX_EVENT >> 20))
    }
}

/// Adds an event of this text, unless it is empty.
pub(crate) fn push_text(words: String, event: impl FnOnce(String) -> ModelEvent, out: &mut Vec<ModelEvent>) {
    out.extend(Some(words).filter(|words| !words.is_empty()).map(event));
}
