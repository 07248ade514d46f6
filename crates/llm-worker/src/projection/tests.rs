//! The fold as properties: append-only, the same bytes as a whole encoding, each item encoded once.

use super::rope::CHUNK;
use super::{BLOB, Dialect, Neutral, Open, Projection, Surface, neutral};
use crate::attachment::attachment;
use crate::item::{
    Attachment, CallId, Item, MediaType, ProviderSignature, ResultStatus, SealedReasoning,
    ToolOutcome,
};
use crate::tool::{ToolDefinition, ToolEffect};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn surface() -> Surface {
    let tool = ToolDefinition {
        name: "Read".into(),
        description: "Reads \"a\" file.".into(),
        schema: r#"{"type":"object"}"#.into(),
        effect: ToolEffect::ReadOnly,
    };
    Surface {
        generation: 1,
        model: "offline".into(),
        system: "é\n\"".into(),
        tools: vec![tool],
        max_output: Some(9),
        effort: None,
        thinking: false,
        media: Vec::new(),
    }
}

/// Counts what it encodes.
#[derive(Default)]
struct Counting {
    items: AtomicU64,
    bytes: AtomicU64,
}

impl Dialect for Counting {
    fn id(&self) -> &'static str {
        "counting"
    }
    fn version(&self) -> u16 {
        1
    }
    fn head(&self, _surface: &Surface, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<");
    }
    fn append(&self, open: Open, first: bool, item: &Item, out: &mut Vec<u8>) -> Open {
        assert_eq!(first, open == 0);
        Neutral.append(0, first, item, out);
        self.items.fetch_add(1, Relaxed);
        self.bytes.fetch_add(out.len() as u64, Relaxed);
        1
    }
    fn close(&self, _open: Open, out: &mut Vec<u8>) {
        out.extend_from_slice(b">");
    }
}

fn sized(bytes: usize) -> Item {
    Item::user("x".repeat(bytes))
}

/// Every kind of item, and sizes around a chunk's edge.
fn items() -> Vec<Item> {
    let id = CallId::new(1).unwrap();
    let mut items = vec![
        Item::user("a \"quoted\" \u{1}\u{2028} word"),
        Item::System {
            source: "host".into(),
            text: "note".into(),
        },
        Item::Reasoning {
            text: "hm".into(),
            seal: None,
        },
        Item::Assistant {
            text: String::new(),
        },
        Item::ToolCall {
            id,
            name: "Read".into(),
            arguments: "{\"broken".into(),
        },
        Item::ToolResult {
            id,
            outcome: ToolOutcome::of(ResultStatus::Interrupted, "one\ntwo"),
        },
    ];
    items.extend([0, 1, CHUNK - 60, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5].map(sized));
    items.extend((0..40).map(|n| sized(n * 97)));
    items
}

#[test]
fn a_body_only_grows_and_equals_a_whole_encoding() {
    for dialect in [
        Arc::new(Neutral) as Arc<dyn Dialect>,
        Arc::new(Counting::default()),
    ] {
        let mut running = Projection::new(&surface(), Arc::clone(&dialect));
        let mut whole = Vec::new();
        let mut end = Vec::new();
        let mut open = 0;
        dialect.head(&surface(), &mut whole);
        dialect.close(open, &mut end);
        for (index, item) in items().iter().enumerate() {
            let earlier = running.body();
            running.push(item);
            open = dialect.append(open, index == 0, item, &mut whole);
            end.clear();
            dialect.close(open, &mut end);
            let body = running.body();
            let bytes = body.to_vec();
            assert_eq!(bytes, [&whole[..], &end].concat(), "item {index}");
            assert_eq!(body.digest, blake3::hash(&bytes).to_hex().to_string());
            assert_eq!(
                (body.len, body.items),
                (bytes.len() as u64, index as u64 + 1)
            );
            let kept = earlier.len as usize - end.len().min(earlier.len as usize);
            assert_eq!(
                bytes[..kept],
                earlier.to_vec()[..kept],
                "old bytes changed at item {index}"
            );
            let shared = earlier.chunks().count() - 1;
            assert!(
                earlier
                    .chunks()
                    .zip(body.chunks())
                    .take(shared)
                    .all(|(old, new)| Arc::ptr_eq(old, new))
            );
            assert!(
                body.chunks()
                    .take(body.chunks().count() - 1)
                    .all(|chunk| chunk.len() == CHUNK)
            );
        }
    }
}

