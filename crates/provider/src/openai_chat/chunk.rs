//! The JSON of an answer, streamed or whole. Servers differ, so every field may be missing or null.

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct Chunk {
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<ChatUsage>,
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    pub(super) index: Option<u64>,
    /// In a stream.
    pub(super) delta: Option<ChatMessage>,
    /// In a whole answer.
    pub(super) message: Option<ChatMessage>,
    pub(super) finish_reason: Option<String>,
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct ChatMessage {
    pub(super) content: Option<Value>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    pub(super) refusal: Option<Value>,
    pub(super) tool_calls: Option<Vec<CallPart>>,
    /// The older form of a single call.
    pub(super) function_call: Option<FunctionPart>,
}

impl ChatMessage {
    /// Servers that send both fields send the same text twice.
    pub(super) fn reasoning(&self) -> String {
        let named = text_of(self.reasoning_content.as_ref());
        if named.is_empty() { text_of(self.reasoning.as_ref()) } else { named }
    }
}

/// The text of a string, or of a list of parts with a `text` each; empty for anything else.
pub(super) fn text_of(value: Option<&Value>) -> String {
    if let Some(Value::Array(parts)) = value {
        return parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
    }
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[derive(Deserialize, Default)]
pub(super) struct CallPart {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) function: Option<FunctionPart>,
}

#[derive(Deserialize, Default)]
pub(super) struct FunctionPart {
    pub(super) name: Option<String>,
    arguments: Option<Value>,
}

impl FunctionPart {
    /// The arguments as text; some servers send a JSON object instead.
    pub(super) fn arguments(&self) -> String {
        match &self.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => value.to_string(),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct ChatUsage {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    pub(super) prompt_tokens_details: Option<PromptTokens>,
    /// DeepSeek's name for the cached part.
    pub(super) prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct PromptTokens {
    pub(super) cached_tokens: Option<u64>,
}
