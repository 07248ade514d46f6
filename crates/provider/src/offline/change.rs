//! The intents that act: replace, create, run.

use super::answer::{self, Answer, bounded, count_before, files_in, hits, plural};
use super::intent::{Scope, Task, shell_quote};
use super::lex::{extension, is_identifier, regex_escape};
use super::plan::{BATCH, Got, Halt, MANIFESTS, Replay, call, glob, grep, replay_scope, settle};
use llm_worker::{ResultStatus, ToolOutcome};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Files one replacement may change: read, changed and checked within [`MAX_STEPS`].
const MAX_FILES: usize = 10 * BATCH;
/// Edits that one `Edit` takes.
const MAX_EDITS: usize = 100;
/// How long a build or a test run may take.
const BUILD_SECONDS: u64 = 1_800;

/// What is to be changed in one file, or why it is left alone.
struct Change {
    path: String,
    /// Old and new text, each replaced everywhere in the file, in order.
    edits: Vec<(String, String)>,
    /// Places that will change; from `Edit` itself when `None`.
    places: Option<u64>,
    /// Longer words that contain the old one and stay.
    longer: Vec<String>,
}

pub(super) fn replace(replay: &mut Replay<'_>, old: &str, new: &str, whole_word: bool, scope: &Scope) -> Got<Answer> {
    let scope = replay_scope(replay, scope)?;
    let literal = regex_escape(old);
    let found = replay.one(grep(&literal, "files", &scope))?;
    answer::fail(found)?;
    let (text, whole) = replay.full(found)?;
    let paths: Vec<&str> = files_in(found, &text).collect();
    if paths.is_empty() {
        return Ok(Answer::bad(format!("Nothing replaced: `{old}` does not occur{}.", scope.place())));
    }
    if !whole || paths.len() > MAX_FILES {
        return Ok(Answer::bad(format!(
            "Nothing replaced: {} is more than one run changes ({MAX_FILES}). Name a directory.",
            found.summary
        )));
    }
    let (mut changes, mut problems) = plan_changes(replay, &paths, old, new, whole_word)?;
    let longer: BTreeSet<String> = changes.iter().flat_map(|c| c.longer.iter().cloned()).collect();
    changes.retain(|c| !c.edits.is_empty());
    let edit = |c: &Change| {
        let edits: Vec<Value> =
            c.edits.iter().map(|(old, new)| json!({"new": new, "old": old, "replace_all": true})).collect();
        call("Edit", json!({"edits": edits, "path": c.path}))
    };
    let edited = replay.many(changes.iter().map(edit).collect())?;
    let mut done = Vec::new();
    let mut places = 0;
    for (change, outcome) in changes.iter().zip(edited) {
        if outcome.status == ResultStatus::Ok {
            let n = change.places.or_else(|| count_before(&outcome.summary, "replacement")).unwrap_or(0);
            places += n;
            done.push(format!("{n:>6}  {}", change.path));
        } else {
            problems.push(format!("{}: {}", change.path, outcome.summary));
        }
    }
    let mut out = format!(
        "Replaced `{old}` with `{new}`: {} in {}.\n{}",
        plural(places, "place"),
        plural(done.len() as u64, "file"),
        bounded(&done, 60)
    );
    if done.is_empty() && problems.is_empty() {
        out = format!("Nothing replaced: `{old}` is not there as a word of its own{}.", scope.place());
    }
    if !longer.is_empty() {
        let verb =
            if whole_word { "Left alone, being longer words" } else { "Also changed, being inside longer words" };
        let longer: Vec<String> = longer.into_iter().map(|w| format!("`{w}`")).collect();
        out.push_str(&format!("\n{verb}: {}.", answer::some(&longer, 8)));
    }
    if !done.is_empty() && !new.contains(old) {
        out.push_str(&still_there(replay, old, whole_word, &scope)?);
    }
    if !problems.is_empty() {
        out.push_str(&format!("\nNot changed:\n{}", bounded(&problems, 20)));
    }
    Ok(Answer { text: out, ok: problems.is_empty() && !done.is_empty() })
}

fn still_there(replay: &mut Replay<'_>, old: &str, whole_word: bool, scope: &Scope) -> Got<String> {
    let literal = regex_escape(old);
    let regex = if whole_word { format!(r"\b{literal}\b") } else { literal };
    let left = replay.one(grep(&regex, "files", scope))?;
    let files: Vec<&str> = files_in(left, &left.content).collect();
    let rest = if files.is_empty() {
        format!("no `{old}` is left")
    } else {
        format!("`{old}` is still in {}", answer::some(&files, 8))
    };
    Ok(format!("\nChecked with a search: {rest}."))
}

