//! Every cut, every flipped bit, and what is found instead of a tail after a crash.

use std::path::{Path, PathBuf};

use session_store::{ErrorKind, FrameError, OpenError, OwnedFrame, ReadError, Reader, TailDamage};

use crate::scene::{Scene, append, files, shown, texts};

const BATCHES: [&[&str]; 4] = [
    &["one"],
    &["two", "three"],
    &["four", "five", "six"],
    &["seven"],
];

/// The bytes of a log and the frames in it.
struct Intact {
    scene: Scene,
    bytes: Vec<u8>,
    head: Vec<u8>,
    frames: Vec<OwnedFrame>,
}

impl Intact {
    fn new() -> Self {
        let scene = Scene::with(&BATCHES);
        let bytes = std::fs::read(scene.log()).unwrap();
        let head = std::fs::read(scene.head()).unwrap();
        let frames = Reader::open(&scene.dir)
            .unwrap()
            .frames()
            .map(Result::unwrap)
            .collect();
        Self {
            scene,
            bytes,
            head,
            frames,
        }
    }

    /// Puts these bytes in place of the log.
    fn lay(&self, log: &[u8], head: bool) -> PathBuf {
        let dir = self.scene.dir.clone();
        std::fs::write(self.scene.log(), log).unwrap();
        if head {
            std::fs::write(self.scene.head(), &self.head).unwrap();
        } else {
            let _ = std::fs::remove_file(self.scene.head());
        }
        if dir.join("quarantine").exists() {
            std::fs::remove_dir_all(dir.join("quarantine")).unwrap();
        }
        dir
    }

    /// How many records are in whole batches before `offset`, and where the last of those ends.
    fn whole(&self, offset: usize) -> (usize, usize) {
        let mut end = 0;
        let mut whole = (0, 0);
        for (n, frame) in self.frames.iter().enumerate() {
            end += frame.line.len() + 1;
            if end <= offset && frame.batch_left == 0 {
                whole = (n + 1, end);
            }
        }
        whole
    }

    fn is_prefix(&self, lines: &[String], of: usize) -> bool {
        lines
            .iter()
            .eq(self.frames[..of].iter().map(|frame| &frame.line))
    }
}

/// The bytes in quarantine; there is a description beside each.
fn quarantined(dir: &Path) -> Vec<u8> {
    let files = files(&dir.join("quarantine"));
    let bytes: Vec<_> = files
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "bytes"))
        .collect();
    assert_eq!(files.len(), bytes.len() * 2, "{files:?}");
    bytes
        .into_iter()
        .flat_map(|path| std::fs::read(path).unwrap())
        .collect()
}

// covers: INV-02
#[test]
fn every_truncation_leaves_the_longest_prefix_of_whole_batches() {
    let intact = Intact::new();
    for cut in 0..intact.bytes.len() {
        let dir = intact.lay(&intact.bytes[..cut], false);
        let (records, end) = intact.whole(cut);
        let opened = intact.scene.open().unwrap();
        let found = &opened.recovered;
        assert_eq!(found.last as usize, records, "cut at {cut}");
        assert_eq!(
            found.class,
            (cut > end).then_some(TailDamage::TornTail),
            "cut at {cut}"
        );
        assert_eq!(found.cut as usize, cut - end);
        assert_eq!(quarantined(&dir), &intact.bytes[end..cut], "cut at {cut}");
        assert!(intact.is_prefix(&shown(&dir), records), "cut at {cut}");
        append(&opened, &["goes on"]).unwrap();
        opened.journal.close();
        assert_eq!(texts(&dir).last().unwrap(), "goes on");
    }
}

