//! The implementation of each request that is understood: the tool calls, and the answer from their results.

use crate::about::about;
use crate::answer::{
    self, ONCE, bounded, count_before, counted, counted_lines, hit, many, plural, rows, total,
};
use crate::grammar::{is_file, is_known};
use crate::lang::{ALL_DEFS, Lang};
use crate::lex::{extension, regex_escape, shell_quote};
use crate::results::{BATCH, Call, Got, Halt, Results, Scope, call, failed};
use crate::runs;
use llm_worker::ToolOutcome;
use serde_json::json;

/// Files one replacement may change: looked at, changed and checked within the steps of a turn.
const MAX_FILES: usize = 8 * BATCH;
/// The timeout of a build or a test run.
const BUILD_SECONDS: u64 = 1_800;

/// Files a program usually begins in.
const ENTRIES: &str = "{main,lib,__main__,app,cli,manage,index,server}.{rs,py,go,c,cpp,js,mjs,ts}";

/// Files that say what a project is.
pub(crate) const MANIFESTS: &str = "{Cargo.toml,package.json,pyproject.toml,setup.py,go.mod}";

/// Lines that match, or definitions of these kinds, under a name or any.
pub(crate) enum Sought {
    Text {
        regex: String,
        shown: String,
    },
    Defined {
        kinds: &'static str,
        noun: &'static str,
        name: Option<String>,
    },
}

