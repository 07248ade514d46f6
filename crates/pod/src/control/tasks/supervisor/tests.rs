//! The supervisor, event by event. Random stories are in `random`.

use super::{
    MAX_OPEN, MAX_SLEEP_MS, RequestTime, Supervisor, SupervisorEffect, SupervisorInput, TaskRunEnd,
    TaskSpec,
};
use crate::feature::{BackgroundTaskDeclaration, Restart, TaskTrigger};
use crate::record::{BackgroundTask, TaskRunState, TriggerKind};
use crate::session::tasks::{TaskEnd, TaskState};
use llm_worker::ToolEffect;
use std::collections::BTreeMap;
use std::time::Duration;

mod journal;
mod random;
mod recovery;
mod world;

const NOW: u64 = 1_800_000_000_000;
const MINUTE: u64 = 60_000;

pub(super) fn spec(
    name: &str,
    effect: ToolEffect,
    triggers: &[TaskTrigger],
    restart: Restart,
) -> TaskSpec {
    let name = name.to_owned();
    let triggers = triggers.to_vec();
    let declaration = BackgroundTaskDeclaration {
        name,
        effect,
        triggers,
        restart,
        deadline_ms: 1_000,
        needs: Vec::new(),
    };
    TaskSpec::new("test:f", &declaration).unwrap()
}

pub(super) fn every(every_ms: u64) -> TaskTrigger {
    TaskTrigger::Interval { every_ms }
}

pub(super) fn cron(expression: &str, zone: &str) -> TaskTrigger {
    TaskTrigger::Cron {
        expression: expression.to_owned(),
        time_zone: zone.to_owned(),
    }
}

fn read_only(triggers: &[TaskTrigger]) -> TaskSpec {
    spec("t", ToolEffect::ReadOnly, triggers, Restart::Never)
}

fn start(specs: &[TaskSpec]) -> Supervisor {
    Supervisor::start(NOW, specs.to_vec(), &BTreeMap::new(), 0)
}

fn start_known(spec: &TaskSpec, known: TaskState) -> Supervisor {
    let runs = known.run;
    let known = BTreeMap::from([(("test:f".to_owned(), spec.task.clone()), known)]);
    Supervisor::start(NOW, vec![spec.clone()], &known, runs)
}

fn last(state: TaskRunState, at_ms: u64) -> TaskEnd {
    TaskEnd {
        run: 7,
        attempt: 2,
        trigger: TriggerKind::Start,
        state,
        reason: None,
        at_ms,
    }
}

/// Effects as short words.
fn told(supervisor: &mut Supervisor) -> Vec<String> {
    std::iter::from_fn(|| supervisor.poll())
        .map(|effect| word(&effect))
        .collect()
}

fn word(effect: &SupervisorEffect) -> String {
    match effect {
        SupervisorEffect::Commit { record, awaited } => {
            let BackgroundTask {
                run,
                state,
                trigger,
                attempt,
                due_ms,
                reason,
                ..
            } = record;
            let wait = if *awaited { "await " } else { "" };
            if *state == TaskRunState::Running {
                let due = i128::from(*due_ms) - i128::from(NOW);
                return format!("{wait}begin {run} {trigger:?} attempt {attempt} due {due}");
            }
            let reason = reason
                .as_ref()
                .map(|reason| format!(": {reason}"))
                .unwrap_or_default();
            format!("{wait}end {run} {}{reason}", state.word())
        }
        SupervisorEffect::Run(run) => format!("run {} of {}", run.record.run, run.task),
        SupervisorEffect::Cancel { run } => format!("cancel {run}"),
        SupervisorEffect::Alert { text, .. } => text.clone(),
    }
}

fn ended(run: u64, end: TaskRunEnd) -> SupervisorInput {
    SupervisorInput::Ended { run, end, ms: 5 }
}

fn failed(run: u64) -> SupervisorInput {
    ended(run, TaskRunEnd::Failed("no disk".to_owned()))
}

fn requested(time: RequestTime) -> SupervisorInput {
    SupervisorInput::Requested {
        feature: "test:f".to_owned(),
        task: "t".to_owned(),
        time,
    }
}

