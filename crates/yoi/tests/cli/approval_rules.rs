//! Rules that a person allows with an answer: what is written into the user's configuration, and how they are taken back.

use crate::approvals::bash;
use crate::hosts::{Host, newest, until};
use crate::person::AtTerminal;
use crate::scene::Scene;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

/// A file with comments, and with something behind its rules.
const FILE: &str = "# mine\n[[permissions.rules]]\ntool = \"Bash\" # the shell\nprogram = \"touch\"\ndecision = \"ask\"\n\n\
                    [limits]\nmax_steps = 40 # enough";

const ONE: &str = "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\nsubcommand = [\"one\"]\ndecision = \"allow\"\n";

const SHOWN: &str = "$XDG_CONFIG_HOME/yoi/config.toml";

fn user_file(scene: &Scene) -> PathBuf {
    scene.path("config/yoi/config.toml")
}

fn text(scene: &Scene) -> String {
    fs::read_to_string(user_file(scene)).unwrap()
}

/// The pod `p`, whose model runs these commands one after the other, and with the next input two at once.
fn runs(scene: &Scene, commands: &[&str]) -> Host {
    let mut answers: Vec<Value> = commands
        .iter()
        .map(|command| json!({ "calls": [bash(command)] }))
        .collect();
    let again = [bash("touch two y"), bash("touch one y")];
    answers.extend([
        json!({ "text": "done" }),
        json!({ "calls": again }),
        json!({ "text": "done" }),
    ]);
    let model = scene.script("s.jsonl", &answers);
    Host::start(scene, &["go", "-m", &model])
}

fn asks(scene: &Scene, approval: u64) {
    let asked = || {
        scene.yoi(&["status", "p", "--json"]).ends(0).json()["approvals"][0]["approval"] == approval
    };
    until("it asks", asked);
}

fn ends(scene: &Scene, host: &Host) {
    until("the turn is done", || {
        newest(scene, "turn_finished").is_some()
    });
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn a_rule_is_added_at_the_end_of_the_users_file_once() {
    let scene = Scene::new();
    scene.config(FILE);
    let host = runs(
        &scene,
        &[
            "touch one a",
            "touch one b && touch two",
            "touch one c && touch two d",
        ],
    );
    asks(&scene, 1);
    scene.yoi(&["approve", "p", "1"]).ends(0);
    asks(&scene, 2);
    let listed = scene.yoi(&["approve", "p", "--json"]).ends(0).json();
    let both = format!("{ONE}\n{}", ONE.replace("one", "two"));
    assert_eq!(
        (&listed[0]["scopes"], &listed[0]["toml"]),
        (&json!(["once", "pod", "rule"]), &json!(both))
    );
    scene
        .yoi(&["approve", "p"])
        .ends(0)
        .prints(&["with --scope=rule it also adds these rules to your configuration"]);
    let done = scene.yoi(&["approve", "p", "2", "--scope=rule"]).ends(0);
    let added = format!("added to {SHOWN}:");
    done.prints(&[
        "allowed for this pod: Bash touch one b && touch two",
        &added,
        "    program = \"touch\"",
        "    subcommand = [\"two\"]",
    ])
    .prints(&[
        "would also have matched 1 past call of this pod:\n    Bash touch one a",
        "HUP signal",
    ]);
    assert_eq!(text(&scene), format!("{FILE}\n\n{both}"));
    until("the third call was not asked about", || {
        newest(&scene, "turn_finished").is_some()
    });
    assert!(scene.file("c").exists());
    // A second answer adds nothing.
    scene
        .yoi(&["approve", "p", "2", "--scope=rule"])
        .ends(0)
        .prints(&[&format!("{SHOWN} already has these rules")]);
    assert_eq!(text(&scene), format!("{FILE}\n\n{both}"));
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["approval 2: allowed for this pod and by a rule by yoi approve"]);
    ends(&scene, &host);
    // The file counts in other pods.
    let model = scene.script(
        "other.jsonl",
        &[
            json!({ "calls": [bash("touch two e")] }),
            json!({ "text": "done" }),
        ],
    );
    scene.yoi(&["run", "-m", &model, "go"]).ends(0);
    assert!(scene.file("e").exists());
}

