//! Skills: found in the places of the project and the person, named to the model by whose they are, read by calls.

use crate::hosts::Host;
use crate::scene::Scene;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

fn skill(scene: &Scene, place: &str, name: &str, text: &str) {
    let dir = scene.path(place).join(name);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("SKILL.md"), text).unwrap();
}

fn front(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\nThe body of {name}.\n")
}

/// Runs once with these calls of Skill; the system prompt, and the result of each call.
fn run(scene: &Scene, calls: &[Value]) -> (String, Vec<String>) {
    let call =
        |arguments: &Value| json!({ "calls": [{ "name": "Skill", "arguments": arguments }] });
    let answers: Vec<Value> = calls
        .iter()
        .map(call)
        .chain([json!({ "text": "done" })])
        .collect();
    let model = scene.script("script.jsonl", &answers);
    scene
        .yoi(&["run", "--sandbox", "off", "--pod", "p", "-m", &model, "go"])
        .ends(0);
    let records = scene.records("p");
    scene.yoi(&["verify", "p"]).ends(0);
    let of = |kind: &str| {
        records
            .iter()
            .filter(|record| record["k"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    let system = of("surface")[0]["surface"]["system"]
        .as_str()
        .unwrap()
        .to_owned();
    let results = of("tool_finished")
        .iter()
        .map(ToString::to_string)
        .collect();
    scene.yoi(&["rm", "--purge", "p"]).ends(0);
    (system, results)
}

#[test]
fn a_project_without_skills_has_no_tool_and_no_list() {
    let scene = Scene::new();
    let (system, _) = run(&scene, &[]);
    assert!(!system.contains("Skill"), "{system}");
    fs::create_dir_all(scene.file(".yoi/skills/empty")).unwrap();
    assert!(!run(&scene, &[]).0.contains("Skill"));
}

#[test]
fn skills_are_listed_by_whose_they_are_and_read_by_calls() {
    let scene = Scene::new();
    skill(
        &scene,
        "project/.yoi/skills",
        "deploy",
        &front("deploy", "How to deploy: with care."),
    );
    skill(
        &scene,
        "project/.claude/skills",
        "deploy",
        &front("deploy", "Another one."),
    );
    skill(
        &scene,
        "project/.agents/skills",
        "bad",
        "---\nname: bad\n---\n",
    );
    skill(
        &scene,
        "config/yoi/skills",
        "letters",
        &front("letters", "How I write letters."),
    );
    fs::write(scene.file(".yoi/skills/deploy/steps.md"), "one step\n").unwrap();
    symlink(
        scene.path("config/yoi/skills/letters/SKILL.md"),
        scene.file(".yoi/skills/deploy/out.md"),
    )
    .unwrap();
    let calls = [
        json!({ "name": "deploy" }),
        json!({ "name": "deploy", "file": "steps.md" }),
        json!({ "name": "letters" }),
        json!({ "name": "deploy", "file": "out.md" }),
        json!({ "name": "deploy", "file": "../../../a.txt" }),
        json!({ "name": "gone" }),
    ];
    let (system, results) = run(&scene, &calls);
    let whose = "Of this repository, in its words, not the user's:\n- deploy: How to deploy: with care.\nOf the user:\n- letters: How I write letters.";
    assert!(system.contains(whose), "{system}");
    for hidden in ["The body", "Another one", "bad"] {
        assert!(!system.contains(hidden), "{system}");
    }
    for (result, words) in results.iter().zip([
        "The body of deploy.",
        "one step",
        "The body of letters.",
        "outside the project",
        "outside",
        "there are: letters, deploy",
    ]) {
        assert!(result.contains(words), "{words}: {result}");
    }
    assert!(
        results[0].contains("steps.md") && !results[0].contains("out.md"),
        "{}",
        results[0]
    );
    assert_eq!(results.len(), calls.len());
    // What is wrong with one is told, and costs no other.
    for command in ["features", "doctor"] {
        let told = scene.yoi(&[command]).out;
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("it has no description"), "{command}: {told}");
    }
}

#[test]
fn links_of_a_project_lead_to_skills_inside_of_it_alone() {
    let scene = Scene::new();
    skill(
        &scene,
        "project/.agents/skills",
        "real",
        &front("real", "Inside."),
    );
    skill(&scene, "elsewhere", "far", &front("far", "Outside."));
    fs::create_dir_all(scene.file(".claude/skills")).unwrap();
    symlink(
        scene.file(".agents/skills/real"),
        scene.file(".claude/skills/real"),
    )
    .unwrap();
    symlink(
        scene.path("elsewhere/far"),
        scene.file(".claude/skills/far"),
    )
    .unwrap();
    let (system, results) = run(&scene, &[json!({ "name": "real" })]);
    assert!(
        system.contains("- real: Inside.") && !system.contains("Outside"),
        "{system}"
    );
    assert!(results[0].contains("The body of real."), "{}", results[0]);
    let told = scene.yoi(&["features", "--json"]).out;
    assert!(
        told.contains("it leads out of the project") && !told.contains("too, which is used"),
        "{told}"
    );
}

#[test]
fn the_list_is_bounded_and_names_what_it_leaves_out() {
    let scene = Scene::new();
    for number in 0..40 {
        let name = format!("skill-{number:02}");
        skill(
            &scene,
            "project/.yoi/skills",
            &name,
            &front(&name, &"word ".repeat(200)),
        );
    }
    let (system, results) = run(&scene, &[json!({ "name": "skill-39" })]);
    let list = &system[system.find("Skills are").unwrap()..];
    let list = list.split("\n\n").next().unwrap();
    assert!(list.len() <= 4096, "{}", list.len());
    assert!(
        list.contains("- skill-00: word") && list.contains(" more: skill-"),
        "{list}"
    );
    assert!(
        results[0].contains("The body of skill-39."),
        "{}",
        results[0]
    );
}

#[test]
fn a_command_becomes_the_input_that_a_person_typed() {
    let scene = Scene::new();
    scene
        .write(
            ".claude/commands/review.md",
            "---\ndescription: Review a file\nargument-hint: [file]\n---\nReview $1 with care.\n",
        )
        .write(".yoi/commands/undo.md", "Not this one.")
        .write(".yoi/commands/team/plan.md", "Plan it.");
    let model = scene.script("script.jsonl", &[json!({ "text": "done" })]);
    let sent = |text: &str| {
        scene
            .yoi(&["run", "--sandbox", "off", "--pod", "p", "-m", &model, text])
            .ends(0);
        let records = scene.records("p");
        scene.yoi(&["verify", "p"]).ends(0);
        let log = scene.yoi(&["log", "p"]).ends(0).out;
        scene.yoi(&["rm", "--purge", "p"]).ends(0);
        let input = records
            .into_iter()
            .find(|record| record["k"] == "input_queued")
            .unwrap();
        (input, log)
    };
    let (input, log) = sent("/review src/a.rs");
    assert_eq!(input["text"], "Review src/a.rs with care.");
    let command = &input["command"];
    assert_eq!(command["name"], "review");
    assert_eq!(command["typed"], "/review src/a.rs");
    assert_eq!(command["source"], "this repository");
    assert_eq!(command["digest"].as_str().map(str::len), Some(64));
    assert!(
        log.contains("/review src/a.rs  (a command of this repository)"),
        "{log}"
    );
    let (input, _) = sent("/team:plan all of it");
    assert_eq!(input["text"], "Plan it.\n\nall of it");
    // What has not the form of a command, and what is not typed at the beginning, stay as they are.
    for text in ["/etc/hosts is wrong", " /review a", "see /review"] {
        let (input, _) = sent(text);
        assert_eq!((&input["text"], input.get("command")), (&json!(text), None));
    }
    // It was sent to the model.
    let host = Host::start(&scene, &["-m", &model]);
    for (text, why) in [
        (
            "/reviw a.rs",
            "no command `/reviw`; did you mean `/review`?",
        ),
        ("/undo", "`/undo` is a command of the screen"),
    ] {
        for command in [
            &["run", "--pod", "new", "-m", &model, text][..],
            &["run", "-m", &model, text],
            &["run", "--pod", "p", text],
            &["send", "p", text],
        ] {
            let literal = format!("put a space in front of it: \" {text}\"");
            scene.yoi(command).ends(2).says(&[why, &literal]);
        }
    }
    let names = scene.yoi(&["ls", "--json"]).ends(0).json();
    assert_eq!(names.as_array().map(Vec::len), Some(1), "{names}");
    host.end(Signal::TERM);
    let inputs = scene.records("p");
    assert!(inputs.iter().all(|record| record["k"] != "input_queued"));
    let told = scene.yoi(&["features", "--json"]).out;
    assert!(
        told.contains("/undo is a command of yoi, which is used"),
        "{told}"
    );
    assert!(told.contains("\"argument_hint\""), "{told}");
}

#[test]
fn a_repository_replaces_and_pushes_out_nothing_of_the_person() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("config/yoi/commands")).unwrap();
    fs::write(scene.path("config/yoi/commands/review.md"), "Mine: $1.").unwrap();
    skill(
        &scene,
        "config/yoi/skills",
        "deploy",
        &front("deploy", "My way."),
    );
    scene
        .write(".yoi/commands/review.md", "Theirs: $1.")
        .write(".yoi/commands/bad.md", "Look to\u{202e}day.")
        .write(".yoi/commands/Undo.md", "Not this one.");
    skill(
        &scene,
        "project/.yoi/skills",
        "deploy",
        &front("deploy", "Their way."),
    );
    skill(
        &scene,
        "project/.yoi/skills",
        "blank",
        &front("a\u{3164}", "Looks like a."),
    );
    for number in 0..70 {
        scene.write(&format!(".yoi/commands/c{number:02}.md"), "Do it.");
        let name = format!("s{number:02}");
        skill(&scene, "project/.yoi/skills", &name, &front(&name, "It."));
    }
    let (system, results) = run(&scene, &[json!({ "name": "deploy" })]);
    assert!(
        system.contains("Of the user:\n- deploy: My way.") && !system.contains("Their way"),
        "{system}"
    );
    assert!(results[0].contains("The body of deploy."), "{}", results[0]);
    let told = scene.yoi(&["features", "--json"]).out;
    for words in [
        "the user has a command /review, too, which is used",
        "the user has a skill deploy, too, which is used",
        "some commands of this repository are left out: at most 48 are used",
        "its name is not 1 to 64 visible letters",
        "/Undo is a command of yoi, which is used",
        "a control, direction or invisible character",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let model = scene.script("script.jsonl", &[json!({ "text": "done" })]);
    let sent = [
        "run",
        "--sandbox",
        "off",
        "--pod",
        "p",
        "-m",
        &model,
        "/review a",
    ];
    scene.yoi(&sent).ends(0);
    let records = scene.records("p");
    let input = records.iter().find(|record| record["k"] == "input_queued");
    let input = input.unwrap();
    assert_eq!(input["text"], "Mine: a.");
    assert_eq!(input["command"]["source"], "the user");
}

#[test]
fn what_the_person_keeps_from_read_is_kept_from_skill() {
    let scene = Scene::new();
    scene.config(
        "[permissions]\nsecrets = [\"*.kdbx\"]\n[[permissions.rules]]\ntool = \"*\"\npath = \".yoi/skills/deploy/inner/**\"\ndecision = \"deny\"\n",
    );
    let place = "project/.yoi/skills";
    skill(&scene, place, "deploy", &front("deploy", "With care."));
    skill(&scene, place, "a.kdbx", &front("a", "Kept back."));
    scene
        .write(".yoi/skills/deploy/vault.kdbx", "the vault")
        .write(".yoi/skills/deploy/inner/a.md", "the inner")
        .write("SKILL.md", front("up", "All of it."));
    fs::create_dir_all(scene.file(".claude/skills")).unwrap();
    symlink("../..", scene.file(".claude/skills/up")).unwrap();
    let calls = [
        json!({ "name": "deploy", "file": "vault.kdbx" }),
        json!({ "name": "deploy", "file": "inner/a.md" }),
        json!({ "name": "up" }),
    ];
    let (system, results) = run(&scene, &calls);
    assert!(
        !["All of it.", "Kept back."]
            .iter()
            .any(|hidden| system.contains(hidden)),
        "{system}"
    );
    assert_eq!(results.len(), calls.len());
    for result in &results {
        assert!(
            !["the vault", "the inner", "The body of up"]
                .iter()
                .any(|hidden| result.contains(hidden)),
            "{result}"
        );
    }
    let told = scene.yoi(&["features", "--json"]).out;
    let words = "it leads out of the directories of skills";
    assert!(told.contains(words), "{told}");
}
