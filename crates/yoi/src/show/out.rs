//! Results on standard output; knows no command.

use super::escape::json as harmless;
use crate::look::Look;
use authority::text::{escape_line, escape_lines};
use host::exit::{Exit, Failure};
use std::future::pending;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;
use tui::{Line, Tone};

/// The first thing that standard output refused. A reader that closed its end has seen enough: that is no failure.
static REFUSED: Mutex<Option<String>> = Mutex::new(None);

/// Something was refused, for whatever reason.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Whether standard output takes no more.
pub(crate) fn is_unread() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// One line of a result, whatever is in it.
pub(crate) fn line(text: &str) {
    raw(&format!("{}\n", escape_line(text)));
}

/// One line of a result for people: on a terminal it breaks between words, and what goes on is indented.
pub(crate) fn wrapped(text: &str) {
    let Some(look) = Look::of_stdout() else {
        return line(text);
    };
    let rest = Line::of("  ", Tone::Plain);
    raw(&look.text(&Line::of(text, Tone::Plain).wrap(look.width(), &Line::default(), &rest)));
}

/// Lines of a text whose lines are its own.
pub(crate) fn lines(text: &str) {
    raw(&format!("{}\n", escape_lines(text)));
}

pub(crate) fn json(document: &serde_json::Value) {
    raw(&format!("{}\n", harmless(&document.to_string())));
}

/// Text as it stands.
pub(crate) fn raw(text: &str) {
    bytes(text.as_bytes());
}

/// Bytes as they stand.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    noted(out.write_all(bytes).and_then(|()| out.flush()));
}

/// Resolves when the reader of standard output has closed its end; never for a file, of which the kernel tells nothing.
pub(crate) async fn reader_left() {
    let stdout = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .and_then(Sender::from_owned_fd_unchecked);
    let Ok(stdout) = stdout else {
        return pending().await;
    };
    if stdout.ready(Interest::ERROR).await.is_err() {
        pending().await
    }
}

/// Notes what became of a write to standard output; `false` when nothing more can be written there.
pub(crate) fn noted(written: io::Result<()>) -> bool {
    let Err(error) = written else { return true };
    UNREAD.store(true, Ordering::Relaxed);
    if error.kind() != io::ErrorKind::BrokenPipe {
        REFUSED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error.to_string());
    }
    false
}

/// A result that did not arrive whole, for the end of the program.
pub(crate) fn refused() -> Option<Failure> {
    let refused = REFUSED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    refused.map(|what| {
        Failure::new(
            Exit::Journal,
            format!("standard output cannot be written: {what}"),
        )
    })
}
