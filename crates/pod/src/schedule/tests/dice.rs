//! Random numbers that are the same on every machine, and how many seeds a test plays.

use std::ops::Range;

/// `N` for the seeds below N, `N..M` for some of them; the long tests set it.
const VARIABLE: &str = "YOI_TEST_SEEDS";

const SEEDS: u64 = 300;

/// The seeds of a property test.
pub(crate) fn seeds() -> Range<u64> {
    let Ok(wanted) = std::env::var(VARIABLE) else {
        return 0..SEEDS;
    };
    let (from, upto) = wanted.split_once("..").unwrap_or(("0", &wanted));
    from.parse().unwrap()..upto.parse().unwrap()
}

/// Whether so many seeds are played that together they must meet everything.
pub(crate) fn are_many(seeds: &Range<u64>) -> bool {
    seeds.end - seeds.start >= SEEDS
}

/// xorshift64*.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % sides
    }

    pub(crate) fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }
}
