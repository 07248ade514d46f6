//! Calls of tools, and what comes of odd results.

use super::{Scene, add, allow, lines, run_calls, scene, starts, yoi};
use serde_json::json;

/// (the tool, its status, what its result has).
const RESULTS: &[(&str, &str, &[&str])] = &[
    ("echo", "ok", &["[1, 2]"]),
    ("any", "ok", &["[1, 2]"]),
    ("untyped", "ok", &["[1, 2]"]),
    ("broken", "ok", &["[1, 2]"]),
    ("show_log_gr__e", "ok", &["[1, 2]"]),
    // 2^70 + 1, and a warning that it is no text.
    (
        "data",
        "ok",
        &["1180591620717411303425", "does not fit the schema"],
    ),
    ("plain", "ok", &["\"data\":{\"value\":{\"n\":1}}"]),
    (
        "blocks",
        "ok",
        &[
            "[image, image/png, 3 bytes, is not shown: not a PNG",
            "[resource a:b: b]",
            "[resource c:d]",
            "inside",
            "the type `later`, which yoi does not know",
            "last",
        ],
    ),
    ("nothing", "ok", &["the server returned an empty result"]),
    (
        "fails",
        "error",
        &["the tool reported an error", "no such page"],
    ),
    (
        "asks",
        "error",
        &["the server asks a person before it goes on: Delete 3 files?"],
    ),
    ("dies", "error", &["ended with exit 3", "may have happened"]),
    ("echo", "ok", &["[1, 2]"]),
];

fn odd_results_lose_nothing(era: &str) {
    let Some(scene) = scene() else { return };
    add(&scene, "fake", era);
    let names: Vec<String> = RESULTS
        .iter()
        .map(|(tool, ..)| format!("mcp__fake__{tool}"))
        .collect();
    allow(
        &scene,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    // Text that looks like JSON stays text.
    let calls: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), json!({ "text": "[1, 2]" })))
        .collect();
    let (results, run) = run_calls(&scene, "p", &calls);
    assert_eq!(results.len(), RESULTS.len(), "{run:?}");
    for ((tool, status, has), (got, text)) in RESULTS.iter().zip(&results) {
        assert_eq!(got, status, "{tool}: {text}");
        for words in *has {
            assert!(text.contains(words), "{tool}: {words}: {text}");
        }
    }
    // One process until it died, and one more.
    assert_eq!(starts(&scene), 3);
    assert_eq!(lines(&scene.file("calls")).len(), RESULTS.len());
    scene.sound("p");
}

#[test]
fn odd_results_of_a_server_with_sessions_lose_nothing() {
    odd_results_lose_nothing("legacy");
}

#[test]
fn odd_results_of_a_modern_server_lose_nothing() {
    odd_results_lose_nothing("modern");
}

#[test]
fn resources_are_listed_and_read_by_one_tool() {
    let Some(scene) = scene() else { return };
    for (era, pod) in [("modern", "p"), ("legacy", "q")] {
        let words = format!("{era} resources");
        add(&scene, era, &words).prints(&["13 tools, 2 left out, resources, protocol"]);
        let tool = format!("mcp__{era}__read_resource");
        let shown = yoi(&scene, &["mcp", "show", era]).ends(0);
        shown.prints(&[&format!(
            "  {tool}  asks  Read a resource of the MCP server {era};"
        )]);
        yoi(&scene, &["mcp", "pin", era, "--trust"]).ends(0);
        let calls = [
            (&*tool, json!({})),
            (&*tool, json!({ "cursor": "two" })),
            (&*tool, json!({ "uri": "a:1" })),
            (&*tool, json!({ "uri": "a:3" })),
        ];
        let (results, run) = run_calls(&scene, pod, &calls);
        let expected = [
            ("ok", "a:1  One\\\\nline"),
            ("ok", "a:2  One"),
            (
                "ok",
                "[resource a:1]\\ninside\\n[resource a:1/b, image/png, 3 bytes, is not shown]",
            ),
            ("error", "error -32601: Method not found"),
        ];
        assert_eq!(results.len(), expected.len(), "{run:?}");
        for ((status, text), (got, all)) in expected.iter().zip(&results) {
            assert_eq!(got, status, "{all}");
            assert!(all.contains(text), "{text}: {all}");
        }
        scene.sound(pod);
    }
    // A server without resources has no such tool.
    add(&scene, "plain", "modern").prints(&["13 tools, 2 left out, protocol"]);
}

