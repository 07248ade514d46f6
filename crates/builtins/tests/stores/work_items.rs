//! `builtin:work-item` without the script: what it finds, keeps apart, refuses and leaves behind.

use crate::rig::{Granted, NOON, Recorder, Rig, Seconds, block_on};
use builtins::work_item::{self, Settings, WorkItems};
use llm_worker::ErrorKind;
use llm_worker::tool::Touch;
use pod::feature::{HostCapability, InstallOutcome};
use serde_json::{Value, json};
use std::sync::Arc;

const FIX: ErrorKind = ErrorKind::FixInput;

pub(crate) fn feature(seconds: &Seconds) -> Granted {
    let module = WorkItems::new(
        Settings {
            author: "tester".to_owned(),
            ..Settings::default()
        },
        seconds.clock(),
    )
    .unwrap();
    (
        Arc::new(module),
        vec![
            HostCapability::tool("*"),
            work_item::WRITE,
            work_item::PROVIDE,
            work_item::PROVIDE_TRACKER,
            work_item::ENRICH,
        ],
    )
}

fn rig() -> (Rig, Seconds) {
    let seconds = Seconds::noon();
    (
        Rig::new(vec![feature(&seconds)], &[work_item::ROOT]),
        seconds,
    )
}

fn hostile(host: Recorder) -> (Rig, Seconds) {
    let seconds = Seconds::noon();
    (
        Rig::with(vec![feature(&seconds)], &[work_item::ROOT], host),
        seconds,
    )
}

/// A record as the script would have written it.
fn put(rig: &Rig, status: &str, id: &str, title: &str) {
    let at = format!("work-items/{status}/{id}");
    let slug = &id[16..];
    let item = format!(
        "---\nid: {id}\nslug: {slug}\ntitle: \"{title}\"\nstatus: {status}\nkind: task\npriority: normal\nlabels: []\n\
         created_at: 2026-01-31T12:00:00Z\nupdated_at: 2026-01-31T12:00:00Z\nassignee: \"\"\n---\n\nBody of {title}.\n"
    );
    rig.write(&format!("{at}/item.md"), &item);
    let thread =
        format!("# Thread of {id}\n\n## 1 | 2026-01-31T12:00:00Z | created {status} | Ann\n");
    rig.write(&format!("{at}/thread.md"), &thread);
}

#[test]
fn an_item_lives_from_creation_to_closing() {
    let (rig, seconds) = rig();
    let made = rig.ok(
        "WorkItemCreate",
        json!({"title": "Mend the parser", "body": "It fails.", "priority": "high", "labels": ["parser", "v:1"]}),
    );
    assert_eq!(
        made.summary,
        "20260131-120000-mend-the-parser: created, open"
    );
    let again = rig.ok(
        "WorkItemCreate",
        json!({"title": "Mend the parser!", "body": ""}),
    );
    assert_eq!(
        again.summary,
        "20260131-120000-mend-the-parser-2: created, open"
    );
    seconds.set(NOON + 60);
    let told = rig.ok(
        "WorkItemUpdate",
        json!({"id": "mend-the-parser", "comment": "Found it.", "assignee": "Ann", "kind": "bug"}),
    );
    assert_eq!(
        told.summary,
        "20260131-120000-mend-the-parser: kind changed, assignee changed, comment added; it is open"
    );
    let listed = rig.ok("WorkItemList", json!({}));
    assert_eq!(
        (listed.summary.as_str(), listed.content.as_str()),
        (
            "2 work items",
            "open    bug     high   20260131-120000-mend-the-parser  Mend the parser\n\
             open    task    normal 20260131-120000-mend-the-parser-2  Mend the parser!"
        )
    );
    seconds.set(NOON + 120);
    let closed = rig.ok(
        "WorkItemUpdate",
        json!({"id": "20260131-120000-mend-the-parser", "status": "closed", "comment": "Mended."}),
    );
    assert!(
        closed
            .summary
            .ends_with("moved from open to closed, comment added; it is closed"),
        "{}",
        closed.summary
    );
    let shown = rig.ok(
        "WorkItemShow",
        json!({"id": "20260131-120000-mend-the-parser"}),
    );
    assert_eq!(
        shown.summary,
        "20260131-120000-mend-the-parser: closed, 3 events"
    );
    assert_eq!(
        shown.content,
        "# Mend the parser\nkind: bug  priority: high  labels: parser, v:1  assignee: Ann\n\
         created: 2026-01-31T12:00:00Z  updated: 2026-01-31T12:02:00Z\n\nIt fails.\n\n## Thread\n\
         2026-01-31T12:00:00Z created open (tester)\n\
         2026-01-31T12:01:00Z comment (tester)\n  Found it.\n\
         2026-01-31T12:02:00Z status open -> closed (tester)\n  Mended."
    );
    assert_eq!(rig.ok("WorkItemList", json!({})).summary, "1 work item");
    assert!(
        !rig.path("work-items/open/20260131-120000-mend-the-parser")
            .exists()
    );
    assert!(!rig.path("work-items/.lock").exists());
}

