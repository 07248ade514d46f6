//! The kinds of errors that all crates but the store share. Defines no errors.

use serde::{Deserialize, Serialize};

/// What the caller of a failed operation can do next. Errors of the host, of tools and of models have a `kind()` of
/// this type; the model sees it with a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Try again later, unchanged.
    Retry,
    /// Change the input.
    FixInput,
    /// Not allowed; ask for authority.
    Denied,
    /// Something needed is missing.
    Unavailable,
    /// Stored data is damaged.
    Corrupt,
    /// A limit was reached.
    Exhausted,
    /// The operation was cancelled.
    Cancelled,
    /// A bug in this program.
    Bug,
}
