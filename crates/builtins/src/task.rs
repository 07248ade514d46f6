//! `builtin:task`: the model's own task list, as state of the session.
//!
//! Results are one line, or one line a task. When tasks are unfinished and nothing touched the list for a while, the
//! model is reminded of them; without the grant to notify, it is not.

mod list;
mod reminder;

pub use list::{MAX_DETAIL, MAX_TASKS, MAX_TITLE, Task, TaskStatus, Tasks};
pub use reminder::{AGAIN, QUIET};

use llm_worker::tool::Touch;
use llm_worker::{ToolContext, ToolEffect, ToolError, ToolResult};
use pod::feature::{
    CapabilityRequest, DurableState, FeatureDescriptor, FeatureId, FeatureInstallContext,
    FeatureInstallError, FeatureModule, HookKey, HostCapability, StateKey, ToolKey,
};
use pod::hook::PreRequest;
use reminder::Reminder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tools::answer;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("task");

/// The state key of the task list.
pub const TASKS: StateKey<Tasks> = StateKey::new("tasks", 1);

/// The capability to remind the model of unfinished tasks.
pub const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: reminder::MAX_WORDS,
    per_turn: reminder::PER_TURN,
};

const NOTIFIES: &[HostCapability] = &[NOTIFY];

/// Idempotent by title: creating an existing task returns the existing one.
const CREATE: ToolKey<CreateArgs> = ToolKey::new(
    "TaskCreate",
    ToolEffect::Idempotent,
    "Add a task; answers its id.",
)
.touching(|_| vec![Touch::Session]);
const UPDATE: ToolKey<UpdateArgs> =
    ToolKey::new("TaskUpdate", ToolEffect::Idempotent, "Change a task.")
        .touching(|_| vec![Touch::Session]);
const LIST: ToolKey<ListArgs> =
    ToolKey::new("TaskList", ToolEffect::ReadOnly, "List unfinished tasks.").for_clients();
const GET: ToolKey<GetArgs> = ToolKey::new(
    "TaskGet",
    ToolEffect::ReadOnly,
    "Read a task with its detail.",
);
const REQUESTS: HookKey<PreRequest> = HookKey::new("task-reminder")
    .deadline(pod::hook::MAX_DEADLINE)
    .needs(NOTIFIES);

/// The feature that adds the tools of the model's task list.
#[derive(Debug)]
pub struct TaskList;

impl FeatureModule for TaskList {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .display_name("Tasks")
            .version(env!("CARGO_PKG_VERSION"))
            .request(CapabilityRequest::optional(
                NOTIFY,
                "remind the model of unfinished tasks",
            ))
            .tool(&CREATE)
            .tool(&UPDATE)
            .tool(&LIST)
            .tool(&GET)
            .gate(&REQUESTS)
            .state(&TASKS)
            .instruction("use", "Keep tasks for work of three or more steps.")
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            tasks: ctx.state(&TASKS)?,
            request: AtomicU64::new(0),
        });
        ctx.tools().implement(&CREATE, &live, Live::create)?;
        ctx.tools().implement(&UPDATE, &live, Live::update)?;
        ctx.tools().implement(&LIST, &live, Live::list)?;
        ctx.tools().implement(&GET, &live, Live::get)?;
        if ctx.grants().allows(&NOTIFY) {
            let reminder = Arc::new(Reminder {
                notify: ctx.notifications()?,
                live,
            });
            ctx.hooks()
                .gate_async(&REQUESTS, &reminder, Reminder::before_request)?;
        }
        Ok(())
    }
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct CreateArgs {
    title: String,
    #[serde(default)]
    detail: String,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct UpdateArgs {
    id: u32,
    #[serde(default)]
    status: Option<TaskStatus>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    detail: Option<String>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct ListArgs {
    /// Finished ones, too.
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct GetArgs {
    id: u32,
}

struct Live {
    tasks: DurableState<Tasks>,
    /// The newest request's number; a request comes before any call of a process.
    request: AtomicU64,
}

impl Live {
    async fn create(self: Arc<Self>, args: CreateArgs, _: ToolContext) -> ToolResult {
        let CreateArgs { title, detail } = args;
        list::fits(Some(&title), Some(&detail))?;
        let said = self.change(|tasks| {
            let (id, status) = tasks.create(&title, &detail)?;
            Ok(match status {
                None => format!("{id} created: {title}"),
                Some(status) => format!("{id} is there already, {status}: {title}"),
            })
        });
        Ok(answer(&said.await?, String::new()))
    }

    async fn update(self: Arc<Self>, args: UpdateArgs, _: ToolContext) -> ToolResult {
        let UpdateArgs {
            id,
            status,
            title,
            detail,
        } = args;
        list::fits(title.as_deref(), detail.as_deref())?;
        let said = self.change(|tasks| {
            let now = tasks.update(id, status, title, detail)?.line(id);
            Ok(format!("{now} ({} unfinished)", tasks.unfinished().count()))
        });
        Ok(answer(&said.await?, String::new()))
    }

    async fn list(self: Arc<Self>, args: ListArgs, _: ToolContext) -> ToolResult {
        let tasks = self.tasks.read();
        let summary = format!(
            "{} of {} tasks unfinished",
            tasks.unfinished().count(),
            tasks.all().count()
        );
        let lines = |tasks: &mut dyn Iterator<Item = (u32, &Task)>| {
            tasks
                .map(|(id, task)| task.line(id))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let content = if args.all {
            lines(&mut tasks.all())
        } else {
            lines(&mut tasks.unfinished())
        };
        Ok(answer(&summary, content))
    }

    async fn get(self: Arc<Self>, args: GetArgs, _: ToolContext) -> ToolResult {
        let tasks = self.tasks.read();
        let task = tasks.get(args.id)?;
        Ok(answer(&task.line(args.id), task.detail.clone()))
    }

    /// Changes the list and returns when the change is durable, so that results the model sees are durable.
    async fn change<R: Unpin>(
        &self,
        change: impl FnOnce(&mut Tasks) -> Result<R, ToolError>,
    ) -> Result<R, ToolError> {
        let request = self.request.load(Ordering::Relaxed);
        let changed = self.tasks.update(|tasks| {
            let done = change(tasks)?;
            tasks.touched(request);
            Ok(done)
        });
        changed.await?
    }
}
