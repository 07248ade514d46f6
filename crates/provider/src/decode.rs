//! The interface of vendors' decoders: bytes in, events out, whatever the fragmentation. Does not depend on any vendor.

use crate::lenient::Object;
use crate::vendor_error::VendorError;
use http_client::sse::{BOM, MAX_EVENT, Sse, SseEvent, TooLong};
use llm_worker::ModelEvent;
use serde_json::error::Category;

/// Decodes the answer to one request, while its bytes arrive.
pub(crate) trait Decode: Default + Send {
    fn body(&mut self) -> &mut Body;

    /// Decodes an answer that is one JSON document.
    fn document(&mut self, json: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// Decodes some bytes.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        let mut events = Vec::new();
        let read = self.body().push(bytes, &mut events);
        self.events(events, out)?;
        read
    }

    /// Decodes what is left at the end of the body.
    fn end_body(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError> {
        match std::mem::take(self.body()) {
            Body::Unknown(_) => Ok(()),
            Body::Stream(sse) => self.last_events(sse, out),
            Body::Whole(held) => self.document(&held, out),
        }
    }

    /// Whether the provider reported the end of the answer.
    fn done(&self) -> bool;

    /// Whether the answer is one JSON document, whose end is recognisable.
    fn one_document(&mut self) -> bool {
        matches!(self.body(), Body::Whole(_))
    }

    /// Called when the body ended properly, or the provider reported the end: yields the stop event, or the error if
    /// there is none.
    fn finish(self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// Decodes one event of a stream.
    fn event(&mut self, event: SseEvent, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// The events that were skipped so far.
    fn skipped(&mut self) -> &mut Skipped;

    /// Decodes events up to the last one of the answer. An event that cannot be read is skipped, up to
    /// [`Skipped::MOST`] in a row.
    fn events(
        &mut self,
        events: Vec<SseEvent>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), DecodeError> {
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

/// The longest answer that is not streamed, in bytes.
const MAX_WHOLE: usize = 16 << 20;

/// How a body is read; its first byte decides.
pub(crate) enum Body {
    Unknown(Vec<u8>),
    Stream(Sse),
    /// One JSON document, of a server that does not stream.
    Whole(Vec<u8>),
}

impl Default for Body {
    fn default() -> Self {
        Self::Unknown(Vec::new())
    }
}

impl Body {
    fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), DecodeError> {
        match self {
            Self::Unknown(held) => {
                held.extend_from_slice(bytes);
                let begin = held.strip_prefix(BOM).unwrap_or(held);
                let Some(first) = begin.iter().find(|byte| !byte.is_ascii_whitespace()) else {
                    return Ok(());
                };
                // A part of a byte-order mark; the rest has not arrived yet.
                if BOM.starts_with(&[*first]) && held.len() < BOM.len() {
                    return Ok(());
                }
                let whole = matches!(first, b'{' | b'[');
                let begin = begin.to_vec();
                *self = if whole {
                    Self::Whole(Vec::new())
                } else {
                    Self::Stream(Sse::default())
                };
                self.push(&begin, events)
            }
            Self::Stream(sse) => Ok(sse.push(bytes, events)?),
            Self::Whole(held) if held.len() + bytes.len() > MAX_WHOLE => {
                Err(DecodeError::Malformed(format!(
                    "an answer over {} MiB in one piece",
                    MAX_WHOLE >> 20
                )))
            }
            Self::Whole(held) => {
                held.extend_from_slice(bytes);
                Ok(())
            }
        }
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
        self.first
            .take()
            .map_or(DecodeError::Cut, DecodeError::Malformed)
    }

    /// What people are told about a complete answer.
    pub(crate) fn notice(&self) -> Option<ModelEvent> {
        let why = self.first.as_ref()?;
        let lines = if self.count == 1 {
            "1 line"
        } else {
            &format!("{} lines", self.count)
        };
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
    /// The answer is of another API: its name, and the `api` that reads it, if there is one.
    OtherApi(&'static str, Option<&'static str>),
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
            Err(why) => format!(
                "invalid JSON (line {}, column {})",
                why.line(),
                why.column()
            ),
        })
    }
}

/// Refuses a document of another API than the one that is read.
pub(crate) fn refuse_other_api(document: &Object<'_>) -> Result<(), DecodeError> {
    let has = |key| document.raw(key).is_some();
    let kind = document.word("type");
    let (name, api) = match kind.as_str() {
        _ if has("choices") => ("Chat Completions", Some("openai-chat")),
        "message_start" => ("the Messages API", Some("anthropic")),
        kind if kind.starts_with("content_block_") => ("the Messages API", Some("anthropic")),
        "message" if has("content") => ("the Messages API", Some("anthropic")),
        kind if kind.starts_with("response.") => ("the Responses API", Some("openai-responses")),
        _ if document.word("object") == "response" => {
            ("the Responses API", Some("openai-responses"))
        }
        _ if has("candidates") => ("Gemini's own API", Some("gemini")),
        _ if has("done") && (has("message") || has("response")) => ("Ollama's own API", None),
        _unknown => return Ok(()),
    };
    Err(DecodeError::OtherApi(name, api))
}

impl From<TooLong> for DecodeError {
    fn from(_: TooLong) -> Self {
        Self::Malformed(format!("a line or event over {} MiB", MAX_EVENT >> 20))
    }
}

/// Adds an event of this text, unless it is empty.
pub(crate) fn push_text(
    words: String,
    event: impl FnOnce(String) -> ModelEvent,
    out: &mut Vec<ModelEvent>,
) {
    out.extend(Some(words).filter(|words| !words.is_empty()).map(event));
}
