//! The items of model-visible history. Does not depend on providers or on the order of items.

use crate::blob::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;

#[cfg(test)]
mod tests;

/// A tool call's number, dense within one session, starting at 1. ForClients as `c00000001`: nine
/// alphanumerics, which every vendor accepts as a call id. A vendor's own id is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallId(u64);

impl CallId {
    /// The highest number that still fits eight digits.
    pub const MAX: u64 = 99_999_999;

    /// The id with this number; `None` for 0 and above [`CallId::MAX`].
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        if number == 0 || number > Self::MAX {
            None
        } else {
            Some(Self(number))
        }
    }

    /// The call's position among all calls of the session, from 1.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{:08}", self.0)
    }
}

/// A call id that is not `c` and eight digits.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a call id; expected c00000001 to c99999999")]
pub struct BadCallId(String);

impl BadCallId {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> crate::outcome::ErrorKind {
        crate::outcome::ErrorKind::FixInput
    }
}

impl TryFrom<String> for CallId {
    type Error = BadCallId;
    fn try_from(text: String) -> Result<Self, BadCallId> {
        let digits = text
            .strip_prefix('c')
            .filter(|d| d.len() == 8 && d.bytes().all(|b| b.is_ascii_digit()));
        digits
            .and_then(|d| d.parse().ok())
            .and_then(Self::new)
            .ok_or(BadCallId(text))
    }
}

impl From<CallId> for String {
    fn from(id: CallId) -> Self {
        id.to_string()
    }
}

/// One piece of history, in the order the model sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// The input of a person or a script.
    User {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A command of a person, in words for the model: the call behind it is that person's.
    Command { text: String },
    /// A note of the host or a feature for the model. `source` is `host` or a feature id.
    System { source: String, text: String },
    /// The model's answer text.
    Assistant { text: String },
    /// The model's reasoning, where a vendor shows it.
    Reasoning {
        /// May be empty when there is a seal.
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<SealedReasoning>,
    },
    /// A tool call, as it is sent back: what the model wrote where that is valid, else as
    /// `llm_worker::sendable_arguments` has it. In older journals it is the model's raw text.
    ToolCall {
        id: CallId,
        /// The tool's name as the model wrote it; need not exist.
        name: String,
        arguments: String,
    },
    /// The result of a call: exactly one per `ToolCall`.
    ToolResult {
        id: CallId,
        #[serde(flatten)]
        outcome: ToolOutcome,
    },
}

/// A provider's signature of reasoning, or the reasoning itself in encrypted form, to be sent back byte for byte. It
/// covers the items before it, so only the model and the surface that it was made for accept it; a projection omits it
/// for any other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedReasoning {
    /// `provider/name` of the model that made it.
    pub model: String,
    /// The generation of the surface it was made on.
    pub generation: u64,
    #[serde(flatten)]
    pub signature: ProviderSignature,
}

/// The provider's part of a [`SealedReasoning`]; only the provider's dialect interprets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderSignature {
    /// The provider's name for it, as in `signature`.
    pub kind: String,
    pub data: String,
}

bodies! {
    /// The result for the model; part of [`ToolFinished`].
    ///
    /// The bounded result of one call, as the model sees it. The host makes it from the tool's output or error.
    ToolOutcome: Eq {
        status: ResultStatus,
        // One line that always stays in the context.
        summary: String,
        // The body; may be empty, may be pruned from the context later.
        content =: String,
        /// The files beside the text.
        attachments =: Vec<Attachment>,
    }
    /// An image or a document beside a text; part of inputs and results.
    ///
    /// The bytes are a blob of the session, so that no record has them. A request has them in base 64, or a line in their
    /// place where its model cannot read the type.
    Attachment: Eq {
        // By the first bytes of the file, whatever its name is.
        media: MediaType,
        // BLAKE3 of the bytes, hex.
        digest: Digest,
        bytes: u64,
        // In pixels; none of a document.
        width ?: u32,
        height ?: u32,
        // The file's name without its directory; may be empty.
        name =: String,
    }
}

