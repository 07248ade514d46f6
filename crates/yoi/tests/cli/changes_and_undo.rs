//! What a pod changed in files, and taking it back.

use crate::person::AtTerminal;
use crate::scene::Scene;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

/// A pod that changed `a.sh`, created `sub/new.txt` and ran a command, in this order.
fn changed() -> Scene {
    let scene = Scene::new();
    scene.write("a.sh", "one\ntwo\n");
    fs::set_permissions(scene.file("a.sh"), Permissions::from_mode(0o750)).unwrap();
    let call = |name: &str, arguments: serde_json::Value| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let script = [
        call("Read", json!({ "path": "a.sh" })),
        call(
            "Edit",
            json!({ "path": "a.sh", "edits": [{ "old": "two", "new": "2" }] }),
        ),
        call(
            "Write",
            json!({ "path": "sub/new.txt", "content": "new\n" }),
        ),
        call("Bash", json!({ "command": "echo by-hand > b.txt" })),
        json!({ "text": "done" }),
    ];
    let model = scene.script("script.jsonl", &script);
    scene
        .yoi(&["run", "--pod", "work", "-m", &model, "go"])
        .ends(0);
    assert_eq!(scene.read("a.sh"), "one\n2\n");
    scene
}

/// "these 11 commands:" were followed by five.
#[test]
fn a_list_of_commands_that_is_cut_says_how_many_more() {
    for (commands, more) in [
        (1, ""),
        (5, ""),
        (6, "and 1 older command"),
        (11, "and 6 older commands"),
    ] {
        let scene = Scene::new();
        let calls: Vec<_> = (0..commands)
            .map(|n| json!({ "name": "Bash", "arguments": { "command": format!("true {n}") } }))
            .collect();
        let model = scene.script(
            "s.jsonl",
            &[json!({ "calls": calls }), json!({ "text": "done" })],
        );
        scene
            .yoi(&["run", "--pod", "p", "-m", &model, "go"])
            .ends(0);
        let diff = scene.yoi(&["diff", "p"]).ends(0).prints(&[more]);
        assert_eq!(
            (
                diff.out.matches("true ").count(),
                diff.out.contains("older")
            ),
            (commands.min(5), !more.is_empty())
        );
    }
}

/// The diff is in the form of git, with paths from the root of the project.
#[test]
fn git_takes_a_diff_back() {
    let scene = changed();
    let diff = scene.yoi(&["diff", "work"]).ends(0);
    let diff = diff.prints(&[
        "diff --git a/a.sh b/a.sh\n--- a/a.sh\n",
        "diff --git a/sub/new.txt b/sub/new.txt\nnew file mode 100644\n",
    ]);
    fs::write(scene.path("work.diff"), &diff.out).unwrap();
    let mut git = std::process::Command::new("git");
    git.args(["apply", "-R", "../work.diff"])
        .current_dir(scene.file(""))
        .env("GIT_CEILING_DIRECTORIES", scene.path(""));
    assert!(git.status().unwrap().success(), "{}", diff.out);
    assert_eq!(scene.read("a.sh"), "one\ntwo\n");
    assert!(!scene.file("sub/new.txt").exists());
}

