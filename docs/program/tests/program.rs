//! The composed program: its feature is installed under its own id, a person can change its grants, and its state stays.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the program in a home of its own.
fn program(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_program"));
    command
        .args(args)
        .current_dir(home.join("project"))
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin");
    command.output().unwrap()
}

fn json(home: &Path, args: &[&str]) -> Value {
    let output = program(home, args);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn review_first(report: &Value) -> &Value {
    let all = report["features"].as_array().unwrap();
    all.iter()
        .find(|feature| feature["feature_id"] == "user:review-first")
        .unwrap()
}

#[test]
fn a_feature_of_ones_own_runs_in_every_pod() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let project = home.join("project");
    let config = home.join(".config/yoi");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(&config).unwrap();
    assert_eq!(
        review_first(&json(home, &["features", "--json"]))["outcome"],
        "installed"
    );
    // Its tool is one that rules can name, and its answer shows that it ran.
    let reviewed = |branch: &str| {
        format!(
            "{{\"calls\":[{{\"name\":\"Reviewed\",\"arguments\":{{\"branch\":\"{branch}\"}}}}]}}\n{{\"text\":\"done\"}}\n"
        )
    };
    std::fs::write(
        project.join("answers.jsonl"),
        reviewed("fix") + &reviewed("more"),
    )
    .unwrap();
    for expected in ["1 reviewed", "2 reviewed"] {
        let run = program(
            home,
            &[
                "run",
                "-m",
                "scripted:answers.jsonl",
                "--pod",
                "p",
                "--allow",
                "Reviewed",
                "review",
            ],
        );
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        let log = program(home, &["log", "p"]);
        assert!(
            String::from_utf8_lossy(&log.stdout).contains(expected),
            "{}",
            String::from_utf8_lossy(&log.stdout)
        );
    }
    // A person's configuration comes after the defaults of the program.
    std::fs::write(
        config.join("config.toml"),
        "[features.\"user:review-first\"]\ngrant = { tools = [] }\n",
    )
    .unwrap();
    let report = json(home, &["features", "--json"]);
    assert_eq!(review_first(&report)["outcome"], "degraded");
    std::fs::write(
        config.join("config.toml"),
        "[features.\"user:review-first\"]\nenabled = false\n",
    )
    .unwrap();
    assert_eq!(
        review_first(&json(home, &["features", "--json"]))["outcome"],
        "disabled"
    );
}
