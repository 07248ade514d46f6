//! Turns of a pod that stays, as its clients see them: `yoi send --wait`, `yoi run` as a client, and `yoi undo`.

use crate::endpoint::{Endpoint, Reply, delta, text};
use crate::scene::{Scene, fifo, finish, reached, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex};

/// A command that says that it runs, and waits at a gate.
fn waiting() -> Value {
    let command = "echo $$ > started; read line < gate; echo through";
    json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] })
}

/// A pod `p` of this test that stays until it is dropped.
struct Stays {
    scene: Scene,
    host: Option<Child>,
}

impl Stays {
    fn start(answers: &[Value]) -> Self {
        let scene = Scene::new();
        fifo(&scene.file("started"));
        fifo(&scene.file("gate"));
        let model = scene.script("stays.jsonl", answers);
        Self::with(scene, &model)
    }

    fn with(scene: Scene, model: &str) -> Self {
        let mut stays = Self { scene, host: None };
        stays.begin(model);
        stays
    }

    fn begin(&mut self, model: &str) {
        self.host = Some(self.client(&["start", "p", "--foreground", "--quiet", "-m", model]));
        // It waits until the pod answers.
        while !self.scene.pod("p").join("sock").exists() {
            std::thread::yield_now();
        }
    }

    fn client(&self, args: &[&str]) -> Child {
        self.scene.command(args).spawn().unwrap()
    }

    fn release(&self) {
        fs::write(self.scene.file("gate"), "on\n").unwrap();
    }

    fn status(&self) -> Value {
        self.scene.yoi(&["status", "p", "--json"]).ends(0).json()
    }

    /// Waits until this many inputs wait.
    fn queued(&self, count: usize) {
        while self.status()["queued"].as_array().unwrap().len() != count {}
    }

    fn stop(&mut self) {
        self.scene
            .yoi(&["stop", "p"])
            .ends(0)
            .prints(&["p is stopped"]);
        finish(self.host.take().unwrap()).ends(0);
        assert!(!self.scene.pod("p").join("sock").exists());
        self.scene.sound("p");
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        if let Some(mut host) = self.host.take() {
            drop(host.kill().and_then(|()| host.wait()));
        }
    }
}

#[test]
fn sent_inputs_are_answered_one_after_the_other() {
    let mut stays = Stays::start(&[
        waiting(),
        json!({ "text": "one" }),
        json!({ "text": "two" }),
        json!({ "text": "three" }),
    ]);
    let first = stays.client(&["send", "p", "--wait", "first"]);
    reached(&stays.scene.file("started"));
    assert_eq!(stays.scene.yoi(&["send", "p", "second"]).ends(0).out, "2\n");
    assert_eq!(
        stays.status()["queued"],
        json!([{ "input": 2, "mode": "queue", "text": "second" }])
    );
    stays.release();
    assert_eq!(finish(first).ends(0).out, "one\n");
    stays
        .scene
        .yoi(&["send", "p", "--wait", "--json", "third"])
        .ends(0);
    let ends: Vec<_> = stays
        .scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == "turn_finished")
        .collect();
    assert_eq!(ends.len(), 3, "one input, one turn");
    assert_eq!(stays.status()["state"], "idle");
    stays.stop();
}

