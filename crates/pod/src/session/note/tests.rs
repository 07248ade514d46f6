//! Bounds of pins, and what a note says.

use super::*;
use crate::record::{
    ChildProcess, CompactRequested, InputConsumed, InputMode, InputQueued, JobEnd, JobEndKind,
    JobStarter, Pinned, Record, TurnFinished, TurnStarted, Unpinned,
};
use crate::session::queue::QueuedInput;
use crate::session::standing::{MAX_PIN, MAX_PINNED, MAX_PINS, StandingFacts};
use llm_worker::effect::Outcome;

fn pin(state: &mut SessionState, pin: u64, text: &str) {
    state
        .apply(
            &Pinned {
                pin,
                text: text.to_owned(),
                by: None,
            }
            .into(),
        )
        .unwrap();
}

#[test]
fn pins_have_bounds_and_numbers_that_rise() {
    let mut state = SessionState::default();
    let refused = |state: &SessionState, text: &str| state.standing.refusal(text).is_some();
    assert!(
        refused(&state, " \n")
            && refused(&state, &"x".repeat(MAX_PIN + 1))
            && !refused(&state, &"x".repeat(MAX_PIN))
    );
    for number in 1..=(MAX_PINNED / MAX_PIN) as u64 {
        pin(&mut state, number, &"x".repeat(MAX_PIN));
    }
    assert!(refused(&state, "x"), "all texts together");
    assert!(
        state
            .apply(
                &Pinned {
                    pin: 3,
                    text: "again".to_owned(),
                    by: None
                }
                .into()
            )
            .is_err()
    );
    let mut many = SessionState::default();
    (1..=MAX_PINS as u64).for_each(|number| pin(&mut many, number, "x"));
    assert!(refused(&many, "x"), "the number of pins");
    many.apply(&Unpinned { pin: 7, by: None }.into()).unwrap();
    assert!(!refused(&many, "x"));
    many.apply(&Unpinned { pin: 7, by: None }.into()).unwrap();
}

#[test]
fn a_note_has_what_stays_and_never_an_input_that_ended() {
    let mut state = SessionState::default();
    pin(&mut state, 1, "never touch the parser\nor the lexer");
    let took = |state: &mut SessionState, input: u64, time: u64| {
        let text = format!("do number {input}");
        let records: [Record; 3] = [
            InputQueued {
                input,
                text,
                ..InputQueued::default()
            }
            .into(),
            TurnStarted { turn: input }.into(),
            InputConsumed { input }.into(),
        ];
        records
            .iter()
            .for_each(|record| drop(state.apply_at(time, record).unwrap()));
    };
    took(&mut state, 1, 1_790_000_000_000_000);
    state
        .apply(
            &InputQueued {
                input: 2,
                text: "secret of later".to_owned(),
                ..InputQueued::default()
            }
            .into(),
        )
        .unwrap();
    let note = state.context_note(1_790_000_060_000_000, &[], "3 of 500 steps left");
    for expected in [
        "[pin 1] never touch the parser\nor the lexer",
        "Working on input 1 since 2026-09-21T14:13:20Z: do number 1",
        "Waiting for later turns: input 2",
        "Budget: 3 of 500 steps left",
    ] {
        assert!(note.contains(expected), "{note}");
    }
    assert!(
        !note.contains("secret of later"),
        "an input that waits may be withdrawn"
    );
    state.apply(&end(1)).unwrap();
    assert!(
        !state.context_note(0, &[], "").contains("do number 1"),
        "between two turns"
    );
    state.apply(&TurnStarted { turn: 2 }.into()).unwrap();
    assert!(!state.context_note(0, &[], "").contains("do number 1"));
}

#[test]
fn a_note_has_the_jobs_that_run() {
    let mut state = SessionState::default();
    let job = |job: u64, ended: Option<JobEnd>| ChildProcess {
        job,
        feature: "builtin:f".to_owned(),
        starter: JobStarter::Run(3),
        pid: 7,
        start: 8,
        command: format!("serve {job}"),
        deadline_ms: 9,
        at_ms: 10,
        ended,
    };
    for record in [
        job(1, None),
        job(2, None),
        job(1, Some(JobEnd::of(JobEndKind::Exited))),
    ] {
        state.apply(&record.into()).unwrap();
    }
    let note = state.context_note(0, &[], "");
    assert!(
        note.contains("Jobs that run: job 2: serve 2") && !note.contains("serve 1"),
        "{note}"
    );
}

#[test]
fn the_first_input_and_the_newest_files_are_remembered() {
    let mut facts = StandingFacts::default();
    let queued = |input: u64| QueuedInput {
        input,
        text: format!("number {input}").into(),
        mode: InputMode::default(),
        limits: None,
        output_schema: None,
        again: None,
        by: None,
        run: false,
        attachments: Vec::new(),
        call: None,
    };
    (1..=12).for_each(|input| facts.taken(&queued(input), input));
    let known: Vec<u64> = facts.inputs.iter().map(|it| it.input).collect();
    assert_eq!(known, [1, 6, 7, 8, 9, 10, 11, 12]);
    (1..=40).for_each(|number| facts.file_changed(&format!("{number}.md")));
    facts.file_changed("10.md");
    facts.file_changed("10.md");
    let newest: Vec<&str> = facts
        .changed
        .iter()
        .rev()
        .take(3)
        .map(String::as_str)
        .collect();
    assert_eq!(
        (newest, facts.changed.len()),
        (vec!["10.md", "40.md", "39.md"], 32)
    );
    assert_eq!(
        facts.changed.iter().filter(|path| *path == "10.md").count(),
        1
    );
}

fn end(turn: u64) -> Record {
    TurnFinished {
        turn,
        outcome: Outcome::Done,
        unanswered: None,
        by: None,
        end_gates: false,
    }
    .into()
}

#[test]
fn a_wish_ends_with_the_hold_of_a_full_context_only() {
    for (outcome, ends) in [(Outcome::ContextLimit, true), (Outcome::TokenLimit, false)] {
        let mut state = SessionState::default();
        state.apply(&TurnStarted { turn: 1 }.into()).unwrap();
        state
            .apply(
                &TurnFinished {
                    turn: 1,
                    outcome,
                    unanswered: None,
                    by: None,
                    end_gates: false,
                }
                .into(),
            )
            .unwrap();
        assert!(state.held.is_some());
        state
            .apply(
                &CompactRequested {
                    drop_turns: true,
                    by: None,
                }
                .into(),
            )
            .unwrap();
        assert_eq!(state.held.is_none(), ends);
        assert!(state.compact_due.is_some());
    }
}
