//! Old steps leave the requests: by themselves where masking results is not enough, and by hand. Words stay, pins and the
//! facts of the pod are told anew, and what left is read again by its call.

use crate::fixtures::{live, pod, sound, verified};
use crate::views::prunes;
use llm_worker::effect::Outcome;
use llm_worker::projection::neutral::NeutralRequest;
use llm_worker::tool::LineRange;
use llm_worker::{Item, ToolEffect, ToolOutput};
use pod::control::{HostMode, NewInput, SubmitError};
use pod::record::{HoldCause, Record, SystemItem, ViewLevel, Who};
use pod::session::standing::MAX_PIN;
use protocol::method::{Compact, Pin, Unpin};
use testkit::{FnTool, LivePod, ModelScript, PodUnderTest, ScriptedAnswer};

/// A window in which the steps of [`writing`] leave several times.
pub(crate) const WINDOW: u64 = 12_000;

/// Takes long arguments and answers with a line.
fn writer() -> FnTool {
    FnTool::new("Put", ToolEffect::Idempotent, |cx, _| async move {
        Ok(ToolOutput {
            summary: format!("{} is put", cx.call),
            content: format!("all of {}", cx.call),
            data: None,
        })
    })
}

fn reader() -> FnTool {
    FnTool::new("Again", ToolEffect::ReadOnly, |cx, arguments| async move {
        let asked: serde_json::Value = serde_json::from_str(&arguments).unwrap_or_default();
        let page = cx.host.read_output(
            asked["call"].as_str().unwrap_or_default(),
            LineRange::From { from: 1, lines: 9 },
        )?;
        Ok(ToolOutput {
            summary: "read".to_owned(),
            content: page.text,
            data: None,
        })
    })
}

/// A turn of this many calls with two kilobytes of arguments each.
fn writing(steps: usize, answer: &str) -> Vec<ScriptedAnswer> {
    let arguments = format!("{{\"text\":\"{}\"}}", "w".repeat(2_000));
    let calls = (0..steps).map(|_| ScriptedAnswer::calls(&[("Put", &arguments)]));
    calls.chain([ScriptedAnswer::text(answer)]).collect()
}

/// A pod whose turn needs several changes of the view; it has not run.
pub(crate) fn scene() -> PodUnderTest {
    let mut pod = pod(Vec::new(), vec![writer()]);
    pod.script = ModelScript::new(writing(60, "done")).windowed(WINDOW);
    pod
}

fn words(request: &NeutralRequest, wanted: fn(&Item) -> Option<&str>) -> Vec<&str> {
    request.items.iter().filter_map(wanted).collect()
}

fn user(item: &Item) -> Option<&str> {
    if let Item::User { text, .. } = item {
        Some(text)
    } else {
        None
    }
}

fn answer(item: &Item) -> Option<&str> {
    if let Item::Assistant { text } = item {
        Some(text)
    } else {
        None
    }
}

pub(crate) fn host(item: &Item) -> Option<&str> {
    match item {
        Item::System { source, text } if source == "host" => Some(text),
        _ => None,
    }
}

fn gap(item: &Item) -> Option<&str> {
    match item {
        Item::System { source, text } if source == "context" => Some(text),
        _ => None,
    }
}

pub(crate) fn notes(pod: &PodUnderTest) -> Vec<String> {
    let note = |(_, record)| match record {
        Record::SystemItem(SystemItem::Context { text, .. }) => Some(text),
        _ => None,
    };
    pod.records().into_iter().filter_map(note).collect()
}

