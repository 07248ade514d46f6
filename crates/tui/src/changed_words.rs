//! Which words of a line differ from those of the line that replaces it. Draws nothing.

use std::ops::Range;

/// Bytes of a line that is compared; a longer one is not.
const MAX_BYTES: usize = 4 << 10;

/// The bytes of both lines between the words that they begin and end with. None where most of a line is another one:
/// there is nothing to point at.
pub(crate) fn changed_words(old: &str, new: &str) -> Option<(Range<usize>, Range<usize>)> {
    if old.len().max(new.len()) > MAX_BYTES {
        return None;
    }
    let olds = words(old);
    let news = words(new);
    let begin: usize = olds
        .iter()
        .zip(&news)
        .take_while(|(old, new)| old == new)
        .map(|(old, _)| old.len())
        .sum();
    let short = old.len().min(new.len());
    // The same words at the end, behind those at the begin.
    let mut end = 0;
    for (last, other) in olds.iter().rev().zip(news.iter().rev()) {
        if last != other || begin + end + last.len() > short {
            break;
        }
        end += last.len();
    }
    let old_part = begin..old.len() - end;
    let new_part = begin..new.len() - end;
    let blank = |text: Option<&str>| text.map_or(0, |text| text.len() - text.trim().len());
    let common = begin + end - blank(old.get(..begin)) - blank(old.get(old_part.end..));
    let is_worth = common >= old_part.len().max(new_part.len()) / 2 && common > 0;
    is_worth.then_some((old_part, new_part))
}

/// Words, and each other character alone.
fn words(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            rest.len() - rest.trim_start_matches(is_word).len()
        } else {
            first.len_utf8()
        };
        let Some((word, behind)) = rest.split_at_checked(length) else {
            break;
        };
        words.push(word);
        rest = behind;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_whole_words() {
        for (old, new, wanted) in [
            ("let width = 3;", "let width = 42;", Some(("3", "42"))),
            ("text.len()", "text.width()", Some(("len", "width"))),
            ("f(a, b)", "f(a, c, b)", Some(("", "c, "))),
            ("a a a", "a a", Some((" a", ""))),
            ("the 日本 text", "the 中国 text", Some(("日本", "中国"))),
            ("return 1;", "if x { y() } else { z() }", None),
            ("done();", "if x { y() } else { z() };", None),
            ("    one", "    two", None),
            ("", "new", None),
            ("same", "same", Some(("", ""))),
        ] {
            let parts = changed_words(old, new).map(|(from, to)| (&old[from], &new[to]));
            assert_eq!(parts, wanted, "{old:?} {new:?}");
        }
        assert_eq!(changed_words(&"a ".repeat(MAX_BYTES), "a "), None);
    }
}
