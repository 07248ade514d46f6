//! Commands that ask to run beyond the sandbox: what a person is shown, what an allowance opens, and what stays shut.

use crate::hosts::{Host, newest, until};
use crate::scene::{Scene, signal};
use authority::support;
use client::connection::Connection;
use protocol::method::{CallTool, Hello, Role};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::net::TcpListener;

fn bash(command: &str) -> Value {
    json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] })
}

fn escalated(command: &str, to: &str) -> Value {
    let escalate = json!({ "to": to, "reason": "the task needs it\nreally" });
    json!({ "calls": [{ "name": "Bash", "arguments": { "command": command, "escalate": escalate } }] })
}

/// Whether this kernel confines commands; where not, Bash is not offered, which other tests see.
fn confinable() -> bool {
    let missing = support().missing();
    missing.inspect(|missing| eprintln!("left out: this kernel has no {missing}"));
    missing.is_none()
}

struct Pod {
    scene: Scene,
    host: Option<Host>,
}

impl Pod {
    fn start(scene: Scene, answers: &[Value], flags: &[&str]) -> Self {
        let done = [json!({ "text": "done" }), json!({ "text": "next" })];
        let model = scene.script("s.jsonl", &[answers, &done].concat());
        let host = Host::start(&scene, &[&["go", "-m", &model][..], flags].concat());
        Self {
            scene,
            host: Some(host),
        }
    }

    fn waits_for(&self, approval: u64) {
        let open = || {
            self.scene.yoi(&["status", "p", "--json"]).ends(0).json()["approvals"][0]["approval"]
                .clone()
        };
        until("it waits", || open() == approval);
    }

    fn done(&self) {
        until("the turn is done", || {
            newest(&self.scene, "turn_finished")
                .is_some_and(|end| end["outcome"]["outcome"] == "done")
        });
    }

    fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.scene
            .records("p")
            .into_iter()
            .filter(|record| record["k"] == kind)
            .collect()
    }

    /// The whole results of the calls, in the order of their ends.
    fn results(&self) -> Vec<String> {
        self.of_kind("tool_finished")
            .iter()
            .map(|end| end["outcome"].to_string())
            .collect()
    }

    fn end(&self) {
        self.host.as_ref().unwrap().end(Signal::TERM);
        self.scene.sound("p");
    }
}

#[test]
fn with_the_network_a_command_reaches_it_and_nothing_else_once_a_person_allows() {
    if !confinable() {
        return;
    }
    let scene = Scene::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("127.0.0.1/{}", port.local_addr().unwrap().port());
    let outside = scene.path("outside");
    // The first address is nobody's: in the sandbox no route leads to it, which the kernel counts.
    let command = format!(
        "echo x > {}; (exec 4<>/dev/udp/192.0.2.1/9); exec 3<>/dev/tcp/{address} && echo reached >> reached",
        outside.display()
    );
    let mut pod = Pod::start(
        scene,
        &[bash(&command), escalated(&command, "network")],
        &["--allow", "Bash"],
    );
    pod.waits_for(1);
    let scene = &pod.scene;
    assert!(!scene.file("reached").exists() && !outside.exists());
    let [first] = &pod.results()[..] else {
        panic!("{:?}", pod.results())
    };
    assert!(
        first.contains("cannot use the network") && first.contains("`escalate` asks the person"),
        "{first}"
    );
    let log = scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["you can allow it when the model asks"])
        .out;
    assert!(
        !log.contains("`escalate` asks"),
        "words for the model alone: {log}"
    );
    let shown = scene.yoi(&["approve"]).ends(0).prints(&[
        "p 1  Bash (sandbox workspace-write, with the network)",
        &format!("    command: {command}\n"),
        "  Bash with the network requires your approval because of the default rule `running a command outside the sandbox or with the network",
        "  its reason, in the words of the model: the task needs it\\nreally\n",
        "`yoi approve p 1` allows this call once",
    ]);
    assert!(
        !shown.out.contains("--scope"),
        "a wider scope is offered: {}",
        shown.out
    );
    scene
        .yoi(&["approve", "p", "1", "--scope=pod"])
        .ends(2)
        .says(&["can be given once only"]);
    signal(pod.host.take().unwrap().pid, Signal::KILL);
    until("the process is gone", || {
        scene.yoi(&["approve", "p", "1"]).code() == Some(69)
    });
    pod.host = Some(Host::start(scene, &[]));
    pod.waits_for(1);
    assert!(!scene.file("reached").exists(), "it ran without an answer");
    scene.yoi(&["approve", "p", "1"]).ends(0);
    pod.done();
    assert_eq!(scene.read("reached"), "reached\n", "it did not run once");
    assert!(!outside.exists(), "more than the network was opened");
    let starts = pod.of_kind("tool_started");
    let to: Vec<_> = starts.iter().map(|start| &start["escalation"]).collect();
    assert_eq!(to, [&Value::Null, &json!("network")]);
    assert_eq!(
        starts[1]["arguments"],
        pod.of_kind("approval_requested")[0]["arguments"]
    );
    assert!(
        pod.results()[1].contains("[ran in the sandbox, with the network]"),
        "{:?}",
        pod.results()
    );
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["! c00000002 runs in the sandbox, with the network"]);
    pod.end();
}

