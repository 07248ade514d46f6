//! The task list as a value: its operations and limits. Does not depend on a session.

use crate::plain;
use llm_worker::{ErrorKind, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tools::fail;

/// Most tasks that are kept; finished ones make room, the oldest first.
pub const MAX_TASKS: usize = 64;
/// Most bytes of a title.
pub const MAX_TITLE: usize = 120;
/// Most bytes of a detail. All of them, escaped as JSON, stay within what a state may have.
pub const MAX_DETAIL: usize = 300;

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "")]
pub enum TaskStatus {
    Open,
    Active,
    Done,
    Dropped,
}

plain::names!(TaskStatus);

/// One task of the model's list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// One line.
    pub title: String,
    pub status: TaskStatus,
    /// Some lines, or none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl Task {
    fn is_finished(&self) -> bool {
        match self.status {
            TaskStatus::Open | TaskStatus::Active => false,
            TaskStatus::Done | TaskStatus::Dropped => true,
        }
    }

    /// The one line that results show.
    pub(super) fn line(&self, id: u32) -> String {
        format!("{id} {}: {}", self.status, self.title)
    }
}

/// The model's task list, kept as state of the session. Times are request numbers of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    /// The highest id assigned; ids are not reused.
    last: u32,
    tasks: BTreeMap<u32, Task>,
    /// The request after which it was last changed.
    touched: u64,
    /// The request before which the model was last reminded; 0 for never.
    reminded: u64,
}

/// Checks the texts of a task.
pub(super) fn fits(title: Option<&str>, detail: Option<&str>) -> Result<(), ToolError> {
    let title = title.map_or(Ok(()), |title| plain::line("title", title, MAX_TITLE));
    let detail = detail.map_or(Ok(()), |detail| plain::text("detail", detail, MAX_DETAIL));
    title
        .and(detail)
        .map_err(|problem| fail(ErrorKind::FixInput, &problem))
}

impl Tasks {
    /// Every task, oldest first.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Task)> {
        self.tasks.iter().map(|(id, task)| (*id, task))
    }

    /// The open and active tasks, oldest first.
    pub fn unfinished(&self) -> impl Iterator<Item = (u32, &Task)> {
        self.all().filter(|(_, task)| !task.is_finished())
    }

    pub(super) fn get(&self, id: u32) -> Result<&Task, ToolError> {
        self.tasks.get(&id).ok_or_else(|| missing(id))
    }

    /// Adds a task. If there is an unfinished task of that title, it is unchanged and its status is returned.
    pub(super) fn create(
        &mut self,
        title: &str,
        detail: &str,
    ) -> Result<(u32, Option<TaskStatus>), ToolError> {
        if let Some((id, known)) = self.unfinished().find(|(_, task)| task.title == title) {
            return Ok((id, Some(known.status)));
        }
        if self.tasks.len() >= MAX_TASKS {
            let finished = self
                .all()
                .find(|(_, task)| task.is_finished())
                .map(|(id, _)| id);
            let Some(oldest) = finished else {
                let what = format!(
                    "{MAX_TASKS} tasks are unfinished; set one to done or dropped with TaskUpdate first"
                );
                return Err(fail(ErrorKind::Exhausted, &what));
            };
            self.tasks.remove(&oldest);
        }
        self.last += 1;
        let task = Task {
            title: title.to_owned(),
            status: TaskStatus::Open,
            detail: detail.to_owned(),
        };
        self.tasks.insert(self.last, task);
        Ok((self.last, None))
    }

    /// Changes the given fields; returns the changed task.
    pub(super) fn update(
        &mut self,
        id: u32,
        status: Option<TaskStatus>,
        title: Option<String>,
        detail: Option<String>,
    ) -> Result<&Task, ToolError> {
        if status.is_none() && title.is_none() && detail.is_none() {
            return Err(fail(
                ErrorKind::FixInput,
                "nothing was changed; give a status, a title or a detail",
            ));
        }
        let task = self.tasks.get_mut(&id).ok_or_else(|| missing(id))?;
        task.status = status.unwrap_or(task.status);
        if let Some(title) = title {
            task.title = title;
        }
        if let Some(detail) = detail {
            task.detail = detail;
        }
        Ok(task)
    }

    /// The list was changed after this request.
    pub(super) fn touched(&mut self, request: u64) {
        self.touched = request;
    }

    /// Whether to remind the model with this request: something is unfinished, nothing was touched for `quiet`
    /// requests, and the last reminder is `again` requests back.
    pub(super) fn is_stale(&self, request: u64, quiet: u64, again: u64) -> bool {
        let recently = self.reminded > 0 && request.saturating_sub(self.reminded) < again;
        !recently
            && request.saturating_sub(self.touched) >= quiet
            && self.unfinished().next().is_some()
    }

    /// The model is reminded with this request.
    pub(super) fn reminded(&mut self, request: u64) {
        self.reminded = request;
    }

    /// Requests since it was touched.
    pub(super) fn quiet(&self, request: u64) -> u64 {
        request.saturating_sub(self.touched)
    }
}

fn missing(id: u32) -> ToolError {
    fail(
        ErrorKind::FixInput,
        format!("there is no task {id}; TaskList lists the tasks"),
    )
}