#[track_caller]
fn after(supervisor: &mut Supervisor, at: u64, input: SupervisorInput, wanted: &[&str]) {
    supervisor.handle(NOW + at, input);
    assert_eq!(told(supervisor), wanted);
}

#[test]
fn an_effectful_run_begins_when_its_record_is_durable() {
    let mut it = start(&[spec(
        "t",
        ToolEffect::Effectful,
        &[TaskTrigger::Start],
        Restart::Never,
    )]);
    assert_eq!(told(&mut it), ["await begin 1 Start attempt 1 due 0"]);
    // Nothing runs yet, so nothing can end.
    after(&mut it, 1, ended(1, TaskRunEnd::Completed), &[]);
    after(
        &mut it,
        1,
        SupervisorInput::Committed { run: 1 },
        &["run 1 of 0"],
    );
    after(&mut it, 1, SupervisorInput::Committed { run: 1 }, &[]);
    after(&mut it, 1, SupervisorInput::Refused { run: 1 }, &[]);
    after(
        &mut it,
        2,
        ended(1, TaskRunEnd::Completed),
        &["end 1 completed"],
    );
    after(&mut it, 3, failed(1), &[]);
    assert_eq!(it.next_look(NOW + 3), None);
}

#[test]
fn records_have_what_the_run_was() {
    let mut it = start(&[read_only(&[TaskTrigger::Start])]);
    let Some(SupervisorEffect::Commit {
        record: begun,
        awaited: false,
    }) = it.poll()
    else {
        panic!()
    };
    let Some(SupervisorEffect::Run(run)) = it.poll() else {
        panic!()
    };
    assert_eq!((run.task, &run.record, run.deadline_ms), (0, &begun, 1_000));
    assert_eq!(
        (
            begun.at_ms,
            begun.ms,
            begun.task.as_str(),
            begun.feature.as_str()
        ),
        (NOW, None, "t", "test:f")
    );
    it.handle(NOW + 9, ended(1, TaskRunEnd::TimedOut("é".repeat(300))));
    let Some(SupervisorEffect::Commit {
        record,
        awaited: false,
    }) = it.poll()
    else {
        panic!()
    };
    assert_eq!(record.reason.as_ref().map(String::len), Some(512));
    assert_eq!(
        (record.at_ms, record.ms, record.state),
        (NOW + 9, Some(5), TaskRunState::TimedOut)
    );
    assert_eq!(
        BackgroundTask {
            at_ms: NOW,
            ms: None,
            reason: None,
            state: TaskRunState::Running,
            ..record
        },
        begun
    );
}

/// A full disk costs one attempt a minute, whatever becomes due meanwhile.
#[test]
fn a_refused_run_waits_and_leaves_no_record() {
    let mut it = start(&[spec(
        "t",
        ToolEffect::Effectful,
        &[TaskTrigger::Start, every(1_000)],
        Restart::Never,
    )]);
    assert_eq!(told(&mut it), ["await begin 1 Start attempt 1 due 0"]);
    after(&mut it, 10, SupervisorInput::Refused { run: 1 }, &[]);
    assert_eq!(it.next_look(NOW + 10), Some(NOW + 10 + MINUTE));
    after(&mut it, 5_000, SupervisorInput::Woke, &[]);
    after(
        &mut it,
        10 + MINUTE,
        SupervisorInput::Woke,
        &["await begin 2 Interval attempt 1 due 60000"],
    );
    // The clock is set back while it waits again: still at most a minute.
    after(
        &mut it,
        20 + MINUTE,
        SupervisorInput::Refused { run: 2 },
        &[],
    );
    after(&mut it, 0, SupervisorInput::Woke, &[]);
    assert_eq!(it.next_look(NOW), Some(NOW + MINUTE));
    after(&mut it, 1, SupervisorInput::Close, &[]);
    assert!(it.is_done());
}

