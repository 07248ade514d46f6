//! A person answers what a pod asks, from any terminal and across kills; what a pod started cannot answer.

use crate::hosts::{Host, newest, until};
use crate::scene::{Done, Scene, finish, signal};
use client::connection::Connection;
use protocol::method::{AllowOrDeny, AllowScope, Approve, GetApprovals, Hello, Role};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Without a sandbox each command asks.
const OFF: [&str; 2] = ["--sandbox", "off"];

pub(crate) fn bash(command: &str) -> Value {
    json!({ "name": "Bash", "arguments": { "command": command } })
}

/// A pod that waits for the approval of a command that adds a line to a file.
pub(crate) struct Asked {
    pub(crate) scene: Scene,
    model: String,
    pub(crate) host: Option<Host>,
}

impl Asked {
    pub(crate) fn start() -> Self {
        let scene = Scene::new();
        let answers = [
            json!({ "calls": [bash("echo ran >> made")] }),
            json!({ "text": "made" }),
            json!({ "text": "next" }),
        ];
        let model = scene.script("s.jsonl", &answers);
        let host = Host::start(&scene, &[&["go", "-m", &model][..], &OFF].concat());
        let asked = Self {
            scene,
            model,
            host: Some(host),
        };
        asked.waits();
        asked
    }

    pub(crate) fn waits(&self) {
        until("the pod waits", || self.state() == "waiting");
    }

    pub(crate) fn state(&self) -> Value {
        self.scene.yoi(&["status", "p", "--json"]).ends(0).json()["state"].clone()
    }

    pub(crate) fn done(&self) {
        let done = |record: &Value| {
            record["k"] == "turn_finished" && record["outcome"]["outcome"] == "done"
        };
        until("a turn is done", || {
            self.scene.records("p").iter().any(done)
        });
    }

    pub(crate) fn kinds(&self, kind: &str) -> usize {
        self.scene
            .records("p")
            .into_iter()
            .filter(|record| record["k"] == kind)
            .count()
    }
}

#[test]
fn asked_while_nobody_is_there_killed_restarted_and_answered() {
    let mut asked = Asked::start();
    let scene = &asked.scene;
    scene
        .yoi(&["ls"])
        .ends(0)
        .prints(&["waiting for you", "approval 1: Bash `echo ran"]);
    scene.yoi(&["status", "p"]).ends(0).prints(&[
        "state     waiting for you (turn 1, step 1)",
        "`yoi approve p` shows",
    ]);
    let shown = [
        "p 1  Bash (sandbox off)",
        "    command: echo ran >> made",
        "requires your approval",
        "`yoi approve p 1` allows this call once",
    ];
    scene.yoi(&["approve"]).ends(0).prints(&shown);
    let listed = scene.yoi(&["approve", "--json"]).ends(0).json();
    assert_eq!(
        (
            &listed[0]["pod"],
            &listed[0]["approval"],
            &listed[0]["running"]
        ),
        (&json!("p"), &json!(1), &json!(true))
    );
    signal(asked.host.take().unwrap().pid, Signal::KILL);
    until("the process is gone", || {
        scene.yoi(&["approve", "p", "1"]).code() == Some(69)
    });
    scene
        .yoi(&["ls"])
        .ends(0)
        .prints(&["crashed", "waiting for approval 1"]);
    scene
        .yoi(&["approve"])
        .ends(0)
        .prints(&["`yoi start p`, then `yoi approve p 1` allows this call once"]);
    let host = Host::start(scene, &[]);
    asked.waits();
    assert!(!scene.file("made").exists(), "it ran without an answer");
    // From another directory, with nothing of the terminal that started it.
    let mut approve = scene.command(&["approve", "p", "1"]);
    let done = finish(approve.current_dir(scene.path("home")).spawn().unwrap()).ends(0);
    assert_eq!(done.out, "allowed: Bash echo ran >> made timeout_s=120\n");
    asked.done();
    assert_eq!(scene.read("made"), "ran\n");
    let again = scene.yoi(&["approve", "p", "1", "--deny"]).ends(1);
    again.says(&["approval 1 was already allowed by yoi approve"]);
    assert_eq!(
        (
            asked.kinds("tool_started"),
            asked.kinds("approval_resolved")
        ),
        (1, 1)
    );
    let started = scene
        .records("p")
        .into_iter()
        .find(|record| record["k"] == "tool_started")
        .unwrap();
    assert_eq!(started["arguments"], listed[0]["arguments"]);
    scene
        .yoi(&["approve", "p"])
        .ends(0)
        .prints(&["no call waits for approval"]);
    scene
        .yoi(&["approve", "p", "2"])
        .ends(2)
        .says(&["there is no approval 2", "yoi approve p"]);
    host.end(Signal::TERM);
    scene.sound("p");
}

