//! What git would run for the person after a run: put back, told on standard error, and in the journal.

use crate::scene::Scene;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// A repository, and a model that runs one command.
fn scene(command: &str) -> (Scene, String) {
    let scene = Scene::new();
    fs::write(
        scene.path("home/.gitconfig"),
        "[user]\n\tname = a\n\temail = a@x\n",
    )
    .unwrap();
    git(&scene, &["init", "-q", "."]);
    scene.write("yoi.toml", "").write(".env", "TOKEN=x\n");
    let call = json!({ "calls": [{ "name": "Bash", "arguments": { "command": command } }] });
    let model = scene.script("s.jsonl", &[call, json!({ "text": "done" })]);
    (scene, model)
}

/// The person's own git.
pub(crate) fn git(scene: &Scene, words: &[&str]) {
    let mut git = Command::new("git");
    git.args(words)
        .current_dir(scene.file(""))
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap());
    assert!(
        git.env("HOME", scene.path("home"))
            .status()
            .unwrap()
            .success(),
        "{words:?}"
    );
}

const PLANT: &str = "printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
                     git config core.fsmonitor 'touch ran;:'; git config user.name somebody; git config \
                     'alias.\u{1b}[2J.x' '!x'; rm .env";

const RUN: &[&str] = &[
    "run",
    "--sandbox",
    "off",
    "--allow",
    "Bash",
    "--pod",
    "p",
    "-m",
];

