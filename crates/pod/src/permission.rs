//! Whether a call may run: judged for each call, on its resolved paths, by a default table and by rules that override
//! it. Depends on no tool's name.
//!
//! Layers are ordered from the outermost (the built-in table) inwards (files, then flags). Inside a layer the last
//! rule that matches decides for the layer. A refusal by any layer is final; otherwise the innermost layer with a
//! matching rule decides. Without a matching row or rule the call is refused. `ask` is a question to a person; where
//! nobody can answer, it is a refusal that names the rule to add.
//!
//! A rule matches what a call *names*. `Grep` over a directory names the directory, not the files below. A shell
//! command is split into parts (crate `shell`) and each part is judged like a call of its own; the strictest decision
//! applies. If it cannot be known what a part runs, the part is opaque: no rule about a program allows it, and every
//! refusal about a program applies. Of the files that a command names, only those are judged that may hold secrets; the
//! sandbox bounds what else it reads and writes. A host is judged by the name in the call; the grant says which hosts
//! can be reached, and their addresses are judged when connecting.

mod explain;
mod glob;
mod judge;
mod parts;
mod place;
mod program;
mod remedy;
mod rule;
mod secret;
mod table;
#[cfg(test)]
pub(crate) mod tests;

pub use explain::{ActionKind, Expectation, RuleStatement};
pub use judge::{
    CallFacts, JudgedResources, Person, Policy, PolicyDecision, Proposal, RuleRef, RuleTrial,
    SandboxState,
};
pub(crate) use place::says_what_changes;
pub use remedy::{AlternativeRemedy, HostTerms, Remedy, RuleRemedy};
pub use rule::{Layer, Rule, RuleDecision, RuleError};
