//! What a start makes of what the journal knows, and jumps of the clock.

use super::{
    MINUTE, NOW, RequestTime, SupervisorInput, after, cron, ended, every, failed, last, read_only,
    spec, start, start_known, told,
};
use crate::control::tasks::supervisor::TaskRunEnd;
use crate::feature::{Restart, TaskTrigger};
use crate::record::TaskRunState;
use crate::session::tasks::TaskState;
use llm_worker::ToolEffect;
use std::time::Duration;

const HOUR: u64 = 60 * MINUTE;

fn due(last_due_ms: u64) -> TaskState {
    TaskState {
        run: 7,
        last_due_ms: Some(last_due_ms),
        ..TaskState::default()
    }
}

/// NOW is 08:00 on 15 January 2027.
#[test]
fn a_missed_schedule_runs_once() {
    let interval = read_only(&[every(HOUR)]);
    let daily = read_only(&[cron("0 9 * * *", "Europe/Berlin")]);
    for (spec, known, wanted) in [
        (&interval, NOW - HOUR + 1, None),
        (
            &interval,
            NOW - HOUR,
            Some("begin 8 Interval attempt 1 due 0"),
        ),
        (
            &interval,
            NOW - 100 * HOUR - 5,
            Some("begin 8 Interval attempt 1 due -5"),
        ),
        // From before the clock was set back.
        (&interval, NOW + 100 * HOUR, None),
        (&daily, NOW, None),
        (&daily, NOW - 1, Some("begin 8 Cron attempt 1 due 0")),
        (
            &daily,
            NOW - 1000 * HOUR,
            Some("begin 8 Cron attempt 1 due 0"),
        ),
        (&daily, NOW + 100 * HOUR, None),
    ] {
        let mut it = start_known(spec, due(known));
        let first = told(&mut it).first().cloned();
        assert_eq!(
            first.as_deref(),
            wanted,
            "{:?} after {known}",
            spec.schedules
        );
        if wanted.is_some() {
            it.handle(NOW, ended(8, TaskRunEnd::Completed));
        }
        assert!(
            it.next_look(NOW)
                .is_some_and(|look| look > NOW && look <= NOW + HOUR)
        );
    }
}

#[test]
fn a_schedule_that_never_ran_begins_with_the_start() {
    let mut it = start(&[
        read_only(&[every(HOUR / 2)]),
        read_only(&[cron("1 9 * * *", "Europe/Berlin")]),
    ]);
    assert_eq!(it.next_look(NOW), Some(NOW + MINUTE));
    after(
        &mut it,
        MINUTE,
        SupervisorInput::Woke,
        &["begin 1 Cron attempt 1 due 60000", "run 1 of 1"],
    );
    assert_eq!(it.next_look(NOW + MINUTE), Some(NOW + HOUR / 2));
}

#[test]
fn a_clock_that_is_set_forward_gives_one_run() {
    for trigger in [every(MINUTE), cron("* * * * *", "UTC")] {
        let mut it = start(&[read_only(&[trigger])]);
        it.handle(NOW + 9 * 24 * HOUR + 7, SupervisorInput::Woke);
        let told = told(&mut it);
        assert!(
            told[0].ends_with(&format!("due {}", 9 * 24 * HOUR)),
            "{told:?}"
        );
        it.handle(NOW + 9 * 24 * HOUR + 8, ended(1, TaskRunEnd::Completed));
        assert_eq!(
            it.next_look(NOW + 9 * 24 * HOUR + 8),
            Some(NOW + 9 * 24 * HOUR + MINUTE)
        );
    }
}

#[test]
fn a_clock_that_is_set_back_silences_nothing() {
    for (trigger, wanted) in [
        (every(20 * MINUTE), 20 * MINUTE),
        (cron("*/15 * * * *", "UTC"), 15 * MINUTE),
    ] {
        let mut it = start(&[read_only(&[trigger])]);
        it.handle(NOW + HOUR, SupervisorInput::Woke);
        it.handle(NOW + HOUR, ended(1, TaskRunEnd::Completed));
        let year = 365 * 24 * HOUR;
        // Looked at again and again, the due time does not move away.
        for at in [0, 1, 2] {
            it.handle(NOW - year + at, SupervisorInput::Woke);
        }
        assert_eq!(it.next_look(NOW - year + 2), Some(NOW - year + wanted));
    }
}

/// Time synchronisation moves the clock by seconds; that is no reason to run twice.
#[test]
fn a_small_step_back_repeats_no_cron_time() {
    let mut it = start(&[read_only(&[cron("*/15 * * * *", "UTC")])]);
    let wanted = ["begin 1 Cron attempt 1 due 900000", "run 1 of 0"];
    after(&mut it, 15 * MINUTE, SupervisorInput::Woke, &wanted);
    after(
        &mut it,
        15 * MINUTE,
        ended(1, TaskRunEnd::Completed),
        &["end 1 completed"],
    );
    after(&mut it, 10 * MINUTE, SupervisorInput::Woke, &[]);
    assert_eq!(it.next_look(NOW + 10 * MINUTE), Some(NOW + 30 * MINUTE));
    after(&mut it, 10 * MINUTE - 1, SupervisorInput::Woke, &[]);
    assert_eq!(
        it.next_look(NOW + 10 * MINUTE - 1),
        Some(NOW + 15 * MINUTE),
        "that was set by a person"
    );
}

