//! Changes of a seed, the same for the same number.

/// Xorshift.
pub struct Dice(u64);

impl Dice {
    /// Any number; the same dice for the same one.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let from = self.below(len + 1);
        from..from + self.below((len - from).min(LONGEST_MOVE) + 1)
    }
}

/// How many bytes one change moves at most.
const LONGEST_MOVE: usize = 600;
/// How long a changed seed may get.
const LONGEST: usize = 1 << 16;

/// One to eight changes.
pub fn mutate(seed: &[u8], other: &[u8], words: &[&str], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=dice.below(8) {
        bytes.truncate(LONGEST);
        let len = bytes.len();
        let at = dice.below(len.max(1));
        match dice.below(9) {
            0 if len > 0 => bytes[at] ^= 1 << dice.below(8),
            1 if len > 0 => {
                bytes[at] =
                    [0, 9, 10, 13, 32, 34, 48, 57, 92, 123, 125, 127, 128, 255][dice.below(14)]
            }
            2 if len > 0 => bytes[at] = b"0123456789abcdef"[dice.below(16)],
            3 => drop(bytes.drain(dice.range(len))),
            4 => {
                let copy = bytes[dice.range(len)].to_vec();
                bytes.splice(at.min(len)..at.min(len), copy);
            }
            5 => bytes.truncate(at),
            6 => {
                let part = other[dice.range(other.len())].to_vec();
                let place = dice.range(len);
                bytes.splice(place, part);
            }
            7 if !words.is_empty() => {
                let word = words[dice.below(words.len())];
                bytes.splice(at.min(len)..at.min(len), word.bytes());
            }
            _ if len > 1 => {
                // Two lines change places.
                let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
                let one = dice.below(lines.len());
                let two = dice.below(lines.len());
                lines.swap(one, two);
                bytes = lines.concat();
            }
            _ => bytes.push(dice.below(256) as u8),
        }
    }
    bytes
}
