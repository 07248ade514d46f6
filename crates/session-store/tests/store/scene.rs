//! A session in a temporary directory, and batches to put into it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::value::RawValue;
use session_store::{
    Clock, Committed, Disk, EncodeError, Frames, OpenError, Opened, Options, Reader, Records,
    Refused, Session,
};

use crate::disks::Quick;

/// One batch of `note` records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notes(pub(crate) Vec<String>);

#[derive(Serialize)]
struct Note<'a> {
    text: &'a str,
}

impl Records for Notes {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        self.0
            .iter()
            .try_for_each(|text| frames.record("note", 1, &Note { text }).map(drop))
    }
}

/// Notes that ask for a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asking(pub(crate) u32, pub(crate) Notes);

impl Records for Asking {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        self.1.encode(frames)
    }

    fn format(&self) -> u32 {
        self.0
    }
}

/// A batch of one record whose body is given as it is.
pub(crate) struct Raw(pub(crate) &'static str, pub(crate) Box<RawValue>);

impl Records for Raw {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        frames.record(self.0, 1, &self.1).map(drop)
    }
}

pub(crate) fn notes(texts: &[&str]) -> Notes {
    Notes(texts.iter().map(|text| (*text).to_owned()).collect())
}

/// Ticks a microsecond at each look, from a round date.
pub(crate) fn clock() -> Clock {
    let ticks = AtomicU64::new(1_790_000_000_000_000);
    Arc::new(move || ticks.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn options(disk: Arc<dyn Disk>) -> Options {
    Options {
        disk,
        ..Options::new("s-1", clock())
    }
}

pub(crate) struct Scene {
    _root: tempfile::TempDir,
    pub(crate) dir: PathBuf,
}

/// In memory where there is such a place: a file replaced ten thousand times makes ext4 flush each of them.
pub(crate) fn root() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

impl Scene {
    pub(crate) fn new() -> Self {
        let root = root();
        let dir = root.path().join("one");
        Self { _root: root, dir }
    }

    pub(crate) fn create(&self) -> Opened {
        Session::create(&self.dir, options(Arc::new(Quick))).unwrap()
    }

    pub(crate) fn open(&self) -> Result<Opened, OpenError> {
        Session::open(&self.dir, options(Arc::new(Quick)))
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("log/00000000000000000001.jsonl")
    }

    pub(crate) fn head(&self) -> PathBuf {
        self.dir.join("HEAD")
    }

    /// A closed session with these batches.
    pub(crate) fn with(batches: &[&[&str]]) -> Self {
        let scene = Self::new();
        let opened = scene.create();
        for batch in batches {
            opened.journal.append(notes(batch)).wait().unwrap();
        }
        opened.journal.close();
        scene
    }
}

/// The texts of all notes that a reader shows.
pub(crate) fn texts(dir: &Path) -> Vec<String> {
    let frames = Reader::open(dir).unwrap().frames();
    frames
        .map(|frame| frame.unwrap())
        .filter(|frame| frame.kind == "note")
        .map(|frame| text(&frame.line))
        .collect()
}

/// The text of one note.
pub(crate) fn text(line: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    value["text"].as_str().unwrap().to_owned()
}

/// The formats of the segments.
pub(crate) fn formats(dir: &Path) -> Vec<u64> {
    let frames = Reader::open(dir)
        .unwrap()
        .frames()
        .map(|frame| frame.unwrap());
    let openings = frames.filter(|frame| frame.kind == "segment");
    openings
        .map(|frame| {
            serde_json::from_str::<serde_json::Value>(&frame.line).unwrap()["format"]
                .as_u64()
                .unwrap()
        })
        .collect()
}

/// Every line of the log that a reader shows.
pub(crate) fn shown(dir: &Path) -> Vec<String> {
    Reader::open(dir)
        .unwrap()
        .frames()
        .map(|frame| frame.unwrap().line)
        .collect()
}

pub(crate) fn append(opened: &Opened, batch: &[&str]) -> Result<Committed<Notes>, Refused<Notes>> {
    opened.journal.append(notes(batch)).wait()
}

/// The files in a directory, none when it is missing.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}
