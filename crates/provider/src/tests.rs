//! Every stream in `tests/fixtures`, as this crate reads it and as the vendors' own SDKs do. What they said of each is
//! in `X.expected.json` beside it, written by `expected.py` there.

mod files;
mod generated;

use crate::decode::{Decode, DecodeError};
use crate::endpoint::Wire;
use crate::{anthropic, gemini, openai_chat, openai_responses};
use llm_worker::{ModelEvent, StopReason};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Servers whose streams the OpenAI SDK was not written for, and answers that we read differently on purpose: what we
/// make of the stream instead (only what differs), and why.
fn departures() -> Vec<(&'static str, Value, &'static str)> {
    let call = |name: &str, arguments: Value| json!({"call": name, "arguments": arguments});
    vec![
        (
            "anthropic_max_tokens",
            json!({"blocks": [{"text": "Writing it: grüß"}, call("Write", json!({"not JSON": r#"{"path":"a.rs","content":"fn ma"#}))]}),
            "the SDK leaves out what was cut off and shows the rest as if it were all; we keep the text, so that it \
             cannot be taken for a call",
        ),
        (
            "openai_refusal",
            json!({"blocks": [{"text": "I can't help with that."}], "stop": "Refusal"}),
            "a refusal's words are text to a person, and the stop reason says what they are",
        ),
        (
            "responses_refusal",
            json!({"blocks": [{"text": "I can't help with that."}], "stop": "Refusal"}),
            "as openai_refusal",
        ),
        (
            "lmstudio_crlf",
            json!({"blocks": [{"text": "Hello"}]}),
            "the SDK takes the byte-order mark for a part of the first field and loses the event",
        ),
        (
            "gemini_no_index",
            json!({
                "blocks": [call("Read", json!({"path": "a.rs"})), call("Read", json!({"path": "b.rs"})), call("Grep", json!({"pattern": "x y"}))],
                "stop": "ToolUse", "usage": null, "error": null,
            }),
            "the SDK fails where a call has no index",
        ),
        (
            "gemini_parallel",
            json!({"blocks": [call("Read", json!({"path": "a.rs"})), call("Read", json!({"path": "b.rs"}))], "stop": "ToolUse"}),
            "the SDK makes one call of two with one index, and the server says `stop` after calls",
        ),
        (
            "ollama_calls",
            json!({
                "blocks": [{"thinking": "The user wants"}, call("List", json!({"path": "."})), call("List", json!({"path": "src"}))],
                "stop": "ToolUse",
            }),
            "as gemini_parallel",
        ),
        (
            "vllm_repeated",
            json!({"blocks": [{"text": "Editing. "}, call("Edit", json!({"path": "a", "edits": []}))]}),
            "the SDK joins a name that comes with every piece",
        ),
        (
            "llamacpp_error",
            json!({"error": "context shift is disabled", "blocks": null, "stop": null, "usage": null}),
            "the SDK does not know a field named `error` and hands out what came before it",
        ),
    ]
}

/// Our events in the form of the expected files.
fn ours(events: &[ModelEvent]) -> Map<String, Value> {
    let mut blocks: Vec<Value> = Vec::new();
    let mut calls: Vec<(usize, String)> = Vec::new();
    let mut stop = Value::Null;
    let mut usage = Value::Null;
    for event in events {
        match event {
            ModelEvent::Text(more) => join(&mut blocks, "text", more),
            ModelEvent::Reasoning(more) => join(&mut blocks, "thinking", more),
            ModelEvent::Sealed(signature) if signature.kind == "redacted_thinking" => {
                blocks.push(json!({"redacted": signature.data}))
            }
            // Not read by a vendor's SDK, which keeps fields that it does not know.
            ModelEvent::Sealed(signature) if signature.kind == "extra_content" => {}
            ModelEvent::Sealed(signature) => {
                if blocks.last().is_none_or(|last| {
                    last.get("thinking").is_none() || last.get("signature").is_some()
                }) {
                    blocks.push(json!({"thinking": ""}));
                }
                blocks.last_mut().unwrap()["signature"] = if signature.kind == "reasoning" {
                    serde_json::from_str(&signature.data).unwrap()
                } else {
                    json!(signature.data)
                };
            }
            ModelEvent::CallStarted { index, name } => {
                assert_eq!(*index, calls.len());
                calls.push((blocks.len(), String::new()));
                blocks.push(json!({"call": name}));
            }
            ModelEvent::CallArguments { index, fragment } => calls[*index].1.push_str(fragment),
            ModelEvent::Usage(count) => {
                usage = json!({
                    "input": count.input, "output": count.output, "cached": count.cached, "cache_write": count.cache_write,
                    "reasoning": count.reasoning,
                });
            }
            ModelEvent::Stop(reason) => stop = json!(format!("{reason:?}")),
            ModelEvent::Notice(_) => {}
            ModelEvent::Shortfall(_) => panic!("no vendor's words are judged"),
            ModelEvent::Retrying { .. } => panic!("a decoder does not retry"),
        }
    }
    for (block, raw) in calls {
        blocks[block]["arguments"] =
            serde_json::from_str(&raw).unwrap_or_else(|_| json!({"not JSON": raw}));
    }
    object(json!({"blocks": blocks, "stop": stop, "usage": usage}))
}

/// Neighbouring pieces are one, as they are in a history.
fn join(blocks: &mut Vec<Value>, kind: &str, more: &str) {
    let last = blocks
        .last_mut()
        .filter(|last| last.get("signature").is_none())
        .and_then(|last| last.get_mut(kind));
    match last {
        Some(Value::String(text)) => text.push_str(more),
        Some(_) | None => blocks.push(json!({kind: more})),
    }
}

/// The SDK's answer in our terms: its words for a stop, without what only its vendor runs, neighbouring texts joined.
fn theirs(expected: &Value) -> Map<String, Value> {
    if let Some(why) = expected.get("error") {
        return object(json!({"error": expected.get("message").unwrap_or(why)}));
    }
    let mut blocks = Vec::new();
    for block in expected["blocks"].as_array().unwrap() {
        match (block.get("other"), block["text"].as_str()) {
            (Some(_), _) => {}
            (None, Some(text)) => join(&mut blocks, "text", text),
            (None, None) => blocks.push(block.clone()),
        }
    }
    let stop = expected["stop"].as_str().map(|word| match word {
        "end_turn" | "stop_sequence" | "stop" | "STOP" => StopReason::EndTurn,
        "tool_use" | "tool_calls" => StopReason::ToolUse,
        "max_tokens" | "length" | "MAX_TOKENS" | "max_output_tokens" => StopReason::MaxTokens,
        "refusal" | "content_filter" | "SAFETY" | "RECITATION" | "PROHIBITED_CONTENT" => {
            StopReason::Refusal
        }
        "pause_turn" => StopReason::Paused,
        other => panic!("a stop reason without a row: {other}"),
    });
    object(
        json!({"blocks": blocks, "stop": stop.map(|stop| format!("{stop:?}")), "usage": expected["usage"]}),
    )
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else {
        panic!("an object")
    };
    map
}

fn decode<D: Decode>(bytes: &[u8], size: usize) -> Map<String, Value> {
    let mut decoder = D::default();
    let mut out = Vec::new();
    let read = bytes
        .chunks(size)
        .try_for_each(|piece| decoder.push(piece, &mut out));
    match read.and_then(|()| decoder.finish(&mut out)) {
        Ok(()) => ours(&out),
        Err(DecodeError::Vendor(error)) => object(json!({"error": error.message})),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn streams_say_what_the_vendors_own_sdks_read_in_them() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut departures = departures();
    let mut seen = [0, 0, 0, 0];
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(name) = file
            .strip_suffix(".sse")
            .or_else(|| file.strip_suffix(".json"))
        else {
            continue;
        };
        if name.ends_with(".expected") {
            continue;
        }
        let expected = std::fs::read(dir.join(format!("{name}.expected.json")));
        let expected: Value = serde_json::from_slice(&expected.expect("run expected.py")).unwrap();
        let mut want = theirs(&expected);
        want.retain(|_, value| !value.is_null());
        if let Some(at) = departures.iter().position(|(of, ..)| *of == name) {
            let (_, instead, why) = departures.swap_remove(at);
            let agreed = want.clone();
            want.extend(object(instead));
            want.retain(|_, value| !value.is_null());
            assert_ne!(want, agreed, "{name} departs no more, although {why}");
        }
        let bytes = std::fs::read(&path).unwrap();
        for size in [bytes.len(), 1, 3, 7] {
            let (api, mut got) = if name.starts_with("anthropic_") {
                let got = decode::<<anthropic::MessagesWire as Wire>::Decoder>(&bytes, size);
                (1, got)
            } else if name.starts_with("responses_") {
                let got =
                    decode::<<openai_responses::ResponsesWire as Wire>::Decoder>(&bytes, size);
                (2, got)
            } else if name.starts_with("genai_") {
                (
                    3,
                    decode::<<gemini::GeminiWire as Wire>::Decoder>(&bytes, size),
                )
            } else {
                let got = decode::<<openai_chat::ChatWire as Wire>::Decoder>(&bytes, size);
                (0, got)
            };
            got.retain(|_, value| !value.is_null());
            assert_eq!(
                got, want,
                "{name} in pieces of {size}, beside {}",
                expected["sdk"]
            );
            seen[api] += 1;
        }
    }
    assert!(
        departures.is_empty(),
        "departures without a stream: {departures:?}"
    );
    assert!(
        seen[0] >= 4 * 19 && seen[1] >= 4 * 12 && seen[2] >= 4 * 9 && seen[3] >= 4 * 9,
        "streams of Chat Completions, of Anthropic's form, of Responses and of Gemini: {seen:?}"
    );
}
