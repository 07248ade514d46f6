//! MCP servers as features: a client of the Model Context Protocol in both of its eras, over children that answer
//! lines and over HTTP.
//!
//! ```text
//! yoi mcp add ─▶ Connection (asked once) ─▶ ServerPin: definitions and their digest, kept by the host
//! Pin ─▶ McpFeature ─▶ plan, install: nothing starts        call ─▶ Server (one process, started at its first call)
//! ```
//!
//! Nothing here opens a file or a socket, and nothing starts a process that was not granted: the host reads and keeps pins.

mod connection;
mod definition;
mod elicit;
mod exchange;
mod feature;
mod http;
mod mirrored;
mod names;
mod outcome;
mod pin;
mod pipe;
mod prompts;
mod questions;
mod reads;
mod resources;
mod rounds;
mod server;
mod wire;

pub use connection::Greeted;
pub use definition::{Fitted, Own};
pub use exchange::Gone;
pub use feature::{McpFeature, Once, ask_once};
pub use http::{is_header, reach};
pub use names::{MAX_SERVER_NAME, is_server_name};
pub use pin::{
    Annotations, Definitions, Era, Launch, PinnedPrompt, PinnedTool, PromptArgument, ServerInfo,
    ServerPin,
};
