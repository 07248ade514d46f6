//! History to request: a pure left fold, append-only, each item encoded once per dialect.

pub mod neutral;
mod request;
mod rope;

#[cfg(test)]
mod tests;

pub use neutral::{Neutral, NeutralRequest};
pub use request::ModelRequest;
pub use rope::Body;

use crate::item::{Item, SealedReasoning};
use crate::tool::ToolDefinition;
use rope::Rope;
use std::sync::Arc;

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
    /// Encoder name, as in `openai-chat`. `neutral` is [`Neutral`]'s alone.
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

/// The bytes and digests of the next request, grown item by item.
///
/// Two folds run side by side: the vendor's dialect, whose bytes are kept, and [`Neutral`], of which only the
/// running digest is kept (the vendor's bytes serve when the dialect *is* neutral).
#[derive(Clone)]
pub struct Projection {
    dialect: Arc<dyn Dialect>,
    open: Open,
    rope: Rope,
    neutral: Option<Box<blake3::Hasher>>,
    story: Box<blake3::Hasher>,
    items: u64,
    model: Arc<str>,
    generation: u64,
}

/// A point to which a [`Projection`] can be rewound: for changes of old bytes, such as pruning or a moving cache
/// anchor. Shares all full chunks with it.
#[derive(Clone)]
pub struct RewindPoint(Projection);

impl Projection {
    /// A request of this surface with no items yet.
    #[must_use]
    pub fn new(surface: &Surface, dialect: Arc<dyn Dialect>) -> Self {
        Self::over(Rope::default(), surface, dialect)
    }

    /// The same for a comparison: only digests and length are kept, so that a [`Body`] has no bytes to send.
    #[must_use]
    pub fn measured(surface: &Surface, dialect: Arc<dyn Dialect>) -> Self {
        Self::over(Rope::measured(), surface, dialect)
    }

    fn over(mut rope: Rope, surface: &Surface, dialect: Arc<dyn Dialect>) -> Self {
        let mut head = Vec::new();
        dialect.head(surface, &mut head);
        rope.write(&head);
        let neutral = (dialect.id() != Neutral::ID).then(|| {
            head.clear();
            Neutral.head(surface, &mut head);
            let mut hasher = Box::new(blake3::Hasher::new());
            hasher.update(&head);
            hasher
        });
        let (model, generation) = (surface.model.as_str().into(), surface.generation);
        Self { dialect, open: 0, rope, neutral, story: Box::new(blake3::Hasher::new()), items: 0, model, generation }
    }

    /// Encodes one more item: its own bytes only, whatever came before. A vendor's dialect is not shown a seal of
    /// another model or surface.
    pub fn push(&mut self, item: &Item) {
        let first = self.items == 0;
        let mut bytes = Vec::new();
        let bare = (self.neutral.is_some() && self.is_foreign(item)).then(|| unsealed(item));
        self.open = self.dialect.append(self.open, first, bare.as_ref().unwrap_or(item), &mut bytes);
        self.rope.write(&bytes);
        if let Some(neutral) = &mut self.neutral {
            bytes.clear();
            Neutral.append(0, first, item, &mut bytes);
            neutral.update(&bytes);
        }
        self.story.update(&bytes);
        self.items += 1;
    }

    fn is_foreign(&self, item: &Item) -> bool {
        let Item::Reasoning { seal: Some(SealedReasoning { model, generation, .. }), .. } = item else { return false };
        **model != *self.model || *generation != self.generation
    }

    /// The request as it stands.
    #[must_use]
    pub fn body(&self) -> Body {
        let mut end = Vec::new();
        self.dialect.close(self.open, &mut end);
        self.rope.body(&end, self.items)
    }

    /// BLAKE3 of the request in our own terms ([`Neutral`]), lower-case hex.
    #[must_use]
    pub fn neutral_digest(&self) -> String {
        let Some(neutral) = &self.neutral else { return self.body().digest };
        let mut end = Vec::new();
        Neutral.close(0, &mut end);
        neutral.clone().update(&end).finalize().to_hex().to_string()
    }

    /// BLAKE3 of the items alone, whatever the surface and the dialect; lower-case hex.
    #[must_use]
    pub fn items_digest(&self) -> String {
        self.story.finalize().to_hex().to_string()
    }

    /// How many items were pushed.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// How the bytes are encoded.
    #[must_use]
    pub fn dialect(&self) -> &Arc<dyn Dialect> {
        &self.dialect
    }

    /// The current end, for [`Projection::rewind_to`].
    #[must_use]
    pub fn mark(&self) -> RewindPoint {
        RewindPoint(self.clone())
    }

    /// Drops everything pushed after `mark`.
    pub fn rewind_to(&mut self, mark: RewindPoint) {
        *self = mark.0;
    }
}

fn unsealed(item: &Item) -> Item {
    let mut item = item.clone();
    if let Item::Reasoning { seal, .. } = &mut item {
        *seal = None;
    }
    item
}

impl std::fmt::Debug for Projection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Projection").field("dialect", &self.dialect.id()).field("items", &self.items).finish()
    }
}
