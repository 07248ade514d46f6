//! The error of an index: a kind that says what the caller does next, and a text for people.

use rusqlite::ErrorCode;

/// What the caller of an operation on an index can do about its error; see [`Error::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request itself is wrong: an empty query, an id that no document has.
    FixInput,
    /// There is no index yet: a sync creates it.
    Missing,
    /// The index is damaged or of another version: a sync builds it again.
    Damaged,
    /// Another process writes the index.
    Busy,
    /// The disk is full, or a bound of this crate was reached.
    Exhausted,
    /// The grant of the index or of a source was revoked, or the system refused.
    Denied,
    /// The caller ended it.
    Cancelled,
    /// The system failed, or a source could not be listed.
    Unavailable,
}

/// A failed operation on an index or a source.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// An error of a connector, or of this crate.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ErrorKind::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => ErrorKind::Damaged,
            Some(ErrorCode::DiskFull | ErrorCode::TooBig | ErrorCode::OutOfMemory) => {
                ErrorKind::Exhausted
            }
            Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => ErrorKind::Denied,
            Some(ErrorCode::OperationInterrupted) => ErrorKind::Cancelled,
            // A table or a column that is not there: something else wrote the file.
            Some(ErrorCode::Unknown | ErrorCode::TypeMismatch) => ErrorKind::Damaged,
            Some(_) => ErrorKind::Unavailable,
            None => ErrorKind::Damaged,
        };
        Self::new(kind, format!("the index: {error}"))
    }
}

impl From<authority::Error> for Error {
    fn from(error: authority::Error) -> Self {
        use authority::ErrorKind as Theirs;
        let kind = match error.kind() {
            Theirs::FixInput | Theirs::Unavailable | Theirs::Bug => ErrorKind::Unavailable,
            Theirs::Denied | Theirs::Revoked => ErrorKind::Denied,
            Theirs::Exhausted => ErrorKind::Exhausted,
            Theirs::Cancelled => ErrorKind::Cancelled,
        };
        Self::new(kind, error.to_string())
    }
}
