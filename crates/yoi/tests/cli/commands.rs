//! Rules about what a shell command runs, from a file and from `--allow`, told where a person and a model see them.

use crate::scene::Scene;
use serde_json::json;

fn model(scene: &Scene, command: &str) -> String {
    let call = json!({ "name": "Bash", "arguments": { "command": command } });
    scene.script("answers.jsonl", &[json!({ "calls": [call] }), json!({ "text": "done" })])
}

#[test]
fn a_flag_allows_what_a_refusal_offered() {
    let scene = Scene::new();
    let model = model(&scene, "echo one && echo two; true");
    let run = |flags: &[&str], exit| {
        let done =
            scene.yoi(&[&["run", "--json", "-m", &model, "--sandbox", "off", "go"][..], flags].concat()).ends(exit);
        done.lines().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let refused = run(&["--allow", "Bash echo"], 3);
    assert!(refused.contains("`true` in `echo one && echo two; true`"), "{refused}");
    assert!(refused.contains("--allow 'Bash true'"), "{refused}");
    let allowed = run(&["--allow", "Bash echo", "--allow", "Bash true"], 0);
    assert!(allowed.contains("one\\ntwo"), "{allowed}");
}

#[test]
fn a_files_refusal_stands_against_the_flag() {
    let scene = Scene::new();
    scene.config("[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"deny\"\n");
    let model = model(&scene, "echo x; t''ouch made");
    let done = scene.yoi(&["run", "--json", "-m", &model, "--allow", "Bash touch", "--allow", "Bash", "go"]).ends(3);
    assert!(done.out.contains("deny Bash touch") && done.out.contains("config.toml"), "{}", done.out);
    assert!(!scene.file("made").exists());
}

#[test]
fn rules_that_cannot_be_read_are_named_where_they_stand() {
    let scene = Scene::new();
    let run = |rule: &str| scene.yoi(&["run", "--allow", rule, "go"]).ends(2);
    run("Bahs git").says(&["there is no tool `Bahs`", "did you mean `Bash`?", "'Bash git status,diff'"]);
    run("Bash git:*").says(&["without patterns"]);
    scene.config(
        "model = \"offline\"\n[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"git push\"\ndecision = \"deny\"\n",
    );
    scene.yoi(&["run", "go"]).ends(78).says(&["config.toml:2", "permissions.rules[0]", "more than one word"]);
}

#[test]
fn a_route_names_the_programs_of_its_rules() {
    let scene = Scene::new();
    let rule = |program: &str, decision: &str| {
        format!("[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"{program}\"\n{decision}\n")
    };
    let deny = rule("git", "subcommand = [\"push\", \"pull\"]\ndecision = \"deny\"");
    scene.config(&format!("{}{deny}", rule("rm", "decision = \"ask\"")));
    let shown = scene.yoi(&["features", "--explain", "Bash"]).ends(0);
    shown.prints(&["on rm,", "push,pull,", "config.toml"]);
    let route = scene.yoi(&["features", "--explain", "Bash", "--json"]).ends(0).json();
    assert_eq!(route["verdict"], "depends", "{route}");
    let steps = route["steps"].to_string();
    assert!(steps.contains("on rm, and where a command is opaque: ask"), "{steps}");
    assert!(steps.contains("on git push,pull, and where a command is opaque: deny"), "{steps}");
}