/// Where nobody can be asked, the refusal names the rule, and that rule allows it.
#[test]
fn a_host_is_allowed_by_the_rule_that_the_refusal_names() {
    let scene = Scene::new();
    if !scene
        .yoi(&["doctor"])
        .out
        .contains("namespaces of their own:")
    {
        println!("skipped: no namespaces here");
        return;
    }
    let escalate = json!({ "to": "network", "hosts": ["a.test"], "reason": "to build" });
    let call = json!({ "name": "Bash", "arguments": { "command": "true", "escalate": escalate } });
    let model = scene.script(
        "s.jsonl",
        &[json!({ "calls": [call] }), json!({ "text": "done" })],
    );
    let run = |allow: &[&str]| scene.yoi(&[&["run", "-m", &model, "go"], allow].concat());
    run(&["--allow", "Bash"])
        .ends(3)
        .says(&["start yoi with --allow 'Bash on a.test'"]);
    run(&["--allow", "Bash on a.test"]).ends(0);
    run(&["--allow", "Bash on b.test"]).ends(3);
}

/// "What would leave" is asked about host by host: once, for the pod, or as a rule.
#[test]
fn a_host_is_allowed_once_or_for_the_pod() {
    let scene = Scene::new();
    if !scene
        .yoi(&["doctor"])
        .out
        .contains("namespaces of their own:")
    {
        println!("skipped: no namespaces here");
        return;
    }
    let with = |hosts: &[&str]| {
        let escalate = json!({ "to": "network", "hosts": hosts, "reason": "to build" });
        let command = "echo $HTTPS_PROXY | sed 's/:[0-9a-f]*@/:KEY@/'";
        json!({ "calls": [{ "name": "Bash", "arguments": { "command": command, "escalate": escalate } }] })
    };
    let answers = [
        with(&["a.test"]),
        with(&["a.test", "b.test"]),
        with(&["a.test"]),
        bash("echo proxy $HTTPS_PROXY"),
    ];
    let pod = Pod::start(scene, &answers, &["--allow", "Bash"]);
    let scene = &pod.scene;
    pod.waits_for(1);
    scene.yoi(&["approve"]).ends(0).prints(&[
        "p 1  Bash (sandbox workspace-write, with a way to the hosts)",
        "Bash with a way to a.test requires your approval because of the default rule `letting a command connect to a host",
        "its reason, in the words of the model: to build",
        "Bash on a.test",
    ]);
    scene.yoi(&["approve", "p", "1"]).ends(0);
    pod.waits_for(2);
    let shown = scene.yoi(&["approve"]).ends(0).out;
    assert!(
        shown.contains("a way to a.test") && shown.contains("a way to b.test"),
        "once is once: {shown}"
    );
    scene.yoi(&["approve", "p", "2", "--scope=pod"]).ends(0);
    pod.done();
    let results = pod.results();
    for (result, way) in results.iter().zip(["a.test", "a.test, b.test", "a.test"]) {
        assert!(
            result.contains(&format!("[ran in the sandbox, with a way to {way}]")),
            "{result}"
        );
        assert!(result.contains("http://yoi:KEY@127.0.0.1:808"), "{result}");
    }
    assert!(
        results[3].contains("exit 0") && !results[3].contains("127.0.0.1"),
        "{results:?}"
    );
    assert_eq!(pod.of_kind("approval_requested").len(), 2);
    assert_eq!(
        pod.of_kind("tool_started")[1]["hosts"],
        json!(["a.test", "b.test"])
    );
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["! c00000002 runs in the sandbox, with a way to a.test, b.test"]);
    pod.end();
}

