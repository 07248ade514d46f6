//! What an exchange ended with, when not with an answer.

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpErrorKind {
    /// No connection, or the name does not resolve.
    Connect,
    /// A connection, but no trust, no TLS or no root certificates.
    Tls,
    /// Nothing came for too long.
    Timeout,
    /// The stream ended or broke before the answer was whole.
    Cut,
    /// The bytes are no HTTP/1.1 answer.
    Malformed,
    /// The answer is over a bound.
    TooLarge,
    /// The grant does not reach the host, or was revoked.
    Denied,
    Bug,
}

/// An exchange without a whole answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: HttpErrorKind,
    /// The same for people; names the URL.
    pub message: String,
}

impl Error {
    pub(crate) fn new(kind: HttpErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
