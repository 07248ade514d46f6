//! The allowed calls of a turn: those that wait for a slot, and those that run.

use super::authorized::Authorized;
use super::order::CallOrder;
use super::output::EndedCall;
use super::parse::{given_up_on, taken_back};
use super::started::StartedCall;
use crate::control::commit::CallEnd;
use crate::control::core::Core;
use crate::feature::millis;
use crate::foreign::{Broke, CallbackFailure, MAX_STUCK, contained};
use crate::hook::{Shaping, ToolCallView, private_panics};
use crate::session::restore::cut_off;
use authority::Door;
use llm_worker::tool::Prepared;
use llm_worker::{CallId, ErrorKind, ResultStatus, ToolContext, ToolError, ToolOutcome};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::field::{Empty, debug};
use tracing::{Span, info_span};

/// The allowed calls of one turn: waiting and running.
pub(crate) struct Calls {
    /// Which calls wait for others.
    pub(crate) order: CallOrder,
    waiting: BTreeMap<CallId, Box<Authorized>>,
    running: HashMap<CallId, CancellationToken>,
    tasks: JoinSet<Done>,
}

/// The end of a call.
pub(crate) struct Done {
    pub(crate) id: CallId,
    pub(crate) outcome: ToolOutcome,
    pub(crate) ended: CallEnd,
}

/// An event of the running calls.
pub(crate) enum CallEvent {
    Done(Box<Done>),
    /// A task of the host panicked: a fault in this program.
    Broken(JoinError),
}

