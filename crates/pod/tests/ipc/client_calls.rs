//! Tools that clients call: which of them, who may, and what the journal has of it.

use crate::rig::{Raw, Scene, answers};
use llm_worker::tool::Touch;
use llm_worker::{ErrorKind, ToolEffect, ToolError, ToolOutput, ToolResult};
use pod::control::HostMode;
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, HookContribution, HookKey, HostCapability,
};
use pod::hook::{Change, ToolShape, ToolShapeView};
use serde_json::{Value, json};
use session_store::Reader;
use std::path::Path;
use std::sync::Arc;
use testkit::{ENOSPC, Fault, FnTool, Latch, ModelScript, PodUnderTest, feature};

/// A tool that answers its arguments.
fn echo(name: &str, effect: ToolEffect) -> FnTool {
    FnTool::new(name, effect, |_, arguments| async move {
        Ok(ToolOutput {
            summary: arguments,
            content: "a\nb\u{1b}".to_owned(),
            data: None,
        })
    })
}

fn scene(tools: &[&FnTool]) -> Scene {
    let tools = tools.iter().map(|tool| (*tool).clone()).collect();
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new(answers(1)), tools);
    pod.mode = HostMode::Stay { missing: None };
    Scene::of(pod)
}

fn viewer(scene: &Scene) -> Raw {
    let mut viewer = scene.stranger();
    viewer
        .ask("hello", json!({ "versions": [1], "client": "page" }))
        .unwrap();
    viewer
}

/// The records of calls.
fn calls(scene: &Scene) -> Vec<Value> {
    let records = scene
        .journal()
        .into_iter()
        .map(|line| serde_json::from_str::<Value>(&line).unwrap());
    records
        .filter(|record| record["k"] == "client_call")
        .collect()
}

#[test]
fn clients_call_what_a_feature_opens_and_a_viewer_changes_nothing() {
    let look = echo("Look", ToolEffect::ReadOnly).for_clients();
    let set = echo("Set", ToolEffect::Idempotent)
        .touching(vec![Touch::Session])
        .for_clients();
    let file = echo("File", ToolEffect::Effectful)
        .touching(vec![Touch::Write("x".into())])
        .for_clients();
    let read = echo("Read", ToolEffect::ReadOnly)
        .touching(vec![Touch::Read("x".into())])
        .for_clients();
    let blank = echo("Blank", ToolEffect::Idempotent).for_clients();
    let own = echo("Own", ToolEffect::ReadOnly);
    let scene = scene(&[&look, &set, &file, &read, &blank, &own]);
    let mut viewer = viewer(&scene);
    let mut driver = scene.driver();
    let before = scene.journal().len();
    let told = viewer
        .ask(
            "call_tool",
            json!({ "tool": "Look", "arguments": { "b": 1, "a": 2 } }),
        )
        .unwrap();
    assert_eq!(
        told,
        json!({ "summary": "{\"a\":2,\"b\":1}", "content": "a\nb\\u{1b}" })
    );
    for (tool, kind) in [
        ("Set", "not_allowed"),
        ("Own", "params"),
        ("None", "params"),
        ("Read", "params"),
    ] {
        assert_eq!(
            Raw::kind(viewer.ask("call_tool", json!({ "tool": tool }))),
            kind,
            "{tool}"
        );
        assert_eq!(
            Raw::kind(driver.ask("call_tool", json!({ "tool": tool }))),
            kind,
            "{tool}"
        );
    }
    for tool in ["Look", "Set"] {
        let refused = viewer.ask("call_tool", json!({ "tool": tool, "cmd_id": "v" }));
        assert_eq!(Raw::kind(refused), "not_allowed", "{tool}");
    }
    for tool in ["Own", "File", "Read", "Blank"] {
        assert_eq!(
            Raw::kind(driver.ask("call_tool", json!({ "tool": tool, "cmd_id": tool }))),
            "params",
            "{tool}"
        );
    }
    assert_eq!(
        (
            scene.journal().len(),
            [&set, &file, &read, &blank, &own].map(|tool| tool.ran().len())
        ),
        (before, [0; 5])
    );
    // One that is repeated is not carried out again.
    for _ in 0..2 {
        let set = driver
            .ask(
                "call_tool",
                json!({ "tool": "Set", "arguments": { "n": 1 }, "cmd_id": "d" }),
            )
            .unwrap();
        assert_eq!(set["summary"], "{\"n\":1}");
    }
    driver
        .ask("call_tool", json!({ "tool": "Look", "cmd_id": "e" }))
        .unwrap();
    let [call] = &calls(&scene)[..] else {
        panic!("{:?}", calls(&scene))
    };
    let fields = (
        &call["tool"],
        &call["arguments"],
        &call["by"]["client"],
        &call["by"]["role"],
    );
    assert_eq!(
        fields,
        (
            &json!("Set"),
            &json!("{\"n\":1}"),
            &json!("test"),
            &json!("driver")
        )
    );
    assert_eq!((set.ran().len(), look.ran().len()), (1, 2));
    // The model was told nothing of it.
    driver
        .ask("input", json!({ "text": "go", "cmd_id": "go" }))
        .unwrap();
    scene.settled();
    let request = String::from_utf8_lossy(&scene.live.pod.script.bodies()[0]).into_owned();
    assert!(
        request.contains("go")
            && !request.contains("client_call")
            && !request.contains("\\\"n\\\""),
        "{request}"
    );
    scene.close();
}

