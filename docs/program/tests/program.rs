//! The composed program: its features are installed under their own ids, a person can change their grants, state stays, and
//! the tracker answers the tools for issues.

use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, mpsc};
use tempfile::TempDir;
use testkit::{PATIENCE, ScriptedServer, ServerAnswer, on};

/// Runs the program in a home of its own.
fn program(home: &Path, args: &[&str]) -> Output {
    command(home, args).output().unwrap()
}

fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_program"));
    command
        .args(args)
        .current_dir(home.join("project"))
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin");
    command
}

fn report(home: &Path, args: &[&str]) -> Value {
    let output = program(home, args);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn review_first(report: &Value) -> &Value {
    let all = report["features"].as_array().unwrap();
    all.iter()
        .find(|feature| feature["feature_id"] == "user:review-first")
        .unwrap()
}

#[test]
fn a_feature_of_ones_own_runs_in_every_pod() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let project = home.join("project");
    let config = home.join(".config/yoi");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(&config).unwrap();
    assert_eq!(
        review_first(&report(home, &["features", "--json"]))["outcome"],
        "installed"
    );
    // Its tool is one that rules can name, and its answer shows that it ran.
    let reviewed = |branch: &str| {
        format!(
            "{{\"calls\":[{{\"name\":\"Reviewed\",\"arguments\":{{\"branch\":\"{branch}\"}}}}]}}\n{{\"text\":\"done\"}}\n"
        )
    };
    std::fs::write(
        project.join("answers.jsonl"),
        reviewed("fix") + &reviewed("more"),
    )
    .unwrap();
    for expected in ["1 reviewed", "2 reviewed"] {
        let run = program(
            home,
            &[
                "run",
                "-m",
                "scripted:answers.jsonl",
                "--pod",
                "p",
                "--allow",
                "Reviewed",
                "review",
            ],
        );
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        let log = program(home, &["log", "p"]);
        assert!(
            String::from_utf8_lossy(&log.stdout).contains(expected),
            "{}",
            String::from_utf8_lossy(&log.stdout)
        );
    }
    // A person's configuration comes after the defaults of the program.
    std::fs::write(
        config.join("config.toml"),
        "[features.\"user:review-first\"]\ngrant = { tools = [] }\n",
    )
    .unwrap();
    let changed = report(home, &["features", "--json"]);
    assert_eq!(review_first(&changed)["outcome"], "degraded");
    std::fs::write(
        config.join("config.toml"),
        "[features.\"user:review-first\"]\nenabled = false\n",
    )
    .unwrap();
    assert_eq!(
        review_first(&report(home, &["features", "--json"]))["outcome"],
        "disabled"
    );
}

const TOKEN: &str = "canary-7f3a91e5d2";

const RUN: [&str; 8] = [
    "run",
    "-m",
    "scripted:answers.jsonl",
    "--pod",
    "p",
    "--allow",
    "create_issue",
    "look",
];

/// A home whose configuration says where the tracker is.
fn home_of(tracker: &ScriptedServer) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join(".config/yoi");
    std::fs::create_dir_all(home.path().join("project")).unwrap();
    std::fs::create_dir_all(&config).unwrap();
    let settings = format!(
        "[secrets]\ntracker = {{ command = [\"echo\", \"{TOKEN}\"] }}\n\
         [features.\"user:tracker\"]\nbase_url = \"{}\"\n\
         grant = {{ endpoints = [\"{}\"], secrets = [\"tracker\"] }}\n",
        tracker.url(),
        tracker.endpoint(),
    );
    std::fs::write(config.join("config.toml"), settings).unwrap();
    home
}

/// The model makes these calls, and then says that it is done.
fn answer(home: &Path, calls: &str) {
    let answers = format!("{calls}{{\"text\":\"done\"}}\n{{\"text\":\"done\"}}\n");
    std::fs::write(home.join("project/answers.jsonl"), answers).unwrap();
}

fn issue(number: u64) -> Value {
    json!({ "number": number, "title": format!("issue {number}"), "state": "open", "labels": ["bug"] })
}

