//! Runs against an endpoint that answers: chains of calls, calls at once, calls that make no sense.

use crate::endpoint::{Endpoint, Reply, Request, calls, delta, stop, text};
use crate::scene::{Scene, finish};
use serde_json::{Value, json};
use std::fs;
use std::process::Child;

fn with(endpoint: &Endpoint, more: &str) -> Scene {
    let scene = Scene::new();
    scene
        .config(&endpoint.config(more))
        .write("a.txt", "one\ntwo\n");
    scene
}

fn started(scene: &Scene, args: &[&str]) -> Child {
    scene.command(args).env("FAKE_KEY", "k").spawn().unwrap()
}

/// What the model was told of its calls in a request.
fn told(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages
        .filter(|m| m["role"] == "tool")
        .map(|m| m["content"].as_str().unwrap().to_owned())
        .collect()
}

fn chain(length: usize) {
    let endpoint = Endpoint::start(move |n, _| {
        if n < length {
            calls(&[(
                "Read",
                json!({ "path": "a.txt", "offset": 1 + n % 2 }).to_string(),
            )])
        } else {
            text("that was it")
        }
    });
    let scene = with(&endpoint, "");
    let done = finish(started(&scene, &["run", "--pod", "chain", "go"])).ends(0);
    assert_eq!(done.out, "that was it\n");
    done.says(&[&format!("{} steps", length + 1)]);
    assert_eq!(scene.sound("chain"), length);
    let requests = endpoint.requests();
    assert_eq!(requests.len(), length + 1);
    let messages = |request: &Request| request.body["messages"].as_array().unwrap().clone();
    for (n, pair) in requests.windows(2).enumerate() {
        assert!(
            messages(&pair[1]).starts_with(&messages(&pair[0])),
            "request {} does not go on from {n}",
            n + 1
        );
        let told = told(&pair[1].body);
        assert_eq!(told.len(), n + 1);
        assert!(told.iter().all(|result| result.contains("a.txt: line")));
    }
}

#[test]
fn fifty_chained_calls() {
    chain(50);
}

#[test]
fn three_hundred_chained_calls() {
    chain(300);
}

// Commands of one answer ran at the same time: the second saw files of the first before they were written.
#[test]
fn eight_commands_run_in_their_order() {
    const MANY: usize = 8;
    let commands: Vec<(&str, String)> = (0..MANY)
        .map(|n| {
            let command = format!(
                "mkdir busy && sleep 0.0{n} && echo {n} >> order && rmdir busy && echo got {n}"
            );
            ("Bash", json!({ "command": command }).to_string())
        })
        .collect();
    let endpoint = Endpoint::start(move |n, _| {
        if n == 0 {
            calls(&commands)
        } else {
            text("all done")
        }
    });
    let scene = with(&endpoint, "");
    assert_eq!(
        finish(started(&scene, &["run", "--pod", "eight", "go"]))
            .ends(0)
            .out,
        "all done\n"
    );
    assert_eq!(scene.sound("eight"), MANY);
    assert_eq!(
        fs::read_to_string(scene.file("order")).unwrap(),
        "0\n1\n2\n3\n4\n5\n6\n7\n"
    );
    let told = told(&endpoint.requests()[1].body);
    assert!(
        (0..MANY).all(|n| told[n].contains(&format!("got {n}"))),
        "{told:?}"
    );
}

#[test]
fn a_call_that_makes_no_sense_is_answered_and_the_run_goes_on() {
    let wrong: [(&str, &str, &str); 6] = [
        ("Read", "{\"path\": ", "JSON"),
        // Empty text is `{}`.
        ("Read", "", "missing field `path`"),
        ("Read", "[1]", "object"),
        ("Read", "{\"path\": 1}", "path"),
        ("Read", "{\"path\":\"a.txt\",\"colour\":1}", "colour"),
        ("Fly", "{}", "there is no tool called `Fly`"),
    ];
    let list: Vec<(&str, String)> = wrong
        .iter()
        .map(|(name, arguments, _)| (*name, (*arguments).to_owned()))
        .collect();
    let endpoint = Endpoint::start(move |n, _| if n == 0 { calls(&list) } else { text("sorry") });
    let scene = with(&endpoint, "");
    let done = finish(started(&scene, &["run", "--pod", "wrong", "go"]))
        .ends(0)
        .says(&["✗"]);
    assert_eq!(done.out, "sorry\n");
    assert_eq!(scene.sound("wrong"), wrong.len());
    let told = told(&endpoint.requests()[1].body);
    for (result, (_, _, says)) in told.iter().zip(wrong) {
        assert!(result.contains(says), "{result}\nshould say {says}");
    }
}

