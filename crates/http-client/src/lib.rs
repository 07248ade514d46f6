//! HTTP/1.1 exchanges over an [`authority::Net`] grant: one endpoint, one connection, bounded waits and sizes.
//!
//! Nothing runs in the background: the connection is polled by whoever waits for it, so an idle endpoint costs no
//! wake-up, and dropping a request's future ends it. Redirects are not followed, compression is not asked for, a
//! proxy is not used, nothing is tried twice but a kept connection that turned out to be dead.
//!
//! It knows no vendor, no tool and no policy: what may be reached is the grant's, what an answer means is the
//! caller's.
#![deny(clippy::wildcard_enum_match_arm)]

mod client;
mod connection;
mod error;
mod tls;
mod upload;
mod url;

pub use self::url::{BadUrl, BaseUrl, MAX_URL, Url};
pub use client::{HttpClient, HttpRequest, HttpResponse, MAX_ERROR_BODY, MAX_RESPONSE, Timeouts};
pub use error::{Error, HttpErrorKind};
pub use hyper::body::Bytes;
pub use hyper::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
pub use tls::Tls;
pub use upload::Upload;
