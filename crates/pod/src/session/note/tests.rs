//! Bounds of pins, and what a note says.

use super::*;
use crate::record::{
    CompactRequested, InputConsumed, InputQueued, Pinned, Record, TurnFinished, TurnStarted, Unpinned,
};
use crate::session::standing::{MAX_PIN, MAX_PINNED, MAX_PINS};
use llm_worker::effect::Outcome;

fn pin(state: &mut SessionState, pin: u64, text: &str) {
    state.apply(&Pinned { pin, text: text.to_owned(), by: None }.into()).unwrap();
}

#[test]
fn pins_have_bounds_and_numbers_that_rise() {
    let mut state = SessionState::default();
    let refused = |state: &SessionState, text: &str| state.standing.refusal(text).is_some();
    assert!(
        refused(&state, " \n") && refused(&state, &"x".repeat(MAX_PIN + 1)) && !refused(&state, &"x".repeat(MAX_PIN))
    );
    for number in 1..=(MAX_PINNED / MAX_PIN) as u64 {
        pin(&mut state, number, &"x".repeat(MAX_PIN));
    }
    assert!(refused(&state, "x"), "all texts together");
    assert!(state.apply(&Pinned { pin: 3, text: "again".to_owned(), by: None }.into()).is_err());
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
            InputQueued { input, text, ..InputQueued::default() }.into(),
            TurnStarted { turn: input }.into(),
            InputConsumed { input }.into(),
        ];
        records.iter().for_each(|record| drop(state.apply_at(time, record).unwrap()));
    };
    took(&mut state, 1, 1_790_000_000_000_000);
    state
        .apply(&InputQueued { input: 2, text: "secret of later".to_owned(), ..InputQueued::default() }.into())
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
    assert!(!note.contains("secret of later"), "an input that waits may be withdrawn");
    state.apply(&end(1)).unwrap();
    state.apply(&TurnStarted { turn: 2 }.into()).unwrap();
    assert!(!state.context_note(0, &[], "").contains("do number 1"));
}

fn end(turn: u64) -> Record {
    TurnFinished { turn, outcome: Outcome::Done, unanswered: None, by: None, end_gates: false }.into()
}

#[test]
fn a_wish_ends_with_the_hold_of_a_full_context_only() {
    for (outcome, ends) in [(Outcome::ContextLimit, true), (Outcome::TokenLimit, false)] {
        let mut state = SessionState::default();
        state.apply(&TurnStarted { turn: 1 }.into()).unwrap();
        state.apply(&TurnFinished { turn: 1, outcome, unanswered: None, by: None, end_gates: false }.into()).unwrap();
        assert!(state.held.is_some());
        state.apply(&CompactRequested { drop_turns: true, by: None }.into()).unwrap();
        assert_eq!(state.held.is_none(), ends);
        assert!(state.compact_due.is_some());
    }
}
