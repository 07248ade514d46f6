//! Formats 1 and 2, as they were written when they were new. What these files say is read for ever, and the same input
//! still gives the same bytes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;
use session_store::{Disk, Opened, Options, Reader, RealDisk, RecordId, Session, Tail};

use crate::disks::Quick;
use crate::scene::{Raw, Scene, clock, files, formats, shown};

/// A session with every kind that has ever been written, over several segments, with a blob, a checkpoint, a cut tail. In
/// format 2, the batch with `input_withdrawn` asks for it.
fn fixture(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/format-{format}"))
}

/// What a reader has to find, by format: seq, epoch, countdown, kind, version and body of each record, a line each.
const EXPECTED: [(u32, &str); 2] = [
    (1, include_str!("../fixtures/format-1.txt")),
    (2, include_str!("../fixtures/format-2.txt")),
];

/// Kinds and bodies. The store does not know what they mean; they are shaped like those that a pod writes.
const RECORDS: [&[(&str, &str)]; 14] = [
    &[(
        "host_started",
        r#"{"version":"0.1.0","pid":7,"project":"/p","cwd":"/p","sandbox":"off","config_digest":"00"}"#,
    )],
    &[
        ("features", r#"{"report":{"features":[]}}"#),
        ("surface", r#"{"surface":{"generation":1,"tools":[]}}"#),
    ],
    &[(
        "input_queued",
        r#"{"input":1,"text":"Grüße \u0000 \u2028 🦀"}"#,
    )],
    &[
        ("turn_started", r#"{"turn":1}"#),
        ("input_consumed", r#"{"input":1}"#),
        ("system_item", r#"{"text":"note"}"#),
    ],
    &[("request", r#"{"number":1,"items":2}"#)],
    &[
        (
            "response",
            r#"{"stop":"tool_calls","usage":{"input":1,"output":2,"cached":0}}"#,
        ),
        ("item", r#"{"item":{"type":"assistant","text":""}}"#),
        ("verdict", r#"{"call":"c00000001","decision":"allow"}"#),
        (
            "tool_started",
            r#"{"call":"c00000001","name":"Read","effect":"read_only"}"#,
        ),
    ],
    &[
        ("file_changed", r#"{"path":"a.rs","before":null}"#),
        ("tool_finished", r#"{"call":"c00000001","ms":3}"#),
    ],
    &[
        ("feature_state", r#"{"feature":"f","name":"n"}"#),
        ("feature_note", "null"),
        ("grant", "{}"),
    ],
    &[
        ("notification_queued", r#"{"number":1}"#),
        ("background_task", "{}"),
        ("process", "{}"),
    ],
    &[
        ("attached", "{}"),
        ("detached", "{}"),
        ("input_withdrawn", r#"{"input":2}"#),
    ],
    &[("approval_requested", "{}"), ("approval_resolved", "{}")],
    &[
        ("compaction", "{}"),
        ("rewind", "{}"),
        ("fork", "{}"),
        ("gap", r#"{"first":1,"last":2}"#),
    ],
    &[
        ("suspended", r#"{"reason":"full"}"#),
        ("resumed", "{}"),
        ("a_kind_of_tomorrow", r#"{"any":[1,{"thing":null}]}"#),
    ],
    &[
        ("turn_finished", r#"{"turn":1}"#),
        ("recovery", r#"{"class":"torn_tail"}"#),
        ("host_stopped", r#"{"reason":"end"}"#),
    ],
];

struct Batch {
    records: &'static [(&'static str, &'static str)],
    format: u32,
}

fn batch(n: usize, format: u32) -> Batch {
    let asks = RECORDS[n]
        .iter()
        .any(|(kind, _)| *kind == "input_withdrawn");
    Batch {
        records: RECORDS[n],
        format: if asks { format } else { 1 },
    }
}

impl session_store::Records for Batch {
    fn encode(
        &self,
        frames: &mut session_store::Frames<'_>,
    ) -> Result<(), session_store::EncodeError> {
        self.records.iter().try_for_each(|(kind, body)| {
            Raw(kind, RawValue::from_string((*body).to_owned()).unwrap()).encode(frames)
        })
    }

    fn format(&self) -> u32 {
        self.format
    }
}

fn options() -> Options {
    Options {
        disk: Arc::new(Quick) as Arc<dyn Disk>,
        segment_bytes: 1900,
        ..Options::new("golden-1", clock())
    }
}

/// Writes it all.
fn write(dir: &Path, format: u32) {
    let append = |opened: &Opened, n: usize| -> Option<RecordId> {
        opened
            .journal
            .append(batch(n, format))
            .wait()
            .unwrap()
            .seal()
    };
    let opened = Session::create(dir, options()).unwrap();
    for n in 0..13 {
        if let Some(seal) = append(&opened, n) {
            opened
                .journal
                .checkpoint(seal, 1, format!("up to batch {n}\n\0").into_bytes());
        }
    }
    opened.blobs.put(b"a blob\n").unwrap();
    opened.journal.close();
    // A tail that the next writer cuts off.
    let newest = files(&dir.join("log")).pop().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    bytes.extend_from_slice(b"{\"c\":\"0000");
    std::fs::write(&newest, bytes).unwrap();
    let opened = Session::open(dir, options()).unwrap();
    assert_eq!(opened.recovered.cut, 10);
    append(&opened, 13);
    opened.journal.close();
}

/// Seqs and kinds, and the line behind the columns that count.
fn told(dir: &Path) -> String {
    let frames = Reader::open(dir).unwrap().frames().map(Result::unwrap);
    let line = |f: session_store::OwnedFrame| {
        let body = f
            .line
            .split_once(&format!("\"k\":\"{}\"", f.kind))
            .unwrap()
            .1;
        format!(
            "{} {} {} {:08x} {} {} {body}\n",
            f.seq, f.epoch, f.batch_left, f.crc, f.durable, f.kind
        )
    };
    frames.map(line).collect()
}

fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(files(&path));
        } else if !path.ends_with("LOCK") && !path.ends_with("RESERVE") {
            all.push((
                path.strip_prefix(dir).unwrap().to_path_buf(),
                std::fs::read(&path).unwrap(),
            ));
        }
    }
    all.sort();
    all
}

/// A copy, because opening writes.
fn copied(format: u32) -> Scene {
    let scene = Scene::new();
    for (path, bytes) in tree(&fixture(format)) {
        let to = scene.dir.join(path);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, bytes).unwrap();
    }
    scene
}

#[test]
fn each_format_is_read_for_ever() {
    for (format, expected) in EXPECTED {
        let scene = copied(format);
        assert_eq!(told(&scene.dir), expected);
        let formats = formats(&scene.dir);
        assert!(
            formats.is_sorted() && (formats[0], *formats.last().unwrap()) == (1, format.into()),
            "{formats:?}"
        );
        let reader = Reader::open(&scene.dir).unwrap();
        assert_eq!(
            (reader.tail().unwrap(), reader.losses().unwrap()),
            (Tail::Clean, vec![])
        );
        let (checkpoint, _) = reader.checkpoint().unwrap();
        assert!(checkpoint.bytes().starts_with(b"up to batch ") && checkpoint.version() == 1);
        let digest = session_store::Digest::of(b"a blob\n");
        assert_eq!(reader.blobs().read(&digest, 100).unwrap(), b"a blob\n");
        let kinds: HashSet<String> = reader.frames().map(|frame| frame.unwrap().kind).collect();
        let written = RECORDS
            .iter()
            .flat_map(|batch| batch.iter())
            .map(|(kind, _)| *kind)
            .chain(["segment", "seal"]);
        assert!(written.clone().all(|kind| kinds.contains(kind)) && kinds.len() == written.count());
    }
}

#[test]
fn each_format_is_opened_and_goes_on() {
    for (format, _) in EXPECTED {
        let scene = copied(format);
        let before = shown(&scene.dir);
        let (opened, past) = Session::resume(
            &scene.dir,
            Options {
                disk: Arc::new(RealDisk),
                ..options()
            },
        )
        .unwrap();
        assert_eq!(
            (opened.recovered.session.as_str(), opened.recovered.class),
            ("golden-1", None)
        );
        assert!(past.checkpoint().is_some());
        opened.journal.append(batch(0, format)).wait().unwrap();
        opened.journal.close();
        assert!(shown(&scene.dir).starts_with(&before));
        assert_eq!(formats(&scene.dir).last(), Some(&format.into()));
    }
}

/// The bytes are a function of what is handed in. When a change of the format is meant, it gets a number and a
/// directory of its own; what this test writes is in the directory that it names.
#[test]
fn the_same_input_gives_the_same_bytes() {
    for (format, _) in EXPECTED {
        let scene = Scene::new();
        write(&scene.dir, format);
        let new = tree(&scene.dir);
        let old = tree(&fixture(format));
        if new == old {
            continue;
        }
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("format-{format}"));
        std::fs::remove_dir_all(&kept).ok();
        for (path, bytes) in &new {
            std::fs::create_dir_all(kept.join(path).parent().unwrap()).unwrap();
            std::fs::write(kept.join(path), bytes).unwrap();
        }
        std::fs::write(kept.with_extension("txt"), told(&scene.dir)).unwrap();
        let names = |tree: &[(PathBuf, Vec<u8>)]| {
            tree.iter()
                .map(|(path, _)| path.clone())
                .collect::<Vec<_>>()
        };
        panic!(
            "{} differs from the fixture: {:?}, {:?}",
            kept.display(),
            names(&new),
            names(&old)
        );
    }
}
