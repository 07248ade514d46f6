//! Finding, reading and writing the items on disk. One writer at a time, across processes: the lock is `.lock`, as in
//! the script.

use super::Author;
use super::contract::{
    Heading, NewItem, Query, ThreadEntry, Updated, WorkItem, WorkItemChange, WorkItemList,
    WorkItemReader, WorkItemWriter,
};
use super::format::{ItemFile, events, grown, new_thread};
use super::id::{
    Assignee, ItemId, ItemRef, MAX_SLUG, Priority, Time, WorkItemKind, WorkItemStatus,
};
use crate::clock::Now;
use crate::plain;
use crate::store_error::StoreError;
use async_trait::async_trait;
use authority::text::{bytes_without_bom, without_bom};
use authority::{FileKind, Located, LockDir};
use llm_worker::{ErrorKind, ToolContext};
use pod::feature::ServiceEventSink;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use tools::Before;

/// The most items of one folder that are read.
pub const MAX_ITEMS: usize = 5_000;
/// Most items of one list.
pub const MAX_LISTED: usize = 200;
/// The default number of items of a list.
const LISTED: usize = 30;
/// Most bytes of a body or a comment; longer material is a file of its own.
pub const MAX_TEXT: usize = 64 * 1024;
/// The newest items whose values are looked at when the feature is installed: reading them may take a few milliseconds.
const MAX_SAMPLED: usize = 200;
/// Most labels of one item.
const MAX_LABELS: usize = 16;
/// Most bytes of a file that are read.
const MAX_FILE: u64 = 4 * 1024 * 1024;
/// A front matter is shorter than this.
const MAX_FRONT: u64 = 8 * 1024;
/// How many items one second may get from one title.
const MAX_SAME: usize = 20;
/// How many ids an ambiguous reference names.
const SUGGESTED: usize = 3;

/// Work items below one directory.
pub(super) struct WorkItemStore {
    pub(super) files: tools::Files,
    pub(super) author: Author,
    pub(super) now: Now,
    /// None where the store is not provided.
    pub(super) changed: Option<ServiceEventSink>,
}

/// An item and the folder it is in.
struct LocatedItem {
    id: ItemId,
    folder: WorkItemStatus,
}

#[async_trait]
impl WorkItemReader for WorkItemStore {
    async fn list(&self, query: Query) -> Result<WorkItemList, StoreError> {
        let words = query.words.as_deref().unwrap_or_default().to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let wanted = |heading: &Heading| {
            let text = format!("{} {}", heading.title, heading.id).to_lowercase();
            query.kind.is_none_or(|kind| kind == heading.kind)
                && query
                    .label
                    .as_ref()
                    .is_none_or(|label| heading.labels.contains(label))
                && words.iter().all(|word| text.contains(word))
        };
        let folders = query
            .status
            .as_ref()
            .map_or(&WorkItemStatus::LIVE[..], std::slice::from_ref);
        let mut items = Vec::new();
        let mut unreadable = Vec::new();
        for found in self.all(folders)? {
            match self
                .read(&found, "item.md", MAX_FRONT)
                .map(|text| ItemFile::parse(&text, &found.id))
            {
                Ok(Ok(ItemFile { heading, .. })) if wanted(&heading) => items.push(Heading {
                    status: found.folder,
                    ..heading
                }),
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => unreadable.push(found.id),
            }
        }
        items.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| b.id.cmp(&a.id)));
        let found = items.len();
        items.truncate(query.limit.unwrap_or(LISTED).clamp(1, MAX_LISTED));
        Ok(WorkItemList {
            items,
            found,
            unreadable,
        })
    }

    async fn show(&self, item: ItemRef) -> Result<WorkItem, StoreError> {
        let found = self.find(&item)?;
        let record = self.read(&found, "item.md", MAX_FILE)?;
        let record =
            ItemFile::parse(&record, &found.id).map_err(|why| found.corrupt("item.md", &why))?;
        let thread = self.read(&found, "thread.md", MAX_FILE)?;
        let events = events(&thread, &record.heading.created_at);
        let events = events.map_err(|why| found.corrupt("thread.md", &why))?;
        let body = record.body().to_owned();
        let heading = Heading {
            status: found.folder,
            ..record.heading
        };
        Ok(WorkItem {
            heading,
            body,
            events,
        })
    }
}

#[async_trait]
impl WorkItemWriter for WorkItemStore {
    fn directory(&self) -> PathBuf {
        self.files.workspace().project().to_owned()
    }