/// It is a run that was cancelled, not a task that is off.
#[test]
fn a_run_that_a_person_stops_ends_and_the_task_goes_on() {
    let mut it = start(&[read_only(&[TaskTrigger::Start, every(MINUTE)])]);
    assert_eq!(
        told(&mut it),
        ["begin 1 Start attempt 1 due 0", "run 1 of 0"]
    );
    after(&mut it, 1, SupervisorInput::Stopped { run: 2 }, &[]);
    after(
        &mut it,
        1,
        SupervisorInput::Stopped { run: 1 },
        &["cancel 1"],
    );
    after(&mut it, 2, SupervisorInput::Stopped { run: 1 }, &[]);
    after(
        &mut it,
        3,
        ended(1, TaskRunEnd::Cancelled),
        &["end 1 cancelled: a person stopped it"],
    );
    after(
        &mut it,
        MINUTE,
        SupervisorInput::Woke,
        &["begin 2 Interval attempt 1 due 60000", "run 2 of 0"],
    );
    let mut it = start(&[spec(
        "t",
        ToolEffect::Effectful,
        &[TaskTrigger::Start],
        Restart::Never,
    )]);
    told(&mut it);
    after(&mut it, 1, SupervisorInput::Stopped { run: 1 }, &[]);
    after(
        &mut it,
        2,
        SupervisorInput::Committed { run: 1 },
        &["end 1 cancelled: a person stopped it"],
    );
}

#[test]
fn eight_run_and_the_rest_wait_in_order() {
    let names: Vec<String> = (0..12).map(|at| format!("t{at}")).collect();
    let later = |at: u64| every(if at < 8 { 1_000 } else { 1_100 - at });
    let specs = names
        .iter()
        .zip(0..)
        .map(|(name, at)| spec(name, ToolEffect::ReadOnly, &[later(at)], Restart::Never));
    let mut it = start(&specs.collect::<Vec<_>>());
    assert_eq!(told(&mut it), [""; 0]);
    it.handle(NOW + 1_000, SupervisorInput::Woke);
    assert_eq!(told(&mut it).len(), 2 * MAX_OPEN);
    assert_eq!(it.next_look(NOW + 1_000), Some(NOW + 1_089));
    // Due together at the next look: those of the earlier times first.
    after(&mut it, 1_100, SupervisorInput::Woke, &[]);
    assert_eq!(
        it.next_look(NOW + 1_100),
        None,
        "what waits for an end needs no look"
    );
    after(
        &mut it,
        1_101,
        ended(3, TaskRunEnd::Completed),
        &[
            "end 3 completed",
            "begin 9 Interval attempt 1 due 1089",
            "run 9 of 11",
        ],
    );
    let last = [
        "end 1 completed",
        "begin 10 Interval attempt 1 due 1090",
        "run 10 of 10",
    ];
    after(&mut it, 1_102, ended(1, TaskRunEnd::Completed), &last);
}

/// A task that ran before waits behind those that were due earlier.
#[test]
fn a_place_is_given_anew() {
    let names: Vec<String> = (0..10).map(|at| format!("t{at}")).collect();
    let on_request = |name: &String| {
        spec(
            name,
            ToolEffect::ReadOnly,
            &[TaskTrigger::Request],
            Restart::Never,
        )
    };
    let mut it = start(&names.iter().map(on_request).collect::<Vec<_>>());
    let request = |task: &String| {
        let feature = "test:f".to_owned();
        let task = task.clone();
        SupervisorInput::Requested {
            feature,
            task,
            time: RequestTime::Now,
        }
    };
    it.handle(NOW, request(&names[0]));
    it.handle(NOW, ended(1, TaskRunEnd::Completed));
    for name in names.iter().skip(1).chain(names.first()) {
        it.handle(NOW, request(name));
    }
    told(&mut it);
    after(
        &mut it,
        1,
        ended(2, TaskRunEnd::Completed),
        &[
            "end 2 completed",
            "begin 10 Request attempt 1 due 0",
            "run 10 of 9",
        ],
    );
    after(
        &mut it,
        1,
        ended(3, TaskRunEnd::Completed),
        &[
            "end 3 completed",
            "begin 11 Request attempt 1 due 0",
            "run 11 of 0",
        ],
    );
}

