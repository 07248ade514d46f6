//! Agents by their names: where they are found, what a file of another program means, and a pod that stays as one.

use crate::hosts::Host;
use crate::scene::Scene;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

const OWN: &str = "config/yoi/agents";
const PROJECT: &str = "project/.yoi/agents";
const CLAUDE: &str = "project/.claude/agents";

fn file(scene: &Scene, dir: &str, name: &str, text: &str) {
    let dir = scene.path(dir);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(name), text).unwrap();
}

fn toml(description: &str, keys: &str) -> String {
    format!("description = \"{description}\"\nprompt = \"You are {description}\"\n{keys}")
}

fn markdown(keys: &str, prompt: &str) -> String {
    format!("---\n{keys}\n---\n{prompt}\n")
}

/// What the first request of the pod `p` had.
fn surface(scene: &Scene) -> Value {
    let records = scene.records("p");
    let surface = records.iter().rfind(|record| record["k"] == "surface");
    surface.unwrap()["surface"].clone()
}

fn tools(scene: &Scene) -> Vec<String> {
    let surface = surface(scene);
    let tools = surface["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn listed(scene: &Scene, name: &str, source: &str) -> Value {
    let all = scene.yoi(&["agents", "--json"]).ends(0).json();
    let mut rows = all["agents"].as_array().unwrap().iter();
    let is = |row: &&Value| row["name"] == name && row["source"] == source;
    rows.find(is)
        .unwrap_or_else(|| panic!("{name} of {source}: {all}"))
        .clone()
}

#[test]
fn agents_are_found_by_name_and_the_persons_win() {
    let scene = Scene::new();
    scene
        .yoi(&["agents"])
        .ends(0)
        .prints(&["there are no agents"]);
    file(
        &scene,
        OWN,
        "reviewer.toml",
        &toml("mine", "tools = [\"Read\"]\n"),
    );
    file(&scene, PROJECT, "reviewer.toml", &toml("theirs", ""));
    file(
        &scene,
        PROJECT,
        "planner.md",
        &markdown("description: Plans.", "You plan."),
    );
    file(
        &scene,
        CLAUDE,
        "x.md",
        &markdown("name: tester\ndescription: Tests.", "You test."),
    );
    file(&scene, CLAUDE, "README.md", "# Agents\n");
    let row = listed(&scene, "reviewer", "the user");
    assert_eq!(
        (&row["usable"], &row["description"]),
        (&json!(true), &json!("mine"))
    );
    let row = listed(&scene, "reviewer", "this repository");
    assert_eq!(
        row["why"],
        "the user has an agent reviewer, too, which is used"
    );
    assert_eq!(
        listed(&scene, "tester", "this repository")["description"],
        "Tests."
    );
    let why = &listed(&scene, "README", "this repository")["why"];
    assert_eq!(*why, "it has no description in front matter");
    let model = scene.script("s.jsonl", &[json!({ "text": "done" })]);
    let run = |agent: &str| scene.yoi(&["run", "--pod", "p", "-m", &model, "--agent", agent, "go"]);
    run("reviever")
        .ends(2)
        .says(&["there is no agent `reviever`", "did you mean `reviewer`?"]);
    run("README")
        .ends(78)
        .says(&["the agent README cannot be used", "no description"]);
    assert_eq!(scene.pods(), Vec::<String>::new());
    run("reviewer").ends(0).says(&["agent: reviewer (mine)"]);
    let system = surface(&scene)["system"].as_str().unwrap().to_owned();
    assert!(
        system.contains("You are mine") && !system.contains("theirs"),
        "{system}"
    );
    assert_eq!(tools(&scene), ["Read"]);
}

#[test]
fn an_agent_of_another_program_is_read_and_what_it_lacks_is_told() {
    let scene = Scene::new();
    let keys = "name: helper\ndescription: Helps.\ntools: Read, WebSearch, Bash(git:*), Grep\n\
                disallowedTools: Grep\nmodel: opus\ncolor: red";
    file(
        &scene,
        CLAUDE,
        "helper.md",
        &markdown(keys, "You help {them}."),
    );
    let model = scene.script("s.jsonl", &[json!({ "text": "done" })]);
    let run = ["run", "--pod", "p", "-m", &model, "--agent", "helper", "go"];
    let ignored = "color, model, the tool WebSearch, the tool Bash(git:*)";
    let told = format!("agent helper: ignored: {ignored}");
    scene
        .yoi(&run)
        .ends(0)
        .says(&["agent: helper (Helps.)", &told]);
    assert_eq!(tools(&scene), ["Read"]);
    let system = surface(&scene)["system"].as_str().unwrap().to_owned();
    assert!(system.contains("You help {them}."), "{system}");
    assert_eq!(
        listed(&scene, "helper", "this repository")["ignored"],
        ignored
    );
    scene.sound("p");
}

#[test]
fn an_agent_has_the_skills_that_it_names() {
    let scene = Scene::new();
    for name in ["deploy", "letters"] {
        let text = format!("---\nname: {name}\ndescription: How to {name}.\n---\nBody.\n");
        scene.write(&format!(".yoi/skills/{name}/SKILL.md"), text);
    }
    let model = scene.script("s.jsonl", &[json!({ "text": "done" })]);
    let run = |agent: &str| scene.yoi(&["run", "--pod", "p", "-m", &model, "--agent", agent, "go"]);
    let system = || {
        let system = surface(&scene)["system"].as_str().unwrap().to_owned();
        scene.yoi(&["rm", "--purge", "p"]).ends(0);
        system
    };
    file(
        &scene,
        OWN,
        "a.toml",
        &toml("a", "tools = [\"Read\"]\nskills = [\"deploy\"]\n"),
    );
    run("a").ends(0);
    assert_eq!(tools(&scene), ["Read", "Skill"]);
    let listed = system();
    assert!(
        listed.contains("How to deploy") && !listed.contains("How to letters"),
        "{listed}"
    );
    file(&scene, OWN, "none.toml", &toml("none", "skills = []\n"));
    run("none").ends(0);
    assert!(!tools(&scene).contains(&"Skill".to_owned()));
    assert!(!system().contains("How to"));
    file(
        &scene,
        CLAUDE,
        "b.md",
        &markdown("description: B.\nskills:\n  - letters\n  - gone", "You."),
    );
    run("b").ends(0).says(&["agent b: ignored: the skill gone"]);
    let listed = system();
    assert!(
        listed.contains("How to letters") && !listed.contains("How to deploy"),
        "{listed}"
    );
    file(&scene, OWN, "c.toml", &toml("c", "skills = [\"deplyo\"]\n"));
    run("c")
        .ends(78)
        .says(&["there is no skill `deplyo`", "did you mean `deploy`?"]);
}

#[test]
fn an_agent_of_a_repository_only_narrows() {
    let gate = "[features.\"builtin:write-policy\"]\nenabled = true\nscopes = [\"docs\"]\n";
    for (config, keys, why) in [
        (
            "",
            "with.\"builtin:jobs\" = {}",
            "only an agent file of your own may switch on builtin:jobs",
        ),
        (
            "",
            "model = \"scripted:/x\"",
            "only an agent file of your own may choose the model",
        ),
        (
            gate,
            "without = [\"builtin:write-policy\"]",
            "judges or watches what the model does",
        ),
    ] {
        let scene = Scene::new();
        scene.config(config);
        file(&scene, PROJECT, "a.toml", &toml("a", keys));
        let row = listed(&scene, "a", "this repository");
        assert!(row["why"].as_str().unwrap().contains(why), "{row}");
        scene
            .yoi(&["run", "--agent", "a", "go"])
            .ends(78)
            .says(&[why]);
        scene
            .yoi(&["start", "p", "--agent", "a"])
            .ends(78)
            .says(&[why]);
        assert_eq!(scene.pods(), Vec::<String>::new(), "{keys}");
    }
    // A link in a repository leads to no agent elsewhere.
    let scene = Scene::new();
    file(
        &scene,
        OWN,
        "mine.toml",
        &toml("mine", "with.\"builtin:jobs\" = {}\n"),
    );
    fs::create_dir_all(scene.path(PROJECT)).unwrap();
    let link = scene.path(PROJECT).join("theirs.toml");
    std::os::unix::fs::symlink(scene.path(OWN).join("mine.toml"), link).unwrap();
    assert_eq!(
        listed(&scene, "theirs", "this repository")["why"],
        "it leads out of the project"
    );
    assert_eq!(listed(&scene, "mine", "the user")["usable"], true);
}

#[test]
fn an_agent_of_a_package_counts_once_it_is_granted() {
    let scene = Scene::new();
    let dir = scene.path("config/yoi/plugins/kit");
    fs::create_dir_all(dir.join("agents")).unwrap();
    fs::create_dir_all(dir.join(".claude-plugin")).unwrap();
    fs::write(
        dir.join(".claude-plugin/plugin.json"),
        r#"{"name": "kit", "version": "1.0.0"}"#,
    )
    .unwrap();
    let text = markdown("name: helper\ndescription: Helps.", "You help.");
    fs::write(dir.join("agents/helper.md"), &text).unwrap();
    scene
        .yoi(&["agents"])
        .ends(0)
        .prints(&["plugin kit: not granted"]);
    let run = [
        "run",
        "-m",
        "offline",
        "--agent",
        "kit:helper",
        "list the files",
    ];
    scene
        .yoi(&run)
        .ends(2)
        .says(&["there is no agent `kit:helper`"]);
    scene.yoi(&["grant", "plugin:kit"]).ends(0);
    assert_eq!(listed(&scene, "kit:helper", "plugin kit")["usable"], true);
    scene
        .yoi(&run)
        .ends(0)
        .says(&["agent: kit:helper (Helps.)"]);
    fs::write(dir.join("agents/helper.md"), format!("{text}More.\n")).unwrap();
    scene
        .yoi(&run)
        .ends(2)
        .says(&["there is no agent `kit:helper`"]);
}

#[test]
fn a_pod_that_stays_goes_on_as_its_agent() {
    let scene = Scene::new();
    let keys = "tools = [\"Read\"]\n[arguments.what]\ndescription = \"what\"\n";
    let text = "description = \"Checks.\"\nprompt = \"You check {what}.\"\n";
    file(&scene, OWN, "checker.toml", &format!("{text}{keys}"));
    let model = scene.script("s.jsonl", &vec![json!({ "text": "done" }); 9]);
    let start = ["start", "p", "-m", &model, "--json", "--agent", "checker"];
    scene
        .yoi(&start)
        .ends(78)
        .says(&["`what` is missing", "--arg what=VALUE"]);
    let started = scene
        .yoi(&[&start[..], &["--arg", "what=docs"]].concat())
        .ends(0);
    let host = Host::of(&started.says(&["agent: checker (Checks.)"]));
    scene.yoi(&["send", "p", "--wait", "go"]).ends(0);
    assert_eq!(tools(&scene), ["Read"]);
    let system = surface(&scene)["system"].as_str().unwrap().to_owned();
    assert!(system.contains("You check docs."), "{system}");
    scene
        .yoi(&["start", "p", "--agent", "checker", "--arg", "what=x"])
        .ends(75)
        .says(&["--agent can change only"]);
    host.end(Signal::TERM);
    // Without --agent it goes on as it was, with its arguments.
    let host = Host::of(
        &scene
            .yoi(&["start", "p", "--json"])
            .ends(0)
            .says(&["agent: checker"]),
    );
    scene.yoi(&["send", "p", "--wait", "again"]).ends(0);
    assert_eq!(tools(&scene), ["Read"]);
    host.end(Signal::TERM);
    let starts = || {
        scene
            .records("p")
            .iter()
            .filter(|record| record["k"] == "host_started")
            .count()
    };
    let agent = scene
        .records("p")
        .iter()
        .rfind(|record| record["k"] == "host_started")
        .unwrap()["launch"]["agent"]
        .clone();
    assert_eq!(
        (&agent["name"], &agent["arguments"]),
        (&json!("checker"), &json!(["what=docs"]))
    );
    assert_eq!(starts(), 2);
    // Another text of the file may have other tools.
    file(
        &scene,
        OWN,
        "checker.toml",
        &format!("{text}{}", keys.replace("\"Read\"", "\"Read\", \"Bash\"")),
    );
    scene
        .yoi(&["start", "p"])
        .ends(78)
        .says(&["the agent file changed", "--adopt"]);
    fs::remove_file(scene.path(OWN).join("checker.toml")).unwrap();
    scene.yoi(&["start", "p"]).ends(78).says(&[
        "p does not go on as its agent",
        "does not exist",
        "yoi start p --adopt",
    ]);
    assert_eq!(starts(), 2, "nothing of a refused start is in the journal");
    let host = Host::of(&scene.yoi(&["start", "p", "--json", "--adopt"]).ends(0));
    host.end(Signal::TERM);
    scene.sound("p");
}
