//! The records of a session. Their bodies are declared in `protocol::journal`; here is what a host does with them. The store
//! knows only frames.

mod person_command;
mod registry;
mod requested_call;

pub use person_command::{command_item, command_of, command_text};
pub use protocol::journal::*;
pub use registry::{RecordedFeature, RecordedRegistry};
pub use requested_call::{call_item, call_text};
