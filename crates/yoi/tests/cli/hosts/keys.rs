//! The key of a pod that stays: it reaches the pod over a pipe, and is nowhere else.

use super::{Host, newest, until};
use crate::endpoint::{Endpoint, text};
use crate::scene::{Scene, finish, holding, signal};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader};

const CANARY: &str = "canary-key-90210";

#[test]
fn the_key_reaches_the_pod_and_nothing_else() {
    let scene = Scene::new();
    let endpoint = Endpoint::start(|_, _| text("hello"));
    scene.config(&endpoint.config(""));
    let mut start = scene.command(&["start", "p", "go", "--json"]);
    start.env("FAKE_KEY", CANARY).env("YOI_LOG", "trace");
    let host = Host::of(&finish(start.spawn().unwrap()).ends(0));
    until("the model was asked", || {
        newest(&scene, "turn_finished").is_some()
    });
    assert!(endpoint.requests()[0].head.contains(CANARY));
    for file in ["environ", "cmdline"] {
        let text = String::from_utf8_lossy(&fs::read(host.proc(file)).unwrap()).into_owned();
        assert!(!text.contains(CANARY) && !text.is_empty(), "{file}: {text}");
    }
    host.end(Signal::TERM);
    assert_eq!(holding(&scene.path("state"), CANARY), Vec::<String>::new());
    assert!(
        !fs::read_to_string(scene.pod("p").join("host.log"))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_service_gets_its_key_from_the_manager() {
    let scene = Scene::new();
    let endpoint = Endpoint::start(|_, _| text("hello"));
    let url = format!("http://127.0.0.1:{}/v1", endpoint.port);
    scene.config(&format!(
        "[providers.x]\napi = \"openai-chat\"\nbase_url = \"{url}\"\nkey = {{ file = \"$CREDENTIALS_DIRECTORY/x\" }}\n"
    ));
    fs::create_dir(scene.path("credentials")).unwrap();
    fs::write(scene.path("credentials/x"), format!("{CANARY}\n")).unwrap();
    let mut start = scene.command(&["start", "p", "go", "-m", "x/y", "--foreground"]);
    let mut run = start
        .env("CREDENTIALS_DIRECTORY", scene.path("credentials"))
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("p is ready")));
    until("the model was asked", || {
        newest(&scene, "turn_finished").is_some()
    });
    assert!(endpoint.requests()[0].head.contains(CANARY));
    signal(run.id(), Signal::TERM);
    finish(run).ends(0);
}

#[test]
fn a_pod_without_its_key_is_suspended_until_it_is_there() {
    let scene = Scene::new();
    let endpoint = Endpoint::start(|_, _| text("hello"));
    scene.config(&endpoint.config(""));
    let done = scene
        .yoi(&["start", "p", "go"])
        .ends(0)
        .prints(&["p is held (process ", "FAKE_KEY is not set"]);
    let pid = done
        .out
        .split_once("(process ")
        .unwrap()
        .1
        .split_once(')')
        .unwrap()
        .0
        .parse()
        .unwrap();
    let first = Host { pid };
    scene
        .yoi(&["start", "p"])
        .ends(0)
        .prints(&[&format!("p is held (process {pid})"), "FAKE_KEY"]);
    assert!(!first.is_gone() && endpoint.requests().is_empty());
    assert_eq!(newest(&scene, "suspended").unwrap()["cause"], "required");

    let mut start = scene.command(&["start", "p", "--json"]);
    start.env("FAKE_KEY", CANARY);
    let second = Host::of(&finish(start.spawn().unwrap()).ends(0));
    assert!(first.is_gone());
    // What was asked meanwhile is done now.
    until("the prompt was worked on", || {
        newest(&scene, "turn_finished").is_some()
    });
    assert_eq!(endpoint.requests().len(), 1);
    second.end(Signal::TERM);
    scene.sound("p");
}
