//! The gate of `read_first`: denies a comment on a work item, and a change of its status, before this session has read the
//! item. What was read is state of the session, so that a restart keeps it.

use super::id::ItemId;
use pod::feature::{DurableState, HookKey, StateError, StateKey};
use pod::hook::{PreToolCall, ToolCallView, Verdict};

pub(super) const GATE: HookKey<PreToolCall> = HookKey::new("work-item-audit");
/// The ids of the items that the session has read or created, the newest last.
pub(super) const READ_ITEMS: StateKey<Vec<String>> = StateKey::new("read-items", 1);

/// Most items that are remembered; an older one has to be read again.
const MAX_READ: usize = 256;

pub(super) type ChangedItem = Box<dyn Fn(&ToolCallView) -> Option<ItemId> + Send + Sync>;

/// The items that the session has read.
pub(super) struct ReadFirst {
    /// The item that a call comments on or moves; none if it names no item or several, which the tool says.
    pub(super) changed: ChangedItem,
    pub(super) items: DurableState<Vec<String>>,
}

impl ReadFirst {
    /// Adds an item that was read or created.
    pub(super) async fn add(&self, id: &ItemId) -> Result<(), StateError> {
        let id = id.to_string();
        if self.items.read().last() == Some(&id) {
            return Ok(());
        }
        self.items.update(|items| remember(items, id)).await
    }

    pub(super) fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        let Some(id) = (self.changed)(call) else {
            return Verdict::allow();
        };
        if self
            .items
            .read()
            .iter()
            .any(|known| *known == id.to_string())
        {
            return Verdict::allow();
        }
        Verdict::deny(format!(
            "rule `read_first`: this session has not read {id}; call WorkItemShow with it, then repeat the call"
        ))
    }
}

fn remember(items: &mut Vec<String>, id: String) {
    items.retain(|known| *known != id);
    items.push(id);
    items.drain(..items.len().saturating_sub(MAX_READ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_items_are_remembered_once() {
        let mut items = Vec::new();
        for n in 0..=MAX_READ {
            remember(&mut items, n.to_string());
        }
        remember(&mut items, "7".to_owned());
        assert_eq!(
            (items.len(), items.first().map(String::as_str)),
            (MAX_READ, Some("1"))
        );
        assert_eq!(items.last().map(String::as_str), Some("7"));
        assert_eq!(items.iter().filter(|id| *id == "7").count(), 1);
    }
}
