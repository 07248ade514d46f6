//! The embedded model through the real program and its real tools: phrasings over four trees, with every number
//! checked by the standard library alone.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests are tests through and through"
)]

mod oracle;
mod table;
mod trees;

use oracle::{snapshot, text};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;
use table::{End, Row};

/// Prompts that are asked at the same time.
const WORKERS: usize = 4;

/// The program with the embedded model in a tree.
fn yoi(root: &Path, home: &Path) -> Command {
    let mut yoi = Command::new(env!("CARGO_BIN_EXE_yoi"));
    for name in [
        "XDG_STATE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_CACHE_HOME",
    ] {
        yoi.env(name, home);
    }
    // What cargo tells a test of itself is none of the tree's business.
    yoi.env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    yoi.args(["run", "--ephemeral", "-m", "offline"])
        .current_dir(root)
        .stdin(std::process::Stdio::null());
    yoi
}

/// Why the end of a run is not what the row says, if it is not.
fn wrong(row: &Row, ended: &Output, before: &[(String, Vec<u8>)], root: &Path) -> Option<String> {
    let answer = String::from_utf8_lossy(&ended.stdout);
    let told = String::from_utf8_lossy(&ended.stderr);
    let code = if row.end == End::Done { 0 } else { 1 };
    if ended.status.code() != Some(code) {
        return Some(format!(
            "{}\nexit {:?}, not {code}:\n{answer}\n{told}",
            row.prompt,
            ended.status.code()
        ));
    }
    let error = match row.end {
        End::Done => "",
        End::NotDone => "error: the prompt was not carried out",
        End::Unread => "error: the prompt was not understood",
    };
    if !told.contains(error) || row.end == End::Done && told.contains("error: ") {
        return Some(format!("{}\nstandard error says:\n{told}", row.prompt));
    }
    let acted = told.lines().any(|line| {
        ["• Bash", "• Write", "• Edit"]
            .iter()
            .any(|call| line.starts_with(call))
    });
    if !row.acts && (acted || snapshot(root) != before) {
        return Some(format!(
            "{}\nsomething was changed or run:\n{told}",
            row.prompt
        ));
    }
    let after = (!(row.after)(root))
        .then(|| format!("{}\nthe files are wrong after:\n{answer}\n", row.prompt));
    row.check(&answer).or(after)
}

/// Asks everything the table has for a tree, what changes files in a tree of its own; how many rows, and how many of
/// them are not understood.
fn answered_right(tree: &str) -> (usize, usize) {
    let shared = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    trees::build(tree, shared.path());
    let before = snapshot(shared.path());
    let table = table::rows(tree, shared.path());
    let next = Mutex::new(table.iter());
    let bad = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(row) = next.lock().unwrap().next() else {
                return;
            };
            let own = tempfile::tempdir().unwrap();
            if row.acts {
                trees::build(tree, own.path());
            }
            let root = if row.acts { own.path() } else { shared.path() };
            let ended = yoi(root, home.path()).arg(row.prompt).output().unwrap();
            bad.lock()
                .unwrap()
                .extend(wrong(row, &ended, &before, root));
        }
    };
    thread::scope(|scope| (0..WORKERS).for_each(|_| drop(scope.spawn(work))));
    let bad = bad.into_inner().unwrap();
    assert!(
        bad.is_empty(),
        "{} of {} are wrong:\n\n{}",
        bad.len(),
        table.len(),
        bad.join("\n----\n")
    );
    (
        table.len(),
        table.iter().filter(|row| row.end == End::Unread).count(),
    )
}

#[test]
fn a_rust_crate_is_asked_about() {
    let (all, unread) = answered_right("rust");
    assert!(all >= 190 && unread >= 90, "{all} {unread}");
}

#[test]
fn a_python_package_is_asked_about() {
    let (all, unread) = answered_right("python");
    assert!(all >= 40 && unread >= 10, "{all} {unread}");
}

#[test]
fn a_javascript_package_is_asked_about() {
    let (all, unread) = answered_right("javascript");
    assert!(all >= 40 && unread >= 10, "{all} {unread}");
}

#[test]
fn a_tree_of_two_languages_is_asked_about() {
    let (all, unread) = answered_right("mixed");
    assert!(all >= 35 && unread >= 10, "{all} {unread}");
}

fn piped(root: &Path, home: &Path, prompt: &str, text: &str) -> Output {
    let file = home.join("piped");
    std::fs::write(&file, text).unwrap();
    yoi(root, home)
        .arg(prompt)
        .stdin(std::fs::File::open(file).unwrap())
        .output()
        .unwrap()
}

