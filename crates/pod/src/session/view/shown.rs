//! The items that a view shows, and what a change of it does to them. Does not depend on the state of a session.

use super::seals;
use crate::record::{KeptItem, Pruned, PrunedContent, View};
use crate::session::calls::NamedTools;
use crate::session::context::{GAP_SOURCE, OTHER, bytes};
use llm_worker::projection::Surface;
use llm_worker::{CallId, Item, ResultStatus};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What the requests show of the items up to `view.compacted`; everything behind it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownItems {
    pub view: View,
    pub kept: Arc<Vec<KeptItem>>,
    /// The newest call up to there that they do not show.
    pub last_call: u64,
}

/// A place in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownPlace {
    Item(u64),
    /// This many items left here, with the calls between these two, the first one excluded.
    Gap {
        items: u64,
        calls: (u64, u64),
    },
}

impl ShownItems {
    /// The places up to `view.compacted`.
    pub(super) fn slots(&self) -> Vec<ShownPlace> {
        let mut slots = Vec::new();
        let mut before = 0;
        let mut call = 0;
        let end = KeptItem(self.view.compacted.saturating_add(1), self.last_call);
        for KeptItem(number, hidden) in self.kept.iter().copied().chain([end]) {
            let items = number.saturating_sub(before).saturating_sub(1);
            if items > 0 {
                slots.push(ShownPlace::Gap {
                    items,
                    calls: (call, hidden),
                });
            }
            slots.push(ShownPlace::Item(number));
            (before, call) = (number, hidden);
        }
        slots.pop();
        slots
    }

    /// How many items a request has, of a session with this many.
    #[must_use]
    pub fn count(&self, items: u64) -> u64 {
        self.slots().len() as u64 + items.saturating_sub(self.view.compacted)
    }

    /// Whether this change can follow, in a session with this many items.
    pub(in crate::session) fn precedes(&self, pruned: &Pruned, items: u64) -> bool {
        let old = self.view;
        let new = pruned.view;
        let in_order =
            new.dropped <= new.compacted && new.compacted <= new.pruned && new.pruned <= items;
        let Some(kept) = &pruned.kept else {
            return in_order
                && new.pruned > old.pruned
                && (new.compacted, new.dropped) == (old.compacted, old.dropped);
        };
        let grows = new.compacted >= old.compacted && new.dropped >= old.dropped && new != old;
        let rises = kept
            .windows(2)
            .all(|pair| matches!(pair, [one, two] if one.0 < two.0 && one.1 <= two.1));
        let is_inside = kept.first().is_none_or(|first| first.0 > new.dropped)
            && kept
                .last()
                .is_none_or(|last| last.0 <= new.compacted && last.1 <= pruned.last_call);
        // Nothing that left comes back.
        let shown: BTreeSet<u64> = self.kept.iter().map(|kept| kept.0).collect();
        let returns = kept
            .iter()
            .any(|kept| kept.0 <= old.compacted && !shown.contains(&kept.0));
        in_order && new.pruned >= old.pruned && grows && rises && is_inside && !returns
    }

    /// The items that the requests show after a change.
    pub(in crate::session) fn after(&self, pruned: &Pruned) -> Self {
        match &pruned.kept {
            Some(kept) => Self {
                view: pruned.view,
                kept: Arc::new(kept.clone()),
                last_call: pruned.last_call,
            },
            None => Self {
                view: pruned.view,
                ..self.clone()
            },
        }
    }

    /// The shown items with their numbers; marks of gaps have none.
    pub(super) fn numbered(&self, items: Vec<Item>) -> Vec<(Option<u64>, Item)> {
        let slots = self.slots().into_iter().map(|slot| match slot {
            ShownPlace::Item(number) => Some(number),
            ShownPlace::Gap { .. } => None,
        });
        slots
            .chain((self.view.compacted + 1..).map(Some))
            .zip(items)
            .collect()
    }
}

impl ShownItems {
    /// Changes the items as these show them to those that the view shows after a change, and counts what left.
    pub(crate) fn project(
        &self,
        pruned: &Pruned,
        items: &mut Vec<Item>,
        surface: &Surface,
        named: &NamedTools,
    ) -> PrunedContent {
        let after = self.after(pruned);
        let numbered = self.numbered(std::mem::take(items));
        let mut change = Change::of(pruned, self, &after, &numbered, (surface, named));
        let mut shown: BTreeMap<u64, Item> = BTreeMap::new();
        for (number, item) in numbered {
            let Some(number) = number else { continue };
            let was_changed = change.is_changed;
            let item = change.item(number, item);
            if pruned.whole_loops && change.is_changed && !was_changed {
                change.left.seals += seals::unseal_loop(shown.values_mut());
            }
            shown.extend(item.map(|item| (number, item)));
        }
        let tail = shown.split_off(&(after.view.compacted + 1));
        let mut gap = &pruned.gap;
        for slot in after.slots() {
            match slot {
                ShownPlace::Item(number) => items.extend(shown.remove(&number)),
                ShownPlace::Gap {
                    items: hidden,
                    calls,
                } if calls.1 > calls.0 => {
                    items.push(mark(gap, hidden, calls));
                    gap = if pruned.next_gap.is_empty() {
                        &pruned.gap
                    } else {
                        &pruned.next_gap
                    };
                }
                ShownPlace::Gap {
                    items: hidden,
                    calls,
                } => items.push(mark(&pruned.bare_gap, hidden, calls)),
            }
        }
        let is_mark =
            |item: &&Item| matches!(item, Item::System { source, .. } if source == GAP_SOURCE);
        change.left.gaps = items.iter().filter(is_mark).map(bytes).sum();
        items.extend(tail.into_values());
        change.left
    }
}

