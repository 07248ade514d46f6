//! `AGENTS.md` and `CLAUDE.md`: the user's, then the project's from its root down; told, bounded, and frozen with the
//! surface.

use crate::scene::{Scene, fifo};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

/// Runs once in a directory of the project; the line about instructions, and what the model got of them.
fn told(scene: &Scene, below: &str, flags: &[&str]) -> (String, String) {
    let model = scene.script("s.jsonl", &[json!({ "text": "done" })]);
    let dir = scene.file(below);
    let mut args = vec![
        "-C",
        dir.to_str().unwrap(),
        "run",
        "--pod",
        "told",
        "-m",
        &model,
        "go",
    ];
    args.extend(flags);
    let done = scene.yoi(&args).ends(0);
    let lines: Vec<&str> = done
        .err
        .lines()
        .filter(|line| line.starts_with("instructions: "))
        .collect();
    assert!(lines.len() <= 1, "{lines:?}");
    let surface = scene
        .records("told")
        .into_iter()
        .find(|record| record["k"] == "surface")
        .unwrap();
    scene.yoi(&["verify", "told"]).ends(0);
    scene.yoi(&["rm", "--purge", "told"]).ends(0);
    let system = surface["surface"]["system"].as_str().unwrap();
    let files = system
        .find("\n\nInstructions ")
        .map_or("", |at| &system[at + 2..]);
    (
        lines
            .first()
            .map(|line| (*line).to_owned())
            .unwrap_or_default(),
        files.to_owned(),
    )
}

#[test]
fn they_go_from_the_users_file_down_to_where_one_stands() {
    let scene = Scene::new();
    fs::create_dir_all(scene.file("a/b")).unwrap();
    assert_eq!(told(&scene, "a/b", &[]), (String::new(), String::new()));
    fs::write(scene.path("config/yoi/AGENTS.md"), "be brief\n").unwrap();
    scene
        .write("AGENTS.md", "x".repeat(1200))
        .write("CLAUDE.md", "not read beside the other");
    scene
        .write("a/CLAUDE.md", "of a")
        .write("a/b/AGENTS.md", "of b")
        .write("a/c/AGENTS.md", "not on the way");
    let (line, text) = told(&scene, "a/b", &[]);
    assert_eq!(
        line,
        "instructions: $XDG_CONFIG_HOME/yoi/AGENTS.md 0.1 kB, AGENTS.md 1.2 kB, a/CLAUDE.md 0.1 kB, \
         a/b/AGENTS.md 0.1 kB"
    );
    let project = "Instructions of the project";
    assert_eq!(
        text,
        format!(
            "Instructions from the user ($XDG_CONFIG_HOME/yoi/AGENTS.md):\nbe brief\n\n\
             {project} (AGENTS.md):\n{}\n\n{project} (a/CLAUDE.md):\nof a\n\n{project} (a/b/AGENTS.md):\nof b",
            "x".repeat(1200)
        )
    );
    assert!(told(&scene, "", &[]).1.ends_with(&"x".repeat(1200)));
    let none = (String::new(), String::new());
    assert_eq!(told(&scene, "a/b", &["--no-instructions"]), none);
    assert_eq!(told(&scene, "", &["-q"]).0, "");
    scene.config("instructions = false\n");
    assert_eq!(told(&scene, "a/b", &[]), none);
    scene.config("");
    // A project cannot take the user's own away.
    scene.write("yoi.toml", "instructions = false\n");
    assert_ne!(told(&scene, "a/b", &[]), none);
}

