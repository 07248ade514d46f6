//! Old results and steps leave the requests: the turn is held before its next request, hooks are asked, the change is
//! recorded, and the history is encoded again from what the record says.

use super::answering::{CompactionAnswer, Reviewing};
use super::{Running, ViewChange};
use crate::control::core::{Core, Fatal};
use crate::control::gates;
use crate::control::pipeline::ActorCommit;
use crate::feature::FeatureRegistry;
use crate::foreign::Callbacks;
use crate::hook::{Compaction, CompactionView, HookPoint, LeavingResult, PreCompaction};
use crate::permission::Remedy;
use crate::record::{CompactRequested, Pruned, Record};
use crate::session::fold::SessionState;
use crate::session::view::{MarkTexts, NextRequest};
use llm_worker::effect::{Fact, Gated, Input};
use llm_worker::{CallId, Item};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Running {
    /// Whether the next request has to wait for a change of the view; the turn is then about to be held.
    pub(super) fn wants_view(&mut self, core: &mut Core) -> Result<bool, Fatal> {
        if !matches!(self.view_change, ViewChange::Open) {
            return Ok(false);
        }
        self.view_change = ViewChange::Settled;
        let pending = self.pending();
        if plan(core, &pending, &BTreeSet::new()).is_none() {
            core.view_tries = next(core, &pending).unchanged();
            return Ok(false);
        }
        self.view_change = ViewChange::Wanted;
        self.turn.handle(Input::Hold)?;
        // The gates were not asked, and are once the turn goes on.
        self.turn.handle(Input::Gated(Gated::default()))?;
        Ok(true)
    }

    /// Whether the next request cannot fit the model's window, with nothing left that could leave.
    pub(super) fn is_too_large(&self, core: &Core) -> bool {
        next(core, &self.pending()).is_too_large()
    }

    /// The items that wait for the next request.
    fn pending(&self) -> Vec<Item> {
        self.turn
            .before_request()
            .iter()
            .filter_map(Fact::item)
            .map(Cow::into_owned)
            .collect()
    }

    /// Asks hooks about the change of the view, once the turn is held, or records it if there are none.
    pub(super) fn record_view(&mut self, core: &mut Core) -> Result<(), Fatal> {
        if !matches!(self.view_change, ViewChange::Wanted) || !self.turn.is_held() {
            return Ok(());
        }
        let Some(pruned) = plan(core, &[], &BTreeSet::new()) else {
            return self.view_settled();
        };
        let hooks = core.registry.hooks();
        if !hooks.any::<PreCompaction>("") && !hooks.any::<Compaction>("") {
            self.append_view(core, vec![pruned.into()]);
            return Ok(());
        }
        let view = self.view_for_hooks(core, &pruned);
        let registry = core.registry.clone();
        let callbacks = core.callbacks.clone();
        self.view_change = ViewChange::Asking;
        self.tasks.reviews.spawn(async move {
            Reviewing::View(Box::new(asked(&registry, &callbacks, view).await))
        });
        Ok(())
    }

    fn view_for_hooks(&self, core: &Core, pruned: &Pruned) -> CompactionView {
        let items = core.draft.items().unwrap_or_default();
        let mut kept = items.clone();
        let surface = core.state.surface.as_ref().map(|(surface, _)| surface);
        let named = &core.state.named_tools;
        surface.map(|surface| core.state.shown.project(pruned, &mut kept, surface, named));
        let stay: BTreeSet<(CallId, u64)> = kept.iter().filter_map(result).collect();
        let written = |call: CallId| {
            items.iter().find_map(|item| {
                if let Item::ToolCall { id, name, .. } = item {
                    (*id == call).then(|| name.clone())
                } else {
                    None
                }
            })
        };
        let tool = |call| named.of(call).map(str::to_owned).or_else(|| written(call));
        let results = items
            .iter()
            .filter_map(result)
            .filter(|found| !stay.contains(found));
        let results: Vec<LeavingResult> = results
            .map(|(call, bytes)| LeavingResult {
                call,
                tool: tool(call).unwrap_or_default(),
                bytes,
            })
            .collect();
        CompactionView {
            turn: self.info.number,
            level: pruned.level,
            by_hand: core.state.compact_due.is_some(),
            used: next(core, &[]).used(),
            window: core.context_window,
            results: results.into(),
            keep: Vec::new(),
        }
    }

    /// The hooks have answered.
    pub(super) fn view_answered(
        &mut self,
        core: &mut Core,
        answer: CompactionAnswer,
    ) -> Result<(), Fatal> {
        if !matches!(self.view_change, ViewChange::Asking) {
            return Ok(());
        }
        let CompactionAnswer {
            gates,
            keep,
            transforms,
        } = answer;
        let mut records: Vec<Record> = gates::verdicts(HookPoint::PreCompaction, None, &gates)
            .into_iter()
            .map(Record::from)
            .collect();
        if gates::refusal(&gates).is_none() {
            let pruned = plan(core, &[], &keep.into_iter().collect());
            records.extend(pruned.map(|pruned| {
                Pruned {
                    transforms,
                    ..pruned
                }
                .into()
            }));
        }
        if records.is_empty() {
            return self.view_settled();
        }
        self.append_view(core, records);
        Ok(())
    }

    fn append_view(&mut self, core: &mut Core, records: Vec<Record>) {
        self.view_change = ViewChange::Recording(None);
        core.append_actor_commit(ActorCommit::View, records);
    }

    /// The change is durable and folded.
    pub(super) fn view_changed(&mut self, core: &mut Core) -> Result<(), Fatal> {
        let ViewChange::Recording(ends) = std::mem::take(&mut self.view_change) else {
            return Ok(());
        };
        let is_changed = self.info.view != core.state.shown.view;
        if is_changed {
            self.turn
                .change_view(core.draft.items().unwrap_or_default())?;
            self.info.view = core.state.shown.view;
            core.view_tries = next(core, &[]).changed();
            (core.store.probe)("view:changed");
        }
        self.view_settled()?;
        if is_changed && next(core, &[]).is_over() {
            // A further change may free more; one that a gate refused is not planned again.
            self.view_change = ViewChange::Open;
        }
        ends.map_or(Ok(()), |how| Ok(self.turn.handle(*how)?))
    }

    /// The turn goes on, unless it is to wait for something else.
    fn view_settled(&mut self) -> Result<(), Fatal> {
        self.view_change = ViewChange::Settled;
        if self.holds {
            Ok(())
        } else {
            Ok(self.turn.handle(Input::Release)?)
        }
    }
}

