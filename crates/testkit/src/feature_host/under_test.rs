//! A feature in an open pod: turns, calls, gates, restarts and kills, and the records on disk after them.

mod task;

use super::setting::{Setting, declared};
use crate::Ruling;
use crate::latch::PATIENCE;
use crate::model::ScriptedAnswer;
use crate::points::Killed;
use crate::rig::PodUnderTest;
use llm_worker::ToolOutcome;
use llm_worker::projection::neutral::NeutralRequest;
use pod::control::{ActorEnd, Alert, Callbacks, Client, Event, Outbox, TurnEnd};
use pod::feature::{
    DiagnosticCode, FeatureId, FeatureInstallReport, FeatureModule, FeatureRegistry,
    RegistryReport, StateKey, StateScope,
};
use pod::foreign::MAX_THREADS;
use pod::hook::{Gate, GateOutcome};
use pod::host::{self, HostError, SystemText};
use pod::record::{FeatureState, Record};
use pod::session::fold::SessionState;
use pod::session::restore::{Restored, decode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use session_store::{Journal, OwnedFrame, Reader};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

/// The time in which tasks have to end after their pod closed.
const AFTER: Duration = Duration::from_secs(1);

/// A feature that [`FeatureHost`](crate::FeatureHost) installed through the real registry into a real pod; tests of
/// features run calls and turns with it and inspect the results. The pod stays open between calls; the feature's memory
/// lasts until [`FeatureUnderTest::restart`].
pub struct FeatureUnderTest {
    pod: PodUnderTest,
    setting: Setting,
    feature: Arc<dyn FeatureModule>,
    id: FeatureId,
    open: Option<Open>,
    registry: Arc<FeatureRegistry>,
    events: Vec<Event>,
    dying: bool,
}

struct Open {
    actor: Option<Pin<Box<dyn Future<Output = ActorEnd> + Send>>>,
    client: Client,
    runtime: Runtime,
    callbacks: Callbacks,
    events: Receiver<Event>,
    journal: Journal,
}

/// A notification of the feature for the model, as recorded; see [`FeatureUnderTest::notifications`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    pub text: String,
    /// Whether a request to the model contained it.
    pub delivered: bool,
}

impl FeatureUnderTest {
    pub(super) fn open(
        pod: PodUnderTest,
        setting: Setting,
        feature: Arc<dyn FeatureModule>,
    ) -> Self {
        let id = declared(&feature).id;
        let (open, registry) = start(&pod, &setting, &feature);
        Self {
            pod,
            setting,
            feature,
            id,
            open: Some(open),
            registry,
            events: Vec::new(),
            dying: false,
        }
    }

    /// The feature's id.
    #[must_use]
    pub fn id(&self) -> &FeatureId {
        &self.id
    }

    /// The report of the newest install.
    ///
    /// # Panics
    /// There is no report, because `descriptor()` panicked.
    #[must_use]
    pub fn report(&self) -> &FeatureInstallReport {
        let lost = || {
            panic!(
                "there is no report of {}: {:#?}",
                self.id,
                self.registry_report().diagnostics
            )
        };
        self.registry_report()
            .feature(&self.id)
            .unwrap_or_else(lost)
    }

    pub(crate) fn registry_report(&self) -> &RegistryReport {
        self.registry.report()
    }

    /// The registry of the current start; clone it for use while a turn runs.
    #[must_use]
    pub fn registry(&self) -> &Arc<FeatureRegistry> {
        &self.registry
    }

    /// The project's directory: the root `workspace`.
    #[must_use]
    pub fn project(&self) -> &Path {
        &self.pod.project
    }

    /// Advances the wall clock.
    pub fn advance(&self, time: Duration) {
        self.pod
            .clock
            .advance(u64::try_from(time.as_micros()).expect("a time within this age"));
    }

    /// Runs one turn in which the model makes one call. The call is handled like any call: its arguments are parsed and
    /// transformed, permission and gates judge it, its start and its result are journaled, its output is bounded and
    /// transformed.
    ///
    /// # Panics
    /// The turn ended without a result, because a gate ended it before.
    pub fn call(&mut self, tool: &str, arguments: Value) -> ToolOutcome {
        self.call_raw(tool, &arguments.to_string())
    }