#[test]
fn lists_are_narrowed_ordered_and_bounded() {
    let (rig, _) = rig();
    for n in 0..40 {
        put(
            &rig,
            if n % 4 == 0 { "pending" } else { "open" },
            &format!("202601{:02}-120000-item-{n}", n % 28 + 1),
            &format!("Item {n}"),
        );
    }
    put(&rig, "closed", "20260131-120000-done", "Done");
    let all = rig.ok("WorkItemList", json!({}));
    assert!(
        all.summary.starts_with("40 work items, the first 30 shown"),
        "{}",
        all.summary
    );
    let ids: Vec<&str> = all
        .content
        .lines()
        .map(|line| line.split_whitespace().nth(3).unwrap())
        .collect();
    assert!(ids.len() == 30 && ids.is_sorted_by(|a, b| a > b), "{ids:?}");
    let cases = [
        (json!({"status": "pending"}), 10),
        (json!({"status": "closed"}), 1),
        (json!({"words": "ITEM item-3"}), 11),
        (json!({"words": "item-39"}), 1),
        (json!({"kind": "bug"}), 0),
        (json!({"label": "x"}), 0),
    ];
    for (query, found) in cases {
        let listed = rig.ok("WorkItemList", query.clone());
        assert_eq!(
            listed.content.lines().count(),
            found,
            "{query}: {}",
            listed.content
        );
    }
    assert_eq!(
        rig.ok("WorkItemList", json!({"limit": 2}))
            .content
            .lines()
            .count(),
        2
    );
}

#[test]
fn a_reference_means_exactly_one_item() {
    let (rig, _) = rig();
    put(&rig, "open", "20260131-120000-a", "A");
    put(&rig, "pending", "20260131-120000-a-b", "AB");
    put(&rig, "closed", "20260201-120000-b", "B");
    let cases = [
        ("20260131-120000-a", "A"),
        ("20260131-120000-a-b", "AB"),
        ("20260131-120000-a-", "AB"),
        ("a-b", "AB"),
        ("a", "A"),
        ("202602", "B"),
    ];
    for (given, title) in cases {
        assert!(
            rig.ok("WorkItemShow", json!({"id": given}))
                .content
                .starts_with(&format!("# {title}\n")),
            "{given}"
        );
    }
    assert!(
        rig.refused("WorkItemShow", json!({"id": "20260131"}), FIX)
            .contains("means 2 items: 20260131-120000-a, 20260131-120000-a-b")
    );
    assert!(
        rig.refused("WorkItemShow", json!({"id": "zzz"}), FIX)
            .contains("no item")
    );
    for bad in ["", "../open", "open/x", "A", "-x", "*"] {
        let refused = rig
            .prepare("WorkItemShow", &json!({"id": bad}))
            .unwrap_err();
        assert!(
            refused.contains("/id") && refused.contains("ids look like"),
            "{bad}: {refused}"
        );
    }
}

