//! Why a text does not show what it runs.

/// Why something may run here that the text does not show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpaqueReason {
    /// Over the length that is read.
    #[error("it is longer than {} bytes", crate::MAX_BYTES)]
    TooLong,
    /// Over the nesting that is read.
    #[error("it is nested too deeply to be read")]
    TooDeep,
    /// A character that terminals or shells treat in ways of their own.
    #[error("it contains the character U+{0:04X}")]
    Character(u32),
    /// No shell command, as far as the parser can tell.
    #[error("it cannot be parsed: {0}")]
    Syntax(String),
    /// Two readings of it do not find the same commands, or the second does not know how it is written.
    #[error("it is written in a way that can be read as other commands")]
    Ambiguous,
    #[error("the program's name is known only when it runs")]
    Program,
    /// The program runs what its arguments or its input say.
    #[error("{0} runs code that it is given")]
    Code(String),
    /// Names are given another meaning.
    #[error("{0} changes what other names mean")]
    Redefines(String),
    /// A variable is set that decides what programs run.
    #[error("{0} decides what programs run")]
    Variable(String),
    /// A command stands where it is not read: a here-document, arithmetic, a default value.
    #[error("commands can hide in {0}")]
    Hidden(&'static str),
    /// A program that starts another one, called in a way that is not known.
    #[error("how {0} is called here is not understood")]
    Wrapper(String),
}
