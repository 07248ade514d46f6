//! Random stories under random schedules: delays, partial polling, refusals, cancels, late answers. The rig checks every
//! promise at every step; a failing seed is printed.

use super::rig::{Grouped, Owed, Reply, Rig, answer, surface, user};
use crate::effect::{Gated, Input, Outcome, TurnStop};
use crate::history::History;
use crate::turn::TurnLimits;
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
    words.push(dice.pick(&["end", "end", "tools", "tools", "tools", "tools", "max", "refusal", "other", "fail:cut"]));
    answer(&words)
}

#[derive(Default)]
struct Met {
    refusals: usize,
    cancels: usize,
    late: usize,
    outcomes: std::collections::BTreeMap<String, usize>,
}

fn play(seed: u64, met: &mut Met) {
    let mut dice = Dice::new(seed);
    let history = History::begin(surface(1), Arc::new(Grouped));
    let answers = (0..dice.below(5)).map(|_| random_answer(&mut dice)).collect();
    let limits =
        TurnLimits { calls: 5, argument_bytes: 64, text_bytes: 64, ..TurnLimits::steps(1 + dice.below(5) as u32) };
    let mut rig = Rig::over(history, Vec::new(), vec![user("go")], answers, limits);
    rig.check_all = seed.is_multiple_of(5); // requests and the end are always compared with a full encoding
    rig.gates = (0..dice.below(4))
        .map(|_| {
            let notes = (0..dice.below(2)).map(|_| user("gate")).collect();
            let stop = dice.one_in(20).then(|| TurnStop::Aborted { reason: "gate".into() });
            Gated { notes, stop, ..Gated::default() }
        })
        .collect();
    let patience = if dice.one_in(3) { 12 } else { 400 };
    for _ in 0..2_000 {
        match dice.below(5) {
            0 | 1 => drop(rig.poll()),
            2 => rig.drain(),
            _ if rig.owed.is_empty() => rig.drain(),
            _ => {
                let place = dice.below(rig.owed.len());
                if matches!(rig.owed[place], Owed::Commit(_)) && dice.one_in(8) {
                    rig.refuse(place);
                    met.refusals += 1;
                } else {
                    met.late += usize::from(rig.outcome.is_some());
                    rig.pay(place).unwrap();
                }
            }
        }
        if dice.one_in(patience) && rig.outcome.is_none() {
            rig.cancel();
            met.cancels += 1;
        }
        if rig.turn().suspended() && dice.one_in(3) {
            rig.turn().handle(Input::Resume).unwrap();
        }
        if rig.outcome.is_some() && rig.owed.is_empty() {
            break;
        }
    }
    rig.check_end();
    let outcome = rig.outcome.unwrap();
    assert!(rig.cancelled || outcome != Outcome::Cancelled);
    let name = format!("{outcome:?}");
    *met.outcomes.entry(name.split([' ', '{']).next().unwrap().to_owned()).or_default() += 1;
}

// covers: INV-01
#[test]
fn twenty_thousand_schedules() {
    let mut met = Met::default();
    for seed in 0..20_000 {
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play(seed, &mut met)));
        assert!(played.is_ok(), "seed {seed} failed");
    }
    assert!(
        met.refusals > 5_000 && met.cancels > 2_000 && met.late > 300,
        "{} {} {}",
        met.refusals,
        met.cancels,
        met.late
    );
    let wanted = ["Done", "MaxTokens", "Refused", "Empty", "ModelFailed", "Cancelled", "StepLimit", "Aborted"];
    for outcome in wanted {
        assert!(met.outcomes.get(outcome).is_some_and(|count| *count > 100), "{outcome}: {:?}", met.outcomes);
    }
}
