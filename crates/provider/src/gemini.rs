//! Gemini's own API, streamed. Thought signatures are sent back with the parts that they came with.

mod decode;
mod dialect;

pub use dialect::Gemini;

use crate::endpoint::{Endpoint, EndpointConfig, Wire, hidden};
use crate::json_text::vendor_model;
use http_client::HeaderMap;
use llm_worker::Model;
use llm_worker::projection::Dialect;
use std::sync::Arc;

/// Creates a model of a Gemini endpoint; it connects on the first request.
#[must_use]
pub fn model(config: EndpointConfig) -> Arc<dyn Model> {
    Arc::new(Endpoint::new(config, GeminiWire))
}

/// The wire format: the key is a header, and the model is a part of the path.
pub(crate) struct GeminiWire;

impl Wire for GeminiWire {
    const PATH: &'static str = "/models";
    const MODELS: &'static str = "/models?pageSize=1000";
    const VERSION: &'static str = "";
    type Decoder = decode::GeminiDecoder;

    fn path(model: &str) -> String {
        let name = vendor_model(model);
        let name = name.strip_prefix("models/").unwrap_or(name);
        format!(
            "{}/{}:streamGenerateContent?alt=sse",
            Self::PATH,
            escaped(name)
        )
    }

    fn headers(key: Option<&str>) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert("x-goog-api-key", hidden(key)?);
        }
        Some(headers)
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        Arc::new(Gemini)
    }
}

/// A model's name as a part of a path.
fn escaped(name: &str) -> String {
    let part = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    name.bytes().map(part).collect()
}

#[cfg(test)]
mod tests;
