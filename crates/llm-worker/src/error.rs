//! Error kinds: what the caller does next. Defines no errors.

use serde::{Deserialize, Serialize};

/// What the caller of something that failed does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Try again later, unchanged.
    Retry,
    /// Change the input.
    FixInput,
    /// Not allowed; ask for authority.
    Denied,
    /// Something needed is not there.
    Unavailable,
    /// Stored data is damaged.
    Corrupt,
    /// A limit was reached.
    Exhausted,
    /// It was cancelled.
    Cancelled,
    /// A fault in this program.
    Bug,
}