/// A person who allows an edit wants to see what it does to the file, not the text that is looked for. Once the file is
/// another one, the call would fail, and the question says so.
#[test]
fn a_question_about_an_edit_shows_its_change_of_the_file_as_it_is() {
    let scene = Scene::new();
    let text: String = (1..=9).map(|n| format!("line {n}\n")).collect();
    fs::write(scene.file("a.txt"), &text).unwrap();
    let call = |name: &str, arguments: Value| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let edits = json!([{ "old": "line 5", "new": "line five" }]);
    let model = scene.script(
        "s.jsonl",
        &[
            call("Read", json!({ "path": "a.txt" })),
            call("Edit", json!({ "path": "a.txt", "edits": edits })),
            call(
                "Write",
                json!({ "path": "b.txt", "content": "1\n".repeat(300) }),
            ),
            json!({ "text": "done" }),
        ],
    );
    let rule = |tool| format!("[[permissions.rules]]\ntool = \"{tool}\"\ndecision = \"ask\"\n");
    scene.config(&["Edit", "Write"].map(rule).concat());
    let host = Host::start(&scene, &["go", "-m", &model]);
    let waits = |id: u64| {
        until("the pod waits", || {
            scene.yoi(&["approve", "p", "--json"]).ends(0).json()[0]["approval"] == id
        });
    };
    waits(1);
    let shown = "changes the file as it is now:\n     3   line 3\n     4   line 4\n     5 - line 5\n     5 + line five\n     6   line 6";
    for (args, exit) in [(&["attach", "p", "--plain"][..], 6), (&["approve", "p"], 0)] {
        let out = scene.fed(args, b"").ends(exit).out;
        assert!(out.contains(shown), "{out}");
    }
    fs::write(scene.file("a.txt"), "line 5\n").unwrap();
    let why = "the change cannot be shown: a.txt has changed since it was read";
    scene
        .fed(&["attach", "p", "--plain"], b"")
        .ends(6)
        .prints(&[why]);
    scene.yoi(&["approve", "p", "1"]).ends(0);
    waits(2);
    let out = scene.yoi(&["approve", "p"]).ends(0).out;
    assert!(out.contains("      1 + 1\n      2 + 1\n"), "{out}");
    assert!(out.contains("… 101 more lines"), "{out}");
    host.end(Signal::TERM);
}