#[test]
fn the_neutral_digest_is_the_same_beside_any_dialect() {
    let mut plain = Projection::new(&surface(), Arc::new(Neutral));
    let mut other = Projection::new(&surface(), Arc::new(Counting::default()));
    assert_eq!(plain.neutral_digest(), other.neutral_digest());
    for item in items() {
        plain.push(&item);
        other.push(&item);
        assert_eq!(plain.neutral_digest(), other.neutral_digest());
        assert_eq!(plain.neutral_digest(), plain.body().digest);
        assert_eq!(plain.items_digest(), other.items_digest());
    }
    assert_ne!(plain.body().digest, other.body().digest);
}

#[test]
fn a_neutral_body_reads_back_and_its_bytes_are_pinned() {
    let mut projection = Projection::new(&surface(), Arc::new(Neutral));
    items().iter().for_each(|item| projection.push(item));
    let bytes = projection.body().to_vec();
    let request = neutral::decode(&bytes).unwrap();
    assert_eq!((request.items, request.tools), (items(), surface().tools));
    assert_eq!(
        (request.generation, &*request.model, &*request.system),
        (1, "offline", "é\n\"")
    );
    assert_eq!(request.max_output, Some(9));
    assert!(neutral::decode(&bytes[..bytes.len() - 1]).is_err());
    let plain = Surface {
        max_output: None,
        effort: None,
        thinking: false,
        tools: Vec::new(),
        ..surface()
    };
    let mut projection = Projection::new(&plain, Arc::new(Neutral));
    items()[3..6].iter().for_each(|item| projection.push(item));
    let bytes = projection.body().to_vec();
    assert_eq!(
        String::from_utf8(bytes.clone()).unwrap(),
        concat!(
            r#"{"generation":1,"model":"offline","system":"é\n\"","tools":[],"items":["#,
            r#"{"type":"assistant","text":""},"#,
            r#"{"type":"tool_call","id":"c00000001","name":"Read","arguments":"{\"broken"},"#,
            r#"{"type":"tool_result","id":"c00000001","status":"interrupted","summary":"one","content":"two"}]}"#
        ),
        "these bytes are neutral/1: changing them needs a new version"
    );
    assert_eq!(neutral::decode(&bytes).unwrap().max_output, None);
}

/// What a seal proves is gone once another model or another surface is before it.
#[test]
fn a_seal_is_shown_only_where_it_was_made() {
    let sealed = |model: &str, generation| {
        let signature = ProviderSignature {
            kind: "signature".into(),
            data: "abc".into(),
        };
        Item::Reasoning {
            text: "hm".into(),
            seal: Some(SealedReasoning {
                model: model.into(),
                generation,
                signature,
            }),
        }
    };
    let bare = Item::Reasoning {
        text: "hm".into(),
        seal: None,
    };
    let body = |dialect: Arc<dyn Dialect>, item: &Item| {
        let mut projection = Projection::new(&surface(), dialect);
        projection.push(item);
        (projection.body().digest, projection.neutral_digest())
    };
    let counting = || Arc::new(Counting::default()) as Arc<dyn Dialect>;
    let own = sealed("offline", 1);
    let plain = body(counting(), &bare);
    assert_ne!(body(counting(), &own).0, plain.0);
    for foreign in [sealed("offline", 2), sealed("other/offline", 1)] {
        let shown = body(counting(), &foreign);
        assert_eq!(shown.0, plain.0);
        assert_ne!(shown.1, plain.1, "the story keeps it");
        assert_eq!(
            body(Arc::new(Neutral), &foreign),
            (shown.1.clone(), shown.1),
            "in our own terms it is all there"
        );
    }
}

