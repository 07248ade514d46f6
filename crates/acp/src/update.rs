//! What an editor is told of a session: the updates that more than one part of the agent makes.

use serde_json::{Value, json};

/// What a client is told of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Update {
    pub(crate) body: Value,
    /// The record that it comes from; none for what is not durable yet, or in no record.
    pub(crate) seq: Option<u64>,
}

/// A text of a message; all chunks of one message have its id.
pub(crate) fn chunk(kind: &str, text: &str, message: &str) -> Value {
    json!({
        "sessionUpdate": kind,
        "content": { "type": "text", "text": text },
        "messageId": message,
    })
}

/// A text of yoi itself, in a message of its own.
pub(crate) fn note(text: &str, message: &str) -> Value {
    chunk("agent_message_chunk", text, message)
}
