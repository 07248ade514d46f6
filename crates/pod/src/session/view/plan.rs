//! What leaves the next request, and when. Pure; the change itself is in `view`.

use super::is_of_model;
use super::shown::ShownItems;
use crate::record::{KeptItem, NotificationQueued, Pruned, View, ViewLevel, ViewParameters};
use crate::session::context::{
    ContextMeter, ContextPolicy, ContextStatus, bytes, keeps_up_to, share,
};
use crate::session::fold::SessionState;
use llm_worker::projection::Surface;
use llm_worker::{CallId, Item};
use std::collections::BTreeSet;

/// A content with fewer bytes is never masked.
pub(super) const MIN_BYTES: u64 = 512;

/// A change of the view brings the next request from `prune_at` down to three fifths of it, if so much can leave.
const TARGET: (u64, u64) = (3, 5);

/// After a change that left the request above its limit, the next one waits for this part: each change is a cold cache.
const STALLED_GROWTH: u64 = 20;

/// The protected tail is at most this part of the window less what always stays in it, or of what is used if a person
/// asks for the change.
const PROTECTED: u64 = 4;

/// A change that frees less than this part of what a request may keep is made only if the request is above [`URGENT`].
const WORTH: u64 = 4;

/// Percent of the window above which every change is made.
const URGENT: u64 = 90;

/// Where no change can be made, none is looked for again until the request has grown by this part of the window.
const GROWTH: u64 = 50;

/// The texts of marks, with the placeholders of [`Pruned`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarkTexts {
    pub(crate) mark: String,
    pub(crate) same: String,
    pub(crate) gap: String,
    pub(crate) next_gap: String,
    pub(crate) bare_gap: String,
}

/// The next request, as far as it decides about a change of the view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextRequest<'a> {
    pub(crate) state: &'a SessionState,
    /// Items that become durable with it or before it.
    pub(crate) pending: &'a [Item],
    /// Of the model; none if it is not known.
    pub(crate) window: Option<u64>,
    pub(crate) policy: ContextPolicy,
    pub(crate) tries: ViewTries,
}

/// The result of the newest look for a change of the view. Kept in memory alone: a restart looks once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ViewTries {
    /// The tokens of the request, if it stayed above its limit; else 0.
    pub(crate) fruitless: u64,
    /// Whether that was so after a change.
    pub(crate) stalled: bool,
}

/// Tokens that masking and dropping steps would free now, each as far as it can: an estimate from sums by contributor,
/// which needs no items. The protected tail is taken to be of what can leave.
pub(in crate::session) fn frees(
    meter: &ContextMeter,
    surface: &Surface,
    usage: &ContextStatus,
    policy: ContextPolicy,
) -> (Option<u64>, u64) {
    let protected = |of: u64| policy.protect_tokens.min(of / PROTECTED);
    let freed = |steps: bool, of: u64| meter.leaves_at_most(steps).saturating_sub(protected(of));
    let masking = usage
        .window
        .map(|window| freed(false, window.saturating_sub(meter.stays(surface))));
    (masking, freed(true, usage.used))
}

