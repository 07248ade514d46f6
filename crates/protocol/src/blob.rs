//! What names a blob, and what was left out of it. Does not depend on files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// BLAKE3 of a blob's bytes; 64 lower-case hexadecimal digits in text and JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest")]
pub struct NotADigest(String);

impl TryFrom<String> for Digest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Self, NotADigest> {
        text.parse()
    }
}

impl std::str::FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        // One way to write each digest, which is a file's name, too.
        let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let hash = blake3::Hash::from_hex(text).ok().filter(|_| lower);
        hash.map(|hash| Self(*hash.as_bytes()))
            .ok_or_else(|| NotADigest(text.to_owned()))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl From<&blake3::Hasher> for Digest {
    fn from(hasher: &blake3::Hasher) -> Self {
        Self(*hasher.finalize().as_bytes())
    }
}

/// The reference to a blob in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlobRef {
    pub digest: Digest,
    pub len: u64,
}

/// The part of a stream that a writer dropped because the stream was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamGap {
    /// The offset in the stored bytes where the head ends and the tail starts.
    pub at: u64,
    pub dropped: u64,
}