#[test]
fn a_run_is_a_client_of_a_live_pod() {
    let mut stays = Stays::start(&[
        waiting(),
        json!({ "text": "one" }),
        json!({ "text": "two" }),
    ]);
    let run = stays.client(&["run", "--pod", "p", "go"]);
    reached(&stays.scene.file("started"));
    let other = stays.client(&["run", "-c", "--pod", "p", "x"]);
    finish(other).ends(2);
    let other = stays.client(&["run", "--pod", "p", "--json", "and then"]);
    stays.queued(1);
    stays.release();
    let run = finish(run)
        .ends(0)
        .says(&["• Bash echo", "2 steps", "p (yoi log p)"]);
    assert_eq!(run.out, "one\n");
    run.lines_with("model:", 0);
    run.lines_with("the prompt waits", 0);
    let other = finish(other).ends(0);
    let records = other.lines();
    assert_eq!(
        (&records[0]["k"], &records[0]["input"]),
        (&json!("input_queued"), &json!(2))
    );
    let result = records.last().unwrap();
    assert_eq!(
        (&result["k"], &result["answer"], &result["pod"]),
        (&json!("result"), &json!("two"), &json!("p"))
    );
    // The lines of the journal from the input to the end of its turn.
    let (lines, _) = other.out.trim_end().rsplit_once('\n').unwrap();
    let journal = fs::read_to_string(stays.scene.log_file("p")).unwrap();
    let (_, last) = lines.rsplit_once('\n').unwrap();
    assert!(
        journal.contains(&format!("\n{lines}\n")) && last.contains(r#""k":"turn_finished""#),
        "{lines}"
    );
    stays.stop();
}

#[test]
fn flags_that_make_a_pod_are_refused_and_limits_are_kept() {
    let mut stays = Stays::start(&[
        waiting(),
        json!({ "text": "through" }),
        json!({ "text": "{\"n\":1}" }),
    ]);
    let flags = ["-m", "offline", "--read-only", "--allow", "Bash"];
    let refused = stays
        .scene
        .yoi(&[&["run", "--pod", "p"][..], &flags, &["x"]].concat())
        .ends(2);
    refused.says(&[
        "p is running",
        "--model, --read-only and --allow apply only when a pod starts",
        "yoi stop p",
    ]);
    fs::write(
        stays.scene.path("schema.json"),
        "{\"type\":\"object\",\"required\":[\"n\"]}",
    )
    .unwrap();
    let schema = stays.scene.path("schema.json").display().to_string();
    // `--max-wall` was refused, although each limit of an input is sent.
    let run = ["run", "--pod", "p", "--max-steps", "1", "--max-cost", "5"];
    let more = ["--max-tokens", "90000", "--max-wall", "3600", "go"];
    let limited = stays.client(&[&run[..], &more].concat());
    reached(&stays.scene.file("started"));
    stays.release();
    let help = "`yoi resume p` continues the turn, or raise --max-steps";
    finish(limited)
        .ends(4)
        .says(&["the step limit was reached", help]);
    let records = stays.scene.records("p");
    let limits = records.iter().filter_map(|record| record.get("limits"));
    let set = json!({ "max_steps": 1, "max_cost": 5_000_000_000_u64, "max_tokens": 90_000, "max_wall_s": 3600 });
    assert_eq!(limits.collect::<Vec<_>>(), [&set]);
    // The limit holds the pod until a resume.
    assert_eq!(stays.status()["held"]["cause"], "budget");
    stays
        .scene
        .yoi(&["resume", "p"])
        .ends(0)
        .prints(&["p is resumed"]);
    while stays.status()["last_outcome"]["outcome"] != "done" {}
    assert_eq!(
        (&stays.status()["turns"], &stays.status()["requests"]),
        (&json!(2), &json!(2))
    );
    let fits = stays
        .scene
        .yoi(&["run", "--pod", "p", "--output-schema", &schema, "give n"])
        .ends(0);
    assert_eq!(fits.out, "{\"n\":1}\n");
    stays.stop();
}

// What the planner left, no later input continues: `continue` is no request that it understands.
#[test]
fn a_limit_of_the_planner_in_a_live_pod_suggests_no_continue() {
    let mut stays = Stays::with(Scene::new(), "offline");
    let limited = stays
        .scene
        .yoi(&["run", "--pod", "p", "--max-steps", "1", "list the files"])
        .ends(4);
    limited.says(&["help: `yoi resume p` continues the turn, or raise --max-steps"]);
    stays.scene.yoi(&["resume", "p"]).ends(0);
    stays
        .scene
        .yoi(&["run", "--pod", "p", "list the files"])
        .ends(0);
    stays.stop();
}

#[test]
fn the_first_signal_cancels_the_turn_of_the_client_alone() {
    let mut stays = Stays::start(&[
        waiting(),
        json!({ "text": "one" }),
        json!({ "text": "two" }),
    ]);
    let first = stays.client(&["run", "--pod", "p", "first"]);
    reached(&stays.scene.file("started"));
    let second = stays.client(&["run", "--pod", "p", "second"]);
    stays.queued(1);
    // It waits: it is withdrawn, and the running turn goes on.
    signal(second.id(), Signal::INT);
    finish(second)
        .ends(130)
        .says(&["the prompt was withdrawn before p started it"]);
    assert_eq!(stays.status()["state"], "working");
    signal(first.id(), Signal::INT);
    finish(first)
        .ends(130)
        .says(&["cancelled", "continue with `yoi send p"]);
    assert_eq!(
        stays.scene.yoi(&["run", "--pod", "p", "go on"]).ends(0).out,
        "one\n"
    );
    stays.stop();
}

#[test]
fn the_time_limit_of_a_client_cancels_its_turn() {
    let mut stays = Stays::start(&[waiting(), json!({ "text": "one" })]);
    let run = stays.client(&["run", "--pod", "p", "--timeout", "1s", "first"]);
    reached(&stays.scene.file("started"));
    finish(run).ends(4).says(&["the time limit was reached"]);
    stays.stop();
}

#[test]
fn clients_of_a_killed_pod_are_told_that_their_inputs_are_kept() {
    let mut stays = Stays::start(&[waiting(), json!({ "text": "one" })]);
    let run = stays.client(&["run", "--pod", "p", "first"]);
    reached(&stays.scene.file("started"));
    let send = stays.client(&["send", "p", "--wait", "second"]);
    stays.queued(1);
    let mut host = stays.host.take().unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    finish(run)
        .ends(69)
        .says(&["the process of p ended", "input 1 is kept", "yoi start p"]);
    finish(send)
        .ends(69)
        .says(&["the process of p ended", "input 2 is kept"]);
    stays.scene.yoi(&["ls"]).ends(0).prints(&["crashed"]);
    stays
        .scene
        .yoi(&["status", "p"])
        .ends(0)
        .prints(&["crashed", "1 input waits"]);
    // The command of the killed host ends, too: here without namespaces, and with them by the kernel, so nobody may read.
    let gate = fs::File::options()
        .read(true)
        .write(true)
        .open(stays.scene.file("gate"))
        .unwrap();
    std::io::Write::write_all(&mut &gate, b"on\n").unwrap();
}

#[test]
fn a_paused_pod_keeps_its_inputs() {
    let mut stays = Stays::start(&[json!({ "text": "one" }), json!({ "text": "two" })]);
    stays
        .scene
        .yoi(&["pause", "p"])
        .ends(0)
        .prints(&["p is held; `yoi resume p` continues it"]);
    let held = "p is held: paused by `yoi pause`; the input waits until `yoi resume p`";
    stays
        .scene
        .yoi(&["send", "p", "first"])
        .ends(0)
        .says(&[held]);
    stays.scene.yoi(&["status", "p"]).ends(0).prints(&[
        "state     held",
        "`yoi resume p` continues",
        "1 input waits",
    ]);
    stays.scene.yoi(&["ls"]).ends(0).prints(&["held", "paused"]);
    let run = stays.client(&["run", "--pod", "p", "second"]);
    stays.queued(2);
    stays
        .scene
        .yoi(&["resume", "p"])
        .ends(0)
        .prints(&["p is resumed"]);
    assert_eq!(finish(run).ends(0).says(&[held]).out, "two\n");
    stays
        .scene
        .yoi(&["cancel", "p"])
        .ends(0)
        .prints(&["p has no running turn"]);
    stays.stop();
}

#[test]
fn files_are_undone_between_turns() {
    let write = json!({ "calls": [{ "name": "Write", "arguments": { "path": "new.txt", "content": "x" } }] });
    let mut stays = Stays::start(&[
        write,
        waiting(),
        json!({ "text": "one" }),
        json!({ "text": "two" }),
    ]);
    let run = stays.client(&["run", "--pod", "p", "go"]);
    reached(&stays.scene.file("started"));
    stays.scene.yoi(&["diff", "p"]).ends(0).prints(&["new.txt"]);
    stays
        .scene
        .yoi(&["undo", "p"])
        .ends(75)
        .says(&["p is working", "yoi cancel p"]);
    assert!(stays.scene.file("new.txt").exists());
    stays.release();
    finish(run).ends(0);
    stays
        .scene
        .yoi(&["undo", "p"])
        .ends(0)
        .prints(&["removed: ", "new.txt"]);
    assert!(!stays.scene.file("new.txt").exists());
    stays
        .scene
        .yoi(&["undo", "p"])
        .ends(0)
        .prints(&["p: nothing to undo"]);
    assert_eq!(
        stays.scene.yoi(&["run", "--pod", "p", "again"]).ends(0).out,
        "two\n"
    );
    let is_note = |record: &Value| {
        record["k"] == "system_item" && record.to_string().contains("new.txt (removed)")
    };
    assert_eq!(
        stays
            .scene
            .records("p")
            .iter()
            .filter(|record| is_note(record))
            .count(),
        1,
        "the model was told"
    );
    stays.stop();
}

// Five attempts in 7 s ended the turn of an unattended pod: it was idle, and `yoi resume` said that it was not held.
#[test]
fn a_pod_that_waits_for_its_model_says_so_and_a_resume_tries_at_once() {
    let mut stays = Stays::start(&[json!({ "error": { "message": "no route to the model" } })]);
    stays.scene.yoi(&["send", "p", "first"]).ends(0);
    while stays.status()["model_wait"].is_null() {}
    let status = stays.status();
    let wait = &status["model_wait"];
    assert_eq!(
        (&status["state"], &wait["reason"]),
        (&json!("working"), &json!("no route to the model"))
    );
    assert!(
        (1..=30).contains(&wait["retry_in_s"].as_u64().unwrap()) && wait["since_ms"].is_u64(),
        "{status}"
    );
    let shown = "for the model: no route to the model; the next attempt is in ";
    stays.scene.yoi(&["status", "p"]).ends(0).prints(&[
        "state     waiting for the model (turn 1, step 1)",
        &format!("waiting   {shown}"),
        "; no answer for ",
    ]);
    stays
        .scene
        .yoi(&["ls"])
        .ends(0)
        .prints(&["waiting", &format!("waiting {shown}")]);
    assert_eq!(
        stays.scene.yoi(&["ls", "--json"]).ends(0).json()[0]["model_wait"]["reason"],
        "no route to the model"
    );
    stays
        .scene
        .yoi(&["resume", "p"])
        .ends(0)
        .prints(&["p asks the model again now"]);
    while stays.status()["model_wait"]["retry_in_s"]
        .as_u64()
        .is_none_or(|left| left <= 30)
    {}
    stays.scene.yoi(&["pause", "p"]).ends(0);
    while stays.status()["state"] != "held" {}
    stays.scene.yoi(&["cancel", "p"]).ends(0);
    while stays.status()["model_wait"].is_object() {}
    stays.stop();
}

// A server that was away for a night: each kind of failure, a kill of the pod in the wait, and the answer at last.
#[test]
fn a_pod_outlives_its_provider() {
    let place = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let scene = Scene::new();
    scene.config(&format!(
        "[providers.fake]\napi = \"openai-chat\"\nbase_url = \"http://{place}/v1\"\nattempts = 1\n"
    ));
    let mut stays = Stays::with(scene, "fake/one");
    stays.scene.yoi(&["send", "p", "go"]).ends(0);
    // Waits until the newest attempt failed for this reason.
    let failed = |stays: &Stays, why: &str| {
        while !stays.status()["model_wait"]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains(why))
        {}
        let status = stays.status();
        assert_eq!(
            (&status["state"], &status["turns"], &status["requests"]),
            (&json!("working"), &json!(1), &json!(1))
        );
        stays
            .scene
            .yoi(&["ls"])
            .ends(0)
            .prints(&["waiting for the model: ", why]);
        stays
            .scene
            .yoi(&["resume", "p"])
            .ends(0)
            .prints(&["p asks the model again now"]);
    };
    let says = |line: &'static str| {
        Reply::Status(
            line,
            "",
            json!({ "error": { "message": line } }).to_string(),
        )
    };
    let now = Arc::new(Mutex::new("529 Overloaded"));
    let served = now.clone();
    while !stays.status()["model_wait"].is_object() {}
    let endpoint = Endpoint::listen(TcpListener::bind(place).unwrap(), move |_, _| match *served
        .lock()
        .unwrap()
    {
        "cut" => Reply::Cut(vec![delta(&json!({ "content": "half" }))]),
        "well" => text("here again"),
        line => says(line),
    });
    failed(&stays, "refused");
    for (why, next) in [
        ("529", "429 Too Many Requests"),
        ("429", "503 Unavailable"),
        ("503", "cut"),
    ] {
        while !stays.status()["model_wait"]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains(why))
        {}
        *now.lock().unwrap() = next;
        failed(&stays, why);
    }
    let cut = "lost during the answer";
    while !stays.status()["model_wait"]["reason"]
        .as_str()
        .is_some_and(|reason| reason.contains(cut))
    {}
    signal(stays.host.as_ref().unwrap().id(), Signal::KILL);
    finish(stays.host.take().unwrap());
    *now.lock().unwrap() = "well";
    fs::remove_file(stays.scene.pod("p").join("sock")).ok();
    stays.begin("fake/one");
    while stays.status()["last_outcome"]["outcome"] != "done" {}
    assert_eq!(stays.status()["queued"], json!([]));
    let asked: Vec<Value> = endpoint
        .requests()
        .into_iter()
        .map(|request| request.body["messages"][1]["content"].clone())
        .collect();
    // The last one also tells of the kill.
    let (last, before) = asked.split_last().unwrap();
    assert!(
        before.len() == 4 && before.iter().all(|text| *text == before[0]),
        "{asked:#?}"
    );
    assert!(
        last.as_str()
            .unwrap()
            .starts_with(before[0].as_str().unwrap()),
        "{asked:#?}"
    );
    stays.stop();
}

