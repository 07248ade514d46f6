//! Random stories under random schedules: delays, partial polling, refusals, early ends, holds, commits that cannot be
//! stored, late answers. The rig checks every promise at every step; a failing seed is printed.

use super::rig::{EarlyEnd, Grouped, Owed, Reply, Rig, answer, brief, surface, user};
use crate::effect::{Fact, Gated, Input, Outcome, TurnStop};
use crate::history::History;
use crate::turn::{IllegalInput, TurnLimits};
use std::collections::VecDeque;
use std::sync::Arc;

/// xorshift64*: the same schedules on every machine.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % sides
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

fn random_answer(dice: &mut Dice) -> VecDeque<Reply> {
    let mut words = Vec::new();
    for _ in 0..dice.below(6) {
        words.push(dice.pick(&[
            "t:a",
            "t:b\n",
            "r:hm",
            "c:ok",
            "c:ok",
            "c:ok:{\"x\":1}",
            "c:ok:{",
            "c:no",
            "c:fly",
            "c:ask",
            "c:ask-no",
            "u",
        ]));
    }
    if dice.one_in(8) {
        words.push("retry");
        words.extend(["t:again", "c:ok"].iter().take(dice.below(3)));
    }
    if dice.one_in(24) {
        words.push("c:halt");
    }
    words.push(dice.pick(&[
        "end", "end", "tools", "tools", "tools", "tools", "max", "refusal", "other", "fail:cut",
    ]));
    answer(&words)
}

#[derive(Default)]
struct Met {
    refusals: usize,
    early_ends: usize,
    /// Early ends of turns that had been asked to end in the other way.
    second_thoughts: usize,
    late: usize,
    /// Turns that were held, and those of them that were ended early while they were.
    held: usize,
    ended_in_hold: usize,
    unstorable: usize,
    unstorable_again: usize,
    outcomes: std::collections::BTreeMap<String, usize>,
}

fn play(seed: u64, met: &mut Met) {
    let mut dice = Dice::new(seed);
    let history = History::begin(surface(1), Arc::new(Grouped));
    let answers = (0..dice.below(5))
        .map(|_| random_answer(&mut dice))
        .collect();
    let limits = TurnLimits {
        calls: 5,
        argument_bytes: 64,
        text_bytes: 64,
        ..TurnLimits::steps(1 + dice.below(5) as u32)
    };
    let mut rig = Rig::over(history, Vec::new(), vec![user("go")], answers, limits);
    let calls = ["ok", "ok", "no", "ask", "ask-no", "halt", "fly"];
    let supplied = seed
        .checked_sub(18_000)
        .map(|seed| calls[seed as usize % calls.len()]);
    if let Some(name) = supplied {
        rig = rig.calling(name);
    }
    rig.check_all = seed.is_multiple_of(5); // requests and the end are always compared with a full encoding
    rig.gates = (0..dice.below(4))
        .map(|_| {
            let notes = (0..dice.below(2)).map(|_| user("gate")).collect();
            let stop = dice.one_in(20).then(|| TurnStop::Aborted {
                reason: "gate".into(),
            });
            Gated {
                notes,
                stop,
                ..Gated::default()
            }
        })
        .collect();
    let patience = if dice.one_in(3) { 12 } else { 400 };
    let holding = if dice.one_in(3) { 8 } else { 200 };
    // A person who seldom answers.
    let away = dice.one_in(2);
    let storing = if dice.one_in(3) { 6 } else { 100 };
    for _ in 0..2_000 {
        match dice.below(5) {
            0 | 1 => drop(rig.poll()),
            2 => rig.drain(),
            _ if rig.owed.is_empty() => rig.drain(),
            _ => {
                let place = dice.below(rig.owed.len());
                if away && matches!(rig.owed[place], Owed::Answer(_)) && !dice.one_in(40) {
                    continue;
                }
                let is_commit = matches!(rig.owed[place], Owed::Commit(_));
                if is_commit && dice.one_in(8) {
                    rig.refuse(place);
                    met.refusals += 1;
                } else if is_commit && dice.one_in(storing) {
                    met.unstorable_again += usize::from(rig.unstorable);
                    met.unstorable += usize::from(!rig.unstorable);
                    cannot_store(&mut rig, place);
                } else {
                    met.late += usize::from(rig.outcome.is_some());
                    rig.pay(place).unwrap();
                }
            }
        }
        if dice.one_in(patience) && rig.outcome.is_none() {
            met.ended_in_hold += usize::from(rig.turn().is_held());
            let (how, other) = EarlyEnd::BOTH[dice.below(2)];
            met.second_thoughts += usize::from(rig.early_end == Some(other));
            rig.end_early(how);
            met.early_ends += 1;
        }
        if dice.one_in(holding) {
            rig.hold();
        } else if rig.hold_wanted && dice.one_in(6) {
            met.held += usize::from(rig.turn().is_held());
            rig.release();
        }
        if rig.turn().suspended() && dice.one_in(3) {
            rig.turn().handle(Input::Resume).unwrap();
        }
        if rig.outcome.is_some() && rig.owed.is_empty() {
            break;
        }
    }
    rig.check_end();
    let sent = rig
        .durable
        .iter()
        .any(|fact| matches!(fact, Fact::Request(_)));
    assert!(
        !(sent && supplied.is_some()),
        "a request follows a call of a person"
    );
    let outcome = rig.outcome.unwrap();
    assert!(
        !rig.unstorable
            || [
                Outcome::Aborted {
                    reason: "too large".into()
                },
                Outcome::Waiting
            ]
            .contains(&outcome)
    );
    let name = format!("{outcome:?}");
    *met.outcomes
        .entry(name.split([' ', '{']).next().unwrap().to_owned())
        .or_default() += 1;
}

