//! What hosts pods: the environment, the project, configuration, the composition of a pod and its process. Every door
//! uses it: a command line, a service, an editor. It reads no command line, shows nothing and knows no terminal.
//!
//! With its callers this crate alone holds ambient authority: it opens directories, reads the environment and hands
//! handles down. It knows no turn order, no record format and no vendor's bytes; those live below.

pub mod added;
pub mod agent;
pub mod agents;
pub mod allow;
pub mod attachment;
pub mod bad_value;
pub mod compose;
pub mod config;
pub mod env;
pub mod exit;
pub mod host_log;
pub mod hosting;
pub mod instructions;
pub mod launch;
pub mod limits;
pub mod mcp;
pub mod nearest;
pub mod plain_file;
pub mod plugins;
pub mod pods;
pub mod points;
pub mod project;
pub mod skills;
pub mod undo;
pub mod words;

#[cfg(feature = "fuzzing")]
pub use config::fuzzing;
