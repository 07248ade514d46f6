//! A key that lies where the model can read: it comes back to nobody, and stands nowhere.

use crate::endpoint::{Endpoint, Reply, calls, text};
use crate::scene::Scene;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

const KEY: &str = "canary-6f1d0a9c7be24";

/// Every file below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let of = |entry: fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => files(&entry.path()),
        false => vec![entry.path()],
    };
    entries.flat_map(of).collect()
}

fn holds(bytes: &[u8]) -> bool {
    bytes
        .windows(KEY.len())
        .any(|window| window == KEY.as_bytes())
}

/// The model reads the file with the key in every way it can, with much around it so that blobs are written, and the
/// endpoint repeats the key when it fails.
#[test]
fn a_key_in_the_project_comes_back_to_nobody() {
    let sources = [
        "key = { env = \"FAKE_KEY\" }".to_owned(),
        "key = { file = \"PROJECT/key.txt\" }".to_owned(),
        "key = { command = [\"cat\", \"PROJECT/key.txt\"] }".to_owned(),
    ];
    for source in sources {
        let scene = Scene::new();
        scene
            .write("key.txt", format!("{KEY}\n"))
            .write("AGENTS.md", format!("The key is {KEY}.\n"));
        scene.write(
            "large.txt",
            format!(
                "{}{KEY}\n{}",
                "filler line\n".repeat(2000),
                "filler line\n".repeat(2000)
            ),
        );
        let endpoint = Endpoint::start(|number, _| match number {
            0 => calls(&[
                ("Read", json!({ "path": "key.txt" }).to_string()),
                ("Grep", json!({ "pattern": "canary" }).to_string()),
                (
                    "Bash",
                    json!({ "command": "cat large.txt; cat key.txt 1>&2" }).to_string(),
                ),
            ]),
            1 => Reply::Status(
                "401 Unauthorized",
                "",
                json!({ "error": { "message": format!("bad key {KEY}") } }).to_string(),
            ),
            _ => text("done"),
        });
        let source = source.replace("PROJECT", scene.file("").to_str().unwrap());
        let source = source.replace("//", "/");
        scene.config(
            &endpoint
                .config("")
                .replace("key = { env = \"FAKE_KEY\" }", &source),
        );
        let run = |args: &[&str]| {
            crate::scene::finish(scene.command(args).env("FAKE_KEY", KEY).spawn().unwrap())
        };
        let first = run(&["run", "--pod", "p", "--sandbox", "off", "look"]).ends(78);
        let second = run(&["run", "--pod", "p", "--sandbox", "off", "go on"]).ends(0);
        for done in [first, second] {
            assert!(
                !holds(done.out.as_bytes()) && !holds(done.err.as_bytes()),
                "{source}: {}{}",
                done.out,
                done.err
            );
        }
        let requests = endpoint.requests();
        assert_eq!(requests.len(), 3);
        for request in &requests {
            assert!(
                request.head.contains(KEY),
                "{source}: the endpoint itself gets the key"
            );
            assert!(
                !holds(request.body.to_string().as_bytes()),
                "{source}: {}",
                request.body
            );
        }
        let body = requests[1].body.to_string();
        assert!(
            body.contains("\u{2039}secret "),
            "{source}: its name stands where it stood: {body}"
        );
        for path in files(&scene.path("state")) {
            assert!(
                !holds(&fs::read(&path).unwrap()),
                "{source}: {}",
                path.display()
            );
        }
        assert!(files(&scene.path("state")).len() > 3);
        assert_eq!(scene.sound("p"), 3);
    }
}
