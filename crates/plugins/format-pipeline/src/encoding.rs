//! Which text of a value costs the fewest tokens.

use crate::json::Json;
use crate::table;
use crate::token_counter::TokenCounter;
use crate::toon::{self, Delimiter};

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encoding {
    /// JSON without spaces; digits as they came.
    Json,
    /// TOON 4.0.
    Toon,
    /// A table.
    Csv,
    /// Lines of `path: value`, with tables behind them.
    KeyValue,
}

impl Encoding {
    /// The first line of a text in this encoding; JSON needs none.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Json => "",
            Self::Toon => "[TOON]\n",
            Self::Csv => "[CSV; cells are text or JSON; empty: absent]\n",
            Self::KeyValue => "[path: value]\n",
        }
    }

    /// The text of a value, with its label; none where this encoding has no form for it of at most this many bytes. JSON
    /// always has one.
    pub fn text(self, value: &Json<'_>, limit: usize) -> Option<String> {
        let body = match self {
            Self::Json => return Some(value.compact()),
            Self::Toon => toon::encode(value, Delimiter::Comma, limit),
            Self::Csv => table::csv(value, limit),
            Self::KeyValue => table::key_value(value, limit),
        }?;
        (!body.is_empty()).then(|| format!("{}{body}", self.label()))
    }
}

/// How many times as long as JSON a text may be: spaces cost few tokens, but a value can have much more of them than text.
const LONGEST: usize = 2;

/// A value as a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// How it is written.
    pub encoding: Encoding,
    /// With the line that names the encoding.
    pub text: String,
    /// By the counter that chose.
    pub tokens: u64,
}

/// The text of a value with the fewest tokens: never more than JSON without spaces has. A value that is neither a list nor
/// an object stays JSON.
pub fn cheapest(value: &Json<'_>, counter: TokenCounter) -> Encoded {
    let text = value.compact();
    let limit = text.len().saturating_mul(LONGEST);
    let mut best = Encoded {
        encoding: Encoding::Json,
        tokens: counter.count(&text),
        text,
    };
    if value.is_scalar() {
        return best;
    }
    for encoding in [Encoding::Csv, Encoding::KeyValue, Encoding::Toon] {
        let Some(text) = encoding.text(value, limit) else {
            continue;
        };
        let tokens = counter.count(&text);
        if tokens < best.tokens {
            best = Encoded {
                encoding,
                text,
                tokens,
            };
        }
    }
    best
}
