//! Runs against an endpoint that fails: what is tried again, what is not, and what is said.

use crate::endpoint::{Endpoint, Reply, calls, delta, stop, text};
use crate::scene::{Done, Scene, finish, holding};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Stands for a key; it may appear nowhere.
const CANARY: &str = "sk-canary-0123456789";

/// Short waits and two attempts.
const QUICK: &str =
    "timeouts = { connect_s = 5, first_byte_s = 0.3, between_bytes_s = 0.3 }\nattempts = 2\n";

fn run(scene: &Scene, flags: &[&str]) -> Done {
    let args = [&["run", "--pod", "p"][..], flags, &["go"]].concat();
    finish(
        scene
            .command(&args)
            .env("FAKE_KEY", CANARY)
            .spawn()
            .unwrap(),
    )
}

fn against(endpoint: &Endpoint, more: &str) -> (Scene, Done) {
    let scene = Scene::new();
    scene.config(&endpoint.config(more));
    let done = run(&scene, &[]);
    (scene, done)
}

fn status(line: &'static str, headers: &'static str) -> Reply {
    Reply::Status(
        line,
        headers,
        json!({ "error": { "message": "so it is", "type": "x" } }).to_string(),
    )
}

#[test]
fn what_passes_is_tried_again() {
    type First = fn() -> Reply;
    let half = || Reply::Cut(vec![delta(&json!({ "content": "half an ans" }))]);
    let firsts: [(First, &str); 5] = [
        (half, "attempt 2"),
        (|| Reply::Cut(Vec::new()), "attempt 2"),
        (|| status("500 Internal Server Error", ""), "500"),
        (|| status("503 Service Unavailable", ""), "503"),
        (
            || Reply::Hang(vec![delta(&json!({ "content": "half" }))]),
            "attempt 2",
        ),
    ];
    for (first, says) in firsts {
        let endpoint = Endpoint::start(move |n, _| {
            if n == 0 {
                first()
            } else {
                text("a whole answer")
            }
        });
        let (scene, done) = against(&endpoint, QUICK);
        let done = done.ends(0).says(&[says]);
        assert_eq!(done.out, "a whole answer\n", "{says}");
        assert_eq!(endpoint.requests().len(), 2);
        scene.sound("p");
    }
}

#[test]
fn what_stays_ends_with_five_and_the_next_run_goes_on() {
    type Always = fn() -> Reply;
    let always: [(Always, &[&str]); 5] = [
        (
            || Reply::Cut(vec![delta(&json!({ "content": "half" }))]),
            &["2 attempts", "help: try again"],
        ),
        (
            || status("500 Internal Server Error", ""),
            &["500", "so it is", "2 attempts", "help: "],
        ),
        (
            || status("429 Too Many Requests", ""),
            &["429", "rate limit"],
        ),
        (
            || Reply::Hang(Vec::new()),
            &["slow or overloaded", "2 attempts"],
        ),
        (
            || Reply::Hang(vec![delta(&json!({ "content": "half" }))]),
            &["slow or overloaded"],
        ),
    ];
    for (reply, says) in always {
        let well = Arc::new(Mutex::new(false));
        let mended = well.clone();
        let endpoint = Endpoint::start(move |_, _| {
            if *mended.lock().unwrap() {
                text("well again")
            } else {
                reply()
            }
        });
        let (scene, done) = against(&endpoint, QUICK);
        let done = done.ends(5).says(says);
        assert_eq!(done.out, "", "half an answer is none");
        assert_eq!(endpoint.requests().len(), 2);
        scene.sound("p");
        *well.lock().unwrap() = true;
        assert_eq!(run(&scene, &[]).ends(0).out, "well again\n");
        scene.sound("p");
    }
    let scene = Scene::new();
    scene.config(
        "model = \"x/y\"\n[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\nattempts = 1\n",
    );
    run(&scene, &[])
        .ends(5)
        .says(&["127.0.0.1:9", "the provider is running"]);
}

#[test]
fn retry_after_is_kept() {
    let came = Arc::new(Mutex::new(Vec::new()));
    let times = came.clone();
    let endpoint = Endpoint::start(move |n, _| {
        times.lock().unwrap().push(Instant::now());
        if n == 0 {
            status("429 Too Many Requests", "retry-after: 1\r\n")
        } else {
            text("now")
        }
    });
    let (scene, done) = against(&endpoint, "");
    assert_eq!(done.ends(0).says(&["429", "attempt 2 in 1"]).out, "now\n");
    let came = came.lock().unwrap();
    assert!(
        came[1] - came[0] >= Duration::from_secs(1),
        "{:?}",
        came[1] - came[0]
    );
    scene.sound("p");
}

