//! The commands behind a slash, each declared once: its name, what follows it, its words and what it does. The menu of the
//! screen, plain lines and the table in `docs/GUIDE.md` are made from this table. And what else a person types that is no
//! input: a shell command behind `!`.

use protocol::method::{Cancel, Compact, Pause, Pin, Resume, Unpin, Verb};
use protocol::status::Status;
use protocol::tool::Effort;
use serde_json::Value;

/// A command behind a slash.
pub struct SlashCommand {
    pub name: &'static str,
    pub takes: Takes,
    /// What it does, for people.
    pub about: &'static str,
    /// Where there is no screen: what does the same there. None: the command itself.
    pub instead: Option<&'static str>,
    /// None: the text does not fit.
    does: fn(&str) -> Option<Slash>,
}

/// What follows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// Nothing, or this word.
    Word(&'static str),
    /// Nothing, or a text that people call so.
    May(&'static str),
    /// What people call so, and the same in a sentence.
    Needs(&'static str, &'static str),
}

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slash {
    /// The pod does it.
    Verb(Verb),
    Steer(String),
    Agents,
    Approvals,
    Context,
    Copy,
    Detach,
    Diff {
        turn: bool,
    },
    Editor,
    /// The pod starts again with it.
    Effort(Effort),
    Features,
    Help,
    Log,
    /// Empty: the models are shown. Else the pod starts again with this one.
    Model(String),
    New,
    Pins,
    Pods,
    Print,
    Search(String),
    Status,
    Undo {
        all: bool,
    },
}

impl SlashCommand {
    const fn new(
        name: &'static str,
        takes: Takes,
        about: &'static str,
        does: fn(&str) -> Option<Slash>,
    ) -> Self {
        Self {
            name,
            takes,
            about,
            instead: None,
            does,
        }
    }

    /// Only on a screen.
    const fn or(self, instead: &'static str) -> Self {
        Self {
            instead: Some(instead),
            ..self
        }
    }

    /// As people write it.
    #[must_use]
    pub fn usage(&self) -> String {
        match self.takes {
            Takes::Nothing => format!("/{}", self.name),
            Takes::Word(word) => format!("/{} [{word}]", self.name),
            Takes::May(text) => format!("/{} [{text}]", self.name),
            Takes::Needs(text, _) => format!("/{} {text}", self.name),
        }
    }

    fn read(&self, rest: &str) -> Result<Slash, String> {
        let name = self.name;
        let does = (self.does)(rest);
        match self.takes {
            Takes::Nothing if !rest.is_empty() => Err(format!("write nothing after /{name}")),
            Takes::Word(word) if !rest.is_empty() && rest != word => {
                Err(format!("after /{name}, write nothing or `{word}`"))
            }
            Takes::Needs(_, what) => does.ok_or_else(|| format!("/{name} needs {what}")),
            Takes::Nothing | Takes::Word(_) | Takes::May(_) => {
                does.ok_or_else(|| format!("/{name} does not take this"))
            }
        }
    }
}

/// Every command.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand::new(
        "agents",
        Takes::Nothing,
        "list the agents that a pod can start as",
        |_| Some(Slash::Agents),
    )
    .or("`yoi agents` lists the agents"),
    SlashCommand::new(
        "approvals",
        Takes::Nothing,
        "show what waits for you (F4)",
        |_| Some(Slash::Approvals),
    )
    .or("`yoi approve` lists and answers the calls that wait"),
    SlashCommand::new(
        "cancel",
        Takes::Nothing,
        "end the running turn (Esc)",
        |_| verb(Cancel::default()),
    ),
    SlashCommand::new(
        "compact",
        Takes::Word("turns"),
        "leave old steps out of the requests; turns: the oldest turns, too",
        |rest| {
            verb(Compact {
                drop_turns: !rest.is_empty(),
                ..Compact::default()
            })
        },
    ),
    SlashCommand::new(
        "context",
        Takes::Nothing,
        "show what the next request has (F5)",
        |_| Some(Slash::Context),
    )
    .or("`yoi status NAME` shows how much of the context is used"),
    SlashCommand::new("copy", Takes::Nothing, "copy the newest answer", |_| {
        Some(Slash::Copy)
    })
    .or("it stands above"),
    SlashCommand::new(
        "detach",
        Takes::Nothing,
        "leave; the pod keeps running (Ctrl-D)",
        |_| Some(Slash::Detach),
    ),
    SlashCommand::new(
        "diff",
        Takes::Word("turn"),
        "show what this pod changed in files; turn: in the newest turn",
        |rest| {
            Some(Slash::Diff {
                turn: !rest.is_empty(),
            })
        },
    ),
    SlashCommand::new(
        "editor",
        Takes::Nothing,
        "write the input in your editor (Ctrl-G)",
        |_| Some(Slash::Editor),
    )
    .or("a line is an input"),
    SlashCommand::new(
        "effort",
        Takes::Needs("EFFORT", "none, minimal, low, medium, high or max"),
        "EFFORT: how much the model thinks, such as low or high",
        |word| Effort::named(word).map(Slash::Effort),
    ),
    SlashCommand::new(
        "features",
        Takes::Nothing,
        "show what the features add and may do (F2)",
        |_| Some(Slash::Features),
    )
    .or("`yoi features NAME` shows them"),
    SlashCommand::new("help", Takes::Nothing, "show the keys (F1)", |_| {
        Some(Slash::Help)
    }),
    SlashCommand::new(
        "log",
        Takes::Nothing,
        "open the whole conversation in your editor",
        |_| Some(Slash::Log),
    )
    .or("`yoi log NAME` prints it"),
    SlashCommand::new(
        "model",
        Takes::May("MODEL"),
        "MODEL: change to it; alone: show the models",
        |model| Some(Slash::Model(model.to_owned())),
    ),
    SlashCommand::new(
        "more",
        Takes::Nothing,
        "continue after a limit of [limits.pod]: as much again",
        |_| {
            verb(Resume {
                more: true,
                ..Resume::default()
            })
        },
    ),
    SlashCommand::new(
        "new",
        Takes::Nothing,
        "start a new pod in this directory, and go there",
        |_| Some(Slash::New),
    ),
    SlashCommand::new(
        "pause",
        Takes::Nothing,
        "hold the pod before its next request",
        |_| verb(Pause::default()),
    ),
    SlashCommand::new(
        "pin",
        Takes::May("TEXT"),
        "TEXT: it stays in the context; alone: show the pins (F5)",
        |text| match text {
            "" => Some(Slash::Pins),
            text => verb(Pin {
                text: text.to_owned(),
                ..Pin::default()
            }),
        },
    ),
    SlashCommand::new(
        "pods",
        Takes::Nothing,
        "show all pods, and go to another one (F4)",
        |_| Some(Slash::Pods),
    )
    .or("`yoi ls` lists them"),
    SlashCommand::new(
        "print",
        Takes::Nothing,
        "print the whole conversation into the terminal",
        |_| Some(Slash::Print),
    )
    .or("`yoi log NAME` prints it"),
    SlashCommand::new("resume", Takes::Nothing, "continue a held pod", |_| {
        verb(Resume::default())
    }),
    SlashCommand::new(
        "search",
        Takes::May("TEXT"),
        "search the transcript (Ctrl-F)",
        |text| Some(Slash::Search(text.to_owned())),
    )
    .or("`yoi log NAME` prints the transcript"),
    SlashCommand::new(
        "status",
        Takes::Nothing,
        "show tasks, jobs and the pod (F3)",
        |_| Some(Slash::Status),
    ),
    SlashCommand::new(
        "steer",
        Takes::Needs("INPUT", "an input"),
        "INPUT: the running turn takes it at its next step",
        |text| (!text.is_empty()).then(|| Slash::Steer(text.to_owned())),
    ),
    SlashCommand::new(
        "undo",
        Takes::Word("all"),
        "undo the newest turn that changed files; all: every change",
        |rest| {
            Some(Slash::Undo {
                all: !rest.is_empty(),
            })
        },
    ),
    SlashCommand::new(
        "unpin",
        Takes::Needs("NUMBER", "the number of a pin; /pin shows them"),
        "NUMBER: this text may leave the context",
        |number| {
            verb(Unpin {
                pin: number.parse().ok()?,
                ..Unpin::default()
            })
        },
    ),
];