/// Also where no progress is wanted, and where standard output is for a program.
#[test]
fn the_person_is_told_and_nothing_planted_runs() {
    for quiet in [&[][..], &["--quiet"], &["--json"]] {
        let (scene, model) = scene(PLANT);
        let args: Vec<&str> = RUN
            .iter()
            .copied()
            .chain([model.as_str()])
            .chain(quiet.iter().copied())
            .chain(["go"])
            .collect();
        let done = scene.yoi(&args).ends(0).says(&[
            "warning: removed .git/hooks/pre-commit, which a command created",
            "start with --allow 'Write .git/hooks/**'",
            "core.fsmonitor in .git/config, which a command changed",
            "start with --allow 'Write .git/config'",
            "warning: a command removed .env; a copy is in ",
        ]);
        assert!(!done.err.contains('\u{1b}'), "{}", done.err);
        assert!(scene.read(".git/config").contains("somebody"));
        git(&scene, &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&scene, &["status", "-s"]);
        assert!(!scene.file("ran").exists());
        // What the command wrote is kept, where no run of a project comes to.
        let kept = fs::read_dir(scene.path("state/yoi/quarantine"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        assert!(
            fs::read_to_string(kept.join(".git/hooks/pre-commit"))
                .unwrap()
                .contains("touch ran")
        );
        assert_eq!(fs::read_to_string(kept.join(".env")).unwrap(), "TOKEN=x\n");
        // The journal has it with the result, for people and programs; the model was told the same.
        let log = scene.yoi(&["log", "p", "--json"]).ends(0).lines();
        let finished = log
            .iter()
            .find(|record| record["k"] == "tool_finished")
            .unwrap();
        let warnings: Vec<&str> = finished["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w.as_str().unwrap())
            .collect();
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings.iter().all(|warning| {
            finished["outcome"]["content"]
                .as_str()
                .unwrap()
                .contains(warning)
        }));
        scene
            .yoi(&["log", "p"])
            .ends(0)
            .prints(&["warning: removed .git/hooks/pre-commit"]);
        // It is no change of the pod's.
        scene.yoi(&["undo", "p"]).prints(&[]);
        assert!(!scene.file(".git/hooks/pre-commit").exists());
    }
}

#[test]
fn a_rule_lets_it_stay_and_says_so() {
    let (scene, model) = scene(PLANT);
    let rules = [
        "--allow",
        "Write .git/hooks/**",
        "--allow",
        "Write .git/config",
        "go",
    ];
    let args: Vec<&str> = RUN
        .iter()
        .copied()
        .chain([model.as_str()])
        .chain(rules)
        .collect();
    let done = scene.yoi(&args).ends(0);
    done.says(&[
        "a command changed .git/hooks/pre-commit: allowed by a rule",
        "in .git/config: allowed by a rule",
    ]);
    assert!(
        scene.file(".git/hooks/pre-commit").exists()
            && scene.read(".git/config").contains("touch ran")
    );
}

/// A rule for commands, or the default for files of the project, lets nothing stay.
#[test]
fn the_sandbox_does_not_stand_in_the_way() {
    let (scene, model) =
        scene("printf x > .git/hooks/pre-commit; git config core.pager x; git checkout -qb next");
    let done = scene.yoi(&["run", "-m", &model, "--pod", "p", "go"]);
    if done.err.contains("commands cannot run here") {
        println!("no confinement on this kernel");
        return;
    }
    done.ends(0).says(&[
        "warning: removed .git/hooks/pre-commit",
        "warning: restored core.pager in .git/config",
    ]);
    assert!(scene.read(".git/HEAD").contains("next"));
    let log: Vec<Value> = scene.yoi(&["log", "p", "--json"]).lines();
    assert!(log.iter().any(|record| {
        record["warnings"]
            .as_array()
            .is_some_and(|warnings| warnings.len() == 2)
    }));
}

/// As `.git` of the project: what is added for writing can be written by commands, too. What a person put there stays.
#[test]
fn an_added_directory_is_watched_as_the_project_is() {
    let plant = "cd ../worked-in && printf 'touch ran' > .git/hooks/post-commit && chmod +x .git/hooks/post-commit && \
                 printf evil > .git/hooks/mine && git config core.pager evil && git config user.name somebody";
    let (scene, model) = scene(plant);
    let dir = scene.path("worked-in");
    fs::create_dir(&dir).unwrap();
    git(&scene, &["init", "-q", dir.to_str().unwrap()]);
    fs::write(dir.join(".git/hooks/mine"), "the person's").unwrap();
    let added = ["--add-write-dir", dir.to_str().unwrap(), "go"];
    let args: Vec<&str> = RUN
        .iter()
        .copied()
        .chain([model.as_str()])
        .chain(added)
        .collect();
    let done = scene.yoi(&args).ends(0);
    done.says(&[
        "warning: removed ",
        "post-commit, which a command created",
        "warning: restored ",
        "core.pager in ",
    ]);
    assert!(!dir.join(".git/hooks/post-commit").exists());
    assert_eq!(
        fs::read_to_string(dir.join(".git/hooks/mine")).unwrap(),
        "the person's"
    );
    let config = fs::read_to_string(dir.join(".git/config")).unwrap();
    assert!(
        config.contains("somebody") && !config.contains("evil"),
        "{config}"
    );
}

/// For commits where git has no configuration.
const IDENTITY: &str = "-c user.name=t -c user.email=t@e.org";

/// claude-code#33657, ai-jail#101: in a worktree, git said "not a git repository". Its repository is used as `.git` is: what
/// git would run for the person is put back there, too.
#[test]
fn a_repository_that_is_elsewhere_is_used_and_guarded() {
    let plant = "cd \"$(git rev-parse --git-common-dir)\" && git config core.fsmonitor 'touch ran;:' && git config \
                 core.hooksPath there && printf '#!/bin/sh\\ntouch ran\\n' > hooks/pre-commit && chmod +x hooks/pre-commit";
    for (case, repository) in [
        ("worktree", "other/.git"),
        ("bare", "bare"),
        ("separate", "apart"),
        ("shared", "project/.git"),
        ("submodule", ".git/modules/project"),
    ] {
        let command = format!(
            "git log --oneline && echo b > b && git add b && git {IDENTITY} commit -qm two && {plant}"
        );
        let (scene, model) = scene(&command);
        fs::remove_dir_all(scene.file("")).unwrap();
        fs::create_dir(scene.path("other")).unwrap();
        let git = |below: &str, words: &str| {
            let mut git = Command::new("git");
            git.args(IDENTITY.split(' '))
                .args(["-c", "protocol.file.allow=always"])
                .args(words.split(' '));
            git.current_dir(scene.path(below));
            assert!(
                git.env("HOME", scene.path("home"))
                    .status()
                    .unwrap()
                    .success(),
                "{case}: {words}"
            );
        };
        git("other", "init -q -b main");
        fs::write(scene.path("other/first"), "").unwrap();
        git("other", "add first");
        git("other", "commit -qm 1");
        match case {
            "worktree" => git("other", "worktree add -q ../project -b f"),
            "bare" => {
                git("other", "clone -q --bare . ../bare");
                git("bare", "worktree add -q ../project -b f");
            }
            "separate" => git("other", "clone -q --separate-git-dir=../apart . ../project"),
            "shared" => git("other", "clone -q --shared . ../project"),
            _submodule => {
                git("", "init -q .");
                git("", "submodule add -q ./other project");
            }
        }
        if !["worktree", "bare"].contains(&case) {
            git("project", "checkout -q -b f");
        }
        let done = scene
            .yoi(&["run", "--pod", "p", "-m", &model, "go"])
            .ends(0);
        let removed = format!("{repository}/hooks/pre-commit");
        let told = removed.trim_start_matches("project/");
        done.says(&["exit 0", told, "core.fsmonitor", "core.hookspath"]);
        assert!(!scene.path(&removed).exists(), "{case}");
        let log = scene.yoi(&["log", "p", "--json"]).ends(0).out;
        assert!(log.contains("Git branch: f"), "{case}: {log}");
        git("project", "commit -qm three --allow-empty");
        assert!(!scene.file("ran").exists(), "{case}");
        // What is beside it stays out of reach.
        scene.write("a", "");
        let denied = json!({ "calls": [{ "name": "Bash", "arguments": { "command": "touch ../other/.git/objects/x; touch ../other/x" } }] });
        let model = scene.script("t.jsonl", &[denied, json!({ "text": "done" })]);
        scene
            .yoi(&["run", "--pod", "q", "-m", &model, "go"])
            .says(&["exit 1"]);
        assert!(
            case != "shared" || !scene.path("other/.git/objects/x").exists(),
            "objects are only read"
        );
    }
}
