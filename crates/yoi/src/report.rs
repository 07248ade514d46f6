//! An error as a person reads it, on standard error.

use crate::look::Look;
use crate::remedy;
use authority::text::escape_lines;
use host::exit::Failure;
use host::hosting::messages::PersonMessages;
use std::io::Write;
use std::process::ExitCode;

/// How a failure is told.
pub(crate) trait Report {
    /// Prints it and gives the exit code.
    #[must_use]
    fn report(&self) -> ExitCode;

    /// Prints it. A standard error that is gone cannot be told so.
    fn say(&self);

    /// As it is printed.
    fn text(&self) -> String;
}

impl Report for Failure {
    fn report(&self) -> ExitCode {
        self.say();
        self.exit.code()
    }

    fn say(&self) {
        drop(std::io::stderr().write_all(self.text().as_bytes()));
    }

    fn text(&self) -> String {
        let mut text = labelled("error: ", &self.message);
        text.extend(
            self.help
                .iter()
                .map(|help| labelled("help: ", &remedy::help(help))),
        );
        text
    }
}

/// Lines about what this program does.
pub(crate) fn messages(quiet: bool) -> PersonMessages {
    PersonMessages { quiet, write: note }
}

fn note(text: &str) {
    let text = match Look::of_stderr() {
        Some(look) => look.note(text),
        None => format!("{}\n", authority::text::escape_line(text)),
    };
    // A standard error that is gone cannot be told so.
    drop(std::io::stderr().write_all(text.as_bytes()));
}

/// A text behind its label, for standard error. Its further lines stand below it, so that none of them looks like a line
/// of this program.
pub(crate) fn labelled(label: &str, text: &str) -> String {
    if let Some(look) = Look::of_stderr() {
        return look.labelled(label.trim_end(), text);
    }
    let margin = " ".repeat(label.len());
    format!(
        "{label}{}\n",
        escape_lines(text.trim_end()).replace('\n', &format!("\n{margin}"))
    )
}
