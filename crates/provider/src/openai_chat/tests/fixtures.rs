//! What the decoder makes of each vendor's bytes, however they are cut.

use crate::decode::{Decode, DecodeError};
use crate::openai_chat::decode::ChatDecoder;
use llm_worker::ModelEvent;

/// Events as short lines, neighbouring text and arguments joined.
fn shown(events: &[ModelEvent]) -> Vec<String> {
    let mut seals = Vec::new();
    let mut calls = Vec::<String>::new();
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut rest = Vec::new();
    for event in events {
        match event {
            ModelEvent::Text(more) => text.push_str(more),
            ModelEvent::Reasoning(more) => reasoning.push_str(more),
            ModelEvent::CallStarted { index, name } => {
                assert_eq!(
                    *index,
                    calls.len(),
                    "calls are numbered in order, each started once"
                );
                calls.push(format!("call {name} "));
            }
            ModelEvent::CallArguments { index, fragment } => calls[*index].push_str(fragment),
            ModelEvent::Usage(usage) => {
                rest.retain(|line: &String| !line.starts_with("usage"));
                rest.push(format!(
                    "usage {} {} {}",
                    usage.input, usage.output, usage.cached
                ));
            }
            ModelEvent::Stop(reason) => rest.push(format!("stop {reason:?}")),
            ModelEvent::Notice(_) => rest.push("notice".to_owned()),
            ModelEvent::Sealed(signature) => {
                seals.push(format!("sealed {} {}", signature.kind, signature.data))
            }
            ModelEvent::Retrying { .. } | ModelEvent::Shortfall(_) => {
                panic!("this decoder has none")
            }
        }
    }
    let said = [("think", reasoning), ("text", text)]
        .into_iter()
        .filter(|(_, words)| !words.is_empty());
    said.map(|(kind, words)| format!("{kind} {words}"))
        .chain(seals)
        .chain(calls)
        .chain(rest)
        .collect()
}

fn decode<'a>(mut pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut decoder = ChatDecoder::default();
    let mut out = Vec::new();
    let ended = pieces
        .try_for_each(|piece| decoder.push(piece, &mut out))
        .and_then(|()| decoder.finish(&mut out));
    let mut lines = shown(&out);
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
        "openai_text",
        file!("openai_text.sse"),
        &["text Grüße, world 🌍!\n", "usage 19 10 0", "stop EndTurn"],
    ),
    (
        "openai_parallel",
        file!("openai_parallel.sse"),
        &[
            r#"call Read {"path":"a.rs"}"#,
            r#"call Grep {"pattern":"fn \"x\""}"#,
            "usage 1312 46 1152",
            "stop ToolUse",
        ],
    ),
    (
        "openai_refusal",
        file!("openai_refusal.sse"),
        &["text I can't help with that.", "stop Refusal"],
    ),
    (
        "openai_whole",
        file!("openai_whole.json"),
        &[
            "text Two files.",
            "call List {}",
            "call List {}",
            "usage 5 7 0",
            "stop ToolUse",
        ],
    ),
    (
        "openrouter_text",
        file!("openrouter_text.sse"),
        &[
            "think Let me see.",
            "text Done.",
            "usage 40 12 8",
            "stop EndTurn",
        ],
    ),
    (
        "openrouter_error",
        file!("openrouter_error.sse"),
        &[
            "text Half an ans",
            "vendor Some(502) Provider disconnected unexpectedly",
        ],
    ),
    (
        "gemini_parallel",
        file!("gemini_parallel.sse"),
        &[
            r#"sealed extra_content {"google":{"thought_signature":"EjQKMgFvYWJj"}}"#,
            r#"call Read {"path":"a.rs"}"#,
            r#"call Read {"path":"b.rs"}"#,
            "usage 80 30 0",
            "stop ToolUse",
        ],
    ),
    (
        "gemini_no_index",
        file!("gemini_no_index.sse"),
        &[
            r#"sealed extra_content {"google":{"thought_signature":"EjQKMgFvYWJj"}}"#,
            r#"call Read {"path":"a.rs"}"#,
            r#"call Read {"path":"b.rs"}"#,
            r#"call Grep {"pattern":"x y"}"#,
            "stop ToolUse",
        ],
    ),
    (
        "ollama_calls",
        file!("ollama_calls.sse"),
        &[
            "think The user wants",
            r#"call List {"path":"."}"#,
            r#"call List {"path":"src"}"#,
            "usage 158 28 0",
            "stop ToolUse",
        ],
    ),
    (
        "llamacpp_call",
        file!("llamacpp_call.sse"),
        &[
            "think Read it.",
            r#"call Bash {"command":"ls -l"}"#,
            "usage 300 21 0",
            "stop ToolUse",
        ],
    ),
    (
        "llamacpp_error",
        file!("llamacpp_error.sse"),
        &["text The ", "vendor Some(500) context shift is disabled"],
    ),
    (
        "vllm_repeated",
        file!("vllm_repeated.sse"),
        &[
            "text Editing. ",
            r#"call Edit {"path": "a", "edits": []}"#,
            "usage 77 13 0",
            "stop ToolUse",
        ],
    ),
    (
        "lmstudio_crlf",
        file!("lmstudio_crlf.sse"),
        &["text Hello", "stop MaxTokens"],
    ),
];

