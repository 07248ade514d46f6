//! Hooks that only shorten: what the others left is stored, and read back as it came; the shorter text is what is shown.

use crate::rig::*;
use llm_worker::tool::LineRange;
use llm_worker::{ToolEffect, ToolOutput};
use pod::feature::HookKey;
use pod::hook::{Change, ToolShape, ToolShapeView};
use pod::record::ToolFinished;
use serde_json::json;
use testkit::{FnTool, PodUnderTest, ScriptedAnswer};

const CANARY: &str = "canary-51c0e";

const FIRST_CALL: &str = "c00000001";

fn shorten() -> HookKey<ToolShape> {
    HookKey::new("shorten").shortens()
}

fn shown(content: &str) -> Change<ToolOutput> {
    Change::Replaced(ToolOutput {
        summary: "short".to_owned(),
        content: content.to_owned(),
        data: Some(json!("of the hook")),
    })
}

/// A result of several lines, some of which are no text of a terminal, and the same result read by its call.
fn ran(content: &'static str, features: Vec<Installed>) -> (PodUnderTest, ToolFinished, String) {
    let (mut pod, _) = pod(&[], features);
    let says = move |_, _| async move {
        Ok(ToolOutput {
            summary: "long".to_owned(),
            content: content.to_owned(),
            data: Some(json!("of the tool")),
        })
    };
    let reads = |cx: llm_worker::ToolContext, _| async move {
        let all = LineRange::From {
            from: 1,
            lines: 999,
        };
        let excerpt = cx.host.read_output(FIRST_CALL, all)?;
        Ok(ToolOutput {
            summary: String::new(),
            content: excerpt.text,
            data: None,
        })
    };
    pod.tools = vec![
        FnTool::new("Long", ToolEffect::ReadOnly, says),
        FnTool::new("Read", ToolEffect::ReadOnly, reads),
    ];
    pod.script.clear();
    for tool in ["Long", "Read"] {
        pod.script.add(ScriptedAnswer::calls(&[(tool, "{}")]));
    }
    pod.script.add(ScriptedAnswer::text("done"));
    pod.run("go").end();
    let mut all = results(&pod);
    let read = all.remove(1).outcome.content;
    (pod, all.remove(0), read)
}

#[test]
fn the_shorter_text_is_shown_and_the_result_is_stored() {
    let (pod, result, read) = ran(
        "{\"a\": 1,\n  \"b\": [2, 3]}",
        vec![transform(
            "builtin:t",
            shorten().tools(&["Lo*"]),
            |_: &ToolShapeView| shown("a,b"),
        )],
    );
    assert_eq!(read, "{\"a\": 1,\n  \"b\": [2, 3]}");
    let handle = &result.output.as_ref().unwrap().handle;
    let mark = format!("[shorter than the result; WholeOutput({handle:?})]\n");
    assert_eq!(result.outcome.summary, "short");
    assert_eq!(result.outcome.content, format!("a,b\n{mark}"));
    assert_eq!(result.transforms.len(), 1);
    // Programs get the value of the tool.
    let data = format!("{:?}", result.data);
    assert!(data.contains("of the tool"), "{data}");
    assert!(format!("{:?}", pod.script.requests()).contains("a,b"));
}

#[test]
fn it_is_asked_last_wherever_it_was_installed() {
    for last in [true, false] {
        let hides = |view: &ToolShapeView| {
            Change::Replaced(ToolOutput {
                content: view.output.content.replace(CANARY, "[gone]"),
                ..view.output.clone()
            })
        };
        let short = |view: &ToolShapeView| shown(&view.output.content.replace("long ", ""));
        let key = HookKey::<ToolShape>::new("hide").withhold_on_failure();
        let mut features = vec![
            transform("builtin:a", shorten().tools(&["Long"]), short),
            transform("builtin:b", key, hides),
        ];
        if last {
            features.reverse();
        }
        let (pod, result, read) = ran("long canary-51c0e text", features);
        assert!(
            result.outcome.content.starts_with("[gone] text\n"),
            "{result:?}"
        );
        assert_eq!(read, "long [gone] text");
        assert_eq!(crate::shape::found(&pod.dir, CANARY), None, "{last}");
    }
}

#[test]
fn what_does_not_work_leaves_the_result_as_it_is() {
    type Shortens = fn(&ToolShapeView) -> Change<ToolOutput>;
    let cases: [(&str, Shortens); 3] = [
        ("panics", |_| panic!("no")),
        ("changes nothing", |_| Change::Unchanged),
        ("is still too long", |_| shown(&"x".repeat(33 << 10))),
    ];
    for (what, hook) in cases {
        let hook = transform("builtin:t", shorten().tools(&["Long"]), hook);
        let (_, result, read) = ran("the result", vec![hook]);
        assert_eq!(result.outcome.text(), "long\nthe result", "{what}");
        assert_eq!(read, "the result", "{what}");
    }
}
