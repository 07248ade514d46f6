//! Records of the view: what of the items the requests that follow show, what a person pinned, and the wish for a smaller
//! context. Do not depend on the state.

use super::{TransformNote, Who};
use crate::item::CallId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

host_parts! {
    /// What of the items of a session a request shows. The first view shows all of them whole. Items have absolute numbers
    /// from 1.
    View: Copy Default Eq {
        /// The last item up to which results were masked.
        pruned: u64,
        /// The last item up to which only the kept items are shown, with a mark in each gap.
        compacted =: u64,
        /// The last item up to which nothing is shown.
        dropped =: u64,
    }
    /// What decided about a change of the view; part of [`Pruned`].
    ViewParameters: Copy Eq {
        /// The model's context window in tokens, if it is known.
        window ?: u64,
        protect_tokens: u64,
        prune_at: u64,
        compact_at: u64,
        /// Whether a person asked for it.
        by_hand =: bool,
    }
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

words! {
    /// How much a change of the view takes.
    ViewLevel: Default PartialOrd Ord {
        /// The content of old results.
        #[default]
        Results = "results",
        /// Of old steps everything but the words of people and of the model.
        Steps = "steps",
        /// The oldest turns, too. Only a person chooses this.
        Turns = "turns",
    }
}

bodies! {
    /// Old results or steps left the requests that follow.
    ///
    /// Body of `pruned`: the requests that follow show less.
    ///
    /// Up to `view.compacted`, only the items of `kept` stay, and each gap has a mark. Behind them, up to `view.pruned`, the
    /// content of results is masked. The log keeps everything. Reasoning behind the first change loses its seal, because the
    /// seal covers the bytes before it.
    Pruned: Default Eq {
        - view: View,
        /// `results`, `steps` or `turns`; none is `results`.
        level =: ViewLevel,
        /// A content with fewer bytes stays.
        - min_bytes: u64,
        /// The text in the place of a content; [`Self::BYTES`] and [`Self::CALL`] stand for the content's bytes and the call.
        - mark: String,
        /// A loop of calls keeps all its seals or none. Records that do not have it kept those before the first change.
        - whole_loops =: bool,
        /// The text in the place of a content that a later whole result repeats; [`Self::CALL`] stands for the call of that one.
        - same ?: String,
        /// Results up to this item that repeat a later whole one are referenced; at least `view.pruned`.
        - referenced =: u64,
        /// Calls whose results stay whole in this change.
        - keep =: Vec<CallId>,
        /// All items up to `view.compacted` that stay; none if that did not change.
        - kept ?: Vec<KeptItem>,
        /// The newest call up to `view.compacted` that the requests do not show; 0 if there is none.
        - last_call =: u64,
        /// The text of a mark in a gap with calls; [`Self::ITEMS`], [`Self::CALL`] and [`Self::LAST`] stand for the number of
        /// items that left, the first call and the last one.
        - gap =: String,
        /// In the place of `gap`, for all gaps with calls behind the first one. Records that do not have it repeat `gap`.
        - next_gap =: String,
        /// The text of a mark in a gap without calls.
        - bare_gap =: String,
        /// What decided about the change.
        - parameters ?: ViewParameters,
        /// Transforms that chose what stays.
        - transforms =: Vec<TransformNote>,
        left: PrunedContent,
    }
    /// What left the requests; part of [`Pruned`].
    ///
    /// Less the marks.
    PrunedContent: Default Eq {
        // How many results.
        results: u64,
        /// Bytes by tool.
        // Bytes of results by tool; those of tools that the surface does not have are of the tool `other`.
        bytes: BTreeMap<String, u64>,
        /// Bytes of seals.
        - seals =: u64,
        /// Bytes of reasoning.
        reasoning =: u64,
        /// Bytes of calls.
        calls =: u64,
        /// Bytes of notes by source.
        - notes =: BTreeMap<String, u64>,
        /// Bytes of inputs.
        inputs =: u64,
        /// Bytes of answers.
        answers =: u64,
        /// Bytes of all marks in gaps that the requests show now.
        - gaps =: u64,
    }
    /// A person wishes a smaller context.
    ///
    /// Body of `compact_requested`: the next request shows as little as the rules allow.
    CompactRequested: Default Eq {
        // The oldest turns leave, too.
        drop_turns =: bool,
        by ?: Who,
    }
}

plain_bodies! {
    /// A text stays in the context.
    // Body of `pinned`: a text that stays in the context until it is unpinned, word for word.
    Pinned {
        // Rises from 1; a number may be left out.
        pin: u64,
        text: String,
        by ?: Who,
    }
    /// A pinned text may leave the context.
    // Body of `unpinned`; a pin that there is not changes nothing.
    Unpinned {
        pin: u64,
        by ?: Who,
    }
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
    pub fn without_gaps(self) -> Self {
        Self {
            gap: String::new(),
            next_gap: String::new(),
            bare_gap: String::new(),
            ..self
        }
    }
}
