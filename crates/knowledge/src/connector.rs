//! What a source of documents is to a sync. To add one: implement [`Connector`], and hand it to
//! [`ContextIndex::sync`](crate::ContextIndex::sync).

use crate::Error;

/// A source of documents. A sync calls [`scan`](Self::scan) once.
pub trait Connector {
    /// The name of the source in the index; each source has its own.
    fn name(&self) -> &str;

    /// What kind of source this is, in one word.
    fn kind(&self) -> &'static str;

    /// Tells the sink each item that the source has now, in any order. For an item whose state the index knows
    /// ([`ItemSink::is_current`]), nothing is read. What is not told is removed from the index.
    ///
    /// # Errors
    /// The source cannot be listed: the index keeps what it has of it. Errors of the sink are passed on.
    fn scan(&self, sink: &mut dyn ItemSink) -> Result<(), Error>;
}

/// Takes the items of a scan.
pub trait ItemSink {
    /// Whether the index has this item in the state that `stamp` stands for; then the item counts as told. A connector that
    /// cannot tell states apart gives an empty stamp, which is never current.
    ///
    /// # Errors
    /// The index cannot be read, or the caller of the sync ended it.
    fn is_current(&mut self, source_id: &str, stamp: &str) -> Result<bool, Error>;

    /// Takes an item. Of two with one id, the first counts.
    ///
    /// # Errors
    /// The index cannot be written, or the caller of the sync ended it.
    fn put(&mut self, item: SourceItem) -> Result<(), Error>;

    /// Counts what is in no index, and why.
    fn skip(&mut self, why: SkipReason);
}

/// The media type of documents with headings.
pub(crate) const MARKDOWN: &str = "text/markdown";

/// A document as its source gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceItem {
    /// What the source calls it; for files, the path below the root.
    pub source_id: String,
    /// A state of the item, as text; empty if it cannot be told.
    pub stamp: String,
    /// Where a person finds it.
    pub source_url: String,
    pub title: String,
    /// A media type; `text/markdown` has headings.
    pub content_type: &'static str,
    /// When it last changed, in seconds since 1970.
    pub updated_at: i64,
    pub body: String,
}

/// Why something of a source is in no index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    /// Its name says that it may hold secrets.
    Secret,
    /// It is not UTF-8.
    NotText,
    /// It is longer than the limit of the source.
    TooLong,
    /// It cannot be read.
    Unreadable,
    /// The source has more than its limit.
    TooMany,
}

impl SkipReason {
    /// The reason in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::NotText => "not_text",
            Self::TooLong => "too_long",
            Self::Unreadable => "unreadable",
            Self::TooMany => "too_many",
        }
    }
}
