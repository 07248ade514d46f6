//! A command line, taken apart.

use crate::names::base_name;
use crate::opaque::OpaqueReason;
use crate::word::Word;
use std::ops::Range;

/// All that a text would run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// In the order in which they stand, what is inside a word before the command that has the word.
    pub parts: Vec<Part>,
    /// Functions that it defines. Their bodies are among the parts.
    pub functions: Vec<Function>,
}

/// A simple command, or what stands in the place of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// As it is written, white space evened out, cut where it is long.
    pub text: String,
    /// What is started. `None`: nothing is, variables are set or files opened.
    pub program: Option<Word>,
    pub arguments: Vec<Word>,
    /// Programs that only start this one (`nice`, `timeout`), outermost first, without their directories.
    pub wrappers: Vec<String>,
    /// Variables set before it or by it.
    pub assignments: Vec<Assignment>,
    /// Files it reads from and writes to.
    pub redirections: Vec<Redirection>,
    /// Why more may run here than the text shows.
    pub opaque: Option<OpaqueReason>,
    /// Indices of the parts whose output it is given: through a pipe, or inside one of its words.
    pub reads: Vec<Range<usize>>,
    /// Whether nobody waits for it.
    pub background: bool,
}

/// `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The variable, without a subscript.
    pub name: String,
    pub value: Word,
}

/// `> file` and its kin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    pub kind: RedirectKind,
    /// The file, or the text of a here-string.
    pub target: Word,
}

/// Which way a redirection goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectKind {
    Read,
    /// To a file, or both ways.
    Write,
    /// From text that stands in the command.
    Text,
    /// To or from what is open already; or it is closed.
    Descriptor,
}

/// `name() { … }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub body: Range<usize>,
}

/// What an argument list says about the subcommand, the first argument that is no option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subcommand<'a> {
    /// The one that it is for certain: nothing but options known to change nothing else stands before it.
    pub certain: Option<&'a str>,
    /// All that it may be, when options before it may take values.
    pub possible: Vec<&'a str>,
    /// Whether it may be something that the text does not show.
    pub hidden: bool,
}

impl Redirection {
    /// Whether something other than an open descriptor or `/dev/null` may be written to, or a connection opened.
    #[must_use]
    pub fn writes(&self) -> bool {
        let target = self.target.literal();
        let network = target.is_none_or(|path| path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/"));
        match self.kind {
            RedirectKind::Write => target != Some("/dev/null"),
            RedirectKind::Read => network,
            RedirectKind::Text | RedirectKind::Descriptor => false,
        }
    }
}

/// Options before a subcommand that change nothing but how much is said.
const QUIET: [(&str, &[&str]); 2] = [
    ("git", &["--no-pager", "-P", "--no-optional-locks"]),
    ("cargo", &["-q", "--quiet", "-v", "--verbose", "--offline", "--locked", "--frozen"]),
];

impl Part {
    /// The program's name without its directory.
    #[must_use]
    pub fn program_name(&self) -> Option<&str> {
        self.program.as_ref().and_then(Word::literal).map(base_name)
    }

    /// Which subcommand is called.
    #[must_use]
    pub fn subcommand(&self) -> Subcommand<'_> {
        let name = self.program_name().unwrap_or_default();
        let quiet = QUIET.iter().find(|(program, _)| *program == name).map_or(&[][..], |(_, options)| options);
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
