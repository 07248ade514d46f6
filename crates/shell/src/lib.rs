//! What a shell command line would run, as far as its text says.
//!
//! [`parse`] lists every simple command in whatever position it stands, with what is literal in it, and says where the
//! text does not show what would run. It knows bash and a number of programs that start others. It knows no policy, no
//! pods, no tools and no files: whether a path is a link, what a variable holds and what a script contains is not in
//! the text.
//!
//! A consumer that refuses must count what is opaque as anything; one that allows must count it as nothing.

mod arithmetic;
mod bounds;
mod code;
mod command_line;
mod condition;
mod expansion;
mod find;
mod git;
mod known;
mod names;
mod opaque;
mod resolve;
mod scripts;
mod second;
mod variables;
mod walk;
mod word;
mod wrappers;

pub use command_line::{Assignment, CommandLine, Function, Part, RedirectKind, Redirection, Subcommand};
pub use names::{base_name, is_system_path};
pub use opaque::OpaqueReason;
pub use word::Word;

/// Longest text that is parsed, in bytes. What is longer is opaque as a whole.
pub const MAX_BYTES: usize = 32 * 1024;

/// What `text` would run as `bash -c TEXT`. Never panics, never fails: what cannot be read is an opaque part.
#[must_use]
pub fn parse(text: &str) -> CommandLine {
    bounds::parse(text)
}
