//! `redact`: what matches is in no result, wherever it stands in it.

use crate::rig::{play, pod, settings};
use builtins::policies;
use builtins::redact::ID;
use llm_worker::{ToolEffect, ToolOutput};
use pod::feature::HostCapability;
use pod::hook::ToolShape;
use pod::record::Record;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::FnTool;

#[test]
fn a_match_is_replaced_in_every_part_of_a_result() {
    let cases = [
        (
            "token sk-abc123 ok",
            "and sk-zzz",
            "token [redacted] ok\nand [redacted]",
        ),
        ("begins KEY", "END here", "begins [redacted] here"),
        ("nothing", "here", "nothing\nhere"),
    ];
    for (summary, content, expected) in cases {
        let answers = move |_, _| async move {
            Ok(ToolOutput {
                summary: summary.into(),
                content: content.into(),
                data: None,
            })
        };
        let tool = FnTool::new("Show", ToolEffect::ReadOnly, answers);
        let (mut pod, _) = pod(
            &ID,
            json!({"patterns": ["sk-[a-z0-9]+", "(?s)KEY.*END"]}),
            vec![tool],
        );
        pod.features[0].1.push(HostCapability::hook::<ToolShape>());
        play(&pod, &[&[("Show", "{}")]]).end();
        let finished = pod
            .records()
            .into_iter()
            .find_map(|(_, record)| match record {
                Record::ToolFinished(finished) => Some(finished.outcome.text()),
                _ => None,
            });
        assert_eq!(finished.as_deref(), Some(expected));
    }
}

#[test]
fn patterns_that_are_none_are_refused() {
    let many: Vec<_> = (0..65).map(|n| format!("a{n}")).collect();
    let cases = [
        (json!({}), "expected 1 to 64"),
        (json!({ "patterns": many }), "expected 1 to 64"),
        (json!({"patterns": ["("]}), "no regular expression"),
        (json!({"patterns": ["a*"]}), "matches the empty text"),
        (json!({"patterns": [""]}), "expected 1 to 512 bytes"),
        (
            json!({"patterns": ["(a{1000}){1000}"]}),
            "no regular expression of at most 1 MiB",
        ),
    ];
    for (keys, says) in cases {
        let all = BTreeMap::from([(ID, settings(keys.clone()))]);
        let bad = policies::with_settings(
            &all,
            |id| *id == ID,
            &(Arc::new(|| std::time::UNIX_EPOCH) as builtins::Now),
        );
        let Err(bad) = bad else {
            panic!("{keys} is taken")
        };
        assert!(bad.to_string().contains(says), "{keys}: {bad}");
    }
}
