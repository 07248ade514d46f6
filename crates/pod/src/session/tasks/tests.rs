//! One rule of background tasks in each test: what a record of a run changes in the state, and what cannot follow.

use super::{MAX_TASK_FAILURES, MAX_TASKS, TaskState};
use crate::record::{BackgroundTask, Gap, MAX_TASK_REASON, TaskRunState, TriggerKind};
use crate::session::fold::SessionState;
use llm_worker::ToolEffect;

fn run(number: u64, task: &str, state: TaskRunState) -> BackgroundTask {
    let ends = state != TaskRunState::Running;
    BackgroundTask {
        run: number,
        feature: "builtin:f".to_owned(),
        task: task.to_owned(),
        trigger: TriggerKind::Interval,
        attempt: 1,
        due_ms: number * 1000,
        at_ms: number * 1000 + u64::from(ends),
        effect: ToolEffect::Effectful,
        state,
        reason: None,
        ms: ends.then_some(1),
        jobs: Vec::new(),
    }
}

fn running(number: u64, task: &str) -> BackgroundTask {
    run(number, task, TaskRunState::Running)
}

/// The state behind these records, all of which are legal.
fn folded(records: impl IntoIterator<Item = BackgroundTask>) -> SessionState {
    let mut state = SessionState::default();
    for record in records {
        state.apply(&record.into()).unwrap();
    }
    state
}

fn of<'a>(state: &'a SessionState, task: &str) -> &'a TaskState {
    &state.tasks[&("builtin:f".to_owned(), task.to_owned())]
}

fn why(state: &SessionState, record: BackgroundTask) -> String {
    let mut after = state.clone();
    let refused = after.apply(&record.into()).unwrap_err();
    assert_eq!(&after, state, "an error changes nothing");
    refused.why
}

#[test]
fn a_run_is_open_until_its_one_end() {
    let mut state = folded([running(1, "a"), running(2, "b")]);
    let open: Vec<_> = state
        .open_tasks()
        .map(|((_, task), open)| (task.as_str(), open.run, open.began_ms))
        .collect();
    assert_eq!(open, [("a", 1, 1000), ("b", 2, 2000)]);
    let end = BackgroundTask {
        reason: Some("why".to_owned()),
        ..run(1, "a", TaskRunState::Failed)
    };
    state.apply(&end.clone().into()).unwrap();
    assert_eq!((state.open_tasks().count(), state.task_runs), (1, 2));
    let last = of(&state, "a").last.as_ref().unwrap();
    assert_eq!(
        (last.run, last.state, last.reason.as_deref(), last.at_ms),
        (1, end.state, Some("why"), 1001)
    );
    for again in [end, run(1, "a", TaskRunState::Completed)] {
        assert!(why(&state, again).contains("has ended"));
    }
}

#[test]
fn a_task_has_one_run_at_a_time_and_numbers_rise() {
    let state = folded([running(3, "a")]);
    assert!(why(&state, running(4, "a")).contains("another run of that task is open"));
    assert!(
        why(&state, run(4, "a", TaskRunState::Completed))
            .contains("another run of that task is open")
    );
    for given in [3, 2, 0] {
        assert!(why(&state, running(given, "b")).contains("given before"));
    }
    folded([running(3, "a"), running(5, "b")]);
}

/// A run without effects may need no record of its beginning: its number may be lower than that of another task's run
/// that began later.
#[test]
fn only_a_run_without_effects_needs_no_beginning() {
    let alone = |state| BackgroundTask {
        effect: ToolEffect::ReadOnly,
        ..run(4, "b", state)
    };
    let state = folded([running(5, "a")]);
    let mut after = state.clone();
    after.apply(&alone(TaskRunState::Completed).into()).unwrap();
    assert_eq!((of(&after, "b").run, after.task_runs), (4, 5));
    assert!(why(&after, alone(TaskRunState::Completed)).contains("has ended"));
    assert!(why(&state, alone(TaskRunState::Orphaned)).contains("never began"));
    let effectful = run(6, "b", TaskRunState::Cancelled);
    assert!(why(&state, effectful.clone()).contains("effectful run never began"));
    assert!(
        why(&state, run(6, "b", TaskRunState::Completed)).contains("effectful run never began")
    );
    state
        .clone()
        .apply(
            &BackgroundTask {
                ms: None,
                ..effectful
            }
            .into(),
        )
        .unwrap();
}

