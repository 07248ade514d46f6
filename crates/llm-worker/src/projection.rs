//! Encoding history as a request: a pure left fold, append-only; each item is encoded once per dialect.

pub mod neutral;
mod request;
mod rope;

#[cfg(test)]
mod tests;

pub use neutral::{Neutral, NeutralRequest};
pub use protocol::tool::Surface;
pub use request::ModelRequest;
pub use rope::Body;

use crate::item::{Attachment, CallId, Item, MediaType, SealedReasoning};
use rope::Rope;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The dialect's state at the end of the bytes so far: which JSON brackets are open. 0 is "none"; each dialect defines
/// the other values.
pub type Open = u8;

/// Stands for the bytes of a file in what a [`Dialect`] writes of it: no JSON text has this byte.
pub const BLOB: u8 = 0;

/// A provider's encoding of a request as a left fold: same items, same bytes. The item array is the last
/// key of the body, so that requests of one generation grow append-only.
pub trait Dialect: Send + Sync + 'static {
    /// Encoder name, as in `openai-chat`. Only [`Neutral`] uses `neutral`.
    fn id(&self) -> &'static str;
    /// Raised whenever the bytes for the same input change.
    fn version(&self) -> u16;
    /// Writes the bytes up to and including the opening of the item array.
    fn head(&self, surface: &Surface, out: &mut Vec<u8>);
    /// Writes the bytes of one more item, given the state after the item before; returns the state after this item.
    fn append(&self, open: Open, first: bool, item: &Item, out: &mut Vec<u8>) -> Open;
    /// As [`append`](Self::append), for the result of a call of this tool; by default the same.
    fn result(&self, open: Open, _tool: &str, item: &Item, out: &mut Vec<u8>) -> Open {
        self.append(open, false, item, out)
    }
    /// The state before the first item; 0 unless something of the surface changes how items are written.
    fn begin(&self, _surface: &Surface) -> Open {
        0
    }
    /// Writes a file as a part of what the user says, with one [`BLOB`] in the place of its bytes in base 64. Called only for
    /// types that the surface has; by default it writes nothing.
    fn attachment(&self, open: Open, _attachment: &Attachment, _out: &mut Vec<u8>) -> Open {
        open
    }
    /// Writes the bytes that close all open brackets and the body.
    fn close(&self, open: Open, out: &mut Vec<u8>);
}

/// The bytes and digests of the next request, grown item by item.
///
/// It runs two folds: the provider's dialect, whose bytes are kept, and [`Neutral`], of which only the running digest
/// is kept (if the dialect is [`Neutral`], there is one fold).
#[derive(Clone)]
pub struct Projection {
    dialect: Arc<dyn Dialect>,
    open: Open,
    rope: Rope,
    neutral: Option<Box<blake3::Hasher>>,
    story: Box<blake3::Hasher>,
    items: u64,
    /// The tools of the calls without a result.
    tools: BTreeMap<CallId, String>,
    model: Arc<str>,
    generation: u64,
    /// The types of files that the model reads.
    media: Arc<[MediaType]>,
    /// Whether a command of a person is an item of its own.
    commands: bool,
    /// The newest results, which become part of the request in the order of their calls; none where results are encoded
    /// as they arrive.
    results: Option<BTreeMap<CallId, Item>>,
}

impl Projection {
    /// The version of the neutral form: a command of a person is an item of its own.
    pub const VERSION: u16 = 3;
    /// The version before it: such a command is an item of the user.
    pub const WITHOUT_COMMANDS: u16 = 2;
    /// And before that: results are in the order in which they arrived, too, and not in that of their calls.
    pub const BY_ARRIVAL: u16 = 1;

    /// A request of this surface with no items yet.
    #[must_use]
    pub fn new(surface: &Surface, dialect: Arc<dyn Dialect>) -> Self {
        Self::over(Rope::default(), surface, dialect)
    }

    /// Like [`new`](Self::new), for a comparison: only digests and length are kept, so that a [`Body`] has no bytes to
    /// send.
    #[must_use]
    pub fn measured(surface: &Surface, dialect: Arc<dyn Dialect>) -> Self {
        Self::over(Rope::measured(), surface, dialect)
    }

    /// Orders and writes the items as this version does. Called before the first item.
    #[must_use]
    pub fn ordered_as(self, version: u16) -> Self {
        Self {
            commands: version > Self::WITHOUT_COMMANDS,
            results: (version != Self::BY_ARRIVAL).then(BTreeMap::new),
            ..self
        }
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
        let model = surface.model.as_str().into();
        let generation = surface.generation;
        let media = surface.media.as_slice().into();
        let open = dialect.begin(surface);
        let story = Box::new(blake3::Hasher::new());
        Self {
            dialect,
            open,
            rope,
            neutral,
            story,
            items: 0,
            tools: BTreeMap::new(),
            model,
            generation,
            media,
            commands: true,
            results: Some(BTreeMap::new()),
        }
    }

    /// Encodes one more item without encoding earlier ones again. Sealed reasoning of another model or surface is
    /// omitted from the provider's dialect. Results wait for the results of earlier calls.
    pub fn push(&mut self, item: &Item) {
        let first = self.items == 0;
        let mut as_input = None;
        if let (Item::Command { text }, false) = (item, self.commands) {
            as_input = Some(Item::user(text.clone()));
        }
        let item = as_input.as_ref().unwrap_or(item);
        if let (Item::ToolResult { id, .. }, Some(results)) = (item, &mut self.results) {
            let mut bytes = Vec::new();
            Neutral.append(0, first, item, &mut bytes);
            self.story.update(&bytes);
            results.insert(*id, item.clone());
        } else {
            self.settle();
            let neutral = self.encode(item, first);
            self.story.update(&neutral);
        }
        self.items += 1;
    }

