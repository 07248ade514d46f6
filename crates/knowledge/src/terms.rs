//! Texts as terms: a chunk is indexed by its terms, and a query asks for its own, cut by the same rules. No term of a query
//! is syntax.
//!
//! Terms have small letters, compatibility forms are replaced, and accents and the points of Arabic and Hebrew are left out;
//! vowel signs of other scripts stay. Text of scripts that write no spaces becomes pairs of characters. What is written as one
//! (`foo_bar`, `--flag`, `src/main.rs`, `C++`) is a term, too, beside its parts.

use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use std::collections::BTreeSet;

/// The characters, besides those of words, that join what is written as one.
pub(crate) const JOINTS: &str = "_+-#./:@$~";

/// The longest term, in bytes; what is longer is found by its parts, or not at all.
const MAX_TERM: usize = 80;

/// Most terms and most phrases of a query; what is written behind them is not asked for.
const MAX_TERMS: usize = 64;
const MAX_PHRASES: usize = 16;

/// Most words of a phrase: each costs a list of all its places.
const MAX_PHRASE: usize = 8;

/// How often a name counts where it is written as it was typed, beside its parts.
const EXACT: usize = 3;

/// Between the parts of a name that capitals part, in the term that stands for this way to write it.
const CASED: &str = "$";

/// Words that say nothing beside others, in English.
const COMMON: [&str; 36] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "how",
    "i", "in", "is", "it", "its", "not", "of", "on", "or", "that", "the", "there", "this", "to",
    "was", "what", "when", "where", "which", "who", "why", "with",
];

/// The terms of a text as two texts with spaces between them.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    /// Its words, in order.
    pub(crate) words: String,
    /// Other ways to write them: parts of names, names as one, words without their endings.
    pub(crate) parts: String,
}

impl Terms {
    pub(crate) fn of(text: &str) -> Self {
        let mut terms = Self::default();
        for compound in compounds(text) {
            Compound::of(compound).add_to(&mut terms);
        }
        terms
    }

    /// Both, for a column that has them together.
    pub(crate) fn joined(self) -> String {
        let Self { mut words, parts } = self;
        words.push_str(&parts);
        words
    }
}

/// What a query asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AskedTerms {
    terms: Vec<String>,
    /// Names as they were typed.
    exact: Vec<String>,
    /// The parts of names, which count extra where they stand together. Not those of the whole query: to look for them costs
    /// half of the time again, and found no page more.
    phrases: Vec<String>,
}

impl AskedTerms {
    /// `None` for a query without a word.
    pub(crate) fn of(query: &str) -> Option<Self> {
        let mut terms: Vec<String> = Vec::new();
        let mut exact = Vec::new();
        let mut phrases: Vec<String> = Vec::new();
        let mut known = BTreeSet::new();
        for compound in compounds(query) {
            let compound = Compound::of(compound);
            let own = compound.words.iter().chain(&compound.parts);
            let new = own.filter(|term| known.insert((*term).clone()));
            terms.extend(new.cloned());
            let names = compound.phrases.iter();
            let names = names.filter(|names| (2..=MAX_PHRASE).contains(&names.len()));
            phrases.extend(names.map(|names| names.join(" ")));
            exact.extend(compound.cased);
            exact.extend(compound.joined);
        }
        if terms.iter().any(|term| !is_common(term)) {
            terms.retain(|term| !is_common(term));
        }
        terms.truncate(MAX_TERMS);
        exact.truncate(MAX_PHRASES);
        let mut known = BTreeSet::new();
        phrases.retain(|phrase| known.insert(phrase.clone()));
        phrases.truncate(MAX_PHRASES);
        (!terms.is_empty()).then_some(Self {
            terms,
            exact,
            phrases,
        })
    }

    /// The terms that a person typed, also in their other forms.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &str> {
        let exact = self.exact.iter().filter(|name| !name.contains(CASED));
        self.terms.iter().chain(exact).map(String::as_str)
    }

    /// As the full text search reads it: quoted terms and phrases, any of them.
    pub(crate) fn expression(&self) -> String {
        let exact = self.exact.iter().flat_map(|name| [name; EXACT]);
        let all = self.terms.iter().chain(exact).chain(&self.phrases);
        // No term has a quote in it.
        let quoted: Vec<String> = all.map(|term| format!("\"{term}\"")).collect();
        quoted.join(" OR ")
    }
}

fn is_common(term: &str) -> bool {
    COMMON.binary_search(&term).is_ok()
}

/// What is written as one.
#[derive(Debug, Default)]
struct Compound {
    words: Vec<String>,
    parts: Vec<String>,
    /// The characters of words in scripts without spaces: a query of one character asks for them.
    characters: Vec<String>,
    /// Itself, where characters join it.
    joined: Option<String>,
    /// Those of its words that capitals part.
    cased: Vec<String>,
    /// Its words, and the parts of each word.
    phrases: Vec<Vec<String>>,
}

