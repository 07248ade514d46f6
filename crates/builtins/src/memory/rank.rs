//! Which notes fit a question: counted words, weighted by where they stand. Nothing is learned or guessed, so the same
//! notes and the same question give the same order.

use super::note::Note;

/// The longest question, in bytes.
pub(super) const MAX_QUERY: usize = 500;

/// What a word is worth by where it stands.
const IN_NAME: u64 = 8;
const IN_TAGS: u64 = 6;
const IN_DESCRIPTION: u64 = 4;
const IN_TEXT: u64 = 1;
/// How often a word in the text counts: long notes are not better ones.
const MOST_IN_TEXT: u64 = 3;
/// What a word counts that only begins like the one asked for, as a part of one that is it.
const WHOLE: u64 = 2;

/// The words of a question.
pub(super) fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// How well a note fits; 0 where nothing of the question is in it. A note that has more of the different words
/// comes before one that has fewer more often.
pub(super) fn score(note: &Note, question: &[String]) -> (usize, u64) {
    let tags: Vec<String> = note.tags.iter().map(ToString::to_string).collect();
    let places = [
        (words(&note.name.to_string()), IN_NAME, u64::MAX),
        (words(&tags.join(" ")), IN_TAGS, u64::MAX),
        (words(&note.description.to_string()), IN_DESCRIPTION, u64::MAX),
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
    (worths.iter().filter(|worth| **worth > 0).count(), worths.iter().sum())
}
