//! Pages of the web: off until a person names hosts, and then these and no others.

use crate::scene::Scene;
use serde_json::{Value, json};

const ENABLED: &str = "[features.\"builtin:web\"]\nenabled = true\n";

/// A run that fetches these, one after the other; how each call ended.
fn fetched(scene: &Scene, pod: &str, urls: &[&str]) -> Vec<(String, String)> {
    let call = |url: &&str| json!({ "calls": [{ "name": "Fetch", "arguments": { "url": url } }] });
    let answers: Vec<Value> = urls
        .iter()
        .map(call)
        .chain([json!({ "text": "done" })])
        .collect();
    let model = scene.script("script.jsonl", &answers);
    scene.yoi(&["run", "--pod", pod, "-m", &model, "go"]);
    let ended = |record: &Value| {
        let outcome = &record["outcome"];
        let text = |key: &str| outcome[key].as_str().unwrap_or_default().to_owned();
        (record["k"] == "tool_finished").then(|| (text("status"), outcome.to_string()))
    };
    scene.records(pod).iter().filter_map(ended).collect()
}

#[test]
fn it_is_off_until_hosts_are_named() {
    let scene = Scene::new();
    assert_ne!(fetched(&scene, "p1", &["https://example.org/"])[0].0, "ok");
    scene.yoi(&["features"]).ends(0).prints(&["builtin:web"]);
    scene.config(ENABLED);
    scene
        .yoi(&["features", "--plan"])
        .ends(0)
        .prints(&["builtin:web"]);
    scene
        .yoi(&["features", "--explain", "Fetch"])
        .prints(&["[\"docs.example.org\"] }"]);
    scene.config(&format!(
        "{ENABLED}grant = {{ network = [\"*.example.org\"] }}\n"
    ));
    scene
        .yoi(&["features", "--plan"])
        .ends(0)
        .prints(&["builtin:web", "Fetch"]);
}

/// No request leaves this machine: what is asked for is refused by name, or leads nowhere outside.
#[test]
fn only_named_hosts_of_the_public_internet_are_reached() {
    let scene = Scene::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let inside = format!(
        "http://127.0.0.1:{}/",
        listener.local_addr().unwrap().port()
    );
    scene.config(&format!(
        "{ENABLED}grant = {{ network = [\"*.example.org\", \"127.0.0.1:*\", \"localhost\"] }}\n"
    ));
    let urls = [
        "https://example.net/",
        "http://localhost/",
        &inside,
        "http://169.254.169.254/latest/",
        "file:///etc/passwd",
    ];
    let ended = fetched(&scene, "p2", &urls);
    let words = [
        "example.net:443 is not granted",
        "only addresses on the public internet",
        "only addresses on the public internet",
        "not granted",
        "http or https",
    ];
    assert_eq!(ended.len(), words.len(), "{ended:?}");
    for ((status, text), word) in ended.iter().zip(words) {
        assert!(status != "ok" && text.contains(word), "{word}: {text}");
    }
    listener.set_nonblocking(true).unwrap();
    assert_eq!(
        listener.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock,
        "nobody knocked"
    );
}

#[test]
fn rules_can_name_hosts() {
    let scene = Scene::new();
    let rule =
        "[[permissions.rules]]\ntool = \"Fetch\"\nhost = \"*.example.org\"\ndecision = \"deny\"\n";
    scene.config(&format!("{ENABLED}grant = {{ network = [\"*\"] }}\n{rule}"));
    let ended = fetched(&scene, "p3", &["https://docs.Example.org/", "ftp://x"]);
    assert!(
        ended[0].1.contains("deny Fetch on *.example.org"),
        "{ended:?}"
    );
    assert!(!ended[1].1.contains("deny Fetch"), "{ended:?}");
    scene
        .yoi(&["features", "--explain", "Fetch"])
        .prints(&["*.example.org"]);
}
