//! Seals that a change of the view takes from the loop of calls in which it begins. Pure.

use llm_worker::Item;

/// Removes the seals of reasoning in the loop of calls at the end of these items, and returns their bytes. The items are those
/// before the first change.
///
/// A loop begins behind words that do not come with a result. Its vendor takes the thinking of all its answers or of none.
pub(super) fn unseal_loop<'a>(before: impl DoubleEndedIterator<Item = &'a mut Item>) -> u64 {
    let mut bytes = 0;
    // Newest first: words are an input unless a result is before them.
    let mut is_input = false;
    for item in before.rev() {
        match item {
            Item::User { .. } | Item::Command { .. } | Item::System { .. } => is_input = true,
            Item::ToolResult { .. } => is_input = false,
            Item::Assistant { .. } | Item::Reasoning { .. } | Item::ToolCall { .. } if is_input => {
                break;
            }
            Item::Reasoning { seal, .. } => {
                bytes += seal
                    .take()
                    .map_or(0, |seal| seal.signature.data.len() as u64)
            }
            Item::Assistant { .. } | Item::ToolCall { .. } => {}
        }
    }
    bytes
}
