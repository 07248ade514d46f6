//! Golden bytes, and what holds for every order of items.

use crate::openai_responses::Responses;
use llm_worker::projection::{Dialect, Open};
use llm_worker::{
    CallId, Item, ProviderSignature, ResultStatus, SealedReasoning, Surface, ToolDefinition,
    ToolEffect, ToolOutcome,
};
use serde_json::{Value, json};
use std::sync::Arc;

fn surface(model: &str) -> Surface {
    Surface {
        generation: 1,
        model: model.to_owned(),
        system: "Be \"brief\".\n".to_owned(),
        tools: vec![ToolDefinition {
            name: "Read".to_owned(),
            description: "Read a file.".to_owned(),
            schema: Arc::from(r#"{"properties":{"path":{"type":"string"}},"type":"object"}"#),
            effect: ToolEffect::ReadOnly,
        }],
        max_output: Some(4096),
        effort: None,
        thinking: false,
        media: Vec::new(),
    }
}

fn user(text: &str) -> Item {
    Item::user(text.to_owned())
}

fn assistant(text: &str) -> Item {
    Item::Assistant {
        text: text.to_owned(),
    }
}

fn reasoning(kind: &str) -> Item {
    Item::Reasoning {
        text: "Hm.".to_owned(),
        seal: Some(SealedReasoning {
            model: "openai/gpt-5.1".to_owned(),
            generation: 1,
            signature: ProviderSignature {
                kind: kind.to_owned(),
                data: r#"{"summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"gA=="}"#
                    .to_owned(),
            },
        }),
    }
}

fn call() -> Item {
    Item::ToolCall {
        id: CallId::new(1).unwrap(),
        name: "Read".to_owned(),
        arguments: r#"{"path":"a"}"#.to_owned(),
    }
}

fn result() -> Item {
    Item::ToolResult {
        id: CallId::new(1).unwrap(),
        outcome: ToolOutcome {
            status: ResultStatus::Ok,
            summary: "1 line".to_owned(),
            content: "x".to_owned(),
            attachments: Vec::new(),
        },
    }
}

fn encoded(model: &str, items: &[Item]) -> String {
    let (mut out, mut open): (Vec<u8>, Open) = (Vec::new(), 0);
    Responses.head(&surface(model), &mut out);
    for (at, item) in items.iter().enumerate() {
        open = Responses.append(open, at == 0, item, &mut out);
    }
    Responses.close(open, &mut out);
    String::from_utf8(out).unwrap()
}

fn input(items: &[Item]) -> Value {
    let body: Value = serde_json::from_str(&encoded("openai/gpt-5.1", items)).unwrap();
    body["input"].clone()
}

#[test]
fn a_request_has_these_bytes() {
    let note = Item::System {
        source: "host".to_owned(),
        text: "restarted".to_owned(),
    };
    let items = [
        user("go"),
        note,
        reasoning("reasoning"),
        call(),
        result(),
        assistant("done"),
    ];
    let want = concat!(
        r#"{"model":"gpt-5.1","stream":true,"store":false,"include":["reasoning.encrypted_content"],"max_output_tokens":4096,"#,
        r#""tools":[{"type":"function","name":"Read","description":"Read a file.","parameters":{"properties":{"path":{"type":"string"}},"type":"object"},"strict":false}],"#,
        r#""instructions":"Be \"brief\".\n","input":[{"role":"user","content":"go"},"#,
        r#"{"role":"user","content":"<host-note source=\"host\">\nrestarted\n</host-note>"},"#,
        r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"gA=="},"#,
        r#"{"type":"function_call","call_id":"c00000001","name":"Read","arguments":"{\"path\":\"a\"}"},"#,
        r#"{"type":"function_call_output","call_id":"c00000001","output":"1 line\nx"},"#,
        r#"{"role":"assistant","content":"done"}]}"#,
    );
    assert_eq!(encoded("openai/gpt-5.1", &items), want);
}

/// Models that do not reason answer 400 when they are asked for encrypted reasoning.
#[test]
fn only_models_that_reason_are_asked_for_their_reasoning() {
    for (model, asked) in [
        ("openai/gpt-5.1", true),
        ("openai/o4-mini", true),
        ("local/gpt-oss-120b", true),
        ("openai/gpt-4.1", false),
        ("openai/gpt-4o-mini", false),
    ] {
        let body: Value = serde_json::from_str(&encoded(model, &[])).unwrap();
        assert_eq!(body.get("include").is_some(), asked, "{model}");
        assert_eq!(body["input"], json!([]), "{model}");
    }
}

#[test]
fn reasoning_is_never_the_last_of_an_answer() {
    let stands = json!({"role": "assistant", "content": "(no answer)"});
    let reasoned = || reasoning("reasoning");
    assert_eq!(input(&[user("a"), reasoned()])[2], stands);
    assert_eq!(input(&[user("a"), reasoned(), user("b")])[2], stands);
    let two = input(&[user("a"), reasoned(), reasoned(), assistant("x")]);
    assert_eq!(two.as_array().unwrap().len(), 4, "{two}");
    // Of another vendor, or not sealed: not sent.
    assert_eq!(
        input(&[user("a"), reasoning("signature")])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let plain = Item::Reasoning {
        text: "Hm.".to_owned(),
        seal: None,
    };
    assert_eq!(
        input(&[plain, user("a"), assistant("")])
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
