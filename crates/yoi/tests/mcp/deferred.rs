//! Tools that requests leave out: found by ToolSearch, called by CallTool, and judged as the tools that they are.

use super::questions::{Host, is_done, status, until};
use super::{Scene, add, lines, run_calls, scene, yoi};
use rustix::process::Signal;
use serde_json::{Value, json};

const SEARCH: &str = "ToolSearch";
const CALL: &str = "CallTool";

fn called(tool: &str, arguments: Value) -> (&'static str, Value) {
    (CALL, json!({ "name": tool, "arguments": arguments }))
}

/// The configuration that leaves all tools out, and more.
fn defer(scene: &Scene, more: &str) {
    scene.config(&format!("[mcp]\ndefer = 0\n{more}"));
}

fn rule(decision: &str) -> String {
    format!("[[permissions.rules]]\ntool = \"mcp__fake__echo\"\ndecision = \"{decision}\"\n")
}

/// The tools and the system prompt that the newest surface of a pod has.
fn surface(scene: &Scene, pod: &str) -> (Vec<String>, String) {
    let records = scene.records(pod);
    let newest = records
        .iter()
        .rfind(|record| record["k"] == "surface")
        .unwrap();
    let tools = newest["surface"]["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let system = newest["surface"]["system"].as_str().unwrap();
    (tools.iter().map(name).collect(), system.to_owned())
}

fn of<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records
        .iter()
        .filter(|record| record["k"] == kind)
        .collect()
}

