//! Whether a call may run: judged each time, on where its paths lead, by a table and by rules on top of it.
//!
//! Layers go from the outermost (the built-in table) inwards (files, then flags). Inside a layer the last rule that
//! matches speaks for it. A refusal by any layer stands; otherwise the innermost layer that spoke decides. What
//! nothing answers is refused. `ask` needs a person: without one it is a refusal that says which setting allows it.
//!
//! A rule sees what a call *names*. `Grep` over a directory names the directory, not the files below; a shell
//! command names no file at all. The sandbox, not the rules, bounds those. A host is judged by the name that the
//! call has; which hosts can be reached at all is the grant's, and what they resolve to is judged where it is connected.

mod explain;
mod glob;
mod judge;
mod place;
mod rule;
mod table;
#[cfg(test)]
mod tests;

pub use explain::{Expectation, Matter, Said};
pub use judge::{CallFacts, Circumstances, Decision, Policy, RuleRef, Verdict};
pub use rule::{Layer, Rule, RuleDecision, RuleError};
