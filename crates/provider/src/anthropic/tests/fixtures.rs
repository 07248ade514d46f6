//! What the decoder makes of the vendor's bytes, however they are cut.

use crate::anthropic::decode::MessagesDecoder;
use crate::decode::{Decode, DecodeError};
use llm_worker::ModelEvent;

/// Events as short lines in their order, neighbours of one kind joined.
fn shown(events: &[ModelEvent]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut calls: Vec<usize> = Vec::new();
    for event in events {
        let (kind, words) = match event {
            ModelEvent::Text(more) => ("text ", more.as_str()),
            ModelEvent::Reasoning(more) => ("think ", more.as_str()),
            ModelEvent::Sealed(signature) => {
                lines.push(format!("seal {} {}", signature.kind, signature.data));
                continue;
            }
            ModelEvent::CallStarted { index, name } => {
                assert_eq!(
                    *index,
                    calls.len(),
                    "calls are numbered in order, each started once"
                );
                calls.push(lines.len());
                lines.push(format!("call {name} "));
                continue;
            }
            ModelEvent::CallArguments { index, fragment } => {
                lines[calls[*index]].push_str(fragment);
                continue;
            }
            ModelEvent::Usage(usage) => {
                // The last one counts; it is shown where the stop is.
                lines.retain(|line| !line.starts_with("usage"));
                calls.iter_mut().for_each(|at| *at = lines.len().min(*at));
                let input = usage.input;
                let output = usage.output;
                lines.push(format!(
                    "usage {input} {output} {} {}",
                    usage.cached, usage.cache_write
                ));
                continue;
            }
            ModelEvent::Stop(reason) => {
                lines.push(format!("stop {reason:?}"));
                continue;
            }
            ModelEvent::Notice(_) => {
                lines.push("notice".to_owned());
                continue;
            }
            ModelEvent::Shortfall(_) => panic!("no vendor's words are judged"),
            ModelEvent::Retrying { .. } => panic!("a decoder does not retry"),
        };
        match lines.last_mut() {
            Some(last) if last.starts_with(kind) => last.push_str(words),
            Some(_) | None => lines.push(format!("{kind}{words}")),
        }
    }
    lines
}

fn decode<'a>(mut pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut decoder = MessagesDecoder::default();
    let mut out = Vec::new();
    let ended = pieces
        .try_for_each(|piece| decoder.push(piece, &mut out))
        .and_then(|()| decoder.finish(&mut out));
    // Counts come first and last; only the last is of interest, and it must not come between the words.
    let last = out
        .iter()
        .rposition(|event| matches!(event, ModelEvent::Usage(_)));
    let kept: Vec<ModelEvent> = out
        .into_iter()
        .enumerate()
        .filter(|(at, event)| !matches!(event, ModelEvent::Usage(_)) || Some(*at) == last)
        .map(|(_, event)| event)
        .collect();
    let mut lines = shown(&kept);
    match ended {
        Ok(()) => {}
        Err(DecodeError::OtherApi(name, _)) => lines.push(format!("other API: {name}")),
        Err(DecodeError::Cut) => lines.push("cut".to_owned()),
        Err(DecodeError::Malformed(_)) => lines.push("malformed".to_owned()),
        Err(DecodeError::Vendor(error)) => lines.push(format!(
            "vendor {:?} {}",
            error.status,
            crate::vendor_error::one_line(&error.message)
        )),
    }
    lines
}

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../../tests/fixtures/", $name))
    };
}