#[test]
fn a_schedule_goes_on_from_its_newest_due_time() {
    let unscheduled = |trigger| BackgroundTask {
        trigger,
        effect: ToolEffect::ReadOnly,
        ..run(9, "a", TaskRunState::Completed)
    };
    let first = folded([running(7, "a")]);
    assert_eq!(
        of(&first, "a").last_due_ms,
        Some(7000),
        "known while it runs"
    );
    let ended = folded([running(7, "a"), run(7, "a", TaskRunState::Completed)]);
    for trigger in [
        TriggerKind::Start,
        TriggerKind::Request,
        TriggerKind::Restart,
    ] {
        let mut state = ended.clone();
        state.apply(&unscheduled(trigger).into()).unwrap();
        assert_eq!(of(&state, "a").last_due_ms, Some(7000), "{trigger:?}");
    }
    // The clock was set back.
    let mut state = ended;
    state
        .apply(
            &BackgroundTask {
                due_ms: 10,
                ..running(8, "a")
            }
            .into(),
        )
        .unwrap();
    assert_eq!(of(&state, "a").last_due_ms, Some(10));
}

#[test]
fn failures_are_remembered_for_the_restart_rule() {
    let mut state = SessionState::default();
    let ends = [
        TaskRunState::Failed,
        TaskRunState::TimedOut,
        TaskRunState::Orphaned,
        TaskRunState::Completed,
        TaskRunState::Cancelled,
    ];
    for number in 1..=100_u64 {
        state.apply(&running(number, "a").into()).unwrap();
        let end = ends[(number % 5) as usize];
        state.apply(&run(number, "a", end).into()).unwrap();
    }
    let failures = &of(&state, "a").failures;
    assert_eq!(
        (failures.len(), failures.back()),
        (MAX_TASK_FAILURES, Some(&100_001))
    );
    assert!(failures.iter().all(|at| at / 1000 % 5 < 3), "{failures:?}");
}

#[test]
fn what_is_kept_of_tasks_is_bounded() {
    let mut state = folded([running(1, "open")]);
    for number in 2..=MAX_TASKS as u64 + 3 {
        let end = BackgroundTask {
            effect: ToolEffect::ReadOnly,
            ..run(number, &format!("t{number}"), TaskRunState::Failed)
        };
        let reason = Some("é".repeat(MAX_TASK_REASON));
        state
            .apply(&BackgroundTask { reason, ..end }.into())
            .unwrap();
    }
    assert_eq!(state.tasks.len(), MAX_TASKS);
    assert!(
        of(&state, "open").open.is_some(),
        "an open run is never forgotten"
    );
    let names = ["t2", "t3", "t4", "t5"].map(|name| {
        state
            .tasks
            .contains_key(&("builtin:f".to_owned(), name.to_owned()))
    });
    assert_eq!(
        names,
        [false, false, false, true],
        "the one that ran longest ago is forgotten first"
    );
    assert_eq!(
        of(&state, "t5")
            .last
            .as_ref()
            .unwrap()
            .reason
            .as_ref()
            .unwrap()
            .len(),
        MAX_TASK_REASON
    );
    let mut state =
        folded((1..=MAX_TASKS as u64).map(|number| running(number, &format!("t{number}"))));
    assert!(why(&state, running(9999, "one more")).contains("too many"));
    state
        .apply(&run(1, "t1", TaskRunState::Completed).into())
        .unwrap();
    state.apply(&running(9999, "one more").into()).unwrap();
}

/// Behind lost records a run may have begun or ended in them.
#[test]
fn behind_lost_records_runs_go_on() {
    let mut state = folded([running(1, "a"), running(2, "b")]);
    state
        .apply(
            &Gap {
                first: 3,
                last: 9,
                reason: None,
            }
            .into(),
        )
        .unwrap();
    state
        .apply(&run(1, "a", TaskRunState::Completed).into())
        .unwrap();
    state.apply(&running(5, "b").into()).unwrap();
    state
        .apply(&run(4, "c", TaskRunState::Orphaned).into())
        .unwrap();
    assert!(why(&state, run(4, "c", TaskRunState::Completed)).contains("has ended"));
    let open: Vec<_> = state.open_tasks().map(|(_, open)| open.run).collect();
    assert_eq!(
        (open, of(&state, "b").last_due_ms, state.task_runs),
        (vec![5], Some(5000), 5)
    );
}
