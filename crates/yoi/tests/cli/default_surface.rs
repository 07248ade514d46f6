//! The default surface, byte for byte: what every request of every run carries, and every prompt cache is keyed by.

use crate::scene::Scene;
use serde_json::{Value, json};
use session_store::Digest;

/// System prompt and tools: bytes, and the first digits of the digest. A change here costs every session in progress
/// its prompt cache; make it on purpose.
const PINNED: &str = "\
system 620 98a8b146e85f3e45
Bash 664 085ec3b738a3fea2
Edit 660 b5ec9a4ae486f1c1
Glob 340 2145affa88379b00
Grep 809 ff4ac8f180f19c4b
List 464 5ca4f0ce05fa94fe
Read 388 1e3acf7de177d86a
ReadOutput 472 de3ede3f9c19d035
TaskCreate 169 f73d4e8aa2407fe1
TaskGet 133 8ff5978f49deb84a
TaskList 151 82378c764ddcee3c
TaskUpdate 277 01206db118952f68
Write 314 15e41e851e3a8208";

#[test]
fn the_default_surface_is_pinned() {
    let scene = Scene::new();
    let model = scene.script("answers.jsonl", &[json!({ "text": "done" })]);
    // The shell is there on a kernel that cannot confine it, too.
    scene
        .yoi(&["run", "--sandbox", "off", "--pod", "p", "-m", &model, "x"])
        .ends(0);
    let records = scene.records("p");
    let surface = &records
        .iter()
        .find(|record| record["k"] == "surface")
        .unwrap()["surface"];
    let row = |name: &str, text: &str| {
        let digest = Digest::of(text.as_bytes()).to_string();
        format!("{name} {} {}", text.len(), &digest[..16])
    };
    let tool = |tool: &Value| {
        let part = |key: &str| tool[key].as_str().unwrap();
        row(
            part("name"),
            &["name", "description", "schema", "effect"]
                .map(part)
                .join("\n"),
        )
    };
    let mut rows = vec![row("system", surface["system"].as_str().unwrap())];
    rows.extend(surface["tools"].as_array().unwrap().iter().map(tool));
    assert_eq!(
        rows.join("\n"),
        PINNED,
        "the surface changed; if on purpose, pin what stands on the left"
    );
}
