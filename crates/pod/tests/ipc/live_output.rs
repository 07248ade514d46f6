//! The output of running calls: clients see it while it comes, and nothing of it once its result is there. Neither the
//! task that owns the pod nor the journal learns of it.

use crate::rig::{Raw, Scene};
use llm_worker::{ToolEffect, ToolOutput};
use pod::control::HostMode;
use serde_json::{Value, json};
use testkit::{FnTool, Latch, ModelScript, PodUnderTest, ScriptedAnswer};

/// A pod with a model that calls a tool twice at once. The tool says its arguments, waits, says that it goes on, and waits
/// once more.
fn scene(latches: &[Latch; 2], flood: usize) -> Scene {
    let gates = latches.clone();
    let tool = FnTool::new("Tell", ToolEffect::ReadOnly, move |cx, arguments| {
        let gates = gates.clone();
        async move {
            cx.host
                .write_output(format!("begin {arguments}\n").as_bytes())?;
            gates[0].pass().await;
            for _ in 0..flood {
                cx.host.write_output(&[b'.'; 512])?;
            }
            cx.host
                .write_output(format!("\nmore {arguments}\n").as_bytes())?;
            gates[1].pass().await;
            Ok(ToolOutput {
                summary: "told".to_owned(),
                content: String::new(),
                data: None,
            })
        }
    });
    let calls = ScriptedAnswer::calls(&[("Tell", r#"{"n":1}"#), ("Tell", r#"{"n":2}"#)]);
    let script = ModelScript::new([calls, ScriptedAnswer::text("done")]);
    let mut pod = PodUnderTest::new(&ambient::claim(), script, vec![tool]);
    pod.mode = HostMode::Stay { missing: None };
    Scene::of(pod)
}

fn latches() -> [Latch; 2] {
    ["begun", "told"].map(Latch::new)
}

/// The next event of an output: its call, its text, and whether it begins anew.
fn output(client: &mut Raw) -> (String, String, bool) {
    loop {
        let delta = client.next("delta");
        if delta["type"] == "output" {
            assert_eq!((&delta["turn"], &delta["request"]), (&json!(1), &json!(1)));
            let text = |name: &str| delta[name].as_str().unwrap().to_owned();
            return (text("call"), text("text"), delta["anew"] == true);
        }
    }
}

/// The outputs of both calls, up to what the last one of each ends with.
fn both(client: &mut Raw, end: &str) -> [(String, bool); 2] {
    let mut told = [(String::new(), false), (String::new(), false)];
    while !told.iter().all(|(text, _)| text.ends_with(end)) {
        let (call, text, anew) = output(client);
        let (all, first) = &mut told[usize::from(call != "c00000001")];
        *first |= anew;
        all.push_str(&text);
    }
    told
}

fn give(client: &mut Raw) {
    client
        .ask("input", json!({ "text": "go", "cmd_id": "go" }))
        .unwrap();
}

#[test]
fn what_calls_write_is_seen_until_their_results_and_is_in_no_record() {
    let latches = latches();
    let scene = scene(&latches, 0);
    let mut driver = scene.driver();
    driver.ask("attach", json!({})).unwrap();
    let mut quiet = scene.driver();
    quiet
        .ask("attach", json!({ "without": ["delta"] }))
        .unwrap();
    give(&mut driver);
    let text = |n: u8, begin: &str| format!("{begin} {{\"n\":{n}}}\n");
    assert_eq!(
        both(&mut driver, "}\n"),
        [1, 2].map(|n| (text(n, "begin"), true))
    );
    latches[0].open();
    assert_eq!(
        both(&mut driver, "}\n"),
        [1, 2].map(|n| (format!("\n{}", text(n, "more")), false))
    );
    // One who comes now sees what is kept.
    let mut late = scene.driver();
    late.ask("attach", json!({})).unwrap();
    let whole = [1, 2].map(|n| (format!("{}\n{}", text(n, "begin"), text(n, "more")), true));
    assert_eq!(both(&mut late, "}\n"), whole);
    latches[1].open();
    scene.settled();
    let newest = scene.journal().len() as u64;
    for client in [&mut driver, &mut late, &mut quiet] {
        let mut last = 0;
        let mut done = 0;
        while last < newest {
            let event: Value = serde_json::from_str(&client.event().unwrap()).unwrap();
            assert_ne!(event["params"]["type"], "output", "{event}");
            done += usize::from(event["params"]["k"] == "tool_finished");
            last = event["params"]["q"].as_u64().unwrap_or(last);
        }
        assert_eq!(done, 2);
    }
    scene.close();
}

/// A client that follows a flood gets its end; the task of the pod gets no message for it.
#[test]
fn a_flood_is_told_by_its_end_and_costs_the_pod_no_message() {
    let counted = [0, 4_000].map(|flood| {
        let latches = latches();
        let scene = scene(&latches, flood);
        let mut driver = scene.driver();
        driver.ask("attach", json!({})).unwrap();
        give(&mut driver);
        both(&mut driver, "}\n");
        latches[0].open();
        both(&mut driver, "}\n");
        latches[1].open();
        scene.settled();
        let lines = scene.journal().len();
        (scene.close().events.len(), lines)
    });
    assert_eq!(counted[0], counted[1]);
}
