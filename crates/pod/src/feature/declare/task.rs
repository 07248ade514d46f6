//! Background tasks as declared: one `const` key both declares and stages a task, so the two cannot differ. Does not
//! depend on running tasks or on the clock.

use super::capability::HostCapability;
use super::contribution::{Contribution, ContributionKind};
use super::service::{ServiceEvent, ServiceEventKey, ServiceRequirement};
use super::text::{self, Lines, MAX_NAME, millis};
use crate::record::MAX_TASK_RESTARTS;
use crate::schedule::Cron;
use llm_worker::ToolEffect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Deadline of a run whose key sets none.
pub const DEFAULT_TASK_DEADLINE: Duration = Duration::from_secs(60);
/// The longest deadline of a run.
pub const MAX_TASK_DEADLINE: Duration = Duration::from_secs(60 * 60);
/// Most triggers of one task.
const MAX_TRIGGERS: usize = 4;
/// The shortest interval and backoff: a task that fails at once costs at most one run a second.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// The longest interval, window and backoff.
const MAX_PAUSE: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A background task's name, effect and triggers, as a `const`.
///
/// ```
/// use pod::feature::{Restart, TaskKey};
/// use llm_worker::ToolEffect;
/// use std::time::Duration;
/// const REFRESH: TaskKey = TaskKey::new("refresh", ToolEffect::ReadOnly)
///     .at_start()
///     .every(Duration::from_secs(600))
///     .restart(Restart::OnFailure {
///         max: 3,
///         within: Duration::from_secs(3600),
///         backoff: Duration::from_secs(10),
///     });
/// assert_eq!(REFRESH.name(), "refresh");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TaskKey {
    name: &'static str,
    effect: ToolEffect,
    /// The newest first. One more than is allowed, so that planning can refuse too many.
    triggers: [Option<KeyTrigger>; MAX_TRIGGERS + 1],
    restart: Restart,
    deadline: Duration,
    needs: &'static [HostCapability],
}

/// A [`TaskTrigger`] in a `const`.
#[derive(Clone, Copy, Debug)]
enum KeyTrigger {
    Start,
    Interval(Duration),
    Cron(&'static str, &'static str),
    Request,
    Event(ServiceEventKey),
    ChildEnded,
    FileChange,
}

impl TaskKey {
    /// A task without a trigger, which planning refuses, with [`DEFAULT_TASK_DEADLINE`] and [`Restart::Never`].
    ///
    /// The effect says what a repeated run does: after a crash, an open run of an `Effectful` task has an unknown
    /// outcome. Meant for a `const`, where a bad name does not compile.
    ///
    /// # Panics
    /// On a name that is not 1 to 64 bytes of printable ASCII.
    #[must_use]
    pub const fn new(name: &'static str, effect: ToolEffect) -> Self {
        assert!(
            text::name_fits(name, MAX_NAME),
            "a background task's name is 1 to 64 bytes of printable ASCII"
        );
        let triggers = [None; MAX_TRIGGERS + 1];
        Self {
            name,
            effect,
            triggers,
            restart: Restart::Never,
            deadline: DEFAULT_TASK_DEADLINE,
            needs: &[],
        }
    }

    /// Runs once each time the host starts.
    #[must_use]
    pub const fn at_start(self) -> Self {
        self.on(KeyTrigger::Start)
    }

    /// Runs at this interval, from 1 second to 366 days, in whole milliseconds. Runs that were missed are one run.
    #[must_use]
    pub const fn every(self, interval: Duration) -> Self {
        self.on(KeyTrigger::Interval(interval))
    }

    /// Runs when the wall clock of a time zone matches a cron expression of five fields, as in
    /// `.cron("0 9 * * 1-5", "Europe/Berlin")`. Runs that were missed are one run.
    #[must_use]
    pub const fn cron(self, expression: &'static str, time_zone: &'static str) -> Self {
        self.on(KeyTrigger::Cron(expression, time_zone))
    }

    /// Runs when the feature requests it, now or at a time, through a
    /// [`TaskHandle`](crate::feature::TaskHandle).
    #[must_use]
    pub const fn on_request(self) -> Self {
        self.on(KeyTrigger::Request)
    }

    /// Runs after another feature emitted this event of its service, which this feature must require and be granted; else
    /// the task is left out. Events before the run starts are one run, and runs by events are at least 1 second apart.
    #[must_use]
    pub const fn on_event(self, event: ServiceEventKey) -> Self {
        self.on(KeyTrigger::Event(event))
    }

    /// Runs when a job of the feature has ended. Jobs that end before the run starts are one run;
    /// [`BackgroundTaskContext::jobs`](crate::feature::BackgroundTaskContext::jobs) has their numbers. After a start of the
    /// host nothing is repeated: [`JobHandle::list`](crate::feature::JobHandle::list) has the ends.
    #[must_use]
    pub const fn on_child_end(self) -> Self {
        self.on(KeyTrigger::ChildEnded)
    }

