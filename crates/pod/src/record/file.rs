//! Records of files, and the blobs that records name. They know no tool.

use llm_worker::CallId;
use serde::{Deserialize, Serialize};
use session_store::{BlobRef, Digest};

/// Bytes kept beside the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// BLAKE3 of the stored bytes: the blob's name.
    pub digest: Digest,
    pub bytes: u64,
    /// Where the middle of a very long stream was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<session_store::StreamGap>,
    /// With a gap: the digest of the whole stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Digest>,
}

impl Stored {
    /// Bytes there were before any were left out.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bytes + self.gap.map_or(0, |gap| gap.dropped)
    }
}

impl From<BlobRef> for Stored {
    fn from(blob: BlobRef) -> Self {
        Self { digest: blob.digest, bytes: blob.len, gap: None, whole: None }
    }
}

/// A full text and the handle that names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// What the tool that pages outputs takes: `o-` and the first 12 digits of the digest.
    pub handle: String,
    pub stored: Stored,
}

impl From<Stored> for Output {
    fn from(stored: Stored) -> Self {
        let digest = stored.digest.to_string();
        Self { handle: format!("o-{}", digest.get(..12).unwrap_or(&digest)), stored }
    }
}

/// Body of `file_changed`: written before the change becomes visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChanged {
    /// The call that does it; none for `yoi undo`.
    pub call: Option<CallId>,
    /// The file, absolute, symlinks resolved. A path that is not UTF-8 is refused before it comes to this.
    pub path: String,
    /// The bytes before; none when the file did not exist.
    pub before: Option<Stored>,
    /// Permission bits before.
    pub mode: Option<u32>,
    /// BLAKE3 of the bytes after, hex; none when the change removes the file.
    pub after: Option<String>,
    /// The directory that is made for it, absolute; the topmost where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
}

/// Body of `directory_moved`: written before the move becomes visible. One that brings a directory back to where an
/// earlier one found it takes that back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryMoved {
    /// The call that does it; none for `yoi undo`.
    pub call: Option<CallId>,
    /// The directory, absolute, symlinks resolved; UTF-8 like the paths of files.
    pub from: String,
    /// Its new name, likewise.
    pub to: String,
    /// The directory that is made above that, absolute; the topmost where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
}