fn verb(ask: impl Into<Verb>) -> Option<Slash> {
    Some(Slash::Verb(ask.into()))
}

/// A command that is no part of this program: an input that begins with its name has its meaning from what is at `source`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignCommand {
    pub name: String,
    /// What it does, for people.
    pub about: String,
    /// What brings it.
    pub source: String,
}

/// The commands that the features of a pod offer, from its report.
#[must_use]
pub fn foreign(report: &Value) -> Vec<ForeignCommand> {
    let list = |of: &Value, key: &str| {
        let list = of.get(key).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let text = |of: &Value, key: &str| {
        of.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let features = list(report, "features");
    let commands = features
        .iter()
        .flat_map(|feature| list(feature, "commands"));
    let command = |command: Value| ForeignCommand {
        name: text(&command, "name"),
        about: [text(&command, "argument_hint"), text(&command, "about")]
            .join(" ")
            .trim()
            .to_owned(),
        source: text(&command, "source"),
    };
    commands.map(command).collect()
}

/// Commands of other programs, and what does the same here.
const HABITS: [&str; 9] = [
    "quit exit q bye logout close wq: `/detach` leaves, and the pod keeps running; `yoi stop NAME` stops it",
    "stop abort interrupt kill: `/cancel` ends the running turn; `yoi stop NAME` stops the pod",
    "h ? commands keys: `/help` shows the keys and commands",
    "clear reset: `/new` starts a pod with an empty conversation; `/compact turns` leaves out the oldest turns",
    "continue unpause: `/resume` continues a held pod",
    "cost usage tokens: `yoi status NAME` shows the cost",
    "models: `/model` shows the models",
    "approve allow deny permissions: `yoi approve` lists and answers the calls that wait",
    "rewind: `/diff` shows the changes of files, and `/undo` undoes them",
];

/// What a text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedText {
    Nothing,
    Input(String),
    /// `!` and a shell command.
    Run(String),
    Slash(Slash),
    /// Neither, and why.
    Wrong(String),
}

/// Begins a text that runs as a shell command.
pub(crate) const RUN: char = '!';

/// The text of an input, as it is typed to be the same again.
pub(crate) fn typed(text: &str, is_command: bool) -> String {
    let is_other = !is_command && text.starts_with(RUN);
    if is_other {
        format!(" {text}")
    } else {
        text.to_owned()
    }
}

/// What a text is. With a space in front it is an input whatever it says, and so is a text of several lines behind a slash.
#[must_use]
pub fn read(text: &str, foreign: &[ForeignCommand]) -> TypedText {
    read_known(text, foreign, None)
}

/// As [`read`], where there is no screen for this pod: commands that need one are wrong, and say what does the same.
#[must_use]
pub fn read_plain(text: &str, pod: &str) -> TypedText {
    read_known(text, &[], Some(pod))
}

fn read_known(text: &str, foreign: &[ForeignCommand], plain: Option<&str>) -> TypedText {
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
        .map(str::trim_end)
        .filter(|command| !command.contains('\n'))
    else {
        return TypedText::Input(trimmed.to_owned());
    };
    let (name, rest) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    let found = match COMMANDS.iter().find(|known| known.name == name) {
        Some(known) => match plain.zip(known.instead) {
            Some((pod, instead)) => Err(format!(
                "/{name} is for the full screen; here, {}",
                instead.replace("NAME", pod)
            )),
            None => known.read(rest.trim()),
        },
        None if foreign.iter().any(|known| known.name == name) => {
            return TypedText::Input(trimmed.to_owned());
        }
        None => Err(unknown(command, foreign, plain.is_some())),
    };
    found.map_or_else(TypedText::Wrong, TypedText::Slash)
}

/// What a line behind a slash says to the person if it is no command.
fn unknown(line: &str, foreign: &[ForeignCommand], is_plain: bool) -> String {
    let lower = line.to_lowercase();
    let name = lower.split_whitespace().next().unwrap_or_default();
    let mut habits = HABITS.iter().filter_map(|habit| habit.split_once(": "));
    let habit = habits.find(|(names, _)| names.split(' ').any(|other| other == name));
    let own = COMMANDS
        .iter()
        .filter(|known| !is_plain || known.instead.is_none());
    let own = own.map(|known| known.name);
    let meant = match habit {
        Some((_, meant)) => meant.to_owned(),
        None => match near(name, own.chain(names(foreign))) {
            Some(known) => format!("did you mean `/{known}`?"),
            None => "`/help` shows the keys and commands; to send the line as an input, put a space in front of it"
                .to_owned(),
        },
    };
    format!("there is no command `/{line}`; {meant}")
}

fn names(foreign: &[ForeignCommand]) -> impl Iterator<Item = &str> {
    foreign.iter().map(|known| known.name.as_str())
}

/// The known name that is meant: one that this one begins, or else the nearest, of which few letters differ.
fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |known: &str| match known.starts_with(name) {
        true => 0,
        false => strsim::damerau_levenshtein(known, name),
    };
    known
        .filter(|known| name.len() >= FEWEST && letters(known) <= MOST_WRONG)
        .min_by_key(|known| letters(known))
}