impl Sought {
    fn shown(&self) -> String {
        match self {
            Self::Text { shown, .. } => format!("`{shown}`"),
            Self::Defined {
                noun,
                name: Some(name),
                ..
            } => format!("{} of `{name}`", many(noun)),
            Self::Defined {
                noun, name: None, ..
            } => many(noun),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Part {
    All,
    Lines(u64, u64),
    Last(u64),
}

/// Example requests for this directory; with placeholder names if it cannot be listed.
pub(crate) fn examples(
    results: &mut Results<'_>,
    is_understood: fn(&str) -> bool,
) -> Result<Vec<String>, Vec<Call>> {
    // What was not read for the examples is not reported.
    let notes = results.notes.clone();
    let found = results.one(Scope::default().totals());
    results.notes = notes;
    match found {
        Ok(found) => Ok(answer::examples(&found.content, is_understood)),
        Err(Halt::Calls(calls)) => Err(calls),
        Err(Halt::Failed(_) | Halt::NoPlace(_)) => Ok(answer::examples("", is_understood)),
    }
}

pub(crate) fn help(results: &mut Results<'_>, is_understood: fn(&str) -> bool) -> Got<String> {
    let examples = examples(results, is_understood).map_err(Halt::Calls)?;
    Ok(answer::help(&examples))
}

/// The paths a `Glob` gave, nearest to the working directory first.
fn near(found: &ToolOutcome) -> Vec<&str> {
    let mut paths: Vec<&str> = rows(&found.content).collect();
    paths.sort_by_key(|path| path.matches('/').count());
    paths
}

/// A glob of the files of this name: "readme" stands for any README.
fn named(path: &str) -> String {
    let either = |c: char| format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase());
    if is_known(path) {
        path.chars().map(either).chain(["*".to_owned()]).collect()
    } else {
        path.to_owned()
    }
}

/// Finds a file named without its directory; a path with one is unchanged.
fn settled(results: &mut Results<'_>, scope: &Scope) -> Got<Scope> {
    let name = scope
        .path
        .as_deref()
        .filter(|path| is_file(path) && !path.contains('/'));
    let Some(name) = name else {
        return Ok(scope.clone());
    };
    let found = results.one(Scope::default().files(&named(name)))?;
    let depth = |path: &str| path.matches('/').count();
    match near(found).as_slice() {
        [first, second, ..] if depth(first) == depth(second) && extension(name).is_some() => {
            failed(format!(
                "Several files are named {name}; say which:\n{}",
                bounded(rows(&found.content), 20)
            ))
        }
        paths => Ok(Scope {
            path: Some(paths.first().unwrap_or(&name).to_string()),
            ..scope.clone()
        }),
    }
}

/// The path of the file that is asked about.
fn file(results: &mut Results<'_>, scope: &Scope) -> Got<String> {
    Ok(settled(results, scope)?.path.unwrap_or_default())
}

pub(crate) fn list(results: &mut Results<'_>, scope: &Scope, depth: u64) -> Got<String> {
    let found = results.one(scope.list(depth))?;
    Ok(format!(
        "{}{}:\n{}",
        found.summary,
        scope.place(),
        bounded(found.content.lines(), 200)
    ))
}

pub(crate) fn largest(results: &mut Results<'_>, scope: &Scope, most: usize) -> Got<String> {
    let files = answer::largest(&results.one(scope.totals())?.content, most);
    let number = plural(files.len() as u64, "largest file");
    Ok(format!(
        "The {number} by lines{}:\n{}",
        scope.place(),
        files.join("\n")
    ))
}

pub(crate) fn find(results: &mut Results<'_>, scope: &Scope) -> Got<String> {
    let pattern = scope.glob.as_deref().unwrap_or("*");
    let found = results.one(scope.files(&named(pattern)))?;
    let place = scope.within();
    Ok(match count_before(&found.summary, "file") {
        Some(0) => format!("No file matches `{pattern}`{place}; ignored files are not looked at."),
        _ => format!(
            "{} for `{pattern}`{place}:\n{}",
            found.summary,
            bounded(rows(&found.content), 200)
        ),
    })
}

/// Searches for definitions, one for each language that has such.
fn definitions(
    langs: Vec<&'static Lang>,
    kinds: &str,
    name: Option<&str>,
    mode: &str,
    scope: &Scope,
) -> Vec<Call> {
    let search = |lang: &'static Lang| {
        let glob = scope.glob.clone().or_else(|| Some(lang.glob()));
        Some(
            Scope {
                glob,
                ..scope.clone()
            }
            .grep(&lang.pattern(kinds, name)?, mode),
        )
    };
    langs.into_iter().filter_map(search).collect()
}

/// Searches for something: once for a text, once per language for definitions.
fn look<'a>(
    results: &mut Results<'a>,
    scope: &Scope,
    what: &Sought,
    mode: &str,
) -> Got<Vec<&'a ToolOutcome>> {
    let (kinds, name) = match what {
        Sought::Text { regex, .. } => return results.all(vec![scope.grep(regex, mode)]),
        Sought::Defined { kinds, name, .. } => (kinds, name.as_deref()),
    };
    let known = [&scope.glob, &scope.path]
        .into_iter()
        .flatten()
        .find_map(|path| Lang::of_files(path));
    let langs = match known {
        Some(lang) => vec![lang],
        None => answer::languages(&results.one(scope.totals())?.content),
    };
    let calls = definitions(langs, kinds, name, mode, scope);
    if calls.is_empty() {
        let place = scope.place();
        return failed(match place.strip_prefix(" in ") {
            Some(files) => format!("`offline` does not know the language of {files}."),
            None => "`offline` does not know the language of any file here.".to_owned(),
        });
    }
    results.all(calls)
}

pub(crate) fn search(
    results: &mut Results<'_>,
    scope: &Scope,
    what: &Sought,
    files: bool,
    count: bool,
) -> Got<String> {
    let scope = settled(results, scope)?;
    let mode = match (files, count) {
        (true, _) => "files",
        (false, true) => "count",
        (false, false) => "content",
    };
    let found = look(results, &scope, what, mode)?;
    let shown = what.shown();
    let place = scope.place();
    let (head, note) = match what {
        _ if files => (format!("{} with {shown}{place}", counted(&found, "")), ""),
        Sought::Defined {
            noun, name: None, ..
        } => (counted(&found, noun) + &place, ""),
        Sought::Defined {
            noun,
            name: Some(name),
            ..
        } => {
            let number = found
                .iter()
                .filter_map(|found| count_before(&found.summary, "match"))
                .sum();
            (format!("{} of `{name}`{place}", plural(number, noun)), "")
        }
        Sought::Text { .. } => (format!("{} {shown}{place}", counted_lines(&found)), ONCE),
    };
    if count {
        return Ok(format!("{head}.{note}"));
    }
    let some = |found: &&&ToolOutcome| count_before(&found.summary, "file") != Some(0);
    let text: Vec<&str> = found
        .iter()
        .filter(some)
        .flat_map(|found| rows(&found.content))
        .collect();
    if text.is_empty() {
        return Ok(format!("Nothing found for {shown}{place}."));
    }
    let line = |(path, line, text): (_, _, &str)| {
        format!(
            "{path}:{line}: {}",
            text.trim().chars().take(160).collect::<String>()
        )
    };
    let shown = if files {
        bounded(text, 200)
    } else {
        bounded(text.into_iter().filter_map(hit).map(line), 100)
    };
    Ok(format!("{head}:\n{shown}"))
}