/// The mark of a gap.
fn mark(template: &str, items: u64, (before, last): (u64, u64)) -> Item {
    let call = |number: u64| {
        CallId::new(number)
            .map(|call| call.to_string())
            .unwrap_or_default()
    };
    let text = template
        .replace(Pruned::ITEMS, &items.to_string())
        .replace(Pruned::CALL, &call(before + 1))
        .replace(Pruned::LAST, &call(last));
    Item::System {
        source: GAP_SOURCE.to_owned(),
        text,
    }
}

/// A change that is being made.
struct Change<'a> {
    pruned: &'a Pruned,
    /// The last item whose results were masked before, and the last one whose results are now.
    masked: (u64, u64),
    compacted: u64,
    kept: BTreeSet<u64>,
    /// The newest result with each content, of those that stay whole.
    whole: HashMap<String, CallId>,
    /// Tools of the calls, as the surface knows them.
    tools: HashMap<CallId, String>,
    is_changed: bool,
    left: PrunedContent,
}

impl<'a> Change<'a> {
    fn of(
        pruned: &'a Pruned,
        before: &ShownItems,
        after: &ShownItems,
        items: &[(Option<u64>, Item)],
        (surface, named): (&Surface, &NamedTools),
    ) -> Self {
        let known = |name: &String| surface.tools.iter().any(|tool| tool.name == *name);
        let tool = |(_, item): &(Option<u64>, Item)| match item {
            Item::ToolCall { id, name, .. } => {
                let written = if known(name) { name } else { OTHER };
                Some((*id, named.of(*id).unwrap_or(written).to_owned()))
            }
            Item::User { .. }
            | Item::Command { .. }
            | Item::System { .. }
            | Item::Assistant { .. }
            | Item::Reasoning { .. }
            | Item::ToolResult { .. } => None,
        };
        let mut whole = HashMap::new();
        if pruned.same.is_some() {
            for (number, item) in items {
                if let Item::ToolResult { id, outcome } = item
                    && number.is_some_and(|number| number > after.view.pruned)
                    && outcome.status == ResultStatus::Ok
                    && outcome.content.len() as u64 >= pruned.min_bytes
                    && outcome.attachments.is_empty()
                {
                    whole.insert(outcome.content.clone(), *id);
                }
            }
        }
        Self {
            pruned,
            masked: (before.view.pruned, after.view.pruned),
            compacted: after.view.compacted,
            kept: after.kept.iter().map(|kept| kept.0).collect(),
            whole,
            tools: items.iter().filter_map(tool).collect(),
            is_changed: false,
            left: PrunedContent::default(),
        }
    }

    /// The item as the view shows it; none if it left.
    fn item(&mut self, number: u64, mut item: Item) -> Option<Item> {
        if number <= self.compacted && !self.kept.contains(&number) {
            self.leaves(&item);
            return None;
        }
        if let Item::Reasoning { seal, .. } = &mut item
            && self.is_changed
            && let Some(seal) = seal.take()
        {
            self.left.seals += seal.signature.data.len() as u64;
        }
        let Some(shorter) = self.shorter(number, &item) else {
            return Some(item);
        };
        self.is_changed = true;
        if let Item::ToolResult { id, .. } = &shorter {
            self.result_left(*id, bytes(&item) - bytes(&shorter));
        }
        Some(shorter)
    }

    fn leaves(&mut self, item: &Item) {
        self.is_changed = true;
        let size = bytes(item);
        let left = &mut self.left;
        match item {
            Item::User { .. } | Item::Command { .. } => left.inputs += size,
            Item::Assistant { .. } => left.answers += size,
            Item::System { source, .. } => *left.notes.entry(source.clone()).or_default() += size,
            Item::ToolCall { .. } => left.calls += size,
            Item::ToolResult { id, .. } => self.result_left(*id, size),
            Item::Reasoning { text, .. } => {
                left.reasoning += text.len() as u64;
                left.seals += size - text.len() as u64;
            }
        }
    }

    fn result_left(&mut self, call: CallId, size: u64) {
        self.left.results += 1;
        let tool = self.tools.get(&call).map_or(OTHER, String::as_str);
        *self.left.bytes.entry(tool.to_owned()).or_default() += size;
    }

    /// The result with a mark in the place of its content; none if it stays as it is.
    fn shorter(&self, number: u64, item: &Item) -> Option<Item> {
        let Item::ToolResult { id, outcome } = item else {
            return None;
        };
        let length = outcome.weight();
        let pruned = self.pruned;
        if number <= self.compacted
            || pruned.keep.contains(id)
            || (length as u64) < pruned.min_bytes
        {
            return None;
        }
        let is_referenced = number <= self.masked.1.max(pruned.referenced);
        let same = self
            .whole
            .get(&outcome.content)
            .filter(|newest| is_referenced && *newest != id && outcome.attachments.is_empty());
        let content = match (same, &pruned.same) {
            (Some(newest), Some(text)) => text.replace(Pruned::CALL, &newest.to_string()),
            _ if number > self.masked.0 && number <= self.masked.1 => pruned
                .mark
                .replace(Pruned::BYTES, &length.to_string())
                .replace(Pruned::CALL, &id.to_string()),
            _ => return None,
        };
        (content.len() < length).then(|| {
            let mut outcome = outcome.clone();
            outcome.content = content;
            outcome.attachments.clear();
            Item::ToolResult { id: *id, outcome }
        })
    }
}
