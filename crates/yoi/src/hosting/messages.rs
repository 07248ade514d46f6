//! Lines for the person who starts a pod, on standard error. Depends on no log and no protocol.

use crate::look::Look;
use std::io::Write;

/// Where these lines go, and which of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    /// Only warnings.
    pub(crate) quiet: bool,
}

impl Messages {
    /// One line, unless the person wants none.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// One line, also for those who want no progress.
    pub(crate) fn warn(&self, text: &str) {
        let text = match Look::of_stderr() {
            Some(look) => look.note(text),
            None => format!("{}\n", authority::text::escape_line(text)),
        };
        // A standard error that is gone cannot be told so.
        drop(std::io::stderr().write_all(text.as_bytes()));
    }
}