/// One run for all times that passed while it ran, and the newest of them is in its record.
#[test]
fn due_times_of_a_running_task_merge() {
    let mut it = start(&[read_only(&[every(1_000), TaskTrigger::Request])]);
    after(
        &mut it,
        1_000,
        SupervisorInput::Woke,
        &["begin 1 Interval attempt 1 due 1000", "run 1 of 0"],
    );
    assert_eq!(it.next_look(NOW + 1_000), None);
    after(&mut it, 4_200, requested(RequestTime::Now), &[]);
    let wanted = [
        "end 1 completed",
        "begin 2 Interval attempt 1 due 5000",
        "run 2 of 0",
    ];
    after(&mut it, 5_700, ended(1, TaskRunEnd::Completed), &wanted);
    after(
        &mut it,
        5_800,
        ended(2, TaskRunEnd::Completed),
        &["end 2 completed"],
    );
    assert_eq!(it.next_look(NOW + 5_800), Some(NOW + 6_000));
}

#[test]
fn requests_for_now_and_for_a_time() {
    let mut it = start(&[read_only(&[TaskTrigger::Request])]);
    assert_eq!(it.next_look(NOW), None);
    after(&mut it, 0, requested(RequestTime::At(NOW + 500)), &[]);
    after(&mut it, 0, requested(RequestTime::At(NOW + 900)), &[]);
    after(
        &mut it,
        1,
        requested(RequestTime::Now),
        &["begin 1 Request attempt 1 due 1", "run 1 of 0"],
    );
    after(
        &mut it,
        2,
        ended(1, TaskRunEnd::Completed),
        &["end 1 completed"],
    );
    assert_eq!(it.next_look(NOW + 2), Some(NOW + 900));
    after(&mut it, 3, requested(RequestTime::Clear), &[]);
    assert_eq!(it.next_look(NOW + 3), None);
    after(
        &mut it,
        4,
        requested(RequestTime::At(NOW - 5)),
        &["begin 2 Request attempt 1 due -5", "run 2 of 0"],
    );
    // Of no effect: another task, and one that takes no requests.
    let other = SupervisorInput::Requested {
        feature: "test:f".into(),
        task: "u".into(),
        time: RequestTime::Now,
    };
    after(&mut it, 5, other, &[]);
    let mut it = start(&[read_only(&[every(1_000)])]);
    after(&mut it, 5, requested(RequestTime::Now), &[]);
}

/// Far times are looked at once an hour: the machine may sleep, and the clock may be set.
#[test]
fn looks_are_bounded() {
    let it = start(&[read_only(&[every(40 * MAX_SLEEP_MS)])]);
    assert_eq!(it.next_look(NOW), Some(NOW + MAX_SLEEP_MS));
    assert_eq!(
        it.next_look(NOW + 39 * MAX_SLEEP_MS + 5),
        Some(NOW + 40 * MAX_SLEEP_MS)
    );
}

#[test]
fn failures_restart_up_to_the_limit() {
    let rule = Restart::OnFailure {
        max: 2,
        within: Duration::from_secs(3600),
        backoff: Duration::from_secs(10),
    };
    let mut it = start(&[spec(
        "t",
        ToolEffect::ReadOnly,
        &[TaskTrigger::Start, TaskTrigger::Request],
        rule,
    )]);
    assert_eq!(
        told(&mut it),
        ["begin 1 Start attempt 1 due 0", "run 1 of 0"]
    );
    after(&mut it, 1_000, failed(1), &["end 1 failed: no disk"]);
    assert_eq!(it.next_look(NOW + 1_000), Some(NOW + 11_000));
    after(
        &mut it,
        11_000,
        SupervisorInput::Woke,
        &["begin 2 Restart attempt 2 due 11000", "run 2 of 0"],
    );
    after(
        &mut it,
        12_000,
        ended(2, TaskRunEnd::TimedOut("slow".into())),
        &["end 2 timed_out: slow"],
    );
    after(
        &mut it,
        22_000,
        SupervisorInput::Woke,
        &["begin 3 Restart attempt 3 due 22000", "run 3 of 0"],
    );
    let off = "background task `t` failed 3 times within 1h; it does not run until the pod is started again";
    after(&mut it, 23_000, failed(3), &["end 3 failed: no disk", off]);
    after(&mut it, 24_000, requested(RequestTime::Now), &[]);
    assert_eq!(it.next_look(NOW + 24_000), None);
}

