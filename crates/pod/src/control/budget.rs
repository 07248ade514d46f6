//! The cost of one turn, and whether its limit is reached. Depends only on prices and tokens.

use crate::record::Unanswered;
use llm_worker::{Cost, ModelEvent, Price, Usage};

/// The usage and cost of one turn so far.
#[derive(Debug)]
pub(crate) struct Budget {
    price: Option<Price>,
    /// The cost of the session before this turn.
    before: Cost,
    /// Tokens of attempts without an answer, since the last answer.
    unanswered: Usage,
    /// Tokens of the running attempt.
    attempt: Usage,
    /// An answer had no token count, though its model has a price.
    uncounted: bool,
    /// An answer had no token count.
    unmetered: bool,
}

impl Budget {
    pub(super) fn new(price: Option<Price>, before: Cost) -> Self {
        Self {
            price,
            before,
            unanswered: Usage::default(),
            attempt: Usage::default(),
            uncounted: false,
            unmetered: false,
        }
    }

    /// Counts the tokens of attempts.
    pub(super) fn count(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Usage(usage) => self.attempt = *usage,
            ModelEvent::Retrying { .. } => self.attempt_failed(),
            ModelEvent::Stop(_) => {
                // The `response` record has all tokens of this attempt.
                self.attempt_failed();
                let usage = std::mem::take(&mut self.unanswered);
                self.uncounted |= self.price.is_some_and(|price| !counted(price, &usage));
                self.unmetered |= usage == Usage::default();
            }
            ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Sealed(_)
            | ModelEvent::Shortfall(_)
            | ModelEvent::Notice(_)
            | ModelEvent::CallStarted { .. }
            | ModelEvent::CallArguments { .. } => {}
        }
    }

    /// The running attempt will have no answer: counts its tokens as unanswered.
    pub(super) fn attempt_failed(&mut self) {
        self.unanswered = self.unanswered.plus(std::mem::take(&mut self.attempt));
    }

    /// An answer with this usage could not be stored.
    pub(super) fn answer_lost(&mut self, usage: Usage) {
        self.unanswered = self.unanswered.plus(usage);
    }

    /// Whether the turn has reached its cost limit, if the session has cost `total`.
    pub(super) fn is_spent(&self, most: Option<Cost>, total: Cost) -> bool {
        let unanswered = self
            .price
            .map_or_else(Cost::default, |price| price.of(&self.unanswered));
        most.is_some_and(|most| total.since(self.before).plus(unanswered) >= most)
    }

    /// Whether the turn has reached its limit on tokens, if its answers took `used`.
    pub(super) fn is_out_of_tokens(&self, most: Option<u64>, used: Usage) -> bool {
        most.is_some_and(|most| used.plus(self.unanswered).tokens() >= most)
    }

    /// Whether the tokens of the turn are unknown.
    pub(super) fn is_unmetered(&self) -> bool {
        self.unmetered
    }

    /// Whether the cost of the turn is unknown.
    pub(super) fn is_uncounted(&self) -> bool {
        self.uncounted
    }

    /// The cost of an answer, if it is known.
    pub(super) fn cost(&self, usage: &Usage) -> Option<Cost> {
        self.price
            .filter(|price| counted(*price, usage))
            .map(|price| price.of(usage))
    }

    /// Usage of attempts without an answer, including the running one.
    pub(super) fn unanswered(&self) -> Option<Unanswered> {
        let usage = self.unanswered.plus(self.attempt);
        let cost = self.price.map(|price| price.of(&usage));
        (usage != Usage::default()).then_some(Unanswered { usage, cost })
    }
}

/// Whether tokens were counted, if the model has a price. No answer takes zero tokens, so zero means that the provider
/// did not count.
fn counted(price: Price, usage: &Usage) -> bool {
    price == Price::FREE || *usage != Usage::default()
}
