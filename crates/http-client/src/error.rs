//! Errors of an exchange.

use std::io;

/// What went wrong in an exchange: the caller decides by it whether to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpErrorKind {
    /// No connection, with what the system says; `NotFound` if the name does not resolve.
    Connect(Option<io::ErrorKind>),
    /// The TLS handshake failed, the certificate is not trusted, or there are no root certificates.
    Tls,
    /// A timeout of [`crate::Timeouts`] expired.
    Timeout,
    /// The stream ended before the response was complete.
    Cut,
    /// The bytes are not an HTTP/1.1 response.
    Malformed,
    /// The response is compressed, although no compression was accepted.
    Encoded,
    /// The response is over a limit.
    TooLarge,
    /// The proxy does not connect to this endpoint, or wants another user and password.
    Proxy,
    /// The grant does not include the host, or was revoked.
    Denied,
    Bug,
}

/// An exchange that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: HttpErrorKind,
    /// The message for people; names the URL.
    pub message: String,
}

impl Error {
    pub(crate) fn new(kind: HttpErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}