fn text(of: &[u8]) -> String {
    String::from_utf8_lossy(of).into_owned()
}

#[test]
fn a_tracker_answers_the_tools_for_issues() {
    let first = json!([issue(1), issue(2)]);
    let server = ScriptedServer::new([
        // A list in two pieces.
        on(
            "GET",
            "/issues?state=open&labels=bug",
            ServerAnswer::json(200, &first).header("link", "</issues?page=2>; rel=\"next\""),
        ),
        on(
            "GET",
            "/issues?page=2",
            ServerAnswer::json(200, &json!([issue(3)])),
        ),
        on("POST", "/issues", ServerAnswer::json(201, &issue(4))),
        on(
            "GET",
            "/issues/9",
            ServerAnswer::json(404, &json!({ "error": "no issue 9" })),
        ),
    ]);
    let home = home_of(&server);
    let home = home.path();
    let calls = [
        ("get_issues", json!({ "labels": ["bug"], "limit": 3 })),
        ("create_issue", json!({ "title": "issue 4" })),
        ("get_issue", json!({ "key": "tracker#9" })),
    ];
    let answers = calls.map(|(name, arguments)| {
        let call = json!({ "name": name, "arguments": arguments });
        format!("{}\n", json!({ "calls": [call] }))
    });
    answer(home, &answers.concat());
    let run = program(home, &RUN);
    assert!(run.status.success(), "{}", text(&run.stderr));
    server.assert_done();
    let log = text(&program(home, &["log", "p"]).stdout);
    for part in [
        "3 of 3 issues",
        "tracker#4",
        "Tracker answered 404 to GET /issues/9: no issue 9",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let seen = server.requests();
    let bearer = format!("Bearer {TOKEN}");
    assert!(
        seen.iter()
            .all(|seen| seen.header("authorization") == Some(&bearer))
    );
    assert_eq!(seen[2].json(), json!({ "title": "issue 4", "labels": [] }));
    assert!(!log.contains(TOKEN));
}

#[test]
fn a_program_that_is_killed_while_it_sends_does_not_send_again() {
    // The request has arrived, and is not answered before the program is dead.
    let (arrived, arrival) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let server = ScriptedServer::answering(move |request| {
        if request.method == "POST" {
            arrived.send(()).unwrap();
            released.lock().unwrap().recv().ok();
        }
        Some(ServerAnswer::json(201, &issue(4)).cut(0))
    });
    let home = home_of(&server);
    let home = home.path();
    answer(
        home,
        "{\"calls\":[{\"name\":\"create_issue\",\"arguments\":{\"title\":\"issue 4\"}}]}\n",
    );
    let mut run = command(home, &RUN)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    arrival.recv_timeout(PATIENCE).unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    drop(release);
    let again = program(home, &RUN);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let log = text(&program(home, &["log", "p"]).stdout);
    assert!(
        log.contains("outcome unknown; verify before retrying"),
        "{log}"
    );
    let sent = server.requests();
    assert_eq!(sent.iter().filter(|of| of.method == "POST").count(), 1);
}

#[test]
fn a_question_shows_what_would_be_sent() {
    let server = ScriptedServer::new([]);
    let home = home_of(&server);
    let home = home.path();
    answer(
        home,
        "{\"calls\":[{\"name\":\"create_issue\",\"arguments\":{\"title\":\"issue 4\",\"labels\":[\"bug\"]}}]}\n",
    );
    let did = |args: &[&str], code: i32| {
        let output = program(home, args);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    did(&["start", "p", "-m", "scripted:answers.jsonl"], 0);
    did(&["send", "p", "--wait", "look"], 6);
    let asked = did(&["approve", "p"], 0);
    for part in [
        "create_issue at tracker",
        "title: issue 4",
        "labels: [\"bug\"]",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    did(&["approve", "p", "1", "--deny"], 0);
    did(&["stop", "p"], 0);
    // Nothing was asked of the tracker.
    server.assert_done();
    assert_eq!(server.requests().len(), 0);
}
