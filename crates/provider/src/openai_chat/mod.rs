//! Chat completions, streamed, for OpenAI and every endpoint that speaks its language.

mod calls;
mod chunk;
mod decode;
mod dialect;

pub use dialect::{Chat, Flavour};

use crate::endpoint::{Config, Endpoint, Wire, hidden};
use async_trait::async_trait;
use http_client::{HeaderMap, header};
use llm_worker::model::EventSink;
use llm_worker::projection::Dialect;
use llm_worker::{Model, ModelError, ModelRequest, Price};
use std::sync::Arc;

/// A model behind a chat-completions endpoint.
pub struct OpenAiChat {
    endpoint: Endpoint<ChatWire>,
    flavour: Flavour,
}

/// The key is a bearer token.
pub(crate) struct ChatWire;

impl Wire for ChatWire {
    const PATH: &'static str = "/chat/completions";
    const MODELS: &'static str = "/models";
    const VERSION: &'static str = "";
    type Decoder = decode::Decoder;

    fn headers(key: Option<&str>) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert(header::AUTHORIZATION, hidden(&format!("Bearer {key}"))?);
        }
        Some(headers)
    }
}

impl OpenAiChat {
    /// A model; nothing is connected before the first request. `flavour` is what the endpoint wants differently.
    #[must_use]
    pub fn new(config: Config, flavour: Flavour) -> Self {
        Self { endpoint: Endpoint::new(config), flavour }
    }
}

#[async_trait]
impl Model for OpenAiChat {
    fn name(&self) -> &str {
        &self.endpoint.name
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        Arc::new(Chat(self.flavour))
    }

    fn max_output(&self) -> Option<u32> {
        self.endpoint.max_output
    }

    fn price(&self) -> Option<Price> {
        self.endpoint.price
    }

    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError> {
        self.endpoint.answer(request.body(), &events).await
    }
}

#[cfg(test)]
mod tests;
