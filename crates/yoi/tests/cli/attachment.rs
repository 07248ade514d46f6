//! Features that one start attaches: --with, --without, profiles and agent files. Refusals and gates of the files stand.

use crate::hosts::Host;
use crate::scene::{Done, Scene};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

const GATE: &str = "[features.\"builtin:write-policy\"]\nenabled = true\nscopes = [\"docs\"]\n";

fn write(path: &str) -> Value {
    json!({ "calls": [{ "name": "Write", "arguments": { "path": path, "content": "x" } }] })
}

/// A run of the pod `p` whose model writes `src` and `docs/a`.
fn run(scene: &Scene, flags: &[&str]) -> Done {
    let model = scene.script(
        "s.jsonl",
        &[write("src"), write("docs/a"), json!({ "text": "done" })],
    );
    scene.yoi(&[&["run", "--pod", "p", "-m", &model], flags, &["go"]].concat())
}

/// Writes an agent file and returns its path.
fn agent(scene: &Scene, dir: &str, keys: &str) -> String {
    let path = scene.path(dir).join("checker.toml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(
        &path,
        format!("description = \"Checks.\"\nprompt = \"You check {{what}}.\"\n{keys}"),
    )
    .unwrap();
    path.display().to_string()
}

const ARGUMENT: &str = "[arguments.what]\ndescription = \"what\"\ndefault = \"all\"\n";
const FOREIGN: &str = "project/agents";
const OWN: &str = "config/yoi/agents";

fn report_of(scene: &Scene, id: &str) -> Value {
    let records = scene.records("p");
    let report = records
        .iter()
        .rfind(|record| record["k"] == "features")
        .unwrap();
    let features = report["report"]["features"].as_array().unwrap();
    features
        .iter()
        .find(|feature| feature["feature_id"] == id)
        .unwrap()
        .clone()
}

#[test]
fn a_run_attaches_a_guard_with_settings_and_the_report_says_who() {
    let scene = Scene::new();
    run(
        &scene,
        &["--with", "builtin:write-policy={\"scopes\": [\"docs\"]}"],
    )
    .ends(0);
    assert!(!scene.file("src").exists() && scene.file("docs/a").exists());
    let report = report_of(&scene, "builtin:write-policy");
    assert_eq!(
        (&report["attached_by"], &report["outcome"]),
        (&json!("--with"), &json!("installed"))
    );
    assert_eq!(report_of(&scene, "builtin:files")["attached_by"], "default");
    scene.yoi(&["rm", "p", "--purge", "-y"]).ends(0);
    scene.config(GATE);
    run(&scene, &[]).ends(0);
    assert_eq!(
        report_of(&scene, "builtin:write-policy")["attached_by"],
        "$XDG_CONFIG_HOME/yoi/config.toml:2"
    );
}

#[test]
fn what_the_files_refuse_or_guard_stands() {
    let off = "[features.\"builtin:loop-detect\"]\nenabled = false\n";
    let required = "[features.\"builtin:shell\"]\nrequired = true\n";
    let profile = format!("{GATE}[profiles.free.features.\"builtin:write-policy\"]\n");
    let cases: [(&str, &[&str], &str); 12] = [
        (
            off,
            &["--with", "builtin:loop-detect"],
            "builtin:loop-detect is switched off in $XDG_CONFIG_HOME",
        ),
        (
            GATE,
            &["--with", "builtin:write-policy={\"scopes\":[\".\"]}"],
            "is on already, with the settings of",
        ),
        (
            GATE,
            &["--without", "builtin:write-policy"],
            "judges or watches what the model does",
        ),
        (
            "",
            &["--without", "builtin:task"],
            "judges or watches what the model does",
        ),
        (required, &["--without", "builtin:shell"], "is required by"),
        (
            "",
            &["--with", "builtin:lop-detect"],
            "there is no feature `builtin:lop-detect`",
        ),
        (
            "",
            &["--without", "builtin:x"],
            "there is no feature `builtin:x`",
        ),
        (
            "",
            &["--with", "builtin:loop-detect={\"window\":1}"],
            "`window` must be 2 to 20, not 1",
        ),
        (
            "",
            &["--with", "builtin:loop-detect={\"wnidow\":1}"],
            "unknown key `wnidow`",
        ),
        ("", &["--profile", "x"], "there is no profile `x`"),
        (
            &format!("{profile}enabled = false\n"),
            &["--profile", "free"],
            "judges or watches",
        ),
        (
            &format!("{profile}scopes = [\".\"]\n"),
            &["--profile", "free"],
            "is on already, with the settings of",
        ),
    ];
    for (config, flags, says) in cases {
        let scene = Scene::new();
        scene.config(config);
        run(&scene, flags).ends(78).says(&[says]);
        assert_eq!(
            (scene.pods().len(), scene.file("src").exists()),
            (0, false),
            "{flags:?}"
        );
    }
}

