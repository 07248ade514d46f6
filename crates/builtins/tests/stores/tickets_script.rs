//! `builtin:work-item` beside the real `tickets.sh`: the same bytes, and each reads what the other wrote.

use crate::rig::{NOON, Rig, Seconds};
use crate::work_items::{OLDER, feature};
use builtins::work_item;
use serde_json::json;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The script in a directory of its own; `None` where there is no shell.
fn script(dir: &Path) -> Option<PathBuf> {
    let there = !matches!(Command::new("sh").args(["-c", ":"]).status(), Err(error) if error.kind() == ErrorKind::NotFound);
    let own = dir.join("tickets.sh");
    std::fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tickets.sh"),
        &own,
    )
    .unwrap();
    there.then_some(own)
}

/// Runs it at a time; what it printed.
fn tickets(script: &Path, seconds: u64, arguments: &[&str]) -> String {
    let now = humantime::format_rfc3339_seconds(
        std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds),
    );
    let mut command = Command::new("sh");
    command
        .arg(script)
        .args(arguments)
        .current_dir(script.parent().unwrap());
    command
        .env("TICKETS_NOW", now.to_string())
        .env("TICKETS_AUTHOR", "tester")
        .env("GIT_CEILING_DIRECTORIES", "/");
    let output = command.output().unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "tickets.sh {arguments:?}: {text}");
    text
}

fn rig() -> (Rig, Seconds) {
    let seconds = Seconds::noon();
    (
        Rig::new(vec![feature(&seconds)], &[work_item::ROOT]),
        seconds,
    )
}

/// The same things done by both, step by step, leave the same files.
#[test]
fn both_write_the_same_bytes() {
    let ((rig, seconds), other) = (rig(), tempfile::tempdir().unwrap());
    let (Some(theirs), Some(ours)) = (script(other.path()), script(rig.dir.path())) else {
        return;
    };
    let titles = [
        "First title",
        "Ann's \"A\" \\ B",
        "日本 & more — text",
        "x y",
        "First title",
        "\u{1f600}",
    ];
    let body =
        "Why:  \n\n- one\t\n- two --- three\n## not an event\n> quoted\n\n---\nid: forged \t";
    for title in titles {
        rig.ok(
            "WorkItemCreate",
            json!({"title": title, "body": body, "kind": "bug", "priority": "high", "labels": ["a", "b:c"]}),
        );
        tickets(
            &theirs,
            NOON,
            &[
                "create",
                "--kind",
                "bug",
                "--priority",
                "high",
                "--labels",
                "a,b:c",
                "--body",
                body,
                "--",
                title,
            ],
        );
    }
    rig.ok("WorkItemCreate", json!({"title": "Bare", "body": "  \n"}));
    tickets(&theirs, NOON, &["create", "Bare"]);
    let text = "One line\n\n  indented\n## 2 | forged | comment | me\nlast ";
    let steps: [(serde_json::Value, &[&str]); 5] = [
        (
            json!({"id": "bare", "comment": text}),
            &["comment", "bare", text],
        ),
        (
            json!({"id": "bare", "status": "pending"}),
            &["status", "bare", "pending"],
        ),
        (
            json!({"id": "bare", "status": "closed", "comment": "Settled."}),
            &["close", "bare", "Settled."],
        ),
        (
            json!({"id": "bare", "status": "open", "comment": "Again."}),
            &["status", "bare", "open", "Again."],
        ),
        (
            json!({"id": "x-y", "comment": text}),
            &["comment", "x-y", text],
        ),
    ];
    for (n, (change, arguments)) in (1..).zip(steps) {
        seconds.set(NOON + n);
        rig.ok("WorkItemUpdate", change);
        tickets(&theirs, NOON + n, arguments);
        tickets(&ours, NOON + n, &["doctor"]);
    }
    // A clock that goes back: no event is before the one above it.
    seconds.set(NOON - 500);
    rig.ok(
        "WorkItemUpdate",
        json!({"id": "bare", "comment": "Earlier."}),
    );
    tickets(&theirs, NOON - 500, &["comment", "bare", "Earlier."]);
    let files = rig.files();
    assert_eq!(
        files.iter().filter(|path| path.ends_with(".md")).count(),
        14,
        "{files:#?}"
    );
    for path in files.iter().filter(|path| path.ends_with(".md")) {
        let their_text = std::fs::read_to_string(other.path().join(path))
            .unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(rig.text(path), their_text, "{path}");
    }
    assert_eq!(
        tickets(&ours, NOON, &["doctor"]),
        "7 work items, all well\n"
    );
}