/// Says that a commit cannot be stored. The host gives up only when nothing is left to drop: the commit stays the same.
fn cannot_store(rig: &mut Rig, place: usize) {
    let Owed::Commit(request) = &rig.owed[place] else {
        panic!("not a commit")
    };
    let facts = request
        .facts()
        .iter()
        .map(brief)
        .collect::<Vec<_>>()
        .join(" ");
    match rig.cannot_store(place) {
        Ok(()) => {}
        Err(error) => {
            assert_eq!(error, IllegalInput::EndUnstorable);
            assert!(
                rig.unstorable && !facts.contains("request") && !facts.contains("user"),
                "{facts}"
            );
            assert!(rig.turn().suspended(), "the commit that failed is kept");
        }
    }
}

// covers: INV-01
#[test]
fn twenty_thousand_schedules() {
    let mut met = Met::default();
    for seed in 0..20_000 {
        let played =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play(seed, &mut met)));
        assert!(played.is_ok(), "seed {seed} failed");
    }
    assert!(
        met.refusals > 5_000
            && met.early_ends > 2_000
            && met.second_thoughts > 300
            && met.late > 300,
        "{} {} {} {}",
        met.refusals,
        met.early_ends,
        met.second_thoughts,
        met.late
    );
    let counts = (
        met.held,
        met.ended_in_hold,
        met.unstorable,
        met.unstorable_again,
    );
    assert!(
        counts.0 > 1_500 && counts.1 > 50 && counts.2 > 2_000 && counts.3 > 300,
        "{counts:?}"
    );
    let early = ["Cancelled", "Interrupted", "Waiting"];
    let wanted = [
        "Done",
        "MaxTokens",
        "Refused",
        "Empty",
        "ModelFailed",
        "StepLimit",
        "Aborted",
    ]
    .into_iter()
    .chain(early);
    for outcome in wanted {
        assert!(
            met.outcomes.get(outcome).is_some_and(|count| *count > 100),
            "{outcome}: {:?}",
            met.outcomes
        );
    }
}