/// A pod `p` that a run serves, which waits at a gate; further runs of it get these answers.
fn served(answers: &[&str]) -> (Stays, Child) {
    let (stays, first, _) = served_by(&["run", "--pod", "p", "first"], answers);
    (stays, first)
}

/// The same with this run, and the process that waits.
fn served_by(run: &[&str], answers: &[&str]) -> (Stays, Child, PathBuf) {
    let scene = Scene::new();
    fifo(&scene.file("started"));
    fifo(&scene.file("gate"));
    let texts = answers.iter().map(|text| json!({ "text": text }));
    let model = scene.script(
        "served.jsonl",
        &[waiting()].into_iter().chain(texts).collect::<Vec<_>>(),
    );
    scene.config(&format!("model = \"{model}\"\n"));
    let first = scene.command(run).spawn().unwrap();
    let command = reached(&scene.file("started"));
    (
        Stays { scene, host: None },
        first,
        Path::new("/proc").join(command.trim()),
    )
}

/// How many inputs the pod took, and how many of its turns ended.
fn taken(scene: &Scene) -> (usize, usize) {
    let records = scene.records("p");
    let of = |kind: &str| records.iter().filter(|record| record["k"] == kind).count();
    (of("input_consumed"), of("turn_finished"))
}

// Scripts that started several runs of one pod had 24 of 48 inputs run twice: the serving run ended, the others were told
// of a failure although their inputs were kept, and were started again.
#[test]
fn runs_beside_a_run_get_their_answers() {
    let (stays, first) = served(&["one", "two", "three", "four"]);
    let others: Vec<Child> = ["second", "third", "fourth"]
        .into_iter()
        .enumerate()
        .map(|(at, prompt)| {
            let run = stays.client(&["run", "--pod", "p", prompt]);
            stays.queued(at + 1);
            run
        })
        .collect();
    stays.release();
    assert_eq!(finish(first).ends(0).out, "one\n");
    let answers: Vec<String> = others
        .into_iter()
        .map(|run| finish(run).ends(0).out)
        .collect();
    assert_eq!(answers, ["two\n", "three\n", "four\n"]);
    assert_eq!(taken(&stays.scene), (4, 4), "each input ran once");
    stays.scene.sound("p");
}

