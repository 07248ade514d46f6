//! Reasons why a text does not show what it runs.

/// The longest text that is parsed, in bytes. A longer text is opaque as a whole.
pub const MAX_BYTES: usize = 32 * 1024;

/// The reason why a part may run commands that the text does not show; part of messages about denied commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpaqueReason {
    /// The text is longer than is parsed.
    #[error("it is longer than {} bytes", MAX_BYTES)]
    TooLong,
    /// The text is nested deeper than is parsed.
    #[error("it is nested too deeply to be read")]
    TooDeep,
    /// A character with a special meaning to terminals or shells.
    #[error("it contains the character U+{0:04X}")]
    Character(u32),
    /// Not a valid shell command.
    #[error("it cannot be parsed: {0}")]
    Syntax(String),
    /// The two parsers do not find the same commands, or the second one does not know the syntax.
    #[error("it is written in a way that can be read as other commands")]
    Ambiguous,
    #[error("the program's name is known only when it runs")]
    Program,
    /// The program runs code from its arguments or its input.
    #[error("{0} runs code that it is given")]
    Code(String),
    /// The command redefines names.
    #[error("{0} changes what other names mean")]
    Redefines(String),
    /// The command sets a variable that decides what programs run.
    #[error("{0} decides which programs run")]
    Variable(String),
    /// A command may be in a place that is not parsed: a here-document, arithmetic, a default value.
    #[error("commands can hide in {0}")]
    Hidden(&'static str),
    /// A program that starts another one, with unknown arguments.
    #[error("the arguments of {0} are not understood")]
    Wrapper(String),
}

/// Findings about the words of one command.
#[derive(Default)]
pub(crate) struct WordFindings {
    pub(crate) why: Option<OpaqueReason>,
}

impl WordFindings {
    pub(crate) fn add(&mut self, why: OpaqueReason) {
        self.why.get_or_insert(why);
    }
}
