//! Tricks with `.git`, links, special files, and where a project seems to be.

use super::{everything, files, marker, unharmed};
use crate::scene::{Scene, fifo, finish};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

#[test]
fn nothing_runs_git_nor_what_git_would_run() {
    let scene = Scene::new();
    let script = format!("#!/bin/sh\ntouch {}\n", marker(&scene).display());
    let run = |name: &str| {
        scene.write(name, &script);
        fs::set_permissions(scene.file(name), Permissions::from_mode(0o755)).unwrap();
    };
    let hooks = [
        "post-checkout",
        "pre-commit",
        "post-index-change",
        "fsmonitor-watchman",
        "reference-transaction",
    ];
    hooks
        .iter()
        .for_each(|hook| run(&format!(".git/hooks/{hook}")));
    run("evil.sh");
    // Programs of the repository by the names of those that one would run.
    ["bin/git", "bin/less", "bin/sh", "bin/rg"]
        .iter()
        .for_each(|name| run(name));
    let evil = scene.file("evil.sh");
    let evil = evil.display();
    scene.write(
        ".git/config",
        format!(
            "[core]\n\tfsmonitor = {evil}\n\tpager = {evil}\n\teditor = {evil}\n\thooksPath = .\n\tsshCommand = {evil}\n\
             [alias]\n\tstatus = !{evil}\n[diff]\n\texternal = {evil}\n[include]\n\tpath = /dev/zero\n"
        ),
    );
    scene
        .write(".gitattributes", "* filter=evil diff=evil\n")
        .write(".git/HEAD", "ref: refs/heads/main\n");
    let before = files(&scene);
    everything(&scene);
    let path = format!(
        "{}:{}",
        scene.file("bin").display(),
        std::env::var("PATH").unwrap()
    );
    for args in [
        &["run", "summarise this project"][..],
        &["run", "-c", "find *.sh"],
        &["doctor"],
    ] {
        finish(
            scene
                .command(args)
                .env("PATH", &path)
                .env("PAGER", "less")
                .spawn()
                .unwrap(),
        )
        .ends(0);
    }
    unharmed(&scene);
    assert_eq!(files(&scene), before);
}

#[test]
fn a_strange_git_directory_hangs_nothing_and_says_nothing() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("elsewhere")).unwrap();
    fs::write(scene.path("elsewhere/HEAD"), "ref: refs/heads/stolen\n").unwrap();
    let git = scene.file(".git");
    let note = |scene: &Scene| {
        let model = scene.script("s.jsonl", &[json!({ "text": "done" })]);
        scene
            .yoi(&["run", "--pod", "p", "-m", &model, "go"])
            .ends(0);
        let text = scene.yoi(&["log", "p", "--json"]).ends(0).out;
        scene.yoi(&["rm", "--purge", "p"]).ends(0);
        let mut found = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let note = found.rfind(|record| record.to_string().contains("Working directory: "));
        note.unwrap().to_string()
    };
    scene.write(".git/HEAD", "ref: refs/heads/main\n");
    assert!(note(&scene).contains("Git branch: main"));
    scene.write(
        ".git/HEAD",
        "ref: refs/heads/x\u{1b}[2J\u{202e}y\nGit branch: other\n",
    );
    assert!(
        note(&scene).contains(r"Git branch: x\\u{1b}[2J\\u{202e}y\\nGit branch: other"),
        "{}",
        note(&scene)
    );
    for head in [
        "ref: refs/heads/".to_owned() + &"x".repeat(5000),
        "\0".repeat(100),
        String::new(),
    ] {
        scene.write(".git/HEAD", head);
        assert!(!note(&scene).contains("Git branch"));
    }
    for target in ["/dev/zero", "../../elsewhere/HEAD", "HEAD"] {
        fs::remove_file(git.join("HEAD")).unwrap();
        symlink(target, git.join("HEAD")).unwrap();
        assert!(!note(&scene).contains("Git branch"), "{target}");
    }
    fs::remove_file(git.join("HEAD")).unwrap();
    fifo(&git.join("HEAD"));
    assert!(!note(&scene).contains("Git branch"));
    fs::remove_dir_all(&git).unwrap();
    fs::write(&git, "gitdir: ../elsewhere\n").unwrap();
    assert!(!note(&scene).contains("stolen"));
    fs::remove_file(&git).unwrap();
    fifo(&git);
    assert!(!note(&scene).contains("Git branch"));
}