#[test]
fn piped_text_is_counted_and_searched_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    trees::build("rust", root.path());
    let diff = format!(
        "+one TODO\n-two FIXME\n+three\n{}\n",
        text(root.path(), "src/report.rs")
    );
    let with = |part: &str| {
        format!(
            "{} line",
            diff.lines().filter(|line| line.contains(part)).count()
        )
    };
    let table = [
        (
            "how many lines are there?",
            0,
            format!("{} lines", diff.lines().count()),
        ),
        (
            "count the lines in the diff",
            0,
            format!("{} lines", diff.lines().count()),
        ),
        ("how many TODOs are in it?", 0, with("TODO")),
        ("search for \"fn \"", 0, with("fn ")),
        ("find lines containing three", 0, "3: +three".to_owned()),
        ("review this", 1, "Not understood: `review this`".to_owned()),
        (
            "review this diff and list the risky lines",
            1,
            "Not understood: ".to_owned(),
        ),
        (
            "list the files",
            1,
            "Not understood: `list the files`".to_owned(),
        ),
        (
            "run the tests",
            1,
            "Not understood: `run the tests`".to_owned(),
        ),
    ];
    for (prompt, code, says) in table {
        let ended = piped(root.path(), home.path(), prompt, &diff);
        let answer = String::from_utf8_lossy(&ended.stdout);
        assert!(
            ended.status.code() == Some(code) && answer.contains(&says),
            "{prompt}: {says}\n{answer}"
        );
        assert!(
            code == 0 || answer.contains("language model"),
            "{prompt}: {answer}"
        );
    }
    // What is longer than a prompt reaches the planner in part only.
    let ended = piped(
        root.path(),
        home.path(),
        "count the lines",
        &"a line of text\n".repeat(40_000),
    );
    assert_eq!(
        ended.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&ended.stdout)
    );
    assert!(String::from_utf8_lossy(&ended.stdout).contains("only a part"));
}

#[test]
fn ten_kilobytes_are_no_request() {
    let root = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let texts = [
        "list the files and ".repeat(550),
        "x".repeat(10_000),
        "a, ".repeat(3_000),
        "don't ".repeat(1_500),
    ];
    for prompt in texts {
        let ended = yoi(root.path(), home.path()).arg(&prompt).output().unwrap();
        let answer = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.status.code(), Some(1), "{answer}");
        assert!(
            answer.starts_with("Not understood: ") && answer.len() < 2_000,
            "{answer}"
        );
    }
}

// After a prompt that is not understood a pod goes on; the result line and the schema say the same as the exit code.
#[test]
fn a_prompt_that_is_not_understood_is_told_in_every_form() {
    let root = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    trees::build("rust", root.path());
    std::fs::write(home.path().join("schema.json"), "{\"type\":\"object\"}").unwrap();
    let schema = home.path().join("schema.json").display().to_string();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_yoi"));
        for name in [
            "XDG_STATE_HOME",
            "XDG_CONFIG_HOME",
            "XDG_RUNTIME_DIR",
            "XDG_CACHE_HOME",
        ] {
            command.env(name, home.path());
        }
        let ended = command
            .args(["run", "-m", "offline"])
            .args(args)
            .current_dir(root.path());
        let ended = ended.stdin(std::process::Stdio::null()).output().unwrap();
        (
            ended.status.code(),
            String::from_utf8(ended.stdout).unwrap(),
            String::from_utf8(ended.stderr).unwrap(),
        )
    };
    assert_eq!(run(&["--pod", "p", "list the unused files"]).0, Some(1));
    let (code, out, _) = run(&["-c", "how many rust files are there?"]);
    assert!(code == Some(0) && out.contains("files"), "{out}");
    let (code, out, _) = run(&["--json", "list the unused files"]);
    let result = out.lines().last().unwrap();
    assert!(
        code == Some(1) && result.contains("\"exit\":1") && result.contains("was not understood"),
        "{result}"
    );
    assert!(out.contains("\"shortfall\":\"not_understood\""), "{out}");
    let (code, out, err) = run(&["--output-schema", &schema, "list the files"]);
    assert!(
        code == Some(1) && out.is_empty() && err.contains("cannot answer with JSON"),
        "{out}\n{err}"
    );
    assert_eq!(err.matches("step").count(), 1, "it is not corrected: {err}");
}
