//! Directories beside the project: `--add-dir` reads, `--add-write-dir` writes, and neither takes the home directory,
//! keys or yoi's own files, by whatever name.

use crate::scene::{Done, Scene, finish};
use crate::workspace_files::{calling, results};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn write(path: &Path) -> (&'static str, Value) {
    ("Write", json!({ "path": text(path), "content": "new\n" }))
}

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": command }))
}

/// A directory with a file in it, beside the project.
fn beside(scene: &Scene, name: &str) -> String {
    fs::create_dir_all(scene.path(name)).unwrap();
    fs::write(scene.path(name).join("a.txt"), "old\n").unwrap();
    text(&scene.path(name).canonicalize().unwrap())
}

#[test]
fn one_flag_reads_and_the_other_writes() {
    let scene = Scene::new();
    let read = beside(&scene, "looked-at");
    let written = beside(&scene, "worked-in");
    let calls = |dir: &str| {
        [
            ("Read", json!({ "path": format!("{dir}/a.txt") })),
            write(&Path::new(dir).join("b.txt")),
            (
                "Edit",
                json!({ "path": format!("{dir}/a.txt"), "edits": [{ "old": "old", "new": "new" }] }),
            ),
            bash(&format!("cat {dir}/a.txt && echo x > {dir}/c.txt")),
        ]
    };
    let status = |done: &Done| {
        results(done)
            .into_iter()
            .map(|(status, _)| status)
            .collect::<Vec<_>>()
    };
    let flags = ["--add-dir", &read, "--add-write-dir", &written];
    let done = calling(&scene, &flags, &calls(&read));
    assert_eq!(
        status(&done),
        ["ok", "refused", "refused", "error"],
        "{:?}",
        results(&done)
    );
    let said = done
        .lines()
        .iter()
        .map(ToString::to_string)
        .collect::<String>();
    assert!(
        said.contains(&format!("start yoi with --add-write-dir {read}")) && said.contains("exit 1"),
        "{said}"
    );
    let names = |dir: &str| fs::read_dir(dir).unwrap().count();
    assert_eq!(
        (
            names(&read),
            fs::read_to_string(scene.path("looked-at/a.txt"))
                .unwrap()
                .as_str()
        ),
        (1, "old\n")
    );
    let done = calling(&scene, &flags, &calls(&written));
    assert_eq!(
        status(&done),
        ["ok", "ok", "ok", "ok"],
        "{:?}",
        results(&done)
    );
    assert_eq!(names(&written), 3);

    let started = done
        .lines()
        .into_iter()
        .find(|line| line["k"] == "host_started")
        .unwrap();
    assert_eq!(
        (&started["add_dirs"], &started["add_write_dirs"]),
        (&json!([read]), &json!([written])),
        "{started}"
    );
    let plain = calling(&scene, &[], &[])
        .lines()
        .into_iter()
        .find(|line| line["k"] == "host_started")
        .unwrap();
    assert!(
        plain.get("add_dirs").is_none() && plain.get("add_write_dirs").is_none(),
        "{plain}"
    );
    // Nothing is written under --read-only, and what is outside names the flag that would add it.
    let done = calling(
        &scene,
        &["--read-only", "--add-write-dir", &written],
        &calls(&written)[1..2],
    );
    assert_eq!(status(&done), ["refused"]);
    let done = calling(&scene, &[], &calls(&written)[1..2]);
    assert!(
        done.out.contains("start yoi with --add-write-dir "),
        "{}",
        done.out
    );
}

