//! A model wrapper that records answers as a script for [`crate::scripted`].
//!
//! Each complete answer is one line, written before its stop event is passed on; an answer that was cut, or voided by a
//! retry, is not written. Text, calls, stop reason and token counts are recorded. Provider signatures are not, as a
//! script cannot use them, nor is the order of reasoning and text.

use async_trait::async_trait;
use llm_worker::model::{EVENT_QUEUE, EventSink};
use llm_worker::projection::Dialect;
use llm_worker::{
    ErrorKind, MediaType, Model, ModelError, ModelEvent, ModelRequest, Price, StopReason, Thinking,
    Usage,
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Appends a line to the script.
pub type AppendLine = Box<dyn Fn(&str) -> io::Result<()> + Send + Sync>;

/// A model that passes requests to another model and records the answers as a script.
pub struct Recording {
    inner: Arc<dyn Model>,
    write: AppendLine,
}

impl Recording {
    /// Wraps a model; its name, dialect and events do not change.
    #[must_use]
    pub fn new(inner: Arc<dyn Model>, write: AppendLine) -> Self {
        Self { inner, write }
    }

    async fn listen(
        &self,
        mut from: mpsc::Receiver<ModelEvent>,
        events: &EventSink,
    ) -> Result<(), ModelError> {
        let mut answer = PartialAnswer::default();
        while let Some(event) = from.recv().await {
            if let Some(line) = answer.take(&event) {
                (self.write)(&line).map_err(|error| {
                    failed(ErrorKind::Unavailable, format!("the recording: {error}"))
                })?;
            }
            let gone = |_| {
                failed(
                    ErrorKind::Cancelled,
                    "nobody listens to the answer any more".to_owned(),
                )
            };
            events.send(event).await.map_err(gone)?;
        }
        Ok(())
    }
}

fn failed(kind: ErrorKind, message: String) -> ModelError {
    ModelError {
        kind,
        message,
        help: None,
    }
}

#[async_trait]
impl Model for Recording {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dialect(&self) -> Arc<dyn Dialect> {
        self.inner.dialect()
    }

    fn max_output(&self) -> Option<u32> {
        self.inner.max_output()
    }

    fn thinking(&self) -> Thinking {
        self.inner.thinking()
    }

    fn media(&self) -> &[MediaType] {
        self.inner.media()
    }

    fn price(&self) -> Option<Price> {
        self.inner.price()
    }

    fn context_window(&self) -> Option<u64> {
        self.inner.context_window()
    }

    async fn stream(&self, request: ModelRequest, events: EventSink) -> Result<(), ModelError> {
        let (sender, receiver) = mpsc::channel(EVENT_QUEUE);
        let (done, heard) = tokio::join!(
            self.inner.stream(request, sender),
            self.listen(receiver, &events)
        );
        heard.and(done)
    }
}

/// An answer so far. The turn bounds its size, because it gets every event before the next one is read.
#[derive(Default)]
struct PartialAnswer {
    reasoning: String,
    /// Texts separated by other events.
    texts: Vec<String>,
    parted: bool,
    sealed: bool,
    calls: Vec<(String, String)>,
    usage: Usage,
}

#[derive(Serialize)]
struct RecordedLine<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    reasoning: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Call<'a>>,
    stop: &'a str,
    usage: Usage,
}

#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    arguments: Arguments<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Arguments<'a> {
    Object(&'a RawValue),
    Text(&'a str),
}

impl PartialAnswer {
    /// Takes one event; returns the line when the answer is complete.
    fn take(&mut self, event: &ModelEvent) -> Option<String> {
        match event {
            ModelEvent::Text(more) => {
                match self.texts.last_mut().filter(|_| !self.parted) {
                    Some(text) => text.push_str(more),
                    None => self.texts.push(more.clone()),
                }
                self.parted = false;
                return None;
            }
            ModelEvent::Reasoning(more) => self.reasoning.push_str(more),
            ModelEvent::Sealed(_) => self.sealed = true,
            // A script does not record limits.
            ModelEvent::Shortfall(_) | ModelEvent::Notice(_) => return None,
            ModelEvent::CallStarted { name, .. } => self.calls.push((name.clone(), String::new())),
            ModelEvent::CallArguments { index, fragment } => {
                if let Some((_, arguments)) = self.calls.get_mut(*index) {
                    arguments.push_str(fragment);
                }
            }
            ModelEvent::Usage(usage) => self.usage = *usage,
            ModelEvent::Retrying { .. } => *self = Self::default(),
            ModelEvent::Stop(stop) => return Some(self.line(stop)),
        }
        self.parted = !self.texts.is_empty();
        None
    }

    fn line(&self, stop: &StopReason) -> String {
        // Joined as the turn joins the text.
        let between = if self.sealed { "\n\n" } else { "" };
        let text = self.texts.join(between);
        let calls = self
            .calls
            .iter()
            .map(|(name, raw)| Call {
                name,
                arguments: arguments(raw),
            })
            .collect();
        let line = RecordedLine {
            reasoning: &self.reasoning,
            text: &text,
            calls,
            stop: stop_name(stop),
            usage: self.usage,
        };
        serde_json::to_string(&line).unwrap_or_default()
    }
}

/// The raw object, if it reads back as the same bytes; otherwise a string of them.
fn arguments(raw: &str) -> Arguments<'_> {
    let object: Option<&RawValue> = serde_json::from_str(raw).ok();
    let same = |object: &&RawValue| {
        object.get() == raw && raw.starts_with('{') && !raw.contains(['\n', '\r'])
    };
    object
        .filter(same)
        .map_or(Arguments::Text(raw), Arguments::Object)
}

