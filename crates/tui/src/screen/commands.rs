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
    CommandHelp { name: "approvals", about: "show what waits for you (F4)" },
    CommandHelp { name: "cancel", about: "end the running turn (Esc)" },
    CommandHelp { name: "compact", about: "old steps leave the next request; turns: the oldest turns, too" },
    CommandHelp { name: "context", about: "show what the next request has (F5)" },
    CommandHelp { name: "copy", about: "copy the newest answer" },
    CommandHelp { name: "detach", about: "leave; the pod keeps running (Ctrl-D)" },
    CommandHelp { name: "editor", about: "write the input in your editor (Ctrl-G)" },
    CommandHelp { name: FEATURES, about: "show what the features add and may do (F2)" },
    CommandHelp { name: "help", about: "show the keys (F1)" },
    CommandHelp { name: "log", about: "open the whole conversation in your editor" },
    CommandHelp { name: "more", about: "grant the pod its budget once more, and end the hold" },
    CommandHelp { name: "pause", about: "hold the pod before its next request" },
    CommandHelp { name: "pin", about: "TEXT: it stays in the context; alone: show the pins (F5)" },
    CommandHelp { name: "pods", about: "show all pods, and go to another one (F4)" },
    CommandHelp { name: "print", about: "print the whole conversation into the terminal" },
    CommandHelp { name: "resume", about: "end a hold" },
    CommandHelp { name: "search", about: "search the transcript (Ctrl-F)" },
    CommandHelp { name: "status", about: "show tasks, jobs and the pod (F3)" },
    CommandHelp { name: "steer", about: "INPUT: the running turn takes it at its next step" },
    CommandHelp { name: "unpin", about: "NUMBER: this pin may leave the context" },
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
    if is_other { format!(" {text}") } else { text.to_owned() }
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
    let Some(command) = text.strip_prefix('/').filter(|command| !command.trim_end().contains('\n')) else {
        return TypedText::Input(trimmed.to_owned());
    };
    let (name, rest) = command.trim_end().split_once(char::is_whitespace).unwrap_or((command.trim_end(), ""));
    let rest = rest.trim();
    match COMMANDS.iter().find(|known| known.name == name) {
        Some(CommandHelp { name: "steer", .. }) if rest.is_empty() => {
            TypedText::Wrong("/steer needs an input".to_owned())
        }
        Some(CommandHelp { name: "unpin", .. }) if rest.parse::<u64>().is_err() => {
            TypedText::Wrong("/unpin needs the number of a pin; F5 shows them".to_owned())
        }
        Some(CommandHelp { name: "compact", .. }) if !matches!(rest, "" | "turns") => {
            TypedText::Wrong("/compact takes nothing or `turns`".to_owned())
        }
        Some(CommandHelp { name, .. })
            if rest.is_empty() || matches!(*name, "steer" | "search" | "pin" | "unpin" | "compact") =>
        {
            TypedText::Command { name, rest: rest.to_owned() }
        }
        _ => TypedText::Wrong(format!(
            "there is no command `/{}`; to send the line as an input, put a space in front of it",
            command.trim_end()
        )),
    }
}

/// The commands that a text may become.
pub(super) fn completions(text: &str) -> Vec<&'static CommandHelp> {
    let Some(begun) = text.strip_prefix('/').filter(|begun| !begun.contains(char::is_whitespace)) else {
        return Vec::new();
    };
    COMMANDS.iter().filter(|command| command.name.starts_with(begun)).collect()
}
