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

/// The lines of standard input.
pub(super) struct Lines(mpsc::Receiver<TypedText>);

impl Lines {
    /// Reads on a thread of its own, which ends with the program.
    pub(super) fn begin(pod: &str) -> Result<Self, Failure> {
        let (sender, lines) = mpsc::channel(AHEAD);
        let pod = pod.to_owned();
        let read = move || {
            // Input that cannot be read any more has ended.
            drop(read(&mut io::stdin().lock(), &pod, &sender));
        };
        let started = thread::Builder::new().name("stdin".to_owned()).spawn(read);
        started.map_err(|e| no_thread(&e))?;
        Ok(Self(lines))
    }

    /// The next line; none at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<TypedText> {
        self.0.recv().await
    }
}

fn read(input: &mut impl BufRead, pod: &str, sender: &mpsc::Sender<TypedText>) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if input.take(MAX_LINE).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(());
        }
        let whole = bytes.ends_with(b"\n") || (bytes.len() as u64) < MAX_LINE;
        let typed = match std::str::from_utf8(&bytes) {
            _ if !whole => {
                input.skip_until(b'\n')?;
                TypedText::Wrong(format!(
                    "a line of more than {} KiB was not sent",
                    MAX_LINE / 1024
                ))
            }
            Ok(line) => read_plain(line, pod),
            Err(_) => TypedText::Wrong("a line that is not UTF-8 was not sent".to_owned()),
        };
        if typed != TypedText::Nothing && sender.blocking_send(typed).is_err() {
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
        read(&mut input.as_slice(), "p", &sender).unwrap();
        drop(sender);
        let read: Vec<TypedText> = std::iter::from_fn(|| lines.blocking_recv()).collect();
        let wrong = |typed: &TypedText| matches!(typed, TypedText::Wrong(_));
        assert!(
            matches!(&read[..], [TypedText::Input(one), bad, long, TypedText::Input(two)]
            if one == "one" && wrong(bad) && wrong(long) && two == "two")
        );
    }
}
