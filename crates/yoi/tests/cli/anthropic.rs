//! Runs against an endpoint that speaks Anthropic's Messages.

use crate::endpoint::{Endpoint, Reply, text};
use crate::scene::{Done, Scene, finish};
use serde_json::{Value, json};

const THINKING: &str = include_str!("../../../provider/tests/fixtures/anthropic_thinking.sse");
const TEXT: &str = include_str!("../../../provider/tests/fixtures/anthropic_text.sse");
const PAUSED: &str = include_str!("../../../provider/tests/fixtures/anthropic_unknown.sse");
const REFUSAL: &str = include_str!("../../../provider/tests/fixtures/anthropic_refusal_crlf.sse");
const OVERLOADED: &str = include_str!("../../../provider/tests/fixtures/anthropic_overloaded.sse");

/// An endpoint whose n-th answer is the n-th stream; the last one goes on.
fn endpoint(streams: &'static [&'static str]) -> Endpoint {
    Endpoint::start(move |n, _| Reply::Stream(streams[n.min(streams.len() - 1)].to_owned()))
}

fn scene(endpoint: &Endpoint, more: &str) -> Scene {
    let scene = Scene::new();
    scene
        .config(&endpoint.speaking("anthropic", more))
        .write("a.rs", "fn main() {}\n");
    scene
}

fn run(scene: &Scene, args: &[&str]) -> Done {
    finish(
        scene
            .command(args)
            .env("FAKE_KEY", "sk-ant-1")
            .spawn()
            .unwrap(),
    )
}

fn blocks(message: &Value) -> Vec<&str> {
    message["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect()
}

/// The thinking that the first answer held, as it goes back.
fn thinking() -> Value {
    json!([
        { "type": "thinking", "thinking": "The person wants \"a.rs\".\n", "signature": "1gbcDa9GJwZA2b3h/+==" },
        { "type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4=" },
        { "type": "text", "text": "Reading." },
        { "type": "thinking", "thinking": "", "signature": "QWdhaW4=" },
        { "type": "tool_use", "id": "c00000001", "name": "Read", "input": { "path": "a.rs" } },
    ])
}

#[test]
fn thinking_goes_back_as_it_came_and_every_request_is_rebuilt() {
    let endpoint = endpoint(&[THINKING, TEXT]);
    let scene = scene(
        &endpoint,
        "[models.\"fake/one\"]\nprice = { input = 2, output = 10, cached_input = 0.2 }\n",
    );
    let done = run(&scene, &["run", "--pod", "p", "what is in a.rs?"]).ends(0);
    assert_eq!(done.out, "Grüße, world 🌍!\n");
    // 40 in and 120 out; then 12 in, 2,000 from the cache, 300 into it and 15 out.
    done.says(&["• Read a.rs", "2 steps", "2487 tokens · $0.0026 · p"]);
    assert_eq!(scene.sound("p"), 1);
    let requests = endpoint.requests();
    let head = requests[1].head.to_lowercase();
    assert!(
        head.starts_with("post /v1/messages ") && head.contains("x-api-key: sk-ant-1"),
        "{head}"
    );
    let messages = requests[1].body["messages"].as_array().unwrap();
    assert_eq!(messages[1]["content"], thinking());
    assert_eq!(blocks(&messages[2]), ["tool_result"]);
    assert_eq!(
        messages[2]["content"][0]["cache_control"],
        json!({ "type": "ephemeral" })
    );
    assert_eq!(
        requests[1].body["max_tokens"], 8192,
        "not a Claude: what every model behind this API takes"
    );

    run(&scene, &["run", "--pod", "p", "and now?"]).ends(0);
    let third = &endpoint.requests()[2].body;
    assert_eq!(
        third["messages"][1]["content"],
        thinking(),
        "after a restart, too"
    );
    let other = run(&scene, &["run", "--pod", "p", "-m", "fake/two", "and you?"]).ends(0);
    other.says(&["this pod last used the model"]);
    let fourth = &endpoint.requests()[3].body;
    assert_eq!(
        blocks(&fourth["messages"][1]),
        ["text", "tool_use"],
        "another model gets none of it"
    );
    assert_eq!(scene.sound("p"), 1);
}

#[test]
fn the_same_session_goes_on_with_another_vendor() {
    let messages = endpoint(&[THINKING, TEXT]);
    let scene = scene(&messages, "");
    run(&scene, &["run", "--pod", "p", "what is in a.rs?"]).ends(0);
    let chat = Endpoint::start(|_, _| text("As was said."));
    scene.config(&chat.config(""));
    assert_eq!(
        run(&scene, &["run", "--pod", "p", "and?"]).ends(0).out,
        "As was said.\n"
    );
    assert!(!chat.requests()[0].body.to_string().contains("EqQB"));
    assert_eq!(scene.sound("p"), 1);
}

#[test]
fn a_pause_is_gone_on_with_and_the_answer_is_both_parts() {
    let endpoint = endpoint(&[PAUSED, TEXT]);
    let scene = scene(&endpoint, "");
    let done = run(&scene, &["run", "--pod", "p", "look"])
        .ends(0)
        .says(&["2 steps"]);
    assert_eq!(done.out, "So far.\n\nGrüße, world 🌍!\n");
    let second = &endpoint.requests()[1].body;
    assert_eq!(
        second["messages"].as_array().unwrap().last().unwrap()["content"][0]["text"],
        "So far."
    );
    assert_eq!(scene.sound("p"), 0);
}

#[test]
fn refusals_and_overloads() {
    let refusing = endpoint(&[REFUSAL]);
    let refused = scene(&refusing, "");
    run(&refused, &["run", "x"])
        .ends(1)
        .says(&["error: the model refused to answer"]);
    let overloaded = endpoint(&[OVERLOADED, TEXT]);
    let busy = scene(&overloaded, "");
    let done = run(&busy, &["run", "--pod", "p", "x"])
        .ends(0)
        .says(&["Overloaded", "attempt 2"]);
    assert_eq!(done.out, "Grüße, world 🌍!\n");
    assert_eq!(busy.sound("p"), 0);
}
