//! `builtin:notify-person`: a message to a person when a pod is held, or idle after a turn, and nobody is attached. Off
//! until configured, with a command or a webhook.
//!
//! ```text
//!   a turn ended, a hold began ──> after `delay_s`: still so? ──no──> nothing
//!                                        │ yes
//!      a driver was attached ──> suppressed   else: `sending` is durable ──> deliver ──> sent
//!                                        ▲                              │ failed
//!                                        └── after a pause, 5 attempts ─┘ then given up
//! ```
//!
//! One stretch of idleness or one hold is one event, known by the number of the turn before it. An event whose message
//! was being sent when the process was killed is not sent again: whether it arrived is unknown.

mod deliver;
mod events;
mod message;

pub use deliver::{AttemptLimits, WEBHOOK};
pub use events::{DELIVERIES, Deliveries, Delivery, DeliveryState, MAX_KEPT};
pub use message::{BodyFormat, WaitKind};

use crate::clock::Now;
use deliver::{DeliveryError, NextAttempt, Sender};
use events::Attempt;
use llm_worker::{Item, ToolEffect};
use message::{Event as PodEvent, EventKey, Message};
use pod::feature::{
    BackgroundTaskContext, CapabilityRequest, DurableState, FeatureDescriptor,
    FeatureDescriptorBuilder, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HookKey, HostCapability, RunningNotes, StateError, TaskError, TaskHandle, TaskKey, TaskResult,
    TriggerKind,
};
use pod::hook::{Event, EventView};
use pod::record::{ItemAdded, Record};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("notify-person");

/// The capability to read the URL of the webhook.
pub const SECRET: HostCapability = HostCapability::secret(WEBHOOK);
const NETWORK: HostCapability = HostCapability::network("webhook");

/// Longer than every wait of one attempt.
const DEADLINE: Duration = Duration::from_secs(120);
/// After what is durable could not be changed, a run comes again after this time.
const AGAIN: Duration = Duration::from_secs(60);
const NOTIFY: TaskKey = TaskKey::new("notify", ToolEffect::Effectful)
    .at_start()
    .on_request()
    .deadline(DEADLINE);
const WATCH: HookKey<Event> = HookKey::new("turn-ends-and-holds");

/// Most words of a command, and most bytes of them together.
const MAX_WORDS: usize = 64;
const MAX_COMMAND: usize = 4096;
const MAX_DELAY_S: u64 = 24 * 60 * 60;
const MAX_PER_HOUR: u32 = 60;

/// `[features."builtin:notify-person"]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// A program with its arguments; the message is added as the last one.
    #[schemars(length(max = MAX_WORDS))]
    pub command: Vec<String>,
    /// The file whose first line is the URL of a webhook, which gets the message by POST. Read by the composition root.
    pub webhook_file: Option<PathBuf>,
    /// The body of the POST, by default `json`, or the last argument of the command, by default `text`.
    pub format: Option<BodyFormat>,
    /// How long a pod must be held or idle before a message is sent.
    #[schemars(range(min = 1, max = MAX_DELAY_S))]
    pub delay_s: u64,
    /// Most messages in an hour.
    #[schemars(range(min = 1, max = MAX_PER_HOUR))]
    pub max_per_hour: u32,
    /// Whether the message has the beginning of the model's newest answer.
    pub include_answer: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            webhook_file: None,
            format: None,
            delay_s: 60,
            max_per_hour: 12,
            include_answer: false,
        }
    }
}

/// The feature that tells an absent person that the pod waits.
pub struct NotifyPerson {
    settings: Settings,
    limits: AttemptLimits,
    now: Now,
}

impl NotifyPerson {
    /// Creates the feature with these settings and this clock.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings, now: Now) -> Result<Self, String> {
        let Settings {
            command,
            webhook_file,
            delay_s,
            max_per_hour,
            ..
        } = &settings;
        match (command.is_empty(), webhook_file) {
            (true, None) => return Err("set `command` or `webhook_file`".to_owned()),
            (false, Some(_)) => return Err("set `command` or `webhook_file`, not both".to_owned()),
            (true, Some(_)) | (false, None) => {}
        }
        let bytes: usize = command.iter().map(String::len).sum();
        if command.len() > MAX_WORDS
            || bytes > MAX_COMMAND
            || command.iter().any(|word| word.contains('\0'))
        {
            return Err(format!(
                "`command` must have at most {MAX_WORDS} words and {MAX_COMMAND} bytes"
            ));
        }
        if command.first().is_some_and(String::is_empty) {
            return Err("`command` must begin with a program".to_owned());
        }
        if webhook_file
            .as_ref()
            .is_some_and(|file| file.is_relative() && !file.starts_with("~"))
        {
            return Err("`webhook_file` must be an absolute path, or begin with `~/`".to_owned());
        }
        if !(1..=MAX_DELAY_S).contains(delay_s) {
            return Err(format!(
                "`delay_s` must be 1 to {MAX_DELAY_S}, not {delay_s}"
            ));
        }
        if !(1..=MAX_PER_HOUR).contains(max_per_hour) {
            return Err(format!(
                "`max_per_hour` must be 1 to {MAX_PER_HOUR}, not {max_per_hour}"
            ));
        }
        Ok(Self {
            settings,
            limits: AttemptLimits::USUAL,
            now,
        })
    }

    /// Uses these time limits of an attempt.
    #[must_use]
    pub fn within(self, limits: AttemptLimits) -> Self {
        Self { limits, ..self }
    }
}

