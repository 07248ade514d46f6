//! Limits and prices that change while the pod runs count from the next turn on.

use crate::fixtures::{echo, live, pod, sound};
use llm_worker::effect::Outcome;
use llm_worker::{Cost, Price, StopReason, ToolEffect};
use pod::control::{HostMode, NewInput, Reload, RunLimits};
use pod::record::Record;
use pod::session::view::ContextPolicy;
use testkit::{Latch, LivePod, PodUnderTest, ScriptedAnswer};

fn stays(answers: Vec<ScriptedAnswer>) -> PodUnderTest {
    let mut pod = pod(answers, vec![echo("Echo", ToolEffect::ReadOnly)]);
    pod.mode = HostMode::Stay { missing: None };
    pod
}

/// An answer that waits, and asks for a further step.
fn asks(gate: &Latch) -> ScriptedAnswer {
    ScriptedAnswer::new()
        .wait_at(gate)
        .call(0, "Echo", "{}")
        .stop(StopReason::ToolUse)
}

fn send(live: &LivePod, text: &str) {
    let input = NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    };
    live.ask(live.client().send(input)).unwrap();
}

fn reload(live: &LivePod, max_steps: u32, price: Option<Price>) {
    let limits = RunLimits {
        max_steps,
        ..live.pod.limits
    };
    live.ask(live.client().reload(Reload {
        limits,
        permission: live.pod.permission(),
        price,
        context_window: None,
        pod_limits: live.pod.pod_limits,
        context_policy: ContextPolicy::default(),
    }));
}

/// So much for a million tokens of either kind: an answer of the script has eleven.
fn price(dollars: u64) -> Option<Price> {
    let cost = Cost::billionths(dollars * 1_000_000_000);
    Some(Price {
        input: cost,
        output: cost,
        ..Price::FREE
    })
}

fn costs(pod: &PodUnderTest) -> Vec<Option<u64>> {
    let cost = |(_, record): (u64, Record)| match record {
        Record::Response(response) => Some(response.cost.map(|cost| cost.count())),
        _ => None,
    };
    pod.records().into_iter().filter_map(cost).collect()
}

#[test]
fn a_turn_keeps_the_limits_that_it_began_with() {
    let gate = Latch::new("the first answer");
    let open = Latch::new("no wait");
    open.open();
    let live = live(stays(vec![
        asks(&gate),
        ScriptedAnswer::text("done"),
        asks(&open),
    ]));
    send(&live, "one");
    live.until(|status| status.requests == 1);
    reload(&live, 1, None);
    gate.open();
    let status = live.settled();
    assert_eq!(
        (status.requests, status.last_outcome),
        (2, Some(Outcome::Done))
    );
    send(&live, "two");
    let status = live.settled();
    assert_eq!(
        (status.requests, status.last_outcome),
        (3, Some(Outcome::StepLimit))
    );
    sound(&live.close().pod, "other limits");
}

#[test]
fn a_price_counts_from_the_next_turn_on_also_one_that_was_there_before() {
    let gate = Latch::new("an answer");
    let mut answers = vec![
        ScriptedAnswer::text("one"),
        asks(&gate),
        ScriptedAnswer::text("two"),
    ];
    answers.extend(["three", "four"].map(ScriptedAnswer::text));
    let live = live(stays(answers));
    reload(&live, 9, price(1));
    send(&live, "one");
    live.settled();
    send(&live, "two");
    live.until(|status| status.requests == 2);
    // Both answers of this turn have the price with which it began.
    reload(&live, 9, price(5));
    gate.open();
    live.settled();
    send(&live, "three");
    live.settled();
    reload(&live, 9, price(1));
    send(&live, "four");
    assert_eq!(
        live.settled().cost,
        Some(Cost::billionths((1 + 1 + 1 + 5 + 1) * 11_000))
    );
    let over = live.close();
    assert_eq!(
        costs(&over.pod),
        [1, 1, 1, 5, 1].map(|dollars| Some(dollars * 11_000))
    );
    sound(&over.pod, "other prices");
}
