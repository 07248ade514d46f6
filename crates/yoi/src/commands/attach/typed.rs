//! What a person or a script types: a line is an input, a command behind a slash, or a shell command behind `!`.

use host::exit::{Failure, no_thread};
use std::io::{self, BufRead, Read};
use std::thread;
use tokio::sync::mpsc;
use tui::unknown_command;

/// The longest line; a pod takes no longer message.
const MAX_LINE: u64 = protocol::MAX_LINE as u64;

/// Lines that were read and not yet obeyed.
const AHEAD: usize = 16;

pub(super) const HELP: &str = "/steer INPUT, /cancel, /pause, /resume, /more, /compact, /pin TEXT, /unpin NUMBER, /status, /detach, /help; a line that begins with ! runs the rest as a shell command; \
     every other line is an input";

/// The names in [`HELP`].
const COMMANDS: [&str; 11] = [
    "steer", "cancel", "pause", "resume", "more", "compact", "pin", "unpin", "status", "detach",
    "help",
];

/// A line of standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Input(String),
    /// A shell command, without its `!`.
    Run(String),
    Steer(String),
    Cancel,
    Pause,
    Resume,
    /// With the oldest turns, or without.
    Compact(bool),
    Pin(String),
    Unpin(u64),
    More,
    Status,
    Detach,
    Help,
    /// Neither an input nor a command, and why.
    Wrong(String),
}

impl Typed {
    /// Reads a line; none of a blank one. With a space in front it is an input whatever it says.
    fn of(line: &str) -> Option<Self> {
        let text = line.trim();
        if text.is_empty() {
            return None;
        }
        if let Some(command) = line.strip_prefix('!') {
            return Some(match command.trim() {
                "" => Self::Wrong("`!` needs a command, as in `! ls`".to_owned()),
                command => Self::Run(command.to_owned()),
            });
        }
        let Some(command) = line.strip_prefix('/') else {
            return Some(Self::Input(text.to_owned()));
        };
        let (name, rest) = command
            .trim_end()
            .split_once(char::is_whitespace)
            .unwrap_or((command.trim_end(), ""));
        Some(match (name, rest.trim()) {
            ("steer", "") => Self::Wrong("/steer needs an input".to_owned()),
            ("steer", text) => Self::Steer(text.to_owned()),
            ("cancel", "") => Self::Cancel,
            ("pause", "") => Self::Pause,
            ("resume", "") => Self::Resume,
            ("compact", "") => Self::Compact(false),
            ("compact", "turns") => Self::Compact(true),
            ("pin", text) if !text.is_empty() => Self::Pin(text.to_owned()),
            ("unpin", number) => match number.parse() {
                Ok(pin) => Self::Unpin(pin),
                Err(_) => Self::Wrong("/unpin needs the number of a pin".to_owned()),
            },
            ("more", "") => Self::More,
            ("status", "") => Self::Status,
            ("detach", "") => Self::Detach,
            ("help", "") => Self::Help,
            (name, _) if COMMANDS.contains(&name) => {
                Self::Wrong(format!("write nothing after /{name}"))
            }
            _ => Self::Wrong(unknown_command(command, COMMANDS)),
        })
    }
}

/// The lines of standard input.
pub(super) struct Lines(mpsc::Receiver<Typed>);

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

    /// The next line; none at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Typed> {
        self.0.recv().await
    }
}

fn read(input: &mut impl BufRead, sender: &mpsc::Sender<Typed>) -> io::Result<()> {
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
                Some(Typed::Wrong(format!(
                    "a line of more than {} KiB was not sent",
                    MAX_LINE / 1024
                )))
            }
            Ok(line) => Typed::of(line),
            Err(_) => Some(Typed::Wrong(
                "a line that is not UTF-8 was not sent".to_owned(),
            )),
        };
        if typed.is_some_and(|typed| sender.blocking_send(typed).is_err()) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_input_or_a_command() {
        let input = |text: &str| Some(Typed::Input(text.to_owned()));
        assert_eq!(Typed::of("go on\r\n"), input("go on"));
        assert_eq!(Typed::of(" /cancel\n"), input("/cancel"));
        assert_eq!(Typed::of(" \t\n"), None);
        assert_eq!(
            Typed::of("/steer  use less \n"),
            Some(Typed::Steer("use less".to_owned()))
        );
        assert_eq!(Typed::of("/detach"), Some(Typed::Detach));
        assert_eq!(
            Typed::of("!cargo test \n"),
            Some(Typed::Run("cargo test".to_owned()))
        );
        assert_eq!(Typed::of(" ! wow\n"), input("! wow"));
        assert!(matches!(Typed::of("! \n"), Some(Typed::Wrong(_))));
        for line in ["/steer", "/usr/bin is full", "/cancel 3", "/", "/Cancel"] {
            assert!(matches!(Typed::of(line), Some(Typed::Wrong(_))), "{line}");
        }
    }

    #[test]
    fn the_names_of_the_commands_are_those_of_the_help() {
        for name in COMMANDS {
            assert!(HELP.contains(&format!("/{name}")), "{name}");
            let line = format!("/{name} 1");
            let said = Typed::of(&line);
            assert!(
                !matches!(&said, Some(Typed::Wrong(why)) if why.contains("there is no command")),
                "{said:?}"
            );
        }
        for (line, meant) in [
            ("/quit", "`/detach` leaves"),
            ("/stop", "`/cancel`"),
            ("/statsu", "`/status`?"),
            ("/more 3", "nothing after"),
        ] {
            assert!(
                matches!(Typed::of(line), Some(Typed::Wrong(why)) if why.contains(meant)),
                "{line}"
            );
        }
    }

    #[test]
    fn lines_that_cannot_be_sent_cost_no_other_line() {
        let (sender, mut lines) = mpsc::channel(AHEAD);
        let long = vec![b'x'; usize::try_from(MAX_LINE).unwrap() + 1];
        let input = [&b"one\n\xff\n"[..], &long, b"\ntwo"].concat();
        read(&mut input.as_slice(), &sender).unwrap();
        drop(sender);
        let read: Vec<Typed> = std::iter::from_fn(|| lines.blocking_recv()).collect();
        let wrong = |typed: &Typed| matches!(typed, Typed::Wrong(_));
        assert!(
            matches!(&read[..], [Typed::Input(one), bad, long, Typed::Input(two)]
            if one == "one" && wrong(bad) && wrong(long) && two == "two")
        );
    }
}