    /// Like [`call`](Self::call), with raw argument text, which need not be JSON.
    ///
    /// # Panics
    /// As [`FeatureUnderTest::call`].
    pub fn call_raw(&mut self, tool: &str, arguments: &str) -> ToolOutcome {
        let results = self.calls(&[(tool, arguments)]);
        results
            .into_iter()
            .next()
            .unwrap_or_else(|| panic!("the turn ended before the call of {tool}"))
    }

    /// Runs one turn in which the model makes these calls at once; the results come in the order of the calls.
    ///
    /// # Panics
    /// The pod cannot go on.
    pub fn calls(&mut self, calls: &[(&str, &str)]) -> Vec<ToolOutcome> {
        let told = self.events.len();
        self.turn(
            "Go on.",
            [ScriptedAnswer::calls(calls), ScriptedAnswer::text("Done.")],
        );
        let finished = |event: &Event| match event {
            Event::Record { record, .. } => match &**record {
                Record::ToolFinished(finished) => Some((finished.call, finished.outcome.clone())),
                _other_kind => None,
            },
            Event::Delta { .. } | Event::Suspended { .. } | Event::Alert(_) => None,
        };
        let mut results: Vec<_> = self.events.iter().skip(told).filter_map(finished).collect();
        results.sort_by_key(|(call, _)| *call);
        results.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Runs one turn: a user's input, then the model's scripted answers.
    ///
    /// # Panics
    /// The pod failed, or it was killed outside of [`FeatureUnderTest::dies`].
    pub fn turn(
        &mut self,
        words: &str,
        answers: impl IntoIterator<Item = ScriptedAnswer>,
    ) -> TurnEnd {
        self.pod.script.clear();
        answers
            .into_iter()
            .for_each(|answer| self.pod.script.add(answer));
        let Some(Open {
            actor: slot,
            client,
            runtime,
            events,
            ..
        }) = &mut self.open
        else {
            self.dead()
        };
        let Some(mut actor) = slot.take() else {
            self.dead()
        };
        let told = &mut self.events;
        let gone = self.pod.points.gone();
        let run = async {
            tokio::select! {
                biased;
                () = gone.cancelled() => None,
                done = client.submit(words) => Some(done.map_err(HostError::from)),
                end = &mut actor => Some(Err(end.result.expect_err("a pod that nobody closed").into())),
            }
        };
        let done = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(watched(run, events, told))
        }));
        match done {
            Ok(None) => self.dead(),
            Ok(Some(Ok(end))) => {
                *slot = Some(actor);
                end
            }
            Ok(Some(Err(error))) => panic!("the pod cannot continue: {error}"),
            Err(panic) if panic.is::<Killed>() => self.dead(),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Runs the gates of a point on this view and returns their decision. Nothing is journaled.
    ///
    /// # Panics
    /// The pod is closed.
    pub fn ask<P: Gate>(&mut self, view: P::Input) -> Ruling {
        self.gates::<P>(view).decision.into()
    }

    pub(crate) fn gates<P: Gate>(&mut self, view: P::Input) -> GateOutcome {
        let registry = Arc::clone(&self.registry);
        let Some(open) = &self.open else { self.dead() };
        open.runtime
            .block_on(registry.hooks().decide::<P>(&open.callbacks, || view))
    }

    /// The requests to the model so far.
    #[must_use]
    pub fn requests(&self) -> Vec<NeutralRequest> {
        self.pod.script.requests()
    }

    /// The feature's notifications for the model, oldest first.
    #[must_use]
    pub fn notifications(&self) -> Vec<Notification> {
        let waiting = self.log().notices;
        let mine = self.id.to_string();
        let queued = |(_, record)| match record {
            Record::NotificationQueued(queued) if queued.feature == mine => {
                let delivered = !waiting.contains_key(&queued.number);
                Some(Notification {
                    text: queued.text,
                    delivered,
                })
            }
            _other_kind => None,
        };
        self.records().into_iter().filter_map(queued).collect()
    }

    /// The feature's alerts for people, oldest first.
    #[must_use]
    pub fn alerts(&self) -> Vec<Alert> {
        let mine = |event: &Event| match event {
            Event::Alert(alert) if alert.from.as_ref() == Some(&self.id) => Some(alert.clone()),
            Event::Alert(_)
            | Event::Record { .. }
            | Event::Delta { .. }
            | Event::Suspended { .. } => None,
        };
        self.events.iter().filter_map(mine).collect()
    }

    /// The feature's notes for people who inspect the pod: those of the newest install, then those made while it ran.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let installed = self
            .report()
            .diagnostics
            .iter()
            .filter(|d| d.code == DiagnosticCode::Note);
        let mine = self.id.to_string();
        let later = self
            .records()
            .into_iter()
            .filter_map(|(_, record)| match record {
                Record::FeatureNote(note) if note.feature == mine => Some(note.text),
                _other_kind => None,
            });
        installed.map(|d| d.message.clone()).chain(later).collect()
    }

    /// A state of the feature as it is durable now. An update that nobody awaited is written with the next record, at
    /// the latest by [`FeatureUnderTest::restart`].
    ///
    /// # Panics
    /// The state cannot be deserialized as `T`.
    #[must_use]
    pub fn state<T>(&self, key: &StateKey<T>) -> T
    where
        T: Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static,
    {
        let value = self
            .values()
            .into_iter()
            .find(|state| state.name == key.name());
        let read = |state: FeatureState| {
            T::deserialize(&*state.value).expect("a value of the state's own type")
        };
        value.map_or_else(T::default, read)
    }

    /// Every state of the feature as it is durable now.
    pub(crate) fn values(&self) -> Vec<FeatureState> {
        let mine = self.id.to_string();
        let session = self.log().features.into_values();
        let files = [StateScope::Pod, StateScope::User]
            .into_iter()
            .flat_map(|scope| self.files(scope));
        session
            .chain(files)
            .filter(|state| state.feature == mine)
            .collect()
    }

    fn files(&self, scope: StateScope) -> Vec<FeatureState> {
        let dirs = fs::read_dir(self.setting.state_dir(scope)).expect("a state directory");
        let files = dirs.flat_map(|dir| {
            fs::read_dir(dir.expect("an entry").path()).expect("a feature's directory")
        });
        let read =
            |path| serde_json::from_slice(&fs::read(path).expect("a state file")).expect("a state");
        let files = files.map(|file| file.expect("an entry").path());
        files
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .map(read)
            .collect()
    }

    /// Every record of the session, oldest first, each with its seq.
    #[must_use]
    pub fn records(&self) -> Vec<(u64, Record)> {
        let record = |frame: Result<OwnedFrame, _>| {
            let frame = frame.expect("a whole frame");
            (frame.seq, decode(&frame).expect("a body that reads"))
        };
        self.reader().frames().map(record).collect()
    }

    fn log(&self) -> SessionState {
        Restored::from_frames(self.reader().frames())
            .expect("a log that folds")
            .state
    }

    fn reader(&self) -> Reader {
        let reader = Reader::open(&self.pod.dir).expect("a session");
        match &self.open {
            // The log's HEAD may report fewer records than the journal.
            Some(open) => reader.upto(open.journal.durable()),
            None => reader,
        }
    }

    /// The points that the pod reached since it was opened, each with the number of earlier points of the same name:
    /// `commit:KIND` before a record of that kind is written and `KIND` after it, among others.
    #[must_use]
    pub fn points(&self) -> Vec<(String, usize)> {
        self.pod.points.numbered()
    }

    /// Plans a kill: the pod dies like a killed process at the `nth` point of that name since it was opened, counted
    /// from 0.
    pub fn kill_at(&mut self, point: &str, nth: usize) {
        self.pod.points.kill(point, nth);
    }

    /// Runs `act`, during which the pod may be killed, and opens the pod again. Returns whether it was killed.
    ///
    /// # Panics
    /// As `act` does by itself.
    pub fn dies(&mut self, act: impl FnOnce(&mut Self)) -> bool {
        self.dying = true;
        let done = catch_unwind(AssertUnwindSafe(|| act(self)));
        self.dying = false;
        match done {
            Err(panic) if !panic.is::<Killed>() => resume_unwind(panic),
            Ok(()) | Err(_) => {}
        }
        let died = self.pod.points.killed();
        self.pod.points.forget();
        if died {
            self.reopen();
        }
        died
    }

    /// Kills the pod between two turns and opens it again.
    pub fn kill(&mut self) {
        self.pod.disk.die();
        self.reopen();
    }

    /// Closes the pod normally and opens it again: the feature is installed again, with its durable state.
    ///
    /// # Panics
    /// The pod could not be closed.
    pub fn restart(&mut self) {
        self.close();
        self.reopen();
    }

    /// Closes the pod normally; returns the number of tasks that still run.
    pub(crate) fn close(&mut self) -> usize {
        let Some(Open {
            actor,
            client,
            runtime,
            callbacks: _,
            mut events,
            journal,
        }) = self.open.take()
        else {
            self.dead()
        };
        let actor = actor.unwrap_or_else(|| panic!("the pod was killed"));
        let left = runtime.block_on(async {
            client.close("done").await;
            watched(actor, &mut events, &mut self.events)
                .await
                .result
                .expect("the last record");
            let until = Instant::now() + AFTER;
            while runtime.metrics().num_alive_tasks() > 0 && Instant::now() < until {
                tokio::task::yield_now().await;
            }
            runtime.metrics().num_alive_tasks()
        });
        runtime.shutdown_background();
        journal.close();
        left
    }

    /// Disables the feature from the next start on.
    pub(crate) fn disable(&mut self) {
        self.setting.disabled = true;
    }

    pub(crate) fn reopen(&mut self) {
        if let Some(Open {
            runtime,
            journal,
            actor,
            ..
        }) = self.open.take()
        {
            drop(actor);
            // The threads of a killed process end, too.
            runtime.shutdown_timeout(PATIENCE);
            journal.close();
        }
        self.pod.revive();
        let (open, registry) = start(&self.pod, &self.setting, &self.feature);
        (self.open, self.registry) = (Some(open), registry);
    }

    fn dead(&self) -> ! {
        if self.dying {
            resume_unwind(Box::new(Killed));
        }
        panic!("the pod was killed; do what may kill it within `dies`")
    }
}

