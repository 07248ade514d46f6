//! A result within a budget of tokens: first the cheapest encoding, then less detail, then a cut.

use crate::encoding::{Encoding, cheapest};
use crate::json::Json;
use crate::token_counter::TokenCounter;
use crate::tree::{self, LeftOut, Limit};
use crate::truncation;
use std::collections::BTreeMap;

/// Tokens that a result gets even when a turn has spent its share.
const LEAST: u64 = 500;

/// Limits of texts and lists of a value without a list that could be shortened, one for each round.
const LIMITS: [Limit; 3] = [
    Limit {
        characters: 2000,
        elements: 50,
    },
    Limit {
        characters: 400,
        elements: 20,
    },
    Limit {
        characters: 80,
        elements: 5,
    },
];

/// How many tokens results may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetConfig {
    /// One result.
    pub result: u64,
    /// One result of a tool, by its name, in place of `result`.
    pub by_tool: BTreeMap<String, u64>,
    /// All results of a turn; each gets 500 even beyond that.
    pub turn: u64,
    /// Percent of a budget that the first choice leaves free, since an estimate is no count.
    pub margin: u64,
}

impl BudgetConfig {
    /// 8,000 tokens a result, 40,000 a turn, a margin of 20 percent.
    pub const fn usual() -> Self {
        Self {
            result: 8000,
            by_tool: BTreeMap::new(),
            turn: 40_000,
            margin: 20,
        }
    }

    /// What the next result of a tool may have, after this much of the turn was spent.
    pub fn of(&self, tool: &str, spent: u64) -> u64 {
        let own = self.by_tool.get(tool).copied().unwrap_or(self.result);
        own.min(self.turn.saturating_sub(spent).max(LEAST))
    }
}

/// A result as a model gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// What is shown.
    pub text: String,
    /// How a value is written; none for a text that is no JSON.
    pub encoding: Option<Encoding>,
    /// Tokens of what came.
    pub before: u64,
    /// Tokens of what is shown, never more than before or than the budget.
    pub tokens: u64,
}

/// Writes a result within a budget. A text that is no JSON stays as it is while it fits.
pub fn shorten(text: &str, budget: u64, margin: u64, counter: TokenCounter) -> Shortened {
    let before = counter.count(text);
    let target = budget * 100_u64.saturating_sub(margin) / 100;
    let value = Json::parse(text).filter(|value| !value.is_scalar());
    let Some(value) = value else {
        let kind = truncation::kind_of(text);
        let strategy = kind.strategy();
        let shown = match before <= budget {
            true => text.to_owned(),
            false => truncation::truncate(text, kind, strategy, counter, target),
        };
        let tokens = counter.count(&shown);
        return Shortened {
            text: shown,
            encoding: None,
            before,
            tokens,
        };
    };
    let best = cheapest(&value, counter);
    if best.tokens <= budget {
        let encoding = Some(best.encoding);
        return Shortened {
            text: best.text,
            encoding,
            before,
            tokens: best.tokens,
        };
    }
    for round in 0..LIMITS.len() {
        let (less, left_out) = smaller(&value, round, target, counter);
        let less = cheapest(&less, counter);
        let line = left_out.line();
        let text = format!("{}\n{line}", less.text);
        let tokens = counter.count(&text);
        if tokens <= budget && !line.is_empty() {
            return Shortened {
                text,
                encoding: Some(less.encoding),
                before,
                tokens,
            };
        }
    }
    let kind = truncation::kind_of(&best.text);
    let strategy = kind.strategy();
    let text = truncation::truncate(&best.text, kind, strategy, counter, target);
    let tokens = counter.count(&text);
    Shortened {
        text,
        encoding: Some(best.encoding),
        before,
        tokens,
    }
}

/// Less of a value: of its longest list what fits, or of all texts and lists the beginning.
fn smaller<'a>(
    value: &Json<'a>,
    round: usize,
    target: u64,
    counter: TokenCounter,
) -> (Json<'a>, LeftOut) {
    if let Some(way) = tree::main_list(value)
        && let Some(Json::List(items)) = tree::at(value, &way)
        && items.len() > 1
    {
        let rest = counter.count(&tree::with(value, &way, Json::Null).compact());
        if rest < target / 2 {
            let strategy = tree::kind_of(items).strategy();
            let room = (target - rest) >> round;
            let (list, left_out) = tree::fit(items, strategy, counter, room);
            return (tree::with(value, &way, list), left_out);
        }
    }
    let mut left_out = LeftOut::default();
    let limit = LIMITS.get(round).copied().unwrap_or(LIMITS[0]);
    let less = tree::limited(value, limit, &mut left_out);
    (less, left_out)
}