const FILES: &[(&str, &str, &[&str])] = &[
    (
        "text, its input in three sorts",
        file!("anthropic_text.sse"),
        &[
            "text Grüße, world 🌍!\n",
            "usage 2312 15 2000 300",
            "stop EndTurn",
        ],
    ),
    (
        "three calls, one without arguments",
        file!("anthropic_tools.sse"),
        &[
            "text Let me look.",
            r#"call Read {"path": "src/größe.rs"}"#,
            "call List {}",
            r#"call Grep {"pattern": "fn \"x\""}"#,
            "usage 472 89 0 0",
            "stop ToolUse",
        ],
    ),
    (
        "thinking, sealed, unreadable, and between text and call",
        file!("anthropic_thinking.sse"),
        &[
            "think The person wants \"a.rs\".\n",
            "seal signature 1gbcDa9GJwZA2b3h/+==",
            "seal redacted_thinking EmwKAhgBEgy3va3pzix/LafPsn4=",
            "text Reading.",
            "seal signature QWdhaW4=",
            r#"call Read {"path":"a.rs"}"#,
            "usage 40 120 0 0",
            "stop ToolUse",
        ],
    ),
    (
        "a refusal, in lines that end in CRLF",
        file!("anthropic_refusal_crlf.sse"),
        &[
            "text I can't help with that.",
            "usage 25 9 0 0",
            "stop Refusal",
        ],
    ),
    (
        "events, blocks and deltas nobody knows",
        file!("anthropic_unknown.sse"),
        &["text So far.", "usage 25 33 0 0", "stop Paused"],
    ),
];

const BROKEN: &str = file!("anthropic_overloaded.sse");

#[test]
fn fixtures_whole_byte_by_byte_and_cut_at_every_byte() {
    let broken = (
        "overloaded",
        BROKEN,
        &[
            "usage 25 1 0 0",
            "text Half an ans",
            "vendor Some(529) Overloaded",
        ][..],
    );
    for (name, text, want) in FILES.iter().copied().chain([broken]) {
        let bytes = text.as_bytes();
        assert_eq!(decode(std::iter::once(bytes)), *want, "{name}");
        assert_eq!(decode(bytes.chunks(1)), *want, "{name}, byte by byte");
        for at in 0..bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(
                decode([left, right].into_iter()),
                *want,
                "{name}, cut at {at}"
            );
        }
    }
}

/// A stream that ends early (every seventh byte is tried) is never an answer: until the stop reason is read it is cut.
#[test]
fn no_prefix_of_a_fixture_is_taken_for_a_whole_answer() {
    for (name, text, want) in FILES {
        let bytes = text.as_bytes();
        let stop = text.rfind("message_delta").unwrap();
        for end in (0..bytes.len()).step_by(7) {
            let got = decode(std::iter::once(&bytes[..end]));
            match got.last().map(String::as_str) {
                Some("cut") => {}
                _whole => {
                    assert!(end > stop, "{name} at {end}: {got:?}");
                    assert_eq!(got, *want, "{name} at {end}");
                }
            }
        }
    }
}

/// Events without their frames: one JSON each.
fn events(data: &[&str]) -> Vec<String> {
    let stop = data.last().map(|_| r#"{"type":"message_stop"}"#);
    let text: String = data
        .iter()
        .copied()
        .chain(stop)
        .map(|data| format!("data: {data}\n\n"))
        .collect();
    decode(std::iter::once(text.as_bytes()))
}

#[test]
fn what_each_word_means() {
    let stop = |reason: &str| {
        events(&[&format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#
        )])
    };
    for (reason, want) in [
        ("end_turn", "stop EndTurn"),
        ("stop_sequence", "stop EndTurn"),
        ("tool_use", "stop ToolUse"),
        ("max_tokens", "stop MaxTokens"),
        ("refusal", "stop Refusal"),
        ("pause_turn", "stop Paused"),
        ("gone_fishing", "stop Other(\"gone_fishing\")"),
    ] {
        assert_eq!(stop(reason), [want]);
    }
    let full =
        "vendor None the model's context is full (stop reason model_context_window_exceeded)";
    assert_eq!(stop("model_context_window_exceeded"), [full]);
    let failed = |kind: &str| {
        events(&[&format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"m"}}}}"#
        )])
    };
    for (kind, status) in [
        ("invalid_request_error", "Some(400)"),
        ("authentication_error", "Some(401)"),
        ("billing_error", "Some(402)"),
        ("permission_error", "Some(403)"),
        ("not_found_error", "Some(404)"),
        ("request_too_large", "Some(413)"),
        ("rate_limit_error", "Some(429)"),
        ("timeout_error", "Some(504)"),
        ("overloaded_error", "Some(529)"),
        ("api_error", "None"),
    ] {
        assert_eq!(failed(kind), [format!("vendor {status} m")]);
    }
}

