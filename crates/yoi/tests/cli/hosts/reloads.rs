//! The configuration of a live pod, read again.

use super::{Host, newest, until};
use crate::scene::{Scene, signal};
use rustix::process::Signal;
use serde_json::{Value, json};

/// What `yoi status` tells of the newest reload.
fn reload(scene: &Scene) -> Value {
    scene.yoi(&["status", "p", "--json"]).ends(0).json()["reload"].clone()
}

#[test]
fn status_tells_what_waits_for_the_next_start() {
    let scene = Scene::new();
    scene.config("[sandbox]\nmode = \"read-only\"\n");
    let host = Host::start(&scene, &["-m", "offline"]);
    let nothing = json!({ "next_start": [], "refused": null });
    assert_eq!(reload(&scene), nothing);

    // A line further down, and a limit, which counts at once.
    scene.config(
        "[limits]\nmax_steps = 7\n[sandbox]\nmode = \"read-only\"\n[features.\"builtin:web\"]\nenabled = true\n",
    );
    signal(host.pid, Signal::HUP);
    until("the feature waits", || reload(&scene) != nothing);
    assert_eq!(
        reload(&scene),
        json!({ "next_start": ["features.\"builtin:web\""], "refused": null })
    );
    let status = scene.yoi(&["status", "p"]).ends(0);
    status.prints(&["config    changed for the next start: features.\"builtin:web\""]);

    scene.config("[sandbox]\nmode = \"rea\n");
    signal(host.pid, Signal::HUP);
    until("the file is refused", || {
        !reload(&scene)["refused"].is_null()
    });
    let report = reload(&scene);
    assert!(
        report["refused"]
            .as_str()
            .unwrap()
            .contains("config.toml:2"),
        "{report}"
    );
    assert_eq!(report["next_start"][0], "features.\"builtin:web\"");
    let status = scene.yoi(&["status", "p"]).ends(0);
    status.prints(&[
        "config    not changed by the newest reload: ",
        "config.toml:2",
        "changed for the next start",
    ]);

    scene.config("model = \"offline\"\n[sandbox]\nmode = \"read-only\"\n");
    signal(host.pid, Signal::HUP);
    until("all is as it was", || reload(&scene) == nothing);
    host.end(Signal::TERM);
    assert_eq!(newest(&scene, "host_stopped").unwrap()["k"], "host_stopped");
    assert_eq!(
        scene.yoi(&["status", "p", "--json"]).ends(0).json()["reload"],
        Value::Null
    );
}
