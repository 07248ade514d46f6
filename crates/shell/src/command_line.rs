//! The parts of a parsed command line.

use crate::names::base_name;
use crate::opaque::OpaqueReason;
use crate::word::Word;
use std::ops::Range;

/// Longest text of a part that is kept for people, in characters.
const MAX_SHOWN: usize = 160;

/// The result of [`parse`](crate::parse): all commands that the text would run. Permission and the command blocklist
/// judge each part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// In order of appearance; commands inside a word come before the command that has the word.
    pub parts: Vec<Part>,
    /// The functions that the text defines. Their bodies are among the parts.
    pub functions: Vec<Function>,
}

/// A simple command, or a construct in place of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The source text with white space normalised, cut if long.
    pub text: String,
    /// The program. `None`: the part only sets variables or opens files.
    pub program: Option<Word>,
    pub arguments: Vec<Word>,
    /// Programs that only start this one (`nice`, `timeout`), outermost first, without directories.
    pub wrappers: Vec<String>,
    /// Variables set before the command or by it.
    pub assignments: Vec<Assignment>,
    /// Redirections from and to files.
    pub redirections: Vec<Redirection>,
    /// The reason why more may run here than the text shows.
    pub opaque: Option<OpaqueReason>,
    /// Indices of the parts whose output it reads: through a pipe, or inside one of its words.
    pub reads: Vec<Range<usize>>,
    /// Whether it runs in the background.
    pub background: bool,
    /// The same under other names: the script that it has an interpreter run, the program that a link leads to. A check that
    /// denies judges these, too.
    pub also: Vec<Part>,
}

/// `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The variable, without a subscript.
    pub name: String,
    pub value: Word,
}

/// A redirection such as `> file`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    pub kind: RedirectKind,
    /// The file, or the text of a here-string.
    pub target: Word,
}

/// The direction of a redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectKind {
    Read,
    /// To a file, or reading and writing.
    Write,
    /// From text in the command.
    Text,
    /// To or from an open descriptor, or closing one.
    Descriptor,
}

/// `name() { … }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub body: Range<usize>,
}

/// The subcommand in an argument list: the first argument that is not an option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subcommand<'a> {
    /// The subcommand, if it is certain: only harmless options come before it.
    pub certain: Option<&'a str>,
    /// All candidates, if options before them may take values.
    pub possible: Vec<&'a str>,
    /// Whether the text may not show the subcommand.
    pub hidden: bool,
}

impl Redirection {
    /// Whether it may write to a file other than `/dev/null`, or open a connection.
    #[must_use]
    pub fn writes(&self) -> bool {
        let target = self.target.literal();
        let network = target
            .is_none_or(|path| path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/"));
        match self.kind {
            RedirectKind::Write => target != Some("/dev/null"),
            RedirectKind::Read => network,
            RedirectKind::Text | RedirectKind::Descriptor => false,
        }
    }
}

/// Options before a subcommand that only change the amount of output.
const QUIET: [(&str, &[&str]); 2] = [
    ("git", &["--no-pager", "-P", "--no-optional-locks"]),
    (
        "cargo",
        &[
            "-q",
            "--quiet",
            "-v",
            "--verbose",
            "--offline",
            "--locked",
            "--frozen",
        ],
    ),
];

impl Part {
    /// The program's name without its directory.
    #[must_use]
    pub fn program_name(&self) -> Option<&str> {
        self.program.as_ref().and_then(Word::literal).map(base_name)
    }

    /// The subcommand in the arguments.
    #[must_use]
    pub fn subcommand(&self) -> Subcommand<'_> {
        let name = self.program_name().unwrap_or_default();
        let quiet = QUIET
            .iter()
            .find(|(program, _)| *program == name)
            .map_or(&[][..], |(_, options)| options);
        let mut found = Subcommand::default();
        let mut certain = true;
        let mut after_option = false;
        for argument in &self.arguments {
            let Some(text) = argument.literal() else {
                found.hidden = true;
                certain = false;
                after_option = true;
                continue;
            };
            if quiet.contains(&text) {
                continue;
            }
            if text.starts_with(['-', '+']) {
                certain = false;
                after_option = true;
                continue;
            }
            found.certain = Some(text).filter(|_| certain);
            found.possible.push(text);
            if !after_option {
                break;
            }
            after_option = false;
        }
        found
    }
}

/// Normalises white space to one line of at most `MAX_SHOWN` characters.
pub(crate) fn one_line(text: &str) -> String {
    let mut line: String = text
        .split_whitespace()
        .flat_map(|word| [" ", word])
        .skip(1)
        .collect();
    if let Some((cut, _)) = line.char_indices().nth(MAX_SHOWN) {
        line.truncate(cut);
        line.push('…');
    }
    line
}

pub(crate) fn words_text<'a>(words: impl Iterator<Item = &'a str>) -> String {
    one_line(&words.collect::<Vec<_>>().join(" "))
}
