//! Phases that a model records: in `yoi features NAME`, through restarts.

use crate::scene::Scene;
use serde_json::{Value, json};

fn phase(name: &str, status: &str, detail: &str) -> Value {
    let arguments = json!({ "name": name, "status": status, "detail": detail });
    json!({ "calls": [{ "name": "record_phase", "arguments": arguments }] })
}

/// A run of a pod, without a sandbox to fall back on, whose model made `before` earlier, and makes these calls now. A script is played from its beginning.
fn run(scene: &Scene, before: &mut Vec<Value>, phases: &[Value]) {
    before.extend(phases.iter().cloned().chain([json!({ "text": "done" })]));
    let model = scene.script("script.jsonl", before);
    scene.config("[features.\"builtin:phase-recorder\"]\nenabled = true\n");
    scene
        .yoi(&["run", "--sandbox", "off", "--pod", "p", "-m", &model, "go"])
        .ends(0);
}

#[test]
fn phases_are_shown_with_the_pod() {
    let scene = Scene::new();
    let mut before = Vec::new();
    run(&scene, &mut before, &[]);
    assert!(
        !scene
            .yoi(&["features", "p"])
            .ends(0)
            .out
            .contains("phases:")
    );
    assert_eq!(
        scene
            .yoi(&["features", "p", "--json"])
            .ends(0)
            .json()
            .get("phases"),
        None
    );
    run(
        &scene,
        &mut before,
        &[
            phase("build", "started", ""),
            phase("build", "failed", "word ".repeat(30).trim_end()),
        ],
    );
    run(
        &scene,
        &mut before,
        &[phase("test", "skipped", "nothing builds")],
    );
    let shown = scene.yoi(&["features", "p"]).ends(0).prints(&[
        "phases:\n    ✗ failed  build: word word",
        "\n              word word",
        "\n    - skipped test: nothing builds\n",
    ]);
    assert!(
        shown.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        shown.out
    );
    let phases = scene.yoi(&["features", "p", "--json"]).ends(0).json()["phases"].take();
    assert_eq!(
        (&phases["forgotten"], &phases["phases"][1]),
        (
            &json!(0),
            &json!({ "name": "test", "status": "skipped", "detail": "nothing builds" }),
        )
    );
}
