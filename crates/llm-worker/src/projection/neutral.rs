//! The neutral encoding of a request, independent of providers: the journal's neutral digest covers it, and models in
//! this process read it.
//!
//! `{"generation":1,"model":"offline","system":"…","tools":[…],"items":[…]}`, with `"max_output":n`,
//! `"effort":"…"`, `"thinking":true` and `"media":[…]` before `items` when the surface has them. Tools and items are written as
//! their types serialize: files by their digests.

use super::{Dialect, Open, Surface};
use crate::item::{Item, MediaType};
use crate::tool::ToolDefinition;
use protocol::tool::Effort;
use serde::{Deserialize, Serialize};

/// The dialect that belongs to no provider. Its digest identifies a request in the journal; the models of `offline` and
/// of tests decode it with [`decode`].
#[derive(Clone, Copy, Debug)]
pub struct Neutral;

impl Neutral {
    /// The encoder name; no other dialect may use it.
    pub const ID: &'static str = "neutral";
}

impl Dialect for Neutral {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn version(&self) -> u16 {
        1
    }

    fn head(&self, surface: &Surface, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"generation\":");
        json(&surface.generation, out);
        out.extend_from_slice(b",\"model\":");
        json(&surface.model, out);
        out.extend_from_slice(b",\"system\":");
        json(&surface.system, out);
        out.extend_from_slice(b",\"tools\":");
        json(&surface.tools, out);
        if let Some(most) = surface.max_output {
            out.extend_from_slice(b",\"max_output\":");
            json(&most, out);
        }
        if let Some(effort) = surface.effort {
            out.extend_from_slice(b",\"effort\":");
            json(&effort, out);
        }
        if surface.thinking {
            out.extend_from_slice(b",\"thinking\":true");
        }
        if !surface.media.is_empty() {
            out.extend_from_slice(b",\"media\":");
            json(&surface.media, out);
        }
        out.extend_from_slice(b",\"items\":[");
    }

    fn append(&self, open: Open, first: bool, item: &Item, out: &mut Vec<u8>) -> Open {
        if !first {
            out.push(b',');
        }
        json(item, out);
        open
    }

    fn close(&self, _open: Open, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }
}

/// Strings, numbers and lists of them: writing these into memory cannot fail.
fn json(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).ok();
}

/// A decoded neutral request; see [`decode`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeutralRequest {
    pub generation: u64,
    pub model: String,
    pub system: String,
    pub tools: Vec<ToolDefinition>,
    #[serde(default)]
    pub max_output: Option<u32>,
    #[serde(default)]
    pub effort: Option<Effort>,
    #[serde(default)]
    pub thinking: bool,
    #[serde(default)]
    pub media: Vec<MediaType>,
    pub items: Vec<Item>,
}

/// Decodes a neutral request, for models in this process and for tests.
///
/// # Errors
/// The bytes are not exactly one neutral request.
pub fn decode(bytes: &[u8]) -> Result<NeutralRequest, NotNeutral> {
    Ok(serde_json::from_slice(bytes)?)
}

/// The error of [`decode`]: the bytes are not exactly one neutral request.
#[derive(Debug, thiserror::Error)]
#[error("not a request in neutral/1: {0}")]
pub struct NotNeutral(#[from] serde_json::Error);

impl NotNeutral {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> crate::ErrorKind {
        crate::ErrorKind::Corrupt
    }
}