#[test]
fn what_failed_before_the_start_is_repeated() {
    let limit = Restart::OnFailure {
        max: 3,
        within: Duration::from_secs(3600),
        backoff: Duration::from_secs(60),
    };
    let always = Restart::Always {
        backoff: Duration::from_secs(60),
    };
    let reads = ToolEffect::ReadOnly;
    let writes = ToolEffect::Effectful;
    for (restart, effect, state, wanted) in [
        (Restart::Never, reads, TaskRunState::Failed, false),
        (limit, reads, TaskRunState::Failed, true),
        (limit, reads, TaskRunState::Orphaned, true),
        (limit, writes, TaskRunState::TimedOut, true),
        // It may have had its effect.
        (limit, writes, TaskRunState::Orphaned, false),
        (limit, reads, TaskRunState::Cancelled, false),
        (limit, reads, TaskRunState::Completed, false),
        (always, writes, TaskRunState::Orphaned, true),
        (always, reads, TaskRunState::Cancelled, true),
    ] {
        for (at, pause) in [(NOW - 20_000, 40_000), (NOW + HOUR, 60_000)] {
            let known = TaskState {
                run: 7,
                last: Some(last(state, at)),
                ..TaskState::default()
            };
            let mut it = start_known(&spec("t", effect, &[TaskTrigger::Request], restart), known);
            assert_eq!(told(&mut it), [""; 0]);
            let look = it.next_look(NOW);
            assert_eq!(
                look,
                wanted.then_some(NOW + pause),
                "{restart:?} {effect:?} {state:?}"
            );
            it.handle(NOW + pause, SupervisorInput::Woke);
            let begun = told(&mut it)
                .first()
                .is_some_and(|told| told.contains("begin 8 Restart attempt 3"));
            assert_eq!(begun, wanted, "{restart:?} {effect:?} {state:?}");
        }
    }
}

/// A task that ends its host would end each new one.
#[test]
fn a_task_that_ends_its_hosts_stays_off() {
    let restart = Restart::OnFailure {
        max: 2,
        within: Duration::from_secs(60),
        backoff: Duration::from_secs(1),
    };
    let t = spec(
        "t",
        ToolEffect::ReadOnly,
        &[TaskTrigger::Start, every(1_000)],
        restart,
    );
    let known = |state, times: [u64; 3]| {
        let last = Some(last(state, NOW - 5));
        let failures = times.into();
        TaskState {
            run: 7,
            last,
            failures,
            ..TaskState::default()
        }
    };
    let recent = [NOW - 30_000, NOW - 20_000, NOW - 5];
    let mut it = start_known(&t, known(TaskRunState::Orphaned, recent));
    assert_eq!(
        told(&mut it),
        [
            "background task `t` failed 3 times within 1m; it does not run until the pod is started again"
        ]
    );
    assert_eq!(it.next_look(NOW), None);
    // Out of the window: it may try.
    let mut it = start_known(
        &t,
        known(
            TaskRunState::Orphaned,
            [NOW - 60_000, NOW - 20_000, NOW - 5],
        ),
    );
    assert_eq!(
        told(&mut it),
        ["begin 8 Start attempt 1 due 0", "run 8 of 0"]
    );
    // Those before the start count, too.
    let off = "background task `t` failed 3 times within 1m; it does not run until the pod is started again";
    after(&mut it, 5, failed(8), &["end 8 failed: no disk", off]);
    // A host that lived on switched it off; the start is a new budget.
    let mut it = start_known(&t, known(TaskRunState::Failed, recent));
    assert_eq!(
        told(&mut it),
        ["begin 8 Start attempt 1 due 0", "run 8 of 0"]
    );
    after(&mut it, 5, failed(8), &["end 8 failed: no disk"]);
}

/// A feature computed the time from a clock that was wrong; without a run it would wait until the old time comes.
#[test]
fn a_requested_time_is_asked_for_again_after_a_far_step_back() {
    for (back, look) in [(MINUTE, Some(NOW + 10 * MINUTE)), (24 * HOUR, None)] {
        let mut it = start(&[read_only(&[TaskTrigger::Request])]);
        let feature = "test:f".to_owned();
        let task = "t".to_owned();
        let time = RequestTime::At(NOW + 10 * MINUTE);
        after(
            &mut it,
            0,
            SupervisorInput::Requested {
                feature,
                task,
                time,
            },
            &[],
        );
        it.handle(NOW - back, SupervisorInput::Woke);
        let began = told(&mut it);
        assert_eq!(
            (began.is_empty(), it.next_look(NOW - back)),
            (look.is_some(), look),
            "{began:?}"
        );
    }
}