#[test]
fn invalid_item_text_is_refused_before_any_write() {
    let (rig, _) = rig();
    let long = "x".repeat(70_000);
    let arguments: [Value; 6] = [
        json!({"title": "", "body": ""}),
        json!({"title": "a\nb", "body": ""}),
        json!({"title": "x".repeat(201), "body": ""}),
        json!({"title": "a\u{202e}b", "body": ""}),
        json!({"title": "a", "body": "", "labels": ["a, b"]}),
        json!({"title": "a", "body": "", "status": "closed"}),
    ];
    for arguments in arguments {
        assert!(
            rig.prepare("WorkItemCreate", &arguments).is_err(),
            "{arguments}"
        );
    }
    let bodies = ["\u{1b}[31m", "a\u{200b}b", long.as_str()];
    for body in bodies {
        rig.refused("WorkItemCreate", json!({"title": "a", "body": body}), FIX);
    }
    let labels: Vec<String> = (0..17).map(|n| format!("l{n}")).collect();
    rig.refused(
        "WorkItemCreate",
        json!({"title": "a", "body": "", "labels": labels}),
        FIX,
    );
    assert_eq!(rig.files(), ["work-items/"]);
    put(&rig, "open", "20260131-120000-a", "A");
    let before = rig.files();
    let changes = [
        (json!({"id": "a"}), "say what changes"),
        (
            json!({"id": "a", "status": "open", "title": "A"}),
            "say what changes",
        ),
        (json!({"id": "a", "status": "closed"}), "how"),
        (json!({"id": "a", "comment": "\u{7f}"}), "control"),
        (json!({"id": "b", "comment": "x"}), "no item"),
    ];
    for (change, words) in changes {
        let message = rig.refused("WorkItemUpdate", change.clone(), FIX);
        assert!(message.contains(words), "{change}: {message}");
    }
    assert_eq!(
        (rig.files(), rig.host.told.lock().unwrap().len()),
        (before, 0)
    );
}

// cline#12151, qwen-code#1528: an item that an editor of Windows saved was "not readable".
#[test]
fn an_item_with_a_mark_and_crlf_is_read_and_changed() {
    for (mark, thread) in [("", false), ("\u{feff}", false), ("\u{feff}", true)] {
        let (rig, _) = rig();
        rig.ok(
            "WorkItemCreate",
            json!({ "title": "One", "body": "first\nsecond" }),
        );
        let file = rig
            .files()
            .into_iter()
            .find(|file| file.ends_with("item.md"))
            .unwrap();
        let mut files = vec![file.clone()];
        files.extend(thread.then(|| file.replace("item.md", "thread.md")));
        for file in &files {
            rig.write(
                file,
                &format!("{mark}{}", rig.text(file).replace('\n', "\r\n")),
            );
        }
        let id = file.split('/').nth_back(1).unwrap().to_owned();
        let listed = rig.ok("WorkItemList", json!({}));
        assert!(
            listed.content.contains("One") && !listed.content.contains("readable"),
            "{listed:?}"
        );
        rig.ok(
            "WorkItemUpdate",
            json!({ "id": id, "kind": "bug", "comment": "more" }),
        );
        let shown = rig.ok("WorkItemShow", json!({ "id": id }));
        assert!(
            shown.content.contains("first\nsecond") && shown.content.contains("more"),
            "{shown:?}"
        );
        assert!(!rig.text(&file).contains(['\r', '\u{feff}']), "{mark:?}");
    }
}

#[test]
fn links_lead_nowhere() {
    let (rig, _) = rig();
    put(&rig, "open", "20260131-120000-a", "A");
    rig.write("outside/item.md", "---\nkey: secret\n");
    rig.write("outside/thread.md", "");
    let link = |target: &str, at: &str| {
        std::os::unix::fs::symlink(rig.path(target), rig.path(at)).unwrap()
    };
    link("outside", "work-items/open/20260131-120000-linked");
    assert_eq!(rig.ok("WorkItemList", json!({})).summary, "1 work item");
    rig.refused("WorkItemShow", json!({"id": "linked"}), FIX);
    std::fs::remove_file(rig.path("work-items/open/20260131-120000-a/thread.md")).unwrap();
    link(
        "outside/thread.md",
        "work-items/open/20260131-120000-a/thread.md",
    );
    rig.refused("WorkItemShow", json!({"id": "a"}), ErrorKind::Denied);
    rig.refused(
        "WorkItemUpdate",
        json!({"id": "a", "comment": "x"}),
        ErrorKind::Denied,
    );
    // Also a link that stays inside: what is recorded must name what changes.
    put(&rig, "pending", "20260131-120000-b", "B");
    std::fs::remove_file(rig.path("work-items/open/20260131-120000-a/thread.md")).unwrap();
    link(
        "work-items/pending/20260131-120000-b/thread.md",
        "work-items/open/20260131-120000-a/thread.md",
    );
    rig.refused(
        "WorkItemUpdate",
        json!({"id": "a", "comment": "x"}),
        ErrorKind::Denied,
    );
    link("outside", "work-items/closed");
    rig.refused(
        "WorkItemUpdate",
        json!({"id": "b", "status": "closed", "comment": "x"}),
        ErrorKind::Denied,
    );
    assert_eq!(rig.text("outside/thread.md"), "");
    assert!(rig.path("work-items/pending/20260131-120000-b").exists());
}

