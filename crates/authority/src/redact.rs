//! Keeping secrets out of output. Does not depend on files or screens: code that writes or displays text passes it
//! through a [`Redactor`] first.

use crate::{Error, ErrorKind, Secret};
use aho_corasick::{AhoCorasick, AhoCorasickKind, Match, MatchKind};
use regex::{NoExpand, Regex};
use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

/// The shortest secret that is replaced, in bytes: a shorter one would match ordinary words.
pub const MIN_REDACTED: usize = 8;

/// The most bytes of all secrets together: room for some keys of 4 KiB, and less than 16 MiB of memory.
pub const MAX_REDACTED: usize = 256 * 1024;

/// What stands in place of a match of a pattern.
pub const REDACTED: &str = "[redacted]";

/// Comparisons that finding the beginning of a secret may take.
const MAX_SETTLING: usize = 16 * 1024;

/// Replaces the exact bytes of secrets by their names. Encoded forms of a secret are not recognised. Clones share the
/// secrets: one added to any clone is replaced by all.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Arc<Known>>>);

impl Redactor {
    /// A redactor of these secrets. Of two overlapping matches the earlier one is replaced; of two that start together,
    /// the longer one.
    ///
    /// # Errors
    /// As [`Redactor::add`].
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Result<Self, Error> {
        let known = Known::default().with(secrets)?;
        Ok(Self(Arc::new(RwLock::new(Arc::new(known)))))
    }

    /// Adds a secret, here and in every clone. Secrets are never removed: data obtained with one may still reach a
    /// text. Output already written does not change.
    ///
    /// # Errors
    /// `Exhausted` when there would be more than [`MAX_REDACTED`] bytes of secrets. Then nothing changes, and the
    /// caller must not use the secret, because it would not be redacted.
    pub fn add(&self, secret: &Secret) -> Result<(), Error> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *known = Arc::new(known.with([secret])?);
        Ok(())
    }

    /// Whether there are no secrets to replace.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.known().secrets.is_empty()
    }

    /// Adds patterns, here and in every clone: a match in a whole text becomes [`REDACTED`]. A stream of bytes keeps it.
    pub fn add_patterns(&self, patterns: &[Regex]) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = known.patterns.clone();
        for pattern in patterns {
            if all.iter().all(|known| known.as_str() != pattern.as_str()) {
                all.push(pattern.clone());
            }
        }
        *known = Arc::new(Known {
            secrets: known.secrets.clone(),
            automaton: known.automaton.clone(),
            patterns: all,
        });
    }

    /// The name of the first secret in these bytes, if there is one.
    #[must_use]
    pub fn finds(&self, bytes: &[u8]) -> Option<String> {
        let known = self.known();
        let found = known.find(bytes).next()?;
        Some(known.name(found))
    }

    /// The text with secrets replaced by their names, and without what matches a pattern.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let known = self.known();
        let named = match known.find(text.as_bytes()).next() {
            None => Cow::Borrowed(text),
            // Whole secrets were cut out between characters, so what is left is still UTF-8.
            Some(_) => String::from_utf8_lossy(&known.pass(text.as_bytes(), text.len()).0)
                .into_owned()
                .into(),
        };
        known.patterns.iter().fold(named, |text, pattern| {
            match pattern.replace_all(&text, NoExpand(REDACTED)) {
                Cow::Borrowed(_) => text,
                Cow::Owned(clean) => Cow::Owned(clean),
            }
        })
    }

    /// Of bytes whose beginning was cut off: how many may belong to a secret that began before, up to the end of a secret.
    pub fn cut(&self, bytes: &[u8]) -> usize {
        let known = self.known();
        known.pass(bytes, known.overlap().min(bytes.len())).1
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.known().secrets).finish()
    }
}

/// An immutable set of secrets. Readers share it; adding a secret creates a new set.
#[derive(Default)]
struct Known {
    /// The secrets in the order of the automaton's patterns.
    secrets: Vec<Secret>,
    automaton: Option<AhoCorasick>,
    patterns: Vec<Regex>,
}