#[test]
fn a_rule_is_taken_back_and_the_next_call_asks_again() {
    let scene = Scene::new();
    scene.config(FILE);
    let host = runs(
        &scene,
        &["touch one", "touch two", "touch two x", "touch one x"],
    );
    asks(&scene, 1);
    scene
        .yoi(&["approve", "p", "--forget"])
        .ends(0)
        .prints(&["no rule is allowed for p"]);
    scene.yoi(&["approve", "p", "1", "--scope=rule"]).ends(0);
    asks(&scene, 2);
    scene.yoi(&["approve", "p", "2", "--scope=pod"]).ends(0);
    until("the turn is done", || {
        newest(&scene, "turn_finished").is_some()
    });
    let state = scene.yoi(&["status", "p", "--json"]).ends(0).json();
    let rule = |number: u64, scope: &str, about: &str| {
        let rule = json!({ "tool": "Bash", "program": "touch", "subcommand": [about], "decision": "allow" });
        json!({ "number": number, "approval": number, "scope": scope, "rule": rule })
    };
    assert_eq!(
        state["rules"],
        json!([rule(1, "rule", "one"), rule(2, "pod", "two")])
    );
    scene.yoi(&["status", "p"]).ends(0).prints(&[
        "allowed      1  Bash touch one",
        "`yoi approve p --forget` lists them",
    ]);
    let listed = scene.yoi(&["approve", "p", "--forget"]).ends(0);
    listed.prints(&[
        "   1  Bash touch one  (approval 1)",
        "   2  Bash touch two  (approval 2)",
        "--forget=all",
    ]);
    scene
        .yoi(&["approve", "p", "--forget=3"])
        .ends(2)
        .says(&["no rule 3 is allowed for p", "yoi approve p --forget"]);
    scene
        .yoi(&["approve", "p", "--forget=x"])
        .ends(2)
        .says(&["`x` is not the number of a rule"]);
    scene.yoi(&["approve", "p", "1", "--forget"]).ends(2);
    let gone = scene.yoi(&["approve", "p", "--forget=1"]).ends(0);
    gone.prints(&[
        "rule 1 no longer allowed for p: Bash touch one",
        &format!("{SHOWN} still has this rule"),
    ]);
    scene
        .yoi(&["log", "p"])
        .ends(0)
        .prints(&["no longer allowed for this pod by yoi approve: Bash touch one"]);
    let again = scene
        .yoi(&["approve", "p", "--forget=all", "--json"])
        .ends(0)
        .json();
    assert_eq!(again["forgotten"][0]["number"], 2);
    assert_eq!(
        scene
            .yoi(&["approve", "p", "--forget", "--json"])
            .ends(0)
            .json()["rules"],
        json!([])
    );
    let forgotten = newest(&scene, "rules_forgotten").unwrap();
    assert_eq!(
        (
            &forgotten["by"]["client"],
            &forgotten["rules"][0]["subcommand"]
        ),
        (&json!("yoi approve"), &json!(["two"]))
    );
    // The file counts only after a reload.
    scene.yoi(&["send", "p", "more"]).ends(0);
    until("both ask", || {
        scene.yoi(&["status", "p", "--json"]).ends(0).json()["approvals"]
            .as_array()
            .is_some_and(|open| open.len() == 2)
    });
    scene.yoi(&["cancel", "p"]).ends(0);
    until("it is cancelled", || {
        newest(&scene, "turn_finished").is_some_and(|end| end["turn"] == 2)
    });
    assert!(!scene.file("y").exists());
    ends(&scene, &host);
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_call_allowed_in_the_pod() {
    let scene = Scene::new();
    scene.config(FILE);
    let host = runs(&scene, &["touch one > made", "touch one", "touch one x"]);
    asks(&scene, 1);
    let refused = scene.yoi(&["approve", "p", "1", "--scope=rule"]).ends(2);
    refused.says(&["no rule can allow the call of approval 1"]);
    assert_eq!(newest(&scene, "approval_resolved"), None);
    scene.yoi(&["approve", "p", "1"]).ends(0);
    asks(&scene, 2);
    fs::set_permissions(user_file(&scene), Permissions::from_mode(0o444)).unwrap();
    let failed = scene
        .yoi(&["approve", "p", "2", "--scope=rule", "--json"])
        .ends(78);
    assert_eq!(
        (&failed.json()["answer"]["scope"], &failed.json()["written"]),
        (&json!("rule"), &Value::Null)
    );
    failed.says(&[
        &format!("{SHOWN}: the file is read-only; the call is allowed in this pod, but no rule was written"),
        &format!("add these lines to {SHOWN}:"),
        "subcommand = [\"one\"]",
    ]);
    assert_eq!(text(&scene), FILE);
    until("the third call was not asked about", || {
        newest(&scene, "turn_finished").is_some()
    });
    let started = scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == "tool_started")
        .count();
    assert_eq!(
        (started, scene.file("x").exists()),
        (3, true),
        "each call ran once"
    );
    // As after a crash between the record and the file: the same command writes what is missing.
    fs::set_permissions(user_file(&scene), Permissions::from_mode(0o640)).unwrap();
    scene
        .yoi(&["approve", "p", "2", "--scope=rule"])
        .ends(0)
        .prints(&[&format!("added to {SHOWN}")]);
    assert_eq!(text(&scene), format!("{FILE}\n\n{ONE}"));
    assert_eq!(
        fs::metadata(user_file(&scene))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o640
    );
    // The pod does not know them any more: this is not said to be done.
    scene.yoi(&["approve", "p", "--forget=all"]).ends(0);
    scene.config(FILE);
    let unknown = scene.yoi(&["approve", "p", "2", "--scope=rule"]).ends(78);
    unknown.says(&["does not know its rules any more", SHOWN]);
    assert_eq!(text(&scene), FILE);
    ends(&scene, &host);
}