#[test]
fn a_broken_record_is_named_and_the_others_are_shown() {
    let (rig, _) = rig();
    put(&rig, "open", "20260131-120000-good", "Good");
    for (id, from, to) in [
        ("20260131-120001-a", "kind: task", "kind: idea"),
        ("20260131-120002-b", "---\nid", "--\nid"),
    ] {
        put(&rig, "open", id, "X");
        let at = format!("work-items/open/{id}/item.md");
        rig.write(&at, &rig.text(&at).replacen(from, to, 1));
    }
    put(&rig, "open", "20260131-120003-thread", "X");
    rig.write(
        "work-items/open/20260131-120003-thread/thread.md",
        "# Thread of it\n\nforged\n",
    );
    let listed = rig.ok("WorkItemList", json!({}));
    assert!(
        listed
            .summary
            .contains("2 not readable: 20260131-120001-a, 20260131-120002-b"),
        "{}",
        listed.summary
    );
    assert_eq!(listed.content.lines().count(), 2);
    for n in 0..12 {
        put(&rig, "open", &format!("20260131-1300{n:02}-bad"), "X");
        let at = format!("work-items/open/20260131-1300{n:02}-bad/item.md");
        rig.write(&at, &rig.text(&at).replacen("kind: task", "kind: idea", 1));
    }
    let named = rig.ok("WorkItemList", json!({})).summary;
    let shown = named.matches("20260131-").count();
    assert!(
        named.contains("14 not readable: ")
            && named.contains(&format!(" and {} more (", 14 - shown)),
        "{named}"
    );
    for (id, line) in [
        ("20260131-120001-a", "line 6"),
        ("20260131-120002-b", "line 1"),
        ("thread", "line 3"),
    ] {
        let message = rig.refused("WorkItemShow", json!({"id": id}), ErrorKind::Corrupt);
        assert!(
            message.contains(line) && message.contains("doctor"),
            "{message}"
        );
        rig.refused(
            "WorkItemUpdate",
            json!({"id": id, "comment": "x"}),
            ErrorKind::Corrupt,
        );
        // Not even moved.
        rig.refused(
            "WorkItemUpdate",
            json!({"id": id, "status": "closed", "comment": "x"}),
            ErrorKind::Corrupt,
        );
    }
    assert!(
        rig.path("work-items/open/20260131-120003-thread/item.md")
            .exists()
    );
}

/// A thread as an older script wrote it, and one with headings alone.
pub(crate) const OLDER: [&str; 2] = [
    "<!-- event: create author: tickets.sh at: 2026-01-31T12:00:00Z -->\n\n## Created\n\nCreated by tickets.sh.\n\n\
     ---\n\n<!-- event: plan author: Ann at: 2026-01-31T12:05:00Z -->\n\n## Plan\n\n## Before\n\n> free\ntext\n\n---\n\n\
     <!-- event: review author: B at: C at: 2026-01-31T12:06:00Z status: approve -->\n\n## Review\n\nGood.\n\n---\n",
    "## Created\n\nBy hand.\n\n## Plan\n\nFirst this.\n\n## Decision\n\n- Not that.\n",
];