fn recorded(dir: &Path) -> usize {
    Reader::open(dir)
        .unwrap()
        .frames()
        .filter(|frame| frame.as_ref().unwrap().kind == "client_call")
        .count()
}

#[test]
fn a_change_is_recorded_before_it_begins_or_does_not_begin() {
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new(answers(1)), Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    let dir = pod.dir.clone();
    let set = FnTool::new("Set", ToolEffect::Effectful, move |_, _| {
        let summary = format!("{} recorded", recorded(&dir));
        async move {
            Ok(ToolOutput {
                summary,
                content: String::new(),
                data: None,
            })
        }
    });
    let set = set.touching(vec![Touch::Session]).for_clients();
    pod.tools = vec![set.clone()];
    let scene = Scene::of(pod);
    let mut driver = scene.driver();
    let mut call = |id: &str| driver.ask("call_tool", json!({ "tool": "Set", "cmd_id": id }));
    assert_eq!(call("1").unwrap()["summary"], "1 recorded");
    scene.live.pod.disk.fail_at(0, Fault::Ever(ENOSPC));
    assert_eq!(
        (Raw::kind(call("2")), set.ran().len()),
        ("disk".to_owned(), 1)
    );
    scene.live.pod.disk.repair();
    scene.close();
}

#[test]
fn a_call_that_fails_panics_or_takes_long_costs_only_itself() {
    let fails = FnTool::new("Fails", ToolEffect::ReadOnly, |_, _| async {
        Err(ToolError::new(ErrorKind::FixInput, "no\u{7}luck"))
    });
    let panics = FnTool::new("Panics", ToolEffect::ReadOnly, |_, _| async {
        panic!("it broke")
    });
    let latch = Latch::new("held");
    let held = latch.clone();
    let holds = FnTool::new("Holds", ToolEffect::Idempotent, move |_, _| {
        let held = held.clone();
        async move {
            held.pass().await;
            Ok(ToolOutput {
                summary: "held".to_owned(),
                content: String::new(),
                data: None,
            })
        }
    });
    let holds = holds.touching(vec![Touch::Session]).for_clients();
    let scene = scene(&[&fails.for_clients(), &panics.for_clients(), &holds]);
    let mut driver = scene.driver();
    for (tool, why) in [
        ("Fails", "no\\u{7}luck"),
        ("Panics", "the tool failed: it panicked: it broke"),
    ] {
        let error = driver
            .ask("call_tool", json!({ "tool": tool }))
            .unwrap_err();
        assert_eq!(
            (&error["data"]["kind"], &error["message"]),
            (&json!("failed"), &json!(why)),
            "{tool}"
        );
    }
    // Four calls at once: a fifth is told to come later, and the pod goes on meanwhile.
    let asked: Vec<u64> = (0..4)
        .map(|n| {
            driver
                .send(
                    "call_tool",
                    json!({ "tool": "Holds", "cmd_id": n.to_string() }),
                )
                .unwrap()
        })
        .collect();
    latch.wait_for(4);
    assert_eq!(
        Raw::kind(driver.ask("call_tool", json!({ "tool": "Holds", "cmd_id": "fifth" }))),
        "busy"
    );
    assert_eq!(driver.ask("status", json!({})).unwrap()["state"], "idle");
    latch.open();
    for _ in &asked {
        let line: Value = serde_json::from_str(&driver.line().unwrap()).unwrap();
        assert_eq!(line["result"]["summary"], "held", "{line}");
    }
    assert_eq!(calls(&scene).len(), 4);
    scene.close();
}