#[test]
fn arguments_that_never_came() {
    const READ: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"Read","input":{}}}"#;
    const FULL: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"Read","input":{"a": 1}}}"#;
    const STOP: &str = r#"{"type":"content_block_stop","index":0}"#;
    const USE: &str = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#;
    const CUT: &str = r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#;
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "the block ended: none were meant",
            &[READ, STOP, USE],
            &["call Read {}", "stop ToolUse"],
        ),
        (
            "the answer was cut: nobody knows",
            &[READ, STOP, CUT],
            &["call Read ", "stop MaxTokens"],
        ),
        (
            "the block never ended, the answer did: none were meant",
            &[READ, USE],
            &["call Read {}", "stop ToolUse"],
        ),
        (
            "they stood in the block's beginning",
            &[FULL, STOP, USE],
            &["call Read {\"a\": 1}", "stop ToolUse"],
        ),
        (
            "a call without a name",
            &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","input":{}}}"#,
                USE,
            ],
            &["malformed"],
        ),
        (
            "thinking that nobody signed, and that its block's end does not end",
            &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm"}}"#,
                STOP,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"so","signature":"s"}}"#,
                USE,
            ],
            &["think hmso", "seal signature s", "stop ToolUse"],
        ),
        (
            "an error without a type",
            &[r#"{"error":{"message":"no"}}"#],
            &["vendor None no"],
        ),
        (
            "a call without a name, and others around it",
            &[
                READ,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":null,"input":{}}}"#,
                r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","name":"Read","input":{}}}"#,
                USE,
            ],
            &["call Read ", "malformed"],
        ),
        (
            "an empty object behind the arguments",
            &[
                READ,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
                USE,
            ],
            &["call Read {\"a\":1}", "stop ToolUse"],
        ),
        (
            "a chunk of Chat Completions",
            &[r#"{"choices":[{"delta":{"content":"x"}}]}"#],
            &["other API: Chat Completions"],
        ),
        ("nothing", &[], &["cut"]),
        (
            "one line that is not JSON",
            &["{oops", USE],
            &["notice", "stop ToolUse"],
        ),
        ("not JSON, and no answer", &["{oops"], &["malformed"]),
        (
            "not JSON behind the stop reason",
            &[USE, "[DONE"],
            &["notice", "stop ToolUse"],
        ),
    ];
    for (case, data, want) in table {
        assert_eq!(events(data), *want, "{case}");
    }
}

/// A proxy that does not stream sends the whole message: it was taken for an error, and asked for again for three minutes.
#[test]
fn a_whole_message_is_an_answer() {
    let message = r#" {"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},
        {"type":"text","text":"hello"},{"type":"tool_use","id":"t","name":"Read","input":{"a":1}}],
        "stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":3}}"#;
    let want = [
        "usage 7 3 0 0",
        "think hm",
        "seal signature s",
        "text hello",
        "call Read {\"a\":1}",
        "stop ToolUse",
    ];
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    let want = sorted(want.map(str::to_owned).to_vec());
    assert_eq!(sorted(decode(std::iter::once(message.as_bytes()))), want);
    assert_eq!(sorted(decode(message.as_bytes().chunks(1))), want);
    for (body, want) in [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"no"}}"#,
            "vendor Some(529) no",
        ),
        (
            r#"{"choices":[{"message":{"content":"x"}}]}"#,
            "other API: Chat Completions",
        ),
        (
            r#"{"type":"message","content":[{"type":"text","text":"x"}]}"#,
            "text x|stop EndTurn",
        ),
        (r#"{"type":"message","content":[{"type":"te"#, "malformed"),
        (
            "upstream connect error\n",
            "vendor None upstream connect error",
        ),
    ] {
        assert_eq!(
            decode(std::iter::once(body.as_bytes())).join("|"),
            want,
            "{body}"
        );
    }
}