#[test]
fn outside_the_sandbox_git_stays_guarded_and_the_agent_cannot_answer() {
    if !confinable() {
        return;
    }
    let scene = Scene::new();
    let outside = scene.path("outside");
    let yoi = env!("CARGO_BIN_EXE_yoi");
    let state = scene.path("state");
    let outside = outside.display();
    std::fs::create_dir_all(scene.file(".git/hooks")).unwrap();
    let command = format!(
        "echo x >> {outside}; echo '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
         XDG_STATE_HOME={} {yoi} approve p 3; echo code $?",
        state.display()
    );
    let two = [
        escalated(&command, "unconfined"),
        escalated("touch later", "unconfined"),
    ];
    let two = json!({ "calls": [two[0]["calls"][0], two[1]["calls"][0]] });
    let answers = [
        bash(&format!("echo x >> {outside}")),
        escalated(&command, "unconfined"),
        two,
    ];
    let pod = Pod::start(scene, &answers, &["--allow", "Bash"]);
    let scene = &pod.scene;
    pod.waits_for(1);
    scene.yoi(&["approve"]).ends(0).prints(&[
        "Bash (sandbox off)",
        "Bash outside the sandbox requires your approval",
    ]);
    assert!(!scene.path("outside").exists(), "the confined one wrote it");
    scene.yoi(&["approve", "p", "1", "--deny"]).ends(0);
    pod.waits_for(2);
    assert!(!scene.path("outside").exists(), "the denied one ran");
    scene.yoi(&["approve", "p", "2"]).ends(0);
    until("the second one has ended", || pod.results().len() == 3);
    assert_eq!(
        std::fs::read_to_string(scene.path("outside")).unwrap(),
        "x\n"
    );
    assert!(!scene.file(".git/hooks/pre-commit").exists() && !scene.file("later").exists());
    let result = &pod.results()[2];
    for part in [
        "[ran outside the sandbox]",
        "removed .git/hooks/pre-commit",
        "code 3",
    ] {
        assert!(result.contains(part), "{part}: {result}");
    }
    pod.waits_for(3);
    scene.yoi(&["approve", "p", "3", "--deny"]).ends(0);
    pod.done();
    assert!(!scene.file("later").exists());
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["! c00000003 runs outside the sandbox"]);
    pod.end();
}