#[test]
fn a_diff_shows_it_and_undo_takes_it_back() {
    let scene = changed();
    let diff = scene.yoi(&["diff", "work"]).ends(0);
    diff.prints(&[
        "-two\n+2\n",
        "--- /dev/null",
        "+new\n",
        "which files this command of the pod changed",
        "echo by-hand > b.txt",
    ]);
    let json = scene.yoi(&["diff", "work", "--json"]).ends(0).json();
    assert_eq!(json["files"].as_array().unwrap().len(), 2);
    assert!(
        json["files"]
            .as_array()
            .unwrap()
            .iter()
            .all(|file| file["standing"] == "as_left")
    );
    let undone = scene.yoi(&["undo", "work"]).ends(0);
    undone.prints(&[
        "restored: ",
        "a.sh",
        "removed: ",
        "new.txt",
        "which files this command of the pod changed",
        "echo by-hand",
    ]);
    assert_eq!(scene.read("a.sh"), "one\ntwo\n");
    assert_eq!(
        fs::metadata(scene.file("a.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777,
        0o750
    );
    assert!(!scene.file("sub/new.txt").exists());
    assert_eq!(
        scene.read("b.txt"),
        "by-hand\n",
        "what a command changed is named, not touched"
    );
    scene.sound("work");
    scene
        .yoi(&["undo", "work"])
        .ends(0)
        .prints(&["nothing to undo"]);
    scene
        .yoi(&["diff", "work"])
        .ends(0)
        .prints(&["has the content that it had before the pod changed it"]);
    let model = scene.script("script.jsonl", &vec![json!({ "text": "on" }); 9]);
    scene
        .yoi(&["run", "--pod", "work", "-m", &model, "go on"])
        .ends(0);
    scene.sound("work");
}

#[test]
fn at_a_terminal_undo_shows_what_it_would_do_and_asks() {
    let scene = changed();
    let ask = |args: &[&str], answer: &str| {
        // What was typed before does not answer.
        let mut person = AtTerminal::start(&scene, "y\n", args);
        [
            "would restore: ",
            "a.sh",
            "would remove: ",
            "new.txt",
            "undo these changes of work? y or n: ",
        ]
        .iter()
        .for_each(|shown| person.sees(shown));
        person.types(answer);
        person
    };
    for (args, answer) in [
        (&["undo"][..], "n\n"),
        (&["undo", "work"], "\n"),
        (&["undo"], "\u{4}"),
    ] {
        let records = scene.records("work").len();
        let shown = ask(args, answer).ends(1);
        assert!(shown.contains("nothing was undone"), "{shown}");
        assert_eq!(
            (scene.read("a.sh").as_str(), scene.records("work").len()),
            ("one\n2\n", records)
        );
        assert!(scene.file("sub/new.txt").exists());
    }
    let shown = ask(&["undo"], "y\n").ends(0);
    assert!(
        shown.contains("\nrestored: ") && shown.contains("\nremoved: "),
        "{shown}"
    );
    assert_eq!(scene.read("a.sh"), "one\ntwo\n");
    assert!(!scene.file("sub").exists());
    scene.sound("work");
    // Nothing to ask about.
    assert!(
        AtTerminal::start(&scene, "", &["undo"])
            .ends(0)
            .contains("work: nothing to undo")
    );
}

#[test]
fn a_script_at_a_terminal_is_not_asked() {
    let scene = changed();
    let shown = AtTerminal::start(&scene, "", &["undo", "-y"]).ends(0);
    assert!(
        shown.contains("restored: ") && !shown.contains("y or n"),
        "{shown}"
    );
    assert_eq!(scene.read("a.sh"), "one\ntwo\n");
}

#[test]
fn what_somebody_else_changed_is_left_alone() {
    let scene = changed();
    scene.write("a.sh", "mine\n");
    scene.yoi(&["diff", "work"]).ends(0).prints(&[
        "modified after this pod's change",
        "-one",
        "+mine",
    ]);
    let undone = scene
        .yoi(&["undo", "work"])
        .ends(1)
        .prints(&["skipped: ", "removed: "]);
    undone.says(&["1 path was skipped", "yoi diff work"]);
    assert_eq!(scene.read("a.sh"), "mine\n");
    assert!(!scene.file("sub/new.txt").exists());
}

#[test]
fn a_file_that_is_no_file_any_more_is_left_alone() {
    let scene = changed();
    fs::remove_file(scene.file("a.sh")).unwrap();
    fs::create_dir(scene.file("a.sh")).unwrap();
    scene
        .yoi(&["diff", "work"])
        .ends(0)
        .prints(&["no longer a regular file", "+new"]);
    scene
        .yoi(&["undo", "work"])
        .ends(1)
        .prints(&["skipped: ", "removed: "]);
    assert!(scene.file("a.sh").is_dir());
    fs::remove_dir(scene.file("a.sh")).unwrap();
    scene
        .yoi(&["diff", "work"])
        .ends(0)
        .prints(&["a.sh was removed after this pod's change; the diff", "-two"]);
    scene.yoi(&["undo", "work"]).ends(0).prints(&["restored: "]);
    assert_eq!(scene.read("a.sh"), "one\ntwo\n");
}

// A file that a person removed after the pod's edit was skipped: its earlier content was only in the pod's journal.
// Undo brings it back wherever it can: the file, one whose directory went too, and one that the pod wrote anew behind it.
#[test]
fn undo_brings_back_what_somebody_removed_since() {
    let call = |name: &str, arguments: serde_json::Value| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    for (path, gone, anew) in [
        ("a", "a", false),
        ("sub/deep/a", "sub", false),
        ("a", "a", true),
    ] {
        let scene = Scene::new();
        fs::create_dir_all(scene.file("sub/deep")).unwrap();
        scene.write(path, "one\n");
        fs::set_permissions(scene.file(path), Permissions::from_mode(0o640)).unwrap();
        let edit = json!({ "path": path, "edits": [{ "old": "one", "new": "two" }] });
        let go = |calls: &[serde_json::Value]| {
            let model = scene.script("s.jsonl", calls);
            scene
                .yoi(&["run", "--pod", "work", "-m", &model, "go"])
                .ends(0);
        };
        let done = json!({ "text": "done" });
        let read = call("Read", json!({ "path": path }));
        let edits = [read.clone(), call("Edit", edit.clone()), done.clone()];
        go(&edits);
        let gone = scene.file(gone);
        if gone.is_dir() {
            fs::remove_dir_all(gone).unwrap();
        } else {
            fs::remove_file(gone).unwrap();
        }
        if anew {
            let write = call("Write", json!({ "path": path, "content": "anew\n" }));
            go(&[
                read.clone(),
                edits[1].clone(),
                write.clone(),
                write,
                done.clone(),
            ]);
            assert_eq!(scene.read(path), "anew\n");
        }
        let is_back = || {
            scene.yoi(&["undo", "work"]).ends(0).prints(&["restored: "]);
            assert_eq!(scene.read(path), "one\n", "{path} {anew}");
        };
        is_back();
        if !anew {
            let mode = fs::metadata(scene.file(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o640);
        }
        scene
            .yoi(&["undo", "work"])
            .ends(0)
            .prints(&["nothing to undo"]);
        // A later change of the pod does not look as if somebody else had been there.
        let mut edits = vec![json!({ "text": "next" }); if anew { 5 } else { 3 }];
        edits.extend([read, call("Edit", edit), done]);
        go(&edits);
        is_back();
        scene.sound("work");
    }
}

#[test]
fn only_what_came_after_is_taken_back() {
    let scene = changed();
    let edited = scene
        .records("work")
        .into_iter()
        .find(|r| r["k"] == "file_changed")
        .unwrap();
    let seq = edited["q"].as_u64().unwrap().to_string();
    let later = scene.yoi(&["diff", "work", "--to", &seq]).ends(0).out;
    let all = scene.yoi(&["diff", "work"]).ends(0).out;
    assert!(all.contains("a.sh") && !later.contains("a.sh"), "{later}");
    let undone = scene
        .yoi(&["undo", "work", "--to", &seq])
        .ends(0)
        .prints(&["removed: "]);
    assert!(!undone.out.contains("restored"), "{}", undone.out);
    assert_eq!(scene.read("a.sh"), "one\n2\n");
    scene.yoi(&["undo", "work"]).ends(0).prints(&["restored: "]);
    assert_eq!(scene.read("a.sh"), "one\ntwo\n");
}

// A command of the pod may have: then it is taken back with the rest, and said.
#[test]
fn what_commands_changed_in_between_is_taken_back_too() {
    for command in [true, false] {
        let scene = Scene::new();
        scene.write("a", "one\n");
        let call = |name: &str, arguments: serde_json::Value| json!({ "calls": [{ "name": name, "arguments": arguments }] });
        let edit = |old: &str, new: &str| {
            call(
                "Edit",
                json!({ "path": "a", "edits": [{ "old": old, "new": new }] }),
            )
        };
        let read = || call("Read", json!({ "path": "a" }));
        let first = [read(), edit("one", "two"), json!({ "text": "done" })];
        scene
            .yoi(&[
                "run",
                "--pod",
                "work",
                "-m",
                &scene.script("first.jsonl", &first),
                "go",
            ])
            .ends(0);
        if !command {
            scene.write("a", "two\nmore\n");
        }
        let between = if command {
            call("Bash", json!({ "command": "echo more >> a" }))
        } else {
            read()
        };
        let then = [
            between,
            read(),
            edit("two", "three"),
            json!({ "text": "done" }),
        ];
        let then = [vec![json!({ "text": "-" }); 3], then.to_vec()].concat();
        scene
            .yoi(&[
                "run",
                "--pod",
                "work",
                "-m",
                &scene.script("then.jsonl", &then),
                "go on",
            ])
            .ends(0);
        assert_eq!(scene.read("a"), "three\nmore\n");
        let undone = scene
            .yoi(&["undo", "work"])
            .ends(if command { 0 } else { 1 });
        if command {
            undone.prints(&["restored: ", "this also undoes what commands changed in it"]);
            assert_eq!(scene.read("a"), "one\n");
        } else {
            undone.prints(&[
                "skipped: ",
                "modified by something else between this pod's changes",
            ]);
            assert_eq!(scene.read("a"), "three\nmore\n");
        }
    }
}

// Of what was made, only what the file needed goes with it.
#[test]
fn directories_that_somebody_else_made_stay() {
    let scene = changed();
    for dir in ["sub/.git/refs/heads", "sub/.git/refs/tags"] {
        fs::create_dir_all(scene.file(dir)).unwrap();
    }
    scene.yoi(&["undo", "work"]).ends(0).prints(&["removed: "]);
    assert!(
        scene.file("sub/.git/refs/heads").is_dir() && scene.file("sub/.git/refs/tags").is_dir()
    );
    fs::remove_dir_all(scene.file("sub/.git")).unwrap();
    scene
        .yoi(&["undo", "work"])
        .ends(0)
        .prints(&["nothing to undo"]);
    assert!(scene.file("sub").is_dir(), "it is somebody else's by now");
}

#[test]
fn directories_that_were_made_for_files_go_with_them() {
    let scene = Scene::new();
    fs::create_dir(scene.file("top")).unwrap();
    let write = |path: &str| json!({ "calls": [{ "name": "Write", "arguments": { "path": path, "content": "x" } }] });
    let script = [
        write("top/a/b/x"),
        write("top/a/c/z"),
        write("top/a/y"),
        json!({ "text": "done" }),
    ];
    let model = scene.script("script.jsonl", &script);
    scene
        .yoi(&["run", "--pod", "work", "-m", &model, "go"])
        .ends(0);
    assert!(scene.file("top/a/b/x").exists() && scene.file("top/a/c/z").exists());
    scene.yoi(&["undo", "work"]).ends(0);
    assert_eq!(fs::read_dir(scene.file("top")).unwrap().count(), 0);
}

#[test]
fn a_link_planted_on_the_way_is_not_followed() {
    let scene = changed();
    fs::rename(scene.file("sub"), scene.path("elsewhere")).unwrap();
    symlink(scene.path("elsewhere"), scene.file("sub")).unwrap();
    let undone = scene.yoi(&["undo", "work"]).ends(1).prints(&[
        "restored: ",
        "skipped: ",
        "reached through a link",
    ]);
    undone.says(&["1 path was skipped"]);
    assert_eq!(
        fs::read_to_string(scene.path("elsewhere/new.txt")).unwrap(),
        "new\n"
    );
    scene
        .yoi(&["diff", "work"])
        .ends(0)
        .prints(&["reached through a link"]);
}

#[test]
fn one_file_that_cannot_be_restored_does_not_keep_the_others() {
    let scene = changed();
    fs::remove_dir_all(scene.pod("work").join("blobs")).unwrap();
    fs::create_dir(scene.pod("work").join("blobs")).unwrap();
    let diff = scene
        .yoi(&["diff", "work"])
        .ends(65)
        .prints(&["+new", "by-hand"]);
    diff.says(&["the earlier content of 1 file is lost"]);
    scene
        .yoi(&["undo", "work"])
        .ends(1)
        .prints(&["skipped: ", "a.sh", "removed: "]);
    assert_eq!(scene.read("a.sh"), "one\n2\n");
    assert!(!scene.file("sub/new.txt").exists());
}

#[test]
fn what_undo_removed_comes_back_with_its_mode() {
    let scene = changed();
    fs::set_permissions(scene.file("sub/new.txt"), Permissions::from_mode(0o750)).unwrap();
    let last = scene.records("work").last().unwrap()["q"].to_string();
    scene.yoi(&["undo", "work"]).ends(0);
    assert!(!scene.file("sub/new.txt").exists());
    scene
        .yoi(&["undo", "work", "--to", &last])
        .ends(0)
        .prints(&["restored: "]);
    assert_eq!(scene.read("sub/new.txt"), "new\n");
    assert_eq!(
        fs::metadata(scene.file("sub/new.txt"))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777,
        0o750
    );
    assert_eq!(scene.read("a.sh"), "one\n2\n");
}

/// The notes of the host in the journal that name an undo.
fn undo_notes(scene: &Scene, pod: &str) -> Vec<String> {
    let notes = scene
        .records(pod)
        .into_iter()
        .filter(|record| record["k"] == "system_item");
    let texts = notes.filter_map(|note| note["text"].as_str().map(str::to_owned));
    texts.filter(|text| text.contains("undid")).collect()
}

// The model went on with what it had written, which was not in the files any more.
#[test]
fn the_next_request_names_the_files_of_an_undo_once() {
    let scene = changed();
    let model = scene.script("more.jsonl", &vec![json!({ "text": "next" }); 9]);
    scene.yoi(&["undo", "work"]).ends(0);
    assert!(
        undo_notes(&scene, "work").is_empty(),
        "nothing was asked yet"
    );
    for _ in 0..2 {
        scene
            .yoi(&["run", "--pod", "work", "-m", &model, "go on"])
            .ends(0);
        let notes = undo_notes(&scene, "work");
        let [note] = &notes[..] else {
            panic!("{notes:?}")
        };
        assert!(
            note.contains("a.sh")
                && note.contains("sub/new.txt (removed)")
                && !note.contains("b.txt"),
            "{note}"
        );
    }
    scene.sound("work");
    // A pod that undid nothing says nothing.
    scene
        .yoi(&["undo", "work"])
        .ends(0)
        .prints(&["nothing to undo"]);
    scene
        .yoi(&["run", "--pod", "work", "-m", &model, "go on"])
        .ends(0);
    assert_eq!(undo_notes(&scene, "work").len(), 1);
}
