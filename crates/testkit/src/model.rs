//! A model that answers from a list and records its requests.

use crate::latch::Latch;
use async_trait::async_trait;
use llm_worker::model::EventSink;
use llm_worker::projection::neutral::{self, NeutralRequest};
use llm_worker::projection::{Dialect, ModelRequest, Neutral};
use llm_worker::{ErrorKind, Model, ModelError, ModelEvent, StopReason, Usage};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One answer, event by event.
#[derive(Clone, Debug, Default)]
pub struct ScriptedAnswer(Vec<Beat>);

#[derive(Clone, Debug)]
enum Beat {
    Event(ModelEvent),
    Wait(Latch),
    WhenIdle(Latch),
    Fail(ModelError),
}

impl ScriptedAnswer {
    /// Nothing yet: a stream that ends without a stop.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A whole answer of text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::new().say(text).stop(StopReason::EndTurn)
    }

    /// A whole answer of calls: names and raw arguments.
    #[must_use]
    pub fn calls(calls: &[(&str, &str)]) -> Self {
        let started = calls.iter().enumerate().fold(Self::new(), |answer, (index, (name, arguments))| {
            let started = ModelEvent::CallStarted { index, name: (*name).to_owned() };
            let fragment = ModelEvent::CallArguments { index, fragment: (*arguments).to_owned() };
            answer.event(started).event(fragment)
        });
        started.stop(StopReason::ToolUse)
    }

    /// One more event.
    #[must_use]
    pub fn event(mut self, event: ModelEvent) -> Self {
        self.0.push(Beat::Event(event));
        self
    }

    /// More text.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.event(ModelEvent::Text(text.to_owned()))
    }

    /// Waits here until the latch is open.
    #[must_use]
    pub fn wait_at(mut self, gate: &Latch) -> Self {
        self.0.push(Beat::Wait(gate.clone()));
        self
    }

    /// From here on, opens the latch as soon as the control thread is idle; in paused time only.
    #[must_use]
    pub fn when_idle(mut self, gate: &Latch) -> Self {
        self.0.push(Beat::WhenIdle(gate.clone()));
        self
    }

    /// Usage of ten tokens in, one out, and the stop.
    #[must_use]
    pub fn stop(self, reason: StopReason) -> Self {
        let usage = Usage { input: 10, output: 1, cached: 0, cache_write: 0 };
        self.event(ModelEvent::Usage(usage)).event(ModelEvent::Stop(reason))
    }

    /// Fails here.
    #[must_use]
    pub fn fail(mut self, error: ModelError) -> Self {
        self.0.push(Beat::Fail(error));
        self
    }
}

/// The remaining answers and the requests so far. A request past the last answer fails the turn.
pub struct ModelScript {
    answers: Mutex<VecDeque<ScriptedAnswer>>,
    requests: Mutex<Vec<Vec<u8>>>,
    dialect: Arc<dyn Dialect>,
}

impl ModelScript {
    /// These answers, in [`Neutral`].
    #[must_use]
    pub fn new(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Arc<Self> {
        Self::in_dialect(Arc::new(Neutral), answers)
    }

    /// These answers to requests in that dialect.
    #[must_use]
    pub fn in_dialect(dialect: Arc<dyn Dialect>, answers: impl IntoIterator<Item = ScriptedAnswer>) -> Arc<Self> {
        let answers = Mutex::new(answers.into_iter().collect());
        Arc::new(Self { answers, requests: Mutex::default(), dialect })
    }

    /// One more answer behind those that are left.
    pub fn add(&self, answer: ScriptedAnswer) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push_back(answer);
    }

    /// Forgets the answers that are left.
    pub fn clear(&self) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The bodies of all requests, oldest first.
    #[must_use]
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same, read back; only for a script in [`Neutral`].
    #[must_use]
    pub fn requests(&self) -> Vec<NeutralRequest> {
        self.bodies().iter().map(|body| neutral::decode(body).expect("a neutral request")).collect()
    }
}

#[async_trait]
impl Model for ModelScript {
    fn name(&self) -> &str {
        "testkit/script"
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        Arc::clone(&self.dialect)
    }

    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.body().to_vec());
        let answer = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(ScriptedAnswer(beats)) = answer else {
            let message = "the script has no answer left".to_owned();
            return Err(ModelError { kind: ErrorKind::Unavailable, message, help: None });
        };
        for beat in beats {
            match beat {
                // A host that hung up wants no more.
                Beat::Event(event) => drop(events.send(event).await),
                Beat::Wait(gate) => gate.pass().await,
                Beat::WhenIdle(gate) => drop(tokio::spawn(async move {
                    // Paused time passes when nothing else can happen.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    gate.open();
                })),
                Beat::Fail(error) => return Err(error),
            }
        }
        Ok(())
    }
}
