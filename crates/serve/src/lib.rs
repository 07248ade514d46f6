//! Doors of a pod for programs that speak another protocol. A door is a client of the pod like any other: it sends what
//! it is asked for over the pod's socket, and the pod judges, asks, records and bounds it. Knows no feature, no
//! configuration and nothing of the inside of a pod; opens no file, and listens nowhere by itself.
//!
//! ```text
//! stdio ─┬─▶ mcp ─▶ pod_calls ─▶ client::Connection ─▶ the pod
//! http ──┤    ├───▶ published    tools as other programs can read them
//!        │    └───▶ results      what a call gave
//!        └─▶ bridge              the same for scripts, as plain JSON
//! ```

mod bridge;
mod http;
mod mcp;
mod pod_calls;
mod published;
mod results;
mod rpc;
mod stdio;

pub use http::HttpDoor;
pub use mcp::McpServer;
pub use pod_calls::{DoorWaits, PodCalls, PodStart, ToolFilter};
pub use stdio::{ServeEnd, serve};