#[test]
fn a_call_needs_approval_unless_the_server_is_trusted_to_read() {
    let Some(scene) = scene() else { return };
    add(&scene, "fake", "modern");
    let call = [("mcp__fake__echo", json!({ "text": "x" }))];
    let (_, run) = run_calls(&scene, "a", &call);
    assert_eq!(run.code(), Some(3), "{run:?}");
    assert!(lines(&scene.file("calls")).is_empty());
    yoi(&scene, &["mcp", "pin", "fake", "--trust"]).ends(0);
    let (results, run) = run_calls(&scene, "b", &call);
    assert_eq!((run.code(), results.len()), (Some(0), 1), "{run:?}");
    assert_eq!(lines(&scene.file("calls")).len(), 1);
    // One that changes something is asked about all the same.
    let other = [("mcp__fake__nothing", json!({}))];
    run_calls(&scene, "c", &other);
    assert_eq!(lines(&scene.file("calls")).len(), 1);
    yoi(&scene, &["mcp", "pin", "fake", "--allow-calls"]).ends(0);
    run_calls(&scene, "d", &other);
    assert_eq!(lines(&scene.file("calls")).len(), 2);
}

/// Reference servers lose calls that run at the same time.
#[test]
fn calls_that_change_something_go_one_at_a_time_in_their_order() {
    let Some(scene) = scene() else { return };
    let (asked, texts) = eight_calls(&scene, "show_log_gr__e");
    for (line, text) in asked.iter().zip(&texts) {
        assert!(line.ends_with(text), "{asked:?}");
    }
}

/// They have no order: the host starts them together.
#[test]
fn calls_that_only_read_reach_one_process_and_each_is_answered() {
    let Some(scene) = scene() else { return };
    let (asked, texts) = eight_calls(&scene, "echo");
    for text in &texts {
        assert!(asked.iter().any(|line| line.ends_with(text)), "{asked:?}");
    }
}

/// The server answers none of them before it has all.
#[test]
fn calls_that_only_read_run_at_once() {
    let Some(scene) = scene() else { return };
    let server = super::server(&scene);
    let start = ["mcp", "add", "fake", "--trust", "--", "python3", &server];
    for (era, pod) in [("modern", "p"), ("legacy", "q")] {
        yoi(
            &scene,
            &[&start[..3], &["--replace"], &start[3..], &[era, "meet"]].concat(),
        )
        .ends(0);
        let call = |text: &str| json!({ "name": "mcp__fake__meet", "arguments": { "text": text } });
        let calls: Vec<_> = ["one", "two", "three"].map(call).to_vec();
        let script = [json!({ "calls": calls }), json!({ "text": "done" })];
        let model = scene.script("meet.jsonl", &script);
        yoi(&scene, &["run", "--pod", pod, "-m", &model, "go"]).ends(0);
        let records = scene.records(pod);
        let mut finished: Vec<_> = records
            .iter()
            .filter(|of| of["k"] == "tool_finished")
            .collect();
        finished.sort_by_key(|of| of["call"].as_str().map(str::to_owned));
        let texts: Vec<&str> = finished
            .iter()
            .filter_map(|of| of["outcome"]["content"].as_str())
            .collect();
        assert_eq!(texts, ["one", "two", "three"], "{era}: {finished:?}");
        scene.sound(pod);
    }
}

/// Eight calls of a tool in one answer of the model: what the one process of the server saw of them, and the arguments
/// as it writes them.
fn eight_calls(scene: &Scene, tool: &str) -> (Vec<String>, Vec<String>) {
    let server = super::server(scene);
    let mut args = vec!["mcp", "add", "fake", "--trust", "--allow-calls", "--"];
    args.extend(["python3", &server, "modern"]);
    yoi(scene, &args).ends(0);
    let tool = format!("mcp__fake__{tool}");
    let texts: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    let calls: Vec<_> = texts
        .iter()
        .map(|text| json!({ "name": tool, "arguments": { "text": text } }))
        .collect();
    let script = [json!({ "calls": calls }), json!({ "text": "done" })];
    let model = scene.script("many.jsonl", &script);
    yoi(scene, &["run", "--pod", "p", "-m", &model, "go"]).ends(0);
    let asked = lines(&scene.file("calls"));
    let pids: std::collections::BTreeSet<&str> = asked
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    // One process was asked for the definitions, one was called.
    let seen = (asked.len(), pids.len(), starts(scene));
    assert_eq!(seen, (8, 1, 2), "{asked:?}");
    let arguments = texts.iter().map(|text| format!("{{\"text\": \"{text}\"}}"));
    (asked, arguments.collect())
}
