//! Around a call, in one impl: the hooks at `ToolRun`, `ToolRepeat` and `ToolShape` as methods of one type. Does not
//! depend on declarations.

use super::answer::HookFailure;
use super::chain::Hook;
use super::typed::{
    ToolCallView, ToolRepeat, ToolRepeatView, ToolRun, ToolRunView, ToolShape, ToolShapeView,
};
use super::verdict::Change;
use async_trait::async_trait;
use llm_worker::{ToolOutcome, ToolOutput};
use std::sync::Arc;
use std::time::Duration;

/// What stands around the calls of some tools; staged with `ctx.hooks().wrap(…)`. A method that fails changes nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what it does around a call",
    note = "implement `ToolWrap` for it: `before`, `again` and `after`, of which each may be left out"
)]
pub trait ToolWrap: Send + Sync + 'static {
    /// Answers instead of the tool, which then does not run.
    fn before(&self, _call: &ToolCallView) -> Option<ToolOutput> {
        None
    }

    /// After how long the call runs again; only for tools whose calls are safe to repeat, at most five times and within
    /// the tool's deadline.
    fn again(&self, _call: &ToolCallView, _outcome: &ToolOutcome, _tries: u32) -> Option<Duration> {
        None
    }

    /// Replaces the result, whole, before it is bounded and kept.
    fn after(&self, _call: &ToolCallView, _output: &ToolOutput) -> Option<ToolOutput> {
        None
    }
}

pub(crate) struct WrapBefore<W>(pub(crate) Arc<W>);
pub(crate) struct WrapAgain<W>(pub(crate) Arc<W>);
pub(crate) struct WrapAfter<W>(pub(crate) Arc<W>);

fn change<V>(value: Option<V>) -> Change<V> {
    value.map_or(Change::Unchanged, Change::Replaced)
}

#[async_trait]
impl<W: ToolWrap> Hook<ToolRun> for WrapBefore<W> {
    async fn call(&self, view: &ToolRunView) -> Result<Change<ToolOutput>, HookFailure> {
        Ok(change(self.0.before(&view.call)))
    }
}

#[async_trait]
impl<W: ToolWrap> Hook<ToolRepeat> for WrapAgain<W> {
    async fn call(&self, view: &ToolRepeatView) -> Result<Change<Duration>, HookFailure> {
        Ok(change(self.0.again(&view.call, &view.outcome, view.tries)))
    }
}

#[async_trait]
impl<W: ToolWrap> Hook<ToolShape> for WrapAfter<W> {
    async fn call(&self, view: &ToolShapeView) -> Result<Change<ToolOutput>, HookFailure> {
        Ok(change(self.0.after(&view.call, &view.output)))
    }
}