#[test]
fn a_deferred_tool_is_found_called_and_recorded_as_itself() {
    let Some(scene) = scene() else { return };
    add(&scene, "fake", "modern");
    defer(&scene, &rule("allow"));
    let calls = [
        (SEARCH, json!({ "query": "say again" })),
        called("mcp__fake__echo", json!({ "text": [1, 1_u64 << 60] })),
        called("mcp__fake__echo", json!({ "other": 1, "text": "\"1\"" })),
        called("Read", json!({ "path": "server.py" })),
        called("mcp__fake__none", json!({})),
        (CALL, json!({ "arguments": {} })),
        ("mcp__fake__echo", json!({ "text": "by itself" })),
    ];
    let (results, run) = run_calls(&scene, "p", &calls);
    let expected = [
        ("ok", r#"mcp__fake__echo\nSay it again.\narguments: {"#),
        ("ok", "[1, 1152921504606846976]"),
        ("ok", r#"\\\"1\\\""#),
        ("error", "call Read itself"),
        ("error", "there is no tool called `mcp__fake__none`"),
        ("error", "name"),
        ("ok", "by itself"),
    ];
    assert_eq!(results.len(), expected.len(), "{run:?}");
    for ((status, has), (got, text)) in expected.iter().zip(&results) {
        assert_eq!(got, status, "{text}");
        assert!(text.contains(has), "{has}: {text}");
    }
    let (tools, system) = surface(&scene, "p");
    let is_server = |tool: &String| tool.starts_with("mcp__");
    assert!(!tools.iter().any(is_server), "{tools:?}");
    assert!(tools.contains(&SEARCH.to_owned()) && tools.contains(&CALL.to_owned()));
    assert!(
        system.contains("mcp__fake__echo: Say it again."),
        "{system}"
    );
    let records = scene.records("p");
    let started = of(&records, "tool_started");
    let names: Vec<&str> = started
        .iter()
        .filter_map(|of| of["name"].as_str())
        .collect();
    let echo = "mcp__fake__echo";
    assert_eq!(names, [SEARCH, echo, echo, echo]);
    let arguments = started[1]["arguments"].as_str();
    assert_eq!(arguments, Some(r#"{"text":[1,1152921504606846976]}"#));
    assert_eq!(
        of(&records, "surface").len(),
        1,
        "what was found is a result"
    );
    scene.sound("p");
    let shown = yoi(&scene, &["features", "p", "--json"]).ends(0).json();
    let features = shown["features"].as_array().unwrap();
    let server = features
        .iter()
        .find(|of| of["feature_id"] == "plugin:mcp/fake");
    let server = server.unwrap();
    assert_eq!(server["estimated_tokens"], 0);
    assert_eq!(server["deferred_tools"], server["installed_tools"]);
}

/// Arguments fit the schema of the tool that is called, and its rules, gates and questions are those of a call by itself.
#[test]
fn no_rule_or_gate_is_passed_by_through_the_search() {
    let Some(scene) = scene() else { return };
    add(&scene, "fake", "modern");
    let call = [called("mcp__fake__echo", json!({ "text": "x" }))];
    let gate = "[features.\"builtin:confirm-gate\"]\nenabled = true\ntools = [\"mcp__fake__echo\"]\ntimeout = \"10m\"\n";
    let gated = format!("{gate}{}", rule("allow"));
    for (pod, config, by) in [
        // A tool that changes something is asked about.
        ("asks", String::new(), "verdict"),
        ("denied", rule("deny"), "verdict"),
        ("asked", rule("ask"), "verdict"),
        ("gated", gated, "gate"),
    ] {
        defer(&scene, &config);
        let (results, run) = run_calls(&scene, pod, &call);
        assert_eq!(run.code(), Some(3), "{pod}: {run:?}");
        assert_eq!(results.len(), 1, "{pod}");
        assert_eq!(results[0].0, "refused", "{pod}: {results:?}");
        let records = scene.records(pod);
        assert!(of(&records, "tool_started").is_empty(), "{pod}");
        let verdicts = json!(of(&records, "verdict")).to_string();
        assert_eq!(
            verdicts.contains("confirm-gate"),
            by == "gate",
            "{verdicts}"
        );
        scene.sound(pod);
    }
    assert!(lines(&scene.file("calls")).is_empty());
    // What a person is asked names the tool itself.
    defer(&scene, "");
    let script = [
        json!({ "calls": [{ "name": call[0].0, "arguments": call[0].1 }] }),
        json!({ "text": "done" }),
    ];
    let model = scene.script("asks.jsonl", &script);
    let host = Host::start(&scene, &["go", "-m", &model]);
    until("a question", || status(&scene)["state"] == "waiting");
    let asked = yoi(&scene, &["approve"]).ends(0);
    let asked = asked.prints(&["mcp__fake__echo"]);
    assert!(!asked.out.contains(CALL), "{}", asked.out);
    yoi(&scene, &["approve", "p", "1"]).ends(0);
    until("the end of the turn", || is_done(&scene));
    assert_eq!(lines(&scene.file("calls")).len(), 1);
    host.end(Signal::TERM);
    scene.sound("p");
    // A rule about the tool that calls others would be about nothing.
    defer(
        &scene,
        &format!("[[permissions.rules]]\ntool = \"{CALL}\"\ndecision = \"deny\"\n"),
    );
    yoi(&scene, &["features"])
        .ends(78)
        .says(&["there is no tool `CallTool`"]);
}

/// The journal says which tool a call is of, and who reads the journal goes by that: the item has the name of the tool that calls.
#[test]
fn what_is_said_of_a_call_is_said_of_the_tool_that_it_calls() {
    let Some(scene) = scene() else { return };
    add(&scene, "fake", "modern");
    let denied = rule("allow") + &rule("deny").replace("__echo", "__fails");
    let tracer = "[features.\"builtin:step-tracer\"]\nenabled = true\n";
    defer(&scene, &format!("{tracer}{denied}"));
    let echo = "mcp__fake__echo";
    let fails = "mcp__fake__fails";
    let text = "long ".repeat(200);
    let calls = [
        called(echo, json!({ "text": text })),
        called(fails, json!({ "text": "x" })),
    ];
    let (_, run) = run_calls(&scene, "p", &calls);
    run.ends(3)
        .says(&[&format!("{fails} at mcp:fake is refused by the rule")]);
    let records = scene.records("p");
    let verdicts = of(&records, "verdict");
    let tools: Vec<&str> = verdicts
        .iter()
        .filter_map(|verdict| verdict["tool"].as_str())
        .collect();
    assert_eq!(tools, [echo, fails]);
    let traces = scene.path("state");
    let traced = crate::scene::holding(&traces, "\"step\":\"tool_error\"");
    let steps = std::fs::read_to_string(&traced[0]).unwrap();
    for (step, tool) in [("tool", echo), ("tool_error", fails)] {
        let has = |line: &str| {
            line.contains(&format!("\"step\":\"{step}\"")) && line.contains(&format!("\"{tool}\""))
        };
        assert!(steps.lines().any(has), "{step} {tool}: {steps}");
    }
    scene.sound("p");
    // The results of both count for their tools in the context of the next start, too.
    defer(&scene, &rule("allow"));
    let ask = json!({ "calls": [{ "name": CALL, "arguments": calls[1].1 }] });
    let done = json!({ "text": "done" });
    // The first three answers were used.
    let script = [&done, &done, &done, &ask, &done].map(Value::clone);
    let model = scene.script("asks.jsonl", &script);
    let host = Host::start(&scene, &["go", "-m", &model, "--adopt"]);
    until("a question", || status(&scene)["state"] == "waiting");
    let context = status(&scene)["context_usage"].to_string();
    assert!(
        context.contains(echo) && context.contains(fails),
        "{context}"
    );
    yoi(&scene, &["approve", "p", "1"]).ends(0);
    until("the end of the turn", || is_done(&scene));
    host.end(Signal::TERM);
    scene.sound("p");
    // A setting that names it would guard nothing.
    for feature in ["confirm-gate", "retry"] {
        let setting =
            format!("[features.\"builtin:{feature}\"]\nenabled = true\ntools = [\"{CALL}\"]\n");
        defer(&scene, &setting);
        yoi(&scene, &["features"])
            .ends(78)
            .says(&["`tools` names CallTool"]);
    }
}

#[test]
fn five_hundred_tools_leave_requests_and_some_stay() {
    let Some(scene) = scene() else { return };
    add(&scene, "many", "modern many");
    scene.config("[mcp]\nalways = [\"mcp__many__t7\", \"mcp__many__gone\"]\n");
    let (results, run) = run_calls(&scene, "p", &[(SEARCH, json!({ "query": "t11" }))]);
    run.ends(0);
    let words = "mcp.always: no MCP server has a tool `mcp__many__gone`";
    yoi(&scene, &["features", "--json"])
        .ends(0)
        .prints(&[words]);
    yoi(&scene, &["features"])
        .ends(0)
        .prints(&["defer  511 of 512 tools: the model searches for them"]);
    assert!(results[0].1.contains("mcp__many__t11\\n"), "{results:?}");
    let records = scene.records("p");
    let surface = of(&records, "surface")[0];
    let sources = surface["sources"].as_object().unwrap();
    let of_search = |of: &&Value| of["source"] == "builtin:tool-search";
    let parts = sources["system"]
        .as_array()
        .unwrap()
        .iter()
        .filter(of_search);
    let listed: u64 = parts.map(|part| part["bytes"].as_u64().unwrap()).sum();
    assert!((1_000..=16_000).contains(&listed), "{listed}");
    let is_of_servers = |tool: &&Value| {
        let name = tool["name"].as_str().unwrap();
        name.starts_with("mcp__") || [SEARCH, CALL].contains(&name)
    };
    let tools = surface["surface"]["tools"].as_array().unwrap();
    let tools: Vec<&Value> = tools.iter().filter(is_of_servers).collect();
    assert_eq!(tools.len(), 3, "{tools:?}");
    assert!(json!(tools).to_string().len() <= 8_000, "{tools:?}");
    scene.sound("p");
    // All of them are defined where the person wants that.
    scene.config("[mcp]\ndefer = 100\n");
    run_calls(&scene, "q", &[]);
    let (tools, _) = self::surface(&scene, "q");
    let named = tools.iter().filter(|tool| tool.starts_with("mcp__many__t"));
    assert_eq!(named.count(), 512);
    assert!(!tools.contains(&SEARCH.to_owned()));
}