/// A feature that was disabled is not told of again.
#[test]
fn a_task_that_is_off_has_no_alert() {
    let rule = Restart::OnFailure {
        max: 1,
        within: Duration::from_secs(3600),
        backoff: Duration::from_secs(10),
    };
    let mut it = start(&[spec("t", ToolEffect::ReadOnly, &[TaskTrigger::Start], rule)]);
    told(&mut it);
    after(&mut it, 0, failed(1), &["end 1 failed: no disk"]);
    after(
        &mut it,
        10_000,
        SupervisorInput::Woke,
        &["begin 2 Restart attempt 2 due 10000", "run 2 of 0"],
    );
    after(
        &mut it,
        11_000,
        SupervisorInput::Disabled {
            feature: "test:f".into(),
        },
        &["cancel 2"],
    );
    after(&mut it, 12_000, failed(2), &["end 2 failed: no disk"]);
}

/// Failures outside of the window, ends without a failure and cancelled runs count for nothing.
#[test]
fn what_is_no_failure_restarts_nothing() {
    let rule = Restart::OnFailure {
        max: 1,
        within: Duration::from_secs(60),
        backoff: Duration::from_secs(10),
    };
    let mut it = start(&[spec(
        "t",
        ToolEffect::ReadOnly,
        &[TaskTrigger::Start, TaskTrigger::Request],
        rule,
    )]);
    told(&mut it);
    after(&mut it, 0, failed(1), &["end 1 failed: no disk"]);
    after(
        &mut it,
        10_000,
        SupervisorInput::Woke,
        &["begin 2 Restart attempt 2 due 10000", "run 2 of 0"],
    );
    after(&mut it, 60_000, failed(2), &["end 2 failed: no disk"]);
    // A request while the restart is pending is the restart.
    after(
        &mut it,
        61_000,
        requested(RequestTime::Now),
        &["begin 3 Request attempt 1 due 61000", "run 3 of 0"],
    );
    after(
        &mut it,
        62_000,
        ended(3, TaskRunEnd::Completed),
        &["end 3 completed"],
    );
    assert_eq!(it.next_look(NOW + 62_000), None);
    after(
        &mut it,
        63_000,
        requested(RequestTime::Now),
        &["begin 4 Request attempt 1 due 63000", "run 4 of 0"],
    );
    after(
        &mut it,
        64_000,
        ended(4, TaskRunEnd::Cancelled),
        &["end 4 cancelled"],
    );
    assert_eq!(it.next_look(NOW + 64_000), None);
}

#[test]
fn always_restarts_and_slows_down_while_it_fails() {
    let rule = Restart::Always {
        backoff: Duration::from_secs(10),
    };
    let mut it = start(&[spec(
        "t",
        ToolEffect::Effectful,
        &[TaskTrigger::Start],
        rule,
    )]);
    let mut at = 0;
    let mut pauses = Vec::new();
    for run in 1..=14 {
        it.handle(NOW + at, SupervisorInput::Woke);
        it.handle(NOW + at, SupervisorInput::Committed { run });
        it.handle(
            NOW + at,
            if run % 13 == 0 {
                ended(run, TaskRunEnd::Completed)
            } else {
                failed(run)
            },
        );
        assert!(
            told(&mut it)
                .last()
                .unwrap()
                .starts_with(&format!("end {run} "))
        );
        let restart = it.slots[0].next_due().unwrap() - NOW;
        pauses.push((restart - at) / 1_000);
        at = restart;
    }
    assert_eq!(
        pauses,
        [
            10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600, 10, 10
        ]
    );
    // Set back by a year, it still restarts within the pause.
    it.handle(5, SupervisorInput::Woke);
    assert_eq!(it.next_look(5), Some(5 + 10_000));
}

