//! A model that plays a script: for tests, demonstrations and bug reports.
//!
//! A script is JSON Lines. Each line is one answer; blank lines and lines that begin with `#` are skipped.
//!
//! ```text
//! # read a file, then say what it is
//! {"calls":[{"name":"Read","arguments":{"path":"README.md"}}]}
//! {"text":"It is a read-me.","usage":{"input":120,"output":9}}
//! ```
//!
//! | key | means |
//! |---|---|
//! | `text` | the answer's text |
//! | `reasoning` | reasoning shown before it |
//! | `calls` | a list of `{"name":…,"arguments":…}`; `arguments` is an object, or a string that is sent unchanged (to try what is no JSON) |
//! | `stop` | `end_turn`, `tool_use`, `max_tokens`, `refusal`, `paused`, or a provider's own reason; by default `tool_use` when there are calls, else `end_turn` |
//! | `usage` | `{"input":…,"output":…,"cached":…,"cache_write":…,"reasoning":…}`, each 0 by default |
//! | `retries` | how many times the answer first breaks off in the middle and restarts, without waiting |
//! | `cut` | `true`: the stream ends before its stop reason, for good |
//! | `error` | `{"message":…,"kind":…,"help":…}`: the request fails; `kind` is `unavailable` unless said otherwise |
//! | `delay_ms` | how long to wait before answering; nothing waits unless asked to |
//!
//! An unknown key is an error. The place in the script is the number of answers that are in the request's
//! history, so a restored or continued session continues at the same place. An answer that adds nothing to history (an
//! error, a cut, an empty line `{}`) therefore stays the next one. After the last line every request fails.