#[test]
fn a_link_to_the_home_directory_is_the_home_directory() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("home/.git")).unwrap();
    fs::write(scene.path("home/yoi.toml"), "[sandbox]\nmode = \"off\"\n").unwrap();
    fs::create_dir_all(scene.path("home/.ssh")).unwrap();
    fs::write(scene.path("home/.ssh/id_rsa"), "PRIVATE").unwrap();
    fs::create_dir_all(scene.path("home/downloads/evil")).unwrap();
    symlink(
        "../../.ssh/id_rsa",
        scene.path("home/downloads/evil/AGENTS.md"),
    )
    .unwrap();
    symlink(scene.path("home"), scene.file("src")).unwrap();
    let call =
        json!({ "calls": [{ "name": "Write", "arguments": { "path": "got", "content": "x" } }] });
    let model = scene.script("s.jsonl", &[call, json!({ "text": "done" })]);
    for dir in [scene.file("src"), scene.path("home/downloads/evil")] {
        let done = scene.yoi(&[
            "-C",
            dir.to_str().unwrap(),
            "run",
            "--pod",
            "p",
            "-m",
            &model,
            "go",
        ]);
        let done = done.says(&["your home", "is read-only in this run"]);
        assert!(!done.err.contains("sandbox is off"), "{}", done.err);
        assert!(!scene.yoi(&["log", "p", "--json"]).out.contains("PRIVATE"));
        scene.yoi(&["rm", "--purge", "p"]).ends(0);
    }
    assert!(!scene.path("home/got").exists() && !scene.path("home/downloads/evil/got").exists());
    // A project that holds the user's own configuration would write what the next run may do.
    fs::create_dir_all(scene.path("config/.git")).unwrap();
    let dir = scene.path("config");
    let done = scene.yoi(&["-C", dir.to_str().unwrap(), "run", "-m", &model, "go"]);
    done.says(&["contains yoi's own files"]);
    assert!(!dir.join("got").exists());
}

/// Calls, one after the other, in a run of the user's; how each ended, with what it said.
fn calls(scene: &Scene, calls: &[(&str, Value)]) -> Vec<(String, String)> {
    let call = |(name, arguments): &(&str, Value)| json!({ "calls": [{ "name": name, "arguments": arguments }] });
    let answers: Vec<Value> = calls
        .iter()
        .map(call)
        .chain([json!({ "text": "done" })])
        .collect();
    let model = scene.script("calls.jsonl", &answers);
    let done = scene.yoi(&["run", "--json", "-m", &model, "go"]);
    let finished = done
        .lines()
        .into_iter()
        .filter(|record| record["k"] == "tool_finished");
    finished
        .map(|record| {
            (
                record["outcome"]["status"].as_str().unwrap().to_owned(),
                record.to_string(),
            )
        })
        .collect()
}

#[test]
fn links_and_special_files_leak_nothing_and_block_nothing() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("outside/dir")).unwrap();
    fs::write(scene.path("outside/secret"), "SECRET WORDS").unwrap();
    fs::write(scene.path("outside/dir/item.md"), "SECRET WORDS").unwrap();
    symlink("../outside/secret", scene.file("link")).unwrap();
    symlink("../outside", scene.file("dir")).unwrap();
    symlink("/dev/zero", scene.file("zero")).unwrap();
    symlink("loop", scene.file("loop")).unwrap();
    fifo(&scene.file("pipe"));
    fs::File::create(scene.file("huge"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    scene.write("a\nSECRET-NAME b", "plain");
    let began = Instant::now();
    let path = |path: &str| json!({ "path": path });
    let write = |path: &str| json!({ "path": path, "content": "changed" });
    let mut all = Vec::new();
    for name in [
        "link",
        "dir/secret",
        "dir/dir/item.md",
        "zero",
        "loop",
        "pipe",
        "huge",
    ] {
        all.push(("Read", path(name)));
        all.push(("Write", write(name)));
    }
    let fair = all.len();
    all.extend([
        ("List", json!({})),
        ("Glob", json!({ "pattern": "**" })),
        ("Grep", json!({ "pattern": "WORDS|plain" })),
    ]);
    let ended = calls(&scene, &all);
    assert_eq!(ended.len(), all.len());
    for (call, (_, said)) in all.iter().zip(&ended) {
        assert!(!said.contains("SECRET WORDS"), "{call:?}: {said}");
        assert!(
            !said.contains(r"\nSECRET-NAME") || said.contains(r"\\nSECRET-NAME"),
            "{call:?}: {said}"
        );
    }
    assert!(
        ended[fair..].iter().all(|(status, _)| status == "ok"),
        "{ended:#?}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(
        fs::read_to_string(scene.path("outside/secret")).unwrap(),
        "SECRET WORDS"
    );
    assert_eq!(
        fs::read_to_string(scene.path("outside/dir/item.md")).unwrap(),
        "SECRET WORDS"
    );
}

#[test]
fn links_among_work_items_lead_nowhere() {
    let scene = Scene::new();
    scene.config("[features.\"builtin:work-item\"]\nenabled = true\nauthor = \"Ann\"\n");
    let item = "---\ntitle: \"SECRET WORDS\"\nstate: \"open\"\n---\nSECRET WORDS\n";
    fs::create_dir_all(scene.path("outside/item")).unwrap();
    fs::write(scene.path("outside/item/item.md"), item).unwrap();
    fs::create_dir_all(scene.file("work-items/open/20260101-000000-b")).unwrap();
    symlink(
        "../../../outside/item",
        scene.file("work-items/open/20260101-000000-a"),
    )
    .unwrap();
    let inner = scene.file("work-items/open/20260101-000000-b");
    symlink("../../../../outside/item/item.md", inner.join("item.md")).unwrap();
    fifo(&inner.join("thread.md"));
    symlink("../../outside", scene.file("work-items/closed")).unwrap();
    let show = |id: &str| ("WorkItemShow", json!({ "id": id }));
    let ended = calls(
        &scene,
        &[
            ("WorkItemList", json!({})),
            show("20260101-000000-a"),
            show("20260101-000000-b"),
            show("../../outside/item"),
        ],
    );
    assert_eq!(ended.len(), 4);
    assert!(
        ended.iter().all(|(_, said)| !said.contains("SECRET WORDS")),
        "{ended:#?}"
    );
}
