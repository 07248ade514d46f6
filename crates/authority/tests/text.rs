//! The table of characters that mislead, against Unicode's own categories.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use authority::text::{
    Escaper, Lines, escape_line, escape_lines, escape_strict, escape_within, find, misleads, strip,
};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Categories Cc, Cf, Zl and Zp of Unicode 16.
const CATEGORIES: &[RangeInclusive<u32>] = &[
    0x0..=0x1f,
    0x7f..=0x9f,
    0xad..=0xad,
    0x600..=0x605,
    0x61c..=0x61c,
    0x6dd..=0x6dd,
    0x70f..=0x70f,
    0x890..=0x891,
    0x8e2..=0x8e2,
    0x180e..=0x180e,
    0x200b..=0x200f,
    0x2028..=0x202e,
    0x2060..=0x2064,
    0x2066..=0x206f,
    0xfeff..=0xfeff,
    0xfff9..=0xfffb,
    0x110bd..=0x110bd,
    0x110cd..=0x110cd,
    0x13430..=0x1343f,
    0x1bca0..=0x1bca3,
    0x1d173..=0x1d17a,
    0xe0001..=0xe0001,
    0xe0020..=0xe007f,
];

/// Signs of these categories that are drawn, around or above the digits behind them (Prepended_Concatenation_Mark), and
/// the Syriac mark of abbreviations.
const DRAWN: &[RangeInclusive<u32>] = &[
    0x600..=0x605,
    0x6dd..=0x6dd,
    0x70f..=0x70f,
    0x890..=0x891,
    0x8e2..=0x8e2,
    0x110bd..=0x110bd,
    0x110cd..=0x110cd,
];

/// Default-ignorable characters of other categories: fillers, selectors, and places kept for more of them.
const IGNORABLE: &[RangeInclusive<u32>] = &[
    0x34f..=0x34f,
    0x115f..=0x1160,
    0x17b4..=0x17b5,
    0x180b..=0x180f,
    0x2065..=0x2065,
    0x3164..=0x3164,
    0xfe00..=0xfe0f,
    0xffa0..=0xffa0,
    0xfff0..=0xfff8,
    0xe0000..=0xe0fff,
];

#[test]
fn every_character_of_unicode_is_decided() {
    let within =
        |table: &[RangeInclusive<u32>], n: u32| table.iter().any(|range| range.contains(&n));
    for c in '\0'..=char::MAX {
        let n = u32::from(c);
        let expected = (within(CATEGORIES, n) && !within(DRAWN, n)) || within(IGNORABLE, n);
        assert_eq!(misleads(c), expected, "U+{n:04X}");
        // The rest is the same for all that is in no table: some of it will do.
        if !expected && n % 61 != 0 {
            continue;
        }
        // Beside Latin letters nothing of the table passes, in one line or in many.
        let text = format!("a{c}b");
        let line = matches!(c, '\n' | '\t');
        let escape = format!("a{}b", c.escape_default());
        assert_eq!(
            escape_line(&text),
            if expected {
                escape.as_str()
            } else {
                text.as_str()
            },
            "U+{n:04X}"
        );
        assert_eq!(
            escape_lines(&text),
            if expected && !line {
                escape.as_str()
            } else {
                text.as_str()
            },
            "U+{n:04X}"
        );
        assert_eq!(find(&text, Lines::One), expected.then_some(c));
        assert_eq!(
            strip(&text, Lines::One),
            if expected { "ab" } else { text.as_str() }
        );
        assert_eq!(
            escape_line(&escape_line(&text)),
            escape_line(&text),
            "what is escaped stays"
        );
    }
}

#[test]
fn joiners_and_selectors_pass_where_they_shape() {
    let kept = [
        "👩\u{200d}👧",
        "🏳\u{fe0f}\u{200d}🌈",
        "❤\u{fe0f}",
        "1\u{fe0f}\u{20e3} first",
        "👍🏽",
        "می\u{200c}خواهم",
        "क्\u{200d}ष",
        "葛\u{e0100}",
        "©\u{fe0f}",
        "✅ done",
        "ᠠ\u{180b}",
    ];
    for text in kept {
        assert_eq!(
            (escape_line(text).as_ref(), find(text, Lines::One)),
            (text, None)
        );
        assert_eq!(strip(text, Lines::Many), text);
        for (at, _) in text.char_indices() {
            let mut pieces = Escaper::new(Lines::Many);
            let whole = pieces.piece(&text[..at]).into_owned() + &pieces.piece(&text[at..]);
            assert_eq!(whole, text, "cut at {at}");
        }
    }
    let escaped = [
        ("a\u{200d}b", "a\\u{200d}b"),
        ("\u{200d}", "\\u{200d}"),
        (" \u{fe0f}", " \\u{fe0f}"),
        ("👩\u{200d}\u{200d}", "👩\u{200d}\\u{200d}"),
        ("❤\u{fe0f}\u{fe0f}", "❤\u{fe0f}\\u{fe0f}"),
        ("file1\u{fe0f}", "file1\\u{fe0f}"),
        ("1\u{fe0f}2", "1\\u{fe0f}2"),
        ("я\u{200d}", "я\\u{200d}"),
        ("é\u{200c}", "é\\u{200c}"),
        ("🏴\u{e0067}", "🏴\\u{e0067}"),
    ];
    for (text, shown) in escaped {
        assert_eq!(escape_line(text), shown);
    }
}

#[test]
fn a_cut_is_at_a_character_or_an_escape() {
    assert_eq!(
        escape_within("ab\u{202e}cd", Lines::One, 100),
        "ab\\u{202e}cd"
    );
    assert_eq!(escape_within("ab\u{202e}cd", Lines::One, 9), "ab…");
    assert_eq!(escape_within("a\nb", Lines::Many, 3), "a\nb");
    assert_eq!(escape_within("ééé", Lines::One, 5), "éé…");
}

#[test]
fn a_strict_text_hides_no_joiner() {
    let text = "ک\u{200c}ه 👨\u{200d}👩 ❤\u{fe0f} 葛\u{e0100}\n\tend";
    assert_eq!(escape_lines(text), text);
    assert_eq!(
        escape_strict(text),
        "ک\\u{200c}ه 👨\\u{200d}👩 ❤\\u{fe0f} 葛\\u{e0100}\n\tend"
    );
    assert!(matches!(escape_strict("日本 é\n"), Cow::Borrowed(_)));
    assert_eq!(escape_strict("a\u{202e}b\u{1b}"), r"a\u{202e}b\u{1b}");
}

#[test]
fn a_first_line_is_cut() {
    use authority::text::first_line;
    assert_eq!(first_line("one\ntwo", 10), "one…");
    assert_eq!(first_line("abcdef", 3), "abc…");
    assert_eq!(first_line("abc", 3), "abc");
    assert_eq!(first_line("\u{202e}", 8), "\\u{202e}");
}
