//! Tricks with characters that move a terminal's cursor, hide text or reorder it.

use super::files;
use crate::endpoint::{Endpoint, Reply, calls, text};
use crate::scene::{Scene, finish, terminal};
use serde_json::json;
use std::fs;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Clears the screen, sets the title, rings, goes back, reads backwards, ends a line for some, and stands there unseen:
/// spaces of no width, a soft hyphen, joiners, a selector, a filler, a mark of an annotation, tags.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\r\u{8}\u{9b}31m\u{202e}\u{2066}\u{2028}\u{2029}\u{200b}\u{200c}x\u{200d}\
    \u{2060}\u{feff}\u{ad}\u{180e}\u{fe0f}\u{3164}\u{fff9}\u{e0001}\u{e0041}";

/// What may move a terminal, or show something else than what is there; a line's end is not.
fn moves(c: char) -> bool {
    let reorders = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let unseen = matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}'
        | '\u{3164}' | '\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    reorders || unseen || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[track_caller]
fn assert_harmless(what: &str, text: &str) {
    let bad: String = text.chars().filter(|c| moves(*c)).collect();
    assert!(bad.is_empty(), "{what}: {bad:?} in\n{text:?}");
    assert!(
        !text.lines().any(|line| line.starts_with("yoi: granted")),
        "{what}: a name is a line of its own:\n{text}"
    );
}

/// What a command shows on a terminal.
pub(crate) fn shown(scene: &Scene, args: &[&str]) -> String {
    shown_with(scene, args, &[])
}

/// The same with variables.
fn shown_with(scene: &Scene, args: &[&str], variables: &[(&str, &str)]) -> String {
    let (mut terminal, held) = terminal();
    let end = || held.try_clone().unwrap();
    let mut command = scene.command(args);
    command
        .stdout(end())
        .stderr(end())
        .env("NO_COLOR", "1")
        .env("TERM", "xterm")
        .envs(variables.iter().copied());
    let reading = thread::spawn(move || {
        let mut bytes = Vec::new();
        // A terminal whose other end is gone is an error, after everything was read.
        drop(terminal.read_to_end(&mut bytes));
        bytes
    });
    finish(command.spawn().unwrap());
    drop((command, held));
    // Besides lines, it is told only to draw the last one again.
    String::from_utf8(reading.join().unwrap())
        .unwrap()
        .replace("\r\n", "\n")
        .replace("\r\u{1b}[K", "")
}

#[test]
fn nothing_of_a_repository_reaches_the_terminal_as_it_is() {
    let scene = Scene::new();
    let dir = format!("d{}", EVIL.replace('/', ""));
    scene.write(
        &format!("{dir}/n\nyoi: granted{EVIL}.txt"),
        format!("alpha {EVIL}\n"),
    );
    scene
        .write("plain.txt", format!("alpha {EVIL}\n"))
        .write(&format!("{dir}/AGENTS.md"), format!("do {EVIL}\n"));
    scene
        .write(".git/HEAD", format!("ref: refs/heads/b{EVIL}\n"))
        .write("README.md", format!("# {EVIL}\n\n{EVIL}\n"));
    let name = format!("{dir}/n\nyoi: granted{EVIL}.txt");
    let call = |name: &str, arguments: serde_json::Value| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let edit = json!({ "path": name, "edits": [{ "old": "alpha", "new": "beta" }] });
    let model = scene.script(
        "s.jsonl",
        &[
            call("Read", json!({ "path": name })),
            call("Edit", edit),
            call("Grep", json!({ "pattern": "alpha" })),
            call("Bash", json!({ "command": "cat plain.txt; ls" })),
            json!({ "text": format!("done {EVIL}") }),
        ],
    );
    let below = scene.file(&dir);
    // It ends with what its last tool came to where there is no sandbox.
    let run = shown(&scene, &["run", "--pod", "p", "-m", &model, "go"]);
    assert!(run.contains("done \\u{1b}[2J"), "{run}");
    let commands: [(&[&str], &str); 15] = [
        (&["log", "p"], "granted\\u{1b}"),
        (&["log", "p", "--full"], "alpha"),
        (&["log", "p", "--json"], "\\u001b[2J"),
        (&["diff", "p"], "-alpha \\u{1b}"),
        (&["diff", "p", "--json"], "alpha"),
        (&["ls"], "p"),
        (&["verify", "p"], "intact"),
        (&["features", "p"], "builtin:files"),
        (&["run", "list the files"], "plain.txt"),
        (&["run", "--json", "read plain.txt"], "\\u001b[2J"),
        (&["run", "search for `alpha`"], "alpha"),
        (&["run", "read plain.txt"], "alpha"),
        (&["run", "summarise this project"], "model: offline"),
        (
            &["-C", below.to_str().unwrap(), "run", "list the files"],
            "instructions:",
        ),
        (&["undo", "p"], "restored:"),
    ];
    let mut all = vec![("run".to_owned(), run)];
    for (args, has) in commands {
        let text = shown(&scene, args);
        assert!(
            text.contains(has),
            "{args:?} does not show `{has}`:\n{text}"
        );
        all.push((args.join(" "), text));
    }
    for (args, text) in all {
        assert_harmless(&args, &text);
    }
    assert!(
        files(&scene).iter().any(|(path, _)| path.ends_with(&name)),
        "the names were there"
    );
}

