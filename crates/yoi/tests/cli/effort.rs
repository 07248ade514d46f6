//! How much a model thinks: from a flag or a file to the request, the journal and what people read.

use crate::endpoint::{Endpoint, Reply};
use crate::scene::{Done, Scene, finish};
use serde_json::{Value, json};

const TEXT: &str = include_str!("../../../provider/tests/fixtures/anthropic_text.sse");

fn run(scene: &Scene, args: &[&str]) -> Done {
    let mut command = scene.command(args);
    finish(command.env("FAKE_KEY", "sk-ant-1").spawn().unwrap())
}

/// What the n-th request says of thinking.
fn asked(endpoint: &Endpoint, n: usize) -> Value {
    let body = &endpoint.requests()[n].body;
    json!([body["thinking"], body["output_config"]["effort"]])
}

#[test]
fn an_effort_is_asked_for_recorded_and_kept() {
    let endpoint = Endpoint::start(|_, _| Reply::Stream(TEXT.to_owned()));
    let opus = "fake/claude-opus-5";
    let table = "[models.\"fake/claude-opus-5\"]\n";
    let scene = Scene::new();
    let file = endpoint.speaking(
        "anthropic",
        &format!("{table}effort = \"low\"\nthinking = true"),
    );
    scene.config(&file.replace("fake/one", opus));
    let summarized = json!({"type": "adaptive", "display": "summarized"});

    run(&scene, &["run", "--pod", "p", "x"]).ends(0);
    assert_eq!(asked(&endpoint, 0), json!([summarized, "low"]));
    run(&scene, &["run", "--pod", "p", "--effort", "max", "x"]).ends(0);
    assert_eq!(asked(&endpoint, 1), json!([summarized, "max"]));
    run(&scene, &["run", "--pod", "p", "x"]).ends(0);
    assert_eq!(
        asked(&endpoint, 2),
        json!([summarized, "low"]),
        "that run's"
    );
    let status = run(&scene, &["status", "p", "--json"]).ends(0).json();
    assert_eq!(status["effort"], "low");
    // Another model has the effort of its own table.
    run(
        &scene,
        &["run", "--pod", "p", "-m", "fake/claude-sonnet-4-5", "x"],
    )
    .ends(0);
    assert_eq!(asked(&endpoint, 3), json!([null, null]));
    assert_eq!(scene.sound("p"), 0);
    // A recorded model is asked as itself.
    run(&scene, &["run", "-m", "record:fake/claude-opus-5", "x"]).ends(0);
    assert_eq!(asked(&endpoint, 4), json!([summarized, "low"]));

    let models = run(&scene, &["models"]).ends(0);
    let before = endpoint.requests().len();
    models.prints(&["effort: low (choices: none, low, medium, high, max)"]);
    run(&scene, &["run", "--effort", "minimal", "x"])
        .ends(78)
        .says(&[
            "fake/claude-opus-5 has no effort `minimal` (--effort)",
            "use one of: none, low, medium, high, max",
        ]);
    let offline = run(&scene, &["run", "-m", "offline", "--effort", "high", "x"]);
    offline
        .ends(78)
        .says(&["leave the effort out: this model has none"]);
    run(&scene, &["run", "--effort", "huge", "x"]).ends(2);
    assert_eq!(
        endpoint.requests().len(),
        before,
        "a wrong one asks nothing"
    );
}

/// It was asked of any model that `-m` named, and one without it ended the start.
#[test]
fn an_effort_of_an_agent_is_one_of_its_model() {
    let endpoint = Endpoint::start(|_, _| Reply::Stream(TEXT.to_owned()));
    let scene = Scene::new();
    let file = endpoint.speaking("anthropic", "");
    scene.config(&file);
    scene.write(
        "agent.toml",
        "description = \"Checks.\"\nprompt = \"You check.\"\n\
         model = \"fake/claude-opus-5\"\neffort = \"max\"\n",
    );
    let agent = scene.file("agent.toml").display().to_string();
    run(&scene, &["run", "--agent", &agent, "x"]).ends(0);
    assert_eq!(
        endpoint.requests()[0].body["output_config"]["effort"],
        "max"
    );
    let other = [
        "run",
        "--agent",
        &agent,
        "-m",
        "fake/claude-sonnet-4-5",
        "x",
    ];
    run(&scene, &other).ends(0);
    assert_eq!(asked(&endpoint, 1), json!([null, null]));
    let same = ["run", "--agent", &agent, "-m", "fake/claude-opus-5", "x"];
    run(&scene, &same).ends(0);
    assert_eq!(
        endpoint.requests()[2].body["output_config"]["effort"],
        "max"
    );
}
