//! The control loop, the log it writes and what is restored from it, over a scripted model and a disk that fails.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a scene that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root"
)]

mod actor;
mod aggregate_bounds;
mod allowed_rules;
mod approval_expiry;
mod approval_kills;
mod approval_scene;
mod approvals;
mod attribution;
mod background_tasks;
mod between_turns;
mod blob_bound;
mod bounds;
mod callbacks;
mod canaries;
mod cancel;
mod checkpoints;
mod client_model;
mod compaction;
mod data;
mod disk_faults;
mod enriched_calls;
mod file_changes;
mod fixtures;
mod fold;
mod foreign_text;
mod foreign_tools;
mod format_switch;
mod jobs;
mod kill_points;
mod live_holds;
mod live_keys;
mod live_kills;
mod live_queue;
mod live_wakes;
mod logged_queue;
mod long_session;
mod lost_records;
mod model_backoff;
mod outbox;
mod parallel_calls;
mod person_commands;
mod pod_budget;
mod record_mirrors;
mod record_strategy;
mod reload;
mod replay;
mod requested_calls;
mod restore;
mod service_events;
mod stage_cleanup;
mod standing_facts;
mod staying;
mod task_runs;
mod unclean_starts;
mod unstorable_commits;
mod view_kills;
mod views;
mod waiting_tasks;
