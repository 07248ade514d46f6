//! Which moments to kill at.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// How many random points of the run.
const RANDOM: usize = 20;
/// Of the selected named points, how many by default.
const SAMPLE: usize = 48;

/// From the environment, or new.
pub(crate) fn seed() -> u64 {
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_nanos() as u64
    };
    std::env::var("YOI_TEST_SEED")
        .ok()
        .map_or_else(now, |text| text.parse().expect("YOI_TEST_SEED is a number"))
}

/// Whether every point was asked for.
pub(crate) fn all() -> bool {
    std::env::var("YOI_TEST_CRASH").is_ok_and(|text| text == "all" || text == "live")
}

/// First, middle and last occurrence of every name, as `NAME:NUMBER`. By default a sample, in which every name occurs.
pub(crate) fn named(reached: &[String]) -> (usize, Vec<String>) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for name in reached {
        *counts.entry(name).or_default() += 1;
    }
    let mut chosen = Vec::new();
    for (at, (name, count)) in counts.iter().enumerate() {
        let mut numbers = vec![1, count.div_ceil(2), *count];
        numbers.dedup();
        if !all() {
            // A different one of them for each name, and a second one while the sample has room.
            let second = counts.len() + at < SAMPLE;
            let turn = at % numbers.len();
            numbers.rotate_left(turn);
            numbers.truncate(if second { 2 } else { 1 });
        }
        chosen.extend(numbers.iter().map(|number| format!("{name}:{number}")));
    }
    (counts.len(), chosen)
}

/// Random points, counted over all of them.
pub(crate) fn random(reached: usize, seed: u64) -> Vec<String> {
    let mut dice = Dice(seed | 1);
    (0..RANDOM)
        .map(|_| format!("any:{}", 1 + dice.roll() % reached as u64))
        .collect()
}

/// Up to `count` of `from`, evenly, the first and the last among them.
pub(crate) fn sample<T: Clone>(from: &[T], count: usize) -> Vec<T> {
    if from.len() <= count {
        return from.to_vec();
    }
    (0..count)
        .map(|at| from[at * (from.len() - 1) / (count - 1)].clone())
        .collect()
}

/// Xorshift: the same numbers for the same seed, everywhere.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