impl Drop for FeatureUnderTest {
    fn drop(&mut self) {
        if let Some(Open {
            runtime,
            journal,
            actor,
            ..
        }) = self.open.take()
        {
            drop(actor);
            runtime.shutdown_background();
            journal.close();
        }
    }
}

/// Awaits the work and collects the events sent meanwhile.
async fn watched<T>(
    work: impl Future<Output = T>,
    events: &mut Receiver<Event>,
    told: &mut Vec<Event>,
) -> T {
    let mut work = pin!(work);
    let done = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => told.push(event),
            done = &mut work => break done,
        }
    };
    while let Ok(event) = events.try_recv() {
        told.push(event);
    }
    done
}

/// Opens the pod as a new process would.
fn start(
    pod: &PodUnderTest,
    setting: &Setting,
    feature: &Arc<dyn FeatureModule>,
) -> (Open, Arc<FeatureRegistry>) {
    pod.points.start();
    let opened = pod.resume().expect("the session opens");
    let journal = opened.0.journal.clone();
    let (outbox, events) = Outbox::watched();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_THREADS)
        .build();
    let runtime = runtime.expect("a runtime");
    let callbacks = Callbacks::with_grace(runtime.handle().clone(), pod.grace);
    let opening = pod.opening(opened).expect("the session folds");
    let mut start = pod.start(&opening, outbox, callbacks.clone());
    let workspace = start.parts.permission.workspace.clone();
    let services = setting.services(workspace, opening.link(), &declared(feature));
    let registry = Arc::new(setting.builder(Some(feature)).install(&services));
    for instruction in registry.instructions() {
        start.system.push(SystemText {
            source: instruction.feature.to_string(),
            text: instruction.text.clone(),
        });
    }
    start.parts.registry = Arc::clone(&registry);
    let (actor, client, _) = runtime
        .block_on(host::open(opening, start))
        .expect("the pod opens");
    let actor: Pin<Box<dyn Future<Output = ActorEnd> + Send>> =
        Box::pin(actor.run(CancellationToken::new()));
    (
        Open {
            actor: Some(actor),
            client,
            runtime,
            callbacks,
            events,
            journal,
        },
        registry,
    )
}
