//! A session of many steps in a small window. `YOI_TEST_STEPS` says how many; `.ci/long` says 2,000.

use crate::canaries::{Place, lost, planted};
use crate::fixtures::{pod, sound, verified};
use crate::views::{prunes, reader};
use llm_worker::projection::neutral::NeutralRequest;
use llm_worker::{Item, StopReason, ToolEffect, ToolOutput};
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

const VARIABLE: &str = "YOI_TEST_STEPS";
const STEPS: usize = 150;
const WINDOW: u64 = 32_000;
/// Lines of a result, of about 60 bytes.
const LINES: usize = 100;
/// Changes of the view that what was said in the first round must survive.
const CHANGES: usize = 10;
/// Words stay in the context for ever, so there are no more rounds than this.
const MOST_ROUNDS: usize = 50;

/// Tells what is planted in a round in its last lines.
fn archive() -> FnTool {
    FnTool::new("Look", ToolEffect::ReadOnly, |cx, arguments| async move {
        let asked: serde_json::Value = serde_json::from_str(&arguments).unwrap_or_default();
        let lines = (1..=LINES).map(|line| {
            format!(
                "{} says, in its line {line:>3}, what only it can say\n",
                cx.call
            )
        });
        let told = asked["round"]
            .as_u64()
            .map(|round| planted(Place::Result, usize::try_from(round).unwrap()));
        let content = lines.collect::<String>() + &told.unwrap_or_default();
        Ok(ToolOutput {
            summary: "told".to_owned(),
            content,
            data: None,
        })
    })
}

fn input(round: usize) -> String {
    format!(
        "round {round}: do this now\n{}",
        planted(Place::Input, round)
    )
}

/// A round: its first call is told what is planted in results.
fn round(number: usize, steps: usize) -> Vec<ScriptedAnswer> {
    let first = ScriptedAnswer::calls(&[("Look", &format!(r#"{{"round":{number}}}"#))]);
    let others = (1..steps).map(|_| ScriptedAnswer::calls(&[("Look", "{}")]));
    [first]
        .into_iter()
        .chain(others)
        .chain([ScriptedAnswer::text(&planted(Place::Answer, number))])
        .collect()
}

fn users(request: &NeutralRequest) -> Vec<&str> {
    let items = request.items.iter();
    items
        .filter_map(|item| {
            if let Item::User { text, .. } = item {
                Some(text.as_str())
            } else {
                None
            }
        })
        .collect()
}

/// Runs a turn, and returns its requests, all of which fit.
fn run(pod: &mut PodUnderTest, input: &str, answers: Vec<ScriptedAnswer>) -> Vec<NeutralRequest> {
    let wanted = answers.len();
    pod.script = ModelScript::new(answers).windowed(WINDOW);
    let end = pod.run(input);
    let requests = pod.script.requests();
    assert_eq!(requests.len(), wanted, "{input}: {:?}", end.end());
    for (number, body) in pod.script.bodies().iter().enumerate() {
        assert!(
            body.len() as u64 / 4 <= WINDOW,
            "{input}: request {number} has {} bytes",
            body.len()
        );
    }
    requests
}

#[test]
fn a_long_session_in_a_small_window_loses_nothing() {
    let steps: usize = std::env::var(VARIABLE).map_or(STEPS, |text| text.parse().unwrap());
    let each = steps.div_ceil(MOST_ROUNDS).max(10);
    let rounds = steps.div_ceil(each);
    let mut pod = pod(Vec::new(), vec![archive(), reader()]);
    pod.limits.max_steps = u32::MAX;
    let mut first = None;
    let mut sent = 0;
    for number in 1..=rounds {
        let said = input(number);
        let requests = run(&mut pod, &said, round(number, each));
        let (system, tools) =
            first.get_or_insert_with(|| (requests[0].system.clone(), requests[0].tools.clone()));
        sent += requests.len();
        for (at, request) in requests.iter().enumerate() {
            // What fixes the request, and the active input as the newest one.
            assert_eq!(
                (&request.system, &request.tools),
                (&*system, &*tools),
                "round {number}, request {at}"
            );
            assert_eq!(
                users(request).last(),
                Some(&said.as_str()),
                "round {number}, request {at}"
            );
        }
        let ends = [requests.first(), requests.last()];
        for request in ends.into_iter().flatten() {
            let upto = number - 1;
            assert_eq!(lost(request, upto), [], "round {number}");
        }
    }
    let changes = prunes(&pod).len();
    assert!(changes >= CHANGES, "{changes} changes of the view");
    // What was told is told again by its call, word for word.
    let told = |number: usize| {
        format!(
            r#"{{"call":"c{:08}","from":{}}}"#,
            (number - 1) * each + 1,
            LINES + 1
        )
    };
    let mut asks: Vec<_> = (1..=rounds)
        .map(|number| ScriptedAnswer::calls(&[("Again", &told(number))]))
        .collect();
    asks.push(ScriptedAnswer::text("all of it"));
    let requests = run(&mut pod, "read it again", asks);
    sent += requests.len();
    for (number, request) in (1..=rounds).zip(&requests[1..]) {
        let newest = request.items.iter().rev().find_map(|item| match item {
            Item::ToolResult { outcome, .. } => Some(outcome.content.as_str()),
            _ => None,
        });
        assert_eq!(
            newest,
            Some(planted(Place::Result, number).as_str()),
            "round {number}"
        );
    }
    assert_eq!(lost(requests.last().unwrap(), rounds), []);
    let found = verified(&pod);
    assert_eq!(
        (found.wrong, found.requests, found.bodies),
        (None, sent as u64, sent as u64)
    );
    sound(&pod, "a long session");
    println!("{steps} steps, {rounds} rounds, {sent} requests, {changes} changes of the view");
}

// A turn of 310 to 342 steps with a word beside each call was held as too large, with 27,000 tokens of 32,000.
#[test]
fn a_word_beside_each_call_does_not_end_a_turn_that_fits() {
    const STEPS: usize = 450;
    let mut pod = pod(Vec::new(), vec![archive(), reader()]);
    pod.limits.max_steps = u32::MAX;
    let said = |step: usize| {
        let answer = ScriptedAnswer::new()
            .say(&format!("step {step}: on it"))
            .call(0, "Look", "{}");
        answer.stop(StopReason::ToolUse)
    };
    let answers: Vec<_> = (1..STEPS)
        .map(said)
        .chain([ScriptedAnswer::text("done")])
        .collect();
    let requests = run(&mut pod, "look at all of it", answers);
    assert_eq!(requests.len(), STEPS);
    let words = |item: &&Item| matches!(item, Item::Assistant { .. });
    assert_eq!(
        requests.last().unwrap().items.iter().filter(words).count(),
        STEPS - 1,
        "every word stays"
    );
    let changes = prunes(&pod).len();
    assert!(changes < STEPS / 4, "{changes} changes of the view");
    sound(&pod, "a turn of many words");
}
