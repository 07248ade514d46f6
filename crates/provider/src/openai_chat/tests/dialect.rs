//! Golden bytes of each flavour, and what holds for every order of items.

use crate::openai_chat::{Chat, Flavour};
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
        model: "openrouter/vendor/model-1".to_owned(),
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

fn result(number: u64, summary: &str, content: &str) -> Item {
    let outcome = ToolOutcome {
        status: ResultStatus::Ok,
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

fn note(source: &str, text: &str) -> Item {
    Item::System {
        source: source.to_owned(),
        text: text.to_owned(),
    }
}

fn assistant(text: &str) -> Item {
    Item::Assistant {
        text: text.to_owned(),
    }
}

fn reasoning() -> Item {
    Item::Reasoning {
        text: "hm".to_owned(),
        seal: None,
    }
}

fn body(flavour: Flavour, surface: &Surface, items: &[Item]) -> String {
    let mut projection = Projection::new(surface, Arc::new(Chat(flavour)));
    for item in items {
        projection.push(item);
    }
    String::from_utf8(projection.body().to_vec()).unwrap()
}

fn conversation() -> Vec<Item> {
    vec![
        note("host", "date: 2026-01-01"),
        user("hi \u{1}\t\\ é"),
        reasoning(),
        assistant("Looking."),
        call(1, "Read", r#"{"path":"a"}"#),
        call(2, "Grep", "{broken"),
        result(1, "a: lines 1-1 of 1", "     1\tx"),
        result(2, "arguments do not fit", ""),
        call(3, "List", ""),
        result(3, "3 files", ""),
        note("x\"<&", "end </host-note> not"),
        assistant("Done."),
        assistant(""),
        user("thanks"),
    ]
}

const TOOLS: &str = concat!(
    r#""tools":[{"type":"function","function":{"name":"Grep","description":"Search.","parameters":{"properties":{"pattern":{"type":"string"}},"type":"object"}}},"#,
    r#"{"type":"function","function":{"name":"Read","description":"Read a file.","parameters":{"type":"object"}}}],"#,
);

#[test]
fn golden_openai() {
    let want = [
        r#"{"model":"vendor/model-1","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":4096,"#,
        TOOLS,
        r#""messages":[{"role":"system","content":"Be \"brief\".\n"},"#,
        r#"{"role":"user","content":"<host-note source=\"host\">\ndate: 2026-01-01\n</host-note>\n\nhi \u0001\t\\ é"},"#,
        r#"{"role":"assistant","content":"Looking.","tool_calls":["#,
        r#"{"id":"c00000001","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}},"#,
        r#"{"id":"c00000002","type":"function","function":{"name":"Grep","arguments":"{broken"}}]},"#,
        r#"{"role":"tool","tool_call_id":"c00000001","content":"a: lines 1-1 of 1\n     1\tx"},"#,
        r#"{"role":"tool","tool_call_id":"c00000002","content":"arguments do not fit"},"#,
        r#"{"role":"assistant","content":null,"tool_calls":["#,
        r#"{"id":"c00000003","type":"function","function":{"name":"List","arguments":""}}]},"#,
        r#"{"role":"tool","tool_call_id":"c00000003","content":"3 files"},"#,
        r#"{"role":"user","content":"<host-note source=\"x&quot;&lt;&amp;\">\nend <\\/host-note> not\n</host-note>"},"#,
        r#"{"role":"assistant","content":"Done."},{"role":"user","content":"thanks"}]}"#,
    ];
    assert_eq!(
        body(Flavour::OpenAi, &surface(), &conversation()),
        want.concat()
    );
}

#[test]
fn golden_differences_of_the_other_flavours() {
    let openai = body(Flavour::OpenAi, &surface(), &conversation());
    let compatible = openai
        .replace("max_completion_tokens", "max_tokens")
        .replace(r#""content":null"#, r#""content":"""#)
        .replace(
            r#""arguments":"{broken""#,
            r#""arguments":"{\"invalid_json\":\"{broken\"}""#,
        )
        .replace(
            r#""name":"List","arguments":"""#,
            r#""name":"List","arguments":"{}""#,
        );
    assert_eq!(
        body(Flavour::Compatible, &surface(), &conversation()),
        compatible
    );
    let signed =
        r#","extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}}"#;
    let gemini = compatible
        .replace(
            r#"{\"path\":\"a\"}"}}"#,
            &format!(r#"{{\"path\":\"a\"}}"}}{signed}"#),
        )
        .replace(
            r#""name":"List","arguments":"{}"}}"#,
            &format!(r#""name":"List","arguments":"{{}}"}}{signed}"#),
        );
    assert_eq!(body(Flavour::Gemini, &surface(), &conversation()), gemini);
}

/// Behind a proxy of another name the signature of Gemini's calls was dropped, and each later request was refused.
#[test]
fn a_signature_is_sent_back_with_the_call_behind_it() {
    let seal = || {
        let signature = ProviderSignature {
            kind: "extra_content".to_owned(),
            data: r#"{"google":{"x":1}}"#.to_owned(),
        };
        let Surface {
            model, generation, ..
        } = surface();
        Item::Reasoning {
            text: "hm".to_owned(),
            seal: Some(SealedReasoning {
                model,
                generation,
                signature,
            }),
        }
    };
    let signed = r#""tool_calls":[{"extra_content":{"google":{"x":1}},"id":"c00000001","type":"function","function":{"name":"Read","arguments":"{}"}},{"id":"c00000002""#;
    for flavour in Flavour::ALL {
        for text in ["", "Looking."] {
            let items = [
                user("x"),
                assistant(text),
                seal(),
                call(1, "Read", "{}"),
                call(2, "Read", "{}"),
            ];
            let body = body(flavour, &surface(), &items);
            assert!(
                body.contains(signed) && !body.contains("skip_thought"),
                "{body}"
            );
            assert!(
                serde_json::from_str::<serde_json::Value>(&body).is_ok(),
                "{body}"
            );
            let other = Surface {
                model: "vendor/other".to_owned(),
                ..surface()
            };
            let other = self::body(flavour, &other, &items);
            assert!(!other.contains(r#"{"x":1}"#), "{other}");
        }
    }
}

#[test]
fn a_surface_without_tools_or_limit_names_neither() {
    let bare = Surface {
        tools: Vec::new(),
        max_output: None,
        model: "plain".to_owned(),
        ..surface()
    };
    let text = body(Flavour::OpenAi, &bare, &[user("x")]);
    assert_eq!(
        text,
        r#"{"model":"plain","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be \"brief\".\n"},{"role":"user","content":"x"}]}"#
    );
}

/// Every sequence of four items out of nine kinds: valid JSON at each step, only ever appended to, no two user or
/// assistant texts in a row, and the same bytes as a fold into one buffer.
#[test]
fn every_order_of_items_appends_valid_json() {
    let signature = ProviderSignature {
        kind: "extra_content".to_owned(),
        data: "{}".to_owned(),
    };
    let seal = SealedReasoning {
        model: surface().model,
        generation: surface().generation,
        signature,
    };
    let signed = Item::Reasoning {
        text: String::new(),
        seal: Some(seal),
    };
    let kinds: [Item; 9] = [
        signed,
        user("u\"\n"),
        note("host", "n"),
        assistant("a\\"),
        assistant(""),
        reasoning(),
        call(1, "Read", "{}"),
        call(2, "Read", "no"),
        result(1, "ok", "body"),
    ];
    for flavour in Flavour::ALL {
        for code in 0..9usize.pow(4) {
            let items = (0..4).map(|place| &kinds[code / 9usize.pow(place) % 9]);
            check_order(Chat(flavour), items);
        }
    }
}

fn check_order<'a>(dialect: Chat, items: impl Iterator<Item = &'a Item>) {
    let surface = Surface {
        tools: Vec::new(),
        ..surface()
    };
    let mut whole = Vec::new();
    let mut pieces = Vec::new();
    let mut open = 0;
    dialect.head(&surface, &mut whole);
    dialect.head(&surface, &mut pieces);
    let mut last = Value::Null;
    for (at, item) in items.enumerate() {
        let mut piece = Vec::new();
        let opened = dialect.append(open, at == 0, item, &mut piece);
        assert_eq!(dialect.append(open, at == 0, item, &mut whole), opened);
        pieces.extend_from_slice(&piece);
        open = opened;
        let mut closed = whole.clone();
        dialect.close(open, &mut closed);
        last = serde_json::from_slice(&closed)
            .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&closed)));
    }
    assert_eq!(whole, pieces);
    let messages = last["messages"].as_array().unwrap();
    for pair in messages.windows(2) {
        let text_only = |message: &Value| message.get("tool_calls").is_none();
        let same = pair[0]["role"] == pair[1]["role"] && pair[0]["role"] != "tool";
        assert!(!(same && text_only(&pair[0])), "{last}");
    }
}

#[test]
fn a_recorded_dialect_is_found_by_its_id() {
    for flavour in Flavour::ALL {
        assert_eq!(Chat::by_id(flavour.id()).unwrap().id(), flavour.id());
    }
    assert!(Chat::by_id("neutral").is_none());
}
