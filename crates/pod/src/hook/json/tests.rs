//! Views and answers of every point as JSON.

use super::super::typed::{
    Compaction, Event, PostAssistant, PreCompaction, PreRequest, PreToolCall, PromptSubmit,
    ProposedCall, ToolArguments, ToolOutcome, ToolRepeat, ToolRun, ToolShape, TurnEnd, TurnError,
};
use super::*;
use crate::feature::FeatureId;
use crate::hook::{
    AnswerView, CompactionView, ErrorView, LeavingResult, PromptView, RequestView, ToolCallView,
    ToolOutcomeView, ToolRepeatView, ToolRunView, ToolShapeView, TurnEndView,
};
use crate::record::{InputWithdrawn, Record, ViewLevel};
use llm_worker::effect::Outcome;
use llm_worker::{CallId, ErrorKind, ResultStatus, ToolEffect};
use std::sync::Arc;

fn call() -> Arc<ToolCallView> {
    Arc::new(ToolCallView {
        call: CallId::new(7).unwrap(),
        tool: "Publish".to_owned(),
        feature: FeatureId::builtin("press"),
        effect: ToolEffect::Effectful,
        arguments: r#"{"path":"a.md"}"#.into(),
        touches: vec![
            Touch::Write("a.md".into()),
            Touch::RemoteWrite("press.example".to_owned()),
        ],
        input: None,
        turn: 1,
        by_person: false,
    })
}

fn call_shown() -> Value {
    json!({
        "call": "c00000007", "tool": "Publish", "feature": "builtin:press", "effect": "effectful",
        "arguments": { "path": "a.md" },
        "touches": [{ "is": "write", "path": "a.md" }, { "is": "remote_write", "host": "press.example" }],
    })
}

fn compacts_shown() -> Value {
    json!({
        "turn": 1, "level": "results", "by_hand": false, "used": 5, "window": 10,
        "results": [{ "call": "c00000007", "tool": "Publish", "bytes": 9 }], "keep": [],
    })
}