/// Asks the gates, then the transforms, if no gate refuses.
async fn asked(
    registry: &FeatureRegistry,
    callbacks: &Callbacks,
    view: CompactionView,
) -> CompactionAnswer {
    let gates = registry
        .hooks()
        .decide::<PreCompaction>(callbacks, || view.clone())
        .await;
    if gates::refusal(&gates).is_some() || !registry.hooks().any::<Compaction>("") {
        return CompactionAnswer {
            gates,
            keep: Vec::new(),
            transforms: Vec::new(),
        };
    }
    let recheck = Arc::new(|view: CompactionView| view.checked());
    let (last, done) = registry
        .hooks()
        .transform::<Compaction>(callbacks, "", view, recheck)
        .await;
    CompactionAnswer {
        gates,
        keep: last.keep.clone(),
        transforms: gates::notes(done),
    }
}

/// A result, with the bytes of its content.
fn result(item: &Item) -> Option<(CallId, u64)> {
    match item {
        Item::ToolResult { id, outcome } => Some((*id, outcome.weight() as u64)),
        Item::User { .. }
        | Item::Command { .. }
        | Item::System { .. }
        | Item::Assistant { .. }
        | Item::Reasoning { .. }
        | Item::ToolCall { .. } => None,
    }
}

fn next<'a>(core: &'a Core, pending: &'a [Item]) -> NextRequest<'a> {
    let window = core.context_window;
    let policy = core.context_policy;
    NextRequest {
        state: &core.state,
        pending,
        window,
        policy,
        tries: core.view_tries,
    }
}

/// Whether this wish would change the first request of the next turn.
pub(in crate::control) fn frees_any(core: &Core, wish: &CompactRequested) -> bool {
    let state = SessionState {
        compact_due: Some(wish.clone()),
        ..core.state.clone()
    };
    let input = [Item::user(String::new())];
    let next = NextRequest {
        state: &state,
        ..next(core, &input)
    };
    next.plan(|| core.draft.items(), &texts(core), &BTreeSet::new())
        .is_some()
}

/// The change of the view that the next request needs and that can be made.
fn plan(core: &Core, pending: &[Item], keep: &BTreeSet<CallId>) -> Option<Pruned> {
    next(core, pending).plan(|| core.draft.items(), &texts(core), keep)
}

fn texts(core: &Core) -> MarkTexts {
    let remedy =
        (core.permission.policy.terms.remedy)(&Remedy::PageOutput(Pruned::CALL.to_owned()));
    let items = Pruned::ITEMS;
    let first = Pruned::CALL;
    let last = Pruned::LAST;
    MarkTexts {
        mark: format!("({} bytes left the context: {remedy})", Pruned::BYTES),
        same: format!("(the same as the result of {first}, further below)"),
        gap: format!(
            "(items that left the context here: {items}, with the calls {first} to {last}: {remedy})"
        ),
        next_gap: format!("(left: {first} to {last})"),
        bare_gap: format!("(items that left the context here: {items})"),
    }
}
