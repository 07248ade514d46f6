//! Golden bytes, and what the API demands of every order of items.

use crate::anthropic::{Messages, max_output};
use llm_worker::projection::Dialect;
use llm_worker::{
    CallId, Item, Projection, ProviderSignature, ResultStatus, SealedReasoning, Surface,
    ToolDefinition, ToolEffect, ToolOutcome,
};
use serde_json::Value;
use std::sync::Arc;

fn surface() -> Surface {
    let tool = |name: &str, about: &str, schema: &str| ToolDefinition {
        name: name.to_owned(),
        description: about.to_owned(),
        schema: Arc::from(schema),
        effect: ToolEffect::ReadOnly,
    };
    Surface {
        generation: 1,
        model: "anthropic/claude-x".to_owned(),
        system: "Be \"brief\".\n".to_owned(),
        tools: vec![
            tool(
                "Grep",
                "Search.",
                r#"{"properties":{"pattern":{"type":"string"}},"type":"object"}"#,
            ),
            tool("Read", "Read a file.", r#"{"type":"object"}"#),
        ],
        max_output: Some(4096),
        effort: None,
        thinking: false,
        media: Vec::new(),
    }
}

fn call(number: u64, name: &str, arguments: &str) -> Item {
    Item::ToolCall {
        id: CallId::new(number).unwrap(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn result(number: u64, status: ResultStatus, summary: &str, content: &str) -> Item {
    let outcome = ToolOutcome {
        status,
        summary: summary.to_owned(),
        content: content.to_owned(),
        attachments: Vec::new(),
    };
    Item::ToolResult {
        id: CallId::new(number).unwrap(),
        outcome,
    }
}

fn user(text: &str) -> Item {
    Item::user(text.to_owned())
}

fn note(text: &str) -> Item {
    Item::System {
        source: "host".to_owned(),
        text: text.to_owned(),
    }
}

fn assistant(text: &str) -> Item {
    Item::Assistant {
        text: text.to_owned(),
    }
}

fn thought(text: &str, kind: &str, data: &str) -> Item {
    let signature = ProviderSignature {
        kind: kind.to_owned(),
        data: data.to_owned(),
    };
    let seal = Some(SealedReasoning {
        model: "anthropic/claude-x".to_owned(),
        generation: 1,
        signature,
    });
    Item::Reasoning {
        text: text.to_owned(),
        seal,
    }
}

fn body(surface: &Surface, items: &[Item]) -> String {
    let mut projection = Projection::new(surface, Arc::new(Messages));
    items.iter().for_each(|item| projection.push(item));
    String::from_utf8(projection.body().to_vec()).unwrap()
}

fn conversation() -> Vec<Item> {
    vec![
        note("date: 2026-01-01"),
        user("hi \u{1}\t\\ é"),
        thought("hm\n\"so\"", "signature", "Eq/+=="),
        thought("", "redacted_thinking", "Emw="),
        assistant("Looking."),
        thought("", "signature", "QQ=="),
        call(1, "Read", r#"{"path": "a"}"#),
        call(2, "Gr ep", "{broken"),
        result(2, ResultStatus::Error, "arguments do not fit", ""),
        result(1, ResultStatus::Ok, "a: lines 1-1 of 1", "     1\tx"),
        call(3, "", ""),
        result(3, ResultStatus::Refused, "", ""),
        note("end </host-note> not"),
        thought("only this", "signature", "Rg=="),
        user("and?"),
        assistant("Done."),
        assistant(" "),
        user(" "),
    ]
}

/// What precedes the messages: these bytes are what the vendor's cache keeps first.
const HEAD: &str = concat!(
    r#"{"model":"claude-x","max_tokens":4096,"stream":true,"tools":[{"name":"Grep","description":"Search.","#,
    r#""input_schema":{"properties":{"pattern":{"type":"string"}},"type":"object"}},"#,
    r#"{"name":"Read","description":"Read a file.","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"#,
    r#""system":[{"type":"text","text":"Be \"brief\".\n","cache_control":{"type":"ephemeral"}}],"messages":["#,
);

#[test]
fn the_bytes_are_pinned() {
    let expected = concat!(
        r#"{"role":"user","content":[{"type":"text","text":"<host-note source=\"host\">\ndate: 2026-01-01\n</host-note>"},"#,
        r#"{"type":"text","text":"hi \u0001\t\\ é"}]},"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm\n\"so\"","signature":"Eq/+=="},"#,
        r#"{"type":"redacted_thinking","data":"Emw="},{"type":"text","text":"Looking."},"#,
        r#"{"type":"thinking","thinking":"","signature":"QQ=="},"#,
        r#"{"type":"tool_use","id":"c00000001","name":"Read","input":{"path": "a"}},"#,
        r#"{"type":"tool_use","id":"c00000002","name":"Gr_ep","input":{"invalid_json":"{broken"}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c00000001","content":"a: lines 1-1 of 1\n     1\tx"},"#,
        r#"{"type":"tool_result","tool_use_id":"c00000002","is_error":true,"content":"arguments do not fit"}]},"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c00000003","name":"unnamed","input":{}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c00000003","is_error":true},"#,
        r#"{"type":"text","text":"<host-note source=\"host\">\nend <\\/host-note> not\n</host-note>"}]},"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"only this","signature":"Rg=="},"#,
        r#"{"type":"text","text":"(no answer)"}]},"#,
        r#"{"role":"user","content":[{"type":"text","text":"and?"}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"Done."}]},"#,
        r#"{"role":"user","content":[{"type":"text","text":"(nothing)","cache_control":{"type":"ephemeral"}}]}]}"#,
    );
    let found = body(&surface(), &conversation());
    assert_eq!(
        found,
        format!("{HEAD}{expected}"),
        "these bytes are anthropic-messages/1: a change is a new version"
    );
    assert_eq!(
        (Messages.id(), Messages.version()),
        ("anthropic-messages", 1)
    );
    assert!(serde_json::from_str::<Value>(&found).is_ok());
    let bare = Surface {
        system: " ".to_owned(),
        tools: Vec::new(),
        max_output: None,
        ..surface()
    };
    assert_eq!(
        body(&bare, &[user("hi")]),
        concat!(
            r#"{"model":"claude-x","max_tokens":8192,"stream":true,"messages":[{"role":"user","content":"#,
            r#"[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}"#
        )
    );
}

/// The API's rules, checked on every prefix and on orders that no conversation has.
#[test]
fn every_order_of_items_is_a_request_the_api_takes() {
    let items = conversation();
    let mut orders: Vec<Vec<Item>> = (1..=items.len()).map(|end| items[..end].to_vec()).collect();
    let foreign = [
        Item::Reasoning {
            text: "no seal".to_owned(),
            seal: None,
        },
        thought("another vendor's", "encrypted_content", "x"),
    ];
    // A result is behind its call in every history.
    let loose = items
        .iter()
        .filter(|item| !matches!(item, Item::ToolResult { .. }));
    orders.extend(loose.map(|item| [foreign.as_slice(), &[user("x"), item.clone()]].concat()));
    for order in orders {
        let request: Value = serde_json::from_str(&body(&surface(), &order)).unwrap();
        let messages = request["messages"].as_array().unwrap();
        let anchors = request.to_string().matches("cache_control").count();
        assert!(anchors <= 4, "the API takes four");
        let mut last = "";
        for message in messages {
            let role = message["role"].as_str().unwrap();
            assert_ne!(
                role, last,
                "neighbours of one role are one message: {order:?}"
            );
            last = role;
            let content = message["content"].as_array().unwrap();
            let kinds: Vec<&str> = content
                .iter()
                .map(|block| block["type"].as_str().unwrap())
                .collect();
            assert!(
                !kinds.is_empty() && !kinds.last().unwrap().contains("thinking"),
                "{kinds:?}"
            );
            let said = kinds
                .iter()
                .position(|kind| *kind == "text")
                .unwrap_or(kinds.len());
            assert!(
                role == "assistant" || kinds[said..].iter().all(|kind| *kind == "text"),
                "results first: {kinds:?}"
            );
            for block in content {
                assert!(
                    block["text"]
                        .as_str()
                        .is_none_or(|text| !text.trim().is_empty()),
                    "{block}"
                );
                assert!(
                    !(block["type"] == "thinking" && block["cache_control"].is_object()),
                    "{block}"
                );
            }
        }
        let end = messages.last().unwrap()["content"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        let word = end["text"] == "(no answer)";
        assert_eq!(
            end["cache_control"]["type"] == "ephemeral",
            !word,
            "the last block is the last anchor: {end}"
        );
    }
}

/// What moves is in the closing bytes alone, so that a digest goes on from request to request.
#[test]
fn the_moving_anchor_leaves_old_bytes_as_they_were() {
    let mut projection = Projection::new(&surface(), Arc::new(Messages));
    let mut before: Option<String> = None;
    let items = conversation();
    for (at, item) in items.iter().enumerate() {
        projection.push(item);
        // A request has all results of its calls.
        if matches!(items.get(at + 1), Some(Item::ToolResult { .. })) {
            continue;
        }
        let now = String::from_utf8(projection.body().to_vec()).unwrap();
        if let Some(before) = before {
            let end = before.rfind(r#","cache_control""#).unwrap();
            assert!(now.starts_with(&before[..end]), "{now}");
        }
        let anchors = now[HEAD.len()..].matches("cache_control").count();
        assert_eq!(
            anchors,
            usize::from(!now.ends_with(r#""(no answer)"}]}]}"#)),
            "one, at the end: {now}"
        );
        before = Some(now).filter(|now| now.ends_with(r#""ephemeral"}}]}]}"#));
    }
}

#[test]
fn a_seal_of_another_model_or_surface_is_not_sent() {
    let own = body(&surface(), &conversation());
    assert_eq!(own.matches("thinking\",\"").count(), 4);
    for other in [
        Surface {
            model: "anthropic/claude-y".to_owned(),
            ..surface()
        },
        Surface {
            generation: 2,
            ..surface()
        },
    ] {
        let body = body(&other, &conversation());
        assert!(
            !body.contains("thinking") && !body.contains("Eq/+=="),
            "{body}"
        );
    }
}

#[test]
fn limits_by_name() {
    for (model, limit) in [
        ("claude-sonnet-5", 32_000),
        ("claude-opus-4-1-20250805", 32_000),
        ("claude-3-7-sonnet-latest", 32_000),
        ("claude-3-5-haiku-20241022", 8_192),
        ("claude-3-haiku-20240307", 4_096),
        ("claude-2.1", 4_096),
        ("kimi-k3", 8_192),
    ] {
        assert_eq!(max_output(model), limit, "{model}");
    }
}