#[test]
fn what_is_added_takes_nothing_away() {
    let scene = Scene::new();
    let written = beside(&scene, "worked-in");
    fs::create_dir_all(scene.path("worked-in/sub")).unwrap();
    fs::create_dir_all(scene.file("sub")).unwrap();
    let sub = format!("{written}/sub");
    // The flags, and where a file is then written.
    let cases: [(&[&str], &Path); 4] = [
        (&["--add-dir", "."], &scene.file("one.txt")),
        (&["--add-dir", "sub"], &scene.file("sub/one.txt")),
        (
            &["--add-dir", &sub, "--add-write-dir", &written],
            &scene.path("worked-in/sub/one.txt"),
        ),
        (
            &["--add-dir", &written, "--add-write-dir", &sub],
            &scene.path("worked-in/sub/two.txt"),
        ),
    ];
    for (flags, path) in cases {
        let done = calling(
            &scene,
            flags,
            &[
                write(path),
                bash(&format!("echo x > {}.sh", path.display())),
            ],
        );
        let found = results(&done);
        assert!(
            found.iter().all(|(status, _)| status == "ok") && path.exists(),
            "{flags:?}: {found:?}"
        );
        assert!(path.with_extension("txt.sh").exists(), "{flags:?}");
    }
    assert_eq!(
        results(&calling(
            &scene,
            cases[3].0,
            &[write(&scene.path("worked-in/no.txt"))]
        ))[0]
            .0,
        "refused"
    );
}

#[test]
fn places_of_keys_and_of_yoi_are_added_by_no_name() {
    let scene = Scene::new();
    for dir in [
        "home/.ssh/deep",
        "home/work",
        "home/.config/app",
        "state/yoi/pods",
        "other",
        "kept/yoi",
    ] {
        fs::create_dir_all(scene.path(dir)).unwrap();
    }
    fs::write(scene.path("kept/yoi/AGENTS.md"), "").unwrap();
    symlink(
        scene.path("kept/yoi/AGENTS.md"),
        scene.path("config/yoi/AGENTS.md"),
    )
    .unwrap();
    symlink(scene.path("home/.ssh"), scene.path("other/link")).unwrap();
    symlink("link", scene.path("other/chain")).unwrap();
    let root = text(&scene.path(""));
    let withheld = [
        "home",
        "home/",
        "home/.",
        "home/work/..",
        "home/.ssh",
        "home/.ssh/deep",
        "home/.ssh/../.ssh//",
        "other/link",
        "other/chain",
        "other/chain/deep",
        "state/yoi",
        "state",
        "state/yoi/pods",
        "config",
        "config/yoi",
        "tmp",
        "kept",
        "kept/yoi",
        "",
        ".",
    ];
    for flag in ["--add-dir", "--add-write-dir"] {
        for dir in withheld
            .iter()
            .map(|dir| format!("{root}/{dir}"))
            .chain(["/".to_owned(), "/proc/self".to_owned()])
        {
            let done = scene.yoi(&["run", flag, &dir, "go"]).ends(2).says(&[
                flag,
                "would give access to",
                "help: ",
            ]);
            assert!(!done.err.contains("model: "), "{dir}: {}", done.err);
        }
        for dir in ["home/work", "other", "home/.config/app"] {
            scene
                .yoi(&[
                    "run",
                    flag,
                    &format!("{root}/{dir}"),
                    "how many files are here?",
                ])
                .ends(0);
        }
        scene
            .yoi(&["run", flag, &format!("{root}/none"), "go"])
            .ends(2)
            .says(&[flag, "choose an existing directory"]);
    }
    // The defaults below the home directory count where no variable says otherwise.
    let mut command = scene.command(&[
        "run",
        "--add-write-dir",
        &format!("{root}/home/.config"),
        "go",
    ]);
    command
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CONFIG_HOME");
    finish(command.spawn().unwrap())
        .ends(2)
        .says(&["would give access to"]);
}

#[test]
fn the_policy_table_holds_in_added_directories() {
    let scene = Scene::new();
    let written = beside(&scene, "worked-in");
    fs::create_dir_all(scene.path("worked-in/.git/hooks")).unwrap();
    for name in [
        ".git/config",
        ".git/hooks/post-commit",
        ".env",
        "sub/.env.local",
        "yoi.toml",
        "sub/Yoi.toml",
    ] {
        let done = calling(
            &scene,
            &["--add-write-dir", &written],
            &[write(&scene.path("worked-in").join(name))],
        );
        assert_eq!(results(&done)[0].0, "refused", "{name}");
        assert!(!scene.path("worked-in").join(name).exists(), "{name}");
    }
}
