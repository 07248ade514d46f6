//! Write and Edit land where they were judged, or nowhere, whatever happens before they run.

use builtins::files::FilesFeature;
use llm_worker::ResultStatus;
use pod::feature::HostCapability;
use pod::permission::{Rule, RuleDecision};
use pod::record::Record;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use testkit::{ManualClock, ModelScript, PodUnderTest};

use crate::rig::steps_of;

fn pod(judged_in_seconds: u64) -> PodUnderTest {
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new([]), Vec::new());
    let module = Arc::new(FilesFeature(|remedy| format!("{remedy:?}")));
    pod.features = vec![(
        module,
        vec![HostCapability::tool("*"), HostCapability::WRITE_WORKSPACE],
    )];
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    pod.clock =
        ManualClock::at(u64::try_from(now.as_micros()).unwrap() + judged_in_seconds * 1_000_000);
    let deny = |tool: &str| Rule {
        path: Some("denied/**".into()),
        ..Rule::new(tool, RuleDecision::Deny)
    };
    pod.judge_by(vec![
        Rule::new("*", RuleDecision::Allow),
        deny("Write"),
        deny("Edit"),
    ]);
    for file in ["ok/f", "denied/f"] {
        fs::create_dir(pod.project.join(file).parent().unwrap()).unwrap();
        fs::write(pod.project.join(file), "old\n").unwrap();
    }
    symlink("ok", pod.project.join("link")).unwrap();
    pod
}

fn exchange(root: &Path) {
    fs::rename(root.join("ok"), root.join("away")).unwrap();
    fs::rename(root.join("denied"), root.join("ok")).unwrap();
    fs::rename(root.join("away"), root.join("denied")).unwrap();
}

fn relink(root: &Path) {
    fs::remove_file(root.join("link")).unwrap();
    symlink("denied", root.join("link")).unwrap();
}

const WRITE: &str = "Write";
const NEW: &str = r#"{"path":"ok/new","content":"x\n"}"#;

// An allowed Write or Edit followed a directory or a link that was exchanged between the check and the write: 13 of 40 by
// an outsider. The change is made at the point between the two, in the pod itself.
#[test]
fn what_was_exchanged_after_the_check_is_refused() {
    type Case = (&'static str, &'static str, &'static str, fn(&Path));
    let cases: [Case; 5] = [
        ("a directory", WRITE, NEW, exchange),
        (
            "a directory, to edit",
            "Edit",
            r#"{"path":"ok/f","edits":[{"old":"old","new":"x"}]}"#,
            exchange,
        ),
        (
            "a link",
            WRITE,
            r#"{"path":"link/new","content":"x\n"}"#,
            relink,
        ),
        (
            "a link, to edit",
            "Edit",
            r#"{"path":"link/f","edits":[{"old":"old","new":"x"}]}"#,
            relink,
        ),
        (
            "an older directory where none was",
            WRITE,
            r#"{"path":"none/new","content":"x\n"}"#,
            |root| {
                fs::rename(root.join("denied"), root.join("none")).unwrap();
            },
        ),
    ];
    for (name, tool, arguments, change) in cases {
        // Later than the birth of every directory of this test.
        let pod = pod(3600);
        let root = pod.project.clone();
        let act = move || change(&root);
        pod.points.at("tool:running", 2, act);
        let reads = [
            ("Read", r#"{"path":"ok/f"}"#),
            ("Read", r#"{"path":"denied/f"}"#),
        ];
        let ended = steps_of(&pod, &[&reads[..1], &reads[1..], &[(tool, arguments)]]);
        let (status, said) = &ended[2];
        assert_eq!(*status, ResultStatus::Error, "{name}: {said}");
        assert!(
            said.contains("changed between the check and the write; nothing was written"),
            "{name}: {said}"
        );
        for dir in ["ok", "denied", "none"] {
            let dir = pod.project.join(dir);
            assert!(!dir.join("new").exists(), "{name}: {}", dir.display());
            assert!(
                fs::read_to_string(dir.join("f")).is_ok_and(|text| text == "old\n")
                    || !dir.exists(),
                "{name}"
            );
        }
    }
}

/// Moves the directory away, and another one to its place.
fn replace(root: &Path) {
    fs::rename(root.join("ok"), root.join("away")).unwrap();
    fs::create_dir(root.join("ok")).unwrap();
}

// The same after the check: when the intent is durable, and before the new content is renamed into place.
#[test]
fn what_is_moved_between_the_check_and_the_rename_is_refused() {
    let edit = r#"{"path":"ok/f","edits":[{"old":"old","new":"x"}]}"#;
    let older: fn(&Path) = |root| fs::rename(root.join("denied"), root.join("none")).unwrap();
    for (name, tool, arguments, change) in [
        ("exchanged", WRITE, NEW, exchange as fn(&Path)),
        ("exchanged, to edit", "Edit", edit, exchange),
        ("moved away", WRITE, NEW, |root| {
            fs::rename(root.join("ok"), root.join("denied/ok")).unwrap()
        }),
        ("replaced, to edit", "Edit", edit, replace),
        (
            "an older one where none was",
            WRITE,
            r#"{"path":"none/new","content":"x\n"}"#,
            older,
        ),
    ] {
        let pod = pod(0);
        let root = pod.project.clone();
        let points = pod.points.clone();
        pod.points.at("tool:running", 1, move || {
            let synced = points
                .came()
                .iter()
                .filter(|point| *point == "journal:synced")
                .count();
            points.at("journal:synced", synced, move || change(&root));
        });
        let ended = steps_of(
            &pod,
            &[&[("Read", r#"{"path":"ok/f"}"#)], &[(tool, arguments)]],
        );
        let (status, said) = &ended[1];
        assert_eq!(*status, ResultStatus::Error, "{name}: {said}");
        assert!(
            said.contains("between the check and the write; nothing was written"),
            "{name}: {said}"
        );
        assert!(
            pod.records()
                .iter()
                .any(|(_, record)| matches!(record, Record::FileChanged(_))),
            "{name}: it is after the check"
        );
        for dir in ["ok", "denied", "none", "away", "denied/ok"] {
            let dir = pod.project.join(dir);
            assert!(!dir.join("new").exists(), "{name}: {}", dir.display());
            assert!(
                fs::read_to_string(dir.join("f")).is_ok_and(|text| text == "old\n")
                    || !dir.join("f").exists(),
                "{name}"
            );
        }
    }
}

// Directories that come into being meanwhile are no reason to refuse: a command of the same answer made them.
#[test]
fn a_directory_created_after_the_check_is_used() {
    let pod = pod(0);
    let root = pod.project.clone();
    pod.points.at("tool:running", 0, move || {
        fs::create_dir_all(root.join("none/deep")).unwrap()
    });
    let write = r#"{"path":"none/deep/new","content":"x\n"}"#;
    let ended = steps_of(&pod, &[&[(WRITE, write), (WRITE, NEW)]]);
    assert!(
        ended.iter().all(|(status, _)| *status == ResultStatus::Ok),
        "{ended:?}"
    );
    assert!(pod.project.join("none/deep/new").exists());
}