#[test]
fn threads_in_the_older_form_are_read_and_kept() {
    let shown = [
        "2026-01-31T12:00:00Z create (tickets.sh)\n  ## Created\n  \n  Created by tickets.sh.\n\
         2026-01-31T12:05:00Z plan (Ann)\n  ## Plan\n  \n  ## Before\n  \n  > free\n  text\n\
         2026-01-31T12:06:00Z review approve (B at: C)\n  ## Review\n  \n  Good.",
        "2026-01-31T12:00:00Z created (unknown)\n  By hand.\n\
         2026-01-31T12:00:00Z plan (unknown)\n  First this.\n\
         2026-01-31T12:00:00Z decision (unknown)\n  - Not that.",
    ];
    for (older, shown) in OLDER.into_iter().zip(shown) {
        let (rig, seconds) = rig();
        let id = "20260131-120000-old";
        put(&rig, "open", id, "Old");
        let at = format!("work-items/open/{id}/thread.md");
        rig.write(&at, older);
        let told = rig.ok("WorkItemShow", json!({"id": "old"}));
        assert_eq!(told.content.split_once("## Thread\n").unwrap().1, shown);
        assert!(told.summary.ends_with("3 events"), "{}", told.summary);
        seconds.set(NOON + 900);
        rig.ok("WorkItemUpdate", json!({"id": "old", "title": "Renamed"}));
        assert_eq!(rig.text(&at), older, "another field leaves the thread");
        rig.ok("WorkItemUpdate", json!({"id": "old", "comment": "More."}));
        rig.ok(
            "WorkItemUpdate",
            json!({"id": "old", "comment": "Still more."}),
        );
        let behind = "\n## 1 | 2026-01-31T12:15:00Z | comment | tester\n\n> More.\n\
                      \n## 2 | 2026-01-31T12:15:00Z | comment | tester\n\n> Still more.\n";
        assert_eq!(rig.text(&at), format!("{older}{behind}"));
        assert!(
            rig.ok("WorkItemShow", json!({"id": "old"}))
                .summary
                .ends_with("5 events")
        );
        rig.write(&at, &format!("{older}{behind}free text\n"));
        rig.refused("WorkItemShow", json!({"id": "old"}), ErrorKind::Corrupt);
    }
}

#[test]
fn long_items_are_cut_and_say_where_the_rest_is() {
    let (rig, seconds) = rig();
    rig.ok(
        "WorkItemCreate",
        json!({"title": "Long", "body": "b".repeat(20_000)}),
    );
    for n in 0..20 {
        seconds.set(NOON + n);
        rig.ok(
            "WorkItemUpdate",
            json!({"id": "long", "comment": format!("{n} {}", "c".repeat(1_000))}),
        );
    }
    let shown = rig.ok("WorkItemShow", json!({"id": "long"})).content;
    assert!(shown.len() < 26_000, "{}", shown.len());
    assert!(shown.contains("more bytes in work-items/open/20260131-120000-long/item.md"));
    assert!(shown.contains("older events in work-items/open/20260131-120000-long/thread.md"));
    assert!(
        shown.contains("  19 c") && !shown.contains("  3 c"),
        "the newest stay"
    );
}

#[test]
fn every_change_is_recorded_first_and_a_refusal_writes_nothing() {
    for (refuses_from, files) in [(0, 0), (1, 0), (2, 2)] {
        let (rig, _) = hostile(Recorder {
            refuses_from: Some(refuses_from),
            ..Recorder::default()
        });
        let made = rig.call("WorkItemCreate", json!({"title": "A", "body": "b"}));
        assert_eq!(made.is_ok(), files == 2, "{made:?}");
        let left: Vec<_> = rig
            .files()
            .into_iter()
            .filter(|path| path.matches('/').count() > 2)
            .collect();
        assert_eq!(
            left.iter().filter(|path| path.ends_with(".md")).count(),
            files,
            "{left:?}"
        );
        assert_eq!(left.len(), if files == 2 { 3 } else { 0 }, "{left:?}");
        assert!(!rig.path("work-items/.lock").exists());
    }
    let (rig, _) = rig();
    rig.ok("WorkItemCreate", json!({"title": "A", "body": "b"}));
    rig.ok(
        "WorkItemUpdate",
        json!({"id": "a", "status": "closed", "comment": "done"}),
    );
    let told = rig.host.told.lock().unwrap();
    let names: Vec<String> = told
        .iter()
        .map(|change| {
            let path = change.path.display().to_string();
            path[path.find("work-items/").unwrap()..].to_owned()
        })
        .collect();
    let at = |folder: &str, file: &str| format!("work-items/{folder}/20260131-120000-a/{file}");
    let both = |folder: &str| [at(folder, "thread.md"), at(folder, "item.md")];
    assert_eq!(names, [both("open"), both("closed")].concat());
    let [moved] = &rig.host.moved.lock().unwrap()[..] else {
        panic!("it is moved once")
    };
    let id = |folder: &str| rig.path(&format!("work-items/{folder}/20260131-120000-a"));
    assert_eq!((&moved.from, &moved.to), (&id("open"), &id("closed")));
    assert_eq!(
        moved.made,
        Some(rig.path("work-items/closed")),
        "the folder was not there"
    );
}