pub(crate) fn count(results: &mut Results<'_>, scope: &Scope, lines: bool) -> Got<String> {
    let scope = settled(results, scope)?;
    let place = scope.place();
    if scope.glob.is_none() && scope.path.as_deref().and_then(extension).is_none() {
        let found = results.one(scope.totals())?;
        return Ok(format!(
            "{}{place}: {}.",
            found.summary,
            answer::by_extension(&found.content, 8)
        ));
    }
    let number = match lines {
        true => {
            let found = results.one(scope.grep("^", "count"))?;
            if let (None, Some(path)) = (&scope.glob, &scope.path) {
                let lines = plural(count_before(&found.summary, "match").unwrap_or(0), "line");
                return Ok(format!("{path} has {lines}."));
            }
            counted(&[found], "line")
        }
        false => results
            .one(scope.files(scope.glob.as_deref().unwrap_or("*")))?
            .summary
            .clone(),
    };
    Ok(format!("{number}{place}."))
}

pub(crate) fn read(results: &mut Results<'_>, scope: &Scope, part: Part) -> Got<String> {
    let path = file(results, scope)?;
    let arguments = match part {
        Part::Lines(from, to) => json!({"limit": to - from + 1, "offset": from, "path": path}),
        Part::Last(lines) => {
            let all = total(
                &results
                    .one(("Read", json!({"limit": 1, "path": path})))?
                    .summary,
            );
            json!({"limit": lines, "offset": (all + 1).saturating_sub(lines).max(1), "path": path})
        }
        Part::All => json!({"path": path}),
    };
    let found = results
        .one(("Read", arguments))
        .map_err(|halt| match halt {
            Halt::Failed(why) if why.contains("may hold secrets") => {
                Halt::Failed(format!("Not shown: {path} may hold secrets."))
            }
            halt => halt,
        })?;
    let lines: Vec<&str> = found
        .content
        .lines()
        .filter_map(|line| Some(line.split_once('\t')?.1))
        .collect();
    Ok(format!("{}\n\n{}", found.summary, lines.join("\n")))
}

pub(crate) fn summarise_file(results: &mut Results<'_>, scope: &Scope) -> Got<String> {
    let path = file(results, scope)?;
    let lang = extension(&path).and_then(Lang::of);
    let (noun, parts) = match lang.and_then(|lang| lang.pattern(ALL_DEFS, None)) {
        Some(definitions) => ("definition", definitions),
        None => ("section", r"^#+\s|^\[.*\]|^\w+:".to_owned()),
    };
    let parts = Scope::of(&path).grep(&parts, "content");
    let found = results.all(vec![("Read", json!({"limit": 60, "path": path})), parts])?;
    let [head, parts] = found.as_slice() else {
        return failed("A result is missing.");
    };
    let signature = |(_, line, text): (_, _, &str)| {
        format!(
            "{line:>6}  {}",
            text.trim_end().trim_end_matches(['{', ':', ' '])
        )
    };
    let signatures = parts.content.lines().filter_map(hit).map(signature);
    let about = about(&head.content, lang)
        .map(|about| format!("\n{about}"))
        .unwrap_or_default();
    let kind = lang.map_or("text", |lang| lang.name);
    let lines = plural(total(&head.summary), "line");
    let parts = match count_before(&parts.summary, "match").unwrap_or(0) {
        0 => String::new(),
        number => format!("\n{}:\n{}", plural(number, noun), bounded(signatures, 40)),
    };
    Ok(format!("{path}: {kind}, {lines}.{about}{parts}"))
}