impl Compound {
    fn of(text: &str) -> Self {
        let mut compound = Self::default();
        for word in text.split(|c| !is_word(c)).filter(|word| !word.is_empty()) {
            for run in runs(word) {
                compound.add_run(run);
            }
        }
        compound.phrases.push(compound.words.clone());
        let has_joints = text.contains(|c| JOINTS.contains(c));
        if has_joints && text.len() <= MAX_TERM {
            compound.joined = Some(fold(text));
            let is_name = text.chars().all(|c| is_word(c) || matches!(c, '_' | '-'));
            if is_name && compound.words.len() > 1 {
                compound.parts.push(compound.words.concat());
            }
        }
        compound.parts.retain(|part| part.len() <= MAX_TERM);
        compound.cased.retain(|name| name.len() <= MAX_TERM);
        compound
    }

    /// Adds characters of one kind: of a script with spaces, or of one without.
    fn add_run(&mut self, run: &str) {
        let folded = fold(run);
        if run.starts_with(is_dense) {
            let characters: Vec<char> = folded.chars().collect();
            let single = characters.iter().map(char::to_string);
            match characters.len() {
                1 => self.words.extend(single),
                _ => {
                    let pairs = characters.windows(2).map(String::from_iter);
                    self.words.extend(pairs);
                    self.characters.extend(single);
                }
            }
            return;
        }
        if folded.is_empty() || folded.len() > MAX_TERM {
            return;
        }
        let parts = camel(run);
        if parts.len() > 1 {
            let parts: Vec<String> = parts.into_iter().map(fold).collect();
            self.parts.extend(parts.iter().cloned());
            self.parts
                .extend(parts.iter().filter_map(|part| stem(part)));
            self.cased.push(parts.join(CASED));
            self.phrases.push(parts);
        }
        self.parts.extend(stem(&folded));
        self.words.push(folded);
    }

    fn add_to(self, terms: &mut Terms) {
        for word in self.words {
            terms.words.push_str(&word);
            terms.words.push(' ');
        }
        let parts = self.parts.into_iter().chain(self.characters);
        for part in parts.chain(self.joined).chain(self.cased) {
            terms.parts.push_str(&part);
            terms.parts.push(' ');
        }
    }
}

/// What is written as one in a text, without the punctuation around it.
fn compounds(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c) && !JOINTS.contains(c))
        .map(|part| {
            part.trim_end_matches(['.', ':', '-', '/', '~', '@', '$'])
                .trim_start_matches([':', '+', '~'])
        })
        .filter(|part| part.contains(is_word))
}

fn is_word(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric(),
        // Marks that join a letter: accents, points, viramas; vowel signs count as letters.
        false => {
            c.is_alphanumeric() || !is_base(c) || matches!(c, '\u{ad}' | '\u{200c}' | '\u{200d}')
        }
    }
}

/// Characters of scripts that write no spaces between words, and those of Korean, which writes particles without.
fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7ff}' // Korean
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' // Chinese
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' // Japanese
        | '\u{20000}'..='\u{3ffff}')
}

/// The parts of a word that are of one kind of script.
fn runs(word: &str) -> Vec<&str> {
    if word.is_ascii() {
        return vec![word];
    }
    let mut runs = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let dense = is_dense(first);
        let differs = |c: char| is_dense(c) != dense && is_base(c);
        let end = rest.find(differs).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        runs.push(run);
        rest = after;
    }
    runs
}

/// Whether a character is no mark on the one before.
fn is_base(c: char) -> bool {
    c.is_ascii() || CanonicalCombiningClassMapBorrowed::new().get_u8(c) == 0
}

/// The parts of a name such as `fooBar`, `HTTPServer` or `utf8Text`.
fn camel(word: &str) -> Vec<&str> {
    let mut cuts = vec![0];
    let mut before: Option<char> = None;
    let mut characters = word.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let begins = before.is_some_and(|before| {
            let ends_capitals = before.is_uppercase() && next.is_some_and(char::is_lowercase);
            c.is_uppercase() && (!before.is_uppercase() || ends_capitals)
        });
        if begins {
            cuts.push(at);
        }
        before = Some(c);
    }
    cuts.push(word.len());
    let ranges = cuts.iter().zip(cuts.iter().skip(1));
    ranges
        .filter_map(|(from, to)| word.get(*from..*to))
        .collect()
}