    async fn create(&self, item: NewItem, cx: ToolContext) -> Result<ItemId, StoreError> {
        let NewItem {
            title,
            body,
            kind,
            priority,
            labels,
        } = item;
        let body = given("body", &body)?;
        let labels = few(labels.unwrap_or_default())?;
        let _turn = self.files.one_at_a_time(&cx).await?;
        let _lock = self.lock()?;
        let now = Time::of((self.now)());
        let slug = plain::slug(&title.to_string(), MAX_SLUG);
        let id = self.free(&now, if slug.is_empty() { "item" } else { &slug })?;
        let kind = kind.unwrap_or(WorkItemKind::Task);
        let priority = priority.unwrap_or(Priority::Normal);
        let status = WorkItemStatus::Open;
        let assignee = Assignee::nobody();
        let created_at = now.clone();
        let updated_at = now.clone();
        let heading = Heading {
            id: id.clone(),
            title,
            status,
            kind,
            priority,
            labels,
            created_at,
            updated_at,
            assignee,
        };
        let record = ItemFile::new(heading, &body).render();
        let first = ThreadEntry {
            at: now,
            what: "created open".to_owned(),
            author: self.author.to_string(),
            text: String::new(),
        };
        let found = LocatedItem { id, folder: status };
        let thread = self.at(&found.path("thread.md"))?;
        let above = self.is_missing(&WorkItemStatus::Open.to_string())?;
        let text = new_thread(&found.id, &first);
        tools::publish(&self.files, &thread, None, text.as_bytes(), &cx).await?;
        // An item exists from its item.md on; a thread alone is no item.
        if let Err(error) = self.put(&found, "item.md", None, &record, &cx).await {
            self.files.workspace().remove(&thread).ok();
            self.emptied(&thread, above);
            return Err(error);
        }
        self.tell();
        Ok(found.id)
    }

    async fn update(&self, change: WorkItemChange, cx: ToolContext) -> Result<Updated, StoreError> {
        let comment = given("comment", change.comment.as_deref().unwrap_or_default())?;
        let _turn = self.files.one_at_a_time(&cx).await?;
        let _lock = self.lock()?;
        let mut found = self.find(&change.id)?;
        let (_, record) = self.before(&found, "item.md", &cx)?;
        let mut record =
            ItemFile::parse(&record, &found.id).map_err(|why| found.corrupt("item.md", &why))?;
        let mut done = fields(&mut record.heading, &change)?;
        let written = record.heading.status;
        let to = change.status.unwrap_or(written);
        if to == WorkItemStatus::Closed
            && comment.is_empty()
            && (written != to || found.folder != to)
        {
            return Err(StoreError::fix(format!(
                "say in `comment` how {} was settled",
                found.id
            )));
        }
        let what = match (written != to, comment.is_empty()) {
            (true, _) => Some(format!("status {written} -> {to}")),
            (false, false) => Some("comment".to_owned()),
            (false, true) => None,
        };
        if found.folder != to {
            done.push(format!("moved from {} to {to}", found.folder));
        }
        if !comment.is_empty() {
            done.push("comment added".to_owned());
        }
        if done.is_empty() && what.is_none() {
            return Err(StoreError::fix(format!(
                "{} is like that already; say what changes",
                found.id
            )));
        }
        // Parse errors occur before anything is changed.
        if what.is_some() {
            let (_, thread) = self.before(&found, "thread.md", &cx)?;
            let first = ThreadEntry {
                at: Time::of((self.now)()),
                what: String::new(),
                author: String::new(),
                text: String::new(),
            };
            grown(&thread, &record.heading.created_at, first)
                .map_err(|why| found.corrupt("thread.md", &why))?;
        }
        self.move_to(&mut found, to, &cx).await?;
        let mut when = Time::of((self.now)());
        if let Some(what) = what {
            let event = ThreadEntry {
                at: when,
                what,
                author: self.author.to_string(),
                text: comment,
            };
            let (before, thread) = self.before(&found, "thread.md", &cx)?;
            let thread = grown(&thread, &record.heading.created_at, event)
                .map_err(|why| found.corrupt("thread.md", &why))?;
            self.put(&found, "thread.md", Some(before), &thread.0, &cx)
                .await?;
            when = thread.1;
        }
        record.heading.status = to;
        record.heading.updated_at = record.heading.updated_at.max(when);
        let (before, _) = self.before(&found, "item.md", &cx)?;
        self.put(&found, "item.md", Some(before), &record.render(), &cx)
            .await?;
        self.tell();
        Ok(Updated {
            id: found.id,
            status: to,
            done,
        })
    }
}

impl WorkItemStore {
    /// Tells consumers that an item changed; those that are not told find it at their next look.
    fn tell(&self) {
        drop(self.changed.as_ref().map(ServiceEventSink::emit));
    }

