//! What may be recorded of a job, and what is remembered.

use super::*;
use crate::record::{Gap, JobStarter, Record};

fn began(job: u64) -> ChildProcess {
    let feature = "builtin:f".to_owned();
    let command = "sleep 1".to_owned();
    let pid = 7;
    let start = 8;
    let deadline_ms = 9;
    let at_ms = 10;
    ChildProcess {
        job,
        feature,
        starter: JobStarter::Run(3),
        pid,
        start,
        command,
        deadline_ms,
        at_ms,
        ended: None,
    }
}

fn ended(job: u64) -> ChildProcess {
    let ended = Some(JobEnd {
        code: Some(1),
        ms: Some(5),
        ..JobEnd::of(JobEndKind::Exited)
    });
    ChildProcess {
        ended,
        ..began(job)
    }
}

fn refusal(state: &SessionState, record: ChildProcess) -> Option<String> {
    let before = state.clone();
    let mut after = state.clone();
    let why = after.apply(&record.into()).err().map(|illegal| illegal.why);
    assert!(why.is_none() || after == before, "an error changes nothing");
    why
}

#[test]
fn a_job_has_one_beginning_and_one_end() {
    let mut state = SessionState::default();
    assert_eq!(
        refusal(&state, ended(1)).as_deref(),
        Some("that job never began")
    );
    // Two that start together are recorded in any order.
    for record in [began(2), began(1), ended(1)] {
        state.apply(&record.into()).unwrap();
    }
    assert_eq!(
        (
            state.open_jobs().map(|job| job.job).collect::<Vec<_>>(),
            state.job_numbers
        ),
        (vec![2], 2)
    );
    assert_eq!(
        refusal(&state, began(2)).as_deref(),
        Some("that job runs already")
    );
    assert_eq!(
        refusal(&state, began(1)).as_deref(),
        Some("that job has ended")
    );
    assert_eq!(
        refusal(&state, ended(1)).as_deref(),
        Some("that job has ended")
    );
    assert_eq!(state.jobs[&1].ended.as_ref().unwrap().to_string(), "exit 1");
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut state = SessionState::default();
    for job in 1..=200 {
        state.apply(&began(job).into()).unwrap();
        state.apply(&ended(job).into()).unwrap();
    }
    assert_eq!(
        (
            state.jobs.len(),
            state.jobs.first_key_value().map(|(job, _)| *job)
        ),
        (MAX_ENDED_JOBS, Some(137))
    );
    for job in 201..201 + MAX_JOBS as u64 {
        state.apply(&began(job).into()).unwrap();
    }
    assert_eq!(
        refusal(&state, began(300)).as_deref(),
        Some("too many jobs run")
    );
}

/// One of few that run for long, such as a server: its number is low when it ends.
#[test]
fn what_ended_last_is_remembered() {
    let mut state = SessionState::default();
    state.apply(&began(1).into()).unwrap();
    for job in 2..=100 {
        state.apply(&began(job).into()).unwrap();
        // The clock was set back meanwhile.
        let at_ms = 1000 - job;
        state
            .apply(
                &ChildProcess {
                    at_ms,
                    ..ended(job)
                }
                .into(),
            )
            .unwrap();
    }
    state.apply(&ended(1).into()).unwrap();
    assert_eq!(state.jobs.len(), MAX_ENDED_JOBS);
    assert_eq!(state.jobs.keys().copied().collect::<Vec<_>>()[..2], [1, 38]);
    assert_eq!(
        state
            .ended_jobs
            .iter()
            .rev()
            .take(2)
            .copied()
            .collect::<Vec<_>>(),
        [1, 100]
    );
}

/// Its process could not be started.
#[test]
fn a_job_that_did_not_start_is_not_remembered() {
    let mut state = SessionState::default();
    state.apply(&began(1).into()).unwrap();
    let end = Some(JobEnd::of(JobEndKind::NotStarted));
    state
        .apply(
            &ChildProcess {
                ended: end,
                ..began(1)
            }
            .into(),
        )
        .unwrap();
    assert_eq!(
        (state.jobs.len(), state.ended_jobs.len(), state.job_numbers),
        (0, 0, 1)
    );
}

#[test]
fn the_beginning_of_a_job_may_be_among_lost_records() {
    let mut state = SessionState::default();
    state
        .apply(&Record::from(Gap {
            first: 1,
            last: 1,
            reason: None,
        }))
        .unwrap();
    state.apply(&ended(4).into()).unwrap();
    assert_eq!((state.open_jobs().count(), state.job_numbers), (0, 4));
}
