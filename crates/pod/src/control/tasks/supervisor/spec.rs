//! A background task as the supervisor needs it. Does not depend on its runs.

use crate::feature::{BackgroundTaskDeclaration, Restart, TaskTrigger};
use crate::schedule::{Cron, Interval};
use llm_worker::ToolEffect;

/// What a declared task does when, with its schedules read.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    pub feature: String,
    pub task: String,
    pub effect: ToolEffect,
    pub restart: Restart,
    pub deadline_ms: u64,
    pub(super) schedules: Vec<Schedule>,
    pub(super) at_start: bool,
    pub(super) on_request: bool,
}

/// A trigger by the clock.
#[derive(Clone, Debug)]
pub(super) enum Schedule {
    Interval(Interval),
    Cron(Cron),
}

impl TaskSpec {
    /// A declared task of this feature.
    ///
    /// # Errors
    /// For people: a cron expression or time zone is wrong.
    pub fn new(feature: &str, declaration: &BackgroundTaskDeclaration) -> Result<Self, String> {
        let BackgroundTaskDeclaration {
            name,
            effect,
            triggers,
            restart,
            deadline_ms,
            needs: _,
        } = declaration;
        let mut spec = Self {
            feature: feature.to_owned(),
            task: name.clone(),
            effect: *effect,
            restart: *restart,
            deadline_ms: *deadline_ms,
            schedules: Vec::new(),
            at_start: false,
            on_request: false,
        };
        for trigger in triggers {
            match trigger {
                TaskTrigger::Start => spec.at_start = true,
                TaskTrigger::Request => spec.on_request = true,
                // The driver knows which events and files are granted, and which jobs ended.
                TaskTrigger::ServiceEvent(_)
                | TaskTrigger::ChildEnded
                | TaskTrigger::FileChange => {}
                TaskTrigger::Interval { every_ms } => {
                    spec.schedules
                        .push(Schedule::Interval(Interval::new(*every_ms)));
                }
                TaskTrigger::Cron {
                    expression,
                    time_zone,
                } => {
                    spec.schedules
                        .push(Schedule::Cron(Cron::parse(expression, time_zone)?));
                }
            }
        }
        Ok(spec)
    }
}