    /// The headings of the newest items, of those that can be parsed.
    pub(super) fn newest(&self) -> Result<Vec<Heading>, StoreError> {
        let mut all = self.all(&WorkItemStatus::ALL)?;
        all.sort_by(|a, b| b.id.cmp(&a.id));
        let heading = |found: &LocatedItem| {
            let text = self.read(found, "item.md", MAX_FRONT).ok()?;
            ItemFile::parse(&text, &found.id)
                .ok()
                .map(|file| file.heading)
        };
        Ok(all.iter().take(MAX_SAMPLED).filter_map(heading).collect())
    }

    /// Every item of these folders, each folder in the order of time.
    fn all(&self, folders: &[WorkItemStatus]) -> Result<Vec<LocatedItem>, StoreError> {
        let mut all = Vec::new();
        for &folder in folders {
            let entries = match self
                .files
                .workspace()
                .read_dir(&self.at(&folder.to_string())?)
            {
                Ok(entries) => entries,
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error.into()),
            };
            let ids = entries
                .iter()
                .filter(|(_, meta)| meta.kind == FileKind::Dir);
            let ids: Vec<ItemId> = ids
                .filter_map(|(name, _)| ItemId::parse(name.to_str()?))
                .collect();
            if ids.len() > MAX_ITEMS {
                let text = format!(
                    "{folder} has {} items; at most {MAX_ITEMS} are read",
                    ids.len()
                );
                return Err(StoreError::new(ErrorKind::Exhausted, text));
            }
            all.extend(ids.into_iter().map(|id| LocatedItem { id, folder }));
        }
        Ok(all)
    }

    /// The id of the one item that is meant.
    pub(super) fn id_of(&self, item: &ItemRef) -> Result<ItemId, StoreError> {
        self.find(item).map(|found| found.id)
    }

    /// The one item that is meant; an exact id wins.
    fn find(&self, item: &ItemRef) -> Result<LocatedItem, StoreError> {
        let mut meant = self.all(&WorkItemStatus::ALL)?;
        meant.retain(|found| item.means(&found.id) && self.is_there(found));
        if meant.iter().any(|found| item.is(&found.id)) {
            meant.retain(|found| item.is(&found.id));
        }
        let hits = meant.len();
        let ids: Vec<String> = meant
            .iter()
            .take(SUGGESTED)
            .map(|found| found.id.to_string())
            .collect();
        match (meant.pop(), hits) {
            (Some(found), 1) => Ok(found),
            (Some(_), _) => Err(StoreError::fix(format!(
                "`{item}` means {hits} items: {}; give more of the id",
                ids.join(", ")
            ))),
            (None, _) => Err(StoreError::fix(format!(
                "there is no item `{item}`; list them to see what there is"
            ))),
        }
    }

    fn is_there(&self, found: &LocatedItem) -> bool {
        let at = self.at(&found.path("item.md"));
        at.is_ok_and(|at| {
            self.files
                .workspace()
                .metadata(&at)
                .is_ok_and(|meta| meta.kind == FileKind::File)
        })
    }

    /// A path below the directory of items. A link on the way is refused: items are plain files.
    fn at(&self, path: &str) -> Result<Located, StoreError> {
        let at = self.files.workspace().inside(Path::new(path))?;
        if at.relative() == Path::new(path) {
            return Ok(at);
        }
        let text =
            format!("work-items/{path} is or lies behind a symbolic link; put a plain file there");
        Err(StoreError::new(ErrorKind::Denied, text))
    }

    /// At most `max` bytes of a file of an item.
    fn read(&self, found: &LocatedItem, name: &str, max: u64) -> Result<String, StoreError> {
        let file = self
            .files
            .workspace()
            .open_file(&self.at(&found.path(name))?)?;
        let mut bytes = Vec::new();
        let read = file.take(max).read_to_end(&mut bytes);
        read.map_err(|error| {
            StoreError::new(
                ErrorKind::Unavailable,
                format!("{}: {error}", found.path(name)),
            )
        })?;
        if bytes.len() as u64 == MAX_FILE {
            return Err(found.corrupt(name, &format!("it has more than {MAX_FILE} bytes")));
        }
        Ok(String::from_utf8_lossy(bytes_without_bom(&bytes)).into_owned())
    }

    /// A file of an item that is about to change.
    fn before(
        &self,
        found: &LocatedItem,
        name: &str,
        cx: &ToolContext,
    ) -> Result<(Before, String), StoreError> {
        let before = self.files.before(&self.at(&found.path(name))?, cx)?;
        let before = before.ok_or_else(|| found.corrupt(name, "it is missing"))?;
        match String::from_utf8(before.bytes.clone()) {
            Ok(text) => Ok((before, without_bom(&text).to_owned())),
            Err(_) => Err(found.corrupt(name, "it is not UTF-8")),
        }
    }

    async fn put(
        &self,
        found: &LocatedItem,
        name: &str,
        before: Option<Before>,
        text: &str,
        cx: &ToolContext,
    ) -> Result<(), StoreError> {
        Ok(tools::publish(
            &self.files,
            &self.at(&found.path(name))?,
            before,
            text.as_bytes(),
            cx,
        )
        .await?)
    }

    /// Takes the lock that the script uses, too, for the time of a change.
    fn lock(&self) -> Result<LockDir, StoreError> {
        let lock = self.files.workspace().lock_dir(&self.at(".lock")?)?;
        lock.ok_or_else(|| {
            let text = "another process is changing work items: work-items/.lock exists; try again, and if this persists, remove it";
            StoreError::new(ErrorKind::Retry, text)
        })
    }

    /// An id that no folder has.
    fn free(&self, now: &Time, slug: &str) -> Result<ItemId, StoreError> {
        let taken = self.all(&WorkItemStatus::ALL)?;
        let slugs = (1..=MAX_SAME).map(|n| {
            if n == 1 {
                slug.to_owned()
            } else {
                format!("{slug}-{n}")
            }
        });
        let ids = slugs.filter_map(|slug| ItemId::new(now, &slug));
        for id in ids.filter(|id| !taken.iter().any(|found| found.id == *id)) {
            if self.is_missing(&format!("{}/{id}", WorkItemStatus::Open))? {
                return Ok(id);
            }
        }
        let text = format!(
            "{MAX_SAME} items of this title were made in this second; add to one of them instead"
        );
        Err(StoreError::new(ErrorKind::Exhausted, text))
    }

    fn is_missing(&self, path: &str) -> Result<bool, StoreError> {
        let found = self.files.workspace().metadata(&self.at(path)?);
        Ok(found.is_err_and(|error| error.is_not_found()))
    }

    /// Removes the directory of an item that was not created, and the folder if it was `made` for the item.
    fn emptied(&self, thread: &Located, made: bool) {
        for above in thread
            .path()
            .ancestors()
            .skip(1)
            .take(if made { 2 } else { 1 })
        {
            let at = self.files.workspace().inside(above);
            // Files of other programs there prevent the removal.
            at.and_then(|at| self.files.workspace().remove_dir(&at))
                .ok();
        }
    }

    /// Moves the item before its files change, so that the records name the final paths.
    async fn move_to(
        &self,
        found: &mut LocatedItem,
        to: WorkItemStatus,
        cx: &ToolContext,
    ) -> Result<(), StoreError> {
        if found.folder == to {
            return Ok(());
        }
        let place = |folder: WorkItemStatus| self.at(&format!("{folder}/{}", found.id));
        tools::move_dir(&self.files, &place(found.folder)?, &place(to)?, cx).await?;
        found.folder = to;
        Ok(())
    }
}

