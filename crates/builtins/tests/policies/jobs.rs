//! `jobs`: a command that goes on across turns, and an end that is told once, whatever is killed.

use crate::rig::settings;
use authority::{Confinement, EnvPolicy, GitGuard, SandboxMode, Spawner};
use builtins::jobs::{ID, NOTIFY, TELLS, TOLD};
use builtins::policies;
use llm_worker::{Item, ResultStatus};
use pod::control::{Activity, HostMode, NewInput, PodStatus};
use pod::feature::{FeatureModule, HostCapability};
use pod::hook::ToolShape;
use pod::record::{JobEndKind, Record};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::{
    ENOSPC, Fault, FeatureHost, LivePod, ModelScript, Over, PodUnderTest, ScriptedAnswer, Shared,
};

/// A command that ends when the file is there.
const WAITS: &str = "echo one; while ! [ -e done ]; do sleep 0.01; done; echo two; exit 3";

fn module(keys: Value) -> Arc<dyn FeatureModule> {
    let now: builtins::Now = Arc::new(|| std::time::UNIX_EPOCH);
    policies::with_settings(
        &BTreeMap::from([(ID, settings(keys))]),
        |id| *id == ID,
        &now,
    )
    .unwrap()
    .remove(0)
}

fn stays(keys: Value, answers: &[ScriptedAnswer]) -> PodUnderTest {
    let mut pod = PodUnderTest::new(
        &ambient::claim(),
        ModelScript::new(answers.to_vec()),
        Vec::new(),
    );
    pod.mode = HostMode::Stay { missing: None };
    let confinement = Confinement {
        mode: SandboxMode::Off,
        read: Vec::new(),
        write: Vec::new(),
    };
    let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
    pod.spawner =
        Some(Spawner::new(&ambient::claim(), confinement, env, "s-1/1".to_owned()).unwrap());
    let grants = vec![
        HostCapability::tool("*"),
        HostCapability::SESSION_STATE,
        HostCapability::READ_WORKSPACE,
        HostCapability::ANY_PROGRAM,
        HostCapability::EmitUserAlert,
        NOTIFY,
        TELLS,
    ];
    pod.features = vec![(module(keys), grants)];
    pod
}

fn live(pod: PodUnderTest) -> LivePod {
    LivePod::open(pod).unwrap_or_else(|over| panic!("not opened: {:?}", over.failure()))
}

fn call(tool: &str, arguments: Value) -> ScriptedAnswer {
    ScriptedAnswer::calls(&[(tool, &arguments.to_string())])
}

fn text(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::text(text)
}

/// A turn; none if the pod is dead.
fn turn(live: &LivePod, number: u64) -> Option<()> {
    let client = live.client();
    live.ask(client.send(NewInput {
        text: format!("go {number}"),
        ..NewInput::default()
    }))
    .ok()?;
    live.try_until(|status| status.turns >= number && status.activity == Activity::Idle)
        .map(drop)
}

/// Whether no turn runs and none is due.
fn is_quiet(live: &LivePod, status: &PodStatus) -> bool {
    status.activity == Activity::Idle
        && status.queued.is_empty()
        && live.folded(status.folded).notices.is_empty()
}

fn notices(pod: &PodUnderTest) -> Vec<(Option<String>, String)> {
    let text = |(_, record)| match record {
        Record::NotificationQueued(queued) => Some((queued.key, queued.text)),
        _ => None,
    };
    pod.records().into_iter().filter_map(text).collect()
}

/// What tools answered.
fn results(pod: &PodUnderTest) -> Vec<String> {
    let result = |item| match item {
        Item::ToolResult { outcome, .. } => {
            Some(format!("{}|{}", outcome.summary, outcome.content))
        }
        _ => None,
    };
    pod.restored()
        .items
        .into_iter()
        .filter_map(result)
        .collect()
}

fn finish(pod: &PodUnderTest) {
    std::fs::write(pod.project.join("done"), "").unwrap();
}

