//! What a person types that is no input: a command of the screen behind a slash, or a shell command behind `!`.

/// A command and what it does.
pub(super) struct CommandHelp {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
}

/// Only for a pod that tells its features.
pub(super) const FEATURES: &str = "features";

/// Every command.
pub(super) const COMMANDS: &[CommandHelp] = &[
    CommandHelp {
        name: "approvals",
        about: "show what waits for you (F4)",
    },
    CommandHelp {
        name: "cancel",
        about: "end the running turn (Esc)",
    },
    CommandHelp {
        name: "compact",
        about: "leave old steps out of the requests; turns: the oldest turns, too",
    },
    CommandHelp {
        name: "context",
        about: "show what the next request has (F5)",
    },
    CommandHelp {
        name: "copy",
        about: "copy the newest answer",
    },
    CommandHelp {
        name: "detach",
        about: "leave; the pod keeps running (Ctrl-D)",
    },
    CommandHelp {
        name: "diff",
        about: "show what this pod changed in files; turn: in the newest turn",
    },
    CommandHelp {
        name: "editor",
        about: "write the input in your editor (Ctrl-G)",
    },
    CommandHelp {
        name: FEATURES,
        about: "show what the features add and may do (F2)",
    },
    CommandHelp {
        name: "help",
        about: "show the keys (F1)",
    },
    CommandHelp {
        name: "log",
        about: "open the whole conversation in your editor",
    },
    CommandHelp {
        name: "model",
        about: "show the models, and change to another one",
    },
    CommandHelp {
        name: "more",
        about: "continue after a limit of [limits.pod]: as much again",
    },
    CommandHelp {
        name: "new",
        about: "start a new pod in this directory, and go there",
    },
    CommandHelp {
        name: "pause",
        about: "hold the pod before its next request",
    },
    CommandHelp {
        name: "pin",
        about: "TEXT: it stays in the context; alone: show the pins (F5)",
    },
    CommandHelp {
        name: "pods",
        about: "show all pods, and go to another one (F4)",
    },
    CommandHelp {
        name: "print",
        about: "print the whole conversation into the terminal",
    },
    CommandHelp {
        name: "resume",
        about: "continue a held pod",
    },
    CommandHelp {
        name: "search",
        about: "search the transcript (Ctrl-F)",
    },
    CommandHelp {
        name: "status",
        about: "show tasks, jobs and the pod (F3)",
    },
    CommandHelp {
        name: "steer",
        about: "INPUT: the running turn takes it at its next step",
    },
    CommandHelp {
        name: "undo",
        about: "undo the newest turn that changed files; all: every change",
    },
    CommandHelp {
        name: "unpin",
        about: "NUMBER: this text may leave the context",
    },
];

/// Commands of other programs, and what does the same here.
const HABITS: [&str; 9] = [
    "quit exit q bye logout close wq: `/detach` leaves, and the pod keeps running; `yoi stop NAME` stops it",
    "stop abort interrupt kill: `/cancel` ends the running turn; `yoi stop NAME` stops the pod",
    "h ? commands keys: `/help` shows the keys and commands",
    "clear new reset: `yoi start NAME` starts a pod with an empty conversation; `/compact turns` leaves out the oldest turns",
    "continue unpause: `/resume` continues a held pod",
    "cost usage tokens: `yoi status NAME` shows the cost",
    "model models: `yoi stop NAME`, then `yoi start NAME -m MODEL` changes the model",
    "approve allow deny permissions: `yoi approve` lists and answers the calls that wait",
    "undo rewind diff: `yoi diff NAME` shows the changes of files, and `yoi undo NAME` undoes them",
];

/// What a text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypedText {
    Nothing,
    Input(String),
    /// `!` and a shell command.
    Run(String),
    Command {
        name: &'static str,
        rest: String,
    },
    /// Neither, and why.
    Wrong(String),
}

/// Begins a text that runs as a shell command.
pub(super) const RUN: char = '!';

