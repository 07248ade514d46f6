//! Records of file changes, and references to blobs. Do not depend on tools.

use llm_worker::CallId;
use serde::{Deserialize, Serialize};
use session_store::{BlobRef, Digest};

/// A reference to a blob: bytes that are kept in a file beside the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// BLAKE3 of the stored bytes: the blob's name.
    pub digest: Digest,
    pub bytes: u64,
    /// The part of a very long stream that was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<session_store::StreamGap>,
    /// With a gap: the digest of the whole stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Digest>,
}

impl Stored {
    /// Bytes of the whole stream, including those that were left out.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bytes + self.gap.map_or(0, |gap| gap.dropped)
    }
}

impl From<BlobRef> for Stored {
    fn from(blob: BlobRef) -> Self {
        Self {
            digest: blob.digest,
            bytes: blob.len,
            gap: None,
            whole: None,
        }
    }
}

/// The full text of an output or an input that was too long to show, with the handle for paging it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The argument of the tool that pages outputs: `o-` and the first 12 digits of the digest.
    pub handle: String,
    pub stored: Stored,
}

impl From<Stored> for Output {
    fn from(stored: Stored) -> Self {
        let digest = stored.digest.to_string();
        Self {
            handle: format!("o-{}", digest.get(..12).unwrap_or(&digest)),
            stored,
        }
    }
}

/// Body of `file_changed`: durable before the change becomes visible. `yoi undo` restores `before`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChanged {
    /// The call that changes the file; none for `yoi undo`.
    pub call: Option<CallId>,
    /// The file, absolute, symlinks resolved. A path that is not UTF-8 is refused earlier.
    pub path: String,
    /// The bytes before; none if the file did not exist.
    pub before: Option<Stored>,
    /// Permission bits before.
    pub mode: Option<u32>,
    /// BLAKE3 of the bytes after, hex; none if the change removes the file.
    pub after: Option<String>,
    /// The directory that is created for the file, absolute; the topmost if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
}

/// Body of `directory_moved`: durable before the move becomes visible. A move that returns a directory to the source of
/// an earlier move cancels the earlier move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryMoved {
    /// The call that moves the directory; none for `yoi undo`.
    pub call: Option<CallId>,
    /// The directory, absolute, symlinks resolved; UTF-8 like the paths of files.
    pub from: String,
    /// The new path, in the same form.
    pub to: String,
    /// The directory that is created above `to`, absolute; the topmost if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
}
