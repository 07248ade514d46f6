//! Ids and outcomes, as tables.

use super::{CallId, Item, ProviderSignature, ResultStatus, SealedReasoning, ToolOutcome};

#[test]
fn a_call_id_has_one_spelling() {
    for (text, number) in [("c00000001", 1), ("c99999999", CallId::MAX)] {
        let id = CallId::try_from(text.to_owned()).unwrap();
        assert_eq!((id.number(), id.to_string()), (number, text.to_owned()));
        assert_eq!(
            serde_json::from_str::<CallId>(&serde_json::to_string(&id).unwrap()).unwrap(),
            id
        );
    }
    for bad in [
        "",
        "c",
        "c0000001",
        "c000000001",
        "c00000000",
        "C00000001",
        "00000001c",
        "c+0000001",
        "c0000000é",
    ] {
        assert!(CallId::try_from(bad.to_owned()).is_err(), "{bad}");
        assert!(
            serde_json::from_str::<CallId>(&format!("\"{bad}\"")).is_err(),
            "{bad}"
        );
    }
    assert!(CallId::new(0).is_none() && CallId::new(CallId::MAX + 1).is_none());
}

#[test]
fn words_become_a_bounded_summary_and_the_rest() {
    let long = "é".repeat(400);
    let cases = [
        ("", "", ""),
        ("one", "one", ""),
        ("one\n", "one", ""),
        ("one\ntwo\nthree", "one", "two\nthree"),
        ("\ntwo", "", "two"),
        (&*long, &long[..512], &long[512..]),
    ];
    for (words, summary, content) in cases {
        let outcome = ToolOutcome::of(ResultStatus::Error, words);
        assert_eq!((&*outcome.summary, &*outcome.content), (summary, content));
    }
    assert_eq!(
        ToolOutcome::of(ResultStatus::Ok, "one\ntwo").text(),
        "one\ntwo"
    );
    let item = Item::ToolResult {
        id: CallId::new(3).unwrap(),
        outcome: ToolOutcome::of(ResultStatus::Ok, "one"),
    };
    let text = serde_json::to_string(&item).unwrap();
    assert_eq!(
        text,
        r#"{"type":"tool_result","id":"c00000003","status":"ok","summary":"one"}"#
    );
    assert_eq!(serde_json::from_str::<Item>(&text).unwrap(), item);
}

/// Sessions hold these words.
#[test]
fn reasoning_is_written_with_its_seal_or_without() {
    let signature = ProviderSignature {
        kind: "signature".into(),
        data: "EqQB==".into(),
    };
    let seal = Some(SealedReasoning {
        model: "a/b".into(),
        generation: 2,
        signature,
    });
    let table = [
        (None, r#"{"type":"reasoning","text":"hm"}"#),
        (
            seal,
            r#"{"type":"reasoning","text":"hm","seal":{"model":"a/b","generation":2,"kind":"signature","data":"EqQB=="}}"#,
        ),
    ];
    for (seal, text) in table {
        let item = Item::Reasoning {
            text: "hm".into(),
            seal,
        };
        assert_eq!(serde_json::to_string(&item).unwrap(), text);
        assert_eq!(serde_json::from_str::<Item>(text).unwrap(), item);
    }
}
