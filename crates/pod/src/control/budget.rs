//! The cost of one turn, and whether it is spent. It knows prices and tokens, no model and no log.

use crate::record::Unanswered;
use llm_worker::{Cost, ModelEvent, Price, Usage};

/// The account of one turn.
#[derive(Debug)]
pub(crate) struct Budget {
    price: Option<Price>,
    /// What the session had cost before.
    before: Cost,
    /// Tokens counted since the last answer, for attempts that brought none.
    unanswered: Usage,
    /// What the attempt under way has counted.
    attempt: Usage,
    /// An answer came for which nothing was counted, though its model has a price.
    uncounted: bool,
}

impl Budget {
    pub(super) fn new(price: Option<Price>, before: Cost) -> Self {
        Self { price, before, unanswered: Usage::default(), attempt: Usage::default(), uncounted: false }
    }

    /// Keeps count of what no answer has paid for yet.
    pub(super) fn count(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Usage(usage) => self.attempt = *usage,
            ModelEvent::Retrying { .. } => self.attempt_failed(),
            ModelEvent::Stop(_) => {
                // The answer's own record has it all.
                self.attempt_failed();
                let usage = std::mem::take(&mut self.unanswered);
                self.uncounted |= self.price.is_some_and(|price| !counted(price, &usage));
            }
            ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Sealed(_)
            | ModelEvent::Shortfall(_)
            | ModelEvent::CallStarted { .. }
            | ModelEvent::CallArguments { .. } => {}
        }
    }

    /// No answer of its own will say what the attempt under way cost.
    pub(super) fn attempt_failed(&mut self) {
        self.unanswered = self.unanswered.plus(std::mem::take(&mut self.attempt));
    }

    /// Whether the turn has cost as much as it may, in a session that has cost `total`.
    pub(super) fn is_spent(&self, most: Option<Cost>, total: Cost) -> bool {
        let unanswered = self.price.map_or_else(Cost::default, |price| price.of(&self.unanswered));
        most.is_some_and(|most| total.since(self.before).plus(unanswered) >= most)
    }

    /// Whether its cost is unknown.
    pub(super) fn is_uncounted(&self) -> bool {
        self.uncounted
    }

    /// What an answer cost, where that is known.
    pub(super) fn cost(&self, usage: &Usage) -> Option<Cost> {
        self.price.filter(|price| counted(*price, usage)).map(|price| price.of(usage))
    }

    /// What attempts cost that brought no answer, with the one under way.
    pub(super) fn unanswered(&self) -> Option<Unanswered> {
        let usage = self.unanswered.plus(self.attempt);
        let cost = self.price.map(|price| price.of(&usage));
        (usage != Usage::default()).then_some(Unanswered { usage, cost })
    }
}

/// Whether tokens were counted, where counting matters: no answer takes none, so a vendor that says so did not count.
fn counted(price: Price, usage: &Usage) -> bool {
    price == Price::FREE || *usage != Usage::default()
}