#[test]
fn how_an_answer_can_end() {
    let part = || delta(&json!({ "role": "assistant", "content": "half an ans" }));
    let ends: [(&str, Vec<Value>, i32, &str, &str); 6] = [
        (
            "length",
            vec![part(), stop("length")],
            1,
            "",
            "the answer reached the model's output limit",
        ),
        (
            "filter",
            vec![part(), stop("content_filter")],
            1,
            "",
            "refused to answer",
        ),
        (
            "refusal",
            vec![delta(&json!({ "refusal": "I will not." })), stop("stop")],
            1,
            "",
            "refused to answer",
        ),
        (
            "empty",
            vec![stop("stop")],
            1,
            "",
            "the model returned an empty answer",
        ),
        (
            "nothing",
            vec![delta(&json!({ "content": "" })), stop("stop")],
            1,
            "",
            "the model returned an empty answer",
        ),
        (
            "good",
            vec![part(), stop("stop")],
            0,
            "half an ans\n",
            "1 step",
        ),
    ];
    for (pod, pieces, code, out, says) in ends {
        let endpoint = Endpoint::start(move |_, _| Reply::Answer(pieces.clone()));
        let scene = with(&endpoint, "");
        let done = finish(started(&scene, &["run", "--pod", pod, "go"]))
            .ends(code)
            .says(&[says]);
        assert_eq!(done.out, out, "{pod}");
        scene.sound(pod);
    }
}

#[test]
fn an_output_over_the_bound_is_cut_and_can_be_paged() {
    let endpoint = Endpoint::start(|n, body| match n {
        0 => calls(&[("Bash", json!({ "command": "seq 1 200000" }).to_string())]),
        1 => {
            let result = told(body).remove(0);
            let (_, after) = result.split_once("\"handle\":\"").expect(&result);
            let handle = after.split('"').next().unwrap();
            calls(&[(
                "ReadOutput",
                json!({ "handle": handle, "offset": 100_000, "lines": 1 }).to_string(),
            )])
        }
        _ => text("paged"),
    });
    let scene = with(&endpoint, "");
    assert_eq!(
        finish(started(&scene, &["run", "--pod", "long", "go"]))
            .ends(0)
            .out,
        "paged\n"
    );
    let told = told(&endpoint.requests()[2].body);
    assert!(
        told[0].len() < 40_000 && told[1].contains("100000"),
        "{}",
        told[1]
    );
    scene.sound("long");
}

#[test]
fn models_of_an_endpoint_are_listed() {
    let listed =
        json!({ "object": "list", "data": [{ "id": "tiny" }, { "id": "large" }] }).to_string();
    let endpoint = Endpoint::start(move |_, _| {
        Reply::Status(
            "200 OK",
            "content-type: application/json\r\n",
            listed.clone(),
        )
    });
    let scene = with(&endpoint, "");
    let listing = |args: &[&str]| finish(started(&scene, args)).ends(0);
    listing(&["models"]).prints(&[
        "default: fake/one",
        "✓ fake",
        "    fake/tiny",
        "    fake/large",
        "✓ offline",
    ]);
    let json = listing(&["models", "--json"]).json();
    let fake = json["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["provider"] == "fake")
        .unwrap()
        .clone();
    assert_eq!(
        (&fake["ready"], &fake["models"]),
        (&json!(true), &json!(["fake/large", "fake/tiny"]))
    );
    finish(started(&scene, &["doctor"])).prints(&["fake: ", "2 models"]);
    let gone = Scene::new();
    gone.config("[providers.gone]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    gone.yoi(&["models"]).ends(0).prints(&[
        "default: offline",
        "- gone",
        "not running at http://127.0.0.1:9/v1; start it",
    ]);
}
