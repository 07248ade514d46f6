//! Scripts in Lua 5.4 that answer the requests of a host: a guest inside, without a process of its own. Does not depend on
//! pods, sandboxes and manifests; streams, files and time are handed in.
//!
//! ```text
//! line ─▶ Wire ─▶ request ─▶ Script (the state of Lua, kit.lua, the package's files) ─▶ answer ─▶ line
//!                              └─ what it asks of the host, over the same Wire
//! ```
//!
//! Nothing here ends a script that does not return: who waits for an answer kills the process.

mod convert;
mod declared;
mod failure;
mod guest;
mod process;
mod script;
mod wire;

pub use guest::serve;
pub use process::{Process, ReadFile};
