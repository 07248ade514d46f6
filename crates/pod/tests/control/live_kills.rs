//! A pod that stays, killed at every one of its points while clients work with it: what they were told is there after the
//! next start, and nothing effectful runs twice.

use crate::fixtures::moved;
use crate::fixtures::{Changed, changer, echo, live, pod, ran_once, sound};
use crate::logged_queue::LoggedQueue;
use llm_worker::{CallId, Item, StopReason, ToolEffect};
use pod::control::{Activity, Client, Event, HostMode, NewInput, SubmitError};
use pod::record::{InputId, InputMode, Record};
use std::collections::BTreeMap;
use testkit::{FnTool, Latch, LiveEnd, LivePod, ModelScript, Over, PodUnderTest, ScriptedAnswer};

/// The parts of the story that a test looks at.
struct Scene {
    tools: Vec<FnTool>,
    changed: Changed,
    /// The first answer, and that of the third turn.
    gates: [Latch; 2],
}

fn scene() -> (PodUnderTest, Scene) {
    let changed = Changed::default();
    let tools = vec![
        changer("Change", &changed),
        echo("Echo", ToolEffect::Effectful),
    ];
    let gates = [Latch::new("the calls"), Latch::new("the third turn")];
    let calls = ScriptedAnswer::new()
        .wait_at(&gates[0])
        .call(0, "Change", "{}")
        .call(1, "Echo", "{}");
    let answers = vec![
        calls.stop(StopReason::ToolUse),
        ScriptedAnswer::text("one and two"),
        ScriptedAnswer::text("four"),
        ScriptedAnswer::new()
            .wait_at(&gates[1])
            .say("three")
            .stop(StopReason::EndTurn),
        ScriptedAnswer::text("six"),
    ];
    let mut pod = pod(answers, tools.clone());
    pod.mode = HostMode::Stay { missing: None };
    (
        pod,
        Scene {
            tools,
            changed,
            gates,
        },
    )
}

/// What clients were told.
#[derive(Default)]
struct Promises {
    texts: BTreeMap<InputId, String>,
    withdrawn: Vec<InputId>,
    moved: bool,
}