    /// Runs after files of the project changed, and none did for half a second, or ten seconds after the first change. The
    /// feature must request reading the project; without the grant the task is left out. Ignored files, `.git` and files
    /// that may hold secrets do not count, and neither do changes before the watch begins, at the start of the host.
    #[must_use]
    pub const fn on_file_change(self) -> Self {
        self.on(KeyTrigger::FileChange)
    }

    /// Whether a run that ended is followed by another one.
    #[must_use]
    pub const fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// How long one run may take; at most [`MAX_TASK_DEADLINE`].
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Requests of the feature without which this task is left out.
    #[must_use]
    pub const fn needs(mut self, needs: &'static [HostCapability]) -> Self {
        self.needs = needs;
        self
    }

    /// The task's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Adds a trigger. Of too many, the oldest is dropped: one too many remain, and planning refuses them.
    const fn on(mut self, trigger: KeyTrigger) -> Self {
        let [first, second, third, fourth, _] = self.triggers;
        self.triggers = [Some(trigger), first, second, third, fourth];
        self
    }

    pub(crate) fn declaration(&self) -> BackgroundTaskDeclaration {
        BackgroundTaskDeclaration {
            name: self.name.to_owned(),
            effect: self.effect,
            triggers: self
                .triggers
                .iter()
                .rev()
                .flatten()
                .map(KeyTrigger::declared)
                .collect(),
            restart: self.restart,
            deadline_ms: millis(self.deadline),
            needs: self.needs.to_vec(),
        }
    }
}

impl KeyTrigger {
    fn declared(&self) -> TaskTrigger {
        match *self {
            Self::Start => TaskTrigger::Start,
            Self::Interval(every) => TaskTrigger::Interval {
                every_ms: millis(every),
            },
            Self::Cron(expression, zone) => TaskTrigger::Cron {
                expression: expression.to_owned(),
                time_zone: zone.to_owned(),
            },
            Self::Request => TaskTrigger::Request,
            Self::Event(event) => TaskTrigger::ServiceEvent(event.event()),
            Self::ChildEnded => TaskTrigger::ChildEnded,
            Self::FileChange => TaskTrigger::FileChange,
        }
    }
}

/// A background task as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackgroundTaskDeclaration {
    /// Unique within the feature; at most 64 bytes.
    pub name: String,
    /// Whether a run is safe to repeat.
    pub effect: ToolEffect,
    /// What starts it; 1 to 4.
    pub triggers: Vec<TaskTrigger>,
    /// Whether a run that ended is followed by another one.
    pub restart: Restart,
    /// How long one run may take.
    pub deadline_ms: u64,
    /// Requests of this feature without which this task is left out.
    #[serde(default)]
    pub needs: Vec<HostCapability>,
}

/// What starts a background task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "trigger", rename_all = "snake_case", deny_unknown_fields)]
pub enum TaskTrigger {
    /// The start of the host.
    Start,
    /// The time since the last scheduled run.
    Interval {
        /// From 1 second to 366 days.
        every_ms: u64,
    },
    /// The wall clock.
    Cron {
        /// Five fields: minute, hour, day of month, month, day of week.
        expression: String,
        /// A name of the IANA time zone database, such as `Europe/Berlin`.
        time_zone: String,
    },
    /// The feature's own request, for now or for a time.
    Request,
    /// An event of another feature's service.
    ServiceEvent(ServiceEvent),
    /// The end of a job of the feature.
    ChildEnded,
    /// Changes of the project's files.
    FileChange,
}

/// Whether a run that ended is followed by another one without a trigger. JSON has durations in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "restart", rename_all = "snake_case", deny_unknown_fields)]
pub enum Restart {
    /// A run is not repeated; the next run needs a trigger.
    Never,
    /// A run that failed, panicked or exceeded its deadline is repeated.
    OnFailure {
        /// The largest number of restarts in that time; 1 to 16.
        max: u32,
        /// The time in which restarts are counted.
        #[serde(rename = "within_ms", with = "in_millis")]
        #[schemars(with = "u64")]
        within: Duration,
        /// The pause before the restart; at least 1 second.
        #[serde(rename = "backoff_ms", with = "in_millis")]
        #[schemars(with = "u64")]
        backoff: Duration,
    },
    /// The task runs again after each run.
    Always {
        /// The pause before the restart; at least 1 second. Doubles with each failure in a row, up to 1 hour.
        #[serde(rename = "backoff_ms", with = "in_millis")]
        #[schemars(with = "u64")]
        backoff: Duration,
    },
}

