//! A sync: brings the index to what a source has now, in one transaction. A kill at any point leaves the index as it was
//! before.

use crate::chunk::chunks;
use crate::connector::{Connector, ItemSink, MARKDOWN, SkipReason, SourceItem};
use crate::index::{ContextIndex, OpenedIndex, digest};
use crate::terms::Terms;
use crate::{Error, ErrorKind};
use rusqlite::{
    Connection, OptionalExtension, Statement, Transaction, TransactionBehavior, params,
};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::time::{SystemTime, UNIX_EPOCH};

/// So many items pass between two reports of progress.
const REPORTED: u64 = 100;

/// How far a sync is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyncProgress {
    /// Items that the source has told so far, those that were skipped included.
    pub items: u64,
    /// Those of them that are new or changed.
    pub changed: u64,
}

/// What a sync did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyncReport {
    pub source: String,
    pub added: u64,
    pub changed: u64,
    pub renamed: u64,
    pub removed: u64,
    pub unchanged: u64,
    /// Items that are in no index, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Why the index was built again, if it was.
    pub rebuilt: Option<String>,
}

impl ContextIndex {
    /// Syncs one source. With `dry_run` nothing is kept. `on` is told the progress now and then, and ends the sync with
    /// `Break`; the index then is as before. An index that cannot be used is built again.
    ///
    /// # Errors
    /// `Busy` when another sync runs for longer than is waited; the connector's error when it cannot list its source, which is kept with the source;
    /// `Cancelled`; see [`ErrorKind`].
    pub fn sync(
        &self,
        connector: &dyn Connector,
        now: SystemTime,
        dry_run: bool,
        on: &mut dyn FnMut(SyncProgress) -> ControlFlow<()>,
    ) -> Result<SyncReport, Error> {
        let _held = self.lock()?;
        let (mut db, mut opened) = self.write()?;
        let mut done = synced(&mut db, connector, now, dry_run, on);
        if let Err(error) = &done
            && error.kind() == ErrorKind::Damaged
            && opened == OpenedIndex::Found
        {
            // What its beginning did not show.
            opened = OpenedIndex::Rebuilt(error.to_string());
            drop(db);
            self.remove()?;
            db = self.write()?.0;
            done = synced(&mut db, connector, now, dry_run, on);
        }
        let mut report = done?;
        if let OpenedIndex::Rebuilt(why) = opened {
            report.rebuilt = Some(why);
        }
        Ok(report)
    }
}

fn synced(
    db: &mut Connection,
    connector: &dyn Connector,
    now: SystemTime,
    dry_run: bool,
    on: &mut dyn FnMut(SyncProgress) -> ControlFlow<()>,
) -> Result<SyncReport, Error> {
    let whole = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "INSERT INTO sources(name, kind) VALUES(?1, ?2) ON CONFLICT(name) DO UPDATE SET kind = excluded.kind";
    whole.execute(sql, params![connector.name(), connector.kind()])?;
    let source: i64 = whole.query_row(
        "SELECT id FROM sources WHERE name = ?1",
        [connector.name()],
        |row| row.get(0),
    )?;
    let scanned = scanned(&whole, source, connector, on);
    let failed = match &scanned {
        Err(error) if error.kind() != ErrorKind::Unavailable => return scanned,
        Err(error) => Some(error.to_string()),
        Ok(_report) => None,
    };
    if dry_run {
        return scanned;
    }
    if let Some(why) = failed {
        // The source keeps its documents; people learn of its state.
        whole.rollback()?;
        let sql = "INSERT INTO sources(name, kind, error) VALUES(?1, ?2, ?3)
            ON CONFLICT(name) DO UPDATE SET error = excluded.error";
        db.execute(sql, params![connector.name(), connector.kind(), why])?;
        return scanned;
    }
    let at = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let at = i64::try_from(at).unwrap_or(i64::MAX);
    whole.execute(
        "UPDATE sources SET synced_at = ?2, error = NULL WHERE id = ?1",
        params![source, at],
    )?;
    whole.execute("DELETE FROM skipped WHERE source = ?1", [source])?;
    if let Ok(report) = &scanned {
        for (why, items) in &report.skipped {
            let items = i64::try_from(*items).unwrap_or(i64::MAX);
            let sql = "INSERT INTO skipped(source, why, items) VALUES(?1, ?2, ?3)";
            whole.execute(sql, params![source, why, items])?;
        }
    }
    whole.commit()?;
    scanned
}

/// Takes all items of a source, and removes what it does not have any more.
fn scanned(
    whole: &Transaction<'_>,
    source: i64,
    connector: &dyn Connector,
    on: &mut dyn FnMut(SyncProgress) -> ControlFlow<()>,
) -> Result<SyncReport, Error> {
    let mut run = SyncRun {
        known: known(whole, source)?,
        new: Vec::new(),
        report: SyncReport {
            source: connector.name().to_owned(),
            ..SyncReport::default()
        },
        items: 0,
        on,
        source,
        name: connector.name(),
        tables: Tables::of(whole)?,
    };
    connector.scan(&mut run)?;
    run.remove_untold()?;
    Ok(run.report)
}

