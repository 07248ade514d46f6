//! The prompt in all its forms.

use crate::scene::{Scene, finish, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

fn answering() -> (Scene, String) {
    let scene = Scene::new();
    let model = scene.script("script.jsonl", &[json!({ "text": "done" })]);
    (scene, model)
}

/// What the pod was asked.
fn asked(scene: &Scene, pod: &str) -> Value {
    scene
        .records(pod)
        .into_iter()
        .find(|record| record["k"] == "input_queued")
        .unwrap()
}

#[test]
fn from_the_command_line_from_stdin_and_from_both() {
    let (scene, model) = answering();
    type Form<'a> = (&'a str, Option<&'a str>, Option<&'a [u8]>, &'a str);
    let forms: [Form<'_>; 7] = [
        (
            "mark",
            Some("-"),
            Some("\u{feff}from Windows".as_bytes()),
            "from Windows",
        ),
        ("arg", Some("do it"), None, "do it"),
        ("dash", Some("-"), Some(b"from stdin\n"), "from stdin\n"),
        ("only", None, Some(b"from stdin"), "from stdin"),
        (
            "both",
            Some("do it"),
            Some(b"with this\n"),
            "do it\n\n<stdin>\nwith this\n</stdin>",
        ),
        ("blank", Some("do it"), Some(b" \n"), "do it"),
        ("words", Some("-x is a flag"), None, "-x is a flag"),
    ];
    for (pod, argument, input, queued) in forms {
        let mut args = vec!["run", "--pod", pod, "-m", &model];
        if argument == Some("-x is a flag") {
            args.push("--");
        }
        args.extend(argument);
        let done = match input {
            Some(input) => scene.fed(&args, input),
            None => scene.yoi(&args),
        };
        assert_eq!(done.ends(0).out, "done\n", "{pod}");
        assert_eq!(asked(&scene, pod)["text"], queued, "{pod}");
    }
}

#[test]
fn what_is_no_prompt_is_said_and_starts_nothing() {
    let (scene, model) = answering();
    let run = ["run", "-m", &model];
    let with = |argument: &'static str| [&run[..], &[argument]].concat();
    scene
        .yoi(&with(""))
        .ends(2)
        .says(&["the prompt is empty", "help:"]);
    scene
        .yoi(&with("  \n"))
        .ends(2)
        .says(&["the prompt is empty"]);
    scene
        .fed(&run, b"")
        .ends(2)
        .says(&["the prompt is missing"]);
    scene
        .fed(&with("-"), b"\n")
        .ends(2)
        .says(&["the prompt is empty"]);
    scene
        .fed(&run, b"ab\xff\n")
        .ends(65)
        .says(&["standard input is not UTF-8 after byte 2", "iconv"]);
    let latin = scene
        .command(&run)
        .arg(OsStr::from_bytes(b"caf\xe9"))
        .spawn()
        .unwrap();
    finish(latin)
        .ends(2)
        .says(&["the prompt is not UTF-8", "iconv"]);
    let directory = scene
        .command(&run)
        .stdin(File::open(scene.path("home")).unwrap())
        .spawn()
        .unwrap();
    finish(directory)
        .ends(65)
        .says(&["standard input", "directory"]);
    assert_eq!(scene.pods(), Vec::<String>::new(), "nothing was started");
}

#[test]
fn a_long_prompt_is_kept_whole_and_shown_in_part() {
    let (scene, model) = answering();
    let input: Vec<u8> = b"ten bytes\n"
        .iter()
        .copied()
        .cycle()
        .take(10_000_000)
        .collect();
    let done = scene
        .fed(&["run", "--pod", "long", "-m", &model, "-"], &input)
        .ends(0);
    assert_eq!(done.out, "done\n");
    let queued = asked(&scene, "long");
    let text = queued["text"].as_str().unwrap();
    assert!(
        text.len() < 64 * 1024
            && text.contains("of 10000000 bytes left out")
            && text.contains("ReadOutput")
    );
    assert!(queued["whole"].is_object(), "{queued}");
    scene.sound("long");
    // The embedded model too gives a clear answer to it.
    scene
        .fed(&["run", "-q"], &input)
        .ends(1)
        .prints(&["Not understood"]);
}

#[test]
fn waiting_for_stdin_is_said() {
    let (scene, model) = answering();
    let waiting = || {
        let mut child = scene
            .command(&["run", "-q", "-m", &model, "do it"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let held = child.stdin.take();
        let mut said = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        assert!(
            said.contains("waiting for standard input to end (</dev/null"),
            "{said}"
        );
        (child, held)
    };
    let (interrupted, held) = waiting();
    signal(interrupted.id(), Signal::INT);
    finish(interrupted).ends(130);
    drop(held);
    assert_eq!(scene.pods(), Vec::<String>::new());
    let (child, held) = waiting();
    drop(held);
    assert_eq!(finish(child).ends(0).out, "done\n");
}
