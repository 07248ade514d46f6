//! Calls that were allowed: those that wait for a place under the cap, and those that run.

use super::authorize::Ready;
use super::call_output::Custody;
use super::core::Core;
use super::gates;
use crate::feature::{FeatureId, sanitize_lines, under};
use crate::foreign::attribution;
use crate::foreign::{Lost, MAX_STUCK};
use crate::hook::ToolCallView;
use crate::session::commit::Ended;
use crate::session::restore::cut_off;
use authority::{Redactor, Shut};
use llm_worker::{CallId, ErrorKind, ResultStatus, ToolContext, ToolError, ToolOutcome};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Most bytes of what is said of a call that panicked or never came back.
const MAX_LAST_WORDS: usize = 2 * 1024;

/// The calls of one turn.
pub(super) struct Calls {
    ready: HashMap<CallId, Ready>,
    waiting: VecDeque<CallId>,
    running: HashMap<CallId, CancellationToken>,
    tasks: JoinSet<Done>,
}

/// A call that came to its end.
pub(super) struct Done {
    pub(super) id: CallId,
    pub(super) outcome: ToolOutcome,
    pub(super) ended: Ended,
}

/// What calls bring to the driver.
pub(super) enum Came {
    Done(Box<Done>),
    /// A task of the host's own died: a fault in this program.
    Broken(JoinError),
}

impl Calls {
    pub(super) fn new() -> Self {
        let (ready, waiting, running) = (HashMap::new(), VecDeque::new(), HashMap::new());
        Self { ready, waiting, running, tasks: JoinSet::new() }
    }

    /// Keeps what a call was judged on until it may run.
    pub(super) fn keep(&mut self, id: CallId, ready: Ready) {
        self.ready.insert(id, ready);
    }

    /// The start of this call is durable.
    pub(super) fn wait(&mut self, id: CallId) {
        self.waiting.push_back(id);
    }

    /// Whether this call runs and may still ask for things.
    pub(super) fn runs(&self, id: CallId) -> bool {
        self.running.contains_key(&id)
    }

    /// Starts waiting calls while there is room under the cap, and as long as the pod could do without the threads of
    /// all that run. One whose feature was given up on meanwhile, or that was never judged, which cannot come about, is
    /// answered instead.
    pub(super) fn fill(&mut self, core: &Core) {
        let spare = (MAX_STUCK - 1).saturating_sub(core.callbacks.stuck());
        while self.running.len() < core.limits.tool_concurrency.min(spare).max(1) {
            let Some(id) = self.waiting.pop_front() else { return };
            match self.ready.remove(&id) {
                Some(ready) if core.callbacks.is_off(&ready.view.feature.to_string()) => {
                    self.answer(id, &format!("not run: {}", given_up_on(&ready.view.tool, &ready.view.feature)));
                }
                Some(ready) => self.start(id, ready, core),
                None => self.answer(id, "the host lost the call before it started"),
            }
        }
    }

    /// The result of a call that does not run.
    fn answer(&mut self, id: CallId, words: &str) {
        let outcome = ToolOutcome::of(ResultStatus::Error, words);
        self.tasks.spawn(async move { Done { id, outcome, ended: Ended::default() } });
    }

    fn start(&mut self, id: CallId, Ready { view, prepared, deadline, door }: Ready, core: &Core) {
        let cancel = CancellationToken::new();
        self.running.insert(id, cancel.clone());
        let outputs = core.state.outputs.clone();
        let redactor = core.registry.redactor().clone();
        let custody = Custody::new(
            (core.store.session.clone(), id),
            core.store.blobs.clone(),
            outputs,
            core.desk.line(),
            redactor,
            core.permission.policy.terms,
        );
        let custody = Arc::new(custody);
        let told = Arc::clone(&custody);
        let cx = ToolContext { call: id, cancel: cancel.clone(), deadline, host: custody.clone() };
        let began = Instant::now();
        let seen = view.clone();
        let work = async move {
            attribution::own(&seen.feature);
            let stop = cx.cancel.clone();
            // It may have waited for a thread longer than it was wanted.
            if stop.is_cancelled() {
                let never = ToolError::new(ErrorKind::Cancelled, "cancelled before it started");
                return custody.finish(Err(never), true);
            }
            let mut begun = false;
            let running = async {
                begun = true;
                prepared.run(cx).await
            };
            match under(&door, running).await {
                Ok(result) => custody.finish(result, stop.is_cancelled()),
                Err(Shut) => {
                    // What it left to others ends as well.
                    stop.cancel();
                    let (status, words) = revoked(&seen, begun);
                    let (outcome, ended) = custody.finish(Err(ToolError::new(ErrorKind::Denied, words)), true);
                    (ToolOutcome { status, ..outcome }, ended)
                }
            }
        };
        (core.store.probe)("tool:running");
        let done = core.callbacks.run(deadline, cancel, work);
        let (registry, callbacks) = (core.registry.clone(), core.callbacks.clone());
        self.tasks.spawn(async move {
            let (outcome, mut ended) = match done.await {
                Ok(done) => done,
                Err(lost) => (given_up(&lost, registry.redactor()), Ended::default()),
            };
            ended.warnings = told.warnings();
            ended.ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let (outcome, transforms) = gates::outcome(&registry, &callbacks, view, outcome).await;
            ended.transforms = transforms;
            Done { id, outcome, ended }
        });
    }

    /// What comes next of them. Cancel-safe; pending while nothing runs.
    pub(super) async fn next(&mut self) -> Came {
        match self.tasks.join_next().await {
            Some(Ok(done)) => {
                self.running.remove(&done.id);
                Came::Done(Box::new(done))
            }
            Some(Err(broken)) => Came::Broken(broken),
            None => std::future::pending().await,
        }
    }

    /// Tells a running call to end; one that still waits never starts, and its outcome is given back.
    pub(super) fn cancel(&mut self, id: CallId) -> Option<ToolOutcome> {
        if let Some(cancel) = self.running.get(&id) {
            cancel.cancel();
            return None;
        }
        let at = self.waiting.iter().position(|waiting| *waiting == id)?;
        self.waiting.remove(at);
        Some(ToolOutcome::of(ResultStatus::Cancelled, "cancelled before it started"))
    }

    /// Tells every call to end; none that waits will start.
    pub(super) fn end(&mut self) {
        self.waiting.clear();
        self.running.values().for_each(CancellationToken::cancel);
    }

    /// Waits until none runs, as long as the callbacks' grace allows.
    pub(super) async fn ended(&mut self) {
        while let Some(done) = self.tasks.join_next().await {
            drop(done);
        }
    }
}

/// Why a tool is not there any more.
pub(super) fn given_up_on(tool: &str, feature: &FeatureId) -> String {
    format!("{tool} is off: code of {feature} never came back")
}

/// Why a tool may not be called any more.
pub(super) fn taken_back(tool: &str, feature: &FeatureId) -> String {
    format!("{tool} was revoked: {feature} may not offer it any more")
}

/// What is known of a call whose tool was taken back.
fn revoked(view: &ToolCallView, begun: bool) -> (ResultStatus, String) {
    if !begun {
        return (ResultStatus::Refused, taken_back(&view.tool, &view.feature));
    }
    let words = format!("{} was revoked while it ran: {}", view.tool, cut_off(view.effect));
    (ResultStatus::Interrupted, words)
}

/// The outcome of a call that brought none.
fn given_up(lost: &Lost, redactor: &Redactor) -> ToolOutcome {
    let text = sanitize_lines(&format!("the tool failed: {lost}"), MAX_LAST_WORDS, redactor);
    ToolOutcome::of(ResultStatus::Error, &text)
}