#[test]
fn a_run_switches_off_what_it_attached_and_what_only_offers_tools() {
    let scene = Scene::new();
    scene.config("[profiles.careful.features.\"builtin:write-policy\"]\nscopes = [\"docs\"]\n");
    run(
        &scene,
        &[
            "--profile",
            "careful",
            "--without",
            "builtin:write-policy",
            "--without",
            "builtin:shell",
        ],
    )
    .ends(0);
    assert!(scene.file("src").exists());
    assert_eq!(
        report_of(&scene, "builtin:shell")["disabled_by"],
        "--without"
    );
    scene.yoi(&["rm", "p", "--purge", "-y"]).ends(0);
    fs::remove_file(scene.file("src")).unwrap();
    run(&scene, &["--profile", "careful"]).ends(0);
    assert!(!scene.file("src").exists());
    let by = report_of(&scene, "builtin:write-policy")["attached_by"].clone();
    assert_eq!(by, "profile careful ($XDG_CONFIG_HOME/yoi/config.toml:1)");
}

#[test]
fn a_feature_of_the_command_line_that_is_not_installed_is_named() {
    let scene = Scene::new();
    let said = "warning: builtin:work-item is not installed: ";
    run(&scene, &["--with", "builtin:work-item"])
        .ends(0)
        .says(&[said, "create that directory"]);
    scene.write("work-items/.keep", "");
    let again = scene
        .yoi(&["run", "--with", "builtin:work-item", "list the files"])
        .ends(0);
    assert!(!again.err.contains(said), "{}", again.err);
}

#[test]
fn a_pod_that_stays_starts_again_with_what_was_attached() {
    let scene = Scene::new();
    let with = "builtin:loop-detect={\"window\": 4}";
    Host::start(&scene, &["--with", with, "--without", "builtin:shell"]).end(Signal::TERM);
    let again = scene.yoi(&["start", "p"]).ends(0);
    again.says(&["--with 'builtin:loop-detect={\"window\": 4}', --without builtin:shell"]);
    scene.yoi(&["stop", "p"]).ends(0);
    assert_eq!(
        report_of(&scene, "builtin:loop-detect")["settings"]["window"],
        4
    );
    assert_eq!(
        report_of(&scene, "builtin:loop-detect")["attached_by"],
        "--with (the pod's last start)"
    );
    // A newer word about the same feature replaces the older one.
    scene
        .yoi(&["start", "p", "-q", "--without", "builtin:loop-detect"])
        .ends(78);
    scene
        .yoi(&[
            "start",
            "p",
            "-q",
            "--without",
            "builtin:loop-detect",
            "--adopt",
        ])
        .ends(0);
    scene.yoi(&["stop", "p"]).ends(0);
    assert_eq!(
        report_of(&scene, "builtin:loop-detect")["outcome"],
        "disabled"
    );
}

