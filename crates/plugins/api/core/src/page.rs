//! One page of a list, and where it stands in the whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Items of one page by default.
pub const USUAL_LIMIT: u32 = 20;
/// Most items of one page.
pub const MAX_LIMIT: u32 = 100;
/// The end of what can be paged to: with a larger offset a list has to be narrowed.
pub const MAX_ITEMS: u32 = 10_000;

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub offset: u32,
    pub limit: u32,
}

impl Slice {
    /// The part within the bounds.
    #[must_use]
    pub fn new(offset: u32, limit: u32) -> Self {
        Self {
            offset: offset.min(MAX_ITEMS),
            limit: limit.clamp(1, MAX_LIMIT),
        }
    }
}

/// A page of items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemPage<T> {
    pub items: Vec<T>,
    pub pagination: Pagination,
}

/// Where a page stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pagination {
    pub offset: u32,
    pub limit: u32,
    /// All items, where the provider says how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    pub has_more: bool,
    /// What continues the list, where a provider has no offsets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl<T> ItemPage<T> {
    /// A list that is whole, of which this part is shown.
    #[must_use]
    pub fn of_all(all: Vec<T>, slice: Slice) -> Self {
        let total = all.len();
        let offset = slice.offset as usize;
        let limit = slice.limit as usize;
        let has_more = total > offset.saturating_add(limit);
        Self {
            items: all.into_iter().skip(offset).take(limit).collect(),
            pagination: Pagination {
                offset: slice.offset,
                limit: slice.limit,
                total: Some(total as u64),
                has_more,
                next_cursor: None,
            },
        }
    }

    /// A list that is short.
    #[must_use]
    pub fn short(all: Vec<T>) -> Self {
        Self::of_all(all, Slice::new(0, MAX_LIMIT))
    }

    /// A page of a list that continues at a cursor.
    #[must_use]
    pub fn at_cursor(items: Vec<T>, limit: u32, next_cursor: Option<String>) -> Self {
        Self {
            items,
            pagination: Pagination {
                offset: 0,
                limit,
                total: None,
                has_more: next_cursor.is_some(),
                next_cursor,
            },
        }
    }
}

/// The default of a limit.
pub(crate) const fn usual() -> u32 {
    USUAL_LIMIT
}
