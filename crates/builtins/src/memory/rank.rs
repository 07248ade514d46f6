//! Ranking notes for a query: counted words, weighted by their position. Deterministic: the same notes and query give
//! the same order.

use super::note::Note;

/// The longest question, in bytes.
pub(super) const MAX_QUERY: usize = 500;

/// The weight of a word by its position.
const IN_NAME: u64 = 8;
const IN_TAGS: u64 = 6;
const IN_DESCRIPTION: u64 = 4;
const IN_TEXT: u64 = 1;
/// The most occurrences of a word that count, so that long notes do not rank higher.
const MOST_IN_TEXT: u64 = 3;
/// The weight of a whole word, relative to one that only has the query's word as prefix.
const WHOLE: u64 = 2;

/// The words of a question.
pub(super) fn words(text: &str) -> Vec<String> {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The score of a note; 0 if it has no word of the query. A note with more different words ranks before one with fewer
/// words that occur more often.
pub(super) fn score(note: &Note, question: &[String]) -> (usize, u64) {
    let tags: Vec<String> = note.tags.iter().map(ToString::to_string).collect();
    let places = [
        (words(&note.name.to_string()), IN_NAME, u64::MAX),
        (words(&tags.join(" ")), IN_TAGS, u64::MAX),
        (
            words(&note.description.to_string()),
            IN_DESCRIPTION,
            u64::MAX,
        ),
        (words(&note.text), IN_TEXT, MOST_IN_TEXT * WHOLE),
    ];
    let worth = |asked: &String| -> u64 {
        let in_place = |(there, weight, most): &(Vec<String>, u64, u64)| {
            let hits = there.iter().map(|word| match word {
                word if word == asked => WHOLE,
                word if word.starts_with(asked.as_str()) => 1,
                _ => 0,
            });
            weight * hits.sum::<u64>().min(*most)
        };
        places.iter().map(in_place).sum()
    };
    let worths: Vec<u64> = question.iter().map(worth).collect();
    (
        worths.iter().filter(|worth| **worth > 0).count(),
        worths.iter().sum(),
    )
}
