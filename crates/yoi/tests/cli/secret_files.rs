//! Files of a project that may hold secrets: read by nobody unasked, named in no command unasked, and left out of what
//! searches show.

use crate::scene::Scene;
use crate::workspace_files::{calling, results};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

const SECRET: &str = "hunter2-needle";

fn scene() -> Scene {
    let scene = Scene::new();
    for name in [
        ".env",
        "sub/.env.local",
        "sub/tls.pem",
        "id_rsa",
        "deploy/credentials-x.json",
        "vault/a.txt",
        "my.key",
    ] {
        scene.write(name, format!("{SECRET}\n"));
    }
    scene
        .write(".npmrc", format!("//r/:_authToken={SECRET}\n"))
        .write("plain/.npmrc", "//r/:_authToken=${NPM_TOKEN}\n");
    scene
        .write("plain/a.txt", "needle\n")
        .write(".env.example", "needle\n");
    symlink(".env", scene.file("notes")).unwrap();
    symlink("../id_rsa", scene.file("sub/AGENTS.md")).unwrap();
    symlink("id_rsa", scene.file("AGENTS.md")).unwrap();
    scene
}

fn read(path: &str) -> (&'static str, Value) {
    ("Read", json!({ "path": path }))
}

#[test]
fn they_are_read_only_where_a_rule_says_so() {
    let scene = scene();
    let names = [
        ".env",
        "./sub/../.env",
        "sub/.env.local",
        "sub/tls.pem",
        "id_rsa",
        "deploy/credentials-x.json",
        ".npmrc",
        "notes",
    ];
    for name in names {
        let done = calling(&scene, &[], &[read(name)]);
        assert_eq!(results(&done)[0].0, "refused", "{name}");
        let told = done.lines().pop().unwrap()["help"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            told.contains("--allow 'Read ")
                && told.contains("can read it even without such a rule"),
            "{name}: {told}"
        );
    }
    for name in [
        ".env.example",
        "plain/.npmrc",
        "plain/a.txt",
        "vault/a.txt",
        "my.key",
    ] {
        assert_eq!(
            results(&calling(&scene, &[], &[read(name)]))[0].0,
            "ok",
            "{name}"
        );
    }
    assert_eq!(
        results(&calling(
            &scene,
            &["--allow", "Read .env"],
            &[read(".env"), read("notes"), read("id_rsa")]
        ))
        .iter()
        .map(|(status, _)| status.as_str())
        .collect::<Vec<_>>(),
        ["ok", "ok", "refused"]
    );
    for (tool, arguments) in [
        ("Grep", json!({ "pattern": "needle", "path": ".env" })),
        ("Write", json!({ "path": "new.pem", "content": "x" })),
        ("Write", json!({ "path": "id_ed25519", "content": "x" })),
        (
            "Edit",
            json!({ "path": "sub/tls.pem", "edits": [{ "old": "hunter2", "new": "x" }] }),
        ),
        ("Bash", json!({ "command": "cat .env" })),
        ("Bash", json!({ "command": "cat < sub/tls.*" })),
    ] {
        let done = calling(&scene, &[], &[(tool, arguments.clone())]);
        assert_eq!(results(&done)[0].0, "refused", "{tool} {arguments}");
        assert!(!done.out.contains(SECRET), "{tool} {arguments}");
    }
    // With the flag that the refusal names it runs.
    let done = calling(
        &scene,
        &["--allow", "Read .env"],
        &[("Bash", json!({ "command": "cat ./.env" }))],
    );
    assert!(done.out.contains(SECRET), "{}", done.out);
}

#[test]
fn searches_leave_their_content_out_and_say_so() {
    let scene = scene();
    let calls = [
        ("Grep", json!({ "pattern": "needle" })),
        ("Grep", json!({ "pattern": "needle", "glob": "**/*.pem" })),
        (
            "Grep",
            json!({ "pattern": "needle", "path": "sub", "mode": "files" }),
        ),
        ("Grep", json!({ "pattern": "needle", "path": "plain" })),
        ("List", json!({ "totals": true })),
        ("List", json!({})),
        ("Glob", json!({ "pattern": "**/*" })),
    ];
    let done = calling(&scene, &["--no-instructions"], &calls).ends(0);
    let mut told: Vec<(String, String)> = done
        .lines()
        .into_iter()
        .filter(|line| line["k"] == "tool_finished")
        .map(|line| {
            let text = |key: &str| line["outcome"][key].as_str().unwrap_or_default().to_owned();
            (
                line["call"].as_str().unwrap().to_owned(),
                format!("{}\n{}", text("summary"), text("content")),
            )
        })
        .collect();
    told.sort();
    let told: Vec<&str> = told.iter().map(|(_, text)| text.as_str()).collect();
    let expected: [&[&str]; 7] = [
        &[
            "plain/a.txt:1:needle",
            ".env.example",
            "my.key",
            "(6 files that may hold secrets were skipped: .env, ",
            " and 1 more)",
        ],
        &["(1 file that may hold secrets was skipped: sub/tls.pem)"],
        &[
            "0 files",
            "(2 files that may hold secrets were skipped: sub/.env.local, sub/tls.pem)",
        ],
        &["1 match"],
        &[
            "6 files that may hold secrets were counted but not read",
            "pem",
        ],
        &[".env  15", "id_rsa"],
        &[".env", "sub/tls.pem", "id_rsa"],
    ];
    for (text, words) in told.iter().zip(expected) {
        for word in words {
            assert!(text.contains(word), "`{word}` is not in\n{text}");
        }
    }
    assert!(
        !told[3].contains("skipped") && !told[0].contains("tls.pem:"),
        "{told:?}"
    );
    assert!(
        told[0].matches(SECRET).count() == 2,
        "only what no name tells: {}",
        told[0]
    );
}

#[test]
fn names_are_added_and_none_is_taken_away() {
    let scene = scene();
    scene
        .config("[permissions]\nsecrets = [\"*.key\"]\n")
        .write(
            "yoi.toml",
            "[permissions]\nsecrets = [\"vault/**\", \".ENV.example\"]\n",
        );
    let status = |name: &str| results(&calling(&scene, &[], &[read(name)]))[0].0.clone();
    for name in ["my.key", "vault/a.txt", ".env.example", ".env"] {
        assert_eq!(status(name), "refused", "{name}");
    }
    assert_eq!(status("plain/a.txt"), "ok");
    scene.yoi(&["config", "show"]).ends(0).prints(&[
        "permissions.secrets",
        "*.key",
        "config.toml:2",
        "vault/**",
        "yoi.toml:2",
    ]);
    scene.yoi(&["doctor"]).prints(&[
        "- secrets",
        "3 names of the configuration",
        "can still read it",
    ]);
    for bad in ["!.env", "../x", "", "#x"] {
        scene.write(
            "yoi.toml",
            format!("[permissions]\nsecrets = [\"a\", \"{bad}\"]\n"),
        );
        for args in [&["config", "check"][..], &["run", "go"]] {
            scene
                .yoi(args)
                .ends(78)
                .says(&["yoi.toml:2", "permissions.secrets"]);
        }
    }
}

#[test]
fn instructions_are_no_way_round() {
    let scene = scene();
    let done = calling(&scene, &[], &[]);
    assert!(
        done.err.contains("is a link that is not followed") && !done.out.contains(SECRET),
        "{}",
        done.err
    );
}
