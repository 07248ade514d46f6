//! `builtin:schedule`: prompts that come back to the model at a time or by a cron expression, and wake an idle pod. Off
//! until configured.
//!
//! ```text
//!   tools, configuration ──> prompts (state) ──> next time ──> the host runs `deliver` ──> waking notice, once
//! ```
//!
//! A due time is noted as delivered after its notice is durable. The notice has a key, so that a crash in between does
//! not repeat it. Due times that were missed are one.

mod prompts;

pub use prompts::{MAX_PROMPTS, MAX_TEXT, Prompts};

use crate::clock::Now;
use crate::plain;
use llm_worker::tool::Touch;
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolResult};
use pod::feature::{
    BackgroundTaskContext, CapabilityRequest, DurableState, FeatureDescriptor, FeatureId,
    FeatureInstallContext, FeatureInstallError, FeatureModule, FeatureNotifySink, HostCapability,
    Restart, SinkError, StateKey, TaskHandle, TaskKey, TaskResult, ToolKey,
};
use pod::schedule::{Cron, Zone};
use prompts::{ConfiguredPrompt, Entry, Progress, Timing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use tools::{answer, counted, fail};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("schedule");

/// The state key of the prompts.
pub const PROMPTS: StateKey<Prompts> = StateKey::new("prompts", 1);

/// The capability to wake the model.
pub const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 1300,
    per_turn: 32,
};

/// The capability to run when a prompt is due.
pub const DELIVERS: HostCapability = HostCapability::background_task("deliver");

const DELIVERY: &[HostCapability] = &[NOTIFY];

/// Idempotent by the key of its notices. A failed delivery is repeated as long as the pod runs: no 16 runs fail within a
/// second.
const DELIVER: TaskKey = TaskKey::new("deliver", ToolEffect::Idempotent)
    .at_start()
    .on_request()
    .restart(Restart::OnFailure {
        max: 16,
        within: Duration::from_secs(1),
        backoff: Duration::from_secs(5 * 60),
    })
    .needs(DELIVERY);

const CREATE: ToolKey<CreateArgs> = ToolKey::new(
    "ScheduleCreate",
    ToolEffect::Effectful,
    "Set a prompt that wakes you later: at a time, in some minutes or seconds, or by a cron expression; answers its id.",
)
.touching(|_| vec![Touch::Session])
.for_clients();
const LIST: ToolKey<ListArgs> = ToolKey::new(
    "ScheduleList",
    ToolEffect::ReadOnly,
    "List prompts and their next times.",
)
.for_clients();
const CANCEL: ToolKey<CancelArgs> =
    ToolKey::new("ScheduleCancel", ToolEffect::Idempotent, "Cancel a prompt.")
        .touching(|_| vec![Touch::Session])
        .for_clients();

/// The longest `in_minutes`: a year.
const MAX_MINUTES: u32 = 366 * 24 * 60;
/// Longest name of a configured prompt, in bytes.
const MAX_NAME: usize = 40;
/// Most characters of a prompt in a list.
const SHOWN: usize = 120;

/// `[features."builtin:schedule"]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The time zone where none is named.
    pub time_zone: String,
    /// At most [`MAX_PROMPTS`].
    #[schemars(length(max = MAX_PROMPTS))]
    pub prompts: Vec<PromptSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            time_zone: "UTC".to_owned(),
            prompts: Vec::new(),
        }
    }
}

/// A prompt of the configuration.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptSettings {
    /// Small letters, digits and dashes.
    pub name: String,
    /// Five fields.
    pub cron: String,
    #[serde(default)]
    pub time_zone: Option<String>,
    pub text: String,
}

/// The feature that wakes the model with prompts.
pub struct ScheduledPrompts {
    time_zone: String,
    configured: Vec<ConfiguredPrompt>,
    now: Now,
}

