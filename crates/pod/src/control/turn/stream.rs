//! Receives a model's answer while it streams.

use llm_worker::model::EVENT_QUEUE;
use llm_worker::projection::ModelRequest;
use llm_worker::{ErrorKind, Model, ModelError, ModelEvent};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The task that runs the model's client for one request, and its events. Dropping it aborts the task.
pub(crate) struct Stream {
    events: mpsc::Receiver<ModelEvent>,
    done: JoinHandle<Result<(), ModelError>>,
    stopped: bool,
}

/// An event of the stream.
pub(crate) enum StreamEvent {
    Event(ModelEvent),
    /// The answer is complete, and the model's client has ended.
    Whole,
    /// The request failed: the answer stays incomplete.
    Failed(ModelError),
}

impl Stream {
    /// Sends a request whose record is durable. A client that panics is an error here.
    pub(crate) fn of(model: Arc<dyn Model>, request: ModelRequest) -> Self {
        let (sink, events) = mpsc::channel(EVENT_QUEUE);
        let done = tokio::spawn(async move { model.stream(request, sink).await });
        Self {
            events,
            done,
            stopped: false,
        }
    }

    /// The next event, or the end after all events. What a client sends after the stop is not part of the answer.
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> StreamEvent {
        while let Some(event) = self.events.recv().await {
            if !self.stopped {
                self.stopped = matches!(event, ModelEvent::Stop(_));
                return StreamEvent::Event(event);
            }
        }
        let bug = |message: String| {
            StreamEvent::Failed(ModelError {
                kind: ErrorKind::Bug,
                message,
                help: None,
            })
        };
        match (&mut self.done).await {
            _ if self.stopped => StreamEvent::Whole,
            Ok(Ok(())) => bug("the model's answer ended without a stop reason".to_owned()),
            Ok(Err(error)) => StreamEvent::Failed(error),
            Err(panic) => bug(format!("the model's client failed: {panic}")),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.done.abort();
    }
}
