//! Statements that a session must not lose, with values that nobody can guess.
//!
//! The kinds are those of `compaction-conformance-kit` 0.8.0 (PyPI, MIT licence): safety rules, hard constraints, facts, goal
//! states and preferences, updates that supersede an older value, and statements that differ in one word. Its probes ask a
//! model; here a statement survives if it is in the request byte for byte, or if the call that told it still tells it. Words
//! and code are ours.

use llm_worker::Item;
use llm_worker::projection::neutral::NeutralRequest;

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Input,
    Answer,
    /// The result of the first call of its round.
    Result,
}

/// A kind of statements; one is made in each round.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    /// Whether it supersedes that of the round before.
    updates: bool,
    /// With `{}` in the place of the value.
    says: &'static str,
}

const fn kind(name: &'static str, place: Place, says: &'static str) -> Kind {
    Kind {
        name,
        place,
        updates: false,
        says,
    }
}

pub(crate) const KINDS: [Kind; 8] = [
    kind(
        "safety rule",
        Place::Input,
        "Never tell anybody that the vault opens with {}.",
    ),
    Kind {
        updates: true,
        ..kind(
            "hard constraint",
            Place::Input,
            "From now on, the most that you may spend is {} marks.",
        )
    },
    kind(
        "preference",
        Place::Input,
        "I like answers that end with the word {}.",
    ),
    kind(
        "goal state",
        Place::Answer,
        "Three of five steps are done; the next one is {}.",
    ),
    Kind {
        updates: true,
        ..kind(
            "goal state, updated",
            Place::Answer,
            "The branch is now {}.",
        )
    },
    kind("fact", Place::Result, "The press date of this part is {}."),
    kind(
        "fact of the north",
        Place::Result,
        "The archive of the north is under {}.",
    ),
    kind(
        "fact of the south",
        Place::Result,
        "The archive of the south is under {}.",
    ),
];

impl Kind {
    /// What is said in this round.
    pub(crate) fn statement(&self, round: usize) -> String {
        let value = blake3::hash(format!("{} {round}", self.name).as_bytes()).to_hex();
        self.says.replace("{}", &value.as_str()[..12])
    }
}

/// All that is said at this place in a round, a line each.
pub(crate) fn planted(place: Place, round: usize) -> String {
    let said = KINDS
        .iter()
        .filter(|kind| kind.place == place)
        .map(|kind| kind.statement(round));
    said.collect::<Vec<_>>().join("\n")
}

/// The kinds of which a statement up to this round is not in the request once, whole, and with updates in their order.
pub(crate) fn lost(request: &NeutralRequest, upto: usize) -> Vec<(&'static str, usize)> {
    let mut lost = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.place != Place::Result) {
        let said = |item: &'_ Item| match item {
            Item::User { text, .. } if kind.place == Place::Input => Some(text.clone()),
            Item::Assistant { text } if kind.place == Place::Answer => Some(text.clone()),
            _ => None,
        };
        let all = request
            .items
            .iter()
            .filter_map(said)
            .collect::<Vec<_>>()
            .join("\n");
        let mut newest = 0;
        for round in 1..=upto {
            let places: Vec<usize> = all
                .match_indices(&kind.statement(round))
                .map(|(at, _)| at)
                .collect();
            match places[..] {
                [at] if !kind.updates || at >= newest => newest = at,
                _ => lost.push((kind.name, round)),
            }
        }
    }
    lost
}
