//! The program as people and scripts meet it: real processes, a project, a home and a state directory of their own
//! each, and nothing of the machine's configuration.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests: a scratch directory or a child that fails is a failed test"
)]

mod answers;
mod anthropic;
mod changes;
mod clocks;
mod commands;
mod completions;
mod config;
mod cost;
mod crash;
mod endpoint;
mod ends;
mod failures;
mod feature_new;
mod features;
mod files;
mod following;
mod git;
mod grants;
mod help;
mod hostile;
mod instructions;
mod keys;
mod left_running;
mod live;
mod messages;
mod outcomes;
mod oversized;
mod phases;
mod pods;
mod prompt;
mod recording;
mod roots;
mod run;
mod salvage;
mod scene;
mod schema;
mod secret_files;
mod secrets;
mod signals;
mod staged;
mod state;
mod stores;
mod surface;
mod surroundings;
mod transcripts;
mod trust;
mod web;