impl Calls {
    pub(crate) fn new() -> Self {
        Self {
            order: CallOrder::default(),
            waiting: BTreeMap::new(),
            running: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// The start of this call is durable.
    pub(crate) fn wait(&mut self, id: CallId, call: Box<Authorized>) {
        self.waiting.insert(id, call);
    }

    /// How many calls have not started.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether this call runs and may still send requests.
    pub(crate) fn runs(&self, id: CallId) -> bool {
        self.running.contains_key(&id)
    }

    /// Starts waiting calls that wait for no other call, up to the limit of concurrent calls and as long as the pod could continue without the
    /// threads of all running calls. A call whose feature was disabled meanwhile gets a result instead.
    pub(crate) fn fill(&mut self, core: &Core, most: usize, step_span: &Span) {
        let spare = (MAX_STUCK - 1).saturating_sub(core.callbacks.stuck());
        while self.running.len() < most.min(spare).max(1) {
            let next = self
                .waiting
                .keys()
                .copied()
                .find(|id| self.order.may_start(*id));
            let Some((id, call)) = next.and_then(|id| self.waiting.remove_entry(&id)) else {
                return;
            };
            if core.callbacks.is_disabled(&call.view.feature) {
                let words = format!(
                    "not run: {}",
                    given_up_on(&call.view.tool, &call.view.feature)
                );
                let done = unrun(id, call, ResultStatus::Error, &words);
                self.tasks.spawn(async move { done });
            } else {
                self.start(id, *call, core, step_span);
            }
        }
    }

    fn start(&mut self, id: CallId, call: Authorized, core: &Core, step_span: &Span) {
        let Authorized {
            record,
            view,
            prepared,
            deadline,
            door,
            landings,
        } = call;
        let tool = view.tool.as_str();
        let feature = &view.feature;
        let span = info_span!(
            target: "pod::control::calls", parent: step_span, "call", call = %id, tool, %feature, effect = ?view.effect, status = Empty, bytes = Empty
        );
        let call = StartedCall::new(core, view, deadline, landings);
        let call = Arc::new(call);
        self.running.insert(id, call.cancel.clone());
        // Given up with the call.
        let permit = record
            .escalation
            .and_then(|escalation| core.registry.permit(id, escalation, &record.hosts));
        let work = performed(Arc::clone(&call), prepared, door);
        (core.store.probe)("tool:running");
        let done = core.callbacks.run(deadline, call.cancel.clone(), work);
        self.tasks.spawn(async move {
            let ended = done.await.flatten().unwrap_or_else(|lost| call.lost(&lost));
            drop(permit);
            let ms = millis(call.began.elapsed());
            let (outcome, end) = call.result(ended).await;
            span.record("status", debug(outcome.status));
            span.record("bytes", outcome.summary.len() + outcome.content.len());
            let feature = Some(record.feature);
            Done {
                id,
                outcome,
                ended: CallEnd { feature, ms, ..end },
            }
        });
    }

    /// The next event of the running calls. Cancel-safe; pending while nothing runs.
    pub(crate) async fn next(&mut self) -> CallEvent {
        match self.tasks.join_next().await {
            Some(Ok(done)) => {
                self.running.remove(&done.id);
                self.order.end(done.id);
                CallEvent::Done(Box::new(done))
            }
            Some(Err(broken)) => CallEvent::Broken(broken),
            None => std::future::pending().await,
        }
    }

    /// Cancels a call. A running one ends later; a waiting one never starts, and its outcome is returned.
    pub(crate) fn cancel(&mut self, id: CallId) -> Option<Done> {
        if let Some(cancel) = self.running.get(&id) {
            cancel.cancel();
            return None;
        }
        let call = self.waiting.remove(&id)?;
        self.order.end(id);
        Some(unrun(
            id,
            call,
            ResultStatus::Cancelled,
            "cancelled before it started",
        ))
    }

    /// Cancels every call; none that waits will start.
    pub(crate) fn end(&mut self) {
        self.waiting.clear();
        self.running.values().for_each(CancellationToken::cancel);
    }

    /// Waits until no call runs, at most for the grace of callbacks.
    pub(crate) async fn ended(&mut self) {
        while let Some(done) = self.tasks.join_next().await {
            drop(done);
        }
    }
}

/// Runs a call, as often as the hooks around it want, on a callback thread. A hook that answers in its place comes first.
async fn performed(
    call: Arc<StartedCall>,
    mut prepared: Prepared,
    door: Arc<Door>,
) -> Result<EndedCall, CallbackFailure> {
    let _private = (call.shaping == Shaping::MayWithhold).then(private_panics);
    let view = &call.view;
    let output = &call.output;
    let stop = &call.cancel;
    let never = || ToolError::new(ErrorKind::Cancelled, "cancelled before it started");
    // The call may have been cancelled while it waited for a thread.
    if stop.is_cancelled() {
        return Ok(output.finish(Err(never()), true));
    }
    if let Some(answer) = call.answer().await {
        return Ok(output.finish(Ok(answer), false));
    }
    if stop.is_cancelled() {
        return Ok(output.finish(Err(never()), true));
    }
    let mut run = 0;
    loop {
        run += 1;
        let cx = ToolContext {
            call: view.call,
            cancel: stop.clone(),
            deadline: call.deadline,
            host: output.clone(),
        };
        let mut begun = false;
        let running = async {
            begun = true;
            prepared.run(cx).await
        };
        let result = match contained(&view.feature, std::slice::from_ref(&door), running).await {
            Ok(result) => result,
            Err(Broke::Panicked(words)) => return Err(CallbackFailure::Panicked(words)),
            Err(Broke::Revoked) => {
                // Work that it delegated ends as well.
                stop.cancel();
                let (status, words) = revoked(view, begun);
                return Ok(output
                    .finish(Err(ToolError::new(ErrorKind::Denied, words)), true)
                    .with_status(status));
            }
        };
        match call.again(&result, run).await {
            Some(again) => prepared = again,
            None => return Ok(output.finish(result, stop.is_cancelled())),
        }
    }
}

/// The result of a call that does not run, although its start is durable.
fn unrun(id: CallId, call: Box<Authorized>, status: ResultStatus, words: &str) -> Done {
    Done {
        id,
        outcome: ToolOutcome::of(status, words),
        ended: call.into(),
    }
}

/// The result of a running call whose tool's grant was revoked.
fn revoked(view: &ToolCallView, begun: bool) -> (ResultStatus, String) {
    if !begun {
        return (ResultStatus::Refused, taken_back(&view.tool, &view.feature));
    }
    let words = format!(
        "{} was revoked while it ran: {}",
        view.tool,
        cut_off(view.effect)
    );
    (ResultStatus::Interrupted, words)
}
