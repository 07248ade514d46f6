//! The file of an index: opened, built again where it cannot be used, and read. SQLite with one full text table.
//!
//! The table of the full text search keeps no text of its own: its rows are terms, made by `terms`, under the numbers of
//! `chunks`. All row numbers are declared, so that no maintenance of the file changes them.

use crate::lock::SyncLock;
use crate::terms::Terms;
use crate::{Error, ErrorKind};
use authority::{Access, SecretNames, Workspace};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the file, below the directory of the index.
const FILE: &str = "index.sqlite";

/// What SQLite keeps beside it.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// Says in the file that it is ours (`yoic`), and which tables it has. A file of another version is built again.
const APPLICATION: i64 = 0x796f_6963;
const VERSION: i64 = 2;

/// So many steps of SQLite pass until a reader asks again whether to end: a fraction of a millisecond.
const ASKED_AFTER: i32 = 1000;

/// How long another writer is waited for.
const BUSY: Duration = Duration::from_secs(5);

const TABLES: &str = "
CREATE TABLE sources(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, synced_at INTEGER, error TEXT);
CREATE TABLE skipped(source INTEGER NOT NULL REFERENCES sources(id), why TEXT NOT NULL, items INTEGER NOT NULL,
    PRIMARY KEY(source, why)) WITHOUT ROWID;
CREATE TABLE documents(id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, source INTEGER NOT NULL REFERENCES sources(id),
    source_id TEXT NOT NULL, source_url TEXT NOT NULL, title TEXT NOT NULL, content_type TEXT NOT NULL,
    updated_at INTEGER NOT NULL, bytes INTEGER NOT NULL, digest TEXT NOT NULL, stamp TEXT NOT NULL,
    UNIQUE(source, source_id));
CREATE TABLE chunks(id INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents(id), seq INTEGER NOT NULL,
    heading TEXT NOT NULL, text TEXT NOT NULL, overlap INTEGER NOT NULL, digest TEXT NOT NULL, UNIQUE(document, seq));
