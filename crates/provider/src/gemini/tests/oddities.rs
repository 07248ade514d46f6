//! What servers send that is not in the documents, and what an answer must not be lost to.

use crate::decode::{Decode, DecodeError};
use crate::gemini::decode::GeminiDecoder;
use llm_worker::ModelEvent;

fn decode<'a>(mut pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut decoder = GeminiDecoder::default();
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
            ModelEvent::Sealed(signature) => ("sealed ", signature.kind),
            ModelEvent::Stop(stop) => ("stop ", format!("{stop:?}")),
            ModelEvent::Notice(words) => ("notice ", words),
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

/// An event with these parts, and why the answer ends, if it does.
fn event(parts: &str, reason: &str) -> String {
    let reason = if reason.is_empty() {
        String::new()
    } else {
        format!(r#","finishReason":"{reason}""#)
    };
    format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}}{reason}}}]}}"#)
}

#[test]
fn nothing_is_lost() {
    let text = |text: &str| format!(r#"{{"text":"{text}"}}"#);
    let call = r#"{"functionCall":{"name":"Read","args":{"a":1}},"thoughtSignature":"Cg=="}"#;
    let table: Vec<(&str, Vec<String>, Vec<&str>)> = vec![
        (
            "a call, then a text, and the end in an event of its own",
            vec![event(call, ""), event(&text("so"), ""), event("", "STOP")],
            vec!["sealed gemini-call", "call Read", "arguments {\"a\":1}", "text so", "stop ToolUse"],
        ),
        (
            "a call without arguments",
            vec![event(r#"{"functionCall":{"name":"List"}}"#, "STOP")],
            vec!["call List", "arguments {}", "stop ToolUse"],
        ),
        (
            "a character in two halves",
            vec![event(&text(r"a\ud83c"), ""), event(&text(r"\udf0db"), "STOP")],
            vec!["text a🌍b", "stop EndTurn"],
        ),
        (
            "a thought, its signature, and the answer",
            vec![
                event(r#"{"text":"hm","thought":true,"thoughtSignature":"Cg=="}"#, ""),
                event(&text("x"), "STOP"),
            ],
            vec!["think hm", "sealed gemini-thought", "text x", "stop EndTurn"],
        ),
        (
            "no end",
            vec![event(&text("x"), "")],
            vec!["text x", "cut"],
        ),
        (
            "a call that its server could not read",
            vec![r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed: x("}]}"#.to_owned()],
            vec!["vendor the provider could not read the answer of its model: MALFORMED_FUNCTION_CALL Malformed: x("],
        ),
        (
            "a call without a name",
            vec![event(r#"{"functionCall":{"args":{}}}"#, "STOP")],
            vec!["vendor a tool call without a name"],
        ),
        (
            "a request that is refused",
            vec![r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#.to_owned()],
            vec!["notice the provider refused the request: SAFETY", "stop Refusal"],
        ),
        (
            "a reason of tomorrow",
            vec![event(&text("x"), "TIRED")],
            vec!["text x", "stop Other(\"TIRED\")"],
        ),
        (
            "Chat Completions",
            vec![r#"{"choices":[]}"#.to_owned()],
            vec!["other API: Chat Completions"],
        ),
    ];
    for (name, events, want) in table {
        let stream: String = events
            .iter()
            .map(|data| format!("data: {data}\n\n"))
            .collect();
        assert_eq!(decode([stream.as_bytes()].into_iter()), want, "{name}");
        assert_eq!(
            decode(stream.as_bytes().chunks(1)),
            want,
            "{name}, byte by byte"
        );
        // Behind a proxy that drops the query, the same answer is one list.
        let list = format!("[{}]", events.join(",\r\n"));
        assert_eq!(
            decode([list.as_bytes()].into_iter()),
            want,
            "{name}, as a list"
        );
    }
}