impl NextRequest<'_> {
    /// Tokens of the request, estimated from the newest one.
    pub(crate) fn used(&self) -> u64 {
        self.measured(|meter, surface| meter.usage(surface, None).used)
    }

    /// Whether the request cannot fit the window: the provider would refuse it. Only its size decides.
    pub(crate) fn is_too_large(&self) -> bool {
        self.window
            .is_some_and(|window| self.measured(ContextMeter::at_least) > window)
    }

    /// Whether the request probably does not fit the window: all that may leave has to.
    pub(crate) fn is_over(&self) -> bool {
        self.window.is_some_and(|window| self.used() > window)
    }

    /// Whether nothing needs to leave.
    pub(crate) fn fits(&self) -> bool {
        self.limit().is_none_or(|limit| self.used() <= limit)
    }

    /// What is known once the plan for this request is none.
    pub(crate) fn unchanged(&self) -> ViewTries {
        if self.fits() {
            ViewTries::default()
        } else if self.is_soon() {
            self.tries
        } else {
            ViewTries {
                fruitless: self.used(),
                stalled: false,
            }
        }
    }

    /// What is known once a change was made; this is the request behind it.
    pub(crate) fn changed(&self) -> ViewTries {
        if self.fits() {
            ViewTries::default()
        } else {
            ViewTries {
                fruitless: self.used(),
                stalled: true,
            }
        }
    }

    /// Whether a request that was nearly as large stayed above its limit.
    fn is_soon(&self) -> bool {
        let part = if self.tries.stalled {
            STALLED_GROWTH
        } else {
            GROWTH
        };
        let known = self.tries.fruitless;
        let grown = self.window.unwrap_or_default() / part;
        known > 0 && !self.is_over() && (known..known.saturating_add(grown)).contains(&self.used())
    }

    fn measured(&self, tokens: impl Fn(&ContextMeter, &Surface) -> u64) -> u64 {
        let Some((surface, _)) = &self.state.surface else {
            return 0;
        };
        let mut meter = self.state.context.clone();
        self.pending.iter().for_each(|item| meter.add(item, None));
        tokens(&meter, surface)
    }

    /// Tokens up to which nothing leaves. The answer needs room, too.
    fn limit(&self) -> Option<u64> {
        let max_output = self
            .state
            .surface
            .as_ref()
            .and_then(|(surface, _)| surface.max_output);
        self.window
            .map(|window| keeps_up_to(window, self.policy.prune_at, max_output))
    }

    /// The change of the view that the request needs, or that a person wishes, if it can be made. `items` gives all that
    /// requests show, and is asked only if a change is wanted. The results of the calls `keep` stay whole.
    pub(crate) fn plan(
        &self,
        items: impl FnOnce() -> Option<Vec<Item>>,
        texts: &MarkTexts,
        keep: &BTreeSet<CallId>,
    ) -> Option<Pruned> {
        let wish = self.state.compact_due.as_ref();
        let window = match (wish, self.window) {
            (None, None) => return None,
            (None, Some(_)) if self.fits() || self.is_soon() => return None,
            (_, window) => window.unwrap_or(u64::MAX),
        };
        let (surface, _) = self.state.surface.as_ref()?;
        let used = self.used();
        let limit = self.limit().filter(|_| wish.is_none()).unwrap_or(used);
        let urgent = used > share(window, URGENT, 100);
        let compacts = used > share(window, self.policy.compact_at, 100);
        let is_worth = |freed: u64| freed >= limit / WORTH;
        if wish.is_none() && !urgent && !is_worth(self.state.context.leaves_at_most(compacts)) {
            return None;
        }
        let room = window.saturating_sub(self.state.context.stays(surface));
        let scene = Scene {
            next: self,
            items: items()?,
            surface,
            texts,
            keep,
            used,
            target: share(limit, TARGET.0, TARGET.1),
            protected: self
                .policy
                .protect_tokens
                .min(if wish.is_some() { used } else { room } / PROTECTED),
        };
        if let Some(wish) = wish {
            let plan = scene.steps(wish.drop_turns);
            let left = used.saturating_sub(
                plan.as_ref()
                    .map_or(0, |plan| self.state.context.tokens(plan.freed)),
            );
            // One turn that has ended may fill the window.
            let is_full = wish.drop_turns && self.limit().is_some_and(|limit| left > limit);
            let plan = if is_full {
                Scene {
                    protected: 0,
                    ..scene
                }
                .steps(true)
            } else {
                plan
            };
            return plan.filter(|plan| plan.freed > 0).map(|plan| plan.pruned);
        }
        let tokens = |plan: &Plan| self.state.context.tokens(plan.freed);
        let is_enough =
            |plan: &Plan| is_worth(tokens(plan)) && used.saturating_sub(tokens(plan)) <= limit;
        let plan = match scene.results() {
            Some(plan) if !compacts || is_enough(&plan) => Some(plan),
            results => {
                let steps = if compacts { scene.steps(false) } else { None };
                [results, steps]
                    .into_iter()
                    .flatten()
                    .max_by_key(|plan| plan.freed)
            }
        };
        let plan = plan.filter(|plan| plan.freed > 0 && (urgent || is_worth(tokens(plan))));
        plan.map(|plan| plan.pruned)
    }
}

/// A change, with the bytes that it frees.
struct Plan {
    pruned: Pruned,
    freed: u64,
}

/// What a change is planned from.
struct Scene<'a> {
    next: &'a NextRequest<'a>,
    /// As the requests show them.
    items: Vec<Item>,
    surface: &'a Surface,
    texts: &'a MarkTexts,
    keep: &'a BTreeSet<CallId>,
    used: u64,
    /// Tokens that are to be left.
    target: u64,
    /// Tokens of the newest items that stay whole.
    protected: u64,
}

