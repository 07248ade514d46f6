//! Anthropic's Messages API, streamed.
//!
//! Unless an effort is set, thinking is neither requested nor disabled: the provider's default is used. Thinking is sent
//! back with its signature. Prompt caching is requested (see [`Messages`]) with the default lifetime of five minutes.

mod decode;
mod dialect;

pub use dialect::Messages;

use crate::endpoint::{Endpoint, EndpointConfig, Wire, hidden};
use crate::json_text::vendor_model;
use http_client::{HeaderMap, HeaderValue};
use llm_worker::Model;
use llm_worker::projection::Dialect;
use std::sync::Arc;

/// Creates a model of a Messages endpoint; it connects on the first request. The API requires an output limit; without
/// one in the configuration it is [`max_output`].
#[must_use]
pub fn model(config: EndpointConfig) -> Arc<dyn Model> {
    Arc::new(endpoint(config))
}

fn endpoint(mut config: EndpointConfig) -> Endpoint<MessagesWire> {
    config
        .max_output
        .get_or_insert_with(|| max_output(vendor_model(&config.name)));
    Endpoint::new(config, MessagesWire)
}

/// The wire format: the key and the API version are headers.
pub(crate) struct MessagesWire;

impl Wire for MessagesWire {
    const PATH: &'static str = "/v1/messages";
    const MODELS: &'static str = "/v1/models";
    // In the provider's own clients the version is not part of the base URL; many people write it there anyway.
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

/// An output token limit that a model accepts, by its name at the vendor. Every Claude since 4 accepts 32,000, which
/// leaves room for thinking; other models behind the same API may accept less.
#[must_use]
pub fn max_output(model: &str) -> u32 {
    const LIMITS: [(&str, u32); 5] = [
        ("claude-3-7", 32_000),
        ("claude-3-5", 8_192),
        ("claude-3-", 4_096),
        ("claude-2", 4_096),
        ("claude-", 32_000),
    ];
    LIMITS
        .iter()
        .find(|(begin, _)| model.starts_with(begin))
        .map_or(dialect::FALLBACK, |(_, limit)| *limit)
}

#[cfg(test)]
mod tests;
