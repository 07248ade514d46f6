//! Golden bytes, and what holds for every order of items.

use crate::gemini::Gemini;
use llm_worker::{
    CallId, Item, Projection, ProviderSignature, ResultStatus, SealedReasoning, Surface,
    ToolDefinition, ToolEffect, ToolOutcome,
};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn surface() -> Surface {
    Surface {
        generation: 1,
        model: "google/gemini-3.5-flash".to_owned(),
        system: "Be \"brief\".\n".to_owned(),
        tools: vec![ToolDefinition {
            name: "Read".to_owned(),
            description: "Read a file.".to_owned(),
            schema: Arc::from(r#"{"properties":{"path":{"type":"string"}},"type":"object"}"#),
            effect: ToolEffect::ReadOnly,
        }],
        max_output: Some(4096),
        effort: None,
        thinking: true,
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

fn sealed(kind: &str, generation: u64) -> Item {
    Item::Reasoning {
        text: "Hm.".to_owned(),
        seal: Some(SealedReasoning {
            model: "google/gemini-3.5-flash".to_owned(),
            generation,
            signature: ProviderSignature {
                kind: kind.to_owned(),
                data: "Ci/+8=".to_owned(),
            },
        }),
    }
}

fn call(number: u64) -> Item {
    Item::ToolCall {
        id: CallId::new(number).unwrap(),
        name: "Read".to_owned(),
        arguments: r#"{"path":"a"}"#.to_owned(),
    }
}

fn result(number: u64) -> Item {
    Item::ToolResult {
        id: CallId::new(number).unwrap(),
        outcome: ToolOutcome {
            status: ResultStatus::Ok,
            summary: "1 line".to_owned(),
            content: "x".to_owned(),
            attachments: Vec::new(),
        },
    }
}

fn encoded(items: &[Item]) -> String {
    let mut projection = Projection::new(&surface(), Arc::new(Gemini));
    items.iter().for_each(|item| projection.push(item));
    String::from_utf8(projection.body().to_vec()).unwrap()
}

fn contents(items: &[Item]) -> Value {
    let body: Value = serde_json::from_str(&encoded(items)).unwrap();
    body["contents"].clone()
}

#[test]
fn the_bytes_of_a_request() {
    let items = [
        user("hi é"),
        sealed("gemini-call", 1),
        call(1),
        call(2),
        result(2),
        result(1),
        assistant("Done."),
        sealed("gemini-text", 1),
    ];
    assert_eq!(
        encoded(&items),
        concat!(
            r#"{"generationConfig":{"maxOutputTokens":4096,"thinkingConfig":{"includeThoughts":true}},"#,
            r#""tools":[{"functionDeclarations":[{"name":"Read","description":"Read a file.","#,
            r#""parametersJsonSchema":{"properties":{"path":{"type":"string"}},"type":"object"}}]}],"#,
            r#""systemInstruction":{"parts":[{"text":"Be \"brief\".\n"}]},"contents":["#,
            r#"{"role":"user","parts":[{"text":"hi é"}]},"#,
            r#"{"role":"model","parts":[{"thoughtSignature":"Ci/+8=","functionCall":{"id":"c00000001","name":"Read","args":{"path":"a"}}},"#,
            r#"{"functionCall":{"id":"c00000002","name":"Read","args":{"path":"a"}}}]},"#,
            r#"{"role":"user","parts":[{"functionResponse":{"id":"c00000001","name":"Read","response":{"output":"1 line\nx"}}},"#,
            r#"{"functionResponse":{"id":"c00000002","name":"Read","response":{"output":"1 line\nx"}}}]},"#,
            r#"{"role":"model","parts":[{"text":"Done."},{"text":"","thoughtSignature":"Ci/+8="}]}]}"#,
        )
    );
}

#[test]
fn signatures_stay_with_their_parts_and_a_call_always_has_one() {
    let skip = "skip_thought_signature_validator";
    let of_other = [user("u"), sealed("gemini-call", 7), call(1), call(2)];
    let parts = &contents(&of_other)[1]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], skip);
    assert_eq!(parts[1].get("thoughtSignature"), None);
    let after_text = [
        user("u"),
        assistant("t"),
        call(1),
        sealed("gemini-call", 1),
        call(2),
    ];
    let parts = &contents(&after_text)[1]["parts"];
    assert_eq!(parts[1]["thoughtSignature"], skip);
    assert_eq!(parts[2]["thoughtSignature"], "Ci/+8=");
    let thought = [
        user("u"),
        sealed("gemini-thought", 1),
        sealed("signature", 1),
    ];
    assert_eq!(
        contents(&thought)[1]["parts"],
        json!([{"thought": true, "text": "Hm.", "thoughtSignature": "Ci/+8="}])
    );
}

#[test]
fn every_order_of_items_is_json_in_which_results_stand_alone() {
    let kinds = [
        user("u"),
        assistant("t"),
        sealed("gemini-call", 1),
        sealed("gemini-text", 1),
        call(1),
        result(1),
    ];
    let count = kinds.len();
    for order in 0..count.pow(4) {
        let pick = |place: u32| kinds[order / count.pow(place) % count].clone();
        let items: Vec<Item> = (0..4).map(pick).collect();
        for content in contents(&items).as_array().unwrap() {
            let parts = content["parts"].as_array().unwrap();
            let results = parts
                .iter()
                .filter(|part| part.get("functionResponse").is_some());
            let results = results.count();
            assert!(results == 0 || results == parts.len(), "{items:?}");
            assert!(!parts.is_empty(), "{items:?}");
        }
    }
}