#[test]
fn a_profile_of_a_project_is_pending_until_it_is_granted() {
    let scene = Scene::new();
    scene.write(
        "yoi.toml",
        "[profiles.x.features.\"builtin:jobs\"]\nmax_jobs = 1\n",
    );
    run(&scene, &["--profile", "x"])
        .ends(78)
        .says(&["there is no profile `x`"]);
    scene
        .yoi(&["grant", "--all"])
        .ends(0)
        .prints(&["profiles.x"]);
    run(&scene, &["--profile", "x"]).ends(0);
    assert_eq!(report_of(&scene, "builtin:jobs")["outcome"], "installed");
}

#[test]
fn an_agent_reaches_no_tool_outside_its_list() {
    let scene = Scene::new();
    let file = agent(&scene, FOREIGN, &format!("tools = [\"Read\"]\n{ARGUMENT}"));
    run(&scene, &["--agent", &file])
        .ends(0)
        .says(&["agent: checker (Checks.)"]);
    assert!(!scene.file("src").exists() && !scene.file("docs/a").exists());
    let records = scene.records("p");
    let surface = records
        .iter()
        .find(|record| record["k"] == "surface")
        .unwrap();
    let tools: Vec<&str> = surface["surface"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["Read"]);
    let system = surface["surface"]["system"].as_str().unwrap();
    assert!(
        system.contains("You check all.") && !system.contains("Use Bash"),
        "{system}"
    );
    assert_eq!(
        report_of(&scene, "builtin:shell")["disabled_by"],
        "agent checker"
    );
    let denied = report_of(&scene, "builtin:files")["denied"].to_string();
    assert!(
        denied.contains("it is not among the tools of agent checker"),
        "{denied}"
    );
    scene.sound("p");
}

#[test]
fn the_pod_of_an_agent_goes_on_as_this_agent_only() {
    let scene = Scene::new();
    let file = agent(&scene, FOREIGN, &format!("tools = [\"Read\"]\n{ARGUMENT}"));
    let whole = scene
        .file(&file)
        .canonicalize()
        .unwrap()
        .display()
        .to_string();
    run(&scene, &["--agent", &file]).ends(0);
    let model = scene.script("again.jsonl", &vec![json!({ "text": "done" }); 9]);
    let again = |more: &[&str]| {
        let line = [&["run", "--pod", "p", "-m", &model], more, &["go on"]].concat();
        scene.yoi(&line)
    };
    let starts = || {
        scene
            .records("p")
            .iter()
            .filter(|record| record["k"] == "host_started")
            .count()
    };
    again(&[]).ends(78).says(&[
        "p does not go on: it is the pod of an agent",
        &format!("--agent '{whole}'"),
    ]);
    scene
        .yoi(&["start", "p"])
        .ends(78)
        .says(&["it is the pod of an agent"]);
    assert_eq!(starts(), 1, "nothing of a refused start is in the journal");
    again(&["--agent", &file]).ends(0);
    let tools = |record: &Value| record["surface"]["tools"].as_array().map(Vec::len);
    assert!(
        scene
            .records("p")
            .iter()
            .filter_map(tools)
            .all(|tools| tools == 1)
    );
    // Another text of the file may have other tools.
    let other = agent(
        &scene,
        FOREIGN,
        &format!("tools = [\"Read\", \"Bash\"]\n{ARGUMENT}"),
    );
    again(&["--agent", &other])
        .ends(78)
        .says(&["the agent file changed", "--adopt"]);
    again(&["--agent", &other, "--adopt"]).ends(0);
    again(&["--adopt"]).ends(0);
    again(&[]).ends(0);
    scene.sound("p");
}

#[test]
fn an_agent_file_adds_a_guard_and_lowers_limits_wherever_it_is() {
    let scene = Scene::new();
    let keys = format!(
        "limits = {{ max_steps = 2 }}\nwith.\"builtin:write-policy\" = {{ scopes = [\"docs\"] }}\n{ARGUMENT}"
    );
    let file = agent(&scene, FOREIGN, &keys);
    run(&scene, &["--agent", &file, "--arg", "what=docs"]).ends(4);
    assert!(!scene.file("src").exists() && scene.file("docs/a").exists());
    let records = scene.records("p");
    let surface = records
        .iter()
        .find(|record| record["k"] == "surface")
        .unwrap();
    assert!(
        surface["surface"]["system"]
            .as_str()
            .unwrap()
            .contains("You check docs.")
    );
    assert_eq!(
        report_of(&scene, "builtin:write-policy")["attached_by"],
        "agent checker"
    );
}