#[test]
fn steps_leave_where_results_are_not_enough_and_every_word_stays() {
    let mut pod = pod(Vec::new(), vec![writer()]);
    let mut requests = Vec::new();
    for n in 1..=4 {
        pod.script = ModelScript::new(writing(40, &format!("answer {n}"))).windowed(WINDOW);
        let run = pod.run(&format!("input {n}: keep every word of this"));
        assert_eq!(
            run.end().answer.as_deref(),
            Some(&*format!("answer {n}")),
            "{:?}",
            run.end()
        );
        requests.append(&mut pod.script.requests());
    }
    let changes = prunes(&pod);
    assert!(
        changes
            .iter()
            .all(|change| change.level == ViewLevel::Steps),
        "nothing can be masked: {changes:?}"
    );
    assert!((6..40).contains(&changes.len()), "{}", changes.len());
    for (number, request) in requests.iter().enumerate() {
        let bytes = serde_json::to_string(&request.items).unwrap().len() as u64;
        assert!(bytes / 4 < WINDOW, "request {number} has {bytes} bytes");
        let turn = number / 41 + 1;
        let inputs: Vec<String> = (1..=turn)
            .map(|n| format!("input {n}: keep every word of this"))
            .collect();
        assert_eq!(words(request, user), inputs, "request {number}");
        assert_eq!(
            words(request, answer),
            (1..turn).map(|n| format!("answer {n}")).collect::<Vec<_>>()
        );
        // The newest note of the host names the input of this turn, and an older note is gone once steps leave again.
        let told = words(request, host);
        let told: Vec<_> = told
            .iter()
            .filter(|text| text.starts_with("State of this pod"))
            .collect();
        assert!(told.len() <= 2, "request {number}: {told:?}");
        for text in &told {
            let active = text
                .lines()
                .filter(|line| line.starts_with("Working on input"))
                .count();
            assert_eq!(active, 1, "request {number}: {text}");
        }
        if let Some(newest) = told.last().filter(|_| changes_before(&pod, request, turn)) {
            assert!(
                newest.contains(&format!("Working on input {turn} since")),
                "request {number}: {newest}"
            );
        }
    }
    let last = requests.last().unwrap();
    let gaps = words(last, gap);
    assert!(
        !gaps.is_empty() && gaps.len() <= 8,
        "gaps of one turn are one: {gaps:?}"
    );
    let found = verified(&pod);
    assert_eq!(found.wrong, None);
    assert_eq!(
        (found.requests, found.bodies),
        (requests.len() as u64, requests.len() as u64)
    );
    sound(&pod, "steps that leave");
    assert_eq!(notes(&pod).len(), changes.len(), "one note for each change");
    let restored = pod.restored();
    assert_eq!(
        restored.items.len(),
        last.items.len() + 1,
        "memory is bounded by the view"
    );
}

/// Whether steps left in this turn before the request: then its newest note is about this turn.
fn changes_before(pod: &PodUnderTest, request: &NeutralRequest, turn: usize) -> bool {
    let mut turns = 0;
    let mut changed = false;
    let mut left = request.items.len();
    for (_, record) in pod.records() {
        match record {
            Record::TurnStarted(_) => (turns, changed) = (turns + 1, false),
            Record::Pruned(_) => changed = true,
            Record::Request(sent) if turns == turn && sent.items == left as u64 => return changed,
            _ => {}
        }
        left = request.items.len();
    }
    false
}

#[test]
fn what_left_is_read_again_by_its_call() {
    let mut pod = pod(Vec::new(), vec![writer(), reader()]);
    let mut answers = writing(40, "");
    answers.pop();
    answers.push(ScriptedAnswer::calls(&[(
        "Again",
        r#"{"call":"c00000002"}"#,
    )]));
    answers.push(ScriptedAnswer::text("done"));
    pod.script = ModelScript::new(answers).windowed(WINDOW);
    pod.run("go").end();
    let last = pod.script.requests().pop().unwrap();
    let gaps = words(&last, gap);
    let calls = gaps
        .iter()
        .find(|gap| gap.contains("with the calls c00000001 to c000000"));
    assert!(
        calls.is_some_and(|gap| gap.contains("PageOutput")),
        "the mark says how: {gaps:?}"
    );
    let Some(Item::ToolResult { outcome, .. }) = last.items.last() else {
        panic!("{:?}", last.items.last())
    };
    assert_eq!(outcome.content, "all of c00000002");
}