/// HEAD was written behind the flush: what it names had been durable, and cutting is not for us to decide.
#[test]
fn a_truncation_below_head_is_damage_and_changes_nothing() {
    let intact = Intact::new();
    for cut in 0..intact.bytes.len() {
        let dir = intact.lay(&intact.bytes[..cut], true);
        let (records, _) = intact.whole(cut);
        let error = intact.scene.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let OpenError::Damaged { damage, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(damage.lost, records as u64 + 1..=8, "cut at {cut}");
        assert_eq!(
            std::fs::read(intact.scene.log()).unwrap(),
            &intact.bytes[..cut]
        );
        assert!(files(&dir.join("quarantine")).is_empty());
        let read: Vec<_> = Reader::open(&dir).unwrap().frames().collect();
        assert!(
            matches!(read.last(), Some(Err(ReadError::Damaged(_)))),
            "cut at {cut}"
        );
    }
}

/// Readers and recovery are asked about the same flipped bit.
#[test]
fn no_flipped_bit_is_accepted() {
    let intact = Intact::new();
    let offsets: Vec<usize> = intact
        .frames
        .iter()
        .scan(0, |end, frame| {
            let start = *end;
            *end += frame.line.len() + 1;
            Some(start)
        })
        .collect();
    let mut classes = std::collections::BTreeMap::new();
    for byte in 0..intact.bytes.len() {
        let hit = offsets.iter().filter(|start| **start <= byte).count() - 1;
        let (records, end) = intact.whole(byte);
        for bit in 0..8 {
            let mut flipped = intact.bytes.clone();
            flipped[byte] ^= 1 << bit;

            let dir = intact.lay(&flipped, true);
            let read: Vec<_> = Reader::open(&dir).unwrap().frames().collect();
            let (good, bad) = read.split_at(hit.min(read.len()));
            let good: Vec<_> = good
                .iter()
                .map(|frame| frame.clone().unwrap().line)
                .collect();
            assert!(intact.is_prefix(&good, hit), "byte {byte} bit {bit}");
            assert!(
                matches!(bad, [Err(ReadError::Damaged(d))] if d.seq == hit as u64 + 1),
                "byte {byte} bit {bit}"
            );
            assert!(
                matches!(intact.scene.open(), Err(OpenError::Damaged { .. })),
                "byte {byte} bit {bit}"
            );

            let dir = intact.lay(&flipped, false);
            match intact.scene.open() {
                Ok(opened) => {
                    let class = opened.recovered.class.map(TailDamage::name);
                    *classes.entry(class).or_insert(0) += 1;
                    assert!(class.is_some(), "byte {byte} bit {bit}");
                    assert!(
                        intact.is_prefix(&shown(&dir), records),
                        "byte {byte} bit {bit}"
                    );
                    assert_eq!(quarantined(&dir), &flipped[end..], "byte {byte} bit {bit}");
                    // Without HEAD only the last group is not known to have been durable.
                    assert!(
                        records as u64 >= intact.frames.last().unwrap().durable,
                        "byte {byte} bit {bit}"
                    );
                }
                Err(OpenError::Damaged { damage, .. }) => {
                    *classes.entry(Some("damage")).or_insert(0) += 1;
                    assert_eq!(
                        *damage.lost.start(),
                        records as u64 + 1,
                        "byte {byte} bit {bit}"
                    );
                    assert_eq!(std::fs::read(intact.scene.log()).unwrap(), flipped);
                }
                Err(other) => panic!("byte {byte} bit {bit}: {other}"),
            }
        }
    }
    assert!(
        classes.contains_key(&Some("bad tail")) && classes.contains_key(&Some("damage")),
        "{classes:?}"
    );
}

#[test]
fn a_flipped_bit_in_head_is_a_head_that_is_not_there() {
    let intact = Intact::new();
    for byte in 0..intact.head.len() {
        for bit in 0..8 {
            let dir = intact.lay(&intact.bytes, true);
            let mut head = intact.head.clone();
            head[byte] ^= 1 << bit;
            std::fs::write(intact.scene.head(), head).unwrap();
            assert_eq!(shown(&dir).len(), 8, "byte {byte} bit {bit}");
        }
    }
}

/// Each tail behind a whole log, without HEAD's word.
#[test]
fn tails_have_names() {
    let intact = Intact::new();
    let first = intact.frames[0].line.len() + 1;
    let mut over = line(9, intact.frames[7].crc, 5, 8, 0).into_bytes();
    over[21..29].copy_from_slice(b"00000fff");
    let cases: [(&str, Vec<u8>, TailDamage); 8] = [
        ("zeros", vec![0; 5000], TailDamage::ZeroTail),
        ("two MiB of zeros", vec![0; 2 << 20], TailDamage::ZeroTail),
        (
            "half a line",
            intact.bytes[..200].to_vec(),
            TailDamage::BadTail,
        ),
        (
            "the beginning of a header",
            intact.bytes[..60].to_vec(),
            TailDamage::TornTail,
        ),
        (
            "a line of the past",
            intact.bytes[first..first + intact.frames[1].line.len() + 1].to_vec(),
            TailDamage::BadTail,
        ),
        ("noise", b"noise\n\xff\xfe\n".to_vec(), TailDamage::BadTail),
        (
            "noise and zeros",
            [&b"noise\n"[..], &[0; 5000]].concat(),
            TailDamage::BadTail,
        ),
        (
            "a line that is over before its length says so",
            over,
            TailDamage::BadTail,
        ),
    ];
    for (name, tail, class) in cases {
        let dir = intact.lay(&[intact.bytes.clone(), tail.clone()].concat(), false);
        let opened = intact.scene.open().unwrap();
        assert_eq!(opened.recovered.class, Some(class), "{name}");
        assert_eq!(opened.recovered.last, 8, "{name}");
        assert_eq!(quarantined(&dir), tail, "{name}");
        let copy = opened.recovered.quarantine.clone().unwrap();
        let reason: serde_json::Value =
            serde_json::from_slice(&std::fs::read(copy.with_extension("json")).unwrap()).unwrap();
        assert_eq!(
            (&reason["class"], &reason["bytes"]),
            (&class.name().into(), &tail.len().into()),
            "{name}"
        );
    }
}

/// Blocks of an earlier writer are behind the log of a later one: they prove nothing, whatever they say.
#[test]
fn a_stale_tail_of_an_older_epoch_is_cut() {
    let scene = Scene::with(&BATCHES);
    let old = std::fs::read(scene.log()).unwrap();
    let frames: Vec<_> = Reader::open(&scene.dir)
        .unwrap()
        .frames()
        .map(Result::unwrap)
        .collect();
    let keep: usize = frames[..2].iter().map(|frame| frame.line.len() + 1).sum();
    std::fs::write(scene.log(), &old[..keep]).unwrap();
    std::fs::remove_file(scene.head()).unwrap();
    let opened = scene.open().unwrap();
    append(&opened, &["of the second epoch"]).unwrap();
    opened.journal.close();
    std::fs::remove_file(scene.head()).unwrap();
    let mut bytes = std::fs::read(scene.log()).unwrap();
    let stale = &old[bytes.len()..];
    assert!(frames.last().unwrap().durable > 3);
    bytes.extend_from_slice(stale);
    std::fs::write(scene.log(), &bytes).unwrap();
    let opened = scene.open().unwrap();
    assert_eq!(
        (opened.recovered.last, opened.recovered.class),
        (3, Some(TailDamage::BadTail))
    );
    assert_eq!(quarantined(&scene.dir), stale);
    assert_eq!(texts(&scene.dir), ["one", "of the second epoch"]);
}

/// What is cut had an epoch, too: nobody writes in that again.
#[test]
fn the_epoch_of_a_cut_batch_is_spent() {
    let scene = Scene::with(&BATCHES);
    let opened = scene.open().unwrap();
    append(&opened, &["of the second epoch", "too"]).unwrap();
    opened.journal.close();
    std::fs::remove_file(scene.head()).unwrap();
    let mut bytes = std::fs::read(scene.log()).unwrap();
    let begins = bytes.len()
        - shown(&scene.dir)[8..]
            .iter()
            .map(|line| line.len() + 1)
            .sum::<usize>();
    bytes[begins + 130] ^= 1;
    std::fs::write(scene.log(), &bytes).unwrap();
    let opened = scene.open().unwrap();
    assert_eq!((opened.recovered.last, opened.recovered.epoch), (8, 3));
}

/// Two sessions' records do not mix, and no record can be left out, doubled or moved.
#[test]
fn splices_show() {
    let intact = Intact::new();
    let lines: Vec<Vec<u8>> = intact
        .frames
        .iter()
        .map(|frame| [frame.line.as_bytes(), b"\n"].concat())
        .collect();
    let order = |order: &[usize]| {
        order
            .iter()
            .flat_map(|n| lines[*n].clone())
            .collect::<Vec<u8>>()
    };
    let cases = [
        ("left out", order(&[0, 1, 3, 4, 5, 6, 7]), 3),
        ("doubled", order(&[0, 1, 1, 2, 3, 4, 5, 6, 7]), 3),
        ("swapped", order(&[0, 1, 2, 4, 3, 5, 6, 7]), 4),
        ("moved", order(&[0, 2, 3, 1, 4, 5, 6, 7]), 2),
    ];
    for (name, bytes, seq) in cases {
        let dir = intact.lay(&bytes, true);
        let error = Reader::open(&dir)
            .unwrap()
            .frames()
            .find_map(Result::err)
            .unwrap();
        assert!(
            matches!(&error, ReadError::Damaged(d) if d.seq == seq && matches!(d.bad, FrameError::Seq { .. })),
            "{name}: {error}"
        );
        assert!(
            matches!(intact.scene.open(), Err(OpenError::Damaged { .. })),
            "{name}"
        );
    }
    let other = Scene::with(&[&["eins"], &["zwei", "drei"]]);
    let strange = std::fs::read(other.log()).unwrap();
    let at = Reader::open(&other.dir)
        .unwrap()
        .frames()
        .take(2)
        .map(|f| f.unwrap().line.len() + 1)
        .sum::<usize>();
    let ours: usize = lines[..2].iter().map(Vec::len).sum();
    let dir = intact.lay(&[&intact.bytes[..ours], &strange[at..]].concat(), true);
    let error = Reader::open(&dir)
        .unwrap()
        .frames()
        .find_map(Result::err)
        .unwrap();
    assert!(
        matches!(&error, ReadError::Damaged(d) if d.seq == 3 && d.bad == FrameError::Previous),
        "{error}"
    );
}

/// One line, right in itself.
fn line(seq: u64, previous: u32, epoch: u32, durable: u64, left: u32) -> String {
    let rest = |n: usize| {
        format!(
            ",\"n\":\"{n:08x}\",\"p\":\"{previous:08x}\",\"e\":{epoch:>6},\"q\":{seq:>12},\"d\":{durable:>12},\
             \"b\":{left:>5},\"t\":1790000000000009,\"k\":\"note\",\"v\":1,\"text\":\"forged\"}}"
        )
    };
    let covered = rest(16 + rest(0).len());
    format!(
        "{{\"c\":\"{:08x}\"{covered}\n",
        crc32c::crc32c(covered.as_bytes())
    )
}

/// Each of these lines is whole; what is wrong is where it stands.
#[test]
fn a_line_has_to_fit_its_place() {
    let intact = Intact::new();
    let last = intact.frames.last().unwrap();
    let crc = |line: &str| u32::from_str_radix(&line[6..14], 16).unwrap();
    let good = line(9, last.crc, 5, 8, 0);
    let begun = line(9, last.crc, 5, 8, 2);
    let cases: [(&str, Vec<String>, Option<FrameError>); 8] = [
        ("fits", vec![good.clone()], None),
        (
            "fits as a batch",
            vec![begun.clone(), line(10, crc(&begun), 5, 8, 1)],
            Some(FrameError::Missing),
        ),
        (
            "of a fenced writer",
            vec![good.clone(), line(10, crc(&good), 4, 8, 0)],
            Some(FrameError::Epoch { last: 5, found: 4 }),
        ),
        (
            "countdown jumps",
            vec![begun.clone(), line(10, crc(&begun), 5, 8, 0)],
            Some(FrameError::Batch),
        ),
        (
            "countdown starts again",
            vec![begun.clone(), line(10, crc(&begun), 5, 8, 2)],
            Some(FrameError::Batch),
        ),
        (
            "durable before it was written",
            vec![line(9, last.crc, 5, 9, 0)],
            Some(FrameError::Batch),
        ),
        (
            "skips",
            vec![line(10, last.crc, 5, 8, 0)],
            Some(FrameError::Seq { want: 9, found: 10 }),
        ),
        (
            "another past",
            vec![line(9, last.crc ^ 1, 5, 8, 0)],
            Some(FrameError::Previous),
        ),
    ];
    for (name, lines, bad) in cases {
        intact.lay(
            &[intact.bytes.clone(), lines.concat().into_bytes()].concat(),
            false,
        );
        let opened = intact
            .scene
            .open()
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(opened.recovered.class.is_some(), bad.is_some(), "{name}");
        let Some(bad) = bad else { continue };
        let copy = opened
            .recovered
            .quarantine
            .clone()
            .unwrap()
            .with_extension("json");
        let reason: serde_json::Value =
            serde_json::from_slice(&std::fs::read(copy).unwrap()).unwrap();
        assert_eq!(reason["reason"], bad.to_string(), "{name}");
    }
}
