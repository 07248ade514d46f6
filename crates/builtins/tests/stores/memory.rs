//! `builtin:memory`: what may be kept, what is found, what is left when it goes wrong.

use crate::rig::{Granted, NOON, Recorder, Rig, Seconds, block_on};
use builtins::memory::{self, MAX_NOTES, Memory};
use llm_worker::ErrorKind;
use pod::feature::{HostCapability, InstallOutcome};
use serde_json::{Value, json};
use std::sync::Arc;

const FIX: ErrorKind = ErrorKind::FixInput;
const DAY: u64 = 86_400;

pub(crate) fn feature(seconds: &Seconds) -> Granted {
    (
        Arc::new(Memory::new(seconds.clock())),
        vec![HostCapability::tool("*"), memory::WRITE, memory::PROVIDE],
    )
}

fn rig() -> (Rig, Seconds) {
    let seconds = Seconds::noon();
    (Rig::new(vec![feature(&seconds)], &[memory::ROOT]), seconds)
}

fn note(name: &str, description: &str, text: &str) -> Value {
    json!({"name": name, "description": description, "kind": "fact", "text": text})
}

/// The names that a search finds, in its order.
fn found(rig: &Rig, query: Value) -> Vec<String> {
    let content = rig.ok("MemorySearch", query).content;
    content
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_note_is_kept_found_replaced_and_forgotten() {
    let (rig, seconds) = rig();
    let first = json!({"name": "build", "description": "how to build it", "kind": "procedure", "tags": ["ci"], "text": "Use --locked.  \n\nAlways.\n\n"});
    assert_eq!(rig.ok("MemoryWrite", first.clone()).summary, "build: kept");
    assert_eq!(
        rig.text("memory/build.md"),
        "---\nname: build\ndescription: \"how to build it\"\nkind: procedure\ntags: [ci]\ncreated: 2026-01-31\n\
         updated: 2026-01-31\n---\n\nUse --locked.\n\nAlways.\n"
    );
    seconds.set(NOON + DAY);
    assert!(
        rig.refused("MemoryWrite", first.clone(), FIX)
            .contains("read it"),
        "nothing is lost by accident"
    );
    let mut second = first;
    second["replace"] = json!(true);
    second["text"] = json!("Use cargo alone.");
    assert_eq!(rig.ok("MemoryWrite", second).summary, "build: replaced");
    let read = rig.ok("MemoryRead", json!({"name": "build"}));
    assert_eq!(read.summary, "build: how to build it");
    assert_eq!(
        read.content,
        "procedure of 2026-01-31, updated 2026-02-01 #ci\n\nUse cargo alone."
    );
    rig.ok(
        "MemoryWrite",
        note("ci", "where it runs", "See [[build]], and [[ci]] itself."),
    );
    assert!(
        rig.refused("MemoryForget", json!({"name": "build"}), FIX)
            .contains("`ci` links to")
    );
    rig.ok("MemoryForget", json!({"name": "ci"}));
    let gone = rig.ok("MemoryForget", json!({"name": "build"}));
    assert!(
        gone.summary.starts_with("build: forgotten") && gone.content.contains("Use cargo alone."),
        "{gone:?}"
    );
    assert_eq!(rig.files(), ["memory/"]);
    for tool in ["MemoryRead", "MemoryForget"] {
        assert!(
            rig.refused(tool, json!({"name": "build"}), FIX)
                .contains("search")
        );
    }
    let told = rig.host.told.lock().unwrap();
    let kinds: Vec<_> = told
        .iter()
        .map(|change| (change.before.is_some(), change.after.is_some()))
        .collect();
    assert_eq!(
        kinds,
        [
            (false, true),
            (true, true),
            (false, true),
            (true, false),
            (true, false)
        ]
    );
}

#[test]
fn what_is_no_note_is_refused_at_the_door() {
    let (rig, _) = rig();
    let cases = [
        (
            json!({"name": "A b", "description": "d", "kind": "fact", "text": "t"}),
            "/name",
        ),
        (
            json!({"name": "../a", "description": "d", "kind": "fact", "text": "t"}),
            "/name",
        ),
        (
            json!({"name": "a", "description": "d\ne", "kind": "fact", "text": "t"}),
            "/description",
        ),
        (
            json!({"name": "a", "description": "", "kind": "fact", "text": "t"}),
            "/description",
        ),
        (
            json!({"name": "a", "description": "x".repeat(201), "kind": "fact", "text": "t"}),
            "/description",
        ),
        (
            json!({"name": "a", "description": "d", "kind": "rumour", "text": "t"}),
            "/kind",
        ),
        (
            json!({"name": "a", "description": "d", "kind": "fact", "text": "t", "tags": ["A"]}),
            "/tags",
        ),
        (
            json!({"name": "a", "kind": "fact", "text": "t"}),
            "description",
        ),
    ];
    for (arguments, named) in cases {
        let problem = rig.prepare("MemoryWrite", &arguments).unwrap_err();
        assert!(problem.contains(named), "{arguments}: {problem}");
    }
    let key = format!("ghp_{}", "a1".repeat(20));
    let tags: Vec<String> = (0..9).map(|n| format!("t{n}")).collect();
    let cases = [
        (note("a", "d", " \n"), "empty"),
        (note("a", "d", &"x".repeat(9_000)), "at most 8192"),
        (note("a", "d", "\u{1b}[0m"), "control"),
        (note("a", "d", "see [[other]]"), "[[other]]"),
        (note("a", "d", &format!("fine\nuse {key}")), "line 2"),
        (note("a", &format!("key {key}"), "t"), "description"),
        (
            json!({"name": "a", "description": "d", "kind": "fact", "text": "t", "tags": tags}),
            "tags",
        ),
    ];
    for (arguments, words) in cases {
        let message = rig.refused("MemoryWrite", arguments, FIX);
        assert!(
            message.contains(words) && !message.contains(&key),
            "{message}"
        );
    }
    assert_eq!(
        (rig.files(), rig.host.told.lock().unwrap().len()),
        (vec!["memory/".to_owned()], 0)
    );
}

#[test]
fn search_ranks_the_same_way_each_time() {
    let (rig, seconds) = rig();
    let notes = [
        (
            "parser-errors",
            "what the parser says",
            "Errors name a line.",
        ),
        (
            "lexer",
            "tokens of the parser",
            "parser parser parser parser",
        ),
        (
            "release",
            "how to release",
            "The parser is built first. Errors stop it.",
        ),
        ("team", "who works here", "Ann and Bo."),
        ("parsers-of-others", "a survey", "None fits."),
    ];
    for (n, (name, description, text)) in (0..).zip(notes) {
        seconds.set(NOON + n * DAY);
        rig.ok("MemoryWrite", note(name, description, text));
    }
    let cases: [(Value, &[&str]); 8] = [
        (
            json!({"query": "parser"}),
            &["parser-errors", "lexer", "parsers-of-others", "release"],
        ),
        (
            json!({"query": "PARSER errors"}),
            &["parser-errors", "release", "lexer", "parsers-of-others"],
        ),
        (json!({"query": "ann"}), &["team"]),
        (json!({"query": "zebra"}), &[]),
        (json!({"query": "parser", "limit": 1}), &["parser-errors"]),
        (json!({"query": "parser", "kind": "decision"}), &[]),
        (
            json!({}),
            &[
                "parsers-of-others",
                "team",
                "release",
                "lexer",
                "parser-errors",
            ],
        ),
        (
            json!({"query": "?!", "limit": 2}),
            &["parsers-of-others", "team"],
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(found(&rig, query.clone()), expected, "{query}");
        assert_eq!(found(&rig, query.clone()), expected, "{query}, again");
    }
    assert_eq!(
        rig.ok("MemorySearch", json!({"query": "parser", "limit": 1}))
            .summary,
        "4 notes, the best 1 shown"
    );
    rig.refused("MemorySearch", json!({"query": "x".repeat(501)}), FIX);
    // Saying it often does not make a note the better one.
    rig.ok("MemoryWrite", note("aloud", "d", &"lexeme ".repeat(40)));
    rig.ok("MemoryWrite", note("softly", "what a lexeme is", "t"));
    assert_eq!(found(&rig, json!({"query": "lexeme"})), ["softly", "aloud"]);
}

#[test]
fn a_broken_note_is_named_and_can_be_replaced() {
    let (rig, _) = rig();
    rig.ok("MemoryWrite", note("good", "d", "t"));
    rig.write("memory/bad.md", "no front matter");
    rig.write("memory/README", "not a note");
    rig.write("memory/Upper.md", "not a note");
    let listed = rig.ok("MemorySearch", json!({}));
    assert_eq!(listed.content, "good (fact, 2026-01-31): d");
    assert!(
        listed
            .summary
            .starts_with("1 note; 1 not readable: the note `bad`"),
        "{}",
        listed.summary
    );
    rig.refused("MemoryRead", json!({"name": "bad"}), ErrorKind::Corrupt);
    let mut mended = note("bad", "d", "t");
    mended["replace"] = json!(true);
    rig.ok("MemoryWrite", mended);
    assert_eq!(rig.ok("MemorySearch", json!({})).summary, "2 notes");
}

#[test]
fn notes_are_plain_files_and_not_too_many() {
    let (rig, _) = rig();
    rig.write("outside.md", "theirs");
    std::os::unix::fs::symlink(rig.path("outside.md"), rig.path("memory/link.md")).unwrap();
    std::os::unix::fs::symlink(rig.path("memory/target.md"), rig.path("memory/inside.md")).unwrap();
    for name in ["link", "inside"] {
        let mut over = note(name, "d", "t");
        over["replace"] = json!(true);
        rig.refused("MemoryWrite", over, ErrorKind::Denied);
        rig.refused("MemoryRead", json!({"name": name}), ErrorKind::Denied);
    }
    assert_eq!(
        (
            rig.text("outside.md").as_str(),
            rig.path("memory/target.md").exists()
        ),
        ("theirs", false)
    );
    for n in 0..MAX_NOTES {
        rig.write(&format!("memory/n{n}.md"), "x");
    }
    rig.refused(
        "MemoryWrite",
        note("one-more", "d", "t"),
        ErrorKind::Exhausted,
    );
}

#[test]
fn what_somebody_saves_meanwhile_survives() {
    let seconds = Seconds::noon();
    let theirs = |path: &std::path::Path| std::fs::write(path, "theirs").unwrap();
    let host = Recorder {
        meanwhile: Some(Box::new(theirs)),
        ..Recorder::default()
    };
    let rig = Rig::with(vec![feature(&seconds)], &[memory::ROOT], host);
    rig.refused("MemoryWrite", note("new", "d", "t"), FIX);
    let whole = "---\nname: old\ndescription: d\nkind: fact\ncreated: 2026-01-31\nupdated: 2026-01-31\n---\n\nt\n";
    rig.write("memory/old.md", whole);
    let mut over = note("old", "d", "other");
    over["replace"] = json!(true);
    rig.refused("MemoryWrite", over, FIX);
    rig.write("memory/old.md", whole);
    rig.refused("MemoryForget", json!({"name": "old"}), FIX);
    assert_eq!(
        (rig.text("memory/new.md"), rig.text("memory/old.md")),
        ("theirs".into(), "theirs".into())
    );
    // Two new notes of one name at once: one wins, the other is told.
    let (rig, _) = self::rig();
    let calls = ["one", "two"].map(|text| {
        rig.prepare("MemoryWrite", &note("same", "d", text))
            .unwrap()
            .run(rig.context())
    });
    let [one, two] = calls;
    let (one, two) = block_on(async { tokio::join!(one, two) });
    assert!(one.is_ok() && two.unwrap_err().kind == FIX);
    assert!(rig.text("memory/same.md").contains("one"));
}

#[test]
fn each_grant_that_is_missing_takes_what_it_must() {
    let seconds = Seconds::noon();
    let (module, _) = feature(&seconds);
    let any = HostCapability::tool("*");
    let install = |grants, roots: &[&'static str]| {
        Rig::with(
            vec![(Arc::clone(&module), grants)],
            roots,
            Recorder::default(),
        )
    };
    let reads = install(vec![any.clone(), memory::READ], &[memory::ROOT]);
    assert_eq!(reads.tools(), ["MemoryRead", "MemorySearch"]);
    assert_eq!(
        reads.registry.report().features[0].outcome,
        InstallOutcome::Degraded
    );
    assert_eq!(
        install(vec![any.clone()], &[memory::ROOT])
            .registry
            .report()
            .features[0]
            .outcome,
        InstallOutcome::Skipped
    );
    assert_eq!(
        install(vec![any, memory::WRITE], &[])
            .registry
            .report()
            .features[0]
            .outcome,
        InstallOutcome::Skipped
    );
}
