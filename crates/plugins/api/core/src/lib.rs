//! What providers of issues, repositories, chats and meetings have in common: the words of their answers, the traits that
//! they implement, the tools that ask them, and HTTP with a token.
//!
//! A provider is a [`source::SourceProvider`] in a crate of its own: it serves categories, by a part for each of their services. The
//! tools are those of [`tools::CategoryTools`], declared once for all providers. Knows no provider, no configuration, no
//! files.

pub mod arguments;
pub mod category;
pub mod entity;
pub mod http;
pub mod key;
pub mod log;
pub mod page;
pub mod provider;
pub mod reading;
pub mod source;
pub mod time;
pub mod tools;
pub mod values;
pub mod walk;

pub use pod::feature::ServiceFault;

use llm_worker::ErrorKind;

/// A failure that other arguments avoid.
pub fn unfit(message: impl Into<String>) -> ServiceFault {
    ServiceFault::new(ErrorKind::FixInput, message)
}