impl Known {
    fn with<'a>(&self, more: impl IntoIterator<Item = &'a Secret>) -> Result<Self, Error> {
        let mut secrets = self.secrets.clone();
        for secret in more
            .into_iter()
            .filter(|secret| secret.words().len() >= MIN_REDACTED)
        {
            if secrets.iter().all(|known| known.words() != secret.words()) {
                secrets.push(secret.clone());
            }
        }
        let full = |why: &str| {
            Error::new(
                ErrorKind::Exhausted,
                format!("keep secrets out of texts: {why}"),
            )
        };
        let bytes: usize = secrets.iter().map(|secret| secret.words().len()).sum();
        if bytes > MAX_REDACTED {
            return Err(full(&format!(
                "they have {bytes} bytes; at most {MAX_REDACTED} are looked for"
            )));
        }
        // A table of all transitions would be faster, but of a thousand times the secrets' size.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(secrets.iter().map(Secret::words))
            .map_err(|error| full(&error.to_string()))?;
        Ok(Self {
            secrets,
            automaton: Some(automaton),
            patterns: self.patterns.clone(),
        })
    }

    fn find<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Match> + 'a {
        self.automaton
            .iter()
            .flat_map(move |automaton| automaton.find_iter(bytes))
    }

    fn name(&self, found: Match) -> String {
        self.secrets
            .get(found.pattern().as_usize())
            .map(Secret::to_string)
            .unwrap_or_default()
    }

    /// The bytes before `until`, with the secrets that start there replaced by names, and the number of bytes consumed.
    fn pass(&self, bytes: &[u8], until: usize) -> (Vec<u8>, usize) {
        let mut clean = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for found in self.find(bytes).take_while(|found| found.start() < until) {
            clean.extend_from_slice(bytes.get(at..found.start()).unwrap_or_default());
            clean.extend_from_slice(self.name(found).as_bytes());
            at = found.end();
        }
        let end = until.max(at);
        clean.extend_from_slice(bytes.get(at..end).unwrap_or_default());
        (clean, end)
    }

    /// How many bytes at the end of a piece may be the beginning of a secret.
    fn overlap(&self) -> usize {
        self.automaton
            .as_ref()
            .map_or(0, |automaton| automaton.max_pattern_len().saturating_sub(1))
    }
}

/// Redacts a stream of bytes that comes in pieces of any size.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    held: Vec<u8>,
}

impl RedactedStream {
    /// An empty stream.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            held: Vec::new(),
        }
    }

    /// Adds a piece and returns the bytes that are final. The rest may be the start of a secret and is kept for the
    /// next call.
    #[must_use]
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        let known = self.redactor.known();
        if known.secrets.is_empty() {
            return Cow::Borrowed(piece);
        }
        self.held.extend_from_slice(piece);
        // Each secret that starts before this is complete, so the longest match is known.
        let until = self.held.len().saturating_sub(known.overlap());
        let (clean, used) = known.pass(&self.held, until);
        self.held.drain(..used);
        Cow::Owned(clean)
    }

    /// What stays of the bytes that are kept back, up to the first that may begin a secret that is known: of a text
    /// that is shown before it is final. Nothing where that would take long to find out.
    #[must_use]
    pub fn settled(&self) -> Vec<u8> {
        let known = self.redactor.known();
        if self.held.len() * known.secrets.len() > MAX_SETTLING {
            return Vec::new();
        }
        let begins = |rest: &[u8]| {
            known
                .secrets
                .iter()
                .any(|secret| secret.words().len() > rest.len() && secret.words().starts_with(rest))
        };
        let until = (0..self.held.len()).find(|at| self.held.get(*at..).is_some_and(begins));
        known.pass(&self.held, until.unwrap_or(self.held.len())).0
    }

    /// Ends the stream: returns the remaining bytes.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.redactor.known().pass(&held, held.len()).0
    }
}

#[cfg(test)]
mod tests;