#[test]
fn a_job_goes_on_across_turns_and_its_end_wakes_once() {
    let answers = [
        call("JobStart", json!({"command": WAITS})),
        text("started"),
        call("JobTail", json!({"job": 1})),
        call("JobTail", json!({})),
        text("read"),
        text("told"),
        text("unused"),
    ];
    let first = live(stays(json!({}), &answers));
    turn(&first, 1).unwrap();
    turn(&first, 2).unwrap();
    finish(&first.pod);
    first.until(|status| status.turns == 3 && is_quiet(&first, status));
    let over = first.close();
    let [start, tail, list] = &results(&over.pod)[..] else {
        panic!("{:?}", results(&over.pod))
    };
    assert_eq!(start, "job 1 started|");
    assert!(tail.starts_with("job 1 runs, "), "{tail}");
    assert_eq!(*list, format!("1 job|job 1 runs: {WAITS}"));
    let [(key, notice)] = &notices(&over.pod)[..] else {
        panic!("{:?}", notices(&over.pod))
    };
    assert_eq!(key.as_deref(), Some("job-1"));
    assert!(
        notice.starts_with("job 1 ended after ") && notice.contains(": exit 3.\n"),
        "{notice}"
    );
    assert!(
        notice.ends_with(&format!("Command: {WAITS}\nLast output:\none\ntwo")),
        "{notice}"
    );
    // The next start tells nothing again.
    let again = live(over.pod);
    turn(&again, 4).unwrap();
    again.until(|status| is_quiet(&again, status));
    assert_eq!(notices(&again.close().pod).len(), 1);
}

// A secret in a job's output was in the journal twice: in the notice of its end, and as the model read it.
#[test]
fn what_redact_replaces_is_in_no_text_of_a_feature() {
    let prints =
        "printf 'first\\nsk-abc\\033[1m123 and sk-def456\\n'; printf ' 1%%\\r 2%%\\r99%%\\n'";
    let answers = [
        call("JobStart", json!({"command": prints})),
        text("started"),
        text("told"),
        text("unused"),
    ];
    let mut pod = stays(json!({}), &answers);
    let redact = builtins::redact::ID;
    let now: builtins::Now = Arc::new(|| std::time::UNIX_EPOCH);
    let all = BTreeMap::from([(
        redact.clone(),
        settings(json!({"patterns": ["sk-[a-z]+[0-9]+"]})),
    )]);
    let module = policies::with_settings(&all, |id| *id == redact, &now)
        .unwrap()
        .remove(0);
    pod.features.push((
        module,
        vec![
            HostCapability::hook::<ToolShape>(),
            HostCapability::ANY_RESULT,
        ],
    ));
    let live = live(pod);
    turn(&live, 1).unwrap();
    live.until(|status| status.turns == 2 && is_quiet(&live, status));
    let over = live.close();
    let [(_, notice)] = &notices(&over.pod)[..] else {
        panic!("{:?}", notices(&over.pod))
    };
    assert!(
        notice.ends_with("first\n[redacted] and [redacted]\n99%"),
        "{notice:?}"
    );
    for (_, record) in over.pod.records() {
        let written = format!("{record:?}");
        let own = written.contains("ToolStarted") || written.contains("ToolCall");
        assert!(
            own || !written.contains("def456") && !written.contains("abc123"),
            "{written}"
        );
    }
}

#[test]
fn a_stopped_job_is_told_too_and_a_stop_of_the_pod_at_the_next_start() {
    let answers = [
        call("JobStart", json!({"command": "exec sleep 300"})),
        call("JobStart", json!({"command": "exec sleep 301"})),
        call("JobStop", json!({"job": 1})),
        text("stopped"),
        text("told"),
        text("told"),
    ];
    let first = live(stays(json!({}), &answers));
    turn(&first, 1).unwrap();
    first.until(|status| notices(&first.pod).len() == 1 && is_quiet(&first, status));
    let over = first.close();
    assert!(
        results(&over.pod)[2].starts_with("job 1 ended after "),
        "{:?}",
        results(&over.pod)
    );
    assert_eq!(notices(&over.pod).len(), 1);
    assert_eq!(
        over.state().jobs[&2].ended.as_ref().map(|end| end.how),
        Some(JobEndKind::PodStopped)
    );
    let again = live(over.pod);
    again.until(|status| notices(&again.pod).len() == 2 && is_quiet(&again, status));
    let all = notices(&again.close().pod);
    assert_eq!(all.len(), 2, "{all:?}");
    let told = "stopped because the pod stopped.\nCommand: exec sleep 301\nNo output is kept.";
    assert!(
        all[0].1.contains("stopped on request") && all[1].1.ends_with(told),
        "{all:?}"
    );
}