#[test]
fn what_does_not_pass_is_not_tried_again() {
    let refused: [(&str, i32, &[&str]); 4] = [
        (
            "401 Unauthorized",
            78,
            &["401", "check that the API key in FAKE_KEY"],
        ),
        ("403 Forbidden", 78, &["403", "FAKE_KEY"]),
        (
            "404 Not Found",
            78,
            &["404", "check that the provider offers `one`", "yoi models"],
        ),
        ("402 Payment Required", 1, &["402", "add credit"]),
    ];
    for (line, code, says) in refused {
        let endpoint = Endpoint::start(move |_, _| status(line, ""));
        let (scene, done) = against(&endpoint, QUICK);
        done.ends(code).says(says);
        assert_eq!(endpoint.requests().len(), 1, "{line}");
        scene.sound("p");
    }
}

/// A pod that its provider calls full said that `yoi resume` continues it, into the same wall.
#[test]
fn a_pod_that_its_provider_calls_full_names_the_way_out() {
    let words = |message: &str| json!({ "error": { "message": message } }).to_string();
    let too_long = words("prompt token count of 134000 exceeds the limit of 128000");
    let exceeded = words("Context size has been exceeded.");
    let stopped = || {
        Reply::Answer(vec![
            delta(&json!({ "content": "x" })),
            stop("model_context_window_exceeded"),
        ])
    };
    type Full = Box<dyn Fn() -> Reply + Send + Sync>;
    let forms: [Full; 4] = [
        Box::new(|| status("413 Content Too Large", "")),
        Box::new(move || Reply::Status("400 Bad Request", "", too_long.clone())),
        Box::new(move || Reply::Status("200 OK", "", exceeded.clone())),
        Box::new(stopped),
    ];
    for full in forms {
        let endpoint = Endpoint::start(move |_, _| full());
        let (scene, done) = against(&endpoint, QUICK);
        done.ends(1).says(&["`yoi compact p --drop-turns`"]);
        for command in [&["ls"][..], &["status", "p"]] {
            scene
                .yoi(command)
                .ends(0)
                .prints(&["`yoi compact p --drop-turns`"]);
        }
        scene
            .yoi(&["status", "p"])
            .ends(0)
            .prints(&["`yoi send p \"continue\"` then continues the turn"]);
    }
    // A quota is no full context.
    let endpoint = Endpoint::start(|_, _| status("402 Payment Required", ""));
    let (scene, _) = against(&endpoint, QUICK);
    assert!(
        !scene
            .yoi(&["status", "p"])
            .ends(0)
            .out
            .contains("--drop-turns")
    );
}

/// The words of a cut answer and of a refusal were in `yoi log` only; they are no answer for a script.
#[test]
fn what_a_model_said_before_it_was_cut_is_shown_to_people() {
    let said = |field: &str, reason: &str| {
        Reply::Answer(vec![
            delta(&json!({ field: "half an answer" })),
            stop(reason),
        ])
    };
    let table = [
        ("content", "length"),
        ("content", "content_filter"),
        ("refusal", "stop"),
    ];
    for (field, reason) in table {
        let endpoint = Endpoint::start(move |_, _| said(field, reason));
        let (scene, done) = against(&endpoint, QUICK);
        let done = done
            .ends(1)
            .says(&["half an answer\nthe answer above is incomplete\nerror: "]);
        assert_eq!(done.out, "", "{reason}");
        assert!(
            !run(&scene, &["--json"]).ends(1).err.contains("half"),
            "{reason}"
        );
    }
}

#[test]
fn a_key_is_seen_by_the_endpoint_alone() {
    let endpoint = Endpoint::start(|n, _| match n {
        0 => calls(&[(
            "Bash",
            json!({ "command": "env; cat /proc/$PPID/environ | tr '\\0' '\\n'" }).to_string(),
        )]),
        // Vendors repeat a key in their errors.
        _ => Reply::Status(
            "401 Unauthorized",
            "",
            json!({ "error": { "message": format!("no such key: {CANARY}") } }).to_string(),
        ),
    });
    for flags in [&[][..], &["--json"]] {
        let scene = Scene::new();
        scene.config(&endpoint.config(QUICK));
        let done = run(&scene, flags).ends(78);
        assert!(
            !done.err.contains(CANARY) && !done.out.contains(CANARY),
            "{}{}",
            done.out,
            done.err
        );
        for args in [
            &["log", "p", "--full"][..],
            &["log", "p", "--json"],
            &["config", "show"],
            &["features", "p"],
            &["ls"],
        ] {
            let shown =
                finish(scene.command(args).env("FAKE_KEY", CANARY).spawn().unwrap()).ends(0);
            assert!(
                !shown.out.contains(CANARY) && !shown.err.contains(CANARY),
                "{args:?}"
            );
        }
        assert_eq!(holding(&scene.path(""), CANARY), Vec::<String>::new());
    }
    let head = &endpoint.requests()[0].head;
    assert!(head.contains(&format!("Bearer {CANARY}")), "{head}");
}
