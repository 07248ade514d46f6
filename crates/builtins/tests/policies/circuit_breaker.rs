//! `circuit-breaker`: when it opens, for how long, the one trial, and that it outlives its process.

use crate::rig::{
    BEGAN, Call, Seconds, flaky, play, pod, points, refused, same, state, steps_of, turn,
};
use builtins::circuit_breaker::ID;
use llm_worker::{ErrorKind, ResultStatus, ToolEffect, ToolError, ToolOutput};
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HookKey, HostCapability,
};
use pod::hook::{Change, ToolOutcome, ToolOutcomeView};
use pod::record::Record;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use testkit::{FnTool, Latch, PodUnderTest};

const F: Call = ("Flaky", "{}");
const SAME: Call = ("Same", "{}");
const BROKEN: [bool; 5] = [false; 5];

/// A pod in which one tool works or fails as this says.
fn breaker(works: &[bool]) -> (PodUnderTest, Seconds) {
    pod(&ID, json!({}), vec![flaky(works), same("Same")])
}

#[test]
fn it_opens_rests_and_tries_exactly_one() {
    let ticks: Arc<Mutex<Option<Seconds>>> = Arc::default();
    let clock = Arc::clone(&ticks);
    let wait = FnTool::new("Wait", ToolEffect::ReadOnly, move |_, _| {
        clock
            .lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .fetch_add(30, Ordering::Relaxed);
        async { Ok(ToolOutput::default()) }
    });
    let works = [&BROKEN[..], &[false, true, true]].concat();
    let (pod, seconds) = pod(&ID, json!({}), vec![flaky(&works), wait]);
    *ticks.lock().unwrap() = Some(seconds);
    let w = ("Wait", "{}");
    let ended = turn(&pod, &[F, F, F, F, F, F, w, F, F, w, F, F]);
    // Five errors open it; after the rest one trial fails and opens it again; after the next, one succeeds.
    assert_eq!(refused(&ended), [5, 8], "{ended:?}");
    assert!(
        ended[5].1.contains("builtin:circuit-breaker") && ended[5].1.contains("rule `open`"),
        "{ended:?}"
    );
    assert_eq!(
        (ended[10].0, ended[11].0),
        (ResultStatus::Ok, ResultStatus::Ok)
    );
    assert_eq!(state(&pod, &ID, "breakers"), json!({}));
}

#[test]
fn only_errors_in_a_row_count_and_only_those_of_one_tool() {
    let nearly = [false, false, false, false, true];
    let (pod, _) = breaker(&[nearly, nearly, nearly].concat());
    assert!(refused(&turn(&pod, &[F; 15])).is_empty());
    let (pod, _) = breaker(&BROKEN);
    assert_eq!(
        refused(&turn(&pod, &[F, F, SAME, F, F, F, SAME, F, SAME])),
        [7]
    );
}

#[test]
fn results_of_one_step_are_counted_in_their_order() {
    let nearly = [false, false, false, false, true];
    for (works, refuses) in [
        ([nearly, nearly].concat(), vec![]),
        ([nearly, [false; 5]].concat(), vec![10]),
    ] {
        let (mut pod, _) = breaker(&works);
        pod.limits.tool_concurrency = 1;
        assert_eq!(refused(&steps_of(&pod, &[&[F; 10], &[F]])), refuses);
    }
}

/// Stands behind the breaker and says when the second call came by.
struct Behind(Latch);

const BEHIND: HookKey<ToolOutcome> = HookKey::new("behind");

impl Behind {
    fn see(&self, view: &ToolOutcomeView) -> Change<ToolOutput> {
        if view.call.call.number() == 2 {
            self.0.open();
        }
        Change::Unchanged
    }
}

impl FeatureModule for Behind {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::builtin("zz-behind"))
            .version("1.0.0")
            .transform(&BEHIND)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.hooks()
            .transform(&BEHIND, &Arc::new(Self(self.0.clone())), Self::see)
            .map(drop)
    }
}

// A success that comes while the error before it is still being written ends the row, too.
#[test]
fn what_is_not_durable_yet_counts() {
    let written = Latch::new("written");
    let seen = Latch::new("seen");
    let calls = AtomicU64::new(0);
    let wait = written.clone();
    let flaky = FnTool::new("Flaky", ToolEffect::ReadOnly, move |_, _| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        let wait = wait.clone();
        async move {
            if call != 1 {
                return Err(ToolError::new(ErrorKind::Unavailable, "broken"));
            }
            wait.pass().await;
            Ok(ToolOutput::default())
        }
    });
    let (mut pod, _) = pod(&ID, json!({}), vec![flaky]);
    let grants = vec![
        HostCapability::hook::<ToolOutcome>(),
        HostCapability::ANY_RESULT,
    ];
    pod.features.push((Arc::new(Behind(seen.clone())), grants));
    pod.paused = false;
    let points = pod.points.clone();
    pod.points.at("commit:tool_finished", 0, move || {
        let before = points
            .came()
            .iter()
            .filter(|name| *name == "journal:written")
            .count();
        points.at("journal:written", before, move || {
            written.open();
            seen.pass_blocking();
        });
    });
    assert!(refused(&steps_of(&pod, &[&[F, F], &[F], &[F], &[F], &[F], &[F]])).is_empty());
}