/// A document that the index has.
struct KnownDocument {
    row: i64,
    uuid: String,
    title: String,
    digest: String,
    stamp: String,
    is_told: bool,
}

fn known(whole: &Transaction<'_>, source: i64) -> Result<HashMap<String, KnownDocument>, Error> {
    let sql = "SELECT source_id, id, uuid, digest, stamp, title FROM documents WHERE source = ?1";
    let mut documents = whole.prepare(sql)?;
    let read = documents.query_map([source], |row| {
        let known = KnownDocument {
            row: row.get(1)?,
            uuid: row.get(2)?,
            digest: row.get(3)?,
            stamp: row.get(4)?,
            title: row.get(5)?,
            is_told: false,
        };
        Ok((row.get(0)?, known))
    })?;
    Ok(read.collect::<Result<_, _>>()?)
}

/// The statements of a sync.
struct Tables<'w> {
    add_document: Statement<'w>,
    change_document: Statement<'w>,
    touch_document: Statement<'w>,
    rename_document: Statement<'w>,
    remove_document: Statement<'w>,
    has_uuid: Statement<'w>,
    add_chunk: Statement<'w>,
    add_terms: Statement<'w>,
    chunks_of: Statement<'w>,
    remove_terms: Statement<'w>,
    remove_chunks: Statement<'w>,
}

impl<'w> Tables<'w> {
    fn of(db: &'w Connection) -> Result<Self, Error> {
        Ok(Self {
            add_document: db.prepare(
                "INSERT INTO documents(uuid, source, source_id, source_url, title, content_type, updated_at, bytes, digest, stamp)
                VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?,
            change_document: db.prepare(
                "UPDATE documents SET source_url = ?2, title = ?3, content_type = ?4, updated_at = ?5, bytes = ?6, digest = ?7,
                stamp = ?8 WHERE id = ?1",
            )?,
            touch_document: db
                .prepare("UPDATE documents SET source_url = ?2, updated_at = ?3, stamp = ?4 WHERE id = ?1")?,
            rename_document: db.prepare("UPDATE documents SET uuid = ?2 WHERE id = ?1")?,
            remove_document: db.prepare("DELETE FROM documents WHERE id = ?1")?,
            has_uuid: db.prepare("SELECT 1 FROM documents WHERE uuid = ?1")?,
            add_chunk: db.prepare(
                "INSERT INTO chunks(document, seq, heading, text, overlap, digest) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
            )?,
            add_terms: db.prepare("INSERT INTO terms(rowid, words, parts, heads) VALUES(?1, ?2, ?3, ?4)")?,
            chunks_of: db.prepare("SELECT id FROM chunks WHERE document = ?1")?,
            remove_terms: db.prepare("DELETE FROM terms WHERE rowid = ?1")?,
            remove_chunks: db.prepare("DELETE FROM chunks WHERE document = ?1")?,
        })
    }

    fn add_chunks(&mut self, document: i64, item: &SourceItem) -> Result<(), Error> {
        let parted = chunks(&item.body, item.content_type == MARKDOWN);
        for (seq, chunk) in (0i64..).zip(&parted) {
            let text = item.body.get(chunk.range.clone()).unwrap_or_default();
            let overlap = i64::try_from(chunk.overlap).unwrap_or_default();
            let row = self.add_chunk.insert(params![
                document,
                seq,
                chunk.heading,
                text,
                overlap,
                digest(text)
            ])?;
            let terms = Terms::of(text);
            let heads = format!("{}\n{}\n{}", item.title, chunk.heading, item.source_id);
            let heads = Terms::of(&heads).joined();
            self.add_terms
                .execute(params![row, terms.words, terms.parts, heads])?;
        }
        Ok(())
    }

    fn remove_chunks(&mut self, document: i64) -> Result<(), Error> {
        let mut rows = self.chunks_of.query([document])?;
        while let Some(row) = rows.next()? {
            self.remove_terms.execute([row.get::<_, i64>(0)?])?;
        }
        drop(rows);
        self.remove_chunks.execute([document])?;
        Ok(())
    }

    /// An id that no document has, from what is known of a new one: the same sync gives the same ids.
    fn new_uuid(&mut self, source: &str, item: &SourceItem, digest: &str) -> Result<String, Error> {
        let mut attempt = 0u64;
        loop {
            let mut hasher = blake3::Hasher::new();
            for part in [source, &item.source_id, digest] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part.as_bytes());
            }
            let hash = hasher.update(&attempt.to_le_bytes()).finalize();
            let uuid = as_uuid(&hash);
            if self
                .has_uuid
                .query_row([&uuid], |_| Ok(()))
                .optional()?
                .is_none()
            {
                return Ok(uuid);
            }
            attempt += 1;
        }
    }
}

