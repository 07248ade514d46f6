//! Results on standard output, and the errors that reading a pod can give.

use crate::exit::{Exit, Failure};
use crate::show::escape::plain;
use session_store::{ErrorKind, ReadError};
use std::io::Write;

/// One line of a result. A reader that closed its end has seen enough.
pub(crate) fn line(text: &str) {
    drop(writeln!(std::io::stdout(), "{}", plain(text)));
}

/// A pod that does not read.
pub(crate) fn read_failure(name: &str, error: &ReadError) -> Failure {
    let exit = if error.kind() == ErrorKind::Corrupt { Exit::Data } else { Exit::Journal };
    let failure = Failure::new(exit, format!("{name}: {error}"));
    match exit {
        Exit::Data => failure.help(format!("`yoi verify {name}` says more; what is before it can be read")),
        _ => failure,
    }
}
