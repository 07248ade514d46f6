//! Records of the view: what of the items the requests that follow show, what a person pinned, and the wish for a smaller
//! context. Do not depend on the state.

use super::{TransformNote, Who};
use llm_worker::CallId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What of the items of a session a request shows. The first view shows all of them whole. Items have absolute numbers
/// from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The last item up to which results were masked.
    pub pruned: u64,
    /// The last item up to which only the kept items are shown, with a mark in each gap.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compacted: u64,
    /// The last item up to which nothing is shown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

impl View {
    /// The view as a request names it: none if it shows everything.
    #[must_use]
    pub fn named(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// An item up to [`View::compacted`] that requests still show: its number, and the newest call before it that they do not
/// show (0 if there is none).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptItem(pub u64, pub u64);

/// How much a change of the view takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewLevel {
    /// The content of old results.
    #[default]
    Results,
    /// Of old steps everything but the words of people and of the model.
    Steps,
    /// The oldest turns, too. Only a person chooses this.
    Turns,
}

/// Body of `pruned`: the requests that follow show less.
///
/// Up to `view.compacted`, only the items of `kept` stay, and each gap has a mark. Behind them, up to `view.pruned`, the
/// content of results is masked. The log keeps everything. Reasoning behind the first change loses its seal, because the
/// seal covers the bytes before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    pub view: View,
    #[serde(default, skip_serializing_if = "is_default")]
    pub level: ViewLevel,
    /// A content with fewer bytes stays.
    pub min_bytes: u64,
    /// The text in the place of a content; [`Self::BYTES`] and [`Self::CALL`] stand for the content's bytes and the call.
    pub mark: String,
    /// A loop of calls keeps all its seals or none. Records that do not have it kept those before the first change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_loops: bool,
    /// The text in the place of a content that a later whole result repeats; [`Self::CALL`] stands for the call of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same: Option<String>,
    /// Results up to this item that repeat a later whole one are referenced; at least `view.pruned`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub referenced: u64,
    /// Calls whose results stay whole in this change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<CallId>,
    /// All items up to `view.compacted` that stay; none if that did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Vec<KeptItem>>,
    /// The newest call up to `view.compacted` that the requests do not show; 0 if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_call: u64,
    /// The text of a mark in a gap with calls; [`Self::ITEMS`], [`Self::CALL`] and [`Self::LAST`] stand for the number of
    /// items that left, the first call and the last one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gap: String,
    /// In the place of `gap`, for all gaps with calls behind the first one. Records that do not have it repeat `gap`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next_gap: String,
    /// The text of a mark in a gap without calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bare_gap: String,
    /// What decided about the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<ViewParameters>,
    /// Transforms that chose what stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformNote>,
    pub left: PrunedContent,
}

/// What decided about a change of the view; part of [`Pruned`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewParameters {
    /// The model's context window in tokens, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    pub protect_tokens: u64,
    pub prune_at: u64,
    pub compact_at: u64,
    /// Whether a person asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
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
    /// Bytes of reasoning, without seals.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
    /// Bytes of calls with their arguments.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls: u64,
    /// Bytes of notes by source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, u64>,
    /// Bytes of inputs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inputs: u64,
    /// Bytes of answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answers: u64,
    /// Bytes of all marks in gaps that the requests show now.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gaps: u64,
}

impl Pruned {
    /// Stands for the bytes of a masked content.
    pub const BYTES: &'static str = "{bytes}";
    /// Stands for the call whose result is masked or repeated, or for the first one of a gap.
    pub const CALL: &'static str = "{call}";
    /// Stands for the last call of a gap.
    pub const LAST: &'static str = "{last}";
    /// Stands for the number of items of a gap.
    pub const ITEMS: &'static str = "{items}";

    /// A change of a view that has no gap.
    pub(crate) fn without_gaps(self) -> Self {
        Self {
            gap: String::new(),
            next_gap: String::new(),
            bare_gap: String::new(),
            ..self
        }
    }
}

/// Body of `pinned`: a text that stays in the context until it is unpinned, word for word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    /// Rises from 1; a number may be left out.
    pub pin: u64,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

/// Body of `unpinned`; a pin that there is not changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unpinned {
    pub pin: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

/// Body of `compact_requested`: the next request shows as little as the rules allow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactRequested {
    /// The oldest turns leave, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop_turns: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_default(level: &ViewLevel) -> bool {
    *level == ViewLevel::default()
}