#[test]
fn links_stay_in_the_project_and_nothing_is_waited_for() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("home/.ssh")).unwrap();
    fs::write(scene.path("home/.ssh/id_rsa"), "PRIVATE KEY").unwrap();
    scene
        .write("docs/guide.md", "the guide")
        .write(".git/config", "token")
        .write(".env", "token");
    let agents = scene.file("AGENTS.md");
    let cases: [(&str, &str, &str); 8] = [
        (
            "docs/guide.md",
            "instructions: AGENTS.md 0.1 kB",
            "the guide",
        ),
        (
            "/etc/passwd",
            "instructions: skipped: AGENTS.md leads out of the project",
            "",
        ),
        (
            "../home/.ssh/id_rsa",
            "instructions: skipped: AGENTS.md leads out of the project",
            "",
        ),
        (
            ".git/config",
            "instructions: skipped: AGENTS.md is a link that is not followed",
            "",
        ),
        (
            ".env",
            "instructions: skipped: AGENTS.md is a link that is not followed",
            "",
        ),
        (
            "/dev/zero",
            "instructions: skipped: AGENTS.md leads out of the project",
            "",
        ),
        ("docs", "instructions: skipped: AGENTS.md ", ""),
        ("AGENTS.md", "instructions: skipped: AGENTS.md ", ""),
    ];
    for (target, line, text) in cases {
        symlink(target, &agents).unwrap();
        let (said, got) = told(&scene, "", &[]);
        assert!(said.starts_with(line), "{target}: {said}");
        assert!(
            got.ends_with(text) && got.is_empty() == text.is_empty(),
            "{target}: {got}"
        );
        fs::remove_file(&agents).unwrap();
    }
    fifo(&agents);
    let (said, got) = told(&scene, "", &[]);
    assert!(
        said.starts_with("instructions: skipped: AGENTS.md ") && got.is_empty(),
        "{said}"
    );
    fs::remove_file(&agents).unwrap();
    fs::create_dir(&agents).unwrap();
    assert!(
        told(&scene, "", &[])
            .0
            .starts_with("instructions: skipped: AGENTS.md ")
    );
    fs::remove_dir(&agents).unwrap();
    // The user's own may be anywhere, but not be waited for either.
    let own = scene.path("config/yoi/AGENTS.md");
    fifo(&own);
    assert!(
        told(&scene, "", &[])
            .0
            .ends_with("/AGENTS.md is not a regular file")
    );
    fs::remove_file(&own).unwrap();
    symlink("../../home/.ssh/id_rsa", &own).unwrap();
    assert!(told(&scene, "", &[]).1.ends_with("PRIVATE KEY"));
}

#[test]
fn a_large_file_is_cut_and_one_that_is_no_text_left_out() {
    let scene = Scene::new();
    scene.write("AGENTS.md", "");
    let file = fs::File::options()
        .write(true)
        .open(scene.file("AGENTS.md"))
        .unwrap();
    file.set_len(1 << 30).unwrap();
    assert_eq!(
        told(&scene, "", &[]),
        (
            "instructions: skipped: AGENTS.md is not text".to_owned(),
            String::new()
        )
    );
    scene.write("AGENTS.md", "all work and no play\n".repeat(10_000));
    let (line, text) = told(&scene, "", &[]);
    assert_eq!(line, "instructions: AGENTS.md 210.0 kB (cut to 32.8 kB)");
    assert!(
        text.len() < 33_000
            && text
                .ends_with("play\n[… cut here: the file has 210000 bytes, this is its beginning]")
    );
}

#[test]
fn a_pod_goes_on_with_those_it_has() {
    let scene = Scene::new();
    scene.write("AGENTS.md", "the first");
    let answers: Vec<_> = (0..3).map(|_| json!({ "text": "done" })).collect();
    let model = scene.script("s.jsonl", &answers);
    let run = || {
        scene
            .yoi(&["run", "--pod", "p", "-m", &model, "go"])
            .ends(0)
    };
    let changed = "the instruction files changed";
    assert!(!run().err.contains(changed));
    assert!(!run().err.contains(changed));
    scene.write("AGENTS.md", "the second");
    run().says(&[changed]);
    let surfaces: Vec<_> = scene
        .records("p")
        .into_iter()
        .filter(|record| record["k"] == "surface")
        .collect();
    assert_eq!(surfaces.len(), 1);
    assert!(
        surfaces[0]["surface"]["system"]
            .as_str()
            .unwrap()
            .ends_with("the first")
    );
    scene.sound("p");
}

// A project whose AGENTS.md was empty, or could not be read, ran without the CLAUDE.md beside it.
#[test]
fn an_empty_or_unreadable_file_hides_no_other() {
    let cases: [(&[u8], &str); 5] = [
        (b"", ""),
        (b" \r\n\t\n", ""),
        (b"\xef\xbb\xbf\r\n", ""),
        (b"a\0b", ", skipped: AGENTS.md is not text"),
        (b"d", ", skipped: AGENTS.md "),
    ];
    for (bytes, skipped) in cases {
        let scene = Scene::new();
        scene.write("CLAUDE.md", "\u{feff}of claude\r\nand more\r\n");
        if bytes == b"d" {
            fs::create_dir(scene.file("AGENTS.md")).unwrap();
        } else {
            scene.write("AGENTS.md", bytes);
        }
        let (line, text) = told(&scene, "", &[]);
        let want = format!("instructions: CLAUDE.md 0.1 kB{skipped}");
        assert!(
            line.starts_with(&want) && (line == want || bytes == b"d"),
            "{bytes:?}: {line}"
        );
        assert_eq!(
            text, "Instructions of the project (CLAUDE.md):\nof claude\r\nand more",
            "{bytes:?}"
        );
    }
}
