//! The service `yoi.memory.v1`: one side reads notes, the other writes them.

use super::note::{Description, Note, NoteKind, NoteName, Tag};
use crate::store_error::StoreError;
use async_trait::async_trait;
use llm_worker::ToolContext;
use pod::feature::{ServiceAccess, ServiceKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The service key for reading notes.
pub const LOOKUP: ServiceKey<dyn MemoryLookup> =
    ServiceKey::new("yoi.memory.v1").access(ServiceAccess::MemoryRead);
/// The service key for writing notes.
pub const KEEPER: ServiceKey<dyn MemoryKeeper> =
    ServiceKey::new("yoi.memory.v1").access(ServiceAccess::MemoryWrite);
/// The version of both.
pub(super) const VERSION: &str = "1.0.0";

/// Reads notes of the project's memory; provided by [`Memory`](super::Memory) to its tools and to other features.
#[async_trait]
pub trait MemoryLookup: Send + Sync {
    /// The notes that match, the best first; the same query gives the same order.
    ///
    /// # Errors
    /// `FixInput` for a query that is too long; `Denied` if notes may not be read.
    async fn search(&self, query: NoteQuery) -> Result<Hits, StoreError>;

    /// One note.
    ///
    /// # Errors
    /// `FixInput` when there is none of this name; `Corrupt` when its file cannot be parsed.
    async fn read(&self, name: NoteName) -> Result<Note, StoreError>;
}

/// Writes and deletes notes. The host of `cx` records each change before it happens.
#[async_trait]
pub trait MemoryKeeper: Send + Sync {
    /// Stores a note; returns whether it replaced one.
    ///
    /// # Errors
    /// `FixInput` when the note does not pass the rules, or when there is one of this name and `replace` is not set;
    /// `Exhausted` when there are too many; `Denied` if notes may not be written.
    async fn write(&self, note: NewNote, cx: ToolContext) -> Result<NoteSaved, StoreError>;

    /// Deletes a note and returns it.
    ///
    /// # Errors
    /// `FixInput` when there is none of this name, or others link to it.
    async fn forget(&self, name: NoteName, cx: ToolContext) -> Result<Note, StoreError>;
}

/// What is looked for.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct NoteQuery {
    /// Words; without any, the newest notes.
    pub query: Option<String>,
    /// Only of this kind.
    pub kind: Option<NoteKind>,
    /// At most so many; default 10.
    pub limit: Option<usize>,
}

/// A note to keep.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct NewNote {
    /// Kebab-case, says what it is about.
    pub name: NoteName,
    /// One line: when is it worth reading?
    pub description: Description,
    /// What sort of knowledge.
    pub kind: NoteKind,
    /// Kebab-case words.
    pub tags: Option<Vec<Tag>>,
    /// Markdown; [[name]] links to another note. No secrets.
    pub text: String,
    /// Replace the note of this name; read it first.
    pub replace: Option<bool>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hits {
    /// At most the requested number.
    pub notes: Vec<Note>,
    /// The number of all matches.
    pub found: usize,
    /// Files that cannot be parsed, each with the reason.
    pub unreadable: Vec<String>,
}

/// Whether a note was created or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteSaved {
    Created,
    Replaced,
}
