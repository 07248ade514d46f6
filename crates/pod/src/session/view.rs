//! The view: which items requests show, and what a change of it does to them. Pure; does not depend on the journal.

mod plan;
mod seals;
pub(super) mod shown;

pub use super::context::{ContextPolicy, GAP_SOURCE};
pub(super) use plan::frees;
pub(crate) use plan::{MarkTexts, NextRequest, ViewTries};
pub use shown::ShownItems;

use super::fold::SessionState;
use crate::record::{PrunedContent, Record};
use llm_worker::Item;

/// Changes the items if this record, which was just folded, changed the view from `before`; returns what left.
pub(super) fn project(
    record: &Record,
    before: &ShownItems,
    state: &SessionState,
    items: &mut Vec<Item>,
) -> Option<PrunedContent> {
    let Record::Pruned(pruned) = record else {
        return None;
    };
    let (surface, _) = state.surface.as_ref().filter(|_| state.shown != *before)?;
    Some(before.project(pruned, items, surface, &state.named_tools))
}

fn is_of_model(item: &Item) -> bool {
    match item {
        Item::Assistant { .. } | Item::Reasoning { .. } | Item::ToolCall { .. } => true,
        Item::User { .. }
        | Item::Command { .. }
        | Item::System { .. }
        | Item::ToolResult { .. } => false,
    }
}

#[cfg(test)]
mod tests;