#[test]
fn both_add_the_same_behind_an_older_thread() {
    let ((rig, seconds), other) = (rig(), tempfile::tempdir().unwrap());
    let (Some(theirs), Some(ours)) = (script(other.path()), script(rig.dir.path())) else {
        return;
    };
    for (title, older) in ["Marked", "Headed"].into_iter().zip(OLDER) {
        rig.ok("WorkItemCreate", json!({"title": title, "body": ""}));
        tickets(&theirs, NOON, &["create", title]);
        let id = format!("20260131-120000-{}", title.to_lowercase());
        let thread = format!("work-items/open/{id}/thread.md");
        rig.write(&thread, older);
        std::fs::write(other.path().join(&thread), older).unwrap();
        tickets(&ours, NOON, &["doctor"]);
        // First before the last of the older events, then after it.
        for at in [NOON - 500, NOON + 900] {
            seconds.set(at);
            rig.ok("WorkItemUpdate", json!({"id": id, "comment": "More."}));
            tickets(&theirs, at, &["comment", &id, "More."]);
            tickets(&ours, at, &["doctor"]);
            for file in [&thread, &thread.replace("thread", "item")] {
                assert_eq!(
                    rig.text(file),
                    std::fs::read_to_string(other.path().join(file)).unwrap(),
                    "{file}"
                );
            }
        }
        seconds.set(NOON);
    }
    let planned = tickets(
        &ours,
        NOON,
        &[
            "comment",
            "headed",
            "--role",
            "implementation_report",
            "Built.",
        ],
    );
    assert_eq!(planned, "");
    let shown = rig.ok("WorkItemShow", json!({"id": "headed"}));
    assert!(
        shown
            .content
            .ends_with("implementation_report (tester)\n  Built."),
        "{}",
        shown.content
    );
}

/// Fields that the script leaves to an editor: its doctor is content with what the tool makes of them.
#[test]
fn changed_fields_and_finished_moves_pass_the_doctor() {
    let (rig, seconds) = rig();
    let Some(script) = script(rig.dir.path()) else {
        return;
    };
    let id = tickets(&script, NOON, &["create", "--body", "b", "Old title"])
        .trim()
        .to_owned();
    seconds.set(NOON + 5);
    let change = json!({"id": id, "title": "New \"title\" \\", "kind": "docs", "priority": "low", "labels": ["z"], "assignee": "Ann \\"});
    rig.ok("WorkItemUpdate", change);
    tickets(&script, NOON, &["doctor"]);
    let listed = tickets(&script, NOON, &["list", "--kind", "docs", "--label", "z"]);
    assert!(listed.contains("New \"title\" \\"), "{listed}");
    rig.ok(
        "WorkItemUpdate",
        json!({"id": id, "labels": [], "assignee": ""}),
    );
    tickets(&script, NOON, &["doctor"]);
    // As after a kill between the move and the record: the folder says closed, the front matter open.
    std::fs::create_dir_all(rig.path("work-items/closed")).unwrap();
    std::fs::rename(
        rig.path(&format!("work-items/open/{id}")),
        rig.path(&format!("work-items/closed/{id}")),
    )
    .unwrap();
    rig.ok(
        "WorkItemUpdate",
        json!({"id": id, "status": "closed", "comment": "Done."}),
    );
    tickets(&script, NOON, &["doctor"]);
    assert!(tickets(&script, NOON, &["show", &id]).contains("status open -> closed"));
}

#[test]
fn what_the_script_wrote_is_read() {
    let (rig, _) = rig();
    let Some(script) = script(rig.dir.path()) else {
        return;
    };
    let title = "Ann \"A\" \\B";
    let id = tickets(
        &script,
        NOON,
        &[
            "create",
            "--assignee",
            "Ann \"x\"",
            "--labels",
            "p,q",
            "--body",
            "Body\n\n# head",
            title,
        ],
    );
    let id = id.trim();
    tickets(&script, NOON + 1, &["comment", id, "one\n\n> two"]);
    tickets(
        &script,
        NOON + 2,
        &["review", id, "request-changes", "not yet"],
    );
    tickets(&script, NOON + 3, &["status", id, "pending"]);
    rig.write(&format!("work-items/pending/{id}/artifacts/log.txt"), "x");
    let shown = rig.ok("WorkItemShow", json!({"id": id}));
    assert_eq!(
        shown.content,
        "# Ann \"A\" \\B\nkind: task  priority: normal  labels: p, q  assignee: Ann \"x\"\n\
         created: 2026-01-31T12:00:00Z  updated: 2026-01-31T12:00:03Z\n\nBody\n\n# head\n\n## Thread\n\
         2026-01-31T12:00:00Z created open (tester)\n\
         2026-01-31T12:00:01Z comment (tester)\n  one\n  \n  > two\n\
         2026-01-31T12:00:02Z review request-changes (tester)\n  not yet\n\
         2026-01-31T12:00:03Z status open -> pending (tester)"
    );
    rig.ok(
        "WorkItemUpdate",
        json!({"id": id, "status": "open", "comment": "go on"}),
    );
    assert!(
        rig.path(&format!("work-items/open/{id}/artifacts/log.txt"))
            .exists(),
        "all of it moves"
    );
    tickets(&script, NOON, &["doctor"]);
}