#[test]
fn words_of_a_denial_reach_the_model_and_scripts_get_their_exit_codes() {
    let asked = Asked::start();
    let scene = &asked.scene;
    let waits = "p waits for approval 1: Bash `echo ran";
    scene
        .yoi(&["send", "p", "more"])
        .ends(0)
        .says(&[waits, "the input waits until `yoi approve p 1`"]);
    let six = |done: Done| {
        done.ends(6)
            .says(&["a call waits for your approval", "`yoi approve p`"])
    };
    six(scene.yoi(&["send", "p", "--wait", "more"]));
    six(scene.yoi(&["run", "--pod", "p", "more"]));
    scene
        .fed(&["attach", "p", "--plain"], b"")
        .ends(6)
        .prints(&["p waits for approval 1", "detached"]);
    let denied = scene
        .yoi(&["approve", "p", "1", "--deny=not today", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&denied["answer"]["decision"], &denied["answer"]["reason"]),
        (&json!("deny"), &json!("not today"))
    );
    assert_eq!(denied["answer"]["by"]["client"], "yoi approve");
    asked.done();
    assert!(!scene.file("made").exists());
    let result = scene
        .records("p")
        .into_iter()
        .find(|record| record["k"] == "tool_finished")
        .unwrap();
    assert_eq!(
        result["outcome"]["summary"],
        "a person denied this call: not today"
    );
    scene.yoi(&["log", "p"]).ends(0).prints(&[
        "? c00000001 approval 1: Bash",
        "approval 1: denied by yoi approve: not today",
    ]);
    scene
        .yoi(&["approve", "p", "1", "--scope=pod", "--deny"])
        .ends(2);
    scene.yoi(&["approve", "p", "--deny"]).ends(2);
    let long = format!("--deny={}", "x".repeat(2049));
    scene
        .yoi(&["approve", "p", "1", &long])
        .ends(2)
        .says(&["at most 2048 bytes", "shorten WORDS"]);
    asked.host.as_ref().unwrap().end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn an_input_instead_denies_what_waits_and_joins_the_turn() {
    let asked = Asked::start();
    let scene = &asked.scene;
    let sent = scene
        .yoi(&["send", "p", "--deny-parked", "--wait", "do this instead"])
        .ends(0);
    assert_eq!(sent.out, "made\n");
    let kinds: Vec<_> = scene
        .records("p")
        .into_iter()
        .filter_map(|record| {
            let kind = record["k"].as_str()?.to_owned();
            [
                "input_queued",
                "approval_resolved",
                "tool_finished",
                "input_consumed",
                "turn_finished",
            ]
            .contains(&kind.as_str())
            .then_some(kind)
        })
        .collect();
    let order = [
        "input_queued",
        "input_consumed",
        "input_queued",
        "approval_resolved",
        "tool_finished",
        "input_consumed",
        "turn_finished",
    ];
    assert_eq!(kinds, order);
    assert!(!scene.file("made").exists());
    asked.host.as_ref().unwrap().end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn a_cancel_always_works() {
    let asked = Asked::start();
    asked
        .scene
        .yoi(&["cancel", "p"])
        .ends(0)
        .prints(&["the turn of p is being cancelled"]);
    until("it is cancelled", || {
        newest(&asked.scene, "turn_finished")
            .is_some_and(|end| end["outcome"]["outcome"] == "cancelled")
    });
    asked
        .scene
        .yoi(&["approve", "p", "1"])
        .ends(1)
        .says(&["approval 1 is void"]);
    asked.host.as_ref().unwrap().end(Signal::TERM);
    asked.scene.sound("p");
}

#[test]
fn a_stopped_pod_keeps_its_question_and_a_run_in_it_does_not_answer() {
    let asked = Asked::start();
    let scene = &asked.scene;
    scene.yoi(&["stop", "p"]).ends(0).prints(&["p is stopped"]);
    assert_eq!(
        newest(scene, "turn_finished").unwrap()["outcome"]["outcome"],
        "waiting"
    );
    scene
        .yoi(&["status", "p"])
        .ends(0)
        .prints(&["stopped", "`yoi start p`, then `yoi approve p`"]);
    let ran = scene
        .yoi(&["run", "--pod", "p", "-m", &asked.model, "more"])
        .ends(6);
    ran.says(&[
        "a call waits for your approval",
        "`yoi start p`, then `yoi approve p`",
    ]);
    assert!(!scene.file("made").exists());
    let host = Host::start(scene, &[]);
    asked.waits();
    scene.yoi(&["approve", "p", "1"]).ends(0);
    asked.done();
    assert_eq!(scene.read("made"), "ran\n");
    host.end(Signal::TERM);
    scene.sound("p");
}

/// Answers approval 1 as a client of its own, without what `yoi approve` checks before. The command of a pod runs it.
#[test]
fn a_client_of_its_own() {
    let Some(dir) = std::env::var_os("YOI_TEST_POD") else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let said = runtime.block_on(async {
        let versions = vec![protocol::VERSION];
        let hello = Hello {
            versions,
            client: "own".to_owned(),
            name: None,
            role: Role::Approver,
        };
        let (mut pod, welcome) = match Connection::connect(Path::new(&dir), &hello).await {
            Ok(connected) => connected,
            Err(error) => return error.to_string(),
        };
        let open = pod.ask(&GetApprovals {}).await.unwrap().approvals;
        let approve = Approve {
            id: 1,
            decision: AllowOrDeny::Allow,
            scope: AllowScope::Once,
            arguments_digest: open[0].arguments_digest.clone(),
            words: None,
            cmd_id: "own-1".to_owned(),
        };
        format!("as {}: {:?}", welcome.role.word(), pod.ask(&approve).await)
    });
    std::fs::write("socket", said).unwrap();
}

/// A pod whose one command waits for approval, while another one tries to answer it.
fn answers_itself(sandbox: &str) {
    let scene = Scene::new();
    let yoi = env!("CARGO_BIN_EXE_yoi");
    let state = scene.path("state");
    let approve = format!("XDG_STATE_HOME={} {yoi} approve p 1", state.display());
    let own = std::env::current_exe().unwrap();
    let pod = scene.pod("p");
    let own = format!(
        "YOI_TEST_POD={} {} --exact approvals::a_client_of_its_own",
        pod.display(),
        own.display()
    );
    let forget = format!(
        "XDG_STATE_HOME={} {yoi} approve p --forget=all",
        state.display()
    );
    let tries = format!(
        "for n in $(seq 300); do test -e asked && break; sleep 0.1; done; {own} > own.log 2>&1; {forget} > forget 2>&1; echo code $? >> forget; {approve} > marked 2>&1; echo code $? >> marked; unset YOI_CALL; {approve} > bare 2>&1; echo code $? >> bare; \
         ( ( {approve} > orphan.part 2>&1; echo code $? >> orphan.part; mv orphan.part orphan ) & ); \
         for n in $(seq 300); do test -e orphan && break; sleep 0.1; done"
    );
    scene.config(
        "[[permissions.rules]]\ntool = \"Bash\"\ndecision = \"allow\"\n\n\
         [[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"ask\"\n",
    );
    // A command behind one that waits for a person would wait, too.
    let calls = json!({ "calls": [bash(&tries), bash("touch made")] });
    let model = scene.script("s.jsonl", &[calls, json!({ "text": "done" })]);
    let host = Host::start(&scene, &["go", "-m", &model, "--sandbox", sandbox]);
    until("the question is there", || {
        newest(&scene, "approval_requested").is_some()
    });
    fs::write(scene.file("asked"), "").unwrap();
    until("the attempts are over", || {
        newest(&scene, "tool_finished").is_some()
    });
    for name in ["forget", "marked", "bare", "orphan"] {
        let said = scene.read(name);
        assert!(
            said.contains("code ") && !said.contains("code 0") && !said.contains("allowed"),
            "{sandbox} {name}: {said}"
        );
        if sandbox == "off" {
            let refused = if name == "forget" {
                "a run cannot take back rules of its pod"
            } else {
                "a run cannot allow or deny its calls"
            };
            assert!(
                said.contains(refused) && said.contains("code 3"),
                "{name}: {said}"
            );
        }
    }
    // In the sandbox no socket can be opened.
    if sandbox == "off" {
        let said = scene.read("socket");
        assert!(
            said.starts_with("as viewer: Err(") && said.contains("this process can only read"),
            "{said}"
        );
    }
    assert_eq!(newest(&scene, "approval_resolved"), None, "{sandbox}");
    assert!(!scene.file("made").exists());
    // A person can.
    scene.yoi(&["approve", "p", "1"]).ends(0);
    until("the turn is done", || {
        newest(&scene, "turn_finished").is_some()
    });
    assert!(scene.file("made").exists());
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn an_agent_cannot_answer_itself_without_a_sandbox() {
    answers_itself("off");
}

#[test]
fn an_agent_cannot_answer_itself_in_the_sandbox() {
    answers_itself("workspace-write");
}

#[test]
fn an_allowance_for_the_pod_allows_what_its_rules_match() {
    let scene = Scene::new();
    scene.config(
        "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"ask\"\n",
    );
    let call = |command: &str| json!({ "calls": [bash(command)] });
    let answers = [
        call("touch one"),
        call("touch one two && ls"),
        call("touch three"),
        json!({ "text": "done" }),
    ];
    let model = scene.script("s.jsonl", &answers);
    let host = Host::start(&scene, &["go", "-m", &model]);
    let waits = || scene.yoi(&["status", "p", "--json"]).ends(0).json()["state"] == "waiting";
    until("it waits", waits);
    scene
        .yoi(&["approve"])
        .ends(0)
        .prints(&["`yoi approve p 1 --scope=pod` allows it and later calls of this pod that match: Bash touch one"]);
    scene.yoi(&["approve", "p", "1", "--scope=pod"]).ends(0);
    let second =
        || scene.yoi(&["status", "p", "--json"]).ends(0).json()["approvals"][0]["approval"] == 2;
    until("the third call asks", second);
    assert!(
        scene.file("two").exists() && !scene.file("three").exists(),
        "the second call was not asked about"
    );
    scene.yoi(&["approve", "p", "2", "--deny"]).ends(0);
    until("the turn is done", || {
        newest(&scene, "turn_finished").is_some()
    });
    host.end(Signal::TERM);
    scene.sound("p");
}