impl ScheduledPrompts {
    /// Creates the feature with these settings and this clock.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings, now: Now) -> Result<Self, String> {
        let Settings { time_zone, prompts } = settings;
        Zone::parse(&time_zone).map_err(|why| format!("`time_zone`: {why}"))?;
        if prompts.len() > MAX_PROMPTS {
            return Err(format!(
                "`prompts` has {} entries; at most {MAX_PROMPTS}",
                prompts.len()
            ));
        }
        let mut configured: Vec<ConfiguredPrompt> = Vec::new();
        for PromptSettings {
            name,
            cron,
            time_zone: own,
            text,
        } in prompts
        {
            if !plain::is_slug(&name, MAX_NAME) {
                let wanted = format!(
                    "lowercase letters, digits and single dashes, at most {MAX_NAME} bytes"
                );
                return Err(format!(
                    "`prompts`: `{}` is not a valid name; use {wanted}",
                    name.escape_debug()
                ));
            }
            if configured.iter().any(|other| other.name == name) {
                return Err(format!("`prompts`: the name `{name}` is used twice"));
            }
            let time_zone = own.unwrap_or_else(|| time_zone.clone());
            let checked = Cron::parse(&cron, &time_zone).and(prompts::check_text(&text));
            checked.map_err(|why| format!("`prompts`: {name}: {why}"))?;
            configured.push(ConfiguredPrompt {
                name,
                timing: Timing::Cron {
                    expression: cron,
                    time_zone,
                },
                text,
            });
        }
        Ok(Self {
            time_zone,
            configured,
            now,
        })
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Schedule")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .request(CapabilityRequest::required(
            NOTIFY,
            "wake the model when a prompt is due",
        ))
        .tool(&CREATE)
        .tool(&LIST)
        .tool(&CANCEL)
        .background_task(&DELIVER)
        .state(&PROMPTS)
        .build()
}

/// What a journal tells of the prompts of a pod that does not run: a line for each. Of those of the configuration it has only
/// the names.
#[must_use]
pub fn recorded_lines(prompts: &Prompts, now_ms: u64) -> Vec<String> {
    let configured = prompts
        .configured_names()
        .map(|name| format!("{name} (configured)"));
    configured
        .chain(prompts.entries(&[], now_ms).iter().map(line))
        .collect()
}

fn line(
    Entry {
        id,
        timing,
        text,
        next,
    }: &Entry<'_>,
) -> String {
    let next = next.map_or_else(|| "never".to_owned(), |due| timing.show(due));
    let text: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(SHOWN)
        .collect();
    format!("{id} ({timing}), due {next}: {text}")
}