#[test]
fn what_cannot_be_started_is_refused_with_the_next_step() {
    let answers = [
        call("JobStart", json!({"command": " "})),
        call("JobStart", json!({"command": "true", "timeout_min": 121})),
        call("JobStart", json!({"command": "exec sleep 300"})),
        call("JobStart", json!({"command": "exec sleep 300"})),
        call("JobTail", json!({"job": 9})),
        call("JobStop", json!({"job": 9})),
        text("done"),
    ];
    let live = live(stays(json!({"max_jobs": 1, "max_hours": 2}), &answers));
    turn(&live, 1).unwrap();
    let expected = [
        "the command is empty|",
        "timeout_min must be 1 to 120|",
        "job 1 started|",
        "1 job runs already; stop it first|",
        "there is no job 9|",
        "there is no job 9|",
    ];
    assert_eq!(results(&live.close().pod), expected);
    let mut host = FeatureHost::new().install(Shared(module(json!({}))));
    let answer = host.call("JobStart", json!({"command": "true"}));
    assert_eq!(answer.status, ResultStatus::Error);
    assert!(
        answer.text().contains("start the pod so that it stays"),
        "{answer:?}"
    );
}

// Two calls of one answer both found no job, and both started one.
#[test]
fn calls_of_one_answer_keep_the_limit_too() {
    let command = json!({"command": "exec sleep 300"}).to_string();
    let both = [
        ("JobStart", command.as_str()),
        ("JobStart", command.as_str()),
    ];
    let live = live(stays(
        json!({"max_jobs": 1}),
        &[ScriptedAnswer::calls(&both), text("done")],
    ));
    turn(&live, 1).unwrap();
    let mut all = results(&live.close().pod);
    all.sort();
    assert_eq!(
        all,
        ["1 job runs already; stop it first|", "job 1 started|"]
    );
}

/// Their ends would be forgotten: of a session only the newest are kept.
#[test]
fn no_job_starts_while_many_ends_wait_to_be_told() {
    let turns = 3;
    let one_turn = |turn: u64| {
        let jobs = (1..=12).flat_map(move |job| {
            let number = turn * 12 + job;
            [
                call("JobStart", json!({"command": "exec sleep 300"})),
                call("JobStop", json!({"job": number})),
            ]
        });
        jobs.chain([text("done")]).collect::<Vec<_>>()
    };
    let answers: Vec<_> = (0..turns)
        .flat_map(one_turn)
        .chain((0..40).map(|_| text("told")))
        .collect();
    let live = live(stays(json!({}), &answers));
    // Time stands still: what waits for a second is not told.
    live.ask(live.client().send(NewInput {
        text: "go".to_owned(),
        ..NewInput::default()
    }))
    .unwrap();
    let refused = "32 ends of jobs wait to be told; end the turn to read them|";
    let text = |_: &PodStatus| results(&live.pod).iter().any(|result| result == refused);
    for _ in 0..3 {
        live.until(|status| {
            text(status) || status.activity == Activity::Idle && status.queued.is_empty()
        });
        drop(live.ask(live.client().send(NewInput {
            text: "go".to_owned(),
            ..NewInput::default()
        })));
    }
    live.until(text);
    drop(live.close());
}

