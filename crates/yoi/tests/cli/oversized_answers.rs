//! Answers over a limit: the model is told, splits its work, and every request is still rebuilt.

use crate::endpoint::{Endpoint, Reply, calls, delta, text};
use crate::scene::{Scene, finish};
use serde_json::{Value, json};

/// What the newest message of a request says.
fn newest(body: &Value) -> String {
    body["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .map(Value::to_string)
        .unwrap_or_default()
}

/// The oversized call never ends: only a stream that is cut at the bound comes to the next request.
#[test]
fn the_model_is_told_and_splits_its_work() {
    let long = "x".repeat(200 * 1024);
    let write = |content: &str| json!({ "path": "long.txt", "content": content }).to_string();
    let endpoint = Endpoint::start({
        let write_long = write(&long);
        move |number, body| match number {
            0 => {
                let function = json!({ "name": "Write", "arguments": write_long });
                let call =
                    json!({ "index": 0, "id": "v", "type": "function", "function": function });
                Reply::Hang(vec![delta(
                    &json!({ "role": "assistant", "tool_calls": [call] }),
                )])
            }
            1 => {
                let said = newest(body);
                assert!(
                    said.contains("Your last answer was dropped") && said.contains("163840 bytes"),
                    "{said}"
                );
                calls(&[("Write", write("a beginning"))])
            }
            _ => text("split"),
        }
    });
    let scene = Scene::new();
    scene.config(&endpoint.config(""));
    let run = scene
        .command(&["run", "--pod", "p", "write much"])
        .env("FAKE_KEY", "k")
        .spawn()
        .unwrap();
    finish(run)
        .ends(0)
        .prints(&["split"])
        .says(&["longer than 163840 bytes", "3 steps"]);
    assert_eq!(scene.read("long.txt"), "a beginning");
    assert_eq!(scene.sound("p"), 1);
    let told = scene
        .records("p")
        .iter()
        .filter(|r| r["k"] == "system_item" && r["topic"] == "recovery")
        .count();
    assert_eq!(told, 1);
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["to the model, from yoi: Your last answer was dropped"]);
}

#[test]
fn three_in_a_row_end_the_run() {
    let scene = Scene::new();
    let calls: Vec<Value> = (0..65)
        .map(|_| json!({ "name": "List", "arguments": {} }))
        .collect();
    let model = scene.script("s.jsonl", &vec![json!({ "calls": calls }); 4]);
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .ends(1)
        .says(&["more than 64 tool calls", "into smaller parts"]);
    assert_eq!(scene.sound("p"), 0);
    assert_eq!(
        scene
            .records("p")
            .iter()
            .filter(|r| r["k"] == "request")
            .count(),
        3
    );
}