#[test]
fn disabled_and_closed_tasks_end() {
    let all = [TaskTrigger::Start, every(1_000), TaskTrigger::Request];
    let specs = [
        spec(
            "t",
            ToolEffect::ReadOnly,
            &all,
            Restart::Always {
                backoff: Duration::from_secs(1),
            },
        ),
        spec("u", ToolEffect::Effectful, &all, Restart::Never),
    ];
    for (input, why) in [
        (SupervisorInput::Close, "the pod ended"),
        (
            SupervisorInput::Disabled {
                feature: "test:f".into(),
            },
            "the feature was disabled",
        ),
    ] {
        let mut it = start(&specs);
        let begun = [
            "begin 1 Start attempt 1 due 0",
            "run 1 of 0",
            "await begin 2 Start attempt 1 due 0",
        ];
        assert_eq!(told(&mut it), begun);
        after(&mut it, 1, input.clone(), &["cancel 1"]);
        after(&mut it, 2, input.clone(), &[]);
        after(&mut it, 3, requested(RequestTime::Now), &[]);
        assert!(!it.is_done());
        let unrun = format!("end 2 cancelled: {why}");
        after(&mut it, 3, SupervisorInput::Committed { run: 2 }, &[&unrun]);
        let stopped = format!("end 1 cancelled: {why}");
        after(&mut it, 4, ended(1, TaskRunEnd::Cancelled), &[&stopped]);
        after(&mut it, 9_999, SupervisorInput::Woke, &[]);
        assert_eq!(it.next_look(NOW + 9_999), None);
        assert_eq!(it.is_done(), input == SupervisorInput::Close);
    }
    let mut it = start(&specs);
    told(&mut it);
    after(
        &mut it,
        1,
        SupervisorInput::Disabled {
            feature: "test:g".into(),
        },
        &[],
    );
}

#[test]
fn events_before_a_run_are_one_run_and_a_second_apart() {
    let rang = || SupervisorInput::Triggered {
        feature: "test:f".to_owned(),
        task: "t".to_owned(),
        trigger: TriggerKind::ServiceEvent,
    };
    let begins = |run: u64, due: u64| {
        [
            format!("begin {run} ServiceEvent attempt 1 due {due}"),
            format!("run {run} of 0"),
        ]
    };
    let mut it = start(&[read_only(&[TaskTrigger::Request])]);
    it.handle(NOW + 10, rang());
    assert_eq!(told(&mut it), begins(1, 10));
    // During the run, and within a second of its beginning.
    after(&mut it, 20, rang(), &[]);
    after(&mut it, 30, rang(), &[]);
    after(
        &mut it,
        40,
        ended(1, TaskRunEnd::Completed),
        &["end 1 completed"],
    );
    after(&mut it, 50, rang(), &[]);
    assert_eq!(it.next_look(NOW + 50), Some(NOW + 1_010));
    it.handle(NOW + 1_010, SupervisorInput::Woke);
    assert_eq!(told(&mut it), begins(2, 1_010));
    after(
        &mut it,
        1_020,
        ended(2, TaskRunEnd::Completed),
        &["end 2 completed"],
    );
    assert_eq!(it.next_look(NOW + 1_020), None);
    // Set back by an hour, the clock does not delay an event by an hour.
    let hour = 60 * MINUTE;
    it.handle(NOW + hour, rang());
    assert_eq!(told(&mut it), begins(3, hour));
    after(
        &mut it,
        hour + 1,
        ended(3, TaskRunEnd::Completed),
        &["end 3 completed"],
    );
    after(&mut it, hour + 2, rang(), &[]);
    after(&mut it, 0, SupervisorInput::Woke, &[]);
    assert_eq!(it.next_look(NOW), Some(NOW + 1_000));
    after(
        &mut it,
        1,
        SupervisorInput::Disabled {
            feature: "test:f".into(),
        },
        &[],
    );
    after(&mut it, 5_000, rang(), &[]);
    assert_eq!(it.next_look(NOW + 5_000), None);
}