fn stop_name(stop: &StopReason) -> &str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::Refusal => "refusal",
        StopReason::Paused => "paused",
        StopReason::Other(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Scripted;
    use llm_worker::ProviderSignature;

    fn lines(events: &[ModelEvent]) -> Vec<String> {
        let mut answer = PartialAnswer::default();
        events
            .iter()
            .filter_map(|event| answer.take(event))
            .collect()
    }

    #[test]
    fn an_answer_is_a_line_that_a_script_reads() {
        let text = |text: &str| ModelEvent::Text(text.to_owned());
        let thought = |text: &str| ModelEvent::Reasoning(text.to_owned());
        let seal = || {
            ModelEvent::Sealed(ProviderSignature {
                kind: "signature".to_owned(),
                data: "s".to_owned(),
            })
        };
        let call = |index| ModelEvent::CallStarted {
            index,
            name: "Read".to_owned(),
        };
        let more = |index, fragment: &str| ModelEvent::CallArguments {
            index,
            fragment: fragment.to_owned(),
        };
        let retry = ModelEvent::Retrying {
            attempt: 1,
            delay: std::time::Duration::ZERO,
            why: "w".to_owned(),
        };
        let usage = ModelEvent::Usage(Usage {
            input: 9,
            output: 2,
            cached: 4,
            cache_write: 3,
            reasoning: 1,
        });
        let stop = |stop| ModelEvent::Stop(stop);
        const NONE: &str = r#""usage":{"input":0,"output":0,"cached":0}"#;
        let table = [
            (
                vec![thought("h"), thought("m"), text("a "), text("b"), usage, stop(StopReason::EndTurn)],
                r#"{"reasoning":"hm","text":"a b","stop":"end_turn","usage":{"input":9,"output":2,"cached":4,"cache_write":3,"reasoning":1}}"#
                    .to_owned(),
            ),
            (
                vec![call(0), more(0, "{\"path\": "), call(1), more(0, "\"a\"}"), more(1, "{oops"), call(2), more(2, " {}")]
                    .into_iter()
                    .chain([call(3), more(3, "{\n}"), stop(StopReason::ToolUse)])
                    .collect(),
                format!(
                    concat!(
                        r#"{{"calls":[{{"name":"Read","arguments":{{"path": "a"}}}},{{"name":"Read","arguments":"{{oops"}},"#,
                        r#"{{"name":"Read","arguments":" {{}}"}},{{"name":"Read","arguments":"{{\n}}"}}],"stop":"tool_use",{}}}"#
                    ),
                    NONE
                ),
            ),
            (
                vec![text("void"), call(0), retry, text("a"), thought("x"), text("b"), stop(StopReason::Paused)],
                format!(r#"{{"reasoning":"x","text":"ab","stop":"paused",{NONE}}}"#),
            ),
            (
                vec![thought("x"), seal(), text("a"), seal(), text("b"), stop(StopReason::Other("odd".to_owned()))],
                format!(r#"{{"reasoning":"x","text":"a\n\nb","stop":"odd",{NONE}}}"#),
            ),
        ];
        for (events, want) in table {
            assert_eq!(lines(&events), std::slice::from_ref(&want));
            assert!(Scripted::parse("t", &want).is_ok(), "{want}");
        }
        assert_eq!(lines(&[text("cut")]), Vec::<String>::new());
    }
}
