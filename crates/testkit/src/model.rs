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

/// One scripted answer, event by event; for [`ModelScript`].
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
    /// An empty answer: the stream ends without a stop until events are added.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A complete answer of text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::new().say(text).stop(StopReason::EndTurn)
    }

    /// A complete answer of calls: names and raw arguments.
    #[must_use]
    pub fn calls(calls: &[(&str, &str)]) -> Self {
        let calls = calls.iter().enumerate();
        calls
            .fold(Self::new(), |answer, (index, (name, arguments))| {
                answer.call(index, name, arguments)
            })
            .stop(StopReason::ToolUse)
    }

    /// Adds a call: its place among the calls of the answer, from 0, its name and its raw arguments.
    #[must_use]
    pub fn call(self, index: usize, name: &str, arguments: &str) -> Self {
        self.event(ModelEvent::CallStarted {
            index,
            name: name.to_owned(),
        })
        .event(ModelEvent::CallArguments {
            index,
            fragment: arguments.to_owned(),
        })
    }

    /// Adds an event.
    #[must_use]
    pub fn event(mut self, event: ModelEvent) -> Self {
        self.0.push(Beat::Event(event));
        self
    }

    /// Adds text.
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.event(ModelEvent::Text(text.to_owned()))
    }

    /// Adds a wait until the latch is open.
    #[must_use]
    pub fn wait_at(mut self, gate: &Latch) -> Self {
        self.0.push(Beat::Wait(gate.clone()));
        self
    }

    /// From this point of the stream on, opens the latch as soon as the control thread is idle; in paused time only.
    #[must_use]
    pub fn when_idle(mut self, gate: &Latch) -> Self {
        self.0.push(Beat::WhenIdle(gate.clone()));
        self
    }

    /// Adds a usage of ten input tokens and one output token, and the stop.
    #[must_use]
    pub fn stop(self, reason: StopReason) -> Self {
        let usage = Usage {
            input: 10,
            output: 1,
            cached: 0,
            cache_write: 0,
            reasoning: 0,
        };
        self.event(ModelEvent::Usage(usage))
            .event(ModelEvent::Stop(reason))
    }

    /// Adds a failure of the request.
    #[must_use]
    pub fn fail(mut self, error: ModelError) -> Self {
        self.0.push(Beat::Fail(error));
        self
    }
}

/// A [`Model`] that answers from a list and records its requests. A request after the last answer
/// fails the turn.
pub struct ModelScript {
    answers: Mutex<VecDeque<ScriptedAnswer>>,
    requests: Mutex<Vec<Vec<u8>>>,
    dialect: Arc<dyn Dialect>,
    window: Mutex<Option<u64>>,
}

impl ModelScript {
    /// A model with these answers and the [`Neutral`] dialect.
    #[must_use]
    pub fn new(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Arc<Self> {
        Self::in_dialect(Arc::new(Neutral), answers)
    }

    /// A model with these answers and that dialect.
    #[must_use]
    pub fn in_dialect(
        dialect: Arc<dyn Dialect>,
        answers: impl IntoIterator<Item = ScriptedAnswer>,
    ) -> Arc<Self> {
        let answers = Mutex::new(answers.into_iter().collect());
        Arc::new(Self {
            answers,
            requests: Mutex::default(),
            dialect,
            window: Mutex::default(),
        })
    }

    /// Gives the model a window: a token is four bytes of a request, the answers count them so, and a request that does
    /// not fit fails.
    #[must_use]
    pub fn windowed(self: Arc<Self>, tokens: u64) -> Arc<Self> {
        *self.window.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokens);
        self
    }

    /// Adds an answer behind the remaining ones.
    pub fn add(&self, answer: ScriptedAnswer) {
        self.answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(answer);
    }

    /// Removes the remaining answers.
    pub fn clear(&self) {
        self.answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// The bodies of all requests, oldest first.
    #[must_use]
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// All requests, decoded; only for a script in [`Neutral`].
    #[must_use]
    pub fn requests(&self) -> Vec<NeutralRequest> {
        self.bodies()
            .iter()
            .map(|body| neutral::decode(body).expect("a neutral request"))
            .collect()
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

    fn context_window(&self) -> Option<u64> {
        *self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError> {
        let tokens = request.body().len / 4;
        let window = self.context_window();
        if let Some(window) = window.filter(|window| tokens > *window) {
            let message = format!("{tokens} tokens do not fit a window of {window}");
            return Err(ModelError {
                kind: ErrorKind::Exhausted,
                message,
                help: None,
            });
        }
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request.body().to_vec());
        let answer = self
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let Some(ScriptedAnswer(beats)) = answer else {
            let message = "the script has no answer left".to_owned();
            return Err(ModelError {
                kind: ErrorKind::FixInput,
                message,
                help: None,
            });
        };
        for beat in beats {
            match beat {
                Beat::Event(ModelEvent::Usage(usage)) if window.is_some() => {
                    drop(
                        events
                            .send(ModelEvent::Usage(Usage {
                                input: tokens,
                                ..usage
                            }))
                            .await,
                    );
                }
                // Sending fails if the host dropped the stream.
                Beat::Event(event) => drop(events.send(event).await),
                Beat::Wait(gate) => gate.pass().await,
                Beat::WhenIdle(gate) => drop(tokio::spawn(async move {
                    // Paused time advances when nothing else can run.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    gate.open();
                })),
                Beat::Fail(error) => return Err(error),
            }
        }
        Ok(())
    }
}
