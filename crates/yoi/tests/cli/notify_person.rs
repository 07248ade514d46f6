//! `builtin:notify-person` from its configuration to the message, and what is kept of the URL of its webhook.

use crate::hosts::{Host, until};
use crate::scene::{Scene, finish, holding};
use rustix::process::Signal;
use serde_json::json;
use std::fs;

const CANARY: &str = "canary-hook-90210";

fn start(scene: &Scene) -> Host {
    let model = scene.script("s.jsonl", &[json!({ "text": "one" })]);
    let mut start = scene.command(&["start", "p", "go", "--json", "-q", "-m", &model]);
    start.env("YOI_LOG", "trace");
    Host::of(&finish(start.spawn().unwrap()).ends(0))
}

#[test]
fn a_command_is_run_when_the_pod_is_idle() {
    let scene = Scene::new();
    scene.config(
        "[features.\"builtin:notify-person\"]\nenabled = true\ndelay_s = 1\n\
         command = [\"sh\", \"-c\", 'printf \"%s\\n\" \"$0\" >> told.txt']\n",
    );
    let host = start(&scene);
    let noted = "note of builtin:notify-person: idle after turn 1: sent";
    until("the message was sent", || {
        scene.yoi(&["log", "p"]).out.contains(noted)
    });
    assert_eq!(
        scene.read("told.txt"),
        "pod p is idle after turn 1; attach with `yoi attach p`\n"
    );
    host.end(Signal::TERM);
    scene.sound("p");
}

fn webhook(scene: &Scene, url: &str) {
    let file = scene.path("hook");
    fs::write(&file, format!("{url}\n")).unwrap();
    scene.config(&format!(
        "[features.\"builtin:notify-person\"]\nenabled = true\ndelay_s = 1\nwebhook_file = \"{}\"\n\
         grant = {{ network = [\"hooks.invalid\"] }}\n",
        file.display()
    ));
}

#[test]
fn the_url_of_a_webhook_is_nowhere() {
    let scene = Scene::new();
    webhook(
        &scene,
        &format!("https://hooks.invalid/{CANARY}?x={CANARY}"),
    );
    let host = start(&scene);
    let failed = || {
        scene
            .yoi(&["log", "p", "--json"])
            .out
            .contains(r#""state":"failed""#)
    };
    until("an attempt failed", failed);
    for args in [
        &["log", "p", "--json"][..],
        &["log", "p"],
        &["features", "p", "--json"],
        &["features"],
        &["config", "show"],
        &["status", "p"],
    ] {
        let done = scene.yoi(args);
        assert!(
            !done.out.contains(CANARY) && !done.err.contains(CANARY),
            "{args:?}: {} {}",
            done.out,
            done.err
        );
    }
    assert!(
        scene
            .yoi(&["log", "p", "--json"])
            .out
            .contains("hooks.invalid"),
        "the host is in the reason"
    );
    host.end(Signal::TERM);
    assert_eq!(holding(&scene.path("state"), CANARY), Vec::<String>::new());
}

#[test]
fn a_file_without_an_https_url_stops_the_start() {
    let scene = Scene::new();
    for (url, words) in [
        (
            format!("http://hooks.invalid/{CANARY}"),
            "its first line is not an https URL",
        ),
        (CANARY.to_owned(), "its first line is not an https URL"),
        (
            format!("https://me:{CANARY}@hooks.invalid/"),
            "its first line is not an https URL",
        ),
    ] {
        webhook(&scene, &url);
        let done = scene.yoi(&["start", "p", "-m", "offline"]).ends(78).says(&[
            "config.toml:4",
            words,
            "help: write the URL",
        ]);
        assert!(!done.err.contains(CANARY), "{}", done.err);
    }
    fs::remove_file(scene.path("hook")).unwrap();
    scene
        .yoi(&["start", "p", "-m", "offline"])
        .ends(78)
        .says(&["hook: does not exist"]);
    assert_eq!(scene.pods(), Vec::<String>::new());
}