/// What `ToolShape` hooks replace or withhold of these results.
#[test]
fn what_must_not_be_shown_is_not_shown_to_clients() {
    const SHAPE: HookKey<ToolShape> = HookKey::<ToolShape>::new("shape").withhold_on_failure();
    let shape = |view: &ToolShapeView| match view.output.content.contains("dies") {
        true => panic!("on {}", view.output.content),
        false => Change::Replaced(ToolOutput {
            summary: view.output.summary.replace("canary", "[gone]"),
            content: view.output.content.replace("canary", "[gone]"),
            data: None,
        }),
    };
    let install = move |ctx: &mut FeatureInstallContext<'_>| {
        let id = FeatureId::builtin("shape");
        ctx.hooks()
            .register(HookContribution::new(id, &SHAPE, Arc::new(shape)))
            .map(drop)
    };
    let descriptor = FeatureDescriptor::builder(FeatureId::builtin("shape"))
        .version("1.0.0")
        .transform(&SHAPE)
        .build();
    let tool = |name: &'static str, result: fn() -> ToolResult| {
        FnTool::new(
            name,
            ToolEffect::ReadOnly,
            move |_, _| async move { result() },
        )
        .for_clients()
    };
    let tools = vec![
        tool("Says", || {
            Ok(ToolOutput {
                summary: "a canary".to_owned(),
                content: String::new(),
                data: None,
            })
        }),
        tool("Fails", || {
            Err(ToolError::new(ErrorKind::FixInput, "no canary"))
        }),
        tool("Panics", || panic!("on canary")),
        tool("Dies", || {
            Ok(ToolOutput {
                summary: "canary".to_owned(),
                content: "canary dies".to_owned(),
                data: None,
            })
        }),
    ];
    let mut pod = PodUnderTest::new(&ambient::claim(), ModelScript::new(answers(1)), tools);
    pod.mode = HostMode::Stay { missing: None };
    let grants = vec![
        HostCapability::hook::<ToolShape>(),
        HostCapability::ANY_RESULT,
    ];
    pod.features.push((feature(descriptor, install), grants));
    let scene = Scene::of(pod);
    let mut viewer = viewer(&scene);
    let mut told = |tool: &str| format!("{:?}", viewer.ask("call_tool", json!({ "tool": tool })));
    for (tool, says) in [
        ("Says", "a [gone]"),
        ("Fails", "no [gone]"),
        ("Panics", "on [gone]"),
        ("Dies", "withheld"),
    ] {
        let told = told(tool);
        assert!(
            told.contains(says) && !told.contains("canary"),
            "{tool}: {told}"
        );
    }
    scene.close();
}

#[test]
fn a_driver_asks_for_a_call_of_any_tool_and_waits_for_its_result() {
    let echo = echo("Echo", ToolEffect::Effectful);
    let scene = scene(&[&echo]);
    let mut driver = scene.driver();
    let offered = driver.ask("tools", json!({})).unwrap();
    assert_eq!(
        (&offered["tools"][0]["name"], &offered["tools"][0]["effect"]),
        (&json!("Echo"), &json!("effectful"))
    );
    let call = json!({ "tool": "Echo", "arguments": { "b": 1, "a": 2 }, "cmd_id": "c" });
    let accepted = driver.ask("call", call.clone()).unwrap();
    assert_eq!(driver.ask("call", call).unwrap(), accepted, "the same call");
    let ended = driver.ask("wait", accepted.clone()).unwrap();
    assert_eq!(ended["result"]["outcome"]["status"], "ok");
    assert_eq!(ended["result"]["outcome"]["summary"], r#"{"a":2,"b":1}"#);
    let unknown = driver.ask("call", json!({ "tool": "Ehco", "cmd_id": "d" }));
    assert_eq!(Raw::kind(unknown), "params");
    let queued = scene
        .journal()
        .into_iter()
        .find(|line| line.contains("\"input_queued\""));
    let queued: Value = serde_json::from_str(&queued.unwrap()).unwrap();
    assert_eq!(
        (&queued["call"]["tool"], &queued["by"]["role"]),
        (&json!("Echo"), &json!("driver"))
    );
    assert_eq!(echo.ran().len(), 1);
    scene.close();
}
