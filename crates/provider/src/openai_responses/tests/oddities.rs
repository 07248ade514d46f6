//! What servers send that is not in the documents, and what an answer must not be lost to.

use crate::decode::{Decode, DecodeError};
use crate::openai_responses::decode::ResponsesDecoder;
use llm_worker::ModelEvent;

fn decode<'a>(mut pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut decoder = ResponsesDecoder::default();
    let mut out = Vec::new();
    let ended = pieces
        .try_for_each(|piece| decoder.push(piece, &mut out))
        .and_then(|()| decoder.finish(&mut out));
    let mut lines: Vec<String> = Vec::new();
    for event in out {
        let (kind, text) = match event {
            ModelEvent::Text(text) => ("text ", text),
            ModelEvent::Reasoning(text) => ("think ", text),
            ModelEvent::CallStarted { name, .. } => ("call ", name),
            ModelEvent::CallArguments { fragment, .. } => ("arguments ", fragment),
            ModelEvent::Sealed(signature) => ("sealed ", signature.data),
            ModelEvent::Stop(stop) => ("stop ", format!("{stop:?}")),
            ModelEvent::Notice(_) => ("notice", String::new()),
            ModelEvent::Usage(_) => continue,
            other => panic!("{other:?}"),
        };
        match lines.last_mut().filter(|last| last.starts_with(kind)) {
            Some(last) if kind == "text " || kind == "think " => last.push_str(&text),
            _ => lines.push(format!("{kind}{text}")),
        }
    }
    lines.extend(match ended {
        Ok(()) => None,
        Err(DecodeError::OtherApi(name, _)) => Some(format!("other API: {name}")),
        Err(DecodeError::Cut) => Some("cut".to_owned()),
        Err(DecodeError::Malformed(why)) => Some(format!("malformed: {why}")),
        Err(DecodeError::Vendor(error)) => Some(format!("vendor {}", error.message)),
    });
    lines
}

/// A stream of these events.
fn stream(events: &[&str]) -> String {
    events
        .iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect()
}

const DONE: &str = r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;

#[test]
fn nothing_is_lost() {
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","name":"Read"}}"#;
    let delta = r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"path\":\"a"}"#;
    let ended = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","name":"Read","arguments":"{\"path\":\"ab\"}"}}"#;
    let whole = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x"},{"type":"refusal","refusal":"no"}]}]}}"#;
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "items only at the end of the response",
            &[whole],
            &["text xno", "stop Refusal"],
        ),
        (
            "an item that is sent again with the end is not said twice",
            &[
                r#"{"type":"response.output_text.delta","output_index":0,"delta":"x"}"#,
                whole,
            ],
            &["text x", "stop EndTurn"],
        ),
        (
            "parts of two items in turns",
            &[
                r#"{"type":"response.output_text.delta","output_index":0,"delta":"a"}"#,
                added
                    .replace("\"output_index\":0", "\"output_index\":1")
                    .leak(),
                r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"a"}]}}"#,
                DONE,
            ],
            &["text a", "call Read", "arguments {}", "stop ToolUse"],
        ),
        (
            "the end of a call has its arguments",
            &[added, delta, ended, DONE],
            &["call Read", r#"arguments {"path":"ab"}"#, "stop ToolUse"],
        ),
        (
            "items that are named by their ids alone",
            &[
                r#"{"type":"response.output_item.added","item":{"id":"a","type":"function_call","name":"Read"}}"#,
                r#"{"type":"response.output_item.added","item":{"id":"b","type":"function_call","name":"List"}}"#,
                r#"{"type":"response.function_call_arguments.delta","item_id":"a","delta":"{\"path\":\"a\"}"}"#,
                r#"{"type":"response.completed","response":{"output":[{"id":"a","type":"function_call","name":"Read","arguments":"{\"path\":\"a\"}"},{"id":"b","type":"function_call","name":"List","arguments":"{}"}]}}"#,
            ],
            &[
                "call Read",
                "call List",
                r#"arguments {"path":"a"}"#,
                "arguments {}",
                "stop ToolUse",
            ],
        ),
        (
            "a call without a beginning",
            &[ended, DONE],
            &["call Read", r#"arguments {"path":"ab"}"#, "stop ToolUse"],
        ),
        (
            "a call without a name",
            &[
                r#"{"type":"response.output_item.added","item":{"type":"function_call"}}"#,
                DONE,
            ],
            &["malformed: a tool call without a name"],
        ),
        ("no end", &[added, delta], &["call Read", "cut"]),
        (
            "reasoning that is not encrypted is not sent back",
            &[
                r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"text":"Hm."}]}}"#,
                DONE,
            ],
            &["think Hm.", "stop EndTurn"],
        ),
        (
            "open models show their thoughts",
            &[
                r#"{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"a"}"#,
                r#"{"type":"response.reasoning_text.delta","output_index":0,"content_index":1,"delta":"b"}"#,
                DONE,
            ],
            &["think a\n\nb", "stop EndTurn"],
        ),
        (
            "a request that fills the context",
            &[
                r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":9,"output_tokens":0}}}"#,
            ],
            &["vendor the model's context is full (stop reason max_output_tokens)"],
        ),
        (
            "cancelled elsewhere",
            &[r#"{"type":"response.cancelled","response":{"status":"cancelled"}}"#],
            &["vendor the provider ended the answer as cancelled"],
        ),
        (
            "unknown events and lines that are not JSON",
            &[
                "oops",
                r#"{"type":"keepalive"}"#,
                r#"{"type":"response.new.thing","delta":1}"#,
                DONE,
                "[DONE]",
            ],
            &["notice", "stop EndTurn"],
        ),
        (
            "another API",
            &[r#"{"choices":[{"delta":{"content":"x"}}]}"#],
            &["other API: Chat Completions"],
        ),
    ];
    for (case, events, want) in table {
        let text = stream(events);
        assert_eq!(decode(std::iter::once(text.as_bytes())), *want, "{case}");
        assert_eq!(
            decode(text.as_bytes().chunks(1)),
            *want,
            "{case}, byte by byte"
        );
    }
}