#[test]
fn configuration_errors_of_a_repository_are_escaped() {
    let scene = Scene::new();
    let evil = format!("\nyoi: granted{EVIL}");
    let escaped: String = evil
        .chars()
        .map(|c| format!("\\U{:08x}", u32::from(c)))
        .collect();
    let texts = [
        format!("\"x{escaped}\" = 1\n"),
        format!("model = \"x{escaped}\"\n"),
        format!("[features.\"builtin:{escaped}\"]\nenabled = true\n"),
        format!("[sandbox]\nmode = \"{escaped}\"\n"),
        format!("[[permissions.rules]]\ntool = \"{escaped}\"\ndecision = \"deny\"\n"),
        format!(
            "[providers.\"{escaped}\"]\napi = \"openai-chat\"\nbase_url = \"http://{escaped}\"\n"
        ),
        format!("[models.\"local/{escaped}\"]\nmax_output = 3\n"),
        format!("[features.\"builtin:web\"]\n\"{escaped}\" = \"{escaped}\"\n"),
        format!("x{EVIL} = 1\n"),
        format!("# {EVIL}\nmodel = {EVIL}\n"),
    ];
    for text in texts {
        scene.write("yoi.toml", &text);
        for args in [
            &["run", "list the files"][..],
            &["config", "show"],
            &["config", "check"],
            &["grant"],
            &["doctor"],
        ] {
            let text = shown(&scene, args);
            assert_harmless(&format!("{args:?}"), &text);
            assert!(!text.is_empty(), "{args:?}");
        }
        drop(fs::remove_file(scene.file("yoi.toml")));
    }
}