#[test]
fn an_agent_file_loosens_nothing_and_runs_nothing() {
    let scripted = scene_script();
    let commands = "with.\"builtin:notify-person\" = { command = [\"/bin/touch\", \"made\"] }";
    let validates = "with.\"builtin:output-validate\" = { command = [\"/bin/touch\"] }";
    let cases: [(&str, &str, &str); 11] = [
        (
            GATE,
            "without = [\"builtin:write-policy\"]",
            "judges or watches what the model does",
        ),
        (
            GATE,
            "with.\"builtin:write-policy\" = { scopes = [\".\"] }",
            "is on already, with the settings of",
        ),
        (
            "",
            &format!("model = \"{scripted}\""),
            "only an agent file of your own may choose the model",
        ),
        (
            "",
            "model = \"record:offline\"",
            "only an agent file of your own may choose the model",
        ),
        (
            "",
            commands,
            "only an agent file of your own may switch on builtin:notify-person",
        ),
        (
            "",
            validates,
            "only an agent file of your own may switch on builtin:output-validate",
        ),
        (
            "",
            "with.\"builtin:jobs\" = {}",
            "only an agent file of your own may switch on builtin:jobs",
        ),
        ("", "tools = [\"Raed\"]", "did you mean `Read`?"),
        ("", "grant = { process = [\"*\"] }", "unknown key `grant`"),
        (
            "",
            "with.\"builtin:loop-detect\" = { grant = {} }",
            "unknown",
        ),
        (
            "",
            "with.\"builtin:loop-detect\" = { window = 1 }",
            "`window` must be 2 to 20",
        ),
    ];
    for (config, keys, says) in cases {
        let scene = Scene::new();
        scene.config(config);
        let file = agent(&scene, FOREIGN, &format!("{keys}\n{ARGUMENT}"));
        scene
            .yoi(&["run", "--agent", &file, "list the files"])
            .ends(78)
            .says(&[says]);
        assert_eq!(scene.pods(), Vec::<String>::new(), "{keys}");
    }
}

/// The parser's words about a key or `-` did not say what is wanted.
#[test]
fn an_agent_file_of_another_form_is_told_what_form_is_wanted() {
    for (name, text) in [
        ("c.yaml", "description: Reviews.\nprompt: You review.\n"),
        ("d", "---\nname: reviewer\n---\n"),
    ] {
        let scene = Scene::new();
        scene.write(name, text);
        let told = [
            "an agent file must be TOML or Markdown",
            "description = \"TEXT\" and prompt = ",
        ];
        scene
            .yoi(&["run", "--agent", name, "x"])
            .ends(78)
            .says(&told);
    }
    let scene = Scene::new();
    for (name, text) in [
        ("a.md", "---\nname: reviewer\n---\nYou review.\n"),
        ("b.MD", "# Reviewer\n\nYou review.\n"),
    ] {
        scene.write(name, text);
        let told = ["no description in front matter"];
        scene
            .yoi(&["run", "--agent", name, "x"])
            .ends(78)
            .says(&told);
    }
    scene.write("e.toml", "description = \"x\"\nprompt = 1\n");
    assert!(
        !scene
            .yoi(&["run", "--agent", "e.toml", "x"])
            .ends(78)
            .err
            .contains("must be TOML")
    );
}

fn scene_script() -> String {
    "scripted:/dev/null".to_owned()
}