words! {
    /// What an attachment is.
    MediaType: PartialOrd Ord {
        Png = "image/png",
        Jpeg = "image/jpeg",
        Webp = "image/webp",
        Gif = "image/gif",
        Pdf = "application/pdf",
    }
}

impl MediaType {
    /// Whether it is an image, and not a document.
    #[must_use]
    pub fn is_image(self) -> bool {
        match self {
            Self::Png | Self::Jpeg | Self::Webp | Self::Gif => true,
            Self::Pdf => false,
        }
    }
}

impl Attachment {
    /// What it is, in a few words: its name, type, size in pixels and bytes.
    #[must_use]
    pub fn about(&self) -> String {
        let name = match self.name.as_str() {
            "" => String::new(),
            name => format!("{name}, "),
        };
        let pixels = match (self.width, self.height) {
            (Some(width), Some(height)) => format!("{width}×{height}, "),
            _ => String::new(),
        };
        format!("{name}{}, {pixels}{} bytes", self.media.word(), self.bytes)
    }

    /// The line in its place for a model that cannot read it.
    #[must_use]
    pub fn unseen(&self) -> String {
        format!("[{}: this model cannot see it]", self.about())
    }

    /// About as many bytes of text as the tokens that a model counts for it: of an image by its pixels, of a document by its
    /// length.
    #[must_use]
    pub fn weight(&self) -> usize {
        const PIXELS_PER_BYTE: u64 = 190;
        const MOST: u64 = 6_400;
        let weight = match (self.width, self.height) {
            (Some(width), Some(height)) => {
                (u64::from(width) * u64::from(height) / PIXELS_PER_BYTE).min(MOST)
            }
            _ => self.bytes / 8,
        };
        usize::try_from(weight).unwrap_or(usize::MAX)
    }
}

impl Item {
    /// An input without files.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            text: text.into(),
            attachments: Vec::new(),
        }
    }

    /// The files beside its text.
    #[must_use]
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            Self::User { attachments, .. } => attachments,
            Self::ToolResult { outcome, .. } => &outcome.attachments,
            Self::Command { .. }
            | Self::System { .. }
            | Self::Assistant { .. }
            | Self::Reasoning { .. }
            | Self::ToolCall { .. } => &[],
        }
    }
}

impl ToolOutcome {
    /// The longest summary, in bytes.
    pub const SUMMARY_MAX: usize = 512;

    /// Makes an outcome of a text: the first line is the summary, the rest the content. A first line over
    /// [`ToolOutcome::SUMMARY_MAX`] is cut there and continues in the content.
    #[must_use]
    pub fn of(status: ResultStatus, words: &str) -> Self {
        let line = words.find('\n').unwrap_or(words.len());
        let cut = words.floor_char_boundary(line.min(Self::SUMMARY_MAX));
        let (summary, rest) = words.split_at(cut);
        let content = rest.strip_prefix('\n').unwrap_or(rest);
        Self {
            status,
            summary: summary.to_owned(),
            content: content.to_owned(),
            attachments: Vec::new(),
        }
    }

    /// About as many bytes as a model reads of the content and the files.
    #[must_use]
    pub fn weight(&self) -> usize {
        let files = self.attachments.iter().map(Attachment::weight);
        self.content.len().saturating_add(files.sum())
    }

    /// The model-visible text: the summary, then the content on the next line.
    #[must_use]
    pub fn text(&self) -> String {
        if self.content.is_empty() {
            self.summary.clone()
        } else {
            format!("{}\n{}", self.summary, self.content)
        }
    }
}

words! {
    /// How a call ended.
    ResultStatus {
        /// The tool did what was asked.
        Ok = "ok",
        /// The tool ran, or its arguments were read, and it failed.
        Error = "error",
        /// Permission or a gate refused it; it did not run.
        Refused = "refused",
        /// The turn was cancelled before or while it ran.
        Cancelled = "cancelled",
        /// The host stopped, or the tool was revoked, while it ran; the text says what is known.
        Interrupted = "interrupted",
    }
}