/// Looks at every file once: `Edit` wants it read, and the lines decide how it is changed.
fn plan_changes(
    replay: &mut Replay<'_>,
    paths: &[&str],
    old: &str,
    new: &str,
    whole_word: bool,
) -> Got<(Vec<Change>, Vec<String>)> {
    let literal = regex_escape(old);
    let only = |path: &str| Scope { path: Some(path.to_owned()), ..Scope::default() };
    let looks =
        paths.iter().flat_map(|p| [call("Read", json!({"limit": 1, "path": p})), grep(&literal, "content", &only(p))]);
    let looks = replay.many(looks.collect())?;
    let (mut changes, mut problems) = (Vec::new(), Vec::new());
    for (path, pair) in paths.iter().zip(looks.chunks(2)) {
        let [seen, lines] = pair else { continue };
        if let Some(failed) = [seen, lines].into_iter().find(|o| o.status != ResultStatus::Ok) {
            problems.push(format!("{path}: {}", failed.summary));
            continue;
        }
        let (text, whole) = replay.full(lines)?;
        let rows: Vec<&str> = hits(&text).map(|h| h.text).collect();
        match plan_change(path, old, new, whole_word, &rows, whole) {
            Ok(change) => changes.push(change),
            Err(why) => problems.push(format!("{path}: {why}")),
        }
    }
    Ok((changes, problems))
}

/// `Edit` is literal. Where a file also has the old word inside longer ones, whole lines are replaced instead, and
/// the outcome is tried on the lines found before anything is changed.
fn plan_change(path: &str, old: &str, new: &str, whole_word: bool, rows: &[&str], all: bool) -> Result<Change, String> {
    let longer: BTreeSet<String> = rows.iter().flat_map(|row| answer::longer_words(row, old)).collect();
    let longer: Vec<String> = if is_identifier(old) { longer.into_iter().collect() } else { Vec::new() };
    let change = |edits, places, longer| Change { path: path.to_owned(), edits, places, longer };
    if !whole_word {
        return Ok(change(vec![(old.to_owned(), new.to_owned())], None, longer));
    }
    if !all || rows.iter().any(|row| answer::is_cut(row)) {
        return Err("its lines are too many or too long to tell whole words apart".to_owned());
    }
    if longer.is_empty() {
        return Ok(change(vec![(old.to_owned(), new.to_owned())], None, longer));
    }
    let wanted: Vec<String> = rows.iter().map(|row| answer::replace_words(row, old, new)).collect();
    let places = rows.iter().map(|row| answer::count_words(row, old)).sum();
    let mut order: Vec<(&&str, &String)> =
        rows.iter().zip(&wanted).filter(|(row, want)| **row != want.as_str()).collect();
    order.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
    order.dedup();
    let mut tried: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
    let mut edits = Vec::new();
    for (row, want) in order {
        if tried.iter().any(|line| line.contains(*row)) {
            tried = tried.iter().map(|line| line.replace(*row, want)).collect();
            edits.push(((*row).to_owned(), want.clone()));
        }
    }
    if tried != wanted || edits.len() > MAX_EDITS {
        return Err(format!(
            "`{old}` is also part of longer words here ({}) and cannot be told apart line by line",
            answer::some(&longer, 4)
        ));
    }
    Ok(change(edits, Some(places), longer))
}

pub(super) fn create(replay: &mut Replay<'_>, path: &str, content: &str, overwrite: bool) -> Got<Answer> {
    let here = !path.starts_with('/') && !path.contains("..");
    let exists = here && {
        let found = replay.one(glob(path.trim_start_matches("./"), None))?;
        files_in(found, &found.content).any(|p| p == path.trim_start_matches("./"))
    };
    if exists && !overwrite {
        return Ok(Answer::bad(format!(
            "{path} exists already, and was not changed. To replace what is in it: overwrite {path} with \"…\""
        )));
    }
    if exists {
        answer::fail(replay.one(call("Read", json!({"limit": 1, "path": path})))?)?;
    }
    let written = replay.one(call("Write", json!({"content": content, "path": path})))?;
    Ok(if written.status == ResultStatus::Ok {
        Answer::good(format!("{}.", written.summary))
    } else {
        Answer::bad(answer::failure(written))
    })
}