CREATE TABLE embeddings(model TEXT NOT NULL);
CREATE TABLE vectors(id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE terms USING fts5(words, parts, heads, content='', contentless_delete=1,
    tokenize=\"ascii tokenchars '_+-#./:@$~'\");
";

/// The index below one directory. Nothing is opened before it is used.
#[derive(Clone, Debug)]
pub struct ContextIndex {
    dir: Workspace,
    wait: Duration,
}

/// How an index was opened for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OpenedIndex {
    /// There was none.
    Created,
    /// As it was.
    Found,
    /// It could not be used, for this reason, and is built again.
    Rebuilt(String),
}

impl ContextIndex {
    /// The index in the project directory of `dir`. Documents whose paths the secret names of `dir` match are not shown.
    #[must_use]
    pub fn below(dir: Workspace) -> Self {
        Self { dir, wait: BUSY }
    }

    /// The same, waiting so long for another process that writes it; by default 5 seconds.
    #[must_use]
    pub fn waiting(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    fn place(&self) -> Result<&Path, Error> {
        let revoked = |_| Error::new(ErrorKind::Denied, "the grant of the index was revoked");
        let _use = self.dir.door().enter().map_err(revoked)?;
        Ok(self.dir.project())
    }

    fn path(&self) -> Result<PathBuf, Error> {
        Ok(self.place()?.join(FILE))
    }

    /// Keeps other syncs away; they wait for a bounded time.
    pub(crate) fn lock(&self) -> Result<SyncLock, Error> {
        self.may_write()?;
        SyncLock::take(self.place()?, self.wait)
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// `Missing` when there is none, `Damaged` when it is of another version or damaged; see [`ErrorKind`].
    pub fn read(&self) -> Result<ContextReader, Error> {
        let path = self.path()?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if path.symlink_metadata().is_err() {
            return Err(Error::new(ErrorKind::Missing, "there is no index"));
        }
        let db = Connection::open_with_flags(&path, flags)?;
        db.busy_timeout(self.wait)?;
        usable(&db)?;
        Ok(ContextReader {
            db,
            secrets: self.dir.secret_names().clone(),
        })
    }

    fn may_write(&self) -> Result<(), Error> {
        match self
            .dir
            .roots()
            .all(|(_, access)| access == Access::ReadWrite)
        {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Denied, "the index may only be read")),
        }
    }

    /// Opens it for writing: creates it, or builds it again. Only under the [`lock`](Self::lock).
    pub(crate) fn write(&self) -> Result<(Connection, OpenedIndex), Error> {
        let path = self.path()?;
        let is_there = path.symlink_metadata().is_ok();
        if is_there {
            match connect(&path, self.wait).and_then(|db| usable(&db).map(|()| db)) {
                Ok(db) => return Ok((db, OpenedIndex::Found)),
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    self.remove()?;
                    let db = created(&path, self.wait)?;
                    return Ok((db, OpenedIndex::Rebuilt(error.to_string())));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((created(&path, self.wait)?, OpenedIndex::Created))
    }

    /// Compacts the file and checks all of it: the file, the full text table, and whether both have the same chunks with the
    /// texts that were indexed. Reads every chunk; waits for a sync for a bounded time.
    ///
    /// # Errors
    /// As for [`read`](Self::read); `Damaged` with what was found.
    pub fn check(&self) -> Result<(), Error> {
        self.read()?;
        let _held = self.lock()?;
        let db = connect(&self.path()?, self.wait)?;
        db.execute_batch("VACUUM")?;
        let damaged = |what: String| Err(Error::new(ErrorKind::Damaged, what));
        let found: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if found != "ok" {
            return damaged(format!("the file of the index: {found}"));
        }
        db.execute(
            "INSERT INTO terms(terms, rank) VALUES('integrity-check', 1)",
            [],
        )?;
        let sql =
            "SELECT (SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM terms_docsize))
            + (SELECT count(*) FROM terms_docsize WHERE id NOT IN (SELECT id FROM chunks))";
        let apart: i64 = db.query_row(sql, [], |row| row.get(0))?;
        if apart > 0 {
            return damaged(format!("{apart} chunks are in one table only"));
        }
        let sql =
            "SELECT c.id, c.text, c.digest, z.sz FROM chunks c JOIN terms_docsize z ON z.id = c.id";
        let mut chunks = db.prepare(sql)?;
        let mut rows = chunks.query([])?;
        while let Some(row) = rows.next()? {
            let text = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
            let id: i64 = row.get(0)?;
            if digest(text) != row.get::<_, String>(2)? {
                return damaged(format!("chunk {id} is not the text that was indexed"));
            }
            // No check of SQLite compares the terms with the texts, as it has none of these.
            let Terms { words, parts } = Terms::of(text);
            let many = [&words, &parts].map(|terms| terms.split_whitespace().count() as u64);
            let stored = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
            if !numbers(stored).take(2).eq(many) {
                return damaged(format!("chunk {id} has the terms of another text"));
            }
        }
        Ok(())
    }

    /// Removes the file, and what belongs to it.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        let names = BESIDE.into_iter().chain([""]);
        for name in names.map(|end| format!("{FILE}{end}")) {
            let at = self.dir.inside(Path::new(&name))?;
            match self.dir.remove(&at) {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

fn connect(path: &Path, wait: Duration) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(wait)?;
    db.execute_batch(
        "PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL;",
    )?;
    Ok(db)
}

fn created(path: &Path, wait: Duration) -> Result<Connection, Error> {
    let db = connect(path, wait)?;
    db.execute_batch("PRAGMA journal_mode = WAL;")?;
    db.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
    ))?;
    Ok(db)
}

/// Whether the file is an index of this version. Looks at its beginning only.
fn usable(db: &Connection) -> Result<(), Error> {
    let number = |pragma: &str| db.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    match (application, version) {
        (APPLICATION, VERSION) => Ok(()),
        (APPLICATION, other) => Err(Error::new(
            ErrorKind::Damaged,
            format!("the index is of version {other}; this program uses version {VERSION}"),
        )),
        _ => Err(Error::new(ErrorKind::Damaged, "the file is not an index")),
    }
}

/// The numbers of a blob, as SQLite writes them: seven bits in each byte, the highest first.
fn numbers(mut blob: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let mut number = 0;
        while let Some((byte, rest)) = blob.split_first() {
            blob = rest;
            number = number << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    })
}

/// The digest of a text, as 32 hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    let mut digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    digest.truncate(32);
    digest
}

/// An index that is read.
#[derive(Debug)]
pub struct ContextReader {
    pub(crate) db: Connection,
    pub(crate) secrets: SecretNames,
}

/// A document with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IndexedDocument {
    /// It stays over syncs, and when the document is renamed.
    pub id: String,
    pub source: String,
    pub source_id: String,
    pub source_url: String,
    pub title: String,
    pub content_type: String,
    /// In seconds since 1970.
    pub updated_at: i64,
    /// BLAKE3 of the text, 32 hexadecimal digits.
    pub digest: String,
    pub text: String,
}

/// A source, and what the newest sync did with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IndexedSource {
    pub name: String,
    pub kind: String,
    pub documents: u64,
    pub chunks: u64,
    /// Bytes of the documents.
    pub bytes: u64,
    /// When it was last synced, in seconds since 1970.
    pub synced_at: Option<i64>,
    /// How many items were left out, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Why the newest sync of it failed.
    pub error: Option<String>,
}

