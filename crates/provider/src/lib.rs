//! Providers: encoding requests for vendors' APIs and decoding their responses to model events.
//!
//! Codecs are pure: bytes in, events out, whatever the fragmentation. The network is reached only by [`http_client`]
//! with a given [`authority::Net`], clock and randomness only through [`retry::Pacing`]. This crate does not depend on
//! the history's policy, the meaning of tools, files (a script is passed in as text), configuration or the storage of
//! keys.

pub mod anthropic;
pub mod catalog;
pub mod effort;
pub mod endpoint;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod gemini;
pub mod media;
pub mod openai_chat;
pub mod openai_responses;
pub mod prices;
pub mod recording;
pub mod retry;
pub mod scripted;
pub mod windows;

mod decode;
mod failure;
mod json_text;
mod lenient;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;
mod vendor_error;

pub use failure::HelpTerms;
pub use http_client::{BaseUrl, InvalidProxy, InvalidUrl, Proxy, Timeouts, Tls, is_direct};