use async_trait::async_trait;
use authority::text::without_bom;
use llm_worker::model::EventSink;
use llm_worker::projection::{Dialect, Neutral, neutral};
use llm_worker::{
    ErrorKind, Item, Model, ModelError, ModelEvent, ModelRequest, Price, StopReason, Usage,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// A model that plays a script.
#[derive(Debug)]
pub struct Scripted {
    name: String,
    answers: Vec<ScriptLine>,
    price: Option<Price>,
    context_window: Option<u64>,
}

/// The error of parsing a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{script}, line {line}: {problem}")]
pub struct ScriptError {
    pub script: String,
    /// From 1.
    pub line: usize,
    pub problem: String,
}

impl ScriptError {
    /// Always [`ErrorKind::FixInput`].
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::FixInput
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptLine {
    #[serde(default)]
    text: String,
    #[serde(default)]
    reasoning: String,
    #[serde(default)]
    calls: Vec<Call>,
    stop: Option<String>,
    usage: Option<ScriptUsage>,
    #[serde(default)]
    retries: u32,
    #[serde(default)]
    cut: bool,
    error: Option<ScriptFailure>,
    delay_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    arguments: Box<RawValue>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ScriptUsage {
    input: u64,
    output: u64,
    cached: u64,
    cache_write: u64,
    reasoning: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFailure {
    message: String,
    kind: Option<ErrorKind>,
    help: Option<String>,
}

impl Scripted {
    /// Parses a script. `name` is the model's name, as in `scripted:FILE`.
    ///
    /// # Errors
    /// The first line that is not an answer.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let lines = without_bom(text)
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let answers = lines.map(|(at, line)| {
            let error = |problem| ScriptError {
                script: name.to_owned(),
                line: at + 1,
                problem,
            };
            let answer: ScriptLine =
                serde_json::from_str(line).map_err(|why| error(why.to_string()))?;
            let fits = |call: &Call| call.arguments.get().starts_with(['{', '"']);
            match answer.calls.iter().position(|call| !fits(call)) {
                Some(call) => Err(error(format!(
                    "calls[{call}].arguments: expected an object or a string"
                ))),
                None => Ok(answer),
            }
        });
        Ok(Self {
            name: name.to_owned(),
            answers: answers.collect::<Result<_, _>>()?,
            price: None,
            context_window: None,
        })
    }

    /// Sets a price for the tokens in `usage`.
    #[must_use]
    pub fn priced(self, price: Option<Price>) -> Self {
        Self { price, ..self }
    }

    /// Sets the size of the context window.
    #[must_use]
    pub fn windowed(self, context_window: Option<u64>) -> Self {
        Self {
            context_window,
            ..self
        }
    }

    async fn play(&self, items: &[Item], events: &EventSink) -> Result<(), ModelError> {
        let at = answers_in(items);
        let Some(answer) = self.answers.get(at) else {
            return Err(self.over(at));
        };
        if let Some(wait) = answer.delay_ms {
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        let tell = async |event| {
            events
                .send(event)
                .await
                .map_err(|_| self.fault(ErrorKind::Cancelled, "nobody listens"))
        };
        for attempt in 1..=answer.retries {
            for event in answer.events() {
                tell(event).await?;
            }
            let why = format!("{}: scripted break", self.name);
            tell(ModelEvent::Retrying {
                attempt,
                delay: Duration::ZERO,
                why,
            })
            .await?;
        }
        if let Some(fault) = &answer.error {
            let ScriptFailure {
                message,
                kind,
                help,
            } = fault;
            let message = message.clone();
            let help = help.clone();
            return Err(ModelError {
                kind: kind.unwrap_or(ErrorKind::Unavailable),
                message,
                help,
            });
        }
        for event in answer.events() {
            tell(event).await?;
        }
        if answer.cut {
            return Err(self.fault(
                ErrorKind::Unavailable,
                "the stream ended without a stop reason",
            ));
        }
        if let Some(ScriptUsage {
            input,
            output,
            cached,
            cache_write,
            reasoning,
        }) = answer.usage
        {
            tell(ModelEvent::Usage(Usage {
                input,
                output,
                cached,
                cache_write,
                reasoning,
            }))
            .await?;
        }
        tell(ModelEvent::Stop(answer.stop())).await
    }

    fn fault(&self, kind: ErrorKind, what: &str) -> ModelError {
        ModelError {
            kind,
            message: format!("{}: {what}", self.name),
            help: None,
        }
    }

    fn over(&self, played: usize) -> ModelError {
        let lines = self.answers.len();
        ModelError {
            kind: ErrorKind::FixInput,
            message: format!(
                "{}: the model script has no answer left (answers in the script: {lines}; used by this pod: {played})",
                self.name
            ),
            help: Some("add an answer to the model script, or use a new pod".to_owned()),
        }
    }
}

impl ScriptLine {
    fn events(&self) -> Vec<ModelEvent> {
        let mut events = Vec::new();
        if !self.reasoning.is_empty() {
            events.push(ModelEvent::Reasoning(self.reasoning.clone()));
        }
        if !self.text.is_empty() {
            events.push(ModelEvent::Text(self.text.clone()));
        }
        for (index, call) in self.calls.iter().enumerate() {
            events.push(ModelEvent::CallStarted {
                index,
                name: call.name.clone(),
            });
            let fragment = call.arguments_text();
            if !fragment.is_empty() {
                events.push(ModelEvent::CallArguments { index, fragment });
            }
        }
        events
    }

    fn stop(&self) -> StopReason {
        match self.stop.as_deref() {
            None if self.calls.is_empty() => StopReason::EndTurn,
            None => StopReason::ToolUse,
            Some("end_turn") => StopReason::EndTurn,
            Some("tool_use") => StopReason::ToolUse,
            Some("max_tokens") => StopReason::MaxTokens,
            Some("refusal") => StopReason::Refusal,
            Some("paused") => StopReason::Paused,
            Some(other) => StopReason::Other(other.to_owned()),
        }
    }
}

impl Call {
    /// The content of a string, or the object as it was written.
    fn arguments_text(&self) -> String {
        let written = self.arguments.get();
        serde_json::from_str(written).unwrap_or_else(|_| written.to_owned())
    }
}

#[async_trait]
impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        Arc::new(Neutral)
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn context_window(&self) -> Option<u64> {
        self.context_window
    }

    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError> {
        let body = neutral::decode(&request.body().to_vec());
        let body = body.map_err(|error| {
            self.fault(
                ErrorKind::Bug,
                &format!("a request it cannot read: {error}"),
            )
        })?;
        self.play(&body.items, &events).await
    }
}

/// The number of answers in a history. An answer is reasoning, text and calls, in that order and each optional: an item
/// out of this order starts the next answer, and so does an item that is not the model's. A call of a person is no answer.
fn answers_in(items: &[Item]) -> usize {
    let mut count = 0;
    let mut place = 0;
    let mut is_of_person = false;
    for item in items {
        let is_call = std::mem::replace(&mut is_of_person, matches!(item, Item::Command { .. }));
        if is_call {
            continue;
        }
        let here = match item {
            Item::Reasoning { .. } => 1,
            Item::Assistant { .. } => 2,
            Item::ToolCall { .. } => 3,
            Item::User { .. }
            | Item::Command { .. }
            | Item::System { .. }
            | Item::ToolResult { .. } => 0,
        };
        let goes_on = here > place || (here == 3 && place == 3);
        count += usize::from(here > 0 && (place == 0 || !goes_on));
        place = here;
    }
    count
}

#[cfg(test)]
mod tests;