/// Letters of a name from which on another one can be meant, and of those that may be wrong.
const FEWEST: usize = 3;
const MOST_WRONG: usize = 2;

/// Why a text that a person wrote on a command line is no input, although it begins with a slash: it has the form of a command,
/// and the pod has none of this name.
#[must_use]
pub fn unknown_to_pod(text: &str, known: &[String]) -> Option<String> {
    let line = text.strip_prefix('/')?.trim_end();
    let name = line.split_whitespace().next()?;
    let is_other =
        line.starts_with(char::is_whitespace) || line.contains('\n') || name.contains('/');
    if is_other || known.iter().any(|known| known == name) {
        return None;
    }
    if COMMANDS.iter().any(|own| own.name == name) {
        return Some(format!(
            "`/{name}` is a command of the screen; `yoi attach` opens the screen"
        ));
    }
    let meant = near(&name.to_lowercase(), known.iter().map(String::as_str))
        .map_or_else(String::new, |known| format!("; did you mean `/{known}`?"));
    Some(format!("there is no command `/{name}`{meant}"))
}

/// Why a pod cannot start again with other options now, if it cannot: that is for the time between two turns.
#[must_use]
pub fn restart_refused(status: &Status) -> Option<&'static str> {
    let is_free = status.turn.is_none() && status.queued.is_empty();
    (!is_free).then_some("the pod works: this can change between its turns")
}

