//! What people see: of a run, and of results; knows no command.

pub(crate) mod background_tasks;
pub(crate) mod checklist;
pub(crate) mod escape;
pub(crate) mod out;
pub(crate) mod progress;
pub(crate) mod question;
pub(crate) mod rule_preview;
pub(crate) mod sandboxed;
pub(crate) mod terminal;
pub(crate) mod transcript;
