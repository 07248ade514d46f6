//! What a person or a script types: a line is an input, a command behind a slash, or a shell command behind `!`.

use host::exit::{Failure, no_thread};
use std::io::{self, BufRead, Read};
use std::thread;
use tokio::sync::mpsc;
use tui::slash::{TypedText, read_plain};

/// The longest line; a pod takes no longer message.
const MAX_LINE: u64 = protocol::MAX_LINE as u64;

/// Lines that were read and not yet obeyed.
const AHEAD: usize = 16;

/// The lines of standard input, or why one cannot be sent.
pub(super) struct Lines(mpsc::Receiver<Result<String, String>>);

impl Lines {
    /// Reads on a thread of its own, which ends with the program.
    pub(super) fn begin() -> Result<Self, Failure> {
        let (sender, lines) = mpsc::channel(AHEAD);
        let read = move || {
            // Input that cannot be read any more has ended.
            drop(read(&mut io::stdin().lock(), &sender));
        };
        let started = thread::Builder::new().name("stdin".to_owned()).spawn(read);
        started.map_err(|e| no_thread(&e))?;
        Ok(Self(lines))
    }

    /// The next line, for this pod; none at the end. Cancel-safe.
    pub(super) async fn next(&mut self, pod: &str) -> Option<TypedText> {
        let line = self.0.recv().await?;
        Some(line.map_or_else(TypedText::Wrong, |line| read_plain(&line, pod)))
    }
}

fn read(input: &mut impl BufRead, sender: &mpsc::Sender<Result<String, String>>) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if input.take(MAX_LINE).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(());
        }
        let whole = bytes.ends_with(b"\n") || (bytes.len() as u64) < MAX_LINE;
        let line = match std::str::from_utf8(&bytes) {
            _ if !whole => {
                input.skip_until(b'\n')?;
                Err(format!(
                    "a line of more than {} KiB was not sent",
                    MAX_LINE / 1024
                ))
            }
            Ok(line) => Ok(line.to_owned()),
            Err(_) => Err("a line that is not UTF-8 was not sent".to_owned()),
        };
        if sender.blocking_send(line).is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_cannot_be_sent_cost_no_other_line() {
        let (sender, mut lines) = mpsc::channel(AHEAD);
        let long = vec![b'x'; usize::try_from(MAX_LINE).unwrap() + 1];
        let input = [&b"one\n\xff\n"[..], &long, b"\ntwo"].concat();
        read(&mut input.as_slice(), &sender).unwrap();
        drop(sender);
        let read: Vec<_> = std::iter::from_fn(|| lines.blocking_recv()).collect();
        assert!(matches!(&read[..], [Ok(one), Err(_), Err(_), Ok(two)]
            if one == "one\n" && two == "two"));
    }
}
