//! An agent for editors: the Agent Client Protocol, version 1, as one JSON-RPC message a line on two streams. Each session
//! is a pod, of which this is a client among others: it follows the pod's records and tells the editor of them, hands in
//! prompts, and passes on questions. Knows no files, processes, configuration or terminals; what creates, starts and lists
//! pods is handed in.

mod agent;
mod asked;
mod blocking;
mod call;
mod command;
mod content;
mod lines;
mod message;
mod modes;
mod out;
mod pods;
mod requests;
mod session;
mod transcript;
mod update;

pub use agent::serve;
pub use pods::{ListedPod, OpenedPod, PodOpener, PodRefusal};
