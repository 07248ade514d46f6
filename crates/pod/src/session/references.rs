//! Which blobs a session still refers to: the others may be removed to make room for a new one. It knows no store.

use super::fold::SessionState;
use session_store::Digest;
use std::collections::HashSet;

/// What files were before they changed, always; of full outputs the newest, as many as fit into half of `bound`, the
/// most bytes that the session's blobs may take. What has a handle and is not among them can be gone.
#[must_use]
pub fn of(state: &SessionState, bound: u64) -> HashSet<Digest> {
    let mut room = bound / 2;
    let newest = state.outputs.iter().rev().map_while(|output| {
        room = room.checked_sub(output.stored.bytes)?;
        Some(output.stored.digest)
    });
    newest.chain(state.images.iter().copied()).collect()
}
