//! One run: what goes where, how it is limited, and what it leaves.

use crate::endpoint::{Endpoint, text};
use crate::scene::{Scene, finish};
use serde_json::json;
use std::fs;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn the_answer_alone_is_on_stdout() {
    let scene = Scene::new();
    scene
        .write("a.rs", "fn a() {}\n")
        .write("b.rs", "fn b() {}\n")
        .write("c.txt", "x\n");
    let done = scene.yoi(&["run", "how many rust files are here?"]).ends(0);
    assert_eq!(done.out.lines().count(), 1);
    assert!(done.out.starts_with('2'), "{}", done.out);
    let pods = scene.pods();
    let [pod] = &pods[..] else {
        panic!("one pod: {pods:?}")
    };
    assert!(pod.starts_with("run-"));
    let last = done.err.lines().last().unwrap();
    assert!(
        last.starts_with("2 steps · ") && last.ends_with(&format!(" s · {pod} (yoi log {pod})")),
        "{last}"
    );
    assert!(
        done.err
            .starts_with("model: offline (a rule-based planner; no language model is configured)"),
        "{}",
        done.err
    );
    assert!(!done.err.contains('\u{1b}'), "no colour off a terminal");
    scene.sound(pod);
    let quiet = scene
        .yoi(&["run", "--quiet", "how many rust files are here?"])
        .ends(0);
    assert_eq!((quiet.out, quiet.err), (done.out, String::new()));
}

#[test]
fn colour_as_the_variables_say() {
    let scene = Scene::new();
    for (name, value, coloured) in [
        ("CLICOLOR_FORCE", "1", true),
        ("CLICOLOR_FORCE", "0", false),
        ("NO_COLOR", "1", false),
    ] {
        let child = scene
            .command(&["run", "list the files"])
            .env(name, value)
            .spawn()
            .unwrap();
        let done = finish(child).ends(0);
        assert_eq!(done.err.contains("\u{1b}["), coloured, "{name}={value}");
        assert!(!done.out.contains('\u{1b}'), "{name}={value}");
    }
}

#[test]
fn json_lines_end_in_the_result() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let script = [
        json!({ "calls": [{ "name": "Read", "arguments": { "path": "a.txt" } }] }),
        json!({ "text": "one line", "usage": { "input": 7, "output": 3 } }),
    ];
    let model = scene.script("script.jsonl", &script);
    let done = scene
        .yoi(&["run", "--json", "--pod", "p", "-m", &model, "read it"])
        .ends(0);
    assert_eq!(
        done.err.lines().count(),
        1,
        "the model, and no progress: {}",
        done.err
    );
    let lines = done.lines();
    let (result, records) = lines.split_last().unwrap();
    assert!(
        records
            .iter()
            .all(|record| record["q"].is_u64() && record["k"].is_string())
    );
    let numbers: Vec<u64> = records
        .iter()
        .map(|record| record["q"].as_u64().unwrap())
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{numbers:?}"
    );
    assert_eq!(result["k"], "result");
    assert_eq!(result["answer"], "one line");
    assert_eq!(
        (&result["exit"], &result["steps"], &result["pod"]),
        (&json!(0), &json!(2), &json!("p"))
    );
    assert_eq!(
        result["usage"],
        json!({ "cached": 0, "input": 7, "output": 3 })
    );
    let failed = scene
        .yoi(&["run", "--json", "-m", "nope", "x"])
        .ends(78)
        .lines();
    assert_eq!(
        (&failed[0]["k"], &failed[0]["exit"]),
        (&json!("result"), &json!(78))
    );
    assert!(
        failed[0]["error"]
            .as_str()
            .unwrap()
            .contains("`nope` is not a model")
    );
}

/// What a script gets is what `yoi log --json` prints, and what checks a journal can check it.
#[test]
fn json_lines_are_those_of_the_journal() {
    let scene = Scene::new();
    let answer = |text: &str| json!({ "text": text });
    let call = json!({ "calls": [{ "name": "List", "arguments": {} }] });
    let model = scene.script(
        "s.jsonl",
        &[call, answer("a\u{202e}b\u{7f}"), answer("second")],
    );
    let run = |prompt: &str| {
        scene
            .yoi(&["run", "--json", "--pod", "p", "-m", &model, prompt])
            .ends(0)
            .out
    };
    let journal = || fs::read_to_string(scene.log_file("p")).unwrap();
    let first = run("go\u{9b}");
    let (lines, result) = first.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(
        format!("{lines}\n"),
        journal(),
        "all records of a new pod, in order"
    );
    assert!(
        lines.contains(['\u{202e}', '\u{7f}', '\u{9b}'])
            && !result.contains(['\u{202e}', '\u{7f}'])
    );
    let before = journal().len();
    let second = run("on");
    let (lines, _) = second.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(
        format!("{lines}\n"),
        journal()[before..],
        "of a known pod those that this run added"
    );
    assert_eq!(scene.yoi(&["log", "p", "--json"]).ends(0).out, journal());
    let kept_nowhere = scene
        .yoi(&["run", "--json", "--ephemeral", "-m", &model, "x"])
        .ends(0)
        .lines();
    let numbers = kept_nowhere.iter().filter_map(|line| line["q"].as_u64());
    assert!(numbers.eq(1..kept_nowhere.len() as u64), "{kept_nowhere:?}");
}