#[test]
fn of_calls_made_at_once_one_is_the_trial() {
    for (works, after) in [(true, vec![]), (false, vec![3])] {
        let (pod, seconds) = breaker(&[&BROKEN[..], &[works]].concat());
        assert!(refused(&turn(&pod, &[F; 5])).is_empty());
        seconds.fetch_add(30, Ordering::Relaxed);
        let ended = steps_of(&pod, &[&[F, F, F], &[F]]);
        assert_eq!(refused(&ended), [vec![1, 2], after].concat(), "{ended:?}");
        assert!(
            ended[1].1.contains("rule `trial`") && ended[1].1.contains("c00000006"),
            "{ended:?}"
        );
    }
}

#[test]
fn a_restored_pod_goes_on_where_it_was() {
    let (pod, seconds) = breaker(&BROKEN);
    assert!(refused(&turn(&pod, &[F, F, F])).is_empty());
    assert_eq!(refused(&turn(&pod, &[F, F, F])), [2]);
    seconds.fetch_add(10, Ordering::Relaxed);
    let ended = turn(&pod, &[F]);
    assert!(
        refused(&ended) == [0] && ended[0].1.contains("another 20 s"),
        "{ended:?}"
    );
    seconds.fetch_add(20, Ordering::Relaxed);
    assert!(refused(&turn(&pod, &[F, F])).is_empty());
}

#[test]
fn a_clock_that_jumps_back_costs_one_rest_and_no_more() {
    let (pod, seconds) = breaker(&BROKEN);
    turn(&pod, &[F; 5]);
    seconds.store(BEGAN - 1_000_000, Ordering::Relaxed);
    let ended = turn(&pod, &[F]);
    assert!(
        refused(&ended) == [0] && ended[0].1.contains("another 30 s"),
        "{ended:?}"
    );
    seconds.fetch_add(29, Ordering::Relaxed);
    assert_eq!(refused(&turn(&pod, &[F])), [0]);
    seconds.fetch_add(1, Ordering::Relaxed);
    assert!(refused(&turn(&pod, &[F])).is_empty());
}

// The trial was cut off: what became of it is never known, so the next call tries, at once.
#[test]
fn a_trial_without_a_result_is_over_with_its_step() {
    let (pod, seconds) = breaker(&BROKEN);
    turn(&pod, &[F; 5]);
    seconds.fetch_add(30, Ordering::Relaxed);
    pod.points.kill("tool:running", 0);
    drop(play(&pod, &[&[F]]));
    pod.revive();
    pod.script.clear();
    assert_eq!(
        state(&pod, &ID, "breakers"),
        json!({ "Flaky": { "trial": { "call": "c00000006" } } })
    );
    assert_eq!(refused(&steps_of(&pod, &[&[F, F]])), [1]);
}

// What is durable of the results is counted, and the next call is judged by what the log says.
#[test]
fn killed_anywhere_it_judges_by_what_the_log_says() {
    let steps: [&[Call]; 6] = [&[F]; 6];
    let whole = breaker(&BROKEN).0;
    play(&whole, &steps).end();
    let mut opened = 0;
    for (name, nth) in points(&whole) {
        let pod = breaker(&BROKEN).0;
        pod.points.kill(&name, nth);
        drop(play(&pod, &steps));
        pod.revive();
        pod.script.clear();
        // Opening it finds out how far the log goes.
        turn(&pod, &[]);
        let failed = |(_, record): &(u64, Record)| matches!(record, Record::ToolFinished(ended) if ended.outcome.status == ResultStatus::Error);
        let failed = pod.records().iter().filter(|record| failed(record)).count() as u64;
        let breaker = state(&pod, &ID, "breakers")["Flaky"].clone();
        let open = breaker.get("open").is_some();
        let counted = if open {
            5
        } else {
            breaker["closed"]["errors"].as_u64().unwrap_or(0)
        };
        assert!(
            counted >= failed,
            "{name} {nth}: {failed} failed, {breaker}"
        );
        assert_eq!(
            refused(&turn(&pod, &[F])) == [0],
            open,
            "{name} {nth}: {breaker}"
        );
        opened += usize::from(open);
    }
    assert!(opened > 0);
}
