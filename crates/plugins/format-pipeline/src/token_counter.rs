//! How many tokens a text costs, without any vendor's table: the pieces in which byte-pair vocabularies begin to cut are
//! counted, each by its length. Against o200k the sum of many results is within some percent; one result may be off by a third.

/// Counts tokens by estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCounter;

impl TokenCounter {
    /// By the text alone: nothing was measured.
    pub const fn unmeasured() -> Self {
        Self
    }

    /// The tokens of a text. At most one per byte.
    pub fn count(self, text: &str) -> u64 {
        pieces(text)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Space,
    Newline,
    Mark,
    /// A letter of an alphabet beyond ASCII.
    Letter,
    /// A character that is a token or more by itself: ideographs, emoji.
    Sign,
}

const fn ascii(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        b' ' | b'\t' => Class::Space,
        b'\n' | b'\r' => Class::Newline,
        _ => Class::Mark,
    }
}

/// The classes of ASCII, in a table because each byte of a result is looked up.
const CLASSES: [Class; 128] = {
    let mut all = [Class::Mark; 128];
    let mut byte = 0;
    while byte < 128 {
        #[allow(clippy::indexing_slicing, reason = "the compiler runs it")]
        {
            all[byte] = ascii(byte as u8);
        }
        byte += 1;
    }
    all
};

fn class(c: char) -> Class {
    match usize::try_from(u32::from(c)) {
        Ok(code @ 0..128) => CLASSES.get(code).copied().unwrap_or(Class::Mark),
        Ok(0x2000..0x2070) => Class::Mark,
        Ok(0..0x1100) => Class::Letter,
        _ => Class::Sign,
    }
}

/// The estimate.
fn pieces(text: &str) -> u64 {
    let mut sum = 0;
    let mut run = 0;
    let mut before = Class::Newline;
    let mut is_first = true;
    for c in text.chars() {
        let now = class(c);
        let goes_on = now == before || (before == Class::Upper && now == Class::Lower);
        if goes_on && !is_first {
            (run, before) = (run + 1, now);
            continue;
        }
        sum += cost(before, run, Some(now));
        (run, before, is_first) = (1, now, false);
    }
    sum + cost(before, run, None)
}

/// What a run of characters of one class costs, with the class behind it.
fn cost(class: Class, run: u64, next: Option<Class>) -> u64 {
    match class {
        _ if run == 0 => 0,
        Class::Lower | Class::Upper => 1 + run.saturating_sub(5) / 5,
        Class::Digit => run.div_ceil(3),
        // One space belongs to the word or mark behind it.
        Class::Space => {
            u64::from(run > 1 || matches!(next, None | Some(Class::Newline | Class::Digit)))
        }
        Class::Newline => 1,
        Class::Mark => run.div_ceil(4),
        Class::Letter => run.div_ceil(3),
        Class::Sign => run,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_a_vocabulary_would() {
        for (text, tokens) in [
            ("", 0),
            ("hello world", 2),
            ("{\"id\":1234}", 6),
            ("a\n  b", 4),
            ("日本", 2),
        ] {
            assert_eq!(TokenCounter::unmeasured().count(text), tokens, "{text:?}");
        }
    }
}
