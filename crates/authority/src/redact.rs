//! Keeping secrets out of what is written and shown.

use crate::Secret;
use memchr::memmem::Finder;
use std::borrow::Cow;
use std::sync::Arc;

/// A shorter secret is not looked for: it would be found in ordinary words.
pub const MIN_REDACTED: usize = 8;

/// Finds the exact words of secrets, in whatever encoding of their own they were handed over, and puts their names in
/// their place. It knows no other form of them: what a holder encodes, it does not recognise.
#[derive(Clone, Default)]
pub struct Redactor(Arc<Vec<Known>>);

struct Known {
    finder: Finder<'static>,
    name: String,
}

impl Redactor {
    /// Looks for these; of two that overlap, the one that begins first, and of two that begin together the longer.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut known: Vec<Known> = secrets
            .into_iter()
            .filter(|secret| secret.words().len() >= MIN_REDACTED)
            .map(|secret| Known { finder: Finder::new(secret.words()).into_owned(), name: format!("{secret}") })
            .collect();
        known.sort_by_key(|known| std::cmp::Reverse(known.finder.needle().len()));
        Self(Arc::new(known))
    }

    /// Whether there is nothing to look for.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of a secret whose words stand in these bytes.
    #[must_use]
    pub fn finds(&self, bytes: &[u8]) -> Option<&str> {
        self.0.iter().find(|known| known.finder.find(bytes).is_some()).map(|known| known.name.as_str())
    }

    /// The text with names in the place of secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.finds(text.as_bytes()) {
            None => Cow::Borrowed(text),
            // Whole secrets were cut out between characters, so what is left is still UTF-8.
            Some(_) => Cow::Owned(String::from_utf8_lossy(&self.bytes(text.as_bytes().to_vec())).into_owned()),
        }
    }

    /// The bytes with names in the place of secrets.
    #[must_use]
    pub fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        if self.finds(&bytes).is_none() {
            return bytes;
        }
        let end = bytes.len();
        self.pass(&bytes, end).0
    }

    /// What stands before `until`, with names for the secrets that begin there, and how much of the bytes that was.
    fn pass(&self, bytes: &[u8], until: usize) -> (Vec<u8>, usize) {
        let (mut clean, mut at) = (Vec::with_capacity(bytes.len()), 0);
        let next = |known: &Known, from: usize| known.finder.find(bytes.get(from..)?).map(|found| from + found);
        let mut places: Vec<Option<usize>> = self.0.iter().map(|known| next(known, 0)).collect();
        loop {
            for (place, known) in places.iter_mut().zip(self.0.iter()) {
                if place.is_some_and(|place| place < at) {
                    *place = next(known, at);
                }
            }
            // They are sorted: of those that begin together the longest comes first.
            let begins = places.iter().zip(self.0.iter()).filter_map(|(place, known)| Some(((*place)?, known)));
            let Some((begin, known)) = begins.min_by_key(|(place, _)| *place).filter(|(begin, _)| *begin < until)
            else {
                let end = until.max(at);
                clean.extend_from_slice(bytes.get(at..end).unwrap_or_default());
                return (clean, end);
            };
            clean.extend_from_slice(bytes.get(at..begin).unwrap_or_default());
            clean.extend_from_slice(known.name.as_bytes());
            at = begin + known.finder.needle().len();
        }
    }

    /// How many bytes at the end of a piece may be the beginning of a secret.
    fn overlap(&self) -> usize {
        self.0.first().map_or(0, |longest| longest.finder.needle().len().saturating_sub(1))
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|known| &known.name)).finish()
    }
}

/// A stream of bytes on its way past a [`Redactor`], in pieces of any size.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    held: Vec<u8>,
}

impl RedactedStream {
    /// An empty stream.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Vec::new() }
    }

    /// Takes a piece; answers what may go on. The rest may be the beginning of a secret.
    #[must_use]
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        if self.redactor.is_idle() {
            return Cow::Borrowed(piece);
        }
        self.held.extend_from_slice(piece);
        // Each secret that begins before this stands there to its end, so the longest is known.
        let until = self.held.len().saturating_sub(self.redactor.overlap());
        let (clean, used) = self.redactor.pass(&self.held, until);
        self.held.drain(..used);
        Cow::Owned(clean)
    }

    /// What was held back.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        self.redactor.bytes(std::mem::take(&mut self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ambient;

    /// One secret that begins, ends, holds or follows another: whatever the pieces, the stream says what the whole says,
    /// and no beginning of a longer one is named for a shorter.
    #[test]
    fn every_cut_of_a_stream_gives_the_same_words() {
        let secret = |id: &str, words: &str| Secret::new(&Ambient::claim(), id, words.to_owned());
        let secrets =
            [secret("A", "abcdefghijkl"), secret("B", "abcdefgh"), secret("C", "ijklmnop"), secret("D", "xxxxxxxx")];
        let redactor = Redactor::new(&secrets);
        let table = [
            ("abcdefghijkl", "\u{2039}secret A\u{203a}"),
            ("-abcdefgh-", "-\u{2039}secret B\u{203a}-"),
            ("abcdefghijklmnop", "\u{2039}secret A\u{203a}mnop"),
            ("abcdefghabcdefghijkl", "\u{2039}secret B\u{203a}\u{2039}secret A\u{203a}"),
            ("abcdefghijk", "\u{2039}secret B\u{203a}ijk"),
            ("xxxxxxxxxxxxxxxxxx", "\u{2039}secret D\u{203a}\u{2039}secret D\u{203a}xx"),
            ("nothing of it", "nothing of it"),
        ];
        for (text, clean) in table {
            assert_eq!(redactor.text(text), clean);
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    let mut stream = RedactedStream::new(redactor.clone());
                    let mut out = Vec::new();
                    for piece in [&text[..first], &text[first..second], &text[second..]] {
                        out.extend_from_slice(&stream.push(piece.as_bytes()));
                    }
                    out.extend_from_slice(&stream.finish());
                    assert_eq!(String::from_utf8(out).unwrap(), clean, "{text} cut at {first} and {second}");
                }
            }
        }
    }
}
