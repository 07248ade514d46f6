//! A program that was composed with a feature of its own, which holds a secret and reaches an endpoint. It drives
//! itself: with [`ROLE`] set it is that program, otherwise the tests.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

mod keeper;
mod languages;
mod scene;
mod scripts;

use keeper::{Keeper, Waiting};
use pod::feature::HostCapability;
use scene::Scene;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

/// Set for the program under test.
const ROLE: &str = "PROGRAM_UNDER_TEST";

/// Looked for in everything that is written or shown.
const VALUE: &str = "s3cr3t-of-the-tracker";

fn main() -> ExitCode {
    // What holds the namespaces of its commands, and guests, have another environment.
    if std::env::var_os(ROLE).is_some()
        || std::env::args()
            .nth(1)
            .is_some_and(|word| word.starts_with("__"))
    {
        let granted = [HostCapability::tool("*")];
        let program = yoi::Program::new()
            .feature(Arc::new(Keeper), &granted)
            .feature(Arc::new(Waiting), &[])
            .runtime("text", scripts::text);
        return program.main(std::env::args_os());
    }
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'))
        .unwrap_or_default();
    let tests: [(&str, fn()); 11] = [
        (
            "a_denial_prints_the_grant_that_works",
            a_denial_prints_the_grant_that_works,
        ),
        (
            "a_secret_comes_from_each_place_and_is_shown_nowhere",
            a_secret_comes_from_each_place_and_is_shown_nowhere,
        ),
        (
            "a_missing_secret_stops_its_feature_alone",
            a_missing_secret_stops_its_feature_alone,
        ),
        (
            "a_secret_is_read_for_a_feature_that_runs_and_holds_it",
            a_secret_is_read_for_a_feature_that_runs_and_holds_it,
        ),
        (
            "the_starter_reads_secrets_and_the_host_holds_them",
            the_starter_reads_secrets_and_the_host_holds_them,
        ),
        (
            "an_endpoint_of_a_person_is_reached",
            an_endpoint_of_a_person_is_reached,
        ),
        (
            "a_projects_file_grants_nothing",
            a_projects_file_grants_nothing,
        ),
        (
            "a_program_brings_a_runtime_of_its_own",
            scripts::a_program_brings_a_runtime_of_its_own,
        ),
        (
            "the_same_feature_gives_the_same_transcript_in_each_language",
            languages::the_same_feature_gives_the_same_transcript_in_each_language,
        ),
        (
            "the_example_in_lua_keeps_the_contract",
            scripts::the_example_in_lua_keeps_the_contract,
        ),
        (
            "a_script_that_does_not_end_refuses_while_its_tool_works",
            scripts::a_script_that_does_not_end_refuses_while_its_tool_works,
        ),
    ];
    for (name, test) in tests.into_iter().filter(|(name, _)| name.contains(&filter)) {
        print!("test {name} ... ");
        std::io::stdout().flush().unwrap();
        test();
        println!("ok");
    }
    ExitCode::SUCCESS
}

const GRANT: &str = "[features.\"user:keeper\"]\ngrant = { secrets = [\"tracker\"] }\n";

fn a_denial_prints_the_grant_that_works() {
    let scene = Scene::new();
    let printed = scene.yoi(&["features"]).ends(0).out;
    assert!(printed.contains("✗ user:keeper"), "{printed}");
    let grant = printed
        .lines()
        .find(|line| line.trim_start().starts_with("grant = { secrets"))
        .unwrap();
    scene.config(&format!(
        "[features.\"user:keeper\"]\n{}\n[secrets]\ntracker = {{ env = \"TRACKER\" }}\n",
        grant.trim()
    ));
    let printed = scene.yoi(&["features"]).ends(0).out;
    assert!(
        printed.contains("~ user:keeper"),
        "only the endpoints are left: {printed}"
    );
    assert!(printed.contains("grant = { endpoints = ["), "{printed}");
}

fn a_secret_comes_from_each_place_and_is_shown_nowhere() {
    for source in [
        "{ env = \"TRACKER\" }",
        "{ file = \"~/token\" }",
        "{ command = [\"cat\", \"HOME/token\"] }",
    ] {
        let scene = Scene::new();
        scene.write("token", &format!("{VALUE}\n"));
        let source = source.replace("HOME", scene.home().to_str().unwrap());
        scene.config(&format!("{GRANT}[secrets]\ntracker = {source}\n"));
        scene.script(&[("length", ""), ("leak", "")]);
        let scene = scene.with("TRACKER", VALUE);
        let ran = scene
            .yoi(&[
                "run",
                "--json",
                "-m",
                "scripted:answers.jsonl",
                "--pod",
                "p",
                "go",
            ])
            .ends(0);
        let log = scene.yoi(&["log", "p"]).ends(0).out;
        assert!(
            log.contains(&format!("{} letters", VALUE.len())),
            "{source}: {log}"
        );
        assert!(log.contains("‹secret tracker›"), "{source}: {log}");
        let shown = scene.yoi(&["config", "show"]).ends(0);
        for text in [ran.out, ran.err, log, shown.out] {
            assert!(!text.contains(VALUE), "{source}: {text}");
        }
        scene.nowhere(VALUE, &["token"]);
    }
}

