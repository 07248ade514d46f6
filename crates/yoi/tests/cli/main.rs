//! The program as people and scripts meet it: real processes, a project, a home and a state directory of their own
//! each, and nothing of the machine's configuration.

mod answers;
mod changes;
mod config;
mod crash;
mod endpoint;
mod failures;
mod files;
mod help;
mod live;
mod pods;
mod prompt;
mod run;
mod scene;
mod signals;
mod state;
