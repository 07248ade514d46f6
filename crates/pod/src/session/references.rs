//! Which blobs a session still refers to: the others may be removed to make room for a new one. Does not depend on the
//! store.

use super::fold::SessionState;
use session_store::Digest;
use std::collections::HashSet;

/// All before-images of files and all attachments; of full outputs the newest, as many as fit into half of `bound`, the limit on the bytes
/// of the session's blobs. Other outputs with a handle may have been removed.
#[must_use]
pub fn of(state: &SessionState, bound: u64) -> HashSet<Digest> {
    let mut room = bound / 2;
    let newest = state.outputs.iter().rev().map_while(|output| {
        room = room.checked_sub(output.stored.bytes)?;
        Some(output.stored.digest)
    });
    newest.chain(state.images.iter().copied()).collect()
}
