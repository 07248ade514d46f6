//! A pod in this process: its parts are prepared, its session is opened, its actor runs to the end. Depends on no flag,
//! no command and no terminal; `yoi run` and the detached host are built on it.

mod actions;
mod context;
mod failure;
pub(crate) mod handshake;
pub(crate) mod leftovers;
pub(crate) mod messages;
mod open;
mod prepare;
mod reload;
mod run;
pub(crate) mod session_location;
pub(crate) mod socket_file;

pub(crate) use context::{ChildTag, HostContext};
pub(crate) use failure::host_failure;
pub(crate) use open::OpenedSession;
pub(crate) use prepare::Prepared;
pub(crate) use run::{Driven, Hosting};