/// A duration in JSON, in whole milliseconds.
mod in_millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(super::millis(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

impl BackgroundTaskDeclaration {
    /// The request that the declaration of this task implies.
    pub(crate) fn implied(&self) -> HostCapability {
        HostCapability::ContributeBackgroundTask {
            name: self.name.clone().into(),
        }
    }

    /// What it needs besides its own capability: the services whose events start it and the files that it watches are among
    /// that.
    pub fn all_needs(&self) -> impl Iterator<Item = HostCapability> + '_ {
        let admissions = self.service_events().map(|event| event.service.admission());
        let files = self
            .is_on_file_change()
            .then_some(HostCapability::READ_WORKSPACE);
        self.needs.iter().cloned().chain(admissions).chain(files)
    }

    /// The events that start it.
    pub(crate) fn service_events(&self) -> impl Iterator<Item = &ServiceEvent> {
        self.triggers.iter().filter_map(|trigger| match trigger {
            TaskTrigger::ServiceEvent(event) => Some(event),
            TaskTrigger::Start
            | TaskTrigger::Interval { .. }
            | TaskTrigger::Cron { .. }
            | TaskTrigger::Request
            | TaskTrigger::ChildEnded
            | TaskTrigger::FileChange => None,
        })
    }

    /// The problem of an event that starts it, if the feature does not require its service.
    pub(super) fn foreign_event(&self, required: &[ServiceRequirement]) -> Option<String> {
        let is_required =
            |event: &&ServiceEvent| required.iter().any(|asked| asked.service == event.service);
        let event = self.service_events().find(|event| !is_required(event))?;
        Some(format!(
            "background task `{}` runs by {event}, which the feature does not require",
            self.name
        ))
    }

    /// Whether changes of files start it.
    pub(crate) fn is_on_file_change(&self) -> bool {
        self.triggers.contains(&TaskTrigger::FileChange)
    }

    /// Whether the feature itself can request a run.
    pub(crate) fn is_on_request(&self) -> bool {
        self.triggers.contains(&TaskTrigger::Request)
    }
}

impl Contribution for BackgroundTaskDeclaration {
    const KIND: ContributionKind = ContributionKind::Task;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn requests(&self) -> Vec<HostCapability> {
        vec![self.implied()]
    }

    fn needs(&self) -> Vec<HostCapability> {
        self.needs.clone()
    }

    fn takes(&self) -> Vec<HostCapability> {
        self.requests()
            .into_iter()
            .chain(self.all_needs())
            .collect()
    }

    fn problem(&self, requested: &[HostCapability]) -> Option<String> {
        let Self {
            name,
            effect: _,
            triggers,
            restart,
            deadline_ms,
            needs: _,
        } = self;
        if let Err(problem) = text::check("a background task's name", name, MAX_NAME, Lines::One) {
            return Some(problem);
        }
        if triggers.is_empty() || triggers.len() > MAX_TRIGGERS {
            let count = triggers.len();
            return Some(format!(
                "background task `{name}` has {count} triggers; expected 1 to {MAX_TRIGGERS}"
            ));
        }
        if *deadline_ms == 0 || *deadline_ms > millis(MAX_TASK_DEADLINE) {
            let most = millis(MAX_TASK_DEADLINE);
            return Some(format!(
                "the deadline of background task `{name}` is {deadline_ms} ms; expected 1 to {most}"
            ));
        }
        let twice = triggers
            .iter()
            .enumerate()
            .any(|(at, trigger)| triggers.iter().skip(at + 1).any(|t| t == trigger));
        if twice {
            return Some(format!("background task `{name}` declares a trigger twice"));
        }
        let files = HostCapability::READ_WORKSPACE;
        if self.is_on_file_change() && !requested.iter().any(|asked| asked.covers(&files)) {
            return Some(format!(
                "background task `{name}` runs when files change, and the feature does not request {files}"
            ));
        }
        let trigger = triggers.iter().find_map(|trigger| trigger.problem(name));
        trigger.or_else(|| restart.problem(name))
    }
}

impl TaskTrigger {
    fn problem(&self, name: &str) -> Option<String> {
        match self {
            Self::Start
            | Self::Request
            | Self::ServiceEvent(_)
            | Self::ChildEnded
            | Self::FileChange => None,
            Self::Interval { every_ms } => pause(
                &format!("the interval of background task `{name}`"),
                Duration::from_millis(*every_ms),
            ),
            Self::Cron {
                expression,
                time_zone,
            } => {
                let read = Cron::parse(expression, time_zone);
                read.err()
                    .map(|why| format!("background task `{name}`: {why}"))
            }
        }
    }
}

impl Restart {
    fn problem(&self, name: &str) -> Option<String> {
        let backoff = |backoff| pause(&format!("the backoff of background task `{name}`"), backoff);
        match *self {
            Self::Never => None,
            Self::OnFailure { max, .. } if max == 0 || max > MAX_TASK_RESTARTS => Some(format!(
                "background task `{name}` may restart {max} times; expected 1 to {MAX_TASK_RESTARTS}"
            )),
            Self::OnFailure {
                within,
                backoff: time,
                ..
            } => pause(
                &format!("the restart window of background task `{name}`"),
                within,
            )
            .or_else(|| backoff(time)),
            Self::Always { backoff: time } => backoff(time),
        }
    }
}

fn pause(what: &str, time: Duration) -> Option<String> {
    let fits = (MIN_PAUSE..=MAX_PAUSE).contains(&time);
    let have = millis(time);
    let least = millis(MIN_PAUSE);
    let most = millis(MAX_PAUSE);
    (!fits).then(|| format!("{what} is {have} ms; expected {least} to {most}"))
}
