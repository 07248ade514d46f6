//! Anthropic's Messages, streamed.
//!
//! Thinking is neither asked for nor switched off: models that think by themselves do, and what they thought goes back
//! to them with its signature. Caches are asked for (see [`Messages`]) at their usual life of five minutes.

mod decode;
mod dialect;
mod event;

pub use dialect::Messages;

use crate::endpoint::{Config, Endpoint, Wire, hidden};
use crate::json_text::vendor_model;
use http_client::{HeaderMap, HeaderValue};
use llm_worker::Model;
use llm_worker::projection::Dialect;
use std::sync::Arc;

/// A model behind a Messages endpoint; nothing is connected before the first request. The API wants a limit for every
/// answer: without one in the configuration it is [`max_output`]'s.
#[must_use]
pub fn model(config: Config) -> Arc<dyn Model> {
    Arc::new(endpoint(config))
}

fn endpoint(mut config: Config) -> Endpoint<MessagesWire> {
    config.max_output.get_or_insert_with(|| max_output(vendor_model(&config.name)));
    Endpoint::new(config, MessagesWire)
}

/// The key has a header of its own, and the version of the API, too.
pub(crate) struct MessagesWire;

impl Wire for MessagesWire {
    const PATH: &'static str = "/v1/messages";
    const MODELS: &'static str = "/v1/models";
    // As the vendor's own clients have it, the version is no part of the base; many write it there all the same.
    const VERSION: &'static str = "/v1";
    type Decoder = decode::MessagesDecoder;

    fn headers(key: Option<&str>) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        if let Some(key) = key {
            headers.insert("x-api-key", hidden(key)?);
        }
        Some(headers)
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        Arc::new(Messages)
    }
}

/// The limit of an answer's tokens that a model surely takes, by its name at the vendor. Every Claude since 4 takes
/// 32,000, which leaves room to think; one that is not a Claude, behind the same API, may take less.
#[must_use]
pub fn max_output(model: &str) -> u32 {
    const LIMITS: [(&str, u32); 5] =
        [("claude-3-7", 32_000), ("claude-3-5", 8_192), ("claude-3-", 4_096), ("claude-2", 4_096), ("claude-", 32_000)];
    LIMITS.iter().find(|(begin, _)| model.starts_with(begin)).map_or(dialect::FALLBACK, |(_, limit)| *limit)
}

#[cfg(test)]
mod tests;