// The same with nothing to keep them in order: each run hosts the pod, or joins the one that does.
#[test]
fn of_many_runs_at_once_each_has_one_answer() {
    for keyed in [false, true] {
        let scene = Scene::new();
        scene.config("model = \"offline\"\n");
        let prompts: Vec<String> = (0..12)
            .map(|n| format!("find files named word{n}"))
            .collect();
        let keys: Vec<String> = (0..12).map(|n| format!("k{}", n / 2)).collect();
        let run = |at: usize| {
            let prompt = if keyed {
                &prompts[at / 2]
            } else {
                &prompts[at]
            };
            let key = ["--key", &keys[at]];
            let key = if keyed { &key[..] } else { &[] };
            scene
                .command(&[&["run", "--pod", "p"], key, &[prompt.as_str()]].concat())
                .spawn()
                .unwrap()
        };
        let runs: Vec<Child> = (0..prompts.len()).map(run).collect();
        for (at, run) in runs.into_iter().enumerate() {
            assert!(!finish(run).ends(0).out.is_empty(), "{at}");
        }
        let inputs = if keyed { 6 } else { 12 };
        // Those that wait when a run opens the pod share its first turn.
        let (took, turns) = taken(&scene);
        assert!(took == inputs && turns <= inputs, "{keyed}: {took} {turns}");
        scene.sound("p");
    }
}