/// A word in the one form that it is indexed and asked for in.
fn fold(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let lower = word.to_lowercase().replace('ß', "ss");
    let apart = DecomposingNormalizerBorrowed::new_nfkd();
    let bare = apart
        .normalize_iter(lower.chars())
        .filter(|c| !is_point(*c));
    ComposingNormalizerBorrowed::new_nfc()
        .normalize_iter(bare)
        .collect::<String>()
        .to_lowercase()
}

/// Accents, the points and the tatweel of Arabic and Hebrew, joiners and soft hyphens: people leave them out.
fn is_point(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}' | '\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}'
        | '\u{6df}'..='\u{6e8}' | '\u{6ea}'..='\u{6ed}' | '\u{ad}' | '\u{200c}' | '\u{200d}')
}

/// An English word without its ending, if it has one: the same for `change`, `changes`, `changed` and `changing`.
fn stem(word: &str) -> Option<String> {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    let cut = |ending: &str, least: usize| {
        let rest = word.strip_suffix(ending)?;
        (rest.len() >= least && rest.contains(['a', 'e', 'i', 'o', 'u', 'y'])).then_some(rest)
    };
    if let Some(rest) = cut("ies", 2).or_else(|| cut("ied", 2)) {
        return Some(format!("{rest}y"));
    }
    let is_plural = !word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is");
    let rest = cut("ing", 3)
        .or_else(|| cut("ed", 3))
        .or_else(|| cut("es", 3))
        .or_else(|| cut("s", 3).filter(|_| is_plural))
        .or_else(|| cut("e", 3))?;
    let twice = rest
        .chars()
        .last()
        .filter(|last| !matches!(last, 'l' | 's' | 'z'));
    let is_double = twice.is_some_and(|last| {
        let before = rest.strip_suffix(last);
        before.is_some_and(|before| before.ends_with(last))
    });
    let end = rest.len() - usize::from(is_double);
    rest.get(..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        Terms::of(text).words.trim_end().to_owned()
    }

    fn parts(text: &str) -> String {
        Terms::of(text).parts.trim_end().to_owned()
    }

    #[test]
    fn words_in_one_form() {
        for (text, wanted) in [
            ("Hello, World!", "hello world"),
            ("naïve CAFÉ cafe\u{301} Straße", "naive cafe cafe strasse"),
            ("ﬁle ２０２６ Ａｂｃ", "file 2026 abc"),
            ("हिन्दी में ज्ञान", "हिन्दी में ज्ञान"),
            ("مُحَمَّد كـتاب أحمد", "محمد كتاب احمد"),
            ("שָׁלוֹם", "שלום"),
            ("知識索引 ベース", "知識 識索 索引 ベー ース"),
            ("ﾃｽﾄ", "テス スト"),
            ("水", "水"),
            ("Rust言語で", "rust 言語 語で"),
            ("서울에서", "서울 울에 에서"),
            ("… — “” --- ...", ""),
        ] {
            assert_eq!(words(text), wanted, "{text}");
        }
    }

    #[test]
    fn names_and_their_parts() {
        for (text, wanted) in [
            ("fooBar", "foo bar foo$bar"),
            ("foo_bar", "foobar foo_bar"),
            ("HTTPServer", "http server http$server"),
            ("C++,", "c++"),
            ("(--max-wall)", "maxwall --max-wall"),
            ("crates/yoi/src/main.rs.", "crat crates/yoi/src/main.rs"),
            ("changes", "chang"),
            ("changing", "chang"),
            ("retries running boxes", "retry run box"),
            ("class status this", ""),
            ("pod::feature::author", "featur pod::feature::author"),
            ("知識", "知 識"),
        ] {
            assert_eq!(parts(text), wanted, "{text}");
        }
    }

    #[test]
    fn no_query_is_syntax() {
        let asked = |query: &str| AskedTerms::of(query).map(|asked| asked.expression());
        assert_eq!(asked("\"'*()^{}[]"), None);
        assert_eq!(asked("  "), None);
        assert_eq!(
            asked("a\" OR NEAR(b, 2)*").as_deref(),
            Some(r#""near" OR "b" OR "2""#)
        );
        assert_eq!(asked("the of").as_deref(), Some(r#""the" OR "of""#));
        assert_eq!(
            asked("fooBar").as_deref(),
            Some(
                r#""foobar" OR "foo" OR "bar" OR "foo$bar" OR "foo$bar" OR "foo$bar" OR "foo bar""#
            )
        );
        let many = "word1 ".repeat(3) + &(0..500).map(|n| format!("w{n} ")).collect::<String>();
        let asked = AskedTerms::of(&many).unwrap();
        assert_eq!((asked.terms.len(), asked.phrases.len()), (MAX_TERMS, 0));
    }

    #[test]
    fn common_words_are_sorted() {
        assert!(COMMON.is_sorted());
    }
}