// One row for each point: a hook elsewhere is shown what a compiled-in one sees.
#[test]
fn every_view_is_shown_as_json() {
    let outcome = llm_worker::ToolOutcome {
        status: ResultStatus::Error,
        summary: "s".into(),
        content: "c".into(),
        attachments: Vec::new(),
    };
    let calls = vec![ProposedCall {
        tool: "Publish".into(),
        arguments: "{".into(),
    }];
    let schema: Option<Arc<str>> = Some(r#"{"type":"null"}"#.into());
    let repeated = ToolRepeatView::new(call(), outcome.clone(), Some(ErrorKind::Retry), 2);
    let output = ToolOutput {
        summary: "s".into(),
        content: "c".into(),
        data: None,
    };
    let shaped = ToolShapeView {
        call: call(),
        status: ResultStatus::Ok,
        output,
    };
    let ended = TurnEndView {
        turn: 1,
        outcome: Outcome::Done,
        steps: 2,
        answer: Some("yes".into()),
        shortfall: None,
        output_schema: schema.clone(),
    };
    let record: Record = InputWithdrawn { input: 4, by: None }.into();
    let event = EventView {
        seq: 9,
        missed: 0,
        record: Arc::new(record),
    };
    let failed = ErrorView {
        turn: 1,
        request: 2,
        kind: ErrorKind::Retry,
        message: "m".into(),
        retries: 0,
    };
    let tool_outcome = json!({ "status": "error", "summary": "s", "content": "c" });
    let leaving = LeavingResult {
        call: CallId::new(7).unwrap(),
        tool: "Publish".into(),
        bytes: 9,
    };
    let compacts = CompactionView::new(ViewLevel::Results, 5, Some(10), vec![leaving]);
    let rows = [
        (
            PromptSubmit::shown(&PromptView {
                text: "hi".into(),
                output_schema: schema,
            }),
            json!({ "text": "hi", "output_schema": { "type": "null" } }),
        ),
        (
            PreRequest::shown(&RequestView {
                turn: 1,
                number: 2,
                items: 3,
            }),
            json!({ "turn": 1, "number": 2, "items": 3 }),
        ),
        (PreCompaction::shown(&compacts), compacts_shown()),
        (Compaction::shown(&compacts), compacts_shown()),
        (
            PostAssistant::shown(&AnswerView {
                turn: 1,
                request: 2,
                text: "t".into(),
                calls,
            }),
            json!({ "turn": 1, "request": 2, "text": "t", "calls": [{ "tool": "Publish", "arguments": "{" }] }),
        ),
        (
            TurnError::shown(&failed),
            json!({ "turn": 1, "request": 2, "kind": "retry", "message": "m", "retries": 0 }),
        ),
        (PreToolCall::shown(&call()), call_shown()),
        (ToolArguments::shown(&call()), call_shown()),
        (
            ToolRun::shown(&ToolRunView::new(call())),
            json!({ "call": call_shown() }),
        ),
        (
            ToolRepeat::shown(&repeated),
            json!({ "call": call_shown(), "outcome": tool_outcome, "error": "retry", "tries": 2 }),
        ),
        (
            ToolShape::shown(&shaped),
            json!({ "call": call_shown(), "status": "ok", "output": { "summary": "s", "content": "c" } }),
        ),
        (
            ToolOutcome::shown(&ToolOutcomeView {
                call: call(),
                outcome,
            }),
            json!({ "call": call_shown(), "outcome": tool_outcome }),
        ),
        (
            TurnEnd::shown(&ended),
            json!({
                "turn": 1, "outcome": { "outcome": "done" }, "steps": 2, "answer": "yes", "shortfall": null,
                "output_schema": { "type": "null" },
            }),
        ),
    ];
    for (shown, expected) in rows {
        assert_eq!(shown, expected);
    }
    let event = Event::shown(&event);
    assert_eq!(
        (&event["seq"], &event["kind"], &event["record"]["input"]),
        (&json!(9), &json!("input_withdrawn"), &json!(4))
    );
}

/// What a gate at this point decides with this answer.
fn decides<P: Point<Answer = Verdict<P>>>(answer: &Value) -> Result<Decision, String> {
    P::heard(answer).map(Verdict::decision)
}

// The decisions that a point allows are those of its constructors, and a malformed answer is none.
#[test]
fn a_gate_elsewhere_decides_only_what_its_point_allows() {
    type Decides = fn(&Value) -> Result<Decision, String>;
    let points: [(Decides, &[&str]); 7] = [
        (decides::<PreCompaction>, &["allow", "deny"]),
        (decides::<PromptSubmit>, &["allow", "abort"]),
        (decides::<PreRequest>, &["allow", "abort"]),
        (decides::<PostAssistant>, &["allow", "abort"]),
        (decides::<TurnError>, &["give_up", "retry", "pause"]),
        (decides::<PreToolCall>, &["allow", "deny", "ask", "abort"]),
        (decides::<TurnEnd>, &["finish", "again", "pause"]),
    ];
    let reason = || "r".to_owned();
    let answers = [
        ("allow", json!({ "decision": "allow" }), Decision::Allow),
        ("finish", json!({ "decision": "finish" }), Decision::Allow),
        ("give_up", json!({ "decision": "give_up" }), Decision::Allow),
        (
            "deny",
            json!({ "decision": "deny", "reason": "r" }),
            Decision::Refuse { reason: reason() },
        ),
        (
            "ask",
            json!({ "decision": "ask", "question": "r", "expires_after_ms": 1 }),
            Decision::Ask {
                question: reason(),
                expires_after_ms: Some(1_000),
            },
        ),
        (
            "abort",
            json!({ "decision": "abort", "reason": "r" }),
            Decision::Abort { reason: reason() },
        ),
        (
            "pause",
            json!({ "decision": "pause", "reason": "r" }),
            Decision::Pause { reason: reason() },
        ),
        (
            "retry",
            json!({ "decision": "retry", "after_ms": u64::MAX }),
            Decision::Retry { after_ms: 300_000 },
        ),
        (
            "again",
            json!({ "decision": "again", "words": "r" }),
            Decision::Again { words: reason() },
        ),
    ];
    for (decides, allowed) in points {
        for (name, answer, decision) in &answers {
            let heard = decides(answer);
            match allowed.contains(name) {
                true => assert_eq!(heard.as_ref(), Ok(decision), "{name}"),
                false => assert!(heard.is_err(), "{name}: {heard:?}"),
            }
        }
    }
    for malformed in [
        json!(null),
        json!("allow"),
        json!({}),
        json!({ "decision": "maybe" }),
        json!({ "decision": "deny" }),
        json!({ "decision": "allow", "reason": "r" }),
        json!({ "decision": "deny", "reason": "r", "override": true }),
    ] {
        assert!(PreToolCall::heard(&malformed).is_err(), "{malformed}");
    }
}

#[test]
fn a_transform_elsewhere_replaces_a_value_of_its_type() {
    let replaced = |value: Value| json!({ "change": "replaced", "value": value });
    assert_eq!(
        ToolArguments::heard(&json!({ "change": "unchanged" })),
        Ok(Change::Unchanged)
    );
    assert_eq!(
        ToolArguments::heard(&replaced(json!({ "a": 1 }))),
        Ok(Change::Replaced(json!({ "a": 1 })))
    );
    let output = ToolOutput {
        summary: "s".into(),
        content: String::new(),
        data: None,
    };
    assert_eq!(
        ToolShape::heard(&replaced(json!({ "summary": "s" }))),
        Ok(Change::Replaced(output))
    );
    let after = Duration::from_millis(5);
    assert_eq!(
        ToolRepeat::heard(&replaced(json!({ "after_ms": 5 }))),
        Ok(Change::Replaced(after))
    );
    let plan = CompactionPlan {
        keep: vec![CallId::new(7).unwrap()],
    };
    assert_eq!(
        Compaction::heard(&replaced(json!({ "keep": ["c00000007"] }))),
        Ok(Change::Replaced(plan))
    );
    assert_eq!(Event::heard(&json!(null)), Ok(()));
    for malformed in [
        json!(null),
        json!({ "change": "replaced" }),
        replaced(json!(5)),
        replaced(json!({ "x": 1 })),
    ] {
        assert!(ToolRun::heard(&malformed).is_err(), "{malformed}");
        assert!(ToolRepeat::heard(&malformed).is_err(), "{malformed}");
    }
    assert!(Event::heard(&json!({})).is_err());
}
