//! A project and its index in temporary directories, and the tables of an index as text.
#![allow(dead_code, reason = "each test file uses a part of it")]

use authority::{Access, SecretNames, Workspace};
use knowledge::{
    Connector, ContextIndex, ContextReader, Error, Filesystem, FilesystemLimits, ItemSink,
    SearchQuery, SourceItem, SyncReport,
};
use rusqlite::Connection;
use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

pub(crate) struct Project {
    root: TempDir,
    cache: TempDir,
    pub(crate) limits: FilesystemLimits,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            cache: tempfile::tempdir().unwrap(),
            limits: FilesystemLimits::USUAL,
        }
    }

    /// The same files with an index of their own.
    pub(crate) fn index_dir(&self) -> &Path {
        self.cache.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.cache.path().join("index.sqlite")
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn index(&self) -> ContextIndex {
        ContextIndex::below(open(self.cache.path(), Access::ReadWrite))
    }

    /// Its files, as a sync so much later sees them.
    pub(crate) fn source(&self, later: Duration) -> Filesystem {
        let files = open(self.root(), Access::Read);
        Filesystem::new("files", files, self.limits, SystemTime::now() + later)
    }

    pub(crate) fn sync(&self) -> SyncReport {
        sync(&self.index(), &self.source(Duration::from_secs(60)))
    }

    pub(crate) fn reader(&self) -> ContextReader {
        self.index().read().unwrap()
    }

    /// The documents that a query finds, the best first.
    pub(crate) fn found(&self, query: &str) -> Vec<String> {
        let query = SearchQuery {
            text: query.to_owned(),
            limit: 20,
            ..SearchQuery::default()
        };
        let hits = self.reader().search(&query).unwrap();
        hits.into_iter().map(|hit| hit.source_id).collect()
    }

    /// The tables of a fresh index of the same files.
    pub(crate) fn fresh(&self) -> String {
        let cache = tempfile::tempdir().unwrap();
        let index = ContextIndex::below(open(cache.path(), Access::ReadWrite));
        sync(&index, &self.source(Duration::from_secs(60)));
        tables(&cache.path().join("index.sqlite"))
    }
}

pub(crate) fn open(dir: &Path, access: Access) -> Workspace {
    Workspace::open(&ambient::claim(), dir, dir, access).unwrap()
}

pub(crate) fn with_secret(dir: &Path, glob: &str) -> ContextIndex {
    let names = SecretNames::with(&[glob.to_owned()]).unwrap();
    ContextIndex::below(open(dir, Access::Read).with_secrets(names))
}

pub(crate) fn sync(index: &ContextIndex, source: &dyn Connector) -> SyncReport {
    let on = &mut |_| ControlFlow::Continue(());
    index.sync(source, SystemTime::now(), false, on).unwrap()
}

/// All that a search can find and show, whatever order it was added in; without ids and the states of files.
pub(crate) fn tables(file: &Path) -> String {
    let db = Connection::open(file).unwrap();
    db.execute_batch("CREATE VIRTUAL TABLE temp.instances USING fts5vocab(main, terms, instance);")
        .unwrap();
    let mut out = String::new();
    for sql in [
        "SELECT s.name, d.source_id, d.title, d.content_type, d.updated_at, d.bytes, d.digest FROM documents d
            JOIN sources s ON s.id = d.source ORDER BY 1, 2",
        "SELECT d.source_id, c.seq, c.heading, c.overlap, c.digest, c.text FROM chunks c JOIN documents d
            ON d.id = c.document ORDER BY 1, 2",
        "SELECT d.source_id, c.seq, i.col, i.offset, i.term FROM temp.instances i JOIN chunks c ON c.id = i.doc
            JOIN documents d ON d.id = c.document ORDER BY 1, 2, 3, 4",
        "SELECT s.name, k.why, k.items FROM skipped k JOIN sources s ON s.id = k.source ORDER BY 1, 2",
        "SELECT count(*) FROM temp.instances",
    ] {
        let mut rows = db.prepare(sql).unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                write!(out, "{:?} ", row.get_ref(column).unwrap()).unwrap();
            }
            out.push('\n');
        }
    }
    out
}

/// A source whose listing is a function.
pub(crate) struct Listing<F>(pub(crate) F);

impl<F: Fn(&mut dyn ItemSink) -> Result<(), Error>> Connector for Listing<F> {
    fn name(&self) -> &str {
        "listing"
    }

    fn kind(&self) -> &'static str {
        "test"
    }

    fn scan(&self, sink: &mut dyn ItemSink) -> Result<(), Error> {
        self.0(sink)
    }
}

pub(crate) fn item(source_id: &str, body: &str) -> SourceItem {
    SourceItem {
        source_id: source_id.to_owned(),
        stamp: String::new(),
        source_url: format!("test:{source_id}"),
        title: source_id.to_owned(),
        content_type: "text/plain",
        updated_at: 1_700_000_000,
        body: body.to_owned(),
    }
}
