//! The recorded rules of the two APIs: encoded histories keep them, and each has a request that breaks it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: a request of another form is a failed test"
)]

mod judge;

use judge::{Rules, sign};
use llm_worker::projection::Dialect;
use llm_worker::{
    CallId, Item, Projection, ProviderSignature, ResultStatus, SealedReasoning, Surface,
    ToolDefinition, ToolEffect, ToolOutcome,
};
use provider::anthropic::Messages;
use provider::openai_chat::{Chat, Flavour};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const MODEL: &str = "vendor/model";

fn surface() -> Surface {
    let tool = ToolDefinition {
        name: "Read".to_owned(),
        description: "Reads.".to_owned(),
        schema: Arc::from(r#"{"type":"object"}"#),
        effect: ToolEffect::ReadOnly,
    };
    let model = MODEL.to_owned();
    let system = "Be brief.".to_owned();
    Surface {
        generation: 1,
        model,
        system,
        tools: vec![tool],
        max_output: None,
        effort: None,
        thinking: false,
        media: Vec::new(),
    }
}

/// One part of the thinking in the answer to a request.
fn thinking(kind: &str, request: usize, part: usize, of: usize) -> Item {
    let text = if kind == "signature" {
        format!("thought {part}")
    } else {
        String::new()
    };
    let signature = ProviderSignature {
        kind: kind.to_owned(),
        data: sign(request, part, of, &text),
    };
    Item::Reasoning {
        text,
        seal: Some(SealedReasoning {
            model: MODEL.to_owned(),
            generation: 1,
            signature,
        }),
    }
}

fn call(number: u64) -> Item {
    let arguments = r#"{"thought":true}"#.to_owned();
    Item::ToolCall {
        id: CallId::new(number).unwrap(),
        name: "Read".to_owned(),
        arguments,
    }
}

fn result(number: u64) -> Item {
    let status = ResultStatus::Ok;
    let summary = "read".to_owned();
    let content = format!("result {number}");
    Item::ToolResult {
        id: CallId::new(number).unwrap(),
        outcome: ToolOutcome {
            status,
            summary,
            content,
            attachments: Vec::new(),
        },
    }
}

fn user(text: &str) -> Item {
    Item::user(text.to_owned())
}

/// What each request adds to the one before: the answer to that one, and what the host says then.
fn steps() -> Vec<Vec<Item>> {
    let note = |text: &str| Item::System {
        source: "host".to_owned(),
        text: text.to_owned(),
    };
    vec![
        vec![note("a date"), user("look")],
        vec![thinking("signature", 0, 0, 1), call(1), result(1)],
        vec![
            thinking("signature", 1, 0, 3),
            thinking("redacted_thinking", 1, 1, 3),
            Item::Assistant {
                text: "Both.".to_owned(),
            },
            thinking("signature", 1, 2, 3),
            call(2),
            call(3),
            result(3),
            result(2),
        ],
        vec![
            thinking("signature", 2, 0, 1),
            Item::Assistant {
                text: "Done.".to_owned(),
            },
            user("and?"),
        ],
        vec![
            thinking("signature", 3, 0, 1),
            call(4),
            result(4),
            note("another branch"),
        ],
        vec![thinking("signature", 4, 0, 1), call(5), result(5)],
    ]
}

/// The requests of that conversation.
fn requests(dialect: Arc<dyn Dialect>) -> Vec<Value> {
    let mut projection = Projection::new(&surface(), dialect);
    let mut encode = |items: Vec<Item>| {
        items.iter().for_each(|item| projection.push(item));
        serde_json::from_slice(&projection.body().to_vec()).unwrap()
    };
    steps().into_iter().map(&mut encode).collect()
}

fn chats() -> impl Iterator<Item = Vec<Value>> {
    Flavour::ALL
        .into_iter()
        .map(|flavour| requests(Arc::new(Chat(flavour))))
}

#[test]
fn an_encoded_conversation_keeps_every_rule() {
    let check = |rules: &Rules, requests: &[Value]| {
        for upto in 1..=requests.len() {
            let broken = rules
                .broken(&requests[..upto])
                .first()
                .map(|id| rules.explained(id));
            assert_eq!(broken, None, "request {upto}");
        }
    };
    check(&Rules::anthropic(), &requests(Arc::new(Messages)));
    chats().for_each(|requests| check(&Rules::openai(), &requests));
}

/// Arguments that were refused stay in the history, and a strict server refused each later request with them.
#[test]
fn stored_arguments_of_any_kind_are_sent_as_an_object() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let table = [
        (r#"{"a":"\ud800"}"#, false),
        (r#"{"\udc00":1}"#, false),
        (r#"{"a":1e999}"#, false),
        (deep.as_str(), false),
        (r#"{"a":1}{"a":1}"#, false),
        ("null", false),
        ("\u{0}", false),
        (
            r#"{"a": 12345678901234567890123, "a": -0, "b":"\ud83d\ude00"}"#,
            true,
        ),
        (" {\"a\":\n1.50} ", true),
    ];
    for (raw, as_it_is) in table {
        let item = Item::ToolCall {
            id: CallId::new(1).unwrap(),
            name: "Read".to_owned(),
            arguments: raw.to_owned(),
        };
        let mut projection = Projection::new(&surface(), Arc::new(Messages));
        projection.push(&user("look"));
        projection.push(&item);
        let body = String::from_utf8(projection.body().to_vec()).unwrap();
        let request: Value =
            serde_json::from_str(&body).unwrap_or_else(|error| panic!("{raw:.40}: {error}"));
        let input = &request["messages"][1]["content"][0]["input"];
        assert_eq!(input.get("invalid_json").is_none(), as_it_is, "{raw:.40}");
        assert_eq!(
            body.contains(&format!(r#""input":{raw}"#)),
            as_it_is,
            "{raw:.40}: the bytes that were sent before"
        );
        for flavour in Flavour::ALL {
            let mut projection = Projection::new(&surface(), Arc::new(Chat(flavour)));
            projection.push(&user("look"));
            projection.push(&item);
            let request: Value = serde_json::from_slice(&projection.body().to_vec()).unwrap();
            let sent = request["messages"][2]["tool_calls"][0]["function"]["arguments"]
                .as_str()
                .unwrap();
            assert_eq!(
                sent == raw,
                as_it_is || flavour == Flavour::OpenAi,
                "{flavour:?} {raw:.40}"
            );
        }
    }
}

#[test]
fn every_rule_has_a_source_with_a_date() {
    for rules in [Rules::anthropic(), Rules::openai()] {
        let ids: BTreeSet<&str> = rules.rules.iter().map(|rule| rule.id.as_str()).collect();
        assert_eq!(
            ids.len(),
            rules.rules.len(),
            "{}: each rule once",
            rules.api
        );
        for rule in &rules.rules {
            assert!(
                rule.says.ends_with('.') && !rule.source.title.is_empty(),
                "{}",
                rule.id
            );
            assert!(rule.source.address.starts_with("https://"), "{}", rule.id);
            let date = rule
                .source
                .read
                .split('-')
                .map(str::len)
                .collect::<Vec<_>>();
            assert_eq!(date, [4, 2, 2], "{}: {}", rule.id, rule.source.read);
        }
    }
}

/// A change of the requests, and the rules that the last one breaks then.
type Case = (&'static [&'static str], fn(&mut [Value]));

/// Each case must break exactly its rules, and each rule has a case.
fn seen_to_fail(rules: &Rules, whole: &[Value], cases: &[Case]) {
    let mut seen = BTreeSet::new();
    for (number, (ids, change)) in cases.iter().enumerate() {
        let mut changed = whole.to_vec();
        change(&mut changed);
        assert_eq!(rules.broken(&changed), *ids, "{}: case {number}", rules.api);
        seen.extend(*ids);
    }
    let all: BTreeSet<&str> = rules.rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(seen, all, "{}", rules.api);
}

/// The messages of the last request.
fn last(requests: &mut [Value]) -> &mut Vec<Value> {
    requests.last_mut().unwrap()["messages"]
        .as_array_mut()
        .unwrap()
}

/// The blocks of one message of the last request.
fn blocks(requests: &mut [Value], message: usize) -> &mut Vec<Value> {
    last(requests)[message]["content"].as_array_mut().unwrap()
}

/// Removes all thinking from these messages of the last request.
fn bare(requests: &mut [Value], from: usize, to: usize) {
    for message in from..to {
        blocks(requests, message)
            .retain(|block| !block["type"].as_str().unwrap().ends_with("thinking"));
    }
}

// The messages of the last request: 0 user, 1 answer, 2 result, 3 answer, 4 results, 5 answer, 6 user, 7 answer, 8 result
// and note, 9 answer, 10 result. The running loop begins behind 6.
const ANTHROPIC: &[Case] = &[
    // A mask in an old result, with the thinking behind it; the same with the thinking removed is right.
    (&["prefix-unchanged"], |all| {
        blocks(all, 2)[0]["content"] = json!("gone")
    }),
    (&[], |all| {
        blocks(all, 2)[0]["content"] = json!("gone");
        bare(all, 3, 10);
    }),
    (&["prefix-unchanged"], |all| {
        all.last_mut().unwrap()["system"][0]["text"] = json!("Be long.")
    }),
    (&["prefix-unchanged"], |all| {
        all.last_mut().unwrap()["tools"][0]["description"] = json!("Writes.")
    }),
    // Thinking between others that is left out.
    (&["prefix-unchanged"], |all| bare(all, 3, 4)),
    (
        &["prefix-unchanged", "thinking-of-an-answer-is-whole"],
        |all| drop(blocks(all, 3).remove(1)),
    ),
    (
        &["prefix-unchanged", "thinking-of-an-answer-is-whole"],
        |all| blocks(all, 3).swap(0, 1),
    ),
    (&["thinking-of-an-answer-is-whole"], |all| {
        blocks(all, 9)[0]["thinking"] = json!("another thought")
    }),
    // Of a loop, the thinking of the older answer alone; none at all is right, and so is that of the newer alone if it
    // answers a request without the older.
    (&["thinking-of-the-running-loop"], |all| bare(all, 9, 10)),
    (&[], |all| bare(all, 7, 10)),
    (&[], |all| {
        bare(all, 7, 8);
        let sent = all.len() - 2;
        bare(&mut all[..=sent], 7, 8);
    }),
    (&["thinking-first"], |all| {
        blocks(all, 9).insert(0, json!({ "type": "text", "text": "So:" }))
    }),
    (&["thinking-not-last"], |all| {
        let thinking = blocks(all, 5)[0].clone();
        *blocks(all, 5) = vec![thinking];
        bare(all, 7, 10);
    }),
    (&["prefix-unchanged", "calls-answered"], |all| {
        drop(blocks(all, 4).remove(0))
    }),
    // Something between a call and its result.
    (
        &["calls-answered", "results-asked-for", "roles-alternate"],
        |all| {
            last(all).insert(10, json!({ "role": "user", "content": "wait" }));
        },
    ),
    (&["results-asked-for"], |all| {
        blocks(all, 10).push(json!({ "type": "tool_result", "tool_use_id": "c00000009" }))
    }),
    (&["results-asked-for", "ends-with-the-user"], |all| {
        bare(all, 1, 10);
        let messages = last(all);
        messages.truncate(6);
        messages.remove(0);
        messages.remove(0);
    }),
    (&["results-first"], |all| {
        blocks(all, 10).insert(0, json!({ "type": "text", "text": "first" }))
    }),
    (&["results-asked-for", "calls-unique"], |all| {
        let again = json!({ "type": "tool_result", "tool_use_id": "c00000004" });
        blocks(all, 10).push(again);
    }),
    (&["prefix-unchanged", "calls-unique"], |all| {
        blocks(all, 7)[1]["id"] = json!("c00000005");
        blocks(all, 8)[0]["tool_use_id"] = json!("c00000005");
    }),
    (&["roles"], |all| {
        bare(all, 1, 10);
        last(all)[0]["role"] = json!("system");
    }),
    (&["roles"], |all| {
        bare(all, 1, 10);
        drop(last(all).remove(0));
    }),
    (&["roles-alternate"], |all| {
        last(all).push(json!({ "role": "user", "content": "and?" }))
    }),
    (&["ends-with-the-user"], |all| {
        last(all).push(json!({ "role": "assistant", "content": "I" }))
    }),
    (&["text-not-empty"], |all| {
        blocks(all, 10).push(json!({ "type": "text", "text": " \n" }))
    }),
    (&["text-not-empty"], |all| {
        last(all).extend([
            json!({ "role": "assistant", "content": [] }),
            json!({ "role": "user", "content": "?" }),
        ])
    }),
    (&["four-cache-marks"], |all| {
        let mark = json!({ "type": "ephemeral" });
        for message in [0, 2] {
            blocks(all, message)[0]["cache_control"] = mark.clone();
        }
    }),
];

// The messages of the last request: 0 system, 1 user, 2 answer, 3 result, 4 answer, 5 and 6 results, 7 answer, 8 user, 9
// answer, 10 result, 11 note, 12 answer, 13 result.
const OPENAI: &[Case] = &[
    (&[], |all| last(all)[3]["content"] = json!("gone")),
    (&["calls-answered"], |all| drop(last(all).remove(6))),
    (&["calls-answered", "results-asked-for"], |all| {
        last(all).swap(5, 8)
    }),
    (&["calls-answered", "ends-with-the-other-side"], |all| {
        drop(last(all).pop())
    }),
    (&["results-asked-for"], |all| {
        last(all).push(json!({ "role": "tool", "tool_call_id": "c00000009", "content": "" }))
    }),
    (&["results-asked-for", "calls-unique"], |all| {
        let again = last(all)[10].clone();
        last(all).push(again);
    }),
    (&["calls-unique"], |all| {
        last(all)[9]["tool_calls"][0]["id"] = json!("c00000005");
        last(all)[10]["tool_call_id"] = json!("c00000005");
    }),
    (&["short-call-ids"], |all| {
        let long = json!("c".repeat(41));
        last(all)[12]["tool_calls"][0]["id"] = long.clone();
        last(all)[13]["tool_call_id"] = long;
    }),
    (&["calls-not-empty"], |all| {
        last(all)[7]["tool_calls"] = json!([])
    }),
    (&["content-or-calls"], |all| {
        last(all)[7]["content"] = Value::Null
    }),
    (&["content-or-calls"], |all| {
        drop(last(all)[8].as_object_mut().unwrap().remove("content"))
    }),
    (&["roles"], |all| drop(last(all).remove(0))),
    (&["roles"], |all| last(all)[8]["role"] = json!("function")),
    (&["roles-alternate"], |all| {
        last(all).insert(8, json!({ "role": "user", "content": "?" }))
    }),
    (&["ends-with-the-other-side"], |all| {
        last(all).push(json!({ "role": "assistant", "content": "I" }))
    }),
    (&["nothing-sealed"], |all| {
        last(all)[4]["reasoning_content"] = json!("hm")
    }),
];

#[test]
fn every_rule_of_anthropic_is_seen_to_fail() {
    seen_to_fail(
        &Rules::anthropic(),
        &requests(Arc::new(Messages)),
        ANTHROPIC,
    );
}

#[test]
fn every_rule_of_openai_is_seen_to_fail() {
    chats().for_each(|whole| seen_to_fail(&Rules::openai(), &whole, OPENAI));
}
