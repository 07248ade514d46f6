//! What is too much of a server ends it or is left out, and says so. Secrets of a server stand in nothing that is kept or shown.

use super::{SYSTEM_PATH, add, outside, run_calls, scene, server, starts, yoi};
use serde_json::json;

/// (the words of the server, what the result of a call says).
const CALLS: &[(&str, &str)] = &[
    ("modern long", "is over 16 MiB; the call may have happened"),
    ("legacy long", "is over 16 MiB; the call may have happened"),
    (
        "modern chatty",
        "it wrote over 10000 lines or 64 MiB after one request; the call may have happened",
    ),
];

#[test]
fn a_call_of_which_too_much_comes_ends_its_server() {
    let Some(scene) = scene() else { return };
    let call = [("mcp__fake__nothing", json!({}))];
    let server = server(&scene);
    for (number, (words, says)) in CALLS.iter().enumerate() {
        let mut args = vec![
            "mcp",
            "add",
            "fake",
            "--allow-calls",
            "--",
            "python3",
            &server,
        ];
        args.extend(words.split(' '));
        yoi(&scene, &args).ends(0);
        let before = starts(&scene);
        let twice = [call[0].clone(), call[0].clone()];
        let (results, run) = run_calls(&scene, &format!("p{number}"), &twice);
        assert_eq!(results.len(), 2, "{run:?}");
        for (status, text) in &results {
            assert_eq!(status, "error", "{words}: {text}");
            assert!(text.contains(says), "{words}: {text}");
        }
        assert_eq!(
            starts(&scene),
            before + 2,
            "{words}: the next call starts it"
        );
        yoi(&scene, &["mcp", "remove", "fake"]).ends(0);
    }
}

#[test]
fn a_list_of_tools_is_bounded_in_each_direction() {
    let Some(scene) = scene() else { return };
    for (name, words, says) in [
        (
            "pages",
            "modern pages",
            &["64 tools", "has more than 64 pages"][..],
        ),
        (
            "many",
            "modern many",
            &["512 tools", "has more than 512 tools"],
        ),
        (
            "odd",
            "modern odd",
            &["0 tools", "whose name is too long", "and 9 more problems"],
        ),
    ] {
        add(&scene, name, words).prints(says);
    }
    let shown = yoi(&scene, &["mcp", "list"]).ends(0);
    shown.prints(&["many  512 tools", "odd  0 tools", "pages  64 tools"]);
}

/// A key that no file and no output may have.
const KEY: &str = "key-0123456789-canary";

#[test]
fn a_key_that_a_server_gives_back_is_kept_nowhere() {
    let Some(scene) = scene() else { return };
    scene.config("[secrets]\ntracker = { env = \"TRACKER\" }\n");
    let (dir, server) = outside(&scene);
    let given = |args: &[&str]| {
        let mut command = scene.command(args);
        command.env("PATH", SYSTEM_PATH).env("TRACKER", KEY);
        super::finish(command.spawn().unwrap())
    };
    let add = [
        "mcp",
        "add",
        "fake",
        "--secret",
        "KEY=tracker",
        "--read-dir",
        &dir,
        "--",
        "python3",
        &server,
    ];
    let clean = |done: &super::Done, what: &str| {
        assert!(
            !done.out.contains(KEY) && !done.err.contains(KEY),
            "{what}: {done:?}"
        );
    };
    let failed = given(&[&add[..], &["modern", "fails"]].concat()).ends(69);
    clean(&failed, "add that fails");
    failed.says(&["no access with "]);
    for (what, args) in [
        ("add", [&add[..], &["modern", "leaks"]].concat()),
        ("pin", vec!["mcp", "pin", "fake", "--yes"]),
        ("show", vec!["mcp", "show", "fake"]),
        ("show --json", vec!["mcp", "show", "fake", "--json"]),
    ] {
        clean(&given(&args).ends(0), what);
    }
    let kept = std::fs::read_to_string(scene.path("state/yoi/mcp/fake.json")).unwrap();
    assert!(kept.contains("The key is "), "{kept}");
    assert!(!kept.contains(KEY), "{kept}");
}

#[test]
fn a_program_that_is_missing_is_no_question_of_options() {
    let Some(scene) = scene() else { return };
    for program in ["/nowhere/server", "no-such-server-program"] {
        let done = yoi(&scene, &["mcp", "add", "fake", "--", program]).ends(69);
        assert!(!done.err.contains("--network"), "{done:?}");
        done.says(&[
            program,
            "no such program",
            "help: install it or name its path",
        ]);
    }
}
