//! What a project's documents say, found by their words: an index that is made from sources and can be deleted at any time.
//!
//! A [`Connector`] lists the items of a source. [`ContextIndex::sync`] brings the index to what the source has now, in one
//! transaction for each source: a sync that is killed leaves the index as it was. [`ContextReader::search`] finds chunks of
//! documents by keywords, by the meaning that an [`Embedder`] gives them, or by both, and explains each hit.
//!
//! This crate does not depend on pods, tools, features, configuration or terminals. It reads no clock; files are those of an
//! [`authority::Workspace`].

mod chunk;
mod connector;
mod error;
mod filesystem;
mod index;
mod lock;
mod search;
mod static_model;
mod sync;
mod terms;
mod vectors;

pub use connector::{Connector, ItemSink, SkipReason, SourceItem};
pub use error::{Error, ErrorKind};
pub use filesystem::{Filesystem, FilesystemLimits};
pub use index::{ContextIndex, ContextReader, IndexedDocument, IndexedSource};
pub use search::{
    Explanation, MAX_QUERY, MAX_RESULTS, PartScore, SearchHit, SearchMode, SearchQuery,
};
pub use static_model::StaticModel;
pub use sync::{SyncProgress, SyncReport};
pub use vectors::{Embedder, IndexedVectors, QueryVector};
