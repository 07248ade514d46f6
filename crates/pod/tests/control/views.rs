//! Old results leave the requests of a model with a small window: what stays, what the log proves, and how a result is
//! read again.

use crate::fixtures::{live, pod, sound, verified};
use crate::live_holds::spin;
use llm_worker::effect::Outcome;
use llm_worker::projection::neutral::NeutralRequest;
use llm_worker::tool::LineRange;
use llm_worker::{Item, ToolEffect, ToolOutput};
use pod::control::{HostMode, NewInput};
use pod::record::{HoldCause, Pruned, Record};
use session_store::Reader;
use std::time::Duration;
use testkit::{ENOSPC, Fault, FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

const WINDOW: u64 = 32_000;
const STEPS: usize = 60;
const LINES: usize = 40;

/// Two and a half kilobytes that no other call answers.
fn content(call: &str) -> String {
    (1..=LINES)
        .map(|line| format!("{call} says, in its line {line:>3}, what only it can say\n"))
        .collect()
}

/// Answers with the content of its call.
pub(crate) fn teller() -> FnTool {
    FnTool::new("Tell", ToolEffect::ReadOnly, |cx, _| async move {
        Ok(ToolOutput {
            summary: format!("{} told", cx.call),
            content: content(&cx.call.to_string()),
            data: None,
        })
    })
}

/// Reads an earlier result by its call.
pub(crate) fn reader() -> FnTool {
    FnTool::new("Again", ToolEffect::ReadOnly, |cx, arguments| async move {
        let asked: serde_json::Value = serde_json::from_str(&arguments).unwrap_or_default();
        let from = asked["from"].as_u64().unwrap_or(1);
        let lines = asked["lines"].as_u64().unwrap_or(1000);
        let page = cx.host.read_output(
            asked["call"].as_str().unwrap_or_default(),
            LineRange::From { from, lines },
        )?;
        Ok(ToolOutput {
            summary: format!("{}-{} of {}", page.first, page.last, page.total),
            content: page.text,
            data: None,
        })
    })
}

/// A window in which the results of a turn of twelve calls leave once.
pub(crate) const SMALL: u64 = 8_000;

/// A pod with such a turn, which has not run.
pub(crate) fn scene() -> PodUnderTest {
    let mut pod = pod(Vec::new(), vec![teller()]);
    pod.script = ModelScript::new(turn(12, "done")).windowed(SMALL);
    pod
}

/// The same after its turn.
pub(crate) fn short() -> PodUnderTest {
    let pod = scene();
    pod.run("first").end();
    pod
}

/// A turn of this many calls and an answer.
pub(crate) fn turn(steps: usize, answer: &str) -> Vec<ScriptedAnswer> {
    let calls = (0..steps).map(|_| ScriptedAnswer::calls(&[("Tell", "{}")]));
    calls.chain([ScriptedAnswer::text(answer)]).collect()
}

pub(crate) fn prunes(pod: &PodUnderTest) -> Vec<Pruned> {
    let pruned = |(_, record)| {
        if let Record::Pruned(pruned) = record {
            Some(pruned)
        } else {
            None
        }
    };
    pod.records().into_iter().filter_map(pruned).collect()
}

fn texts<'a>(
    request: &'a NeutralRequest,
    of: impl Fn(&'a Item) -> Option<&'a str>,
) -> Vec<&'a str> {
    request.items.iter().filter_map(of).collect()
}

/// Contents of results, with the number of their calls.
fn contents(request: &NeutralRequest) -> Vec<(u64, &str)> {
    let result = |item| match item {
        &Item::ToolResult { id, ref outcome } => Some((id.number(), outcome.content.as_str())),
        _ => None,
    };
    request.items.iter().filter_map(result).collect()
}

/// A session of hundreds of steps in a small window, over several starts.
fn long() -> (PodUnderTest, Vec<NeutralRequest>) {
    let mut pod = pod(Vec::new(), vec![teller(), reader()]);
    let mut requests = Vec::new();
    for n in 1..=5 {
        pod.script = ModelScript::new(turn(STEPS, &format!("answer {n}"))).windowed(WINDOW);
        let end = pod.run(&format!("input {n}: keep every word of this"));
        assert_eq!(
            end.end().answer.as_deref(),
            Some(&*format!("answer {n}")),
            "{:?}",
            end.end()
        );
        requests.append(&mut pod.script.requests());
    }
    (pod, requests)
}

