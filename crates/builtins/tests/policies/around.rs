//! `retry` and `dedup`: what runs again, and what is only referred to.

use crate::rig::{Call, play, pod, results};
use builtins::{dedup, retry};
use llm_worker::{ErrorKind, ToolEffect, ToolError, ToolOutput};
use pod::feature::HostCapability;
use pod::hook::ToolRepeat;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use testkit::FnTool;

#[test]
fn what_cannot_be_reached_is_tried_again_as_often_as_set() {
    for (kind, times, runs) in [
        (ErrorKind::Unavailable, 1, 2),
        (ErrorKind::Retry, 3, 4),
        (ErrorKind::FixInput, 3, 1),
    ] {
        let tool = FnTool::new("Fetch", ToolEffect::ReadOnly, move |_, _| async move {
            Err(ToolError::new(kind, "no"))
        });
        let (mut pod, _) = pod(
            &retry::ID,
            json!({"times": times, "wait_ms": 0}),
            vec![tool],
        );
        pod.features[0].1.extend([
            HostCapability::hook::<ToolRepeat>(),
            HostCapability::ANY_REPEAT,
        ]);
        play(&pod, &[&[("Fetch", "{}")]]).end();
        assert_eq!(pod.tools[0].ran().len(), runs, "{kind:?}");
    }
}

#[test]
fn the_same_result_is_a_reference_until_something_changes() {
    let version = Arc::new(AtomicU32::new(0));
    let reads = Arc::clone(&version);
    let writes = Arc::clone(&version);
    let read = FnTool::new("Read", ToolEffect::ReadOnly, move |_, arguments| {
        let content = format!(
            "{arguments} {}",
            "x".repeat(600 + reads.load(Ordering::Relaxed) as usize)
        );
        async move {
            Ok(ToolOutput {
                summary: "read".into(),
                content,
                data: None,
            })
        }
    });
    let write = FnTool::new("Write", ToolEffect::Effectful, move |_, _| {
        writes.fetch_add(1, Ordering::Relaxed);
        async move {
            Ok(ToolOutput {
                summary: "wrote".into(),
                ..ToolOutput::default()
            })
        }
    });
    let touch = FnTool::new("Touch", ToolEffect::Effectful, |_, _| async {
        Ok(ToolOutput {
            summary: "touched".into(),
            ..ToolOutput::default()
        })
    });
    let (pod, _) = pod(&dedup::ID, json!({}), vec![read, write, touch]);
    let (a, b): (&[Call], &[Call]) = (&[("Read", r#"{"a":1}"#)], &[("Read", r#"{"b":1}"#)]);
    play(
        &pod,
        &[a, b, a, &[("Touch", "{}")], a, a, &[("Write", "{}")], a],
    )
    .end();
    let whole: Vec<bool> = results(&pod)
        .iter()
        .map(|text| text.contains("xxxx"))
        .collect();
    assert_eq!(
        whole,
        [true, true, false, false, true, false, false, true],
        "{:?}",
        results(&pod)
    );
    assert!(
        results(&pod)[2].ends_with("bytes as the result of call c00000001]"),
        "{:?}",
        results(&pod)[2]
    );
}
