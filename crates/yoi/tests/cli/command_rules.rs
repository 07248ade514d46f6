//! Rules about what a shell command runs, from a file and from `--allow`, told where a person and a model see them.

use crate::scene::{Done, Scene};
use serde_json::{Value, json};

fn model(scene: &Scene, command: &str) -> String {
    let call = json!({ "name": "Bash", "arguments": { "command": command } });
    scene.script(
        "answers.jsonl",
        &[json!({ "calls": [call] }), json!({ "text": "done" })],
    )
}

/// Those of calls.
fn verdicts(done: &Done) -> Vec<Value> {
    done.lines()
        .into_iter()
        .filter(|line| line["k"] == "verdict" && line["call"].is_string())
        .collect()
}

#[test]
fn a_flag_allows_what_a_refusal_offered() {
    let scene = Scene::new();
    let model = model(&scene, "echo one && echo two; true");
    let run = |flags: &[&str], exit| {
        let done = scene
            .yoi(
                &[
                    &["run", "--json", "-m", &model, "--sandbox", "off", "go"][..],
                    flags,
                ]
                .concat(),
            )
            .ends(exit);
        done.lines()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let refused = run(&["--allow", "Bash echo"], 3);
    assert!(
        refused.contains("`true` in `echo one && echo two; true`"),
        "{refused}"
    );
    assert!(refused.contains("--allow 'Bash true'"), "{refused}");
    let allowed = run(&["--allow", "Bash echo", "--allow", "Bash true"], 0);
    assert!(allowed.contains("one\\ntwo"), "{allowed}");
}

#[test]
fn a_files_refusal_stands_against_the_flag() {
    let scene = Scene::new();
    scene.config(
        "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"deny\"\n",
    );
    let model = model(&scene, "echo x; t''ouch made");
    let done = scene
        .yoi(&[
            "run",
            "--json",
            "-m",
            &model,
            "--allow",
            "Bash touch",
            "--allow",
            "Bash",
            "go",
        ])
        .ends(3);
    let verdicts = verdicts(&done);
    assert_eq!(
        verdicts[0]["rule"], "deny Bash touch ($XDG_CONFIG_HOME/yoi/config.toml:1)",
        "{verdicts:?}"
    );
    assert!(
        verdicts[0]["reason"]
            .as_str()
            .unwrap()
            .contains("yoi/config.toml:1)\nto allow"),
        "{verdicts:?}"
    );
    assert!(!scene.file("made").exists());
}

/// What lets a call run is journaled as what refuses one is: the rule, and the line it stands on.
#[test]
fn an_allowed_call_says_which_rule_let_it_run() {
    let scene = Scene::new();
    let model = model(&scene, "echo one");
    let rule = |decision: &str| {
        format!(
            "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"echo\"\ndecision = \"{decision}\"\n"
        )
    };
    let own = format!("{}{}", rule("deny"), rule("allow"));
    // The file, the flags, the rule that lets it run and where that stands.
    let cases: [(&str, &[&str], &str); 4] = [
        (
            "",
            &[],
            "running commands, and tools with unknown effects: allow (default)",
        ),
        (
            "",
            &["--sandbox", "off", "--allow", "Bash echo"],
            "allow Bash echo (--allow)",
        ),
        (
            &own,
            &["--sandbox", "off"],
            "allow Bash echo ($XDG_CONFIG_HOME/yoi/config.toml:5)",
        ),
        (&own, &["--allow", "Bash"], "allow Bash (--allow)"),
    ];
    for (config, flags, expected) in cases {
        scene.config(config);
        let done = scene
            .yoi(&[&["run", "--json", "-m", &model, "go"][..], flags].concat())
            .ends(0);
        let verdicts = verdicts(&done);
        assert_eq!(
            (verdicts.len(), &verdicts[0]["decision"]),
            (1, &json!("allow")),
            "{verdicts:?}"
        );
        assert_eq!(verdicts[0]["rule"], expected, "{verdicts:?}");
    }
}

#[test]
fn rules_that_cannot_be_read_are_named_where_they_stand() {
    let scene = Scene::new();
    let run = |rule: &str| scene.yoi(&["run", "--allow", rule, "go"]).ends(2);
    run("Bahs git").says(&[
        "there is no tool `Bahs`",
        "did you mean `Bash`?",
        "'Bash git status,diff'",
    ]);
    run("Bash git:*").says(&["the name of a program cannot contain patterns or quotes"]);
    scene.config(
        "model = \"offline\"\n[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"git push\"\ndecision = \"deny\"\n",
    );
    scene.yoi(&["run", "go"]).ends(78).says(&[
        "config.toml:4",
        "permissions.rules[0]",
        "must be one word",
    ]);
}

#[test]
fn a_route_names_the_programs_of_its_rules() {
    let scene = Scene::new();
    let rule = |program: &str, decision: &str| {
        format!("[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"{program}\"\n{decision}\n")
    };
    let deny = rule(
        "git",
        "subcommand = [\"push\", \"pull\"]\ndecision = \"deny\"",
    );
    scene.config(&format!("{}{deny}", rule("rm", "decision = \"ask\"")));
    let shown = scene.yoi(&["features", "--explain", "Bash"]).ends(0);
    shown.prints(&["on rm,", "push,pull,", "config.toml:1", "config.toml:5"]);
    let route = scene
        .yoi(&["features", "--explain", "Bash", "--json"])
        .ends(0)
        .json();
    assert_eq!(route["verdict"], "depends", "{route}");
    let steps = route["steps"].to_string();
    assert!(
        steps.contains("on rm, and where a command cannot be analyzed: ask"),
        "{steps}"
    );
    assert!(
        steps.contains("on git push,pull, and where a command cannot be analyzed: deny"),
        "{steps}"
    );
}

/// A refused program ran when a reserved word, an interpreter, a version or a link stood before or for it.
#[test]
fn a_refused_program_does_not_run_under_another_name() {
    let scene = Scene::new();
    let deny = |program: &str| {
        format!(
            "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"{program}\"\ndecision = \"deny\"\n"
        )
    };
    scene.config(&[deny("touch"), deny("deploy.sh"), deny("deploy.mk")].concat());
    scene
        .write("deploy.sh", "echo > made\n")
        .write("deploy.mk", "all:\n\techo > made\n");
    std::os::unix::fs::symlink("/usr/bin/touch", scene.file("other")).unwrap();
    let commands = [
        "time -- touch made",
        "time -p -- touch made",
        "! touch made",
        "coproc touch made",
        "exec -a x touch made",
        "command -p touch made",
        "builtin command touch made",
        "bash deploy.sh",
        "sh ./deploy.sh",
        "env bash deploy.sh",
        "timeout 5 bash deploy.sh",
        ". ./deploy.sh",
        "make -f deploy.mk",
        "make --file=deploy.mk",
        "./other made",
        "nice ./other made",
    ];
    let calls: Vec<Value> = commands
        .iter()
        .map(|command| json!({ "name": "Bash", "arguments": { "command": command } }))
        .collect();
    let model = scene.script(
        "answers.jsonl",
        &[json!({ "calls": calls }), json!({ "text": "done" })],
    );
    let done = scene.yoi(&["run", "--json", "-m", &model, "go"]).ends(3);
    assert!(!scene.file("made").exists());
    let verdicts = verdicts(&done);
    assert_eq!(verdicts.len(), commands.len());
    for (command, verdict) in commands.iter().zip(verdicts) {
        assert_eq!(verdict["decision"], "refuse", "{command}: {verdict}");
    }
}