/// An endpoint whose every word is hostile: its models' names, its answers, its calls, its errors.
#[test]
fn what_an_endpoint_says_is_shown_harmlessly() {
    let scene = Scene::new();
    let evil = format!("one\nyoi: granted{EVIL}");
    let endpoint = Endpoint::start({
        let evil = evil.clone();
        let asked = AtomicUsize::new(0);
        move |_, body| {
            if body.is_null() {
                let list = json!({ "object": "list", "data": [{ "id": evil, "object": "model" }] });
                return Reply::Status(
                    "200 OK",
                    "content-type: application/json\r\n",
                    list.to_string(),
                );
            }
            match asked.fetch_add(1, Ordering::SeqCst) {
                0 => calls(&[
                    ("Read", json!({ "path": evil }).to_string()),
                    (&evil, json!({ "a": evil }).to_string()),
                    ("Read", format!("{{{evil}")),
                ]),
                // The lines of an answer are lines.
                1 => text(&evil.replace('\n', " ")),
                2 => Reply::Status(
                    "400 Bad Request",
                    "",
                    json!({ "error": { "message": evil } }).to_string(),
                ),
                3 => Reply::Status("401 Unauthorized", "", evil.clone()),
                _ => Reply::Stream(format!(
                    "data: {}\n\n",
                    json!({ "error": { "message": evil, "type": evil } })
                )),
            }
        }
    });
    scene.config(&endpoint.config(""));
    let key = [("FAKE_KEY", "not-a-secret-1")];
    for args in [
        &["run", "--pod", "p", "go"][..],
        &["run", "go"],
        &["run", "go"],
        &["run", "go"],
        &["models"],
        &["doctor"],
    ] {
        let text = shown_with(&scene, args, &key);
        assert!(
            text.contains("granted\\u{1b}") || args == ["doctor"],
            "{args:?}:\n{text}"
        );
        assert_harmless(&format!("{args:?}"), &text);
    }
    for args in [
        &["log", "p"][..],
        &["log", "p", "--full"],
        &["ls"],
        &["verify", "p"],
        &["features", "p"],
        &["log", "p", "--json"],
    ] {
        let text = shown_with(&scene, args, &key);
        assert_harmless(&format!("{args:?}"), &text);
    }
}

#[test]
fn a_persons_own_words_are_repeated_harmlessly() {
    let scene = Scene::new();
    for args in [
        &["log", EVIL][..],
        &["run", "--pod", EVIL, "go"],
        &["run", "-m", EVIL, "go"],
        &["run", "-m", &format!("scripted:{EVIL}"), "go"],
        &["-C", EVIL, "run", "go"],
        &["run", "--output-schema", EVIL, "go"],
        &["features", "--explain", EVIL],
        &["rm", EVIL],
        &["run", EVIL],
    ] {
        assert_harmless(&format!("{args:?}"), &shown(&scene, args));
    }
    for variable in [
        "YOI_MODEL",
        "YOI_MAX_STEPS",
        "YOI_SANDBOX",
        "YOI_MAX_COST",
        "XDG_STATE_HOME",
        "LANG",
    ] {
        for args in [
            &["run", "list the files"][..],
            &["doctor"],
            &["config", "show"],
        ] {
            assert_harmless(
                variable,
                &shown_with(&scene, args, &[(variable, &format!("/{EVIL}"))]),
            );
        }
    }
}

/// What is wrong with a command line is told with the words that were typed: they neither move the terminal nor begin a
/// line of their own.
#[test]
fn nothing_that_was_typed_reaches_the_terminal_as_it_is() {
    let scene = Scene::new();
    let evil = format!("x{EVIL}\u{1b}]8;;http://h\u{1b}\\\nerror: forged\nhelp: forged");
    let rule = format!("Bash {evil}");
    let model = format!("scripted:{evil}");
    let long = format!("--{evil}");
    let typed: [&[&str]; 16] = [
        &["run", "--allow", &evil, "x"],
        &["run", "--allow", &rule, "x"],
        &["run", "--max-steps", &evil, "x"],
        &["run", "--max-cost", &evil, "x"],
        &["run", "--timeout", &evil, "x"],
        &["run", "--sandbox", &evil, "x"],
        &["run", "--add-dir", &evil, "x"],
        &["run", "-C", &evil, "x"],
        &["run", "--pod", &evil, "x"],
        &["run", "-m", &evil, "x"],
        &["run", "-m", &model, "x"],
        &["run", "--output-schema", &evil, "x"],
        &["run", "x", &evil],
        &["run", &long],
        &["log", &evil],
        &[&evil],
    ];
    for args in typed {
        let done = scene.yoi(args);
        assert!(done.code().is_some_and(|code| code != 0), "{args:?}");
        for text in [&done.err, &done.out, &shown(&scene, args)] {
            assert_harmless(&format!("{args:?}"), text);
            assert!(
                !text.contains("\nerror: forged") && !text.contains("\nhelp: forged"),
                "{args:?}: {text}"
            );
        }
    }
}