fn new(text: &str) -> NewInput {
    NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    }
}

fn staying(script: Vec<ScriptedAnswer>, window: u64) -> LivePod {
    let mut pod = pod(Vec::new(), vec![writer(), crate::views::teller()]);
    pod.mode = HostMode::Stay { missing: None };
    pod.script = ModelScript::new(script).windowed(window);
    live(pod)
}

fn said(live: &LivePod, text: &str, answer: &str) -> NeutralRequest {
    live.pod.script.clear();
    live.pod.script.add(ScriptedAnswer::text(answer));
    let accepted = live.ask(live.client().send(new(text))).unwrap();
    assert_eq!(live.ask(accepted.end()).unwrap().outcome, Outcome::Done);
    live.pod.script.requests().pop().unwrap()
}

#[test]
fn by_hand_the_next_request_is_as_small_as_the_rules_allow() {
    let mut script = writing(12, "first");
    script.insert(0, ScriptedAnswer::text("begun"));
    let live = staying(script, 1_000_000);
    let client = live.client();
    live.ask(live.ask(client.send(new("begin"))).unwrap().end())
        .unwrap();
    live.ask(live.ask(client.send(new("write"))).unwrap().end())
        .unwrap();
    let whole = said(&live, "how large is it?", "large").items.len();
    let by = Who {
        client: "t".to_owned(),
        name: None,
        role: "driver".to_owned(),
        uid: 0,
    };
    live.ask(client.tell(
        Compact {
            drop_turns: false,
            cmd_id: String::new(),
        },
        Some(by),
    ))
    .unwrap();
    assert!(live.settled().compact_due);
    let small = said(&live, "and now?", "small");
    assert!(
        small.items.len() + 10 < whole,
        "{} of {whole}: {:?}",
        small.items.len(),
        prunes(&live.pod)
    );
    assert_eq!(
        words(&small, user),
        ["begin", "write", "how large is it?", "and now?"]
    );
    assert!(!live.settled().compact_due, "one request, one wish");
    said(&live, "once more", "the same");
    let pod = live.close().pod;
    let [change] = &prunes(&pod)[..] else {
        panic!("{:?}", prunes(&pod))
    };
    assert!(
        change
            .parameters
            .is_some_and(|it| it.by_hand && it.window == Some(1_000_000))
    );
    sound(&pod, "by hand");
}

#[test]
fn the_answer_to_a_full_context_is_to_drop_turns_and_the_pod_goes_on() {
    // Inputs that no rule may take away fill the window.
    let live = staying(Vec::new(), 8_000);
    let long = |name: &str| format!("{name} {}", "x".repeat(9_000));
    for name in ["one", "two", "three"] {
        said(&live, &long(name), "read");
    }
    live.pod.script.clear();
    live.ask(live.client().send(new(&long("four")))).unwrap();
    let held = live.until(|status| status.held.is_some()).held.unwrap();
    assert_eq!(held.cause, HoldCause::Budget);
    // Words stay, so there is nothing to win without the oldest turns: success was claimed, and the next input failed.
    let unchanged = live.ask(live.client().tell(
        Compact {
            drop_turns: false,
            cmd_id: String::new(),
        },
        None,
    ));
    assert_eq!(
        unchanged.unwrap_err().to_string(),
        "nothing but whole turns can leave the context"
    );
    assert_eq!(live.settled().held, Some(held));
    live.ask(live.client().send(new("go on"))).unwrap();
    live.pod.script.add(ScriptedAnswer::text("going on"));
    live.ask(live.client().tell(
        Compact {
            drop_turns: true,
            cmd_id: String::new(),
        },
        None,
    ))
    .unwrap();
    assert_eq!(live.settled().last_outcome, Some(Outcome::Done));
    let request = said(&live, "and on", "gone on");
    let users = words(&request, user);
    assert!(
        !users.iter().any(|text| text.starts_with("one"))
            && users.contains(&"go on")
            && users.contains(&"and on"),
        "{}",
        users.len()
    );
    let pod = live.close().pod;
    let change = prunes(&pod).pop().unwrap();
    assert_eq!(change.level, ViewLevel::Turns);
    assert!(change.view.dropped > 0 && change.left.inputs > 9_000);
    sound(&pod, "dropped turns");
}