impl ContextReader {
    /// The same, asking now and then whether to end: each operation then fails with `Cancelled`.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn until(mut self, ends: impl FnMut() -> bool + Send + 'static) -> Result<Self, Error> {
        self.db.progress_handler(ASKED_AFTER, Some(ends))?;
        Ok(self)
    }

    /// The document of an id, or of the id of one of its chunks (`ID#NUMBER`), with its whole text; and the line, from 1, at
    /// which that chunk begins.
    ///
    /// # Errors
    /// `FixInput` when there is none.
    pub fn get(&self, id: &str) -> Result<(IndexedDocument, usize), Error> {
        let (uuid, chunk) = id.split_once('#').unwrap_or((id, "0"));
        let missing = || {
            let text = "no document has this id; a search shows ids";
            Error::new(ErrorKind::FixInput, text)
        };
        let chunk: usize = chunk.parse().map_err(|_no_number| missing())?;
        let sql = "SELECT d.id, d.uuid, s.name, d.source_id, d.source_url, d.title, d.content_type, d.updated_at, d.digest
            FROM documents d JOIN sources s ON s.id = d.source WHERE d.uuid = ?1";
        let read = |row: &Row<'_>| {
            let document = IndexedDocument {
                id: row.get(1)?,
                source: row.get(2)?,
                source_id: row.get(3)?,
                source_url: row.get(4)?,
                title: row.get(5)?,
                content_type: row.get(6)?,
                updated_at: row.get(7)?,
                digest: row.get(8)?,
                text: String::new(),
            };
            Ok::<_, rusqlite::Error>((row.get::<_, i64>(0)?, document))
        };
        let found = self.db.query_row(sql, [uuid], read).optional()?;
        let shown = found.filter(|(_, document)| self.may_show(&document.source_id));
        let Some((row, mut document)) = shown else {
            return Err(missing());
        };
        let sql = "SELECT text, overlap FROM chunks WHERE document = ?1 ORDER BY seq";
        let mut chunks = self.db.prepare(sql)?;
        let mut rows = chunks.query([row])?;
        let mut line = None;
        let mut seq = 0;
        while let Some(row) = rows.next()? {
            let text = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
            let overlap = usize::try_from(row.get::<_, i64>(1)?).unwrap_or(usize::MAX);
            if seq == chunk {
                let before = document.text.len().saturating_sub(overlap);
                let before = document.text.get(..before).unwrap_or_default();
                line = Some(1 + before.matches('\n').count());
            }
            document
                .text
                .push_str(text.get(overlap..).unwrap_or_default());
            seq += 1;
        }
        match line {
            Some(line) => Ok((document, line)),
            // An empty document has no chunks.
            None if chunk == 0 => Ok((document, 1)),
            None => Err(missing()),
        }
    }

    /// The sources, by name.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub fn sources(&self) -> Result<Vec<IndexedSource>, Error> {
        let sql = "SELECT s.id, s.name, s.kind, s.synced_at, s.error, count(d.id), coalesce(sum(d.bytes), 0),
            (SELECT count(*) FROM chunks c JOIN documents o ON o.id = c.document WHERE o.source = s.id)
            FROM sources s LEFT JOIN documents d ON d.source = s.id GROUP BY s.id ORDER BY s.name";
        let mut sources = self.db.prepare(sql)?;
        let counted = |row: &Row<'_>, at: usize| {
            let many: i64 = row.get(at)?;
            Ok::<_, rusqlite::Error>(u64::try_from(many).unwrap_or_default())
        };
        let read = |row: &Row<'_>| {
            let source = IndexedSource {
                name: row.get(1)?,
                kind: row.get(2)?,
                synced_at: row.get(3)?,
                error: row.get(4)?,
                documents: counted(row, 5)?,
                bytes: counted(row, 6)?,
                chunks: counted(row, 7)?,
                skipped: BTreeMap::new(),
            };
            Ok::<_, rusqlite::Error>((row.get::<_, i64>(0)?, source))
        };
        let all = sources.query_map([], read)?;
        let mut all = all.collect::<Result<Vec<_>, _>>()?;
        let sql = "SELECT why, items FROM skipped WHERE source = ?1";
        let mut skipped = self.db.prepare(sql)?;
        for (id, source) in &mut all {
            let rows =
                skipped.query_map(params![*id], |row| Ok((row.get(0)?, counted(row, 1)?)))?;
            source.skipped = rows.collect::<Result<_, _>>()?;
        }
        Ok(all.into_iter().map(|(_, source)| source).collect())
    }

    /// Whether a document may be shown: its path may match a secret name that is newer than the index.
    pub(crate) fn may_show(&self, source_id: &str) -> bool {
        !self.secrets.matches(Path::new(source_id))
    }
}