/// The text of an input, as it is typed to be the same again.
pub(super) fn typed(text: &str, is_command: bool) -> String {
    let is_other = !is_command && text.starts_with(RUN);
    if is_other {
        format!(" {text}")
    } else {
        text.to_owned()
    }
}

/// What a text is. With a space in front it is an input whatever it says, and so is a text of several lines behind a slash.
pub(super) fn read(text: &str) -> TypedText {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return TypedText::Nothing;
    }
    if let Some(command) = text.strip_prefix(RUN) {
        return match command.trim() {
            "" => TypedText::Wrong(
                "`!` needs a command, as in `! ls`; to send the line as an input, put a space in front of it"
                    .to_owned(),
            ),
            _ => TypedText::Run(trimmed.to_owned()),
        };
    }
    let Some(command) = text
        .strip_prefix('/')
        .filter(|command| !command.trim_end().contains('\n'))
    else {
        return TypedText::Input(trimmed.to_owned());
    };
    let (name, rest) = command
        .trim_end()
        .split_once(char::is_whitespace)
        .unwrap_or((command.trim_end(), ""));
    let rest = rest.trim();
    match COMMANDS.iter().find(|known| known.name == name) {
        Some(CommandHelp { name: "steer", .. }) if rest.is_empty() => {
            TypedText::Wrong("/steer needs an input".to_owned())
        }
        Some(CommandHelp { name: "unpin", .. }) if rest.parse::<u64>().is_err() => {
            TypedText::Wrong("/unpin needs the number of a pin; F5 shows them".to_owned())
        }
        Some(CommandHelp {
            name: "compact", ..
        }) if !matches!(rest, "" | "turns") => {
            TypedText::Wrong("after /compact, write nothing or `turns`".to_owned())
        }
        Some(CommandHelp { name: "diff", .. }) if !matches!(rest, "" | "turn") => {
            TypedText::Wrong("after /diff, write nothing or `turn`".to_owned())
        }
        Some(CommandHelp { name: "undo", .. }) if !matches!(rest, "" | "all") => {
            TypedText::Wrong("after /undo, write nothing or `all`".to_owned())
        }
        Some(CommandHelp { name, .. })
            if rest.is_empty()
                || matches!(
                    *name,
                    "steer" | "search" | "pin" | "unpin" | "compact" | "diff" | "undo"
                ) =>
        {
            TypedText::Command {
                name,
                rest: rest.to_owned(),
            }
        }
        Some(CommandHelp { name, .. }) => TypedText::Wrong(format!("write nothing after /{name}")),
        None => TypedText::Wrong(unknown_command(
            command,
            COMMANDS.iter().map(|command| command.name),
        )),
    }
}

/// What a line behind a slash says to the person if it is none of the `known` commands.
pub fn unknown_command(line: &str, known: impl IntoIterator<Item = &'static str>) -> String {
    let line = line.trim_end();
    let name = line.to_lowercase();
    let mut habits = HABITS.iter().filter_map(|habit| habit.split_once(": "));
    let habit = habits.find(|(names, _)| names.split(' ').any(|other| other == name));
    let near = |known: &&str| {
        let letters = strsim::damerau_levenshtein(known, &name);
        name.len() >= 3 && (letters <= 2 || known.starts_with(&name))
    };
    let meant = match habit {
        Some((_, meant)) => meant.to_owned(),
        None => match known.into_iter().find(near) {
            Some(known) => format!("did you mean `/{known}`?"),
            None => "`/help` shows the keys and commands; to send the line as an input, put a space in front of it"
                .to_owned(),
        },
    };
    format!("there is no command `/{line}`; {meant}")
}

/// The commands that a text may become.
pub(super) fn completions(text: &str) -> Vec<&'static CommandHelp> {
    let Some(begun) = text
        .strip_prefix('/')
        .filter(|begun| !begun.contains(char::is_whitespace))
    else {
        return Vec::new();
    };
    COMMANDS
        .iter()
        .filter(|command| command.name.starts_with(begun))
        .collect()
}
