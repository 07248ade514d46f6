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
    /// Looks for these; of two that overlap, the longer one first.
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
    pub fn bytes(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        for Known { finder, name } in self.0.iter() {
            if finder.find(&bytes).is_none() {
                continue;
            }
            let (mut clean, mut from) = (Vec::with_capacity(bytes.len()), 0);
            for at in finder.find_iter(&bytes) {
                clean.extend_from_slice(bytes.get(from..at).unwrap_or_default());
                clean.extend_from_slice(name.as_bytes());
                from = at + finder.needle().len();
            }
            clean.extend_from_slice(bytes.get(from..).unwrap_or_default());
            bytes = clean;
        }
        bytes
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
        let mut clean = self.redactor.bytes(std::mem::take(&mut self.held));
        let keep = clean.len().min(self.redactor.overlap());
        self.held = clean.split_off(clean.len() - keep);
        Cow::Owned(clean)
    }

    /// What was held back.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}