impl Scene<'_> {
    fn shown(&self) -> &ShownItems {
        &self.next.state.shown
    }

    fn tokens(&self, bytes: u64) -> u64 {
        self.next.state.context.tokens(bytes)
    }

    /// How many of the items are not protected: neither the newest ones nor what the model has not seen.
    fn old(&self) -> usize {
        let mut tail: u64 = self
            .next
            .pending
            .iter()
            .map(|item| self.tokens(bytes(item)))
            .sum();
        let mut end = self.seen();
        for (at, item) in self.items.iter().enumerate().rev() {
            if tail >= self.protected {
                break;
            }
            tail = tail.saturating_add(self.tokens(bytes(item)));
            end = end.min(at);
        }
        end
    }

    /// How many of the items the model has seen: it has not seen what follows its newest answer.
    fn seen(&self) -> usize {
        let is_command = |at: usize| {
            at.checked_sub(1)
                .and_then(|at| self.items.get(at))
                .is_some_and(|item| matches!(item, Item::Command { .. }))
        };
        let mut all = self.items.iter().enumerate().rev();
        all.find(|(at, item)| is_of_model(item) && !is_command(*at))
            .map_or(0, |(at, _)| at + 1)
    }

    /// The number of the item at this place behind the compacted ones; their end before it.
    fn number(&self, at: usize) -> u64 {
        let compacted = self.shown().view.compacted;
        let all = self.next.state.items;
        let from_end = (self.items.len() - at.min(self.items.len())) as u64;
        (all + 1).saturating_sub(from_end).max(compacted)
    }

    fn blank(&self, level: ViewLevel, view: View) -> Pruned {
        let NextRequest {
            policy,
            window,
            state,
            ..
        } = *self.next;
        Pruned {
            view,
            level,
            min_bytes: MIN_BYTES,
            whole_loops: true,
            mark: self.texts.mark.clone(),
            same: Some(self.texts.same.clone()),
            referenced: self.number(self.seen()).saturating_sub(1).max(view.pruned),
            keep: self.keep.iter().copied().collect(),
            gap: self.texts.gap.clone(),
            next_gap: self.texts.next_gap.clone(),
            bare_gap: self.texts.bare_gap.clone(),
            last_call: state.shown.last_call,
            parameters: Some(ViewParameters {
                window,
                protect_tokens: policy.protect_tokens,
                prune_at: policy.prune_at,
                compact_at: policy.compact_at,
                by_hand: state.compact_due.is_some(),
            }),
            ..Pruned::default()
        }
    }

    /// Carries a change out, to count what leaves.
    fn planned(&self, mut pruned: Pruned) -> Plan {
        let sum = |items: &[Item]| items.iter().map(bytes).sum::<u64>();
        let mut items = self.items.clone();
        let before = sum(&self.items);
        let named = &self.next.state.named_tools;
        pruned.left = self
            .shown()
            .project(&pruned, &mut items, self.surface, named);
        Plan {
            pruned,
            freed: before.saturating_sub(sum(&items)),
        }
    }

    /// Masks old results, the oldest first, until enough has left.
    fn results(&self) -> Option<Plan> {
        let end = self.old();
        let view = self.shown().view;
        let first =
            self.items.len() - usize::try_from(self.next.state.items - view.compacted).ok()?;
        let mut upto = view.pruned;
        let mut freed = 0;
        let needed = self.used.saturating_sub(self.target);
        for (at, item) in self.items.iter().enumerate().take(end).skip(first) {
            let number = self.number(at);
            if let Item::ToolResult { id, outcome } = item
                && number > view.pruned
                && outcome.weight() as u64 >= MIN_BYTES
                && !self.keep.contains(id)
            {
                freed += (outcome.weight() as u64).saturating_sub(self.texts.mark.len() as u64);
                upto = number;
            }
            if self.tokens(freed) >= needed {
                break;
            }
        }
        if upto == view.pruned {
            return None;
        }
        let blank = self.blank(
            ViewLevel::Results,
            View {
                pruned: upto,
                ..view
            },
        );
        // The marks of earlier changes are written anew.
        let blank = if view.compacted > 0 {
            blank
        } else {
            blank.without_gaps()
        };
        Some(self.planned(Pruned {
            last_call: 0,
            ..blank
        }))
    }

    /// Takes old steps out of the requests; with `drops`, also the oldest turns until enough has left, but never the newest
    /// one.
    fn steps(&self, drops: bool) -> Option<Plan> {
        let shown = self.shown();
        let cut = self.cut();
        let compacted = self.number(cut).saturating_sub(1).max(shown.view.compacted);
        let mut kept: Vec<KeptItem> = shown.kept.to_vec();
        let mut last_call = shown.last_call;
        let tail = self.items.len()
            - usize::try_from(self.next.state.items - shown.view.compacted).ok()?;
        for (at, item) in self.items.iter().enumerate().take(cut).skip(tail) {
            match item {
                Item::User { .. } | Item::Command { .. } | Item::Assistant { .. } => {
                    kept.push(KeptItem(self.number(at), last_call))
                }
                Item::System { source, .. } if source == NotificationQueued::CLIENT => {
                    kept.push(KeptItem(self.number(at), last_call))
                }
                Item::ToolCall { id, .. } | Item::ToolResult { id, .. }
                    if self.keep.contains(id) =>
                {
                    kept.push(KeptItem(self.number(at), last_call));
                }
                Item::ToolCall { id, .. } => last_call = id.number(),
                Item::ToolResult { .. } | Item::Reasoning { .. } | Item::System { .. } => {}
            }
        }
        let view = View {
            pruned: shown.view.pruned.max(compacted),
            compacted,
            dropped: shown.view.dropped,
        };
        let change = |view: View, kept: Vec<KeptItem>| {
            let level = if view.dropped > shown.view.dropped {
                ViewLevel::Turns
            } else {
                ViewLevel::Steps
            };
            self.planned(Pruned {
                kept: Some(kept),
                last_call,
                ..self.blank(level, view)
            })
        };
        let plan = change(view, kept.clone());
        if !drops {
            return (view != shown.view).then_some(plan);
        }
        let turns = self.turns(&kept, compacted);
        let dropped = turns.into_iter().map(|dropped| {
            let kept = kept
                .iter()
                .copied()
                .filter(|kept| kept.0 > dropped)
                .collect();
            change(View { dropped, ..view }, kept)
        });
        let mut last = plan;
        for plan in dropped {
            let is_enough = self.used.saturating_sub(self.tokens(plan.freed)) <= self.target;
            last = plan;
            if is_enough {
                break;
            }
        }
        (last.pruned.view != shown.view).then_some(last)
    }

    /// The ends of the oldest turns of the kept items, which end at `compacted`; at most [`MAX_TURNS`] places.
    fn turns(&self, kept: &[KeptItem], compacted: u64) -> Vec<u64> {
        let known = self.shown().numbered(self.items.clone());
        let is_input = |(_, item): &(Option<u64>, Item)| {
            matches!(item, Item::User { .. } | Item::Command { .. })
        };
        let all: BTreeSet<u64> = known
            .iter()
            .filter(|item| is_input(item))
            .filter_map(|item| item.0)
            .collect();
        let inputs: Vec<u64> = kept
            .iter()
            .map(|kept| kept.0)
            .filter(|number| all.contains(number))
            .collect();
        // The running turn stays whole; the one before it has ended if its input is among what waits for the request.
        let begins = self
            .next
            .pending
            .iter()
            .any(|item| matches!(item, Item::User { .. } | Item::Command { .. }));
        let running = self
            .next
            .state
            .standing
            .inputs
            .first()
            .map_or(u64::MAX, |input| input.item);
        let newest = if begins {
            self.next.state.items + 1
        } else {
            running
        };
        // The last of these turns ends where the running one begins, if all of it is among the kept items.
        let last = (newest <= compacted.saturating_add(1)).then_some(newest);
        let begins = inputs
            .iter()
            .copied()
            .skip(1)
            .filter(|next| *next < newest)
            .chain(last);
        let ends: Vec<u64> = begins.map(|next| next - 1).collect();
        let step = ends.len().div_ceil(MAX_TURNS).max(1);
        ends.chunks(step)
            .filter_map(|some| some.last().copied())
            .collect()
    }

    /// Where the items are cut: behind a whole answer with all its results.
    fn cut(&self) -> usize {
        let end = self.old();
        let mut open = 0_usize;
        let mut cut = 0;
        for (at, item) in self.items.iter().enumerate().take(end) {
            match item {
                Item::ToolCall { .. } => open += 1,
                Item::ToolResult { .. } => open = open.saturating_sub(1),
                Item::User { .. }
                | Item::Command { .. }
                | Item::System { .. }
                | Item::Assistant { .. }
                | Item::Reasoning { .. } => {}
            }
            let goes_on = is_of_model(item) && self.items.get(at + 1).is_some_and(is_of_model);
            if open == 0 && !goes_on {
                cut = at + 1;
            }
        }
        cut
    }
}

/// The most places at which the oldest turns may end.
const MAX_TURNS: usize = 32;
