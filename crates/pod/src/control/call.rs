//! One call, from what the model proposes to the result that it reads. The files in the order in which a call passes them:
//!
//! ```text
//!   authorize  parse · enrichers · transforms · permission · gates: allowed, asked about, or not
//!   approvals  what a person answers; then authorize once more, on what was shown
//!   order      which calls of the answer wait for others
//!   running    the slot, the thread and the deadline, once the start is durable
//!   around     hooks in place of the tool, and hooks that repeat it
//!   output     what the running tool reaches: output, file changes, landings
//!   shape      hooks that see the whole result; what the model reads of it is kept
//! ```

pub(super) mod approval_ends;
pub(super) mod approvals;
pub(super) mod around;
pub(super) mod authorize;
mod landings;
pub(super) mod order;
pub(super) mod output;
pub(super) mod running;
pub(super) mod shape;
