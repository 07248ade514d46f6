//! The content of a package: a digest of each file, and one of all of them. What a person grants is this content.

use std::collections::BTreeMap;
use std::fmt;

/// Most files of a package.
pub const MAX_FILES: usize = 4096;
/// Most bytes of all files of a package.
pub const MAX_BYTES: u64 = 64 << 20;
/// How deep directories of a package may lie in each other.
pub const MAX_DEPTH: usize = 16;

/// The files of a package by their paths, with `/` between names: whether they can be executed, and a digest of their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    files: BTreeMap<String, FileDigest>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileDigest {
    executable: bool,
    blake3: blake3::Hash,
}

/// Why a package has no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadContent {
    #[error("it has more than {MAX_FILES} files")]
    Files,
    #[error("its files have more than {} MiB", MAX_BYTES >> 20)]
    Bytes,
}

impl Content {
    /// Adds a file.
    ///
    /// # Errors
    /// The package is too large.
    pub fn add(&mut self, path: String, executable: bool, bytes: &[u8]) -> Result<(), BadContent> {
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if self.bytes > MAX_BYTES {
            return Err(BadContent::Bytes);
        }
        self.files.insert(
            path,
            FileDigest {
                executable,
                blake3: blake3::hash(bytes),
            },
        );
        if self.files.len() > MAX_FILES {
            Err(BadContent::Files)
        } else {
            Ok(())
        }
    }

    /// BLAKE3 over the sorted paths, execute bits and digests, in lower-case hex.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut all = blake3::Hasher::new();
        for (path, FileDigest { executable, blake3 }) in &self.files {
            all.update(&(path.len() as u64).to_le_bytes())
                .update(path.as_bytes());
            all.update(&[u8::from(*executable)])
                .update(blake3.as_bytes());
        }
        all.finalize().to_hex().to_string()
    }

    /// Whether it has exactly this file.
    #[must_use]
    pub fn has(&self, path: &str, bytes: &[u8]) -> bool {
        self.files
            .get(path)
            .is_some_and(|file| file.blake3 == blake3::hash(bytes))
    }

    /// Whether it has a file with this path, or files below it.
    #[must_use]
    pub fn has_path(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let below = |file: &String| {
            file.strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.files.keys().any(below)
    }

    /// One line for each file, as it is kept with a grant: `x` or `-`, the digest, the path.
    pub fn lines(&self) -> impl Iterator<Item = (String, String)> {
        self.files
            .iter()
            .map(|(path, file)| (path.clone(), file.to_string()))
    }

    /// What differs from the content that was granted: `changed`, `new` or `gone`, with the path.
    #[must_use]
    pub fn since(&self, granted: &BTreeMap<String, String>) -> Vec<String> {
        let now: BTreeMap<String, String> = self.lines().collect();
        let gone = granted
            .keys()
            .filter(|path| !now.contains_key(*path))
            .map(|path| format!("gone: {path}"));
        let others = now
            .iter()
            .filter_map(|(path, file)| match granted.get(path) {
                None => Some(format!("new: {path}")),
                Some(before) => (before != file).then(|| format!("changed: {path}")),
            });
        others.chain(gone).collect()
    }
}

impl fmt::Display for FileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}",
            if self.executable { 'x' } else { '-' },
            self.blake3.to_hex()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(files: &[(&str, bool, &str)]) -> Content {
        let mut content = Content::default();
        for (path, executable, text) in files {
            content
                .add((*path).to_owned(), *executable, text.as_bytes())
                .unwrap();
        }
        content
    }

    #[test]
    fn each_byte_bit_and_name_counts() {
        let one = content(&[("a", false, "x"), ("b/c", true, "y")]);
        assert!(one.has("a", b"x") && !one.has("a", b"y") && !one.has("b", b"x"));
        let paths =
            ["a", "b", "b/", "b/c", "", "b/", "c", "b/c/d", "ab"].map(|path| one.has_path(path));
        assert_eq!(
            paths,
            [true, true, true, true, false, true, false, false, false]
        );
        assert_eq!(
            one.digest(),
            content(&[("b/c", true, "y"), ("a", false, "x")]).digest()
        );
        for other in [
            content(&[("a", false, "x"), ("b/c", true, "z")]),
            content(&[("a", false, "x"), ("b/c", false, "y")]),
            content(&[("a", false, "x"), ("b/d", true, "y")]),
            content(&[("a", false, "x")]),
            content(&[("a", false, "x"), ("b/c", true, "y"), ("d", false, "")]),
            content(&[("ab/c", false, "x"), ("", true, "y")]),
        ] {
            assert_ne!(one.digest(), other.digest(), "{other:?}");
        }
    }

    #[test]
    fn what_changed_is_named() {
        let granted = content(&[("a", false, "x"), ("b", false, "y"), ("c", false, "z")])
            .lines()
            .collect();
        let now = content(&[("a", true, "x"), ("c", false, "z"), ("d", false, "new")]);
        assert_eq!(now.since(&granted), ["changed: a", "new: d", "gone: b"]);
    }

    #[test]
    fn a_package_is_bounded() {
        let mut content = Content::default();
        for number in 0..MAX_FILES {
            content.add(number.to_string(), false, b"").unwrap();
        }
        assert_eq!(
            content.add("more".to_owned(), false, b""),
            Err(BadContent::Files)
        );
        let half = vec![0; usize::try_from(MAX_BYTES / 2).unwrap()];
        let mut content = Content::default();
        content.add("a".to_owned(), false, &half).unwrap();
        content.add("b".to_owned(), false, &half).unwrap();
        assert_eq!(
            content.add("c".to_owned(), false, b"x"),
            Err(BadContent::Bytes)
        );
    }
}