pub(crate) fn summarise_dir(results: &mut Results<'_>, scope: &Scope) -> Got<String> {
    let found = results.all(vec![
        scope.totals(),
        scope.files(&named("readme")),
        scope.files(ENTRIES),
    ])?;
    let [tree, readmes, entries] = found.as_slice() else {
        return failed("A result is missing.");
    };
    let mut lines = Vec::new();
    if let Some(path) = near(readmes).first() {
        let text = &results
            .one(("Read", json!({"limit": 60, "path": path})))?
            .content;
        lines.extend(about(text, None).map(|about| format!("{about} ({path})")));
    }
    let tests = results.all(definitions(
        answer::languages(&tree.content),
        "test",
        None,
        "count",
        scope,
    ))?;
    let entry_points = if near(entries).len() == 1 {
        "Entry point"
    } else {
        "Entry points"
    };
    let entries = bounded(near(entries), 12).replace('\n', ", ");
    let subject = if scope.path.is_none() {
        "The project"
    } else {
        "It"
    };
    let tests = match tests
        .iter()
        .filter_map(|found| count_before(&found.summary, "match"))
        .sum::<u64>()
    {
        0 => "no tests".to_owned(),
        _ => counted(&tests, "test"),
    };
    lines.extend([
        format!(
            "{}{}: {}.",
            tree.summary,
            scope.place(),
            answer::by_extension(&tree.content, 8)
        ),
        if entries.is_empty() {
            "No file has one of the usual names of an entry point.".to_owned()
        } else {
            format!("{entry_points}: {entries}.")
        },
        format!("{subject} has {tests}."),
        format!(
            "Largest files:\n{}",
            answer::largest(&tree.content, 5).join("\n")
        ),
    ]);
    Ok(lines.join("\n"))
}

pub(crate) fn replace(
    results: &mut Results<'_>,
    scope: &Scope,
    old: &str,
    new: &str,
    whole_word: bool,
) -> Got<String> {
    let scope = settled(results, scope)?;
    let literal = regex_escape(old);
    let regex = if whole_word {
        format!(r"\b{literal}\b")
    } else {
        literal.clone()
    };
    let found = results.one(scope.grep(&regex, "files"))?;
    let paths: Vec<&str> = rows(&found.content).collect();
    let number = count_before(&found.summary, "file");
    if number == Some(0) {
        return failed(format!(
            "Nothing replaced: `{old}` does not occur{}.",
            scope.place()
        ));
    }
    if number != Some(paths.len() as u64) || paths.len() > MAX_FILES {
        let why = format!("are more than one run changes ({MAX_FILES}). Name a directory.");
        return failed(format!("Nothing replaced: {} {why}", found.summary));
    }
    if whole_word {
        // `Edit` is literal: it would change the longer words of the same file, too.
        let longer = results.one(scope.grep(&format!(r"\w{literal}|{literal}\w"), "files"))?;
        let both: Vec<&str> = rows(&longer.content)
            .filter(|path| paths.contains(path))
            .collect();
        if !both.is_empty() {
            return failed(format!(
                "Nothing replaced: `{old}` is also a part of longer words in these files, which would change with it:\n\
                 {}\nTo replace it there as well: replace \"{old}\" with \"{new}\"",
                bounded(both, 20)
            ));
        }
    }
    // `Edit` requires that the file was read.
    let reads: Vec<Call> = paths
        .iter()
        .map(|path| ("Read", json!({"limit": 1, "path": path})))
        .collect();
    results.batches(&reads)?;
    let edit = |path: &&str| {
        (
            "Edit",
            json!({"edits": [{"new": new, "old": old, "replace_all": true}], "path": path}),
        )
    };
    let edits: Vec<Call> = paths.iter().map(edit).collect();
    let mut places = 0;
    let mut problems = Vec::new();
    for (path, outcome) in paths.iter().zip(results.batches(&edits)?) {
        match answer::good(outcome) {
            Ok(edited) => places += count_before(&edited.summary, "replacement").unwrap_or(0),
            Err(why) => problems.push(format!("{path}: {why}")),
        }
    }
    let files = plural((paths.len() - problems.len()) as u64, "file");
    let mut out = format!(
        "Replaced `{old}` with `{new}`: {} in {files}.\n{}",
        plural(places, "place"),
        bounded(&paths, 60)
    );
    if !new.contains(old) {
        let left = results.one(scope.grep(&regex, "files"))?;
        out.push_str(&format!(
            "\nChecked with a search for `{old}`: {}.",
            left.summary
        ));
    }
    if problems.is_empty() {
        Ok(out)
    } else {
        failed(format!("{out}\nNot changed:\n{}", bounded(problems, 20)))
    }
}