/// `None` once the pod is dead.
fn alive<T>(answer: Result<T, SubmitError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(SubmitError::Closed | SubmitError::Disk(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

fn input(text: &str, mode: InputMode, key: Option<&str>) -> NewInput {
    NewInput {
        text: text.to_owned(),
        mode,
        key: key.map(str::to_owned),
        ..NewInput::default()
    }
}

fn send(live: &LivePod, client: &Client, new: NewInput, told: &mut Promises) -> Option<()> {
    let text = new.text.clone();
    let accepted = alive(live.ask(client.send(new)))?;
    told.texts.insert(accepted.input, text);
    Some(())
}

/// Four turns: steered, edited, moved, withdrawn, paused, resumed and cancelled. `None` where it was killed.
fn story(live: &LivePod, scene: &Scene, told: &mut Promises) -> Option<()> {
    let [a, b] = [live.client(), live.client()];
    send(live, &a, input("one", InputMode::Queue, None), told)?;
    live.try_until(|status| status.requests == 1)?;
    send(live, &b, input("two", InputMode::Steer, None), told)?;
    send(
        live,
        &a,
        input("three", InputMode::Queue, Some("third")),
        told,
    )?;
    send(live, &b, input("four", InputMode::Queue, None), told)?;
    send(live, &b, input("five", InputMode::Queue, None), told)?;
    alive(live.ask(a.edit(3, "three!".to_owned(), None)))?;
    told.texts.insert(3, "three!".to_owned());
    alive(live.ask(b.tell(moved(4, Some(3)), None)))?;
    told.moved = true;
    alive(live.ask(b.withdraw(5, None)))?;
    told.withdrawn.push(5);
    alive(live.ask(a.pause(None)))?;
    scene.gates[0].open();
    live.try_until(|status| matches!(status.activity, Activity::Paused { turn: 1 }))?;
    alive(live.ask(b.resume(None)))?;
    live.try_until(|status| status.turns == 3 && status.requests == 4)?;
    live.ask(a.cancel(None));
    live.try_until(|status| status.held.is_some() && status.activity == Activity::Idle)?;
    // The model may not have begun to answer when it was cancelled: then this answer is for the next turn.
    scene.gates[1].open();
    send(live, &a, input("six", InputMode::Queue, None), told)?;
    live.try_settled().map(drop)
}

fn users(pod: &PodUnderTest) -> Vec<String> {
    let user = |item: Item| match item {
        Item::User { text, .. } => Some(text),
        _ => None,
    };
    pod.restored().items.into_iter().filter_map(user).collect()
}

fn ran(tools: &[FnTool]) -> Vec<CallId> {
    tools.iter().flat_map(FnTool::ran).collect()
}

/// Plays the story, with a kill that may come or not.
fn killed(pod: PodUnderTest, scene: &Scene, told: &mut Promises) -> Over {
    match LivePod::open(pod) {
        Err(over) => *over,
        Ok(live) => match story(&live, scene, told) {
            Some(()) => live.close(),
            None => live.wait(),
        },
    }
}

#[test]
fn the_story_without_a_kill() {
    let (pod, scene) = scene();
    let over = killed(pod, &scene, &mut Promises::default());
    assert_eq!(over.state(), &over.pod.state());
    assert_eq!(users(&over.pod), ["one", "two", "four", "three!", "six"]);
    assert_eq!((over.state().turns, over.state().requests), (4, 5));
    assert_eq!(ran(&scene.tools).len(), 2);
    sound(&over.pod, "the story");
}

fn killed_at(name: &str, nth: usize) {
    let what = format!("killed at {name} {nth}");
    let (pod, scene) = scene();
    pod.points.kill(name, nth);
    let mut told = Promises::default();
    let over = killed(pod, &scene, &mut told);
    assert!(
        matches!(
            over.end,
            LiveEnd::Killed | LiveEnd::Ended(_) | LiveEnd::NotOpened(_)
        ),
        "{what}"
    );
    let Over {
        mut pod, events, ..
    } = over;
    let before = ran(&scene.tools);
    pod.revive();
    let log = pod.records();
    for event in &events {
        if let Event::Record { seq, record } = event {
            assert_eq!(
                log[usize::try_from(*seq).unwrap() - 1],
                (*seq, (**record).clone()),
                "{what}: told and lost"
            );
        }
    }
    pod.script = ModelScript::new((0..9).map(|_| ScriptedAnswer::text("went on")));
    let live = live(pod);
    let inputs = live
        .folded(live.ask(live.client().status()).unwrap().folded)
        .inputs;
    let again = live
        .ask(
            live.client()
                .send(input("three", InputMode::Queue, Some("third"))),
        )
        .unwrap();
    assert_eq!(
        again.input,
        if inputs < 3 { inputs + 1 } else { 3 },
        "{what}: a key names one input"
    );
    while live.settled().held.is_some() {
        live.ask(live.client().resume(None)).unwrap();
    }
    let over = live.close();
    assert_eq!(over.state(), &over.pod.state(), "{what}");
    let pod = over.pod;
    assert_eq!(
        ran(&scene.tools),
        before,
        "{what}: something ran without a request"
    );
    ran_once(&scene.tools, &what);
    let queue = LoggedQueue::of(&pod);
    assert!(queue.waiting.is_empty(), "{what}: {:?}", queue.waiting);
    for (input, text) in &told.texts {
        let edited = *input == 3 && queue.texts[input] == "three!";
        assert!(
            queue.texts[input] == *text || edited,
            "{what}: {input} is lost"
        );
    }
    assert!(
        told.withdrawn
            .iter()
            .all(|input| queue.withdrawn.contains(input)),
        "{what}"
    );
    let place = |input: InputId| {
        queue
            .consumed
            .iter()
            .position(|consumed| *consumed == input)
    };
    assert!(
        !told.moved || place(4) < place(3),
        "{what}: {:?}",
        queue.consumed
    );
    let said: Vec<_> = queue
        .consumed
        .iter()
        .map(|input| queue.texts[input].clone())
        .collect();
    assert_eq!(users(&pod), said, "{what}");
    for path in scene.changed.lock().unwrap().iter() {
        let recorded = |(_, record): &(u64, Record)| matches!(record, Record::FileChanged(f) if f.path == *path);
        assert!(
            pod.records().iter().any(recorded),
            "{what}: {path} was changed and no record says so"
        );
    }
    sound(&pod, &what);
}

#[test]
fn a_kill_at_any_point_loses_and_repeats_nothing() {
    let (pod, scene) = scene();
    let reference = killed(pod, &scene, &mut Promises::default());
    let points = reference.pod.points.numbered();
    for expected in [
        "commit:suspended",
        "commit:input_withdrawn",
        "input_edited",
        "input_moved",
        "commit:tool_started",
    ] {
        assert!(
            points.iter().any(|(name, _)| name == expected),
            "no {expected} in {points:?}"
        );
    }
    for (name, nth) in points {
        killed_at(&name, nth);
    }
}