impl FeatureModule for ScheduledPrompts {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            time_zone: self.time_zone.clone(),
            configured: self.configured.clone(),
            now: Arc::clone(&self.now),
            prompts: ctx.state(&PROMPTS)?,
            notify: ctx.notifications()?,
            deliver: ctx.background_tasks().handle(&DELIVER).ok(),
            requesting: Mutex::new(()),
        });
        ctx.tools().implement(&CREATE, &live, Live::create)?;
        ctx.tools().implement(&LIST, &live, Live::list)?;
        ctx.tools().implement(&CANCEL, &live, Live::cancel)?;
        ctx.background_tasks().run(&DELIVER, &live, Live::deliver)?;
        Ok(())
    }
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct CreateArgs {
    /// The prompt.
    text: String,
    /// Like `2026-11-24 09:00`.
    #[serde(default)]
    at: Option<String>,
    #[serde(default)]
    in_minutes: Option<u32>,
    #[serde(default)]
    in_seconds: Option<u32>,
    /// Minute, hour, day of the month, month, day of the week.
    #[serde(default)]
    cron: Option<String>,
    /// Like `Europe/Berlin`.
    #[serde(default)]
    time_zone: Option<String>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct ListArgs {}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct CancelArgs {
    id: u32,
}

struct Live {
    time_zone: String,
    configured: Vec<ConfiguredPrompt>,
    now: Now,
    prompts: DurableState<Prompts>,
    notify: FeatureNotifySink,
    /// None if background tasks were denied.
    deliver: Option<TaskHandle>,
    /// Held while the next time is computed and requested: the request that is made last knows the newest state.
    requesting: Mutex<()>,
}

impl Live {
    async fn create(self: Arc<Self>, args: CreateArgs, _: ToolContext) -> ToolResult {
        if self.deliver.is_none() {
            return Err(fail(
                ErrorKind::Denied,
                "this feature may not run background tasks; tell the person",
            ));
        }
        prompts::check_text(&args.text).map_err(|why| fail(ErrorKind::FixInput, why))?;
        let now = self.now_ms();
        let timing = self
            .timing(&args, now)
            .map_err(|why| fail(ErrorKind::FixInput, why))?;
        let first = timing
            .next(&Progress::since(now), now)
            .map(|due| timing.show(due))
            .unwrap_or_default();
        let id = self
            .prompts
            .update(|prompts| prompts.create(timing, args.text, now))
            .await??;
        if let Err(error) = self.request() {
            self.prompts.update(|prompts| prompts.cancel(id)).await??;
            return Err(error.into());
        }
        Ok(answer(&format!("{id} set, due {first}"), String::new()))
    }

    async fn list(self: Arc<Self>, _: ListArgs, _: ToolContext) -> ToolResult {
        let prompts = self.prompts.read();
        let now = self.now_ms();
        let lines: Vec<String> = prompts
            .entries(&self.configured, now)
            .iter()
            .map(line)
            .collect();
        let zone = Zone::parse(&self.time_zone)
            .map(|zone| zone.show(now))
            .unwrap_or_default();
        let summary = format!(
            "{}; now {zone}",
            counted(lines.len() as u64, "prompt", "prompts")
        );
        Ok(answer(&summary, lines.join("\n")))
    }

    async fn cancel(self: Arc<Self>, args: CancelArgs, _: ToolContext) -> ToolResult {
        let text = self
            .prompts
            .update(|prompts| prompts.cancel(args.id))
            .await??;
        // Without the request, a run comes at the old time and finds nothing.
        drop(self.request());
        Ok(answer(&format!("{} cancelled", args.id), text))
    }

    async fn deliver(self: Arc<Self>, _: BackgroundTaskContext) -> TaskResult {
        let now = self.now_ms();
        if self.prompts.read().is_stale(&self.configured, now) {
            self.prompts
                .update(|prompts| prompts.refresh(&self.configured, now))
                .await?;
        }
        for due in self.prompts.read().due(&self.configured, now) {
            self.notify
                .wake_model_once(&due.key(), due.notice())
                .await?;
            self.prompts
                .update(|prompts| prompts.delivered(&due))
                .await?;
        }
        Ok(self.request()?)
    }

    /// Requests a run for the next due time.
    fn request(&self) -> Result<(), SinkError> {
        let Some(task) = &self.deliver else {
            return Ok(());
        };
        let _one = self
            .requesting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let next = self.prompts.read().next(&self.configured, self.now_ms());
        match next.and_then(|due| UNIX_EPOCH.checked_add(Duration::from_millis(due))) {
            Some(time) => task.run_at(time),
            None => task.clear(),
        }
    }

    fn timing(&self, args: &CreateArgs, now: u64) -> Result<Timing, String> {
        let time_zone = args.time_zone.as_ref().unwrap_or(&self.time_zone).clone();
        let zone = Zone::parse(&time_zone)?;
        let at_ms = match (&args.at, args.in_minutes, args.in_seconds, &args.cron) {
            (None, None, None, Some(expression)) => {
                Cron::parse(expression, &time_zone)?;
                return Ok(Timing::Cron {
                    expression: expression.clone(),
                    time_zone,
                });
            }
            (None, Some(minutes), None, None) => {
                passed("in_minutes", minutes, MAX_MINUTES, now, 60_000)?
            }
            (None, None, Some(seconds), None) => {
                passed("in_seconds", seconds, MAX_MINUTES * 60, now, 1000)?
            }
            (Some(at), None, None, None) => zone.read(at)?,
            _ => return Err("give one of `at`, `in_minutes`, `in_seconds` and `cron`".to_owned()),
        };
        if at_ms <= now {
            return Err(format!(
                "{} has passed; it is {}",
                zone.show(at_ms),
                zone.show(now)
            ));
        }
        Ok(Timing::At { at_ms, time_zone })
    }

    fn now_ms(&self) -> u64 {
        let now = (self.now)().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The time after this many units of so many milliseconds.
fn passed(key: &str, count: u32, most: u32, now: u64, unit_ms: u64) -> Result<u64, String> {
    let in_range = (1..=most)
        .contains(&count)
        .then(|| now.saturating_add(u64::from(count) * unit_ms));
    in_range.ok_or_else(|| format!("`{key}` is {count}; expected 1 to {most}"))
}