    /// Encodes the results that wait. Called before an item that is no result, and before a request.
    pub(crate) fn settle(&mut self) {
        let results = self
            .results
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        let mut first = self.items == results.len() as u64;
        for result in results.values() {
            self.encode(result, first);
            first = false;
        }
        for (id, result) in &results {
            // Behind all results: some vendors take nothing between them, and no file in one.
            self.show_files(Some(*id), result.attachments());
        }
    }

    /// Writes the files that the model reads; those of a call behind a line that names it.
    fn show_files(&mut self, of: Option<CallId>, files: &[Attachment]) {
        if self.neutral.is_none() {
            // The neutral form has them in their item.
            return;
        }
        let seen: Vec<_> = files.iter().filter(|file| self.sees(file)).collect();
        for file in seen {
            let mut bytes = Vec::new();
            if let Some(id) = of {
                let note = Item::System {
                    source: "host".to_owned(),
                    text: format!("from the result of {id}: {}", file.about()),
                };
                self.open = self.dialect.append(self.open, false, &note, &mut bytes);
            }
            self.open = self.dialect.attachment(self.open, file, &mut bytes);
            let mut parts = bytes.splitn(2, |byte| *byte == BLOB);
            self.rope.write(parts.next().unwrap_or_default());
            if let Some(after) = parts.next() {
                self.rope.write_blob(file);
                self.rope.write(after);
            }
        }
    }

    fn sees(&self, file: &Attachment) -> bool {
        self.media.contains(&file.media)
    }

    /// The item as the provider's model gets it, if that is not as it is: without seals of others, with a line for each
    /// file that the model does not read.
    fn as_read(&self, item: &Item) -> Option<Item> {
        self.neutral.as_ref()?;
        if self.is_foreign(item) {
            return Some(unsealed(item));
        }
        let unseen = item.attachments().iter().filter(|file| !self.sees(file));
        let lines: Vec<_> = unseen.map(|file| format!("\n{}", file.unseen())).collect();
        (!lines.is_empty()).then(|| with_lines(item, &lines.concat()))
    }

    /// The request so far as it is sent.
    fn settled(&self) -> Cow<'_, Self> {
        if self.results.as_ref().is_none_or(BTreeMap::is_empty) {
            return Cow::Borrowed(self);
        }
        let mut settled = self.clone();
        settled.settle();
        Cow::Owned(settled)
    }

    /// Returns the item in the neutral form.
    fn encode(&mut self, item: &Item, first: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let as_read = self.as_read(item);
        let mut tool = None;
        if let Item::ToolCall { id, name, .. } = item {
            self.tools.insert(*id, name.clone());
        } else if let Item::ToolResult { id, .. } = item {
            tool = self.tools.remove(id);
        }
        self.open = match &tool {
            Some(tool) => {
                let item = as_read.as_ref().unwrap_or(item);
                self.dialect.result(self.open, tool, item, &mut bytes)
            }
            None => {
                let item = as_read.as_ref().unwrap_or(item);
                self.dialect.append(self.open, first, item, &mut bytes)
            }
        };
        self.rope.write(&bytes);
        if let Item::User { attachments, .. } = item {
            self.show_files(None, attachments);
        }
        if let Some(neutral) = &mut self.neutral {
            bytes.clear();
            Neutral.append(0, first, item, &mut bytes);
            neutral.update(&bytes);
        }
        bytes
    }

    fn is_foreign(&self, item: &Item) -> bool {
        let Item::Reasoning {
            seal: Some(SealedReasoning {
                model, generation, ..
            }),
            ..
        } = item
        else {
            return false;
        };
        **model != *self.model || *generation != self.generation
    }

    /// The request so far, closed.
    #[must_use]
    pub fn body(&self) -> Body {
        let settled = self.settled();
        let mut end = Vec::new();
        settled.dialect.close(settled.open, &mut end);
        settled.rope.body(&end, settled.items)
    }

    /// BLAKE3 of the request in the [`Neutral`] encoding, lower-case hex.
    #[must_use]
    pub fn neutral_digest(&self) -> String {
        let settled = self.settled();
        let Some(neutral) = &settled.neutral else {
            return settled.body().digest;
        };
        let mut end = Vec::new();
        Neutral.close(0, &mut end);
        neutral.clone().update(&end).finalize().to_hex().to_string()
    }

    /// BLAKE3 of the items alone, independent of surface and dialect; lower-case hex.
    #[must_use]
    pub fn items_digest(&self) -> String {
        self.story.finalize().to_hex().to_string()
    }

    /// The number of items pushed.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The dialect of the bytes.
    #[must_use]
    pub fn dialect(&self) -> &Arc<dyn Dialect> {
        &self.dialect
    }
}

/// The item with these lines behind its text.
fn with_lines(item: &Item, lines: &str) -> Item {
    let mut item = item.clone();
    match &mut item {
        Item::User { text, .. } => text.push_str(lines),
        Item::ToolResult { outcome, .. } => {
            // The first line end of an empty content is that of the summary.
            let skipped = usize::from(outcome.content.is_empty());
            outcome
                .content
                .push_str(lines.get(skipped..).unwrap_or_default());
        }
        Item::Command { .. }
        | Item::System { .. }
        | Item::Assistant { .. }
        | Item::Reasoning { .. }
        | Item::ToolCall { .. } => {}
    }
    item
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
        f.debug_struct("Projection")
            .field("dialect", &self.dialect.id())
            .field("items", &self.items)
            .finish()
    }
}
