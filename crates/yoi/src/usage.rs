//! Usage errors: what is wrong with a command line, in the form of every other error. Parses nothing.

use crate::remedy;
use crate::report::Report;
use authority::text::escape_line;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use host::bad_value::BadValue;
use host::exit::{Exit, Failure};
use host::nearest::nearest;
use std::error::Error;
use std::ffi::OsString;
use std::num::ParseIntError;
use std::process::ExitCode;

/// Commands that take one text besides a pod.
const WITH_TEXT: [&str; 3] = ["yoi send", "yoi start", "yoi notify"];

/// What other programs of this kind call something, and what it is here.
const ELSEWHERE: [(&[&str], &str); 3] = [
    (
        &["exec", "chat", "ask", "prompt", "-p", "--print", "--prompt"],
        "`yoi run \"PROMPT\"` runs one prompt; `yoi` alone opens a conversation",
    ),
    (
        &["continue", "-c", "--continue"],
        "`yoi run --continue \"PROMPT\"` goes on with the last run here",
    ),
    (
        &["sessions", "-r", "--resume", "-s", "--session"],
        "`yoi ls` lists the pods; `yoi attach NAME` goes on with one",
    ),
];

const QUOTES: &str = "write the text in quotes";

/// Prints a usage error and gives the exit code; help that nobody asked for is one, too.
pub(crate) fn report(error: &clap::Error, args: &[OsString], command: Command) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            drop(error.print());
            Exit::Done.code()
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            drop(error.print());
            Exit::Usage.code()
        }
        _ => failure(error, args, command).report(),
    }
}

/// The help for a word that other programs know.
fn elsewhere(path: &str, word: &str) -> Option<String> {
    let knows = |(words, _): &&(&[&str], _)| words.contains(&word);
    ELSEWHERE
        .iter()
        .find(knows)
        .filter(|_| matches!(path, "yoi" | "yoi run"))
        .map(|(_, help)| (*help).to_owned())
}

/// A usage error as a failure. Words of the command line are escaped.
fn failure(error: &clap::Error, args: &[OsString], program: Command) -> Failure {
    let (path, command) = named(args, program);
    let manual = || format!("`{path} --help` lists the options");
    let argument = strings(error, ContextKind::InvalidArg).join(" ");
    let value = strings(error, ContextKind::InvalidValue).join(" ");
    let (message, help) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = strings(error, ContextKind::InvalidSubcommand).join(" ");
            let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let meant = nearest(&word, &known).map(|name| format!("did you mean `{name}`?"));
            // A sentence is a prompt.
            let called = if word.contains(char::is_whitespace) {
                "prompt"
            } else {
                &word
            };
            let meant = elsewhere(&path, called).or(meant);
            (
                format!("`{word}` is not a command"),
                meant.unwrap_or_else(|| format!("`{path} --help` lists the commands")),
            )
        }
        ErrorKind::MissingRequiredArgument => missing(&path, &argument).unwrap_or_else(|| {
            let verb = if argument.contains("> <") {
                "are"
            } else {
                "is"
            };
            (format!("{argument} {verb} missing"), manual())
        }),
        ErrorKind::UnknownArgument if path == "yoi run" && !argument.starts_with('-') => (
            format!("the prompt must be one argument; `{argument}` is a second one"),
            in_quotes(args, &argument),
        ),
        ErrorKind::UnknownArgument
            if WITH_TEXT.contains(&path.as_str()) && !argument.starts_with('-') =>
        {
            (
                format!("the input must be one argument; `{argument}` is a second one"),
                QUOTES.to_owned(),
            )
        }
        ErrorKind::UnknownArgument if path == "yoi" && starts_with(&command, &argument) => (
            format!("`yoi` has no option `{argument}`"),
            format!("write `yoi start NAME {argument} …`, then `yoi attach NAME`"),
        ),
        ErrorKind::UnknownArgument => {
            let what = if argument.starts_with('-') {
                "option"
            } else {
                "argument"
            };
            let meant = strings(error, ContextKind::SuggestedArg).join(" ");
            let help = match elsewhere(&path, &argument) {
                Some(help) => help,
                None if meant.is_empty() => manual(),
                None => format!("did you mean `{meant}`?"),
            };
            (format!("`{path}` has no {what} `{argument}`"), help)
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            (format!("{} needs a value", option(&argument)), manual())
        }
        ErrorKind::InvalidValue => {
            let known = strings(error, ContextKind::ValidValue);
            let meant = strings(error, ContextKind::SuggestedValue).join(" ");
            let help = if meant.is_empty() {
                manual()
            } else {
                format!("did you mean `{meant}`?")
            };
            (
                format!(
                    "{}: the value must be {}",
                    given(&argument, &value),
                    one_of(&known)
                ),
                help,
            )
        }
        ErrorKind::ValueValidation => match error.source() {
            Some(source) => {
                let help = source
                    .downcast_ref::<BadValue>()
                    .map_or_else(manual, |bad| remedy::help(&bad.help));
                let what = match source.downcast_ref::<ParseIntError>() {
                    Some(_) => format!("the value must be a whole number from 0 to {}", u64::MAX),
                    None => source.to_string(),
                };
                (format!("{}: {what}", given(&argument, &value)), help)
            }
            None => (
                format!("{} is not valid", given(&argument, &value)),
                manual(),
            ),
        },
        ErrorKind::ArgumentConflict => {
            let prior = strings(error, ContextKind::PriorArg);
            let prior: Vec<&str> = prior.iter().map(|prior| option(prior)).collect();
            if prior == [option(&argument)] {
                (
                    format!("{} is given more than once", option(&argument)),
                    "use it only once".to_owned(),
                )
            } else {
                let all = [option(&argument)]
                    .into_iter()
                    .chain(prior)
                    .collect::<Vec<_>>();
                let number = if all.len() == 2 { "the two" } else { "them" };
                (
                    format!("{} cannot be used together", all.join(" and ")),
                    format!("use only one of {number}"),
                )
            }
        }
        ErrorKind::TooManyValues => (
            format!("{} takes no value `{value}`", option(&argument)),
            manual(),
        ),
        ErrorKind::InvalidUtf8 => ("an argument is not UTF-8".to_owned(), manual()),
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            (
                first.strip_prefix("error: ").unwrap_or(first).to_owned(),
                manual(),
            )
        }
    };
    Failure::new(Exit::Usage, escape_line(&message)).help(escape_line(&help))
}

