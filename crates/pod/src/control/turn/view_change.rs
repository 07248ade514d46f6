//! Old results leave the requests: the turn is held before its next request, the change is recorded, and the history is
//! encoded again from what the record says.

use super::super::core::{Core, Fatal};
use super::super::pipeline::ActorCommit;
use super::{Running, ViewChange};
use crate::permission::Remedy;
use crate::record::Pruned;
use crate::session::view::NextRequest;
use llm_worker::Item;
use llm_worker::effect::{Fact, Gated, Input};
use std::borrow::Cow;

impl Running {
    /// Whether the next request has to wait for a change of the view; the turn is then about to be held.
    pub(super) fn wants_view(&mut self, core: &Core) -> Result<bool, Fatal> {
        if !matches!(self.view_change, ViewChange::Open) {
            return Ok(false);
        }
        self.view_change = ViewChange::Settled;
        if plan(core, &self.pending()).is_none() {
            return Ok(false);
        }
        self.view_change = ViewChange::Wanted;
        self.turn.handle(Input::Hold)?;
        // The gates were not asked, and are once the turn goes on.
        self.turn.handle(Input::Gated(Gated::default()))?;
        Ok(true)
    }

    /// Whether the next request cannot fit the model's window, with nothing left that could be masked.
    pub(super) fn is_too_large(&self, core: &Core) -> bool {
        next(core, &self.pending()).is_some_and(|next| next.is_too_large())
    }

    /// The items that wait for the next request.
    fn pending(&self) -> Vec<Item> {
        self.turn.before_request().iter().filter_map(Fact::item).map(Cow::into_owned).collect()
    }

    /// Records the change of the view, once the turn is held.
    pub(super) fn record_view(&mut self, core: &mut Core) -> Result<(), Fatal> {
        if !matches!(self.view_change, ViewChange::Wanted) || !self.turn.is_held() {
            return Ok(());
        }
        match plan(core, &[]) {
            Some(pruned) => {
                self.view_change = ViewChange::Recording(None);
                core.append_actor_commit(ActorCommit::View, vec![pruned.into()]);
                Ok(())
            }
            None => self.view_settled(),
        }
    }

    /// The change is durable and folded.
    pub(super) fn view_changed(&mut self, core: &Core) -> Result<(), Fatal> {
        let ViewChange::Recording(ends) = std::mem::take(&mut self.view_change) else { return Ok(()) };
        self.turn.change_view(core.draft.items().unwrap_or_default())?;
        self.info.view = core.state.view;
        (core.store.probe)("view:changed");
        self.view_settled()?;
        ends.map_or(Ok(()), |how| Ok(self.turn.handle(*how)?))
    }

    /// The turn goes on, unless it is to wait for something else.
    fn view_settled(&mut self) -> Result<(), Fatal> {
        self.view_change = ViewChange::Settled;
        if self.holds { Ok(()) } else { Ok(self.turn.handle(Input::Release)?) }
    }
}

/// The next request; none without a known window.
fn next<'a>(core: &'a Core, pending: &'a [Item]) -> Option<NextRequest<'a>> {
    Some(NextRequest { state: &core.state, pending, window: core.context_window?, policy: core.context_policy })
}

/// The change of the view that the next request needs and that can be made. Without a known window there is none.
fn plan(core: &Core, pending: &[Item]) -> Option<Pruned> {
    let remedy = (core.permission.policy.terms.remedy)(&Remedy::PageOutput(Pruned::CALL.to_owned()));
    let mark = format!("({} bytes left the context: {remedy})", Pruned::BYTES);
    next(core, pending)?.plan(|| core.draft.items(), &mark)
}