#[test]
fn rules_that_could_allow_more_or_nothing_are_refused_before_the_answer() {
    let scene = Scene::new();
    let deny = "\n[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\nsubcommand = [\"secret\"]\ndecision = \"deny\"\n";
    let inline = "permissions = { rules = [{ tool = \"Bash\", program = \"touch\", decision = \"ask\" }] }\n";
    scene.config(inline);
    let host = runs(&scene, &["touch one", "touch one x"]);
    asks(&scene, 1);
    let refused = |words: &[&str]| {
        scene
            .yoi(&["approve", "p", "1", "--scope=rule"])
            .ends(78)
            .says(words);
        assert_eq!(newest(&scene, "approval_resolved"), None);
    };
    refused(&[
        "rules cannot be added at the end of this file",
        "allow the call once or in this pod",
    ]);
    scene.config(&format!("{FILE}\n{deny}"));
    refused(&[&format!(
        "{SHOWN}:10: the new rules could override this rule, which denies"
    )]);
    scene.yoi(&["approve", "p", "1", "--scope=pod"]).ends(0);
    ends(&scene, &host);
}

#[test]
fn a_rule_below_one_of_the_project_is_not_offered() {
    let scene = Scene::new();
    fs::write(
        scene.file("yoi.toml"),
        "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"ask\"\n",
    )
    .unwrap();
    let host = runs(&scene, &["touch one"]);
    asks(&scene, 1);
    assert_eq!(
        scene.yoi(&["approve", "p", "--json"]).ends(0).json()[0]["scopes"],
        json!(["once", "pod"])
    );
    let refused = scene.yoi(&["approve", "p", "1", "--scope=rule"]).ends(2);
    refused.says(&["no rule in your configuration would allow the call of approval 1: other rules come after it"]);
    assert!(newest(&scene, "approval_resolved").is_none() && !user_file(&scene).exists());
    scene.yoi(&["approve", "p", "1"]).ends(0);
    ends(&scene, &host);
}

#[test]
fn a_person_sees_the_rules_before_they_are_written() {
    let scene = Scene::new();
    let elsewhere = scene.path("home/dotfiles.toml");
    fs::write(&elsewhere, FILE).unwrap();
    symlink(&elsewhere, user_file(&scene)).unwrap();
    let host = runs(&scene, &["touch one"]);
    asks(&scene, 1);
    let mut person = AtTerminal::start(&scene, "", &["approve"]);
    for typed in ["n\n", "y\n"] {
        person.sees("r: by a rule (shown first); ");
        person.types("r\n");
        for shown in [
            &format!("added to {SHOWN}, for all pods:"),
            "    [[permissions.rules]]",
            "    subcommand = [\"one\"]",
            "would also have matched no past call of this pod",
            "allow the call by these rules? y or n: ",
        ] {
            person.sees(shown);
        }
        assert_eq!(
            (text(&scene).as_str(), newest(&scene, "approval_resolved")),
            (FILE, None)
        );
        person.types(typed);
    }
    person.sees("allowed for this pod: Bash touch one");
    person.sees("added to ");
    person.ends(0);
    assert_eq!(
        fs::read_to_string(&elsewhere).unwrap(),
        format!("{FILE}\n\n{ONE}")
    );
    assert!(user_file(&scene).is_symlink(), "the link stays");
    ends(&scene, &host);
}

#[test]
fn a_number_at_a_terminal_is_confirmed() {
    let scene = Scene::new();
    scene.config(FILE);
    let host = runs(&scene, &["touch one"]);
    asks(&scene, 1);
    let mut person = AtTerminal::start(&scene, "y\n", &["approve", "p", "1", "--scope=rule"]);
    person.sees("subcommand = [\"one\"]");
    person.sees("allow the call by these rules? y or n: ");
    person.types("n\n");
    person.ends(0);
    assert_eq!(
        (text(&scene).as_str(), newest(&scene, "approval_resolved")),
        (FILE, None)
    );
    scene.yoi(&["approve", "p", "1", "--deny"]).ends(0);
    ends(&scene, &host);
}

#[test]
fn a_run_at_a_terminal_writes_the_rule_and_goes_on() {
    let scene = Scene::new();
    scene.config(FILE);
    let calls = ["touch one", "touch one x"].map(|command| json!({ "calls": [bash(command)] }));
    let model = scene.script(
        "s.jsonl",
        &[&calls[..], &[json!({ "text": "all is done" })]].concat(),
    );
    let mut person = AtTerminal::start(&scene, "", &["run", "--pod", "r", "-m", &model, "go"]);
    person.sees("r: by a rule (shown first); ");
    person.types("r\n");
    person.sees("subcommand = [\"one\"]");
    person.sees("would also have matched no past call of this pod");
    person.sees("allow the call by these rules? y or n: ");
    person.types("y\n");
    person.sees("added to ");
    person.sees("all is done");
    person.ends(0);
    assert_eq!(text(&scene), format!("{FILE}\n\n{ONE}"));
    assert!(
        scene.file("x").exists(),
        "the second call was not asked about"
    );
    scene.sound("r");
}