pub(crate) fn create(
    results: &mut Results<'_>,
    scope: &Scope,
    content: &str,
    overwrite: bool,
) -> Got<String> {
    let path = scope.path.as_deref().unwrap_or_default();
    let inside = path.trim_start_matches("./");
    let here = !path.starts_with('/') && !path.contains("..");
    let exists = here
        && rows(&results.one(Scope::default().files(inside))?.content).any(|path| path == inside);
    if exists && !overwrite {
        return failed(format!(
            "{path} already exists and was not changed. To replace what is in it: overwrite {path} with \"…\""
        ));
    }
    if exists {
        results.one(("Read", json!({"limit": 1, "path": path})))?;
    }
    Ok(format!(
        "{}.",
        results
            .one(("Write", json!({"content": content, "path": path})))?
            .summary
    ))
}

pub(crate) fn script(results: &mut Results<'_>, scope: &Scope) -> Got<String> {
    let path = file(results, scope)?;
    let known = extension(&path).and_then(|ext| SCRIPTS.iter().find(|(known, _)| *known == ext));
    let Some((_, program)) = known else {
        return failed(format!(
            "How to run {path} is unknown; write: run `COMMAND`"
        ));
    };
    run(
        results,
        &format!("{program} {}", shell_quote(&path)),
        false,
        None,
    )
}

pub(crate) fn run(
    results: &mut Results<'_>,
    command: &str,
    tests: bool,
    seconds: Option<u64>,
) -> Got<String> {
    let call = call("Bash", json!({"command": command, "timeout_s": seconds}));
    let outcome = results.ask(vec![call])?;
    let Some(ended) = outcome.first() else {
        return failed("A result is missing.");
    };
    runs::report(command, ended, tests).map_err(Halt::Failed)
}

/// The program that runs a file, by its extension.
const SCRIPTS: &[(&str, &str)] = &[
    ("py", "python3"),
    ("js", "node"),
    ("mjs", "node"),
    ("sh", "bash"),
    ("go", "go run"),
    ("rb", "ruby"),
];

const PYTHON_TESTS: &str = "if python3 -c 'import pytest' 2>/dev/null; then python3 -m pytest -q; \
                            else PYTHONPATH=src:. python3 -m unittest discover -s \"$(ls -d tests 2>/dev/null || echo .)\" -t .; fi";
/// A manifest, how what it describes is tested, how it is built.
const PROJECTS: &[(&str, &str, &str)] = &[
    (
        "Cargo.toml",
        "cargo test --offline",
        "cargo build --offline",
    ),
    ("go.mod", "go test ./...", "go build ./..."),
    ("package.json", "npm test", "npm run build"),
    ("pyproject.toml", PYTHON_TESTS, "python3 -m compileall -q ."),
    ("setup.py", PYTHON_TESTS, "python3 -m compileall -q ."),
];

/// Tests or builds the project, by the manifest nearest to the working directory.
pub(crate) fn project(results: &mut Results<'_>, scope: &Scope, tests: bool) -> Got<String> {
    let found = results.one(scope.files(MANIFESTS))?;
    let known = near(found).into_iter().find_map(|path| {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (_, test, build) = PROJECTS.iter().find(|(known, ..)| *known == name)?;
        Some((dir, if tests { test } else { build }))
    });
    let Some((dir, command)) = known else {
        return failed("No build file was found, so the command is unknown; write: run `COMMAND`");
    };
    let command = if dir.is_empty() {
        (*command).to_owned()
    } else {
        format!("cd {} && {command}", shell_quote(dir))
    };
    run(results, &command, tests, Some(BUILD_SECONDS))
}
