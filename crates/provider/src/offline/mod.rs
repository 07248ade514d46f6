//! `offline`, the embedded model: a deterministic planner of rules, not a language model.
//!
//! It reads the last prompt, finds intents in it and plans tool calls for them. It is stateless: its place in a turn
//! is re-derived from the results in history, so a restored session goes on where it was. It knows the names,
//! arguments and result shapes of the built-in file, search and shell tools; it knows nothing about files themselves.

mod answer;
mod change;
mod intent;
mod lex;
mod look;
mod plan;

use async_trait::async_trait;
use llm_worker::model::EventSink;
use llm_worker::projection::{Dialect, ModelRequest, Neutral, neutral};
use llm_worker::{ErrorKind, Item, Model, ModelError, ModelEvent, ToolDefinition};
use std::sync::Arc;

/// The model's name.
pub const NAME: &str = "offline";

/// What it is, in one line.
pub const ABOUT: &str = "a planner of fixed rules built into yoi, not a language model";

/// The embedded model. Needs no key and no network.
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

    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError> {
        let request = neutral::decode(&request.body().to_vec()).map_err(|error| bug(format!("offline: {error}")))?;
        for event in next(&request.items, &request.tools) {
            events.send(event).await.map_err(|_closed| ModelError {
                kind: ErrorKind::Cancelled,
                message: "offline: nobody takes the answer".into(),
                help: None,
            })?;
        }
        Ok(())
    }
}

/// The next events for a history whose last turn is open, ending with one [`ModelEvent::Stop`]. Pure; time linear in
/// the history.
#[must_use]
pub fn next(items: &[Item], tools: &[ToolDefinition]) -> Vec<ModelEvent> {
    plan::next(items, tools)
}

fn bug(message: String) -> ModelError {
    ModelError { kind: ErrorKind::Bug, message, help: None }
}
