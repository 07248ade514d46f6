//! Hooks around one call whose start is durable: those that answer in its place, and those that have it run again.
//! Does not depend on how a result is kept.

use super::output::HELD;
use super::parse::prepare;
use super::started::{StartedCall, Traces};
use crate::control::gates;
use crate::hook::{ToolRepeat, ToolRepeatView, ToolRun, ToolRunView, Transformed};
use crate::record::{HookName, ToolRepeated};
use llm_worker::tool::{Prepared, data};
use llm_worker::{ErrorKind, ToolEffect, ToolOutcome, ToolOutput, ToolResult};
use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of an answer in place of a tool.
const MAX_ANSWER: usize = HELD;

/// How often one call runs again.
pub(crate) const MAX_REPEATS: u32 = 5;

impl StartedCall {
    /// The answer of a hook in place of the tool, if one has one.
    pub(super) async fn answer(&self) -> Option<ToolOutput> {
        if !self.registry.hooks().any::<ToolRun>(&self.view.tool) {
            return None;
        }
        let registry = self.registry.clone();
        let callbacks = self.callbacks.clone();
        let call = Arc::clone(&self.view);
        let recheck =
            Arc::new(
                |view: ToolRunView| match view.answer.as_ref().map_or(Ok(0), size)? {
                    0..=MAX_ANSWER => Ok(view),
                    bytes => Err(format!(
                        "it has {bytes} bytes; at most {MAX_ANSWER} are allowed"
                    )),
                },
            );
        let asked = async move {
            let view = ToolRunView::new(Arc::clone(&call));
            registry
                .hooks()
                .transform::<ToolRun>(&callbacks, &call.tool, view, recheck)
                .await
        };
        let (last, done) = self.meanwhile(asked).await?;
        self.trace(&done, last.answer.is_some());
        last.answer.clone()
    }

    /// The call once more, if a hook wants it, the rules allow it and its record is durable.
    pub(super) async fn again(&self, result: &ToolResult, run: u32) -> Option<Prepared> {
        let hooks = self.registry.hooks();
        let repeatable = self.view.effect != ToolEffect::Effectful && run <= MAX_REPEATS;
        if !repeatable || self.cancel.is_cancelled() || !hooks.any::<ToolRepeat>(&self.view.tool) {
            return None;
        }
        let error = result.as_ref().err().map(|error| error.kind);
        let outcome = self.output.preview(result);
        let (after, by) = self.wait_for(outcome.clone(), error, run).await?;
        if Instant::now()
            .checked_add(after)
            .is_none_or(|at| at >= self.began + self.deadline)
        {
            return None;
        }
        tokio::select! {
            () = self.cancel.cancelled() => return None,
            () = tokio::time::sleep(after) => {}
        }
        let tool = self.registry.tools().get(&self.view.tool)?;
        let prepared = prepare(tool, &self.view.arguments).ok()?;
        if prepared.canonical != self.view.arguments {
            return None;
        }
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let record = ToolRepeated {
            call: self.view.call,
            run: run + 1,
            after_ms,
            status: outcome.status,
            error,
            hook: by.hook,
            feature: by.feature,
        };
        self.output.announce(record.into()).await.ok()?;
        self.output.begin_again();
        Some(prepared)
    }

    /// After how long a hook wants the call to run again, and which hook.
    async fn wait_for(
        &self,
        outcome: ToolOutcome,
        error: Option<ErrorKind>,
        run: u32,
    ) -> Option<(Duration, HookName)> {
        let registry = self.registry.clone();
        let callbacks = self.callbacks.clone();
        let call = Arc::clone(&self.view);
        let asked = async move {
            let view = ToolRepeatView::new(Arc::clone(&call), outcome, error, run);
            registry
                .hooks()
                .transform::<ToolRepeat>(&callbacks, &call.tool, view, Arc::new(Ok))
                .await
        };
        let (last, done) = self.meanwhile(asked).await?;
        self.trace(&done, false);
        Some((last.after?, name(done.last()?)))
    }

    /// Waits for hooks in a task of their own, so that a call that must end does not wait for them.
    async fn meanwhile<T: Send + 'static>(
        &self,
        asked: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let asked = self.callbacks.runtime().spawn(asked);
        tokio::select! {
            () = self.cancel.cancelled() => None,
            done = asked => done.ok(),
        }
    }

    fn trace(&self, done: &[Transformed], answered: bool) {
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        if answered {
            traces.answered_by = done.last().map(name);
        }
        traces.notes.extend(gates::notes(done.to_vec()));
    }

    pub(super) fn take_traces(&self) -> Traces {
        std::mem::take(&mut *self.traces.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Bytes of its texts; its data has a bound of its own.
fn size(output: &ToolOutput) -> Result<usize, String> {
    let data = output.data.as_ref().map(data::bytes).transpose();
    data.map_err(|why| format!("its data is too large: {why}"))?;
    Ok(output.summary.len() + output.content.len())
}

fn name(note: &Transformed) -> HookName {
    HookName {
        hook: note.hook.clone(),
        feature: note.feature.to_string(),
    }
}
