//! The lines of a pod's journal, for scripts. The pod runs in this process: what it has folded is durable.

use super::RunOutput;
use session_store::{Following, ReadError, Reader};
use std::io::Write;
use std::path::PathBuf;

/// The lines of the session in `dir` from the record `next` on.
pub(crate) struct JournalLines {
    dir: PathBuf,
    next: u64,
    /// None before the first one is read, and after an error.
    following: Option<Following>,
}

impl JournalLines {
    pub(crate) fn from(dir: PathBuf, next: u64) -> Self {
        Self {
            dir,
            next,
            following: None,
        }
    }

    /// Prints the lines up to this record that were not printed yet. After an error it can be called again: it goes on
    /// where it was.
    pub(super) fn show<Out: Write, Err: Write>(
        &mut self,
        upto: u64,
        output: &mut RunOutput<Out, Err>,
    ) -> Result<(), ReadError> {
        if upto < self.next {
            return Ok(());
        }
        let mut following = match self.following.take() {
            Some(following) => following,
            None => Reader::open(&self.dir)?.upto(upto).from(self.next)?,
        };
        following.upto(upto)?;
        for frame in &mut following {
            let frame = frame?;
            output.line(&frame.line);
            self.next = frame.seq + 1;
        }
        self.following = Some(following);
        Ok(())
    }
}
