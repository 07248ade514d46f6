//! `yoi feature new`: the template under another name, or nothing.

use crate::scene::Scene;
use std::fs;
use std::path::{Path, PathBuf};

fn clone() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn files(dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(&at)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if entry.is_dir() {
                left.push(entry);
            } else {
                let name = entry.strip_prefix(dir).unwrap().display().to_string();
                found.push((name, fs::read_to_string(&entry).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn it_is_the_template_under_another_name() {
    let scene = Scene::new();
    let clone = clone();
    scene
        .yoi(&[
            "feature",
            "new",
            "night-watch",
            "--yoi",
            clone.to_str().unwrap(),
        ])
        .ends(0)
        .prints(&["wrote ", "cargo test"]);
    let written = files(&scene.file("night-watch"));
    let names: Vec<_> = written.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            ".gitignore",
            "Cargo.toml",
            "clippy.toml",
            "src/lib.rs",
            "tests/night_watch.rs"
        ]
    );
    // Turned back, it is the template, which is built and tested by itself.
    let crates = clone.join("crates").display().to_string();
    let back = |text: &str| {
        let text = text
            .replace("night-watch", "review-first")
            .replace("night_watch", "review_first");
        text.replace("NightWatch", "ReviewFirst")
            .replace(&crates, "../../crates")
    };
    let template = clone.join("docs/template");
    let originals = [
        "Cargo.toml",
        "clippy.toml",
        "src/lib.rs",
        "tests/review_first.rs",
    ];
    for ((_, text), original) in written.iter().skip(1).zip(originals) {
        assert!(
            !text.to_lowercase().contains("review-first") && !text.contains("ReviewFirst"),
            "{text}"
        );
        assert_eq!(
            back(text),
            fs::read_to_string(template.join(original)).unwrap(),
            "{original}"
        );
    }
    // What a feature must not call is the same for built-in ones.
    let bans = |path: &str| {
        let text = fs::read_to_string(clone.join(path)).unwrap();
        text.split_once("disallowed-methods").unwrap().1.to_owned()
    };
    assert_eq!(
        bans("docs/template/clippy.toml"),
        bans("crates/builtins/clippy.toml")
    );
    let again = scene.yoi(&[
        "feature",
        "new",
        "night-watch",
        "--yoi",
        clone.to_str().unwrap(),
    ]);
    again
        .ends(2)
        .says(&["already exists", "choose another name"]);
    assert_eq!(files(&scene.file("night-watch")), written);
}

#[test]
fn it_finds_the_clone_it_is_in_and_goes_where_it_is_told() {
    let scene = Scene::new();
    for name in ["pod", "testkit"] {
        scene.write(&format!("crates/{name}/Cargo.toml"), "");
    }
    scene.write("mine/x", "");
    scene
        .yoi(&["feature", "new", "a1", "--dir", "mine"])
        .ends(0);
    let manifest = scene.read("mine/a1/Cargo.toml");
    let pod = scene.file("crates/pod").canonicalize().unwrap();
    assert!(
        manifest.contains(&format!("pod = {{ path = \"{}\" }}", pod.display())),
        "{manifest}"
    );
    assert!(scene.read("mine/a1/src/lib.rs").contains("pub struct A1;"));
    // The clone is the one around the current directory, wherever the crate goes.
    fs::create_dir(scene.file("beside")).unwrap();
    let elsewhere = scene.path("crates-of-mine");
    fs::create_dir(&elsewhere).unwrap();
    scene
        .yoi(&[
            "-C",
            "beside",
            "feature",
            "new",
            "a2",
            "--dir",
            elsewhere.to_str().unwrap(),
        ])
        .ends(0);
    assert!(elsewhere.join("a2/Cargo.toml").exists());
}

#[test]
fn what_cannot_be_done_leaves_nothing() {
    let scene = Scene::new();
    let clone = clone();
    let yoi = clone.to_str().unwrap();
    let long = "a".repeat(65);
    for name in [
        "",
        "-a",
        "a-",
        "a--b",
        "A",
        "a_b",
        "a/b",
        "../a",
        "1a",
        "a-1",
        "pod",
        "self",
        "serde-json",
        &long,
    ] {
        scene
            .yoi(&["feature", "new", "--yoi", yoi, "--", name])
            .ends(2)
            .says(&["is not a valid feature name"]);
    }
    scene
        .yoi(&["feature", "new", "mine"])
        .ends(2)
        .says(&["not in a clone of yoi", "--yoi DIR"]);
    scene
        .yoi(&["feature", "new", "mine", "--yoi", "."])
        .ends(2)
        .says(&["is not a clone of yoi"]);
    scene
        .yoi(&["feature", "new", "mine", "--yoi", yoi, "--dir", "nowhere"])
        .ends(2)
        .says(&[
            "error: --dir: ",
            "/nowhere does not exist",
            "choose an existing directory with --dir",
        ]);
    let there: Vec<_> = fs::read_dir(scene.file(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(there, [".git"]);
}
