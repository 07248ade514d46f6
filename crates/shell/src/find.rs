//! `find`: the commands that it starts.

use crate::word::Word;

/// The words of each command.
pub(crate) fn commands(arguments: &[Word]) -> Vec<Vec<Word>> {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some(at) = rest.iter().position(starts) {
        let words = rest.get(at + 1..).unwrap_or_default();
        let ends = |i: usize, word: &Word| match word.literal() {
            Some(";") => true,
            Some("+") => i.checked_sub(1).and_then(|i| words.get(i)).and_then(Word::literal) == Some("{}"),
            Some(_) | None => false,
        };
        let end = words.iter().enumerate().find(|(i, word)| ends(*i, word)).map_or(words.len(), |(i, _)| i);
        found.push(words.iter().take(end).map(filled).collect());
        rest = words.get(end..).unwrap_or_default();
    }
    found
}

fn starts(word: &Word) -> bool {
    matches!(word.literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir"))
}

/// `{}` becomes a name that the text does not show.
pub(crate) fn filled(word: &Word) -> Word {
    if word.bare().contains("{}") { Word::hidden(word.raw()) } else { word.clone() }
}
