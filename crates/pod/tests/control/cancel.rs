//! A turn cancelled at every one of its points.

use crate::fixtures::{
    Changed, changer, echo, pod, printer, ran_once, sound, told_what_is_durable,
};
use llm_worker::effect::Outcome;
use llm_worker::{ResultStatus, ToolEffect};
use pod::record::Record;
use std::sync::{Arc, Barrier};
use testkit::{FnTool, PodUnderTest, ScriptedAnswer, within};
use tokio_util::sync::CancellationToken;

fn scene() -> (PodUnderTest, Vec<FnTool>) {
    let changed = Changed::default();
    let tools = vec![
        changer("Change", &changed),
        echo("Echo", ToolEffect::Effectful),
        printer("Print", 3000),
    ];
    let calls = [
        ("Change", "{}"),
        ("Echo", "{}"),
        ("Print", "{}"),
        ("None", "{}"),
    ];
    (
        pod(
            vec![ScriptedAnswer::calls(&calls), ScriptedAnswer::text("done")],
            tools.clone(),
        ),
        tools,
    )
}

#[test]
fn a_cancel_at_any_point_leaves_one_result_per_call() {
    let (reference, _) = scene();
    reference.run("first").end();
    let points = reference.points.numbered();
    let streamed = points.iter().filter(|(name, _)| name == "stream").count();
    for (name, nth) in points {
        let what = format!("cancelled at {name} {nth}");
        let (pod, tools) = scene();
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        pod.points.at(&name, nth, move || token.cancel());
        let (pod, ran) = within(&what.clone(), move || {
            let ran = pod.run_until("first", &cancel);
            (pod, ran)
        });
        // Once its end is on the way to the disk a turn has ended by itself.
        let came = pod.points.came();
        let at = came
            .iter()
            .enumerate()
            .filter(|(_, other)| **other == name)
            .nth(nth);
        let end = came
            .iter()
            .position(|other| other == "commit:turn_finished")
            .unwrap();
        let end = came[..end]
            .iter()
            .rposition(|other| !other.starts_with("commit:"))
            .unwrap()
            + 1;
        // The same for the last event, which is taken before anybody looks at the token again. How commits are grouped
        // is a matter of time: a point may not have come at all.
        let brings_it = name == "stream" && nth + 1 == streamed;
        let in_time = at.is_some_and(|(at, _)| at < end) && !brings_it;
        let expected = if in_time {
            Outcome::Cancelled
        } else {
            Outcome::Done
        };
        assert_eq!(ran.end().outcome, expected, "{what}");
        let log = pod.records();
        let last = log.iter().rev().find_map(|(_, record)| match record {
            Record::TurnFinished(finished) => Some(finished.outcome.clone()),
            _ => None,
        });
        assert_eq!(last, Some(expected), "{what}");
        told_what_is_durable(&ran, &log, 0, &what);
        ran_once(&tools, &what);
        sound(&pod, &what);
    }
}

/// A call that is told to stop says how far it came; one that waits for its turn never starts.
#[test]
fn running_calls_end_themselves_and_waiting_ones_never_start() {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let both = Arc::new(Barrier::new(2));
    let patient = FnTool::new("Wait", ToolEffect::ReadOnly, move |cx, _| {
        let token = token.clone();
        let both = Arc::clone(&both);
        async move {
            cx.host.write_output(b"so far\n")?;
            both.wait();
            token.cancel();
            cx.cancel.cancelled().await;
            Err(llm_worker::ToolError::new(
                llm_worker::ErrorKind::Cancelled,
                "stopped",
            ))
        }
    });
    let mut pod = pod(
        vec![ScriptedAnswer::calls(&[
            ("Wait", "{}"),
            ("Wait", "{}"),
            ("Wait", "{}"),
        ])],
        vec![patient.clone()],
    );
    pod.limits.tool_concurrency = 2;
    let ran = pod.run_until("first", &cancel);
    assert_eq!(ran.end().outcome, Outcome::Cancelled);
    assert_eq!(patient.ran().len(), 2);
    let finished = |(_, record): (u64, Record)| match record {
        Record::ToolFinished(finished) => Some((finished.outcome.status, finished.outcome.text())),
        _ => None,
    };
    let mut results: Vec<_> = pod
        .records()
        .into_iter()
        .filter_map(finished)
        .map(|(s, t)| (s as u8, t))
        .collect();
    results.sort();
    let cancelled = |text: &str| (ResultStatus::Cancelled as u8, text.to_owned());
    let stopped = "stopped\nso far\n";
    assert_eq!(
        results,
        [
            cancelled("cancelled before it started"),
            cancelled(stopped),
            cancelled(stopped)
        ]
    );
    sound(&pod, "cancelled");
}
