//! `builtin:work-item-intake`: an open work item that is labelled for this pod begins a turn. Off until configured; needs
//! `builtin:work-item`, through whose service it reads.
//!
//! It looks on a schedule and after the store changed an item, and gives an idle pod one item at a time: a notice with
//! its id and title, which wakes the model. Each item is given once in a session, also across restarts. The store changes
//! items in turns of this pod, too: then it looks once more a minute later.

use crate::clock::Now;
use crate::work_item::{
    CHANGED, Heading, MAX_LISTED, Query, READER, WorkItemLabel, WorkItemReader, WorkItemStatus,
};
use llm_worker::ToolEffect;
use pod::feature::{
    BackgroundTaskContext, CapabilityRequest, DurableState, FeatureDescriptor, FeatureId,
    FeatureInstallContext, FeatureInstallError, FeatureModule, FeatureNotifySink, HostCapability,
    PodActivity, ServiceHandle, ServiceRequirement, StateKey, TaskHandle, TaskKey, TaskResult,
    TriggerKind,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("work-item-intake");

/// The capability to wake the model for an item.
pub const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 600,
    per_turn: 4,
};

/// The items that were given to the model.
pub const GIVEN: StateKey<Given> = StateKey::new("given", 1);

/// Most items that are remembered; the oldest are forgotten, and would be given again if they are still open and
/// labelled.
pub const MAX_GIVEN: usize = 500;

/// What stands before the pod's name in its label.
const LABEL_PREFIX: &str = "pod:";

/// When it looks again after a change during a turn.
const AFTER_CHANGE: Duration = Duration::from_secs(60);

const DEFAULT_EVERY_MINUTES: u64 = 10;
/// A host wakes a pod for one feature at most 12 times an hour.
const MIN_EVERY_MINUTES: u64 = 5;
const MAX_EVERY_MINUTES: u64 = 24 * 60;

/// `[features."builtin:work-item-intake"]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The label of items for this pod; default: `pod:` and the name of the pod in small letters.
    pub label: Option<WorkItemLabel>,
    /// How often it looks for items.
    #[schemars(range(min = MIN_EVERY_MINUTES, max = MAX_EVERY_MINUTES))]
    pub every_minutes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            label: None,
            every_minutes: DEFAULT_EVERY_MINUTES,
        }
    }
}

/// The feature that gives labelled work items to the model.
pub struct Intake {
    settings: Settings,
    now: Now,
}

/// The items that were given to the model, the newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given(pub VecDeque<String>);

impl Intake {
    /// Creates the feature with these settings and this clock.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings, now: Now) -> Result<Self, String> {
        let minutes = settings.every_minutes;
        if (MIN_EVERY_MINUTES..=MAX_EVERY_MINUTES).contains(&minutes) {
            return Ok(Self { settings, now });
        }
        Err(format!(
            "`every_minutes` must be {MIN_EVERY_MINUTES} to {MAX_EVERY_MINUTES}, not {minutes}"
        ))
    }
}

impl Settings {
    fn task(&self) -> TaskKey {
        let every = Duration::from_secs(self.every_minutes.saturating_mul(60));
        TaskKey::new("look", ToolEffect::Idempotent)
            .at_start()
            .every(every)
            .on_event(CHANGED)
            .on_request()
    }

    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .display_name("Work item intake")
            .version(env!("CARGO_PKG_VERSION"))
            .settings::<Settings>()
            .request(CapabilityRequest::required(
                NOTIFY,
                "wake the model for an item",
            ))
            .requires(ServiceRequirement::required(READER, "^1"))
            .state(&GIVEN)
            .background_task(&self.task())
            .build()
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    Settings::default().descriptor()
}

impl FeatureModule for Intake {
    fn descriptor(&self) -> FeatureDescriptor {
        self.settings.descriptor()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let named = || {
            format!(
                "{LABEL_PREFIX}{}",
                ctx.pod_name().unwrap_or("name").to_ascii_lowercase()
            )
        };
        let label = match &self.settings.label {
            Some(label) => label.clone(),
            None => WorkItemLabel::try_from(named()).map_err(|_| {
                FeatureInstallError::failed(
                    "the name of this pod cannot be a label: set `label` in its configuration",
                )
            })?,
        };
        let live = Arc::new(Live {
            label,
            items: ctx.services().require(READER)?,
            notify: ctx.notifications()?,
            given: ctx.state(&GIVEN)?,
            again: ctx.background_tasks().handle(&self.settings.task()).ok(),
            now: Arc::clone(&self.now),
        });
        ctx.background_tasks()
            .run(&self.settings.task(), &live, Live::look)
            .map(drop)
    }
}

struct Live {
    label: WorkItemLabel,
    items: ServiceHandle<dyn WorkItemReader>,
    notify: FeatureNotifySink,
    given: DurableState<Given>,
    /// None where the task is left out.
    again: Option<TaskHandle>,
    now: Now,
}

impl Live {
    async fn look(self: Arc<Self>, cx: BackgroundTaskContext) -> TaskResult {
        if cx.pod.activity != PodActivity::Idle {
            // A later look finds the item; after a change, soon.
            if let (TriggerKind::ServiceEvent, Some(again)) = (cx.trigger, &self.again) {
                again.run_at((self.now)() + AFTER_CHANGE)?;
            }
            return Ok(());
        }
        let status = Some(WorkItemStatus::Open);
        let label = Some(self.label.clone());
        let query = Query {
            status,
            label,
            limit: Some(MAX_LISTED),
            ..Query::default()
        };
        let found = self.items.call(|items| items.list(query)).await??;
        let given = self.given.read();
        let Some(Heading { id, title, .. }) = found
            .items
            .into_iter()
            .find(|item| !given.0.contains(&item.id.to_string()))
        else {
            return Ok(());
        };
        let id = id.to_string();
        let text = format!(
            "The work item {id} is open and has the label {}. Its title is \"{title}\". Read it with WorkItemShow and do \
             the work. Close it when the work is done, or comment on it with what is missing.",
            self.label
        );
        // A run that is killed after this sends nothing in its repetition: the key is known.
        self.notify
            .wake_model_once(&format!("item {id}"), text)
            .await?;
        let given = move |given: &mut Given| {
            given.0.push_back(id);
            let over = given.0.len().saturating_sub(MAX_GIVEN);
            given.0.drain(..over);
        };
        self.given.update(given).await?;
        Ok(())
    }
}