/// The command that a command line names, as far as it names one, and how it is called.
fn named(args: &[OsString], mut command: Command) -> (String, Command) {
    let mut path = "yoi".to_owned();
    for word in args.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(below) = command.find_subcommand(word).cloned() {
            path = format!("{path} {word}");
            command = below;
        }
    }
    (path, command)
}

/// Whether `yoi start` has this option.
fn starts_with(program: &Command, option: &str) -> bool {
    let start = program.find_subcommand("start");
    let name = |arg: &clap::Arg| {
        let short = arg
            .get_short()
            .is_some_and(|short| option == format!("-{short}"));
        short
            || option
                .strip_prefix("--")
                .is_some_and(|long| arg.get_long() == Some(long))
    };
    start.is_some_and(|start| start.get_arguments().any(name))
}

/// A required argument that people know by another word than its placeholder.
fn missing(path: &str, argument: &str) -> Option<(String, String)> {
    let (what, help) = match (path, argument.trim_end_matches("...")) {
        ("yoi feature new", "<NAME>") => ("the feature's name", "use a name such as my-feature"),
        ("yoi start", "<NAME>") => ("the pod's name", "write yoi start NAME \"INPUT\""),
        (_, "<NAME>") => ("the pod's name", "`yoi ls` lists the names"),
        ("yoi notify", _) => ("the notification", "write yoi notify NAME \"NOTIFICATION\""),
        ("yoi send", _) => ("the input", "write yoi send NAME \"INPUT\""),
        (_, "<SHELL>") => ("the shell", "use bash, elvish, fish or zsh"),
        (_, _) => return None,
    };
    Some((format!("{what} is missing"), help.to_owned()))
}

/// The words from the first one of a prompt without quotes to the last, in quotes. `second` is the word that was refused.
fn in_quotes(args: &[OsString], second: &str) -> String {
    let words: Vec<&str> = args.iter().filter_map(|word| word.to_str()).collect();
    let at = words
        .iter()
        .position(|word| *word == second)
        .unwrap_or_default();
    let first = words.get(at.saturating_sub(1)..).unwrap_or_default();
    let prompt: Vec<&str> = first
        .iter()
        .copied()
        .take_while(|word| !word.starts_with('-'))
        .collect();
    let plain = prompt.len() > 1
        && !prompt
            .iter()
            .any(|word| word.contains(['"', '\\', '$', '`', '!']));
    if plain {
        format!("use quotes: yoi run \"{}\"", prompt.join(" "))
    } else {
        "write the prompt in quotes".to_owned()
    }
}

/// An option without the placeholder of its value.
fn option(argument: &str) -> &str {
    argument
        .split_once(" <")
        .map_or(argument, |(option, _)| option)
}

/// An option with its value; the value alone where it has no option.
fn given(argument: &str, value: &str) -> String {
    let quote = if value.contains(char::is_whitespace) {
        "'"
    } else {
        ""
    };
    if argument.starts_with('-') {
        format!("{} {quote}{value}{quote}", option(argument))
    } else {
        format!("`{value}`")
    }
}

fn one_of(known: &[String]) -> String {
    match known.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

fn strings(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(_) | None => Vec::new(),
    }
}
