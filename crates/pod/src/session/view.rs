//! Changes of the view: which old results leave the requests, and what the items are then. Pure; does not depend on the
//! journal.

use super::context::{ContextMeter, OTHER, bytes, share};
use super::fold::SessionState;
use crate::record::{Pruned, PrunedContent, Record, View};
use llm_worker::projection::Surface;
use llm_worker::{CallId, Item};
use std::collections::BTreeMap;

/// A content with fewer bytes is never masked.
const MIN_BYTES: u64 = 512;

/// A change of the view brings the next request from `prune_at` down to three fifths of it, if so much can be masked.
const TARGET: (u64, u64) = (3, 5);

/// The protected tail is at most this part of the window.
const PROTECTED: u64 = 4;

/// A change that frees less than this part of the window is made only if the request is above [`URGENT`].
const WORTH: u64 = 10;

/// Percent of the window above which every change is made.
const URGENT: u64 = 90;

/// When and how old results leave the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextPolicy {
    /// The newest items with together this many tokens stay whole.
    pub protect_tokens: u64,
    /// Old results are masked before a request that needs more than this part of the window, in percent.
    pub prune_at: u64,
}

impl Default for ContextPolicy {
    fn default() -> Self {
        Self { protect_tokens: 40_000, prune_at: 75 }
    }
}

/// The next request, as far as it decides about a change of the view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextRequest<'a> {
    pub(crate) state: &'a SessionState,
    /// Items that become durable with it or before it.
    pub(crate) pending: &'a [Item],
    pub(crate) window: u64,
    pub(crate) policy: ContextPolicy,
}

impl NextRequest<'_> {
    /// Tokens of the request, estimated from the newest one.
    fn used(&self) -> u64 {
        self.measured(|meter, surface| meter.usage(surface, None).used)
    }

    /// Whether the request cannot fit the window: the provider would refuse it.
    pub(crate) fn is_too_large(&self) -> bool {
        self.measured(ContextMeter::at_least) > self.window
    }

    fn measured(&self, tokens: impl Fn(&ContextMeter, &Surface) -> u64) -> u64 {
        let Some((surface, _)) = &self.state.surface else { return 0 };
        let mut meter = self.state.context.clone();
        self.pending.iter().for_each(|item| meter.add(item, None));
        tokens(&meter, surface)
    }

    /// Tokens up to which nothing is masked. The answer needs room, too.
    fn limit(&self) -> u64 {
        let answer = self.state.surface.as_ref().and_then(|(surface, _)| surface.max_output).unwrap_or_default();
        let room = self.window.saturating_sub(u64::from(answer)).max(self.window / 2);
        share(self.window, self.policy.prune_at, 100).min(room)
    }

    /// The change of the view that the request needs, if it can be made. `items` gives all that are durable, and is asked
    /// only if the request is too large; `mark` is the text of the marks.
    pub(crate) fn plan(&self, items: impl FnOnce() -> Option<Vec<Item>>, mark: &str) -> Option<Pruned> {
        let (used, limit) = (self.used(), self.limit());
        if used <= limit {
            return None;
        }
        let (mut items, (surface, _)) = (items()?, self.state.surface.as_ref()?);
        let needed = used - share(limit, TARGET.0, TARGET.1);
        let tokens = |bytes: u64| self.state.context.tokens(bytes);
        let mut tail: u64 = self.pending.iter().map(|item| tokens(bytes(item))).sum();
        let protected = self.policy.protect_tokens.min(self.window / PROTECTED);
        // The model has not seen what follows its newest answer.
        let mut end = items.iter().rposition(is_of_model).map_or(0, |at| at + 1);
        for (at, item) in items.iter().enumerate().rev() {
            if tail >= protected {
                break;
            }
            tail = tail.saturating_add(tokens(bytes(item)));
            end = end.min(at);
        }
        let from = usize::try_from(self.state.view.pruned).unwrap_or(usize::MAX);
        let mut plan = Pruned {
            view: self.state.view,
            min_bytes: MIN_BYTES,
            mark: mark.to_owned(),
            left: PrunedContent::default(),
        };
        let mut freed = 0;
        for (at, item) in items.iter().enumerate().take(end).skip(from) {
            if let Some(masked) = plan.masked(item) {
                freed += bytes(item) - bytes(&masked);
                plan.view.pruned = at as u64 + 1;
            }
            if tokens(freed) >= needed {
                break;
            }
        }
        let urgent = used > share(self.window, URGENT, 100);
        if freed == 0 || !(urgent || tokens(freed) >= self.window / WORTH) {
            return None;
        }
        plan.left = plan.project(&mut items, self.state.view, surface);
        Some(plan)
    }
}

impl Pruned {
    /// The item with its mark; none if nothing of it is masked.
    fn masked(&self, item: &Item) -> Option<Item> {
        let Item::ToolResult { id, outcome } = item else { return None };
        let length = outcome.content.len();
        let content = self.mark.replace(Self::BYTES, &length.to_string()).replace(Self::CALL, &id.to_string());
        let shorter = length as u64 >= self.min_bytes && content.len() < length;
        shorter.then(|| {
            let mut outcome = outcome.clone();
            outcome.content = content;
            Item::ToolResult { id: *id, outcome }
        })
    }

    /// Changes all items of the view `before` to those of this one, and counts what left.
    pub(crate) fn project(&self, items: &mut [Item], before: View, surface: &Surface) -> PrunedContent {
        let mut left = PrunedContent::default();
        let mut tools: BTreeMap<CallId, String> = BTreeMap::new();
        let mut is_changed = false;
        for (number, item) in (1..).zip(items) {
            if let Item::ToolCall { id, name, .. } = item {
                let known = surface.tools.iter().any(|tool| tool.name == *name);
                tools.insert(*id, if known { name.clone() } else { OTHER.to_owned() });
            }
            if let Item::Reasoning { seal, .. } = item
                && is_changed
                && let Some(seal) = seal.take()
            {
                left.seals += seal.signature.data.len() as u64;
            }
            let masked = if number > before.pruned && number <= self.view.pruned { self.masked(item) } else { None };
            if let Some(masked) = masked
                && let Item::ToolResult { id, .. } = &masked
            {
                is_changed = true;
                left.results += 1;
                let tool = tools.remove(id).unwrap_or_else(|| OTHER.to_owned());
                *left.bytes.entry(tool).or_default() += bytes(item) - bytes(&masked);
                *item = masked;
            }
        }
        left
    }
}

/// Changes the items if this record, which was just folded, changed the view from `before`; returns what left.
pub(super) fn project(
    record: &Record,
    before: View,
    state: &SessionState,
    items: &mut [Item],
) -> Option<PrunedContent> {
    let Record::Pruned(pruned) = record else { return None };
    let (surface, _) = state.surface.as_ref().filter(|_| state.view != before)?;
    Some(pruned.project(items, before, surface))
}

fn is_of_model(item: &Item) -> bool {
    match item {
        Item::Assistant { .. } | Item::Reasoning { .. } | Item::ToolCall { .. } => true,
        Item::User { .. } | Item::System { .. } | Item::ToolResult { .. } => false,
    }
}

#[cfg(test)]
mod tests;