fn a_missing_secret_stops_its_feature_alone() {
    let scene = Scene::new();
    for (value, why) in [
        ("", "no secret tracker: TRACKER is not set"),
        ("short", "no secret tracker: it has 5 bytes"),
    ] {
        scene.config(&format!(
            "{GRANT}[secrets]\ntracker = {{ env = \"TRACKER\" }}\n"
        ));
        scene.write("project/answers.jsonl", "{\"text\":\"done\"}\n");
        let scene = scene.with("TRACKER", value);
        let ran = scene
            .yoi(&["run", "-m", "scripted:answers.jsonl", "go"])
            .ends(0);
        assert!(ran.err.contains(why), "{}", ran.err);
        assert!(!ran.err.contains("short"), "{}", ran.err);
    }
    // The name that a feature of yoi's own uses, and a value in place of its source.
    scene.config("[secrets]\nnotify-person-webhook = { env = \"TRACKER\" }\n");
    assert!(
        scene
            .yoi(&["features"])
            .ends(78)
            .err
            .contains("webhook_file")
    );
    scene.config(&format!("[secrets]\ntracker = \"{VALUE}\"\n"));
    assert!(!scene.yoi(&["features"]).ends(78).err.contains(VALUE));
}

fn a_secret_is_read_for_a_feature_that_runs_and_holds_it() {
    let scene = Scene::new();
    let ran = scene.home().join("ran");
    let secret = format!(
        "[secrets]\ntracker = {{ command = [\"touch\", \"{}\"] }}\n",
        ran.display()
    );
    scene.write("project/answers.jsonl", "{\"text\":\"done\"}\n");
    let off = GRANT.replace("grant", "enabled = false\ngrant");
    let skipped = GRANT.replace("keeper", "waiting");
    for (grant, reads) in [
        ("", false),
        (off.as_str(), false),
        (skipped.as_str(), false),
        (GRANT, true),
    ] {
        scene.config(&format!("{grant}{secret}"));
        scene
            .yoi(&["run", "-m", "scripted:answers.jsonl", "go"])
            .ends(0);
        assert_eq!(ran.exists(), reads, "with {grant:?}");
    }
}

fn the_starter_reads_secrets_and_the_host_holds_them() {
    let scene = Scene::new();
    scene.config(&format!(
        "{GRANT}[secrets]\ntracker = {{ env = \"TRACKER\" }}\n"
    ));
    scene.script(&[("length", "")]);
    let scene = scene.with("TRACKER", VALUE);
    let started = scene
        .yoi(&["start", "p", "--json", "-m", "scripted:answers.jsonl"])
        .ends(0)
        .out;
    let pid = serde_json::from_str::<serde_json::Value>(&started).unwrap()["pid"]
        .as_u64()
        .unwrap();
    let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(
        !String::from_utf8_lossy(&variables).contains(VALUE),
        "the host has the variable"
    );
    let sent = scene.yoi(&["run", "--pod", "p", "go"]);
    let log = scene.yoi(&["log", "p"]).out;
    scene.yoi(&["stop", "p"]).ends(0);
    sent.ends(0);
    assert!(log.contains(&format!("{} letters", VALUE.len())), "{log}");
    scene.nowhere(VALUE, &[]);
}

fn an_endpoint_of_a_person_is_reached() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"hello from the endpoint\n").unwrap();
    });
    let scene = Scene::new();
    let grant =
        format!("grant = {{ secrets = [\"tracker\"], endpoints = [\"127.0.0.1:{port}\"] }}");
    scene.config(&format!(
        "[features.\"user:keeper\"]\n{grant}\n[secrets]\ntracker = {{ env = \"TRACKER\" }}\n"
    ));
    scene.script(&[
        ("connect", &format!("127.0.0.1:{port}")),
        ("connect", "127.0.0.1:1"),
    ]);
    let scene = scene.with("TRACKER", VALUE);
    scene
        .yoi(&["run", "-m", "scripted:answers.jsonl", "--pod", "p", "go"])
        .ends(0);
    let log = scene.yoi(&["log", "p"]).ends(0).out;
    answering.join().unwrap();
    assert!(log.contains("hello from the endpoint"), "{log}");
    assert!(log.contains("this grant allows only"), "{log}");
}

fn a_projects_file_grants_nothing() {
    let scene = Scene::new();
    let ran = scene.home().join("ran");
    let command = format!("[\"touch\", \"{}\"]", ran.display());
    scene.write("project/answers.jsonl", "{\"text\":\"done\"}\n");
    scene.write(
        "project/yoi.toml",
        &format!(
            "{}[secrets]\ntracker = {{ command = {command} }}\n",
            GRANT.replace(" }", ", endpoints = [\"127.0.0.1:1\"] }")
        ),
    );
    let printed = scene.yoi(&["features"]).ends(0).out;
    assert!(printed.contains("✗ user:keeper"), "{printed}");
    let run = scene
        .yoi(&["run", "-m", "scripted:answers.jsonl", "go"])
        .ends(0);
    assert!(run.err.contains("2 pending entries"), "{}", run.err);
    assert!(!ran.exists(), "the command ran");
    let pending = scene.yoi(&["grant"]).ends(0).out;
    assert!(
        pending.contains("secrets.tracker") && pending.contains("runs [\"touch\""),
        "{pending}"
    );
}