impl LocatedItem {
    fn path(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.folder, self.id)
    }

    fn corrupt(&self, name: &str, why: &str) -> StoreError {
        let text = format!(
            "work-items/{}: {why}; fix the file, `./tickets.sh doctor` shows more",
            self.path(name)
        );
        StoreError::new(ErrorKind::Corrupt, text)
    }
}

/// Applies the changed fields; returns a text for each.
fn fields(heading: &mut Heading, change: &WorkItemChange) -> Result<Vec<String>, StoreError> {
    let mut done = Vec::new();
    let mut set =
        |name: &str, changed: bool| done.extend(changed.then(|| format!("{name} changed")));
    let labels = change.labels.clone().map(few).transpose()?;
    set("title", replaced(&mut heading.title, change.title.clone()));
    set("kind", replaced(&mut heading.kind, change.kind));
    set("priority", replaced(&mut heading.priority, change.priority));
    set("labels", replaced(&mut heading.labels, labels));
    set(
        "assignee",
        replaced(&mut heading.assignee, change.assignee.clone()),
    );
    Ok(done)
}

fn replaced<T: PartialEq>(old: &mut T, new: Option<T>) -> bool {
    let changed = new.as_ref().is_some_and(|new| new != old);
    if let Some(new) = new {
        *old = new;
    }
    changed
}

fn few<T>(labels: Vec<T>) -> Result<Vec<T>, StoreError> {
    if labels.len() <= MAX_LABELS {
        return Ok(labels);
    }
    Err(StoreError::fix(format!(
        "{} labels are too many; at most {MAX_LABELS}",
        labels.len()
    )))
}

/// A text that may be in an item.
fn given(what: &str, text: &str) -> Result<String, StoreError> {
    plain::text(what, text, MAX_TEXT).map_err(StoreError::fix)?;
    Ok(plain::trimmed(text))
}
