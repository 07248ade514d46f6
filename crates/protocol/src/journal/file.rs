//! Records of file changes, and references to blobs. Do not depend on tools.

use crate::blob::{BlobRef, Digest, StreamGap};
use crate::item::CallId;

bodies! {
    /// The file that has it; part of [`Output`].
    ///
    /// A reference to a blob: bytes that are kept in a file beside the log.
    Stored: Eq {
        // BLAKE3 of the stored bytes: the blob's name.
        digest: Digest,
        bytes: u64,
        /// The part of a very long stream that was left out.
        - gap ?: StreamGap,
        /// With a gap: the digest of the whole stream.
        - whole ?: Digest,
    }
    /// A full text beside the journal.
    ///
    /// The full text of an output or an input that was too long to show, with the handle for paging it.
    Output: Eq {
        // The argument of the tool that pages outputs: `o-` and the first 12 digits of the digest.
        handle: String,
        stored: Stored,
    }
    /// A file is about to change.
    ///
    /// Body of `file_changed`: durable before the change becomes visible. `yoi undo` restores `before`.
    FileChanged: Eq {
        /// Absent for an undo.
        // The call that changes the file; none for `yoi undo`.
        call: Option<CallId>,
        // The file, absolute, symlinks resolved. A path that is not UTF-8 is refused earlier.
        path: String,
        // The bytes before; none if the file did not exist.
        before: Option<Stored>,
        /// Permission bits before.
        - mode: Option<u32>,
        // BLAKE3 of the bytes after, hex; none if the change removes the file.
        after: Option<String>,
        /// The directory that is created for the file, absolute; the topmost if there are several.
        - made ?: String,
    }
    /// A directory is about to be moved.
    ///
    /// Body of `directory_moved`: durable before the move becomes visible. A move that returns a directory to the source of
    /// an earlier move cancels the earlier move.
    DirectoryMoved: Eq {
        // The call that moves the directory; none for `yoi undo`.
        call: Option<CallId>,
        // The directory, absolute, symlinks resolved; UTF-8 like the paths of files.
        from: String,
        // The new path, in the same form.
        to: String,
        /// The directory that is created above `to`, absolute; the topmost if there are several.
        - made ?: String,
    }
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

impl From<Stored> for Output {
    fn from(stored: Stored) -> Self {
        Self::named("o", stored)
    }
}

impl Output {
    /// What begins the handles of values beside results.
    pub const DATA: &str = "d-";

    /// A value beside a result, as JSON text.
    #[must_use]
    pub fn of_data(stored: Stored) -> Self {
        Self::named("d", stored)
    }

    fn named(letter: &str, stored: Stored) -> Self {
        let digest = stored.digest.to_string();
        Self {
            handle: format!("{letter}-{}", digest.get(..12).unwrap_or(&digest)),
            stored,
        }
    }
}