#[test]
fn a_prompt_with_a_key_runs_once() {
    let (mut stays, first) = served(&["one", "two"]);
    let keyed = ["run", "--pod", "p", "--key", "k1", "second"];
    let others = [stays.client(&keyed), stays.client(&keyed)];
    stays.queued(1);
    stays.release();
    assert_eq!(finish(first).ends(0).out, "one\n");
    for run in others {
        assert_eq!(finish(run).ends(0).out, "two\n", "beside another");
    }
    let scene = &stays.scene;
    assert_eq!(
        scene.yoi(&keyed).ends(0).out,
        "two\n",
        "when the pod has ended"
    );
    let json = scene.yoi(&[&keyed[..], &["--json"]].concat()).ends(0);
    assert_eq!(json.lines().last().unwrap()["answer"], "two");
    assert_eq!(taken(scene), (2, 2));
    scene
        .yoi(&["run", "--key", "k1", "x"])
        .ends(2)
        .says(&["--pod"]);
    stays.begin("offline");
    assert_eq!(
        stays
            .scene
            .yoi(&["send", "p", "--wait", "--key", "k1", "second"])
            .ends(0)
            .out,
        "two\n",
        "in a live pod"
    );
    assert_eq!(stays.scene.yoi(&keyed).ends(0).out, "two\n");
    stays.stop();
}