#[test]
fn two_at_once_lose_nothing() {
    let (rig, _) = rig();
    put(&rig, "open", "20260131-120000-a", "A");
    let calls = (0..8).map(|n| {
        let change = json!({"id": "a", "comment": format!("comment {n}")});
        rig.prepare("WorkItemUpdate", &change)
            .unwrap()
            .run(rig.context())
    });
    let calls: Vec<_> = calls.collect();
    block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        calls.into_iter().for_each(|call| drop(tasks.spawn(call)));
        while let Some(done) = tasks.join_next().await {
            done.unwrap().unwrap();
        }
    });
    let thread = rig.text("work-items/open/20260131-120000-a/thread.md");
    assert!(
        (0..8).all(|n| thread.contains(&format!("> comment {n}\n"))),
        "{thread}"
    );
    assert!(thread.contains("## 9 | "));
    // The script holds the lock: nothing is touched.
    std::fs::create_dir(rig.path("work-items/.lock")).unwrap();
    for (tool, arguments) in [
        ("WorkItemUpdate", json!({"id": "a", "comment": "x"})),
        ("WorkItemCreate", json!({"title": "B", "body": ""})),
    ] {
        assert!(
            rig.refused(tool, arguments, ErrorKind::Retry)
                .contains(".lock")
        );
    }
    assert!(
        rig.path("work-items/.lock").exists(),
        "it is somebody else's"
    );
    assert_eq!(
        rig.text("work-items/open/20260131-120000-a/thread.md"),
        thread
    );
}

#[test]
fn what_somebody_saves_meanwhile_survives() {
    for file in ["thread.md", "item.md"] {
        let meanwhile = move |path: &std::path::Path| {
            if path.ends_with(file) {
                std::fs::write(path, "theirs\n").unwrap();
            }
        };
        let (rig, _) = hostile(Recorder {
            meanwhile: Some(Box::new(meanwhile)),
            ..Recorder::default()
        });
        put(&rig, "open", "20260131-120000-a", "A");
        let message = rig.refused("WorkItemUpdate", json!({"id": "a", "comment": "mine"}), FIX);
        assert!(message.contains("changed meanwhile"), "{message}");
        assert_eq!(
            rig.text(&format!("work-items/open/20260131-120000-a/{file}")),
            "theirs\n"
        );
    }
}

#[test]
fn each_grant_that_is_missing_takes_what_it_must() {
    let seconds = Seconds::noon();
    let (module, _) = feature(&seconds);
    let any = HostCapability::tool("*");
    let reads = Rig::with(
        vec![(Arc::clone(&module), vec![any.clone(), work_item::READ])],
        &[work_item::ROOT],
        Recorder::default(),
    );
    assert_eq!(reads.tools(), ["WorkItemList", "WorkItemShow"]);
    assert_eq!(
        reads.registry.report().features[0].outcome,
        InstallOutcome::Degraded
    );
    let nothing = Rig::with(
        vec![(Arc::clone(&module), vec![any.clone()])],
        &[work_item::ROOT],
        Recorder::default(),
    );
    assert_eq!(
        nothing.registry.report().features[0].outcome,
        InstallOutcome::Skipped
    );
    let absent = Rig::with(
        vec![(module, vec![any, work_item::WRITE])],
        &[],
        Recorder::default(),
    );
    let report = &absent.registry.report().features[0];
    assert_eq!(
        (report.outcome, absent.tools()),
        (InstallOutcome::Skipped, Vec::new())
    );
    assert!(
        report
            .diagnostics
            .iter()
            .any(|d| d.message.contains("no directory `work-items`")),
        "{report:?}"
    );
}

#[test]
fn calls_name_the_directory_they_read_or_write() {
    let (rig, _) = rig();
    let root = rig.path("work-items").canonicalize().unwrap();
    let cases = [
        ("WorkItemList", json!({}), Touch::Read(root.clone())),
        (
            "WorkItemShow",
            json!({"id": "a"}),
            Touch::Read(root.clone()),
        ),
        (
            "WorkItemCreate",
            json!({"title": "a", "body": ""}),
            Touch::Write(root.clone()),
        ),
        ("WorkItemUpdate", json!({"id": "a"}), Touch::Write(root)),
    ];
    for (tool, arguments, touch) in cases {
        assert_eq!(
            rig.prepare(tool, &arguments).unwrap().touches,
            [touch],
            "{tool}"
        );
    }
}