#[test]
fn an_agent_file_of_ones_own_may_switch_on_what_a_link_to_another_may_not() {
    let scene = Scene::new();
    let keys = format!("with.\"builtin:jobs\" = {{ max_jobs = 1 }}\n{ARGUMENT}");
    let own = agent(&scene, OWN, &keys);
    let foreign = agent(&scene, FOREIGN, &keys);
    run(&scene, &["--agent", &own]).ends(0);
    assert_eq!(report_of(&scene, "builtin:jobs")["outcome"], "installed");
    let link = scene.path(OWN).join("link.toml");
    std::os::unix::fs::symlink(&foreign, &link).unwrap();
    let refused = scene.yoi(&["run", "--agent", link.to_str().unwrap(), "list the files"]);
    refused
        .ends(78)
        .says(&["only an agent file of your own", "--with builtin:jobs"]);
    // What the person switches on is on.
    let bare = agent(
        &scene,
        FOREIGN,
        &format!("with.\"builtin:jobs\" = {{}}\n{ARGUMENT}"),
    );
    scene
        .yoi(&[
            "run",
            "--agent",
            &bare,
            "--with",
            "builtin:jobs",
            "list the files",
        ])
        .ends(0);
    scene.yoi(&["run", "--pod", "q", "list the files"]).ends(0);
    scene
        .yoi(&["run", "--pod", "q", "--agent", &own, "go"])
        .ends(2)
        .says(&["q exists, and is not of this agent"]);
    scene
        .yoi(&["run", "--agent", "none.toml", "go"])
        .ends(2)
        .says(&["does not exist"]);
}

// The prompt was read first, and its absence was all that was said.
#[test]
fn a_missing_agent_file_is_named_before_a_missing_prompt() {
    let scene = Scene::new();
    scene
        .yoi(&["run", "--agent", "none.toml"])
        .ends(2)
        .says(&["--agent: ", "none.toml does not exist"]);
}

#[test]
fn a_plan_shows_what_a_run_with_these_options_gets() {
    let scene = Scene::new();
    scene.config("[profiles.careful.features.\"builtin:write-policy\"]\nscopes = [\"docs\"]\n");
    let file = agent(&scene, FOREIGN, &format!("tools = [\"Read\"]\n{ARGUMENT}"));
    let cases: [(&[&str], &str, Value, &str); 6] = [
        (&[], "builtin:loop-detect", json!("disabled"), "default"),
        (
            &["--with", "builtin:loop-detect={\"window\": 4}"],
            "builtin:loop-detect",
            json!("installed"),
            "--with",
        ),
        (
            &["--without", "builtin:shell"],
            "builtin:shell",
            json!("disabled"),
            "--without",
        ),
        (
            &["--profile", "careful"],
            "builtin:write-policy",
            json!("installed"),
            "profile careful ($XDG_CONFIG_HOME/yoi/config.toml:1)",
        ),
        (
            &["--agent", &file],
            "builtin:shell",
            json!("disabled"),
            "agent checker",
        ),
        (
            &[
                "--agent",
                &file,
                "--arg",
                "what=docs",
                "--with",
                "builtin:retry",
            ],
            "builtin:retry",
            json!("installed"),
            "--with",
        ),
    ];
    for (flags, id, outcome, by) in cases {
        let shown = scene
            .yoi(&[&["features", "--plan", "--json"], flags].concat())
            .ends(0);
        let plan: Value = serde_json::from_str(&shown.out).unwrap();
        let planned = plan["features"]
            .as_array()
            .unwrap()
            .iter()
            .find(|planned| planned["feature_id"] == id)
            .unwrap();
        assert_eq!(planned["outcome"], outcome, "{flags:?}");
        let source = if outcome == "disabled" {
            "disabled_by"
        } else {
            "attached_by"
        };
        assert_eq!(planned[source], by, "{flags:?}");
    }
    scene
        .yoi(&["features", "--with", "builtin:x"])
        .ends(78)
        .says(&["there is no feature `builtin:x`"]);
    scene
        .yoi(&["features", "--agent", "none.toml"])
        .ends(2)
        .says(&["--agent: ", "none.toml does not exist"]);
    for flags in [
        ["features", "p", "--profile", "x"].as_slice(),
        &["features", "--unused", "--without", "builtin:x"],
    ] {
        scene
            .yoi(flags)
            .ends(2)
            .says(&["apply to the plan for the next start"]);
    }
}
