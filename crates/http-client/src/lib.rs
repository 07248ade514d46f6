//! HTTP/1.1 exchanges over an [`authority::Net`] grant: one endpoint, one connection, bounded waits and sizes.
//!
//! Nothing runs in the background: the connection is polled by the future that waits for it, so an idle endpoint costs
//! no wake-up, and dropping a request's future cancels it. Redirects are not followed, compression is not requested,
//! a proxy is used where one is given, and nothing is retried except on a kept connection that the server had closed.
//!
//! It does not depend on vendors, tools or policy: the grant decides which hosts can be reached, the caller interprets
//! responses.
#![deny(clippy::wildcard_enum_match_arm)]

mod client;
mod connection;
mod error;
mod proxy;
pub mod sse;
mod tls;
mod upload;
mod url;

pub use self::url::{BaseUrl, InvalidUrl, MAX_URL, Url};
pub use client::{HttpClient, HttpRequest, HttpResponse, MAX_ERROR_BODY, MAX_RESPONSE, Timeouts};
pub use error::{Error, HttpErrorKind};
pub use hyper::body::Bytes;
pub use hyper::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
pub use proxy::{InvalidProxy, Proxy, is_direct};
pub use tls::{InvalidCertificates, Tls};
pub use upload::Upload;