#[test]
fn fixtures_whole_byte_by_byte_and_cut_at_every_byte() {
    for (name, text, want) in FILES {
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

/// A stream that ends early, in a body that does not, is no answer, wherever it ends (every seventh byte is tried): until the
/// finish reason is read, and in the middle of an event, it is cut or, for a document in one piece, no document. Between
/// events behind the finish reason it is the answer of a server that sends no `[DONE]`.
#[test]
fn no_prefix_of_a_fixture_is_taken_for_a_whole_answer() {
    for (name, text, want) in FILES
        .iter()
        .filter(|(_, _, want)| want.iter().any(|line| line.starts_with("stop")))
    {
        let without_usage = |lines: &[String]| -> Vec<String> {
            lines
                .iter()
                .filter(|line| !line.starts_with("usage"))
                .cloned()
                .collect()
        };
        let want = without_usage(
            &want
                .iter()
                .map(|line| (*line).to_owned())
                .collect::<Vec<_>>(),
        );
        for end in (0..text.len()).step_by(7) {
            let got = decode(std::iter::once(&text.as_bytes()[..end]));
            match got.last().map(String::as_str) {
                Some("cut" | "malformed") => {}
                _whole => {
                    let finished = text
                        .rfind("finish_reason\":\"")
                        .or(text.rfind("finish_reason\": \""))
                        .unwrap();
                    assert!(end > finished, "{name} at {end}: {got:?}");
                    assert_eq!(without_usage(&got), want, "{name} at {end}");
                }
            }
        }
    }
}

fn calls(parts: &[&str]) -> Vec<String> {
    let chunks: String = parts
        .iter()
        .map(|part| format!("data: {{\"choices\":[{{\"delta\":{part}}}]}}\n\n"))
        .collect();
    decode(std::iter::once(
        format!("{chunks}data: {{\"choices\":[{{\"finish_reason\":\"stop\"}}]}}\n\n").as_bytes(),
    ))
}

/// The elements of `tool_calls` in each delta, and the calls they are.
const PARTS: &[(&str, &[&str], &[&str])] = &[
    (
        "interleaved by index",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{"}},{"index":1,"id":"b","function":{"name":"B","arguments":"{"}}"#,
            r#"{"index":1,"function":{"arguments":"\"y\":2}"}},{"index":0,"function":{"arguments":"\"x\":1}"}}"#,
        ],
        &[r#"call A {"x":1}"#, r#"call B {"y":2}"#],
    ),
    (
        "by id alone, interleaved",
        &[
            r#"{"id":"a","function":{"name":"A","arguments":"{"}},{"id":"b","function":{"name":"B","arguments":"{"}}"#,
            r#"{"id":"a","function":{"arguments":"}"}},{"id":"b","function":{"arguments":"}"}}"#,
        ],
        &["call A {}", "call B {}"],
    ),
    (
        "name and id in every delta, without index",
        &[
            r#"{"id":"a","function":{"name":"A","arguments":"{\"x\""}}"#,
            r#"{"id":"a","function":{"name":"A","arguments":":1}"}}"#,
            r#"{"id":"a","function":{"name":"A","arguments":""}}"#,
        ],
        &[r#"call A {"x":1}"#],
    ),
    (
        "name in every delta, no id, arguments that look like two objects",
        &[
            r#"{"index":0,"function":{"name":"A","arguments":"{\"x\":\"{}"}}"#,
            r#"{"index":0,"function":{"name":"A","arguments":"{}\"}"}}"#,
        ],
        &[r#"call A {"x":"{}{}"}"#],
    ),
    (
        "arguments as an object",
        &[
            r#"{"function":{"name":"A","arguments":{"x":1}}}"#,
            r#"{"function":{"name":"A","arguments":{"x":2}}}"#,
        ],
        &[r#"call A {"x":1}"#, r#"call A {"x":2}"#],
    ),
    (
        "the id first, the name later",
        &[
            r#"{"index":0,"id":"a"}"#,
            r#"{"index":0,"function":{"arguments":"{"}}"#,
            r#"{"index":0,"function":{"name":"A","arguments":"}"}}"#,
        ],
        &["call A {}"],
    ),
    (
        "another id in every delta",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{"}}"#,
            r#"{"index":0,"id":"z","function":{"arguments":"}"}}"#,
        ],
        &["call A {}"],
    ),
    (
        "always index 0, another id",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"A","arguments":"{}"}}"#,
        ],
        &["call A {}", "call A {}"],
    ),
    (
        "no arguments at all",
        &[r#"{"index":0,"id":"a","function":{"name":"A"}}"#],
        &["call A {}"],
    ),
    (
        "empty arguments, null arguments, null parts",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":""}},null,{"index":1,"id":"b","function":{"name":"B","arguments":null}}"#,
            r#"{"index":"2","id":7,"type":null,"function":{"name":"C","arguments":"null"}}"#,
        ],
        &["call A {}", "call B {}", "call C {}"],
    ),
    // opencode#17339, opencodex#361: the last chunk repeats the arguments.
    (
        "whole again at the end",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{\"x\":"}}"#,
            r#"{"index":0,"function":{"arguments":"1}"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{\"x\": 1}"}}"#,
        ],
        &[r#"call A {"x": 1}"#],
    ),
    (
        "twice without an id",
        &[
            r#"{"index":0,"function":{"name":"A","arguments":"{\"x\":1}"}}"#,
            r#"{"index":0,"function":{"name":"A","arguments":"{\"x\":1}"}}"#,
        ],
        &[r#"call A {"x":1}"#],
    ),
    (
        "twice in pieces",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{\"x\""}}"#,
            r#"{"index":0,"function":{"arguments":":1}{\"x\""}}"#,
            r#"{"index":0,"function":{"arguments":":1}"}}"#,
        ],
        &[r#"call A {"x":1}"#],
    ),
    (
        "each time from the beginning",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{\"x\":"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{\"x\":[{\"x"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{\"x\":[{\"x\":2}]}"}}"#,
        ],
        &[r#"call A {"x":[{"x":2}]}"#],
    ),
    (
        "pieces that look like a beginning, and are none",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{\"x\":"}}"#,
            r#"{"index":0,"function":{"arguments":"{\"x\":1}"}}"#,
            r#"{"index":0,"function":{"arguments":"}"}}"#,
        ],
        &[r#"call A {"x":{"x":1}}"#],
    ),
    // Codex-Manager#42, goose#9786.
    (
        "two whole calls with one id and no index",
        &[
            r#"{"id":"a","function":{"name":"A","arguments":"{\"x\":1}"}},{"id":"a","function":{"name":"A","arguments":"{\"x\":2}"}}"#,
        ],
        &[r#"call A {"x":1}"#, r#"call A {"x":2}"#],
    ),
    // SamSaffron/term-llm#314.
    (
        "by position alone",
        &[
            r#"{"id":"a","function":{"name":"A","arguments":""}},{"id":"b","function":{"name":"B","arguments":""}}"#,
            r#"{"function":{"arguments":"{\"x\":"}},{"function":{"arguments":"{\"y\":"}}"#,
            r#"{"function":{"arguments":"1}"}},{"function":{"arguments":"2}"}}"#,
        ],
        &[r#"call A {"x":1}"#, r#"call B {"y":2}"#],
    ),
    (
        "one id and two names, without index",
        &[
            r#"{"id":"a","function":{"name":"A","arguments":"{}"}},{"id":"a","function":{"name":"B","arguments":"{}"}}"#,
        ],
        &["call A {}", "call B {}"],
    ),
    (
        "one id and two indexes",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"A","arguments":"{}"}}"#,
        ],
        &["call A {}", "call A {}"],
    ),
    (
        "one id and no index, sent twice",
        &[
            r#"{"id":"a","function":{"name":"A","arguments":"{\"x\":1}"}}"#,
            r#"{"id":"a","function":{"name":"A","arguments":"{\"x\":1}"}}"#,
        ],
        &[r#"call A {"x":1}"#],
    ),
    (
        "an empty placeholder",
        &[
            r#"{}"#,
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":"{}"}}"#,
        ],
        &["call A {}"],
    ),
    (
        "the first one without index and arguments",
        &[
            r#"{"id":"a","function":{"name":"A","arguments":null}}"#,
            r#"{"id":"b","function":{"name":"B","arguments":"{\"y\""}}"#,
            r#"{"function":{"arguments":":2}"}}"#,
        ],
        &["call A {}", r#"call B {"y":2}"#],
    ),
    // OpenAI's own client joins the pieces of a name.
    (
        "a name in pieces",
        &[
            r#"{"index":0,"id":"a","function":{"name":"Ba","arguments":""}},{"index":1,"id":"b","function":{"name":"R"}}"#,
            r#"{"index":0,"function":{"name":"sh"}},{"index":1,"function":{"name":"ead","arguments":"{\"x\""}}"#,
            r#"{"index":0,"function":{"arguments":"{}"}},{"index":1,"function":{"arguments":":1}"}}"#,
        ],
        &["call Bash {}", r#"call Read {"x":1}"#],
    ),
    (
        "a name in pieces, with its id in each and no index",
        &[
            r#"{"id":"a","function":{"name":"Ba"}}"#,
            r#"{"id":"a","function":{"name":"sh"}}"#,
            r#"{"id":"a","function":{"arguments":"{}"}}"#,
        ],
        &["call Bash {}"],
    ),
    (
        "a name with all of it so far in each part, then whole beside the arguments",
        &[
            r#"{"index":0,"id":"a","function":{"name":"Ba"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"Bash"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"Bash","arguments":"{\"x\":"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"Bash","arguments":"1}"}}"#,
        ],
        &[r#"call Bash {"x":1}"#],
    ),
    // Gemini 3 refuses a history without the signatures that came with its calls.
    (
        "a signature for the calls of an answer",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A","arguments":""},"extra_content":{"google":{"thought_signature":"s"}}}"#,
            r#"{"index":0,"function":{"arguments":"{}"}},{"index":1,"id":"b","function":{"name":"B","arguments":"{}"},"extra_content":null}"#,
        ],
        &[
            r#"sealed extra_content {"google":{"thought_signature":"s"}}"#,
            "call A {}",
            "call B {}",
        ],
    ),
    (
        "a signature behind the arguments",
        &[
            r#"{"index":0,"id":"a","function":{"name":"A"}}"#,
            r#"{"index":0,"function":{"arguments":"{}"},"extra_content":{"x":1}}"#,
        ],
        &[r#"sealed extra_content {"x":1}"#, "call A {}"],
    ),
    (
        "broken JSON stays as it is",
        &[r#"{"index":0,"function":{"name":"A","arguments":"{\"x\": tru"}}"#],
        &[r#"call A {"x": tru"#],
    ),
];

#[test]
fn fragments_find_their_call() {
    let call = |text: &str| format!(r#"{{"tool_calls":[{text}]}}"#);
    for (case, parts, want) in PARTS {
        let deltas: Vec<String> = parts.iter().map(|part| call(part)).collect();
        let want: Vec<String> = want
            .iter()
            .map(|line| (*line).to_owned())
            .chain(["stop ToolUse".to_owned()])
            .collect();
        assert_eq!(
            calls(&deltas.iter().map(String::as_str).collect::<Vec<_>>()),
            want,
            "{case}"
        );
    }
    let old = [
        r#"{"function_call":{"name":"A","arguments":"{"}}"#,
        r#"{"function_call":{"arguments":"}"}}"#,
    ];
    assert_eq!(
        calls(&old),
        ["call A {}", "stop ToolUse"],
        "the older single call"
    );
    let nameless = [r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}"#];
    assert_eq!(calls(&nameless), ["malformed"]);
}

#[test]
fn finish_reasons() {
    let table = [
        ("stop", "EndTurn"),
        ("STOP", "EndTurn"),
        ("tool_calls", "ToolUse"),
        ("length", "MaxTokens"),
        ("max_output_tokens", "MaxTokens"),
        ("model_length", "MaxTokens"),
        ("length_limit", "MaxTokens"),
        ("content_filter", "Refusal"),
        ("sensitive", "Refusal"),
        ("eos_token", "EndTurn"),
        ("repetition", "Other(\"repetition\")"),
    ];
    for (reason, want) in table {
        let text = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"x\"}},\"finish_reason\":\"{reason}\"}}]}}\n\n"
        );
        let mut got = decode(std::iter::once(text.as_bytes()));
        // People are told the word of a filter.
        let told = got.extract_if(.., |line| line == "notice").count();
        assert_eq!(
            (got, told == 1),
            (
                vec!["text x".to_owned(), format!("stop {want}")],
                want == "Refusal"
            ),
            "{reason}"
        );
    }
}

#[test]
fn oddities() {
    let table: &[(&str, &[&str])] = &[
        ("", &["cut"]),
        ("  \n", &["cut"]),
        ("data: [DONE]\n\n", &["cut"]),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n",
            &["text x", "stop EndTurn"],
        ),
        ("data: : ping\n\n", &["cut"]),
        (
            "data: {\"choices\":[{\"finish_reason\":\"\"}]}\n\n",
            &["cut"],
        ),
        ("data: {broken\n\n", &["malformed"]),
        ("data: {\"choi", &["cut"]),
        ("\u{feff}{\"error\":\"no\"}", &["vendor None no"]),
        ("data: {\"choices\":7}\n\n", &["malformed"]),
        (
            "data: {\"error\":{\"message\":\"slow\\n down\",\"type\":\"overloaded\"}}\n\n",
            &["vendor None slow down"],
        ),
        (
            "event: error\ndata: {\"message\":\"gone\",\"code\":503}\n\n",
            &["vendor Some(503) gone"],
        ),
        (
            "{\"error\":{\"message\":\"no\",\"code\":400}}",
            &["vendor Some(400) no"],
        ),
        (
            "[{\"error\":{\"message\":\"no\",\"code\":429}}]",
            &["vendor Some(429) no"],
        ),
        ("{\"choices\":[]}", &["cut"]),
        // hermes#65631, goose#8021: errors with status 200, each in its server's form.
        (
            r#"{"object":"error","message":"no","type":"BadRequestError","param":null,"code":400}"#,
            &["vendor Some(400) no"],
        ),
        (
            r#"{"choices":null,"error_type":"BadRequestError","error_message":"no","status_code":400}"#,
            &["vendor Some(400) no"],
        ),
        (r#"{"detail":"no"}"#, &["vendor None no"]),
        (
            r#"{"detail":[{"msg":"no"}]}"#,
            &[r#"vendor None [{"msg":"no"}]"#],
        ),
        (
            r#"{"code":"InvalidParameter","message":"no","request_id":"r"}"#,
            &["vendor Some(400) no"],
        ),
        (
            r#"{"code":401,"msg":"no","success":false}"#,
            &["vendor Some(401) no"],
        ),
        (
            r#"{"choices":null,"base_resp":{"status_code":1004,"status_msg":"no"}}"#,
            &["vendor Some(401) no"],
        ),
        (
            r#"{"choices":[],"base_resp":{"status_code":0,"status_msg":"success"}}"#,
            &["cut"],
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"no"}}"#,
            &["vendor Some(529) no"],
        ),
        (
            r#"{"success":false,"errors":[{"code":7003,"message":"no"}]}"#,
            &["vendor None no"],
        ),
        (r#"{"error":"no","status":429}"#, &["vendor Some(429) no"]),
        (r#"{"code":200,"msg":"fine","choices":[]}"#, &["cut"]),
        (
            "upstream connect error\n",
            &["vendor None upstream connect error"],
        ),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: oops\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n",
            &["text x", "notice", "stop EndTurn"],
        ),
        // rakazo#416: a character in two halves; a half alone and a bad byte become U+FFFD.
        (
            r#"data: {"choices":[{"delta":{"content":"a\ud83d"}}]}

data: {"choices":[{"delta":{"content":"\ude00b\ud83dc"},"finish_reason":"stop"}]}

"#,
            &["text a😀b\u{fffd}c", "stop EndTurn"],
        ),
        (
            r#"data: {"choices":[{"delta":{"content":"a\udc00"},"finish_reason":["odd"]}]}

"#,
            &["text a\u{fffd}", "stop Other(\"[\\\"odd\\\"]\")"],
        ),
        // A request that fills the context leaves no room for an answer.
        (
            r#"{"choices":[{"message":{"content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":0,"total_tokens":9}}"#,
            &[
                "usage 9 0 0",
                "vendor None the model's context is full (stop reason length)",
            ],
        ),
        (
            r#"{"choices":[{"message":{"content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":0,"total_tokens":99}}"#,
            &["usage 9 0 0", "stop MaxTokens"],
        ),
        (
            r#"{"choices":[{"message":{"content":"x"},"finish_reason":"model_context_window_exceeded"}]}"#,
            &[
                "text x",
                "vendor None the model's context is full (stop reason model_context_window_exceeded)",
            ],
        ),
        // zed#62983 and others: a count of another type is unknown, and the answer stands.
        (
            r#"{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000.0,"completion_tokens":"3"}}"#,
            &["text x", "usage 1000 3 0", "stop EndTurn"],
        ),
        (
            r#"{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1,"completion_tokens":3,"prompt_tokens_details":[1]}}"#,
            &["text x", "usage 0 3 0", "stop EndTurn"],
        ),
        (
            r#"{"choices":[null,{"message":{"content":"x","tool_calls":null},"index":null,"finish_reason":"stop"}],"usage":[1e999]}"#,
            &["text x", "stop EndTurn"],
        ),
        ("<html>", &["vendor None an HTML page, not an API answer"]),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"text\":\"b\"}]},\"finish_reason\":\"stop\"}],\"error\":null}\n\n",
            &["text ab", "stop EndTurn"],
        ),
        (
            "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}},{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\ndata: {after\n\n",
            &["text x", "stop EndTurn"],
        ),
    ];
    for (text, want) in table {
        assert_eq!(decode(std::iter::once(text.as_bytes())), *want, "{text}");
        assert_eq!(
            decode(text.as_bytes().chunks(1)),
            *want,
            "{text}, byte by byte"
        );
    }
}

/// What a paid answer, or the words of a provider, was lost to.
#[test]
fn more_oddities() {
    let table: &[(&str, &[&str])] = &[
        (
            r#"{"error_code":336003,"error_msg":"no"}"#,
            &["vendor None no"],
        ),
        (
            r#"{"__type":"ValidationException","message":"no"}"#,
            &["vendor Some(400) no"],
        ),
        (r#"{"Message":"no"}"#, &["vendor None no"]),
        (r#"{"ret":-1,"msg":"no"}"#, &["vendor None no"]),
        (r#"{"status":"error","reason":"no"}"#, &["vendor None no"]),
        (
            r#"{"error":{"code":"model_not_found"}}"#,
            &[r#"vendor Some(404) {"code":"model_not_found"}"#],
        ),
        // The person chose the wrong `api`.
        (
            "data: {\"type\":\"message_start\",\"message\":{}}\n\n",
            &["other API: the Messages API"],
        ),
        (
            r#"{"type":"message","content":[{"type":"text","text":"x"}]}"#,
            &["other API: the Messages API"],
        ),
        (
            "data: {\"type\":\"response.created\"}\n\n",
            &["other API: the Responses API"],
        ),
        (
            "data: {\"candidates\":[{}]}\n\n",
            &["other API: Gemini's own API"],
        ),
        (
            r#"{"model":"m","message":{"content":"x"},"done":true}"#,
            &["other API: Ollama's own API"],
        ),
        // Parts, and then the whole message again.
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\"},\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n",
            &["text a", "stop EndTurn"],
        ),
        // What some servers write is no JSON: numbers that are none, characters of control.
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\tNaN \\\"b\"},\"finish_reason\":\"stop\",\"logprob\":-Infinity}],\"usage\":NaN}\n\n",
            &["text a\tNaN \"b", "stop EndTurn"],
        ),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"MALFORMED_FUNCTION_CALL\"}]}\n\n",
            &[
                "text a",
                "vendor None the provider ended the answer with an error (MALFORMED_FUNCTION_CALL)",
            ],
        ),
    ];
    for (text, want) in table {
        assert_eq!(decode(std::iter::once(text.as_bytes())), *want, "{text}");
        assert_eq!(
            decode(text.as_bytes().chunks(1)),
            *want,
            "{text}, byte by byte"
        );
    }
}
