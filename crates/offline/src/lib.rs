//! `offline`, the embedded model: a deterministic planner of rules, not a language model.
//!
//! It reads the last prompt, finds intents in it and plans tool calls for them. It is stateless: its position in a turn
//! is derived from the results in history, so a restored session continues at the same place. It depends on the names,
//! arguments and result formats of the built-in file, search and shell tools, not on files themselves.

mod about;
mod acts;
mod answer;
mod grammar;
mod intent;
mod lang;
mod lex;
mod plan;
mod results;
mod rules;
mod runs;

pub use answer::ABOUT;
pub use plan::next;

use async_trait::async_trait;
use llm_worker::Price;
use llm_worker::model::EventSink;
use llm_worker::projection::{Dialect, ModelRequest, Neutral, neutral};
use llm_worker::{ErrorKind, Model, ModelError};
use std::sync::Arc;

/// The model's name.
pub const NAME: &str = "offline";

/// The embedded model, for `yoi` without a provider. Needs no key and no network.
#[derive(Clone, Copy, Debug)]
pub struct Offline;

#[async_trait]
impl Model for Offline {
    fn name(&self) -> &str {
        NAME
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        Arc::new(Neutral)
    }

    fn price(&self) -> Option<Price> {
        Some(Price::FREE)
    }

    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError> {
        let failed = |kind, message| ModelError {
            kind,
            message,
            help: None,
        };
        let request = neutral::decode(&request.body().to_vec())
            .map_err(|error| failed(ErrorKind::Bug, format!("offline: {error}")))?;
        for event in next(&request.items, &request.tools) {
            let sent = events.send(event).await;
            sent.map_err(|_closed| {
                failed(
                    ErrorKind::Cancelled,
                    "offline: nobody takes the answer".to_owned(),
                )
            })?;
        }
        Ok(())
    }
}