#[test]
fn what_refuses_a_command_also_refuses_it_beyond_the_sandbox() {
    if !confinable() {
        return;
    }
    let scene = Scene::new();
    scene.config(
        "[features.\"builtin:jobs\"]\nenabled = true\n[features.\"builtin:command-blocklist\"]\nenabled = true\n\n\
         [[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"deny\"\n",
    );
    let escalate = json!({ "to": "unconfined", "reason": "x" });
    let job = json!({ "calls": [{ "name": "JobStart", "arguments": { "command": "echo x > ran", "escalate": escalate } }] });
    let answers = [
        escalated("touch ran", "unconfined"),
        escalated("echo x > ran; rm -rf /", "network"),
        job,
    ];
    let pod = Pod::start(scene, &answers, &[]);
    pod.done();
    let arguments = json!({ "command": "echo x > ran", "escalate": escalate });
    let said = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let versions = vec![protocol::VERSION];
            let client = "own".to_owned();
            let hello = Hello {
                versions,
                client,
                name: None,
                role: Role::Driver,
            };
            let (mut client, _) = Connection::connect(&pod.scene.pod("p"), &hello)
                .await
                .unwrap();
            let arguments = arguments.as_object().unwrap().clone();
            let call = CallTool {
                tool: "Bash".to_owned(),
                arguments,
                cmd_id: Some("own-1".to_owned()),
            };
            format!("{:?}", client.ask(&call).await)
        });
    assert!(said.contains("no tool `Bash` for clients"), "{said}");
    let results = pod.results();
    let words = [
        "is refused by the rule `deny Bash touch`",
        "rm",
        "/escalate: unknown field",
    ];
    for (result, part) in results.iter().zip(words) {
        assert!(result.contains(part), "{part}: {result}");
    }
    assert_eq!(
        (
            results.len(),
            pod.of_kind("approval_requested").len(),
            pod.of_kind("tool_started").len()
        ),
        (3, 0, 0)
    );
    assert!(!pod.scene.file("ran").exists());
    pod.end();
}

#[test]
fn an_answer_about_another_sandbox_is_void() {
    if !confinable() {
        return;
    }
    let mut pod = Pod::start(Scene::new(), &[escalated("touch ran", "network")], &[]);
    pod.waits_for(1);
    pod.host.take().unwrap().end(Signal::TERM);
    pod.host = Some(Host::start(
        &pod.scene,
        &["--sandbox", "off", "--allow", "Bash"],
    ));
    pod.waits_for(1);
    pod.scene
        .yoi(&["approve", "p", "1"])
        .ends(1)
        .says(&["approval 1 is void", "the sandbox"]);
    pod.done();
    assert!(!pod.scene.file("ran").exists());
    pod.end();
}

#[test]
fn without_a_person_it_is_refused_and_without_a_sandbox_it_changes_nothing() {
    let scene = Scene::new();
    let answers = [
        bash("exec 3<>/dev/tcp/127.0.0.1/1"),
        escalated("touch ran", "network"),
        json!({ "text": "done" }),
    ];
    let model = scene.script("s.jsonl", &answers);
    let result = |flags: &[&str], pod: &str| {
        scene.yoi(
            &[
                &["run", "--allow", "Bash", "--pod", pod, "-m", &model, "go"],
                flags,
            ]
            .concat(),
        );
        let ends = scene
            .records(pod)
            .into_iter()
            .filter(|record| record["k"] == "tool_finished");
        let [plain, with] = &ends
            .map(|end| end["outcome"].to_string())
            .collect::<Vec<_>>()[..]
        else {
            panic!()
        };
        assert!(!plain.contains("escalate"), "nobody can be asked: {plain}");
        with.clone()
    };
    if confinable() {
        let refused = result(&[], "alone");
        for part in [
            "Bash with the network requires approval",
            "only a person can allow",
            "`yoi start`",
        ] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        let refused = result(&["--read-only"], "reads");
        assert!(
            refused.contains("in read-only mode: deny") && refused.contains("without --read-only"),
            "{refused}"
        );
        assert!(!scene.file("ran").exists());
    }
    let ran = result(&["--sandbox", "off"], "off");
    assert!(
        ran.contains("exit 0") && ran.contains("`escalate` changed nothing: there is no sandbox"),
        "{ran}"
    );
    assert!(scene.file("ran").exists());
    let started = scene
        .records("off")
        .into_iter()
        .find(|record| record["k"] == "tool_started")
        .unwrap();
    assert_eq!(started["escalation"], Value::Null);
}
