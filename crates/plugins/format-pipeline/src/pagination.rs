//! ListPages of a list. They are cut from one stored value, so that no element is on two pages or on none, whatever the
//! vendor's list does meanwhile.

use crate::json::Json;
use crate::token_counter::TokenCounter;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// Most different states that a line counts.
const STATES: usize = 4;

/// Most pages that are listed; the last line says how many there are.
const LISTED: usize = 20;

/// The pages of a list of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPages {
    ranges: Vec<Range<usize>>,
}

impl ListPages {
    /// Cuts a list into pages of about this many tokens; an element that has more is a page of its own.
    pub fn cut(items: &[Json<'_>], budget: u64, counter: TokenCounter) -> Self {
        let mut ranges = Vec::new();
        let mut from = 0;
        let mut spent = 0;
        for (at, item) in items.iter().enumerate() {
            let tokens = counter.count(&item.compact());
            if at > from && spent + tokens > budget {
                ranges.push(from..at);
                (from, spent) = (at, 0);
            }
            spent += tokens;
        }
        if from < items.len() {
            ranges.push(from..items.len());
        }
        Self { ranges }
    }

    /// How many pages there are; none for an empty list.
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// The elements of a page, counted from 1.
    pub fn page<'v, 'a>(&self, items: &'v [Json<'a>], page: usize) -> Option<&'v [Json<'a>]> {
        items.get(self.ranges.get(page.checked_sub(1)?)?.clone())
    }

    /// Which pages there are and which one is shown. `noun` is what the elements are, such as `issues`. Empty where there is
    /// one page.
    pub fn index(&self, items: &[Json<'_>], noun: &str, shown: usize) -> String {
        let here = self.page(items, shown).map_or(0, <[_]>::len);
        if self.count() < 2 {
            return String::new();
        }
        let mut out = format!(
            "[chunks] {here}/{} {noun} in {} chunks:\n",
            items.len(),
            self.count()
        );
        for (at, range) in self.ranges.iter().enumerate() {
            let chunk = at + 1;
            if chunk > LISTED && chunk != shown {
                continue;
            }
            let states = states(items.get(range.clone()).unwrap_or_default());
            let mark = if chunk == shown {
                " << returned in this response"
            } else {
                ""
            };
            let first = range.start + 1;
            let last = range.end;
            let limit = range.len();
            writeln!(
                out,
                "  chunk {chunk} (offset={}, limit={limit}): {noun} #{first}-{last}{states}{mark}",
                range.start
            )
            .ok();
        }
        out.push_str(
            "[/chunks] Use `chunk: N` parameter to fetch a specific chunk. You may not need all chunks.",
        );
        out
    }
}

/// How many elements are in which state, if they say.
fn states(items: &[Json<'_>]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        let Json::Object(fields) = item else {
            return String::new();
        };
        let state = fields
            .iter()
            .find(|(name, _)| name == "state" || name == "status");
        if let Some((_, Json::Text(state))) = state {
            *counts.entry(state).or_default() += 1;
        }
    }
    if counts.is_empty() || counts.len() > STATES {
        return String::new();
    }
    let all: Vec<String> = counts
        .iter()
        .map(|(state, n)| format!("{n} {state}"))
        .collect();
    format!(" ({})", all.join(", "))
}
