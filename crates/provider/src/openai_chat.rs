//! The chat completions API, streamed, for OpenAI and compatible endpoints.

mod calls;
mod decode;
mod dialect;

pub use dialect::{Chat, Flavour};

use crate::endpoint::{Endpoint, EndpointConfig, Wire, hidden};
use http_client::{HeaderMap, header};
use llm_worker::Model;
use llm_worker::projection::Dialect;
use std::sync::Arc;

/// Creates a model of a chat completions endpoint; it connects on the first request. `flavour` selects the endpoint's
/// deviations.
#[must_use]
pub fn model(config: EndpointConfig, flavour: Flavour) -> Arc<dyn Model> {
    Arc::new(Endpoint::new(config, ChatWire(flavour)))
}

/// The wire format: the key is a bearer token.
pub(crate) struct ChatWire(Flavour);

impl Wire for ChatWire {
    const PATH: &'static str = "/chat/completions";
    const MODELS: &'static str = "/models";
    const VERSION: &'static str = "";
    type Decoder = decode::ChatDecoder;

    fn headers(key: Option<&str>) -> Option<HeaderMap> {
        bearer(key)
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        Arc::new(Chat(self.0))
    }
}

/// The headers of OpenAI's APIs; none if the key cannot be a header value.
pub(crate) fn bearer(key: Option<&str>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        headers.insert(header::AUTHORIZATION, hidden(&format!("Bearer {key}"))?);
    }
    Some(headers)
}

#[cfg(test)]
mod tests;
