//! Receives a model's answer while it streams.

use crate::session::kind_of_store;
use llm_worker::attachment::check_total;
use llm_worker::model::EVENT_QUEUE;
use llm_worker::projection::ModelRequest;
use llm_worker::{Attachment, ErrorKind, Model, ModelError, ModelEvent};
use session_store::{BlobError, Blobs};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

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
    pub(crate) fn of(model: Arc<dyn Model>, request: ModelRequest, blobs: &Blobs) -> Self {
        let (sink, events) = mpsc::channel(EVENT_QUEUE);
        let needs_files = request.body().files().next().is_some();
        let blobs = needs_files.then(|| blobs.clone());
        let done = tokio::spawn(async move {
            let request = match blobs {
                Some(blobs) => with_files(request, blobs).await?,
                None => request,
            };
            model.stream(request, sink).await
        });
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

/// The request with the bytes of its files, which are read now: what was recorded are their digests.
async fn with_files(request: ModelRequest, blobs: Blobs) -> Result<ModelRequest, ModelError> {
    check_total(request.body().files().map(|file| file.bytes)).map_err(|what| ModelError {
        kind: ErrorKind::FixInput,
        message: format!("cannot send the conversation: it has {what}"),
        help: Some(
            "leave out the oldest turns with `/compact turns`, or continue in a new pod".to_owned(),
        ),
    })?;
    let read = move || {
        request.with_files(|file| {
            let bytes = blobs.view().read(&file.digest, file.bytes);
            bytes.map_err(|error| unread(file, &error))
        })
    };
    match spawn_blocking(read).await {
        Ok(request) => request,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

fn unread(file: &Attachment, error: &BlobError) -> ModelError {
    ModelError {
        kind: kind_of_store(error.kind()),
        message: format!("cannot send {}: {error}", file.about()),
        help: Some(
            "attach the same file again, which stores it anew, or continue in a new pod".to_owned(),
        ),
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.done.abort();
    }
}
