//! The guests of one feature: started at first use, one request at a time for each, none after too many crashes.

use super::host_side::{HostSide, pod_text};
use super::one::Guest;
use super::wire::Failure;
use super::within::Within;
use crate::declarative::Unchanged;
use crate::program::ToolProgram;
use authority::{Job, Spawner, Talk};
use llm_worker::ErrorKind;
use pod::feature::FeatureId;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

/// So many crashes in this time switch the feature off.
const MAX_CRASHES: usize = 3;
const CRASH_TIME: Duration = Duration::from_secs(60);

/// How long the package and its grant count as unchanged for guests that run: reading it costs more than a request.
const UNCHANGED: Duration = Duration::from_secs(1);

/// Numbers the guests of this process: the mark of a child says whose it is.
static STARTED: AtomicU64 = AtomicU64::new(1);

/// How much of the end of a standard error a note of the pod has, in bytes.
const MAX_TOLD: usize = 400;

/// The longest life of a guest.
const LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Guests of one kind: a slow one never keeps another kind waiting.
pub(crate) struct Lane {
    name: &'static str,
    free: Semaphore,
    idle: Mutex<Vec<Guest>>,
}

impl Lane {
    fn of(name: &'static str, most: usize) -> Self {
        Self {
            name,
            free: Semaphore::new(most),
            idle: Mutex::default(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Guest>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request, without its parameters.
pub(crate) struct Asking {
    pub(crate) method: &'static str,
    /// How long the answer is awaited.
    pub(crate) limit: Duration,
    /// Whether it is about a result that may be withheld.
    pub(crate) is_private: bool,
    /// The call of a tool for which it is asked.
    pub(crate) within: Option<Within>,
}

/// The guests of a feature, and what they are started with.
pub(crate) struct Guests {
    pub(crate) feature: FeatureId,
    program: ToolProgram,
    package: PathBuf,
    spawner: Spawner,
    unchanged: Unchanged,
    hello: Value,
    host: HostSide,
    pub(crate) hooks: Lane,
    pub(crate) tools: Lane,
    pub(crate) tasks: Lane,
    pub(crate) services: Lane,
    /// When the package was last found unchanged.
    checked: Mutex<Option<Instant>>,
    /// Ends idle guests with the pod.
    keeper: OnceLock<Keeper>,
    /// When the newest guests crashed; with as many as switch the feature off, it is off.
    crashes: Mutex<Vec<Instant>>,
}

/// A task that ends when this is dropped.
struct Keeper(AbortHandle);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The guest's own answer.
    Failed(Failure),
    /// The package changed, or its grant was revoked.
    Changed(String),
    /// The guest does not keep the contract, or died.
    Crashed(String),
    /// It did not answer in time.
    Late(Duration),
    /// Too many crashes.
    Off,
    PodEnded,
    /// It cannot be started; the log of the host has the reason.
    NotStarted,
}

impl Guests {
    /// Guests of a feature, of which none is started yet.
    pub(crate) fn new(
        feature: FeatureId,
        program: ToolProgram,
        package: PathBuf,
        spawner: Spawner,
        unchanged: Unchanged,
        (hello, host): (Value, HostSide),
    ) -> Self {
        Self {
            feature,
            program,
            package,
            spawner,
            unchanged,
            hello,
            host,
            hooks: Lane::of("hooks", 1),
            tools: Lane::of("tools", 4),
            tasks: Lane::of("tasks", 1),
            services: Lane::of("services", 2),
            checked: Mutex::default(),
            keeper: OnceLock::new(),
            crashes: Mutex::default(),
        }
    }

    /// Asks a guest of this lane, and waits no longer than this for its answer. A guest whose answer was not awaited is
    /// killed, also when this future is dropped.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        lane: &Lane,
        params: impl Serialize,
        asking: Asking,
    ) -> Result<Value, Fault> {
        let ended = async {
            match &self.host.notes {
                Some(notes) => notes.pod_ended().await,
                None => std::future::pending().await,
            }
        };
        // First: with the pod, the clock and the pipes below may have ended.
        tokio::select! {
            biased;
            () = ended => Err(Fault::PodEnded),
            answer = self.ask_one(lane, params, asking) => answer,
        }
    }

    async fn ask_one(
        self: &Arc<Self>,
        lane: &Lane,
        params: impl Serialize,
        asking: Asking,
    ) -> Result<Value, Fault> {
        let Asking {
            method,
            limit,
            is_private,
            within,
        } = asking;
        let until = Instant::now() + limit;
        let late = |_| Fault::Late(limit);
        // Whoever waits here for another request has crashed nothing.
        let free = timeout_at(until, lane.free.acquire()).await.map_err(late)?;
        let _free = free.map_err(|_| Fault::Off)?;
        self.check()?;
        let idle = lane.idle().pop().filter(|guest| !guest.has_ended());
        let mut guest = match idle {
            Some(guest) => guest,
            None => {
                let started = timeout_at(until, self.start(lane)).await;
                Guest::new(started.map_err(late)?.map_err(|why| {
                    tracing::debug!(feature = %self.feature, "a guest was not started: {why}");
                    Fault::NotStarted
                })?)
            }
        };
        if is_private {
            guest.hears_private();
        }
        let asked = async {
            if guest.is_new() {
                guest.greet(&self.hello, &self.host).await?;
            }
            guest.ask(method, params, &self.host, within.as_ref()).await
        };
        let fault = match timeout_at(until, asked).await {
            Ok(Ok(answer)) => {
                if let Err(Failure {
                    kind: ErrorKind::Bug,
                    message,
                }) = &answer
                    && !is_private
                {
                    self.told("a guest failed", message, &guest.stderr());
                }
                lane.idle().push(guest);
                return answer.map_err(Fault::Failed);
            }
            Ok(Err(why)) => Fault::Crashed(why),
            Err(_late) => Fault::Late(limit),
        };
        match is_private {
            // What it was asked about may be withheld.
            true => {
                tracing::debug!(feature = %self.feature, lane = lane.name, ?fault, "a guest was ended")
            }
            false => self.told("a guest was ended", &fault.reason(), &guest.stderr()),
        }
        self.crashed(&fault);
        Err(fault)
    }

    /// Writes the end of its standard error into the log of the host, and a part of it into that of the pod.
    fn told(&self, what: &str, why: &str, stderr: &str) {
        let text = pod_text(stderr);
        tracing::debug!(feature = %self.feature, "{what}: {why}; its standard error: {text}");
        let last = stderr.trim_end();
        let from = last.ceil_char_boundary(last.len().saturating_sub(MAX_TOLD));
        if let (Some(notes), false) = (&self.host.notes, last.is_empty()) {
            let last = last.get(from..).unwrap_or_default();
            notes
                .note(&format!("{what}; its standard error ended with: {last}"))
                .ok();
        }
    }

    async fn start(self: &Arc<Self>, lane: &Lane) -> Result<Talk, String> {
        if let Some(notes) = &self.host.notes {
            self.keeper.get_or_init(|| {
                let notes = notes.clone();
                let guests = Arc::downgrade(self);
                let keep = async move {
                    notes.pod_ended().await;
                    if let Some(guests) = guests.upgrade() {
                        let idle = guests.take_idle();
                        let ends: JoinSet<()> = idle.into_iter().map(Guest::shut_down).collect();
                        ends.join_all().await;
                    }
                };
                Keeper(tokio::spawn(keep).abort_handle())
            });
        }
        let job = Job {
            program: self.program.program.clone().into(),
            args: self.program.words("{}", &self.package)?,
            cwd: self.package.clone(),
            call: format!(
                "guest-{}-{}",
                lane.name,
                STARTED.fetch_add(1, Ordering::Relaxed)
            ),
            deadline: LIFE,
            input: Vec::new(),
        };
        let talk = self.spawner.talk(job).await;
        talk.map_err(|error| error.to_string())
    }

    /// Whether it may be asked. Where the package is not what was granted, its guests are ended.
    fn check(&self) -> Result<(), Fault> {
        if self.crashes().len() >= MAX_CRASHES {
            return Err(Fault::Off);
        }
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = checked.is_some_and(|at| at.elapsed() < UNCHANGED);
        let has_idle = self.lanes().iter().any(|lane| !lane.idle().is_empty());
        if is_new && has_idle {
            return Ok(());
        }
        if let Err(why) = (self.unchanged)() {
            *checked = None;
            drop(self.take_idle());
            return Err(Fault::Changed(why));
        }
        *checked = Some(Instant::now());
        Ok(())
    }

    fn lanes(&self) -> [&Lane; 4] {
        [&self.hooks, &self.tools, &self.tasks, &self.services]
    }

    /// The guests that are asked nothing; dropped, they are killed.
    fn take_idle(&self) -> Vec<Guest> {
        let lanes = self.lanes().into_iter();
        lanes
            .flat_map(|lane| std::mem::take(&mut *lane.idle()))
            .collect()
    }

    fn crashes(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.crashes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a crash, and says so when it is the last one.
    fn crashed(&self, fault: &Fault) {
        let mut crashes = self.crashes();
        if crashes.len() >= MAX_CRASHES {
            return;
        }
        let now = Instant::now();
        crashes.retain(|at| now.duration_since(*at) < CRASH_TIME);
        crashes.push(now);
        if crashes.len() == MAX_CRASHES {
            let text = format!(
                "its guests are not asked again before the next start: {MAX_CRASHES} of them failed within {} s, the last one because {}",
                CRASH_TIME.as_secs(),
                fault.reason()
            );
            tracing::warn!(feature = %self.feature, "{text}");
            // Where there is no pod, the log alone says it.
            if let Some(notes) = &self.host.notes {
                notes.note(&text).ok();
            }
        }
    }
}

impl Fault {
    /// What the caller can do.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Failed(failure) => failure.kind,
            Self::Changed(_) => ErrorKind::Denied,
            Self::Off | Self::NotStarted | Self::PodEnded => ErrorKind::Unavailable,
            Self::Late(_) => ErrorKind::Exhausted,
            Self::Crashed(_) => ErrorKind::Bug,
        }
    }

    /// What failed, on one line, for the model and for people.
    pub(crate) fn reason(&self) -> String {
        use authority::text::Lines;
        let line = |text: &str| authority::text::escape_within(text, Lines::One, MAX_REASON);
        match self {
            Self::Failed(failure) => line(&failure.message),
            Self::Changed(why) => why.clone(),
            Self::Crashed(why) => line(why),
            Self::Late(limit) => format!("it did not answer within {limit:?}"),
            Self::Off => format!(
                "this feature is off until the next start: {MAX_CRASHES} of its guests failed within {} s; with YOI_LOG=debug, the log of the host says why",
                CRASH_TIME.as_secs()
            ),
            Self::PodEnded => "the pod has ended".to_owned(),
            Self::NotStarted => {
                "its guest did not start; with YOI_LOG=debug, the log of the host says why"
                    .to_owned()
            }
        }
    }
}

/// The longest reason, in bytes.
const MAX_REASON: usize = 2048;
