//! `yoi notify`: a notification is durable, reaches the model once, and wakes an idle pod only if it is to.

use crate::hosts::{Host, newest, until};
use crate::scene::Scene;
use rustix::process::Signal;
use serde_json::json;

#[test]
fn a_note_waits_for_a_turn_or_begins_one() {
    let scene = Scene::new();
    let answers = [json!({ "text": "one" }), json!({ "text": "two" })];
    let host = Host::start(&scene, &["-m", &scene.script("s.jsonl", &answers)]);
    scene
        .yoi(&["notify", "p", "the build is green"])
        .ends(0)
        .prints(&["p delivers the notification in its next turn"]);
    assert!(newest(&scene, "turn_started").is_none());
    assert_eq!(
        newest(&scene, "notification_queued").unwrap()["text"],
        "the build is green"
    );
    let done = scene
        .fed(&["notify", "p", "--wake", "-"], b"and the release is out\n")
        .ends(0);
    done.prints(&["p starts a turn that delivers the notification"]);
    until("the notification was worked on", || {
        scene.yoi(&["log", "p"]).out.contains("turn 1: done")
    });
    let log = scene.yoi(&["log", "p"]).ends(0).prints(&[
        "the build is green",
        "and the release is out",
        "one",
    ]);
    assert_eq!(log.out.matches("the build is green").count(), 1);
    scene.yoi(&["pause", "p"]).ends(0);
    scene
        .yoi(&["notify", "p", "--wake", "later"])
        .ends(0)
        .prints(&["p is held and delivers the notification after `yoi resume`"]);
    scene
        .fed(&["notify", "p", "-"], &[b'x'; 20_000])
        .ends(65)
        .says(&["16384", "save the text to a file"]);
    scene.yoi(&["notify", "p", " "]).ends(2).says(&["is empty"]);
    host.end(Signal::TERM);
    scene
        .yoi(&["notify", "p", "x"])
        .ends(69)
        .says(&["p is not running", "yoi start p"]);
    scene.sound("p");
}
