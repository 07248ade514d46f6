//! Random numbers that are the same on every machine, and how many seeds a test plays.

/// How many seeds; the long tests set it.
const VARIABLE: &str = "YOI_TEST_SEEDS";

const SEEDS: u64 = 300;

/// The seeds of a property test.
pub(crate) fn seeds() -> std::ops::Range<u64> {
    0..std::env::var(VARIABLE).map_or(SEEDS, |count| count.parse().unwrap())
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
}
