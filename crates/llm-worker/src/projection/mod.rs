//! History to request: a pure left fold, append-only, each item encoded once per dialect.

use crate::item::Item;
use crate::tool::ToolDefinition;

/// Everything of a request that is fixed within one generation of the tool surface.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Surface {
    /// Which generation this is, from 1.
    pub generation: u64,
    /// `provider/name` of the model.
    pub model: String,
    /// The system prompt with the instructions, frozen.
    pub system: String,
    /// Sorted by name.
    pub tools: Vec<ToolDefinition>,
    /// The most tokens one answer may have; the vendor's own limit when `None`.
    pub max_output: Option<u32>,
}

/// What a dialect has open at the end of the bytes so far; 0 is "nothing", the rest is the dialect's own.
pub type Open = u8;

/// A vendor's encoding of a request as a left fold: same items, same bytes. The item array is the last
/// key of the body, so that requests of one generation grow append-only.
pub trait Dialect: Send + Sync + 'static {
    /// Encoder name, as in `openai-chat`.
    fn id(&self) -> &'static str;
    /// Raised whenever the bytes for the same input change.
    fn version(&self) -> u16;
    /// Bytes up to and including the opening of the item array.
    fn head(&self, surface: &Surface, out: &mut Vec<u8>);
    /// Bytes for one more item, given what the last one left open; returns what this one leaves open.
    fn append(&self, open: Open, first: bool, item: &Item, out: &mut Vec<u8>) -> Open;
    /// Bytes that close whatever is open and the body.
    fn close(&self, open: Open, out: &mut Vec<u8>);
}
