//! Work for the time in which the model thinks about its first request. Does not depend on what the work is.

use async_trait::async_trait;
use llm_worker::MediaType;
use llm_worker::model::{EventSink, Model, ModelError, Price, Thinking};
use llm_worker::projection::{Dialect, ModelRequest};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::{spawn_blocking, yield_now};

/// Turns of the runtime in which a connection to this machine is made and the request is sent. To another machine the
/// work runs beside the connecting.
const SENDING: usize = 4;

type Work = Box<dyn FnOnce() + Send>;

/// A model with work that runs once, after the first request was sent.
pub(super) struct WithWork {
    model: Arc<dyn Model>,
    work: Mutex<Option<Work>>,
}

impl WithWork {
    pub(super) fn new(model: Arc<dyn Model>, work: impl FnOnce() + Send + 'static) -> Arc<Self> {
        let work: Work = Box::new(work);
        Arc::new(Self {
            model,
            work: Mutex::new(Some(work)),
        })
    }
}

#[async_trait]
impl Model for WithWork {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        self.model.dialect()
    }

    fn max_output(&self) -> Option<u32> {
        self.model.max_output()
    }

    fn thinking(&self) -> Thinking {
        self.model.thinking()
    }

    fn media(&self) -> &[MediaType] {
        self.model.media()
    }

    fn price(&self) -> Option<Price> {
        self.model.price()
    }

    fn context_window(&self) -> Option<u64> {
        self.model.context_window()
    }

    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError> {
        let work = self
            .work
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(work) = work {
            tokio::spawn(async move {
                for _ in 0..SENDING {
                    yield_now().await;
                }
                spawn_blocking(work);
            });
        }
        self.model.stream(request, events).await
    }
}