#[test]
fn the_limits_end_a_run_with_four() {
    let scene = Scene::new();
    let listing = json!({ "calls": [{ "name": "List", "arguments": {} }] });
    let model = scene.script("script.jsonl", &vec![listing; 9]);
    let done = scene
        .yoi(&[
            "run",
            "--pod",
            "steps",
            "--max-steps",
            "3",
            "-m",
            &model,
            "go",
        ])
        .ends(4);
    done.says(&[
        "error: the step limit was reached",
        "help: continue with `yoi run --pod steps \"continue\"`, or raise --max-steps",
        "3 steps",
    ]);
    assert_eq!(scene.sound("steps"), 3);
    scene.config("[limits]\nmax_steps = 2\n");
    scene
        .yoi(&["run", "--pod", "file", "-m", &model, "go"])
        .ends(4)
        .says(&["2 steps"]);
    let variable = scene
        .command(&["run", "--pod", "env", "-m", &model, "go"])
        .env("YOI_MAX_STEPS", "1")
        .spawn();
    finish(variable.unwrap()).ends(4).says(&["1 step "]);
    let sleeping = scene.script(
        "slow.jsonl",
        &[json!({ "calls": [{ "name": "Bash", "arguments": { "command": "sleep 600" } }] })],
    );
    let done = scene
        .yoi(&[
            "run",
            "--pod",
            "time",
            "--timeout",
            "1s",
            "-m",
            &sleeping,
            "go",
        ])
        .ends(4);
    done.says(&["error: the time limit was reached", "or raise --timeout"]);
    assert_eq!(scene.sound("time"), 1);
    let done = scene
        .yoi(&["run", "--ephemeral", "--max-steps", "1", "-m", &model, "go"])
        .ends(4);
    done.says(&["run the command again, or raise --max-steps", "not saved"]);
}

/// A start built what confines commands before it asked the model, and took twice as long for it.
#[test]
fn what_confines_commands_is_built_while_the_model_answers() {
    let scene = Scene::new();
    let tmp = scene.path("tmp");
    let built = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&built);
    let fake = Endpoint::start(move |_, _| {
        let until = Instant::now() + Duration::from_secs(20);
        let is_built = || fs::read_dir(&tmp).is_ok_and(|mut entries| entries.next().is_some());
        while !is_built() && Instant::now() < until {
            thread::yield_now();
        }
        seen.store(is_built(), Ordering::Relaxed);
        text("done")
    });
    scene.config(&fake.config(""));
    let mut run = scene.command(&["run", "go"]);
    finish(run.env("FAKE_KEY", "key").spawn().unwrap()).ends(0);
    assert!(built.load(Ordering::Relaxed));
    assert_eq!(scene.left_behind(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn ephemeral_leaves_nothing() {
    let scene = Scene::new();
    let calls = json!({ "calls": [{ "name": "Bash", "arguments": { "command": "mktemp; echo $TMPDIR" } }] });
    let model = scene.script("script.jsonl", &[calls, json!({ "text": "done" })]);
    let done = scene
        .yoi(&["run", "--ephemeral", "-m", &model, "go"])
        .ends(0)
        .says(&["exit 0", "not saved"]);
    assert_eq!(done.out, "done\n");
    assert_eq!(scene.left_behind(), Vec::<std::path::PathBuf>::new());
    assert_eq!(fs::read_dir(scene.path("state")).unwrap().count(), 0);
    scene.yoi(&["run", "-m", &model, "go"]).ends(0);
    assert_eq!(
        scene.left_behind(),
        Vec::<std::path::PathBuf>::new(),
        "nor does a kept run leave temporary files"
    );
    let nowhere = scene
        .command(&["run", "--ephemeral", "-m", &model, "go"])
        .env("TMPDIR", scene.path("none"))
        .spawn();
    finish(nowhere.unwrap())
        .ends(69)
        .says(&["none", "set TMPDIR"]);
    assert!(!scene.path("none").exists());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let scene = Scene::new();
    for n in 0..300 {
        scene.write(&format!("file-{n}.txt"), "x");
    }
    scene.yoi(&["run", "--pod", "p", "list the files"]).ends(0);
    for args in [
        &["run", "list the files"][..],
        &["run", "--json", "list the files"],
        &["log", "p"],
        &["log", "p", "--json"],
    ] {
        let mut child = scene.command(args).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let done = finish(child).ends(0);
        assert!(
            !done.err.contains("panicked") && !done.err.contains("error"),
            "{}",
            done.err
        );
    }
}

#[test]
fn going_on_where_it_was() {
    let scene = Scene::new();
    let model = scene.script(
        "script.jsonl",
        &[
            json!({ "text": "first" }),
            json!({ "text": "second" }),
            json!({ "text": "third" }),
        ],
    );
    assert_eq!(
        scene.yoi(&["run", "-m", &model, "one"]).ends(0).out,
        "first\n"
    );
    assert_eq!(
        scene.yoi(&["run", "-c", "-m", &model, "two"]).ends(0).out,
        "second\n"
    );
    let pods = scene.pods();
    assert_eq!(pods.len(), 1);
    let by_name = scene
        .yoi(&["run", "--pod", &pods[0], "-m", &model, "three"])
        .ends(0);
    assert_eq!(by_name.out, "third\n");
    assert!(!by_name.err.contains("restored"), "{}", by_name.err);
    scene.sound(&pods[0]);
    let after = scene
        .yoi(&["run", "--pod", &pods[0], "-m", &model, "four"])
        .ends(78)
        .says(&["the model script has no answer left"]);
    assert_eq!(after.out, "", "an old answer is not the answer");
    let other = scene
        .yoi(&["run", "-c", "-m", "offline", "list the files"])
        .ends(0);
    other.says(&["this pod last used the model"]);
}