/// There is nothing that `/undo` would undo.
pub const NOTHING_CHANGED: &str =
    "no turn here changed a file; `/undo all` undoes what the pod changed";

/// What can be typed where there is no screen.
#[must_use]
pub fn plain_help() -> String {
    let here = COMMANDS.iter().filter(|command| command.instead.is_none());
    let usages: Vec<String> = here.map(SlashCommand::usage).collect();
    format!(
        "{}; a line that begins with ! runs the rest as a shell command; every other line is an input",
        usages.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command was listed in five places, which differed.
    #[test]
    fn the_guide_has_each_command_with_its_words() {
        let guide = include_str!("../../../docs/GUIDE.md");
        let rows: Vec<&str> = guide
            .lines()
            .filter(|line| line.starts_with("| `/") && line.matches(" | ").count() == 1)
            .collect();
        let wanted: Vec<String> = COMMANDS
            .iter()
            .map(|command| {
                let plain = if command.instead.is_none() { " ¹" } else { "" };
                format!("| `{}`{plain} | {} |", command.usage(), command.about)
            })
            .collect();
        assert_eq!(rows, wanted, "{}", wanted.join("\n"));
    }

    #[test]
    fn a_foreign_command_is_an_input_with_its_slash() {
        let foreign = [ForeignCommand {
            name: "review".to_owned(),
            about: "reviews a branch".to_owned(),
            source: "skill review".to_owned(),
        }];
        let input = |text: &str| TypedText::Input(text.to_owned());
        assert_eq!(read("/review main", &foreign), input("/review main"));
        assert!(matches!(read("/review main", &[]), TypedText::Wrong(_)));
        let near = "there is no command `/reviews`; did you mean `/review`?";
        assert_eq!(
            read("/reviews", &foreign),
            TypedText::Wrong(near.to_owned())
        );
    }

    /// `yoi run "/comit x"` sent the line to the model.
    #[test]
    fn a_command_that_the_pod_does_not_have_is_no_input() {
        let known = ["commit", "comment"].map(str::to_owned);
        for (text, why) in [
            ("/comit x", "no command `/comit`; did you mean `/commit`?"),
            ("/comm", "did you mean `/commit`?"),
            ("/deploy", "there is no command `/deploy`"),
            ("/undo", "is a command of the screen"),
        ] {
            let said = unknown_to_pod(text, &known).unwrap();
            assert!(said.contains(why), "{text}: {said}");
        }
        for text in [
            "/commit x",
            " /comit",
            "/etc/hosts is wrong",
            "/ x",
            "/",
            "a /b",
            "/x\ny",
        ] {
            assert_eq!(unknown_to_pod(text, &known), None, "{text}");
        }
    }

    #[test]
    fn a_line_is_an_input_or_a_command() {
        let input = |text: &str| TypedText::Input(text.to_owned());
        assert_eq!(read_plain("go on\r\n", "night"), input("go on"));
        assert_eq!(read_plain(" /cancel\n", "night"), input("/cancel"));
        assert_eq!(read_plain(" \t\n", "night"), TypedText::Nothing);
        assert_eq!(
            read_plain("/steer  use less \n", "night"),
            TypedText::Slash(Slash::Steer("use less".to_owned()))
        );
        assert_eq!(
            read_plain("/detach", "night"),
            TypedText::Slash(Slash::Detach)
        );
        assert_eq!(
            read_plain("!cargo test \n", "night"),
            TypedText::Run("!cargo test".to_owned())
        );
        assert_eq!(read_plain(" ! wow\n", "night"), input("! wow"));
        for (line, why) in [
            ("! \n", "needs a command"),
            ("/steer", "/steer needs an input"),
            ("/unpin x", "/unpin needs the number of a pin"),
            ("/usr/bin is full", "no command `/usr/bin is full`"),
            ("/cancel 3", "write nothing after /cancel"),
            ("/compact all", "write nothing or `turns`"),
            ("/", "no command `/`"),
            ("/Cancel", "did you mean `/cancel`?"),
            ("/quit", "`/detach` leaves"),
            ("/statsu", "`/status`?"),
            ("/statsu of it", "`/status`?"),
            // Plain lines answered that there was no such command.
            (
                "/log",
                "is for the full screen; here, `yoi log night` prints it",
            ),
        ] {
            let read = read_plain(line, "night");
            assert!(
                matches!(&read, TypedText::Wrong(said) if said.contains(why)),
                "{line}: {read:?}"
            );
        }
        let model = |name: &str| TypedText::Slash(Slash::Model(name.to_owned()));
        assert_eq!(read("/model", &[]), model(""));
        assert_eq!(read_plain("/model a/b \n", "night"), model("a/b"));
    }
}
