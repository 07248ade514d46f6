//! The prompt, from the command line, from standard input, or both.

use crate::cli::RunArgs;
use crate::socket::LiveClient;
use authority::text::first_line;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::plain_file;
use protocol::method::GetFeatures;
use rustix::fs::{FileType, fstat};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use tui::slash::{foreign, unknown_to_pod};

/// Characters of an argument that are shown.
const SHOWN: usize = 40;

/// The longest input, in bytes; what is over 256 KiB is kept whole and shown to the model in part.
const MAX_INPUT: u64 = 64 * 1024 * 1024;

/// How long standard input may stay open before it is said that it is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a person typed the argument as a command of the pod; what standard input has, something else may have written.
pub(crate) fn is_command(argument: Option<&OsStr>) -> bool {
    argument.is_some_and(|text| text.as_encoded_bytes().starts_with(b"/"))
}

/// Refuses an argument that has the form of a command, if it is none of these of the pod: nobody means to send that to a model.
pub(crate) fn check_command(argument: Option<&OsStr>, known: &[String]) -> Result<(), Failure> {
    let typed = argument.and_then(OsStr::to_str).unwrap_or_default();
    let Some(why) = unknown_to_pod(typed, known) else {
        return Ok(());
    };
    let shown = first_line(typed, SHOWN);
    Err(Failure::new(Exit::Usage, why).help(format!(
        "to send the text as it is, put a space in front of it: \" {shown}\""
    )))
}

/// The same for a live pod; one of an older program tells no commands, and takes the text as it is.
pub(crate) async fn check_live_command(
    argument: Option<&OsStr>,
    live: &mut LiveClient,
) -> Result<(), Failure> {
    if !is_command(argument) {
        return Ok(());
    }
    match live.ask(&GetFeatures {}).await {
        Ok(told) => {
            let known = foreign(&told.report).into_iter();
            check_command(argument, &known.map(|known| known.name).collect::<Vec<_>>())
        }
        Err(_older) => Ok(()),
    }
}

pub(crate) fn prompt(args: &RunArgs, env: &Env) -> Result<String, Failure> {
    let unfit = || {
        Failure::new(Exit::Usage, "the prompt is not UTF-8")
            .help("convert it, for instance with iconv")
    };
    let given = args
        .prompt
        .as_ref()
        .map(|prompt| prompt.to_str().ok_or_else(unfit))
        .transpose()?;
    let text = match given {
        Some("-") => read(env)?,
        Some(prompt) if piped(env) => match read(env)? {
            attached if attached.trim().is_empty() => prompt.to_owned(),
            attached => format!(
                "{prompt}\n\n<stdin>\n{}\n</stdin>",
                attached.strip_suffix('\n').unwrap_or(&attached)
            ),
        },
        Some(prompt) => prompt.to_owned(),
        None if env.stdin_terminal => {
            return Err(Failure::new(Exit::Usage, "the prompt is missing").help(example(args)));
        }
        None => read(env)?,
    };
    if text.trim().is_empty() {
        let what = if given.is_some() {
            "the prompt is empty"
        } else {
            "the prompt is missing"
        };
        return Err(Failure::new(Exit::Usage, what).help(example(args)));
    }
    Ok(text)
}

/// The same command with a prompt.
fn example(args: &RunArgs) -> String {
    match &args.pod {
        Some(name) => format!("write yoi run --pod {name} \"PROMPT\""),
        None if args.resume => "write yoi run -c \"PROMPT\"".to_owned(),
        None => "write yoi run \"PROMPT\", for example yoi run \"how many Rust files are here?\""
            .to_owned(),
    }
}

/// The prompt of a start, which may have none. Standard input is only read where the command line says so: it may be
/// for what follows the start.
pub(crate) fn optional(prompt: Option<&OsString>, env: &Env) -> Result<Option<String>, Failure> {
    prompt.map(|prompt| given(prompt, env)).transpose()
}

/// A text that is given as an argument, or is standard input where that is `-`.
pub(crate) fn given(text: &OsStr, env: &Env) -> Result<String, Failure> {
    let unfit = || {
        Failure::new(Exit::Usage, "the input is not UTF-8")
            .help("convert it, for instance with iconv")
    };
    let text = match text.to_str().ok_or_else(unfit)? {
        "-" => read(env)?,
        text => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(Failure::new(Exit::Usage, "the input is empty"));
    }
    Ok(text)
}

/// Whether standard input is something that ends: a pipe, a socket or a file, not a terminal and not `/dev/null`.
fn piped(env: &Env) -> bool {
    let kind = fstat(io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    !env.stdin_terminal
        && matches!(
            kind,
            Ok(FileType::Fifo | FileType::Socket | FileType::RegularFile)
        )
}

fn read(env: &Env) -> Result<String, Failure> {
    let (done, told) = mpsc::channel::<()>();
    if piped(env) {
        let tell = move || {
            if told.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // Said even to those who want no progress: a run that hangs must say why.
                drop(
                    io::stderr()
                        .write_all(b"waiting for standard input to end (</dev/null skips it)\n"),
                );
            }
        };
        // Without a thread nothing is told.
        thread::Builder::new().spawn(tell).ok();
    }
    let mut bytes = Vec::new();
    let read = io::stdin()
        .lock()
        .take(MAX_INPUT + 1)
        .read_to_end(&mut bytes);
    drop(done);
    read.map_err(|e| Failure::new(Exit::Data, format!("standard input: {e}")))?;
    if bytes.len() as u64 > MAX_INPUT {
        return Err(
            Failure::new(Exit::Data, "standard input is larger than 64 MiB")
                .help("save it to a file in the project and name that file in the prompt"),
        );
    }
    plain_file::text(&bytes).map(str::to_owned).map_err(|why| {
        Failure::new(Exit::Data, format!("standard input {why}"))
            .help("convert it, for instance with iconv, or save it to a file and name that file in the prompt")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_standard_input_has_is_no_command() {
        let is = |text: &str| is_command(Some(OsStr::new(text)));
        assert!(is("/review a"));
        assert!(!is("-") && !is("see /review") && !is_command(None));
    }

    /// A command of a file must not hide one of the screen.
    #[test]
    fn the_names_of_the_screen_are_those_that_win() {
        let screen: BTreeSet<&str> = tui::slash::COMMANDS.iter().map(|own| own.name).collect();
        let winning: BTreeSet<&str> = host::skills::SLASH.iter().copied().collect();
        assert_eq!(screen, winning);
    }
}