#[test]
fn a_session_of_hundreds_of_steps_fits_a_small_window_and_is_proven() {
    let (pod, requests) = long();
    assert_eq!(requests.len(), 5 * (STEPS + 1));
    let pruned = prunes(&pod);
    assert!(
        (5..40).contains(&pruned.len()),
        "{} bites of {} steps",
        pruned.len(),
        requests.len()
    );
    for (number, request) in requests.iter().enumerate() {
        let bytes = serde_json::to_string(&request.items).unwrap().len() as u64;
        assert!(bytes / 4 < WINDOW, "request {number} has {bytes} bytes");
        let turn = number / (STEPS + 1) + 1;
        // What people and the model said stays byte for byte, and so does what fixes the request.
        let users = texts(request, |item| {
            if let Item::User { text, .. } = item {
                Some(text)
            } else {
                None
            }
        });
        let said: Vec<_> = (1..=turn)
            .map(|n| format!("input {n}: keep every word of this"))
            .collect();
        assert_eq!(users, said, "request {number}");
        let answers = texts(request, |item| {
            if let Item::Assistant { text } = item {
                Some(text)
            } else {
                None
            }
        });
        let answered: Vec<_> = (1..turn).map(|n| format!("answer {n}")).collect();
        assert_eq!(answers, answered, "request {number}");
        assert_eq!(
            (&request.system, &request.tools),
            (&requests[0].system, &requests[0].tools)
        );
        // No call is without its result; the newest tokens are whole, and everything else is whole or a mark.
        let calls = request
            .items
            .iter()
            .filter(|item| matches!(item, Item::ToolCall { .. }))
            .count();
        let results = contents(request);
        assert_eq!(results.len(), calls, "request {number}");
        let mut is_masked = true;
        for (call, content) in &results {
            let whole = self::content(&format!("c{call:08}"));
            let mark = format!(
                "({} bytes left the context: PageOutput(\"c{call:08}\"))",
                whole.len()
            );
            assert!(
                *content == whole || *content == mark,
                "request {number}: {content}"
            );
            assert!(
                is_masked || *content == whole,
                "request {number}: call {call} is masked before older ones"
            );
            is_masked = *content == mark;
        }
        let tail = results
            .iter()
            .rev()
            .take(8)
            .filter(|(_, content)| content.len() > 1000)
            .count();
        assert_eq!(tail, results.len().min(8), "request {number}");
    }
    let found = verified(&pod);
    assert_eq!(found.wrong, None);
    assert_eq!(
        (found.requests, found.bodies),
        (requests.len() as u64, requests.len() as u64)
    );
    sound(&pod, "a long session");
    assert_eq!(format(&pod), 2, "an older program refuses the session");
    let state = pod.state();
    assert_eq!(state.shown.view, pruned.last().unwrap().view);
    // What the meter counts is what the items have.
    let usage = state.context(None).unwrap();
    let results: u64 = pod
        .restored()
        .items
        .iter()
        .map(|item| match item {
            Item::ToolResult { outcome, .. } => {
                (outcome.summary.len() + outcome.content.len()) as u64
            }
            _ => 0,
        })
        .sum();
    let told: u64 = pruned.iter().map(|pruned| pruned.left.bytes["Tell"]).sum();
    let whole = (5 * STEPS * (content("c00000001").len() + "c00000001 told".len())) as u64;
    assert_eq!(results + told, whole);
    assert!(usage.used < WINDOW);
}

/// The format of the newest segment.
fn format(pod: &PodUnderTest) -> u64 {
    let frames = Reader::open(&pod.dir)
        .unwrap()
        .frames()
        .map(|frame| frame.unwrap());
    let line = frames
        .filter(|frame| frame.kind == "segment")
        .last()
        .unwrap()
        .line;
    serde_json::from_str::<serde_json::Value>(&line).unwrap()["format"]
        .as_u64()
        .unwrap()
}

#[test]
fn without_a_known_window_nothing_leaves() {
    let mut pod = pod(Vec::new(), vec![teller()]);
    pod.script = ModelScript::new(turn(STEPS, "done"));
    pod.run("go").end();
    assert_eq!((prunes(&pod), format(&pod)), (Vec::new(), 1));
    let last = pod.script.requests().pop().unwrap();
    assert!(
        contents(&last)
            .iter()
            .all(|(call, content)| *content == self::content(&format!("c{call:08}")))
    );
    let named = |(_, record): &(u64, Record)| matches!(record, Record::Request(request) if request.view.is_some());
    assert!(!pod.records().iter().any(named));
}