#[test]
fn pins_are_told_at_once_and_after_each_change_until_they_are_taken_back() {
    let live = staying(vec![ScriptedAnswer::text("hello")], WINDOW);
    let client = live.client();
    live.ask(client.tell(
        Pin {
            text: "never touch the parser".to_owned(),
            cmd_id: String::new(),
        },
        None,
    ))
    .unwrap();
    live.ask(client.tell(
        Pin {
            text: "second".to_owned(),
            cmd_id: String::new(),
        },
        None,
    ))
    .unwrap();
    assert_eq!(live.settled().pins.len(), 2);
    live.ask(live.ask(client.send(new("hi"))).unwrap().end())
        .unwrap();
    let first = live.pod.script.requests().pop().unwrap();
    let note = |request: &NeutralRequest| {
        words(request, host)
            .last()
            .copied()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        note(&first).contains("[pin 1] never touch the parser\n[pin 2] second"),
        "{}",
        note(&first)
    );
    assert!(!note(&said(&live, "again", "yes")).is_empty());
    live.ask(client.tell(
        Unpin {
            pin: 2,
            cmd_id: String::new(),
        },
        None,
    ))
    .unwrap();
    assert!(matches!(
        live.ask(client.tell(
            Unpin {
                pin: 2,
                cmd_id: String::new()
            },
            None
        )),
        Err(SubmitError::NoPin(2))
    ));
    let refused = |text: String| {
        live.ask(client.tell(
            Pin {
                text,
                cmd_id: String::new(),
            },
            None,
        ))
        .unwrap_err()
        .to_string()
    };
    assert!(refused("x".repeat(MAX_PIN + 1)).contains("4096"));
    assert!(refused(" ".to_owned()).contains("no text"));
    live.pod.script.clear();
    for answer in writing(40, "written") {
        live.pod.script.add(answer);
    }
    let before = live.pod.script.requests().len();
    live.ask(live.ask(client.send(new("write"))).unwrap().end())
        .unwrap();
    for request in live.pod.script.requests().into_iter().skip(before) {
        let pinned = words(&request, host)
            .iter()
            .filter(|text| text.contains("[pin 1] never touch the parser"))
            .count();
        assert!(pinned >= 1, "{:?}", words(&request, host));
        let newest = note(&request);
        assert!(!newest.contains("[pin 2]"), "{newest}");
    }
    let pod = live.close().pod;
    assert!(!prunes(&pod).is_empty());
    sound(&pod, "pins");
}

// After two changes that left the request above its limit, the turn ended, though all of it fitted the window.
#[test]
fn a_request_above_its_limit_is_sent_while_it_fits() {
    let mut pod = pod(Vec::new(), vec![crate::views::teller()]);
    pod.context_policy.protect_tokens = 0;
    let big = "u".repeat(22_000);
    let calls = (0..40).map(|_| ScriptedAnswer::calls(&[("Tell", "{}")]));
    pod.script = ModelScript::new(calls.chain([ScriptedAnswer::text("done")])).windowed(8_000);
    let run = pod.run(&big);
    assert_eq!(
        (&run.end().outcome, pod.script.requests().len()),
        (&Outcome::Done, 41)
    );
    let changes = prunes(&pod);
    assert!(changes.len() <= 40, "{}", changes.len());
    sound(&pod, "a request above its limit");
}
