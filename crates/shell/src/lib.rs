//! Parsing shell command lines: which commands a text would run, as far as the text shows.
//!
//! [`parse`] lists every simple command at any position, with its literal words, and marks parts as opaque where the
//! text does not show what would run. It covers bash and a number of programs that start others. It does not depend on
//! policy, pods, tools or files: links, the values of variables and the content of scripts are not in the text.
//!
//! A check that denies must treat an opaque part as any command; a check that allows must treat it as not allowed.

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
mod places;
mod resolve;
mod scripts;
mod second;
mod variables;
mod walk;
mod word;
mod wrappers;

pub use command_line::{
    Assignment, CommandLine, Function, Part, RedirectKind, Redirection, Subcommand,
};
pub use names::{SYSTEM, base_name, is_named, is_system_path};
pub use opaque::{MAX_BYTES, OpaqueReason};
pub use word::Word;
pub use wrappers::starts_another;

/// Parses a text as `bash -c TEXT` would run it. Permission and features call it to judge shell commands. It never
/// panics and never fails: text that cannot be parsed is an opaque part.
#[must_use]
pub fn parse(text: &str) -> CommandLine {
    bounds::parse(text)
}