#[test]
fn a_result_that_left_is_read_again_by_its_call() {
    let mut pod = pod(Vec::new(), vec![teller(), reader()]);
    let mut answers = turn(STEPS, "");
    answers.pop();
    let asks = [
        r#"{"call":"c00000001"}"#,
        r#"{"call":"c00000002","from":40}"#,
        r#"{"call":"c00000003","from":2,"lines":2}"#,
        r#"{"call":"c00000077"}"#,
    ];
    answers.extend(asks.map(|ask| ScriptedAnswer::calls(&[("Again", ask)])));
    answers.push(ScriptedAnswer::text("done"));
    pod.script = ModelScript::new(answers).windowed(WINDOW);
    pod.run("go").end();
    let last = pod.script.requests().pop().unwrap();
    let results: Vec<_> = last
        .items
        .iter()
        .filter_map(|item| match item {
            Item::ToolResult { id, outcome } if id.number() > STEPS as u64 => Some(outcome),
            _ => None,
        })
        .collect();
    let lines = |call: &str, from: usize, to: usize| {
        content(call)
            .lines()
            .skip(from - 1)
            .take(to + 1 - from)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(contents(&last)[0].1.len() < 200, "the first result left");
    assert_eq!(
        (results[0].summary.as_str(), results[0].content.as_str()),
        ("1-40 of 40", &*lines("c00000001", 1, 40))
    );
    assert_eq!(
        (results[1].summary.as_str(), results[1].content.as_str()),
        ("40-40 of 40", &*lines("c00000002", 40, 40))
    );
    assert_eq!(
        (results[2].summary.as_str(), results[2].content.as_str()),
        ("2-3 of 40", &*lines("c00000003", 2, 3))
    );
    assert_eq!(
        results[3].summary,
        "call c00000077 has no result in this pod"
    );
}

/// Results that the model has not seen stay whole, however little room is left.
#[test]
fn what_the_model_has_not_seen_stays() {
    let mut pod = pod(Vec::new(), vec![teller()]);
    pod.context_policy.protect_tokens = 0;
    let all = [("Tell", "{}"); 12];
    let answers = vec![
        ScriptedAnswer::calls(&all),
        ScriptedAnswer::calls(&all),
        ScriptedAnswer::calls(&all),
        ScriptedAnswer::text("done"),
    ];
    pod.script = ModelScript::new(answers).windowed(17_000);
    pod.run("go").end();
    let requests = pod.script.requests();
    assert!(!prunes(&pod).is_empty());
    for request in &requests[1..] {
        let results = contents(request);
        assert!(
            results
                .iter()
                .rev()
                .take(12)
                .all(|(_, content)| content.len() > 1000),
            "{results:?}"
        );
    }
    sound(&pod, "parallel calls");
}

/// A pod whose turn gets more results by parallel calls than its window takes; it has not run.
pub(crate) fn full() -> PodUnderTest {
    let mut pod = pod(Vec::new(), vec![teller()]);
    let answers = vec![
        ScriptedAnswer::calls(&[("Tell", "{}"); 32]),
        ScriptedAnswer::text("done"),
    ];
    pod.script = ModelScript::new(answers).windowed(SMALL);
    pod
}

/// The results of one step, which the model has not seen, exceed the window: the request is not sent.
#[test]
fn what_cannot_fit_ends_the_turn_and_holds_the_pod() {
    let mut pod = full();
    pod.mode = HostMode::Stay { missing: None };
    let live = live(pod);
    let new = |text: &str| NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    };
    live.ask(live.client().send(new("one"))).unwrap();
    let status = live.until(|status| status.held.is_some());
    assert_eq!(status.last_outcome, Some(Outcome::ContextLimit));
    let held = status.held.unwrap();
    assert_eq!(
        (held.cause, held.reason.as_str()),
        (
            HoldCause::Budget,
            "the next request does not fit the model's context"
        )
    );
    // An input waits; it is not refused.
    live.ask(live.client().send(new("two"))).unwrap();
    assert_eq!(
        live.until(|status| !status.queued.is_empty()).queued.len(),
        1
    );
    let over = live.close();
    assert_eq!(over.pod.script.requests().len(), 1);
    sound(&over.pod, "a full context");
}

/// While the disk refuses the change, the turn waits with it, also if it is to end: its history is then that of the record.
#[test]
fn a_change_that_the_disk_refuses_is_made_before_the_turn_goes_on_or_ends() {
    for cancelled in [false, true] {
        let what = format!("cancelled: {cancelled}");
        let mut pod = scene();
        pod.mode = HostMode::Stay { missing: None };
        let disk = pod.disk.clone();
        pod.points.at("commit:pruned", 0, move || {
            disk.fail_at(0, Fault::Ever(ENOSPC))
        });
        let live = live(pod);
        let new = |text: &str| NewInput {
            text: text.to_owned(),
            ..NewInput::default()
        };
        live.ask(live.client().send(new("one"))).unwrap();
        spin(&live, |status| status.disk.is_some());
        if cancelled {
            live.ask(live.client().cancel(None));
        }
        live.pod.disk.repair();
        live.advance(Duration::from_secs(30));
        let ends = if cancelled {
            Outcome::Cancelled
        } else {
            Outcome::Done
        };
        live.until(|status| status.last_outcome.as_ref() == Some(&ends));
        assert_eq!(prunes(&live.pod).len(), 1, "{what}");
        live.pod.script.clear();
        live.pod.script.add(ScriptedAnswer::text("two"));
        live.ask(live.client().send(new("two"))).unwrap();
        live.until(|status| {
            status.last_outcome == Some(Outcome::Done)
                && status.queued.is_empty()
                && !live.folded(status.folded).turn_open
        });
        let last = live.pod.script.requests().pop().unwrap();
        assert!(
            contents(&last)[0].1.len() < 200,
            "{what}: the first result left"
        );
        let pod = live.close().pod;
        sound(&pod, &what);
    }
}