pub(super) fn run(replay: &mut Replay<'_>, task: &Task) -> Got<Answer> {
    let (commands, slow) = match task {
        Task::Command(command) => (vec![command.clone()], false),
        Task::Script(path) => (vec![script(&settle(replay, path)?)?], false),
        Task::Tests => (project(replay, true)?, true),
        Task::Build => (project(replay, false)?, true),
    };
    let mut texts = Vec::new();
    let mut ok = true;
    for command in commands {
        let arguments =
            if slow { json!({"command": command, "timeout_s": BUILD_SECONDS}) } else { json!({"command": command}) };
        let ended = replay.one(call("Bash", arguments))?;
        let (output, _) = replay.full(ended)?;
        let good = ended.status == ResultStatus::Ok && ended.summary.starts_with("exit 0");
        texts.push(answer::ran(&command, ended, &output, good, matches!(task, Task::Tests)));
        ok &= good;
    }
    Ok(Answer { text: texts.join("\n\n"), ok })
}

fn script(path: &str) -> Got<String> {
    let file = shell_quote(path);
    Ok(match extension(path) {
        Some("py") => format!("python3 {file}"),
        Some("js" | "mjs" | "cjs") => format!("node {file}"),
        Some("sh" | "bash") => format!("bash {file}"),
        Some("go") => format!("go run {file}"),
        Some("rb") => format!("ruby {file}"),
        Some("rs") => format!("rustc -o \"${{TMPDIR:-/tmp}}/script\" {file} && \"${{TMPDIR:-/tmp}}/script\""),
        Some(_) | None => return Err(Halt::Stuck(format!("How to run {path} is not known; say: run `the command`"))),
    })
}

/// How this project is tested or built, from the manifests nearest to the working directory.
fn project(replay: &mut Replay<'_>, tests: bool) -> Got<Vec<String>> {
    let plain =
        |path: &str, regex: &str| grep(regex, "files", &Scope { glob: Some(path.to_owned()), ..Scope::default() });
    let found = replay.ask(vec![
        glob(&format!("**/{MANIFESTS}"), None),
        glob("**/{test_*,*_test,tests}.py", None),
        plain("package.json", r#""test"\s*:"#),
        plain("{Makefile,makefile}", r"^test\s*:"),
    ])?;
    let [manifests, python, npm, make] = found.as_slice() else {
        return Err(Halt::Stuck("A result is missing.".into()));
    };
    let manifests: Vec<&str> = files_in(manifests, &manifests.content).collect();
    let python: Vec<&str> = files_in(python, &python.content).collect();
    let least = manifests.iter().chain(&python).map(|p| p.matches('/').count()).min();
    let near = manifests
        .iter()
        .copied()
        .filter(|p| manifests.iter().map(|m| m.matches('/').count()).min() == Some(p.matches('/').count()));
    let mut commands = Vec::new();
    for path in near {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let lists = |o: &ToolOutcome| files_in(o, &o.content).any(|p| p == path);
        let command = match (name, tests) {
            ("Cargo.toml", true) => "cargo test --offline",
            ("Cargo.toml", false) => "cargo build --offline",
            ("go.mod", true) => "go test ./...",
            ("go.mod", false) => "go build ./...",
            ("package.json", true) if lists(npm) => "npm test",
            ("package.json", false) => "npm run build",
            ("Makefile" | "makefile", true) if lists(make) && manifests.len() == 1 => "make test",
            ("Makefile" | "makefile", false) if manifests.len() == 1 => "make",
            _ => continue,
        };
        commands.push(if dir.is_empty() {
            command.to_owned()
        } else {
            format!("cd {} && {command}", shell_quote(dir))
        });
    }
    if tests
        && !python.is_empty()
        && (commands.is_empty()
            || least == Some(0) && manifests.iter().any(|m| m.starts_with("pyproject") || m.starts_with("setup")))
    {
        let start = if python.iter().all(|p| p.starts_with("tests/")) { "tests" } else { "." };
        commands.push(format!(
            "if python3 -c 'import pytest' 2>/dev/null; then python3 -m pytest -q; else PYTHONPATH=src:. python3 -m unittest discover -s {start}; fi"
        ));
    }
    if commands.is_empty() {
        let what = if tests { "tested" } else { "built" };
        return Err(Halt::Stuck(format!(
            "How this project is {what} was not found out from its files; say: run `the command`"
        )));
    }
    commands.truncate(3);
    Ok(commands)
}