#[test]
fn a_run_goes_on_with_the_pod_of_a_run_that_was_interrupted() {
    let (stays, first) = served(&["one"]);
    let second = stays.client(&["run", "--pod", "p", "second"]);
    stays.queued(1);
    signal(first.id(), Signal::INT);
    finish(first).ends(130);
    assert_eq!(finish(second).ends(0).out, "one\n");
    assert_eq!(taken(&stays.scene), (2, 2));
    stays.scene.sound("p");
}

// The same with a kill: the joined runs were told of a failure although their inputs were kept, and were started again.
#[test]
fn runs_go_on_with_the_pod_of_a_run_that_was_killed() {
    for joined in [&[][..], &["--key", "k"]] {
        let (stays, first, command) = served_by(&["run", "--pod", "p", "first"], &["one", "two"]);
        let run = |at: usize, prompt: &str| {
            let run = stays.client(&[&["run", "--pod", "p"], joined, &[prompt]].concat());
            stays.queued(at);
            run
        };
        // With a key they wait for one input.
        let others = [
            run(1, "second"),
            run(if joined.is_empty() { 2 } else { 1 }, "third"),
        ];
        signal(first.id(), Signal::KILL);
        finish(first);
        let mut answers = others.map(|run| finish(run).ends(0).out);
        answers.sort();
        let (answer, turns) = if joined.is_empty() {
            ("two\n", 3)
        } else {
            ("one\n", 2)
        };
        assert_eq!(answers, ["one\n", answer], "{joined:?}");
        assert_eq!(taken(&stays.scene), (turns, turns), "{joined:?}");
        // Nobody has to have waited for it.
        let runs = fs::read(command.join("cmdline")).is_ok_and(|line| !line.is_empty());
        assert!(!runs, "the commands of the killed run have ended");
        stays.scene.sound("p");
    }
}

