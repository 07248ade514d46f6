//! One call, from what the model proposes to the result that it reads. Its files in the order in which a call passes them:
//!
//! ```text
//!   named       a call that names the tool it is for becomes a call of that one
//!   enrich      enrichers change the arguments
//!   parse       the tool reads them: what hooks and permission see of the call
//!   authorize   transforms, then permission, then gates, in this order and each in one place
//!   asked       the question, if a person is asked; `approvals` has the answers, which `authorize` judges again
//!   verdict     the decision, for the turn machine and as records
//!   authorized  the judged parse, as it goes through the log: nothing else runs
//!   order       which calls of an answer wait for others
//!   running     the slot, the thread and the deadline
//!   started     what the stages of a running call share
//!   around      hooks in place of the tool, and hooks that repeat it
//!   output      what the running tool reaches: its output, the file changes that it announces, where it may write
//!   shape       hooks that see the whole result; what is kept of it; hooks that see what the model reads
//! ```
//!
//! `preview` and `past_calls` judge calls for people and run nothing.

pub(super) mod approvals;
pub(super) mod around;
mod asked;
pub(super) mod authorize;
pub(super) mod authorized;
mod enrich;
mod named;
pub(super) mod order;
pub(super) mod output;
pub(super) mod parse;
pub(super) mod past_calls;
pub(super) mod preview;
pub(super) mod running;
pub(super) mod shape;
mod started;
pub(super) mod verdict;
