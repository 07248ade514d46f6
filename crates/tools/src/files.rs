//! The live handle of Read, Write and Edit. Does not depend on their arguments.

use crate::answer::{fail, fix, go_on, refused, unreadable};
use crate::lines::CHECK_EVERY;
use crate::scope::{self, Remedies};
use crate::seen::{ReadFiles, ReadState};
use crate::sniff::{HEAD, binary};
use authority::{FileKind, Located, Stamp, Workspace};
use llm_worker::{ErrorKind, ToolContext, ToolError};
use std::io::Read;
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// The largest file, in bytes, that Write and Edit change, and that Read reads whole to know its digest.
pub const MAX_FILE: u64 = 10 * 1024 * 1024;

/// The live handle of Read, Write and Edit: the files of a workspace, and the digests of content that the model has
/// seen. One instance serves one session.
#[derive(Debug)]
pub struct Files {
    pub(crate) workspace: Workspace,
    pub(crate) seen: ReadFiles,
    pub(crate) remedies: Option<Remedies>,
    changing: Mutex<()>,
}

/// A file as read before a change; see [`Files::before`].
#[derive(Debug)]
pub struct Before {
    pub bytes: Vec<u8>,
    pub mode: u32,
    /// Taken before the bytes were read.
    pub stamp: Stamp,
}

impl Files {
    /// Creates a handle for the directories of `workspace`; no content is seen yet.
    #[must_use]
    pub fn new(workspace: Workspace) -> Self {
        Self {
            workspace,
            seen: ReadFiles::default(),
            remedies: None,
            changing: Mutex::new(()),
        }
    }

    /// Sets the host's text about the setting that would allow a denied path.
    #[must_use]
    pub fn with_remedies(self, words: Remedies) -> Self {
        Self {
            remedies: Some(words),
            ..self
        }
    }

    /// Waits for the lock for changing files. Calls of one answer run concurrently: without the lock, the second of two
    /// edits of one file would undo the first.
    ///
    /// # Errors
    /// `Cancelled`.
    pub async fn one_at_a_time(&self, cx: &ToolContext) -> Result<MutexGuard<'_, ()>, ToolError> {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Err(fail(ErrorKind::Cancelled, "cancelled before anything was changed")),
            guard = self.changing.lock() => Ok(guard),
        }
    }

    /// The directories.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Reads the file that is about to change; `None` if there is none.
    ///
    /// # Errors
    /// `FixInput` if it is not a file or has more than [`MAX_FILE`] bytes; the handle's error; `Cancelled`.
    pub fn before(&self, at: &Located, cx: &ToolContext) -> Result<Option<Before>, ToolError> {
        self.content(at, &cx.cancel)
    }

    pub(crate) fn content(
        &self,
        at: &Located,
        cancel: &CancellationToken,
    ) -> Result<Option<Before>, ToolError> {
        let shown = self.workspace.show(at.path());
        let meta = match self.workspace.metadata(at) {
            Ok(meta) => meta,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(refused(&error)),
        };
        if meta.kind == FileKind::Dir {
            return Err(fix(format!("{shown} is a directory; name a file in it")));
        }
        let mut file = self
            .workspace
            .open_file(at)
            .map_err(|error| refused(&error))?;
        let mut bytes = Vec::new();
        while bytes.len() as u64 <= MAX_FILE {
            go_on(cancel)?;
            let read = file
                .by_ref()
                .take(CHECK_EVERY as u64)
                .read_to_end(&mut bytes);
            if read.map_err(|error| unreadable(&shown, &error))? == 0 {
                return Ok(Some(Before {
                    bytes,
                    mode: meta.mode,
                    stamp: meta.stamp,
                }));
            }
        }
        Err(fix(format!(
            "{shown} is over {MAX_FILE} bytes, too large to be changed here; use Bash"
        )))
    }

    /// Refuses to change content that the model has not seen.
    pub(crate) fn must_be_seen(&self, at: &Located, before: &Before) -> Result<(), ToolError> {
        let shown = || self.workspace.show(at.path());
        match self.seen.known(at.path(), blake3::hash(&before.bytes)) {
            ReadState::Current => Ok(()),
            ReadState::Never => Err(fix(
                match binary(before.bytes.get(..HEAD).unwrap_or(&before.bytes)) {
                    Some(what) => format!("{} is {what}; it is not changed here", shown()),
                    None => format!(
                        "{} has not been read since this pod started; Read it first",
                        shown()
                    ),
                },
            )),
            ReadState::Changed => Err(fix(format!(
                "{} has changed since it was read; Read it again first",
                shown()
            ))),
        }
    }

    /// What is at a place that must exist and be a file.
    pub(crate) fn existing_file(&self, at: &Located) -> Result<u64, ToolError> {
        let meta = scope::existing(&self.workspace, at)?;
        match meta.kind {
            FileKind::Dir => Err(fix(format!(
                "`{}` is a directory; use List",
                self.workspace.show(at.path())
            ))),
            // Anything else that is no file is refused, by name, when it is opened.
            FileKind::File | FileKind::Symlink | FileKind::Other => Ok(meta.len),
        }
    }
}
