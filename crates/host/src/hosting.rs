//! A pod in this process: its parts are prepared, its session is opened, its actor runs to the end. Depends on no flag,
//! no command and no terminal; `yoi run` and the detached host are built on it.

mod actions;
mod context;
mod failure;
mod first_request;
pub mod handshake;
pub mod leftovers;
pub mod lost_host;
pub mod messages;
mod open;
mod prepare;
mod reload;
mod run;
pub mod session_location;
pub mod socket_file;

pub use context::{ChildTag, HostContext};
pub use failure::host_failure;
pub use open::OpenedSession;
pub use prepare::PreparedPod;
pub use run::{Driven, Hosting};
