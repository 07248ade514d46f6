//! OpenAI's Responses API, streamed. Nothing is stored at the provider: reasoning comes encrypted and is sent back with
//! what followed it. Background responses are not used: a request that nobody waits for would outlive its pod.

mod decode;
mod dialect;

pub use dialect::Responses;

use crate::endpoint::{Endpoint, EndpointConfig, Wire};
use crate::openai_chat::bearer;
use http_client::HeaderMap;
use llm_worker::Model;
use llm_worker::projection::Dialect;
use std::sync::Arc;

/// Creates a model of a Responses endpoint; it connects on the first request.
#[must_use]
pub fn model(config: EndpointConfig) -> Arc<dyn Model> {
    Arc::new(Endpoint::new(config, ResponsesWire))
}

/// The wire format: the key is a bearer token.
pub(crate) struct ResponsesWire;

impl Wire for ResponsesWire {
    const PATH: &'static str = "/responses";
    const MODELS: &'static str = "/models";
    const VERSION: &'static str = "";
    type Decoder = decode::ResponsesDecoder;

    fn headers(key: Option<&str>) -> Option<HeaderMap> {
        bearer(key)
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        Arc::new(Responses)
    }
}

#[cfg(test)]
mod tests;