// A script that repeats a killed run with its key was told "interrupted" for ever.
#[test]
fn a_key_goes_on_with_the_turn_that_a_kill_cut_off() {
    let keyed = ["run", "--pod", "p", "--key", "k", "first"];
    let killed = |answers: &[&str]| {
        let (stays, other, _) = served_by(&keyed, answers);
        signal(other.id(), Signal::KILL);
        finish(other);
        stays
    };
    let stays = killed(&["one"]);
    for when in ["first", "again"] {
        assert_eq!(stays.scene.yoi(&keyed).ends(0).out, "one\n", "{when}");
        assert_eq!(taken(&stays.scene), (1, 2), "{when}");
    }
    stays.scene.sound("p");

    let stays = killed(&["one"]);
    let both = [stays.client(&keyed), stays.client(&keyed)];
    assert_eq!(
        both.map(|run| finish(run).ends(0).out),
        ["one\n", "one\n"],
        "two at once"
    );
    assert_eq!(taken(&stays.scene), (1, 2), "two at once");

    let stays = killed(&["one", "two"]);
    assert_eq!(
        stays.scene.yoi(&["run", "--pod", "p", "other"]).ends(0).out,
        "one\n"
    );
    assert_eq!(
        stays.scene.yoi(&keyed).ends(0).out,
        "one\n",
        "another run went on with it"
    );
    assert_eq!(taken(&stays.scene), (2, 2));

    let mut stays = killed(&["one"]);
    fs::remove_file(stays.scene.pod("p").join("sock")).unwrap();
    stays.begin(&format!(
        "scripted:{}",
        stays.scene.path("served.jsonl").display()
    ));
    let send = ["send", "p", "--wait", "--key", "k", "first"];
    assert_eq!(
        stays.scene.yoi(&send).ends(0).out,
        "one\n",
        "in a pod that stays"
    );
    assert_eq!(
        stays.scene.yoi(&keyed).ends(0).out,
        "one\n",
        "in a pod that stays"
    );
    assert_eq!(taken(&stays.scene), (1, 2));
    stays.stop();
}
