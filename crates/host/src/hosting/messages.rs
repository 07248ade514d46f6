//! Lines for the person who starts a pod. Depends on no log, no protocol and no terminal.

/// Where these lines go, and which of them.
#[derive(Clone, Copy, Debug)]
pub struct PersonMessages {
    /// Only warnings.
    pub quiet: bool,
    /// Shows one line.
    pub write: fn(&str),
}

impl PersonMessages {
    /// One line, unless the person wants none.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// One line, also for those who want no progress.
    pub fn warn(&self, text: &str) {
        (self.write)(text);
    }
}
