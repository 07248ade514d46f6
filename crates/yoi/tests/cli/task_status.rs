//! What people are told of background tasks: by `yoi status` and `yoi log` from the journal alone, by `yoi features --explain`
//! before a start.

use crate::scene::Scene;
use serde_json::{Value, json};
use session_store::{EncodeError, Frames, Options, Records, Session};
use std::sync::Arc;

/// Records of background tasks.
struct Runs(Vec<Value>);

impl Records for Runs {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        self.0
            .iter()
            .try_for_each(|run| frames.record("background_task", 1, run).map(drop))
    }
}

fn run(run: u64, task: &str, state: &str) -> Value {
    json!({
        "run": run, "feature": "user:press", "task": task, "trigger": "cron", "attempt": 1, "due_ms": 1, "at_ms": 2,
        "effect": "effectful", "state": state,
    })
}

/// The process was killed during a run. The next start records its end, which people see although no turn begins.
#[test]
fn an_orphaned_run_is_shown_before_and_after_the_next_start() {
    let scene = Scene::new();
    let model = scene.script(
        "answers",
        &[json!({ "text": "hello" }), json!({ "text": "another" })],
    );
    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "one"])
        .ends(0);
    let status = || scene.yoi(&["status", "p", "--json"]).ends(0).json();
    assert_eq!(
        (&status()["tasks"], &status()["more_tasks"]),
        (&json!([]), &json!(0))
    );
    let options = Options::new("s-1", Arc::new(|| 1_790_000_000_000_000));
    let opened = Session::open(&scene.pod("p"), options).unwrap();
    let failed = json!({ "reason": "no luck" });
    let mut end = run(1, "refresh", "failed");
    end.as_object_mut()
        .unwrap()
        .extend(failed.as_object().unwrap().clone());
    let records = vec![
        run(1, "refresh", "running"),
        end,
        run(2, "sweep", "running"),
    ];
    opened.journal.append(Runs(records)).wait().unwrap();
    opened.journal.close();

    scene.yoi(&["status", "p"]).ends(0).prints(&[
        "2 background tasks, 1 without an end",
        "user:press refresh: run 1 failed",
        "ago: no luck",
        "user:press sweep: run 2 has no end; the next start records it as interrupted",
    ]);
    let task = status()["tasks"][0].clone();
    let open = json!({ "run": 2, "trigger": "cron", "attempt": 1, "due_ms": 1, "since_ms": 2 });
    assert_eq!(
        (&task["task"], &task["run"], &task["off"]),
        (&json!("sweep"), &open, &Value::Null)
    );

    scene
        .yoi(&["run", "--pod", "p", "-m", &model, "two"])
        .ends(0);
    let orphaned = status()["tasks"][0].clone();
    assert_eq!(
        (&orphaned["task"], &orphaned["last"]["state"]),
        (&json!("sweep"), &json!("orphaned"))
    );
    let shown = [
        "user:press sweep: run 2 interrupted",
        "the pod's process ended during the run",
    ];
    scene.yoi(&["status", "p"]).ends(0).prints(&shown);
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["background task sweep of user:press, run 2: interrupted"]);
    scene.sound("p");
}

#[test]
fn a_task_is_explained_with_its_grants_triggers_and_rules() {
    let scene = Scene::new();
    let off = scene.yoi(&["features", "--explain", "deliver"]).ends(0);
    off.prints(&[
        "deliver is a background task of builtin:schedule: code that yoi runs by itself",
        "✗ builtin:schedule is",
        "so deliver does not run",
    ]);
    scene.config("[features.\"builtin:schedule\"]\nenabled = true\n");
    scene
        .yoi(&["features", "--explain", "deliver"])
        .ends(0)
        .prints(&[
            "is the task installed?",
            "✓ builtin:schedule is enabled",
            "✓ the feature may run the background task deliver (default)",
            "✓ the feature may send notifications to the model",
            "when does it run?\n  - at each start\n  - on request of the feature\n",
            "the task has at most one run at a time; yoi cancels a run after 60 s",
            "so deliver runs in each pod that `yoi start` starts",
        ]);
    let task = scene
        .yoi(&[
            "features",
            "--explain",
            "builtin:schedule/deliver",
            "--json",
        ])
        .ends(0)
        .json();
    assert_eq!(
        (&task["installed"], &task["triggers"][0]["text"]),
        (&json!(true), &json!("at each start"))
    );
    assert_eq!(task["restart"]["restart"], "on_failure");
    let schema = scene
        .yoi(&["features", "--explain", "deliver", "--schema"])
        .ends(0)
        .json();
    assert!(schema["properties"]["triggers"].is_object());
}
