//! The program as people and scripts meet it: real processes, a project, a home and a state directory of their own
//! each, and nothing of the machine's configuration.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests: a scratch directory or a child that fails is a failed test"
)]

mod added_directories;
mod agents;
mod anthropic;
mod api_keys;
mod approval_rules;
mod approvals;
mod approvals_at_terminal;
mod at_screen;
mod attach;
mod attachment;
mod changes_and_undo;
mod command_rules;
mod completions;
mod config_errors;
mod confirm_gate;
mod context;
mod cost_limit;
mod crash;
mod damaged_state;
mod default_surface;
mod drift;
mod editors;
mod effort;
mod endpoint;
mod endpoint_failures;
mod environment;
mod escalation;
mod exit_codes;
mod feature_new;
mod feature_stores;
mod features;
mod full_screen;
mod git_guard;
mod grants;
mod help_and_usage;
mod host_log;
mod hostile;
mod hosts;
mod instructions;
mod jobs;
mod key_redaction;
mod later_formats;
mod left_running;
mod live_pod_clients;
mod live_pod_runs;
mod live_pods;
mod log_follow;
mod log_transcripts;
mod manual_pages;
mod messages;
mod notifications;
mod notify_person;
mod output_schema;
mod oversized_answers;
mod person;
mod person_commands;
mod plugin_attacks;
mod plugin_commands;
mod plugin_distribution;
mod plugin_fixtures;
mod plugin_guests;
mod plugin_lua;
mod plugin_stac;
mod plugins;
mod pod_budget;
mod pod_in_use;
mod pods;
mod project_trust;
mod prompt;
mod protocol_client;
mod proxies;
mod published_plugins;
mod recorded_phases;
mod recording;
mod redaction;
mod reports;
mod run;
mod run_at_terminal;
mod run_endings;
mod run_on_terminal;
mod salvage;
mod sandbox_hints;
mod scene;
mod schedule;
mod screen_changes;
mod secret_files;
mod shown_files;
mod signals;
mod skills;
mod sources;
mod staged_files;
mod task_status;
mod tool_call_rounds;
mod web_pages;
mod workspace_files;
mod wrong_clocks;