#[test]
fn a_command_is_an_item_of_its_own_from_version_three_on() {
    let text = "I entered this command: ls".to_owned();
    let command = Item::Command { text: text.clone() };
    let input = Item::user(text);
    let digests = |version, item: &Item| {
        let mut projection = Projection::new(&surface(), Arc::new(Neutral)).ordered_as(version);
        projection.push(item);
        (projection.neutral_digest(), projection.items_digest())
    };
    for version in [Projection::BY_ARRIVAL, Projection::WITHOUT_COMMANDS] {
        assert_eq!(digests(version, &command), digests(version, &input));
    }
    assert_ne!(digests(3, &command), digests(3, &input));
    assert_eq!(digests(3, &input), digests(2, &input));
}

/// Two new items and a request cost the same after 10 items as after 10,000.
#[test]
fn a_step_encodes_its_own_items_only() {
    let dialect = Arc::new(Counting::default());
    let mut projection = Projection::new(&surface(), Arc::clone(&dialect) as Arc<dyn Dialect>);
    let item = sized(1_000);
    let mut costs = Vec::new();
    for items in 1..=5_000_u64 {
        let before = (dialect.items.load(Relaxed), dialect.bytes.load(Relaxed));
        projection.push(&item);
        projection.push(&item);
        if items.is_power_of_two() || items > 4_990 {
            let body = projection.body();
            assert_eq!(body.items, items * 2);
            // what a body holds of its own is one tail; the rest are pointers
            assert!(body.chunks().last().unwrap().len() <= CHUNK);
        }
        costs.push((
            dialect.items.load(Relaxed) - before.0,
            dialect.bytes.load(Relaxed) - before.1,
        ));
    }
    assert_eq!(costs[4], costs[4_999]);
    assert_eq!(costs[4].0, 2);
}

/// Writes only the files.
struct Files;

impl Dialect for Files {
    fn id(&self) -> &'static str {
        "files"
    }
    fn version(&self) -> u16 {
        1
    }
    fn head(&self, _surface: &Surface, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<");
    }
    fn append(&self, open: Open, _first: bool, _item: &Item, _out: &mut Vec<u8>) -> Open {
        open
    }
    fn attachment(&self, open: Open, _file: &Attachment, out: &mut Vec<u8>) -> Open {
        out.extend_from_slice(&[b'(', BLOB, b')']);
        open
    }
    fn close(&self, _open: Open, out: &mut Vec<u8>) {
        out.extend_from_slice(b">");
    }
}

#[test]
fn a_body_digest_is_of_the_digests_of_files() {
    let files: [&[u8]; 2] = [b"GIF89a\x05\0\x06\0", b"GIF89a\x05\0\x07\0"];
    let surface = Surface {
        media: vec![MediaType::Gif],
        ..surface()
    };
    let mut projection = Projection::new(&surface, Arc::new(Files));
    projection.push(&Item::User {
        text: String::new(),
        attachments: files.map(|bytes| attachment("", bytes).unwrap()).to_vec(),
    });
    let body = projection.body();
    let [one, two] = files.map(|bytes| blake3::hash(bytes).to_hex());
    let covered = format!("<(\0{one}\0)(\0{two}\0)>");
    assert_eq!(
        body.digest,
        blake3::hash(covered.as_bytes()).to_hex().as_str()
    );
    let mut rest = files.iter();
    let read = |_: &Attachment| rest.next().map(|bytes| bytes.to_vec()).ok_or(());
    let whole = body.with_files(read).unwrap().to_vec();
    assert_eq!(whole, b"<(R0lGODlhBQAGAA==)(R0lGODlhBQAHAA==)>");
}
