//! Whether a call may run: judged each time, on where its paths lead, by a table and by rules on top of it.
//! It knows no tool by name.
//!
//! Layers go from the outermost (the built-in table) inwards (files, then flags). Inside a layer the last rule that
//! matches speaks for it. A refusal by any layer stands; otherwise the innermost layer that spoke decides. What
//! nothing answers is refused. `ask` needs a person: without one it is a refusal with the remedy that allows it.
//!
//! A rule sees what a call *names*. `Grep` over a directory names the directory, not the files below. A shell command is
//! taken apart (crate `shell`) and each part is judged like a call of its own: a call is as free as the least free part.
//! What a part runs is known by its text or not at all: where it is opaque, no rule about a program allows it, and every
//! refusal about one holds. Of the files that a command names, only those count that may hold secrets; what else it reads
//! and writes the sandbox bounds, not the rules. A host is judged by the name that the
//! call has; which hosts can be reached at all is the grant's, and what they resolve to is judged where it is connected.

mod explain;
mod glob;
mod judge;
mod place;
mod program;
mod remedy;
mod rule;
mod secret;
mod table;
#[cfg(test)]
pub(crate) mod tests;

pub use explain::{ActionKind, Expectation, RuleStatement};
pub use judge::{CallFacts, Policy, PolicyDecision, RuleRef, SandboxState};
pub use remedy::{Beside, HostTerms, Remedy};
pub use rule::{Layer, Rule, RuleDecision, RuleError};
