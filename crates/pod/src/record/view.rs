//! The record of a change of the view: what of the items the requests that follow show. Does not depend on the state.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What of the items of a session a request shows. The first view shows all of them whole. Items have absolute numbers
/// from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The last item up to which results were masked.
    pub pruned: u64,
}

impl View {
    /// The view as a request names it: none if it shows everything.
    #[must_use]
    pub fn named(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// Body of `pruned`: in the requests that follow, the content of old results is masked. The results are behind the last
/// item of the view before, up to that of this view. The log keeps the content.
///
/// Reasoning behind the first masked result loses its seal, because the seal covers the bytes before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    pub view: View,
    /// A content with fewer bytes stays.
    pub min_bytes: u64,
    /// The text in the place of a content; [`Self::BYTES`] and [`Self::CALL`] stand for the content's bytes and the call.
    pub mark: String,
    pub left: PrunedContent,
}

/// What the requests do not show any more, less the marks; part of [`Pruned`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedContent {
    /// How many results.
    pub results: u64,
    /// Bytes of results by tool; those of tools that the surface does not have are of the tool `other`.
    pub bytes: BTreeMap<String, u64>,
    /// Bytes of seals.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seals: u64,
}

impl Pruned {
    /// Stands for the bytes of a masked content.
    pub const BYTES: &'static str = "{bytes}";
    /// Stands for the call whose result is masked.
    pub const CALL: &'static str = "{call}";
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