/// The beginning of a hash in the form of a UUID of version 8.
fn as_uuid(hash: &blake3::Hash) -> String {
    let hex = hash.to_hex();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-8{}-a{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 15),
        part(15, 18),
        part(18, 30)
    )
}

/// A document that this sync added.
struct AddedDocument {
    row: i64,
    source_id: String,
    digest: String,
}

/// A sync that runs.
struct SyncRun<'a, 'w> {
    known: HashMap<String, KnownDocument>,
    new: Vec<AddedDocument>,
    report: SyncReport,
    items: u64,
    on: &'a mut dyn FnMut(SyncProgress) -> ControlFlow<()>,
    source: i64,
    name: &'a str,
    tables: Tables<'w>,
}

impl SyncRun<'_, '_> {
    fn count_item(&mut self) -> Result<(), Error> {
        self.items += 1;
        if !self.items.is_multiple_of(REPORTED) {
            return Ok(());
        }
        let progress = SyncProgress {
            items: self.items,
            changed: self.report.added + self.report.changed,
        };
        match (self.on)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::new(ErrorKind::Cancelled, "the sync was ended")),
        }
    }

    /// Removes the documents that the source did not tell. One whose text is that of a new one was renamed.
    fn remove_untold(&mut self) -> Result<(), Error> {
        let untold = self.known.extract_if(|_, known| !known.is_told);
        let mut untold: Vec<_> = untold.collect();
        untold.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut new: HashMap<&str, Vec<&AddedDocument>> = HashMap::new();
        self.new.sort_by(|a, b| b.source_id.cmp(&a.source_id));
        for added in &self.new {
            new.entry(&added.digest).or_default().push(added);
        }
        for (_, old) in untold {
            self.tables.remove_chunks(old.row)?;
            self.tables.remove_document.execute([old.row])?;
            match new.get_mut(old.digest.as_str()).and_then(Vec::pop) {
                Some(added) => {
                    self.tables
                        .rename_document
                        .execute(params![added.row, old.uuid])?;
                    self.report.renamed += 1;
                    self.report.added -= 1;
                }
                None => self.report.removed += 1,
            }
        }
        Ok(())
    }
}

impl ItemSink for SyncRun<'_, '_> {
    fn is_current(&mut self, source_id: &str, stamp: &str) -> Result<bool, Error> {
        let known = self.known.get_mut(source_id);
        match known.filter(|known| !stamp.is_empty() && known.stamp == stamp) {
            Some(known) => {
                if !std::mem::replace(&mut known.is_told, true) {
                    self.report.unchanged += 1;
                }
                self.count_item().map(|()| true)
            }
            None => Ok(false),
        }
    }

    fn put(&mut self, item: SourceItem) -> Result<(), Error> {
        self.count_item()?;
        let digest = digest(&item.body);
        let bytes = i64::try_from(item.body.len()).unwrap_or(i64::MAX);
        match self.known.get_mut(&item.source_id) {
            Some(known) if known.is_told => {}
            Some(known) if known.digest == digest && known.title == item.title => {
                known.is_told = true;
                self.tables.touch_document.execute(params![
                    known.row,
                    item.source_url,
                    item.updated_at,
                    item.stamp
                ])?;
                self.report.unchanged += 1;
            }
            Some(known) => {
                known.is_told = true;
                self.tables.remove_chunks(known.row)?;
                self.tables.change_document.execute(params![
                    known.row,
                    item.source_url,
                    item.title,
                    item.content_type,
                    item.updated_at,
                    bytes,
                    digest,
                    item.stamp
                ])?;
                self.tables.add_chunks(known.row, &item)?;
                self.report.changed += 1;
            }
            None => {
                let uuid = self.tables.new_uuid(self.name, &item, &digest)?;
                let row = self.tables.add_document.insert(params![
                    uuid,
                    self.source,
                    item.source_id,
                    item.source_url,
                    item.title,
                    item.content_type,
                    item.updated_at,
                    bytes,
                    digest,
                    item.stamp
                ])?;
                self.tables.add_chunks(row, &item)?;
                self.report.added += 1;
                let known = KnownDocument {
                    row,
                    uuid,
                    title: item.title,
                    digest: digest.clone(),
                    stamp: item.stamp,
                    is_told: true,
                };
                self.known.insert(item.source_id.clone(), known);
                self.new.push(AddedDocument {
                    row,
                    source_id: item.source_id,
                    digest,
                });
            }
        }
        Ok(())
    }

    fn skip(&mut self, why: SkipReason) {
        *self.report.skipped.entry(why.word()).or_default() += 1;
    }
}
