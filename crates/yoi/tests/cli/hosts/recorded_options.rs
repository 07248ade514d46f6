//! Options of a start, and a configuration that was changed since.

use super::{Host, newest, until};
use crate::scene::{Scene, signal};
use rustix::process::Signal;
use serde_json::json;
use std::fs;

/// The newest call was refused by the rule of the file.
#[track_caller]
fn denied_by_the_file(scene: &Scene) {
    let text = fs::read_to_string(scene.log_file("p")).unwrap();
    let verdict = text
        .lines()
        .rfind(|line| line.contains(r#""k":"verdict""#) && line.contains("Bash"));
    assert!(
        verdict.is_some_and(|line| line.contains("deny Bash ($XDG_CONFIG_HOME/yoi/config.toml:3)")),
        "{verdict:?}"
    );
}

/// The options of a start are repeated, and said. They loosen no rule that denies, however new it is.
#[test]
fn a_denial_of_the_files_stands_over_options_of_an_earlier_start() {
    let scene = Scene::new();
    let call =
        json!({ "calls": [{ "name": "Bash", "arguments": { "command": "echo a >> ran" } }] });
    let answers = [1, 2, 3]
        .iter()
        .flat_map(|n| [call.clone(), json!({ "text": n.to_string() })]);
    let model = scene.script("s.jsonl", &answers.collect::<Vec<_>>());
    let host = Host::start(
        &scene,
        &["-m", &model, "--sandbox", "off", "--allow", "Bash"],
    );
    scene.yoi(&["send", "p", "--wait", "go"]).ends(0);
    assert_eq!(scene.read("ran"), "a\n");

    scene.config("[sandbox]\nmode = \"read-only\"\n[[permissions.rules]]\ntool = \"Bash\"\ndecision = \"deny\"\n");
    let log = scene.pod("p").join("host.log");
    signal(host.pid, Signal::HUP);
    until("the rule is read", || {
        fs::read_to_string(&log)
            .unwrap()
            .contains("the configuration was read again")
    });
    scene.yoi(&["send", "p", "--wait", "again"]).ends(3);
    denied_by_the_file(&scene);
    host.end(Signal::TERM);

    let done = scene.yoi(&["start", "p", "--json"]).ends(0);
    let done = done.says(&[
        "p uses the options of its last start: --sandbox off, --allow 'Bash'",
        "the sandbox is off",
    ]);
    let host = Host::of(&done);
    assert_eq!(newest(&scene, "host_started").unwrap()["sandbox"], "off");
    scene.yoi(&["send", "p", "--wait", "once more"]).ends(3);
    denied_by_the_file(&scene);
    assert_eq!(scene.read("ran"), "a\n");
    host.end(Signal::TERM);
}