// What a command changed counted as told before its notice was durable, and was in no record.
#[test]
fn what_a_job_changed_for_git_is_told_once_it_is_durable() {
    let hook = "while ! [ -e done ]; do sleep 0.01; done; echo 'exit 0' > .git/hooks/post-commit; chmod +x .git/hooks/*";
    let answers = [
        call("JobStart", json!({ "command": hook })),
        text("started"),
        text("told"),
        text("unused"),
    ];
    let mut pod = stays(json!({}), &answers);
    for dir in ["hooks", "objects", "refs"] {
        std::fs::create_dir_all(pod.project.join(".git").join(dir)).unwrap();
    }
    std::fs::write(pod.project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let roots = [pod.project.clone()];
    let guard = GitGuard::new(
        &ambient::claim(),
        &roots,
        None,
        |_| false,
        |_| String::new(),
    )
    .unwrap();
    pod.spawner = pod
        .spawner
        .map(|spawner| spawner.with_git_guard(Arc::new(guard)));
    let live = live(pod);
    turn(&live, 1).unwrap();
    let disk = live.pod.disk.clone();
    let full = move || disk.fail_at(0, Fault::Ever(ENOSPC));
    let runs = |live: &LivePod| {
        live.pod
            .points
            .came()
            .iter()
            .filter(|point| *point == "task:ended")
            .count()
    };
    let before = runs(&live);
    live.pod.points.at("task:running", before, full);
    finish(&live.pod);
    let began = std::time::Instant::now();
    while runs(&live) == before {
        assert!(began.elapsed() < testkit::PATIENCE, "no run ended");
        std::thread::yield_now();
    }
    assert_eq!(notices(&live.pod), []);
    live.pod.disk.repair();
    live.advance(std::time::Duration::from_secs(5 * 60));
    live.until(|status| notices(&live.pod).len() == 2 && is_quiet(&live, status));
    let [(None, changed), (Some(key), _)] = &notices(&live.pod)[..] else {
        panic!("{:?}", notices(&live.pod))
    };
    assert!(
        key == "job-1" && changed.contains("post-commit"),
        "{changed}"
    );
    drop(live.close());
}

/// A job that begins, ends, and wakes the pod.
fn story(pod: PodUnderTest) -> Over {
    let live = match LivePod::open(pod) {
        Ok(live) => live,
        Err(over) => return *over,
    };
    let passed = || {
        turn(&live, 1)?;
        finish(&live.pod);
        live.try_until(|status| status.turns == 2 && is_quiet(&live, status))
    };
    match passed() {
        Some(_) => live.close(),
        None => live.wait(),
    }
}

#[test]
fn killed_anywhere_the_end_of_a_job_is_told_once() {
    let answers = [
        call("JobStart", json!({"command": WAITS})),
        text("started"),
        text("told"),
        text("unused"),
    ];
    let points = story(stays(json!({}), &answers)).pod.points.numbered();
    assert!(
        points
            .iter()
            .any(|(name, _)| name == "commit:notification_queued"),
        "{points:?}"
    );
    let mut ended = 0;
    let mut lost = 0;
    for (name, nth) in points {
        let what = format!("killed at {name} {nth}");
        let pod = stays(json!({}), &answers);
        pod.points.kill(&name, nth);
        let Over { mut pod, .. } = story(pod);
        pod.revive();
        pod.script = ModelScript::new((0..9).map(|_| text("went on")));
        let live = live(pod);
        let told = || {
            live.until(|status| {
                let state = live.folded(status.folded);
                let told = crate::rig::state(&live.pod, &ID, TOLD.name());
                let all = told.as_array().map_or(0, Vec::len);
                is_quiet(&live, status) && state.open_jobs().count() == 0 && all == state.jobs.len()
            })
        };
        told();
        let over = live.close();
        assert_eq!(over.failure(), None, "{what}");
        let jobs = over.state().jobs.clone();
        let all = notices(&over.pod);
        assert_eq!(all.len(), jobs.len(), "{what}: {all:?}");
        for job in jobs.values() {
            let how = job.ended.as_ref().unwrap().how;
            ended += u32::from(how == JobEndKind::Exited);
            lost += u32::from(how == JobEndKind::Lost);
            assert!(
                how != JobEndKind::Lost || all[0].1.contains("ended by recovery"),
                "{what}: {all:?}"
            );
        }
    }
    assert!(ended > 0 && lost > 0, "{ended} ended, {lost} lost");
}