fn common() -> FeatureDescriptorBuilder {
    FeatureDescriptor::builder(ID)
        .display_name("Notify person")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .state(&DELIVERIES)
        .observe(&WATCH)
        .background_task(&NOTIFY)
}

pub(crate) fn declared() -> FeatureDescriptor {
    let requests = command_requests().into_iter().chain(webhook_requests());
    requests
        .fold(common(), |builder, (capability, why)| {
            builder.request(CapabilityRequest::optional(capability, why))
        })
        .build()
}

fn command_requests() -> [(HostCapability, &'static str); 2] {
    [
        (HostCapability::ANY_PROGRAM, "run the command of `command`"),
        (
            HostCapability::READ_WORKSPACE,
            "run it in the working directory",
        ),
    ]
}

fn webhook_requests() -> [(HostCapability, &'static str); 2] {
    [
        (SECRET, "read the URL of the webhook"),
        (
            NETWORK,
            "call the webhook: grant = { network = [\"hooks.example.org\"] }",
        ),
    ]
}

impl FeatureModule for NotifyPerson {
    fn descriptor(&self) -> FeatureDescriptor {
        let requests = if self.settings.command.is_empty() {
            webhook_requests()
        } else {
            command_requests()
        };
        let required = |builder: FeatureDescriptorBuilder, (capability, why)| {
            builder.request(CapabilityRequest::required(capability, why))
        };
        requests.into_iter().fold(common(), required).build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let Settings {
            command, format, ..
        } = &self.settings;
        let sender = if command.is_empty() {
            Sender::webhook(
                ctx.services().secret(WEBHOOK)?,
                ctx.services().network()?,
                format.unwrap_or(BodyFormat::Json),
            )?
        } else {
            let spawner = ctx.services().process()?;
            let workspace = ctx.services().fs(HostCapability::WORKSPACE)?;
            let words = command.clone();
            let format = format.unwrap_or(BodyFormat::Text);
            Sender::Command {
                words,
                spawner,
                workspace,
                format,
            }
        };
        let live = Arc::new(Live {
            pod: ctx.pod_name().unwrap_or("NAME").to_owned(),
            settings: self.settings.clone(),
            limits: self.limits,
            now: Arc::clone(&self.now),
            sender,
            deliveries: ctx.state(&DELIVERIES)?,
            notes: ctx.diagnostics().later()?,
            task: ctx.background_tasks().handle(&NOTIFY).ok(),
            answer: Mutex::new(None),
            is_started: AtomicBool::new(false),
            ended: Mutex::new(None),
        });
        ctx.hooks().observe(&WATCH, &live, Live::watch)?;
        ctx.background_tasks()
            .run(&NOTIFY, &live, Live::notify)
            .map(drop)
    }
}

struct Live {
    pod: String,
    settings: Settings,
    limits: AttemptLimits,
    now: Now,
    sender: Sender,
    deliveries: DurableState<Deliveries>,
    notes: RunningNotes,
    /// None where the task is left out.
    task: Option<TaskHandle>,
    /// The answer of the newest turn, if messages have it; not known after a restart.
    answer: Mutex<Option<String>>,
    /// Whether the state has what a start changes.
    is_started: AtomicBool,
    /// The end of an attempt that the state does not have yet.
    ended: Mutex<Option<AttemptEnd>>,
}

/// How an attempt ended.
#[derive(Clone)]
struct AttemptEnd {
    key: EventKey,
    at_ms: u64,
    state: DeliveryState,
    why: Option<String>,
}

impl Live {
    /// Each end of a turn, each hold and each question sets the time of the next look; the beginning of a turn removes it: what
    /// the run then finds decides.
    fn watch(&self, view: &EventView) {
        match &*view.record {
            Record::TurnFinished(_) | Record::Suspended(_) | Record::ApprovalRequested(_) => {
                self.look_in(self.delay())
            }
            Record::TurnStarted(_) => {
                // The answer of an older turn is not the one that a message is about.
                self.answered(None);
                drop(self.task.as_ref().map(TaskHandle::clear));
            }
            Record::Resumed(_) => drop(self.task.as_ref().map(TaskHandle::clear)),
            Record::ItemAdded(ItemAdded {
                item: Item::Assistant { text },
            }) if self.settings.include_answer => {
                self.answered(Some(text.clone()));
            }
            // The one that was missed may have been one of these.
            _ if view.missed > 0 => self.look_in(self.delay()),
            _ => {}
        }
    }

    fn answered(&self, text: Option<String>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Requests a run at a time from now.
    fn look_in(&self, time: Duration) {
        let Some((task, at)) = self.task.as_ref().zip((self.now)().checked_add(time)) else {
            return;
        };
        // Refused only when the grant or the pod has gone.
        drop(task.run_at(at));
    }

    /// A run whose state was not stored comes again.
    async fn notify(self: Arc<Self>, cx: BackgroundTaskContext) -> TaskResult {
        self.run(cx).await.unwrap_or_else(|error| {
            self.look_in(AGAIN);
            Err(error.into())
        })
    }

    async fn run(&self, cx: BackgroundTaskContext) -> Result<TaskResult, StateError> {
        self.store_end().await?;
        let event = PodEvent::of(&cx.pod);
        if !self.is_started.load(Ordering::Relaxed) {
            self.start(event.as_ref()).await?;
            self.is_started.store(true, Ordering::Relaxed);
        }
        if cx.trigger == TriggerKind::Start {
            self.look_in(self.delay());
            return Ok(Ok(()));
        }
        let now = millis((self.now)());
        let since = millis(cx.due).saturating_sub(millis_of(self.delay()));
        let seen = cx.pod.driver_until.map(millis);
        let most = self.settings.max_per_hour as usize;
        let key = event.as_ref().map(PodEvent::key);
        let by_person = event.as_ref().is_some_and(PodEvent::is_by_person);
        // Durable before anything is sent.
        let attempt = self
            .deliveries
            .update(move |all| {
                all.forsake_others(key.as_ref(), now);
                key.map_or(Attempt::No, |key| {
                    all.attempt(key, since, now, seen, by_person, most)
                })
            })
            .await?;
        match (attempt, event) {
            (Attempt::No, _) | (_, None) => {}
            (Attempt::Suppressed(why), Some(event)) => {
                self.note(&format!("{event}: not sent, because {why}"))
            }
            (Attempt::Later(at), Some(_)) => {
                self.look_in(Duration::from_millis(at.saturating_sub(now)))
            }
            (Attempt::Send { number }, Some(event)) => return self.send(cx, event, number).await,
        }
        Ok(Ok(()))
    }

    /// Stores how the newest attempt ended, if the state does not have it.
    async fn store_end(&self) -> Result<(), StateError> {
        let Some(AttemptEnd {
            key,
            at_ms,
            state,
            why,
        }) = self.unstored().clone()
        else {
            return Ok(());
        };
        self.deliveries
            .update(move |all| all.end(&key, at_ms, state, why))
            .await?;
        *self.unstored() = None;
        Ok(())
    }

    fn unstored(&self) -> MutexGuard<'_, Option<AttemptEnd>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a start: what was being sent has an unknown outcome, and the pod may have been idle or held before.
    async fn start(&self, event: Option<&PodEvent>) -> Result<(), StateError> {
        let now = millis((self.now)());
        let key = event.map(PodEvent::key);
        let unknown = self
            .deliveries
            .update(move |all| all.start(key.as_ref(), now))
            .await?;
        for key in unknown {
            self.note(&format!(
                "{key}: the process ended while the message was being sent; it is not sent again"
            ));
        }
        Ok(())
    }

    async fn send(
        &self,
        cx: BackgroundTaskContext,
        event: PodEvent,
        number: u32,
    ) -> Result<TaskResult, StateError> {
        let answer = self
            .answer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let message = Message::new(&self.pod, &event, answer.as_deref());
        let sent = self.sender.deliver(&message, &cx, &self.limits).await;
        let key = event.key();
        let at_ms = millis((self.now)());
        match sent {
            Ok(()) => {
                *self.unstored() = Some(AttemptEnd {
                    key,
                    at_ms,
                    state: DeliveryState::Sent,
                    why: None,
                });
                self.store_end().await?;
                self.note(&format!("{event}: sent"));
                Ok(Ok(()))
            }
            Err(DeliveryError { why, next }) => {
                let pause = deliver::pause(number).filter(|_| next == NextAttempt::Later);
                let state = match (next, pause) {
                    (NextAttempt::Unknown, _) => DeliveryState::Unknown,
                    (_, Some(_)) => DeliveryState::Waiting,
                    (_, None) => DeliveryState::GivenUp,
                };
                *self.unstored() = Some(AttemptEnd {
                    key,
                    at_ms,
                    state,
                    why: Some(why.clone()),
                });
                self.store_end().await?;
                match pause {
                    Some(pause) => self.look_in(pause),
                    None if state == DeliveryState::Unknown => {
                        self.note(&format!("{event}: {why}; it is not sent again"))
                    }
                    None => {
                        let attempts = tools::counted(u64::from(number), "attempt", "attempts");
                        self.note(&format!("{event}: given up after {attempts}: {why}"));
                    }
                }
                Ok(Err(TaskError::new(format!("attempt {number}: {why}"))))
            }
        }
    }

    fn note(&self, text: &str) {
        // The state has it, too.
        drop(self.notes.note(text));
    }

    fn delay(&self) -> Duration {
        Duration::from_secs(self.settings.delay_s)
    }
}

fn millis(time: SystemTime) -> u64 {
    millis_of(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis_of(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
