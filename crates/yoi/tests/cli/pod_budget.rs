//! The budget of a pod over all its runs and starts, as people and scripts meet it.

use crate::scene::{Scene, finish, signal};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Steps of 11,000 tokens that never end.
fn steps(scene: &Scene) -> String {
    let usage = json!({ "input": 10_000, "output": 1_000 });
    let call = json!({ "calls": [{ "name": "List", "arguments": {} }], "usage": usage });
    scene.script("steps.jsonl", &vec![call; 12])
}

fn held(scene: &Scene) -> Value {
    scene.yoi(&["status", "p", "--json"]).ends(0).json()["held"].clone()
}

#[test]
fn a_pod_that_has_used_its_budget_waits_for_a_person() {
    let scene = Scene::new();
    let model = steps(&scene);
    let limit = |most: &str| scene.config(&format!("[limits.pod]\nmax_steps = {most}\n"));
    limit("2");
    scene.yoi(&["start", "p", "-m", &model]).ends(0);
    let pid = scene.yoi(&["status", "p", "--json"]).ends(0).json()["pid"]
        .as_u64()
        .unwrap();
    let reason = "the pod reached its limit of 2 steps; it used 2 steps, 22000 tokens and";
    let more = "`yoi resume p --more` allows as much again";
    // A client that waits for its turn is told whose limit it is.
    scene
        .yoi(&["run", "--pod", "p", "go"])
        .ends(4)
        .says(&[&format!("error: {reason}"), more]);
    scene.yoi(&["status", "p"]).ends(0).prints(&[
        "held, waiting for you",
        reason,
        more,
        "`yoi stop p` stops the pod",
    ]);
    scene
        .yoi(&["ls"])
        .ends(0)
        .prints(&["waiting for you", "`yoi resume p --more`"]);
    assert_eq!(
        (&held(&scene)["cause"], &held(&scene)["budget"]),
        (&json!("budget"), &json!("pod"))
    );
    assert_eq!(
        scene.yoi(&["ls", "--json"]).ends(0).json()[0]["state"],
        "held"
    );
    scene.yoi(&["send", "p", "again"]).ends(0);
    scene.yoi(&["resume", "p"]).ends(4).says(&[reason, more]);
    // Granted once more: the input that waits gets as much again.
    scene
        .yoi(&["resume", "p", "--more"])
        .ends(0)
        .prints(&["p is resumed"]);
    while !held(&scene)["reason"]
        .as_str()
        .unwrap_or_default()
        .contains("2 steps again; it used 4 steps")
    {}
    let granted: Vec<Value> = scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == "resumed")
        .collect();
    assert_eq!((granted.len(), &granted[0]["more"]), (1, &json!(["steps"])));
    assert_eq!(granted[0]["by"]["client"], "yoi resume");
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["! resumed by yoi resume, and the pod may use its limit of steps again"]);
    // A higher limit of the reloaded configuration counts at once.
    limit("3");
    signal(u32::try_from(pid).unwrap(), Signal::HUP);
    while scene.yoi(&["resume", "p"]).code() != Some(0) {}
    // The turn goes on with the step that it has now.
    while !held(&scene)["reason"]
        .as_str()
        .unwrap_or_default()
        .contains("3 steps again; it used 5")
    {}
    // Also over a restart.
    scene.yoi(&["stop", "p"]).ends(0);
    scene
        .yoi(&["start", "p"])
        .ends(0)
        .prints(&["p is held", "the pod reached its limit of 3 steps again"]);
    scene.yoi(&["resume", "p"]).ends(4).says(&[more]);
    scene.yoi(&["stop", "p"]).ends(0);
    scene.sound("p");
}

#[test]
fn a_run_says_which_budget_is_used_up() {
    let scene = Scene::new();
    let model = steps(&scene);
    let run = |pod: &str| scene.yoi(&["run", "--pod", pod, "-m", &model, "go"]);
    scene.config("[limits.pod]\nmax_tokens = 30000\n");
    let used =
        "error: the pod reached its limit of 30000 tokens; it used 3 steps, 33000 tokens and";
    let help = "help: raise the limit under [limits.pod] in your configuration, or allow as much again: `yoi start p`, then";
    run("p").ends(4).says(&[used, help, "3 steps"]);
    run("p").ends(4).says(&[used, help, "0 steps"]);
    scene.config("[limits.pod]\nmax_tokens = 50000\n[limits]\nmax_steps = 1\n");
    run("p").ends(4).says(&[
        "error: the step limit was reached",
        "raise --max-steps",
        "1 step ",
    ]);
    run("p")
        .ends(4)
        .says(&["error: the step limit was reached", "1 step "]);
    run("p").ends(4).says(&[
        "error: the pod reached its limit of 50000 tokens",
        "0 steps",
    ]);
    scene.sound("p");
    for (config, says) in [
        ("max_steps = 0", "`pod.max_steps` must be at least 1"),
        ("max_cost_usd = 0", "`pod.max_cost_usd` must be more than 0"),
        (
            "max_wall_s = 0",
            "`pod.max_wall_s` must be at least 1 second",
        ),
        ("max_tool = 1", "max_tool"),
    ] {
        scene.config(&format!("[limits.pod]\n{config}\n"));
        scene.yoi(&["config", "check"]).ends(78).says(&[says]);
    }
    scene.config("[limits.pod]\nmax_cost_usd = 1\n");
    run("q").ends(2).says(&["so it cannot limit the cost"]);
}

/// A command of the agent is a process of the pod, and a viewer at most.
#[test]
fn a_command_of_the_agent_grants_nothing() {
    let scene = Scene::new();
    let yoi = env!("CARGO_BIN_EXE_yoi");
    let command = format!("{yoi} resume p --more; echo ended with $?");
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] });
    let model = scene.script("raise.jsonl", &[call, json!({ "text": "done" })]);
    scene.config("[limits.pod]\nmax_steps = 9\n");
    let run = [
        "run",
        "--pod",
        "p",
        "--sandbox",
        "off",
        "--allow",
        "Bash",
        "-m",
        &model,
        "go",
    ];
    finish(scene.command(&run).spawn().unwrap()).ends(0);
    let records = scene.records("p");
    let ended = records
        .iter()
        .find(|record| record["k"] == "tool_finished")
        .unwrap();
    assert!(
        !ended["outcome"]["content"]
            .as_str()
            .unwrap()
            .contains("ended with 0"),
        "{ended}"
    );
    assert!(!records.iter().any(|record| record["k"] == "resumed"));
}
