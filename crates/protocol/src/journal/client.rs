//! The record of what a client asked a feature to do. Does not depend on turns.

use super::Who;
use std::sync::Arc;

bodies! {
    /// A client calls a tool that changes something.
    ///
    /// Body of `client_call`: a client calls a tool that its feature opens to clients, and that changes something. Durable before
    /// the tool runs; what it changed has records of its own. Calls that change nothing have none.
    ClientCall: Eq {
        tool: String,
        feature: String,
        /// Canonical JSON.
        arguments: Arc<str>,
        // Absent for one of this program.
        by ?: Who,
    }
}
