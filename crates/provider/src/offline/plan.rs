//! From intents and the results so far to the next calls or the answer.
//!
//! Each intent is a function that asks for results as if it waited for them. It is run from its beginning on every
//! step: what is in history is handed to it, and the first thing that is not becomes the next step's calls.

use super::answer::{self, Answer, Hit, bounded, count_before, files_in, hits, numbered, plural, totals};
use super::intent::{Counted, Focus, Intent, Listing, Part, Scope, Sought, Task, parse, shell_quote};
use super::lex::{Joint, Kind, Lang, extension, is_identifier, regex_escape};
use llm_worker::{CallId, Item, ModelEvent, ResultStatus, StopReason, ToolDefinition, ToolOutcome};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Model requests in one turn, the answer apart: what a person is ready to wait for.
const MAX_STEPS: usize = 40;
/// Calls in one step, so that a step's results stay within a few hundred KiB.
const BATCH: usize = 48;
/// Files one replacement may change: read, changed and checked within [`MAX_STEPS`].
const MAX_FILES: usize = 10 * BATCH;
/// Edits that one `Edit` takes.
const MAX_EDITS: usize = 100;
/// Pages of one long output that are read before an answer does without the rest.
const MAX_PAGES: usize = 12;
/// Matches asked of one search; `Grep` gives 200 unless told.
const MANY: u64 = 10_000;
/// How long a build or a test run may take.
const BUILD_SECONDS: u64 = 1_800;
const MANIFESTS: &str = "{Cargo.toml,package.json,pyproject.toml,setup.py,setup.cfg,go.mod,Makefile,makefile}";
const ENTRIES: &str = "{main.rs,lib.rs,bin/*.rs,__main__.py,main.py,app.py,cli.py,manage.py,main.go,main.c,main.cpp,\
                       index.js,index.mjs,index.ts,main.js,main.ts,server.js,app.js,Main.java}";

#[derive(Debug)]
pub(super) struct Call {
    name: &'static str,
    arguments: Value,
}

/// Why an intent cannot go on yet, or at all.
pub(super) enum Halt {
    Calls(Vec<Call>),
    /// A call failed.
    Failed(String),
    /// There is no way on.
    Stuck(String),
}
type Got<T> = Result<T, Halt>;

/// The next events for a history whose last turn is still open. Pure.
pub(super) fn next(items: &[Item], tools: &[ToolDefinition]) -> Vec<ModelEvent> {
    let start = items.iter().rposition(|item| matches!(item, Item::User { .. }));
    let (prompt, rest) = match start.and_then(|at| items.get(at..)).and_then(<[Item]>::split_first) {
        Some((Item::User { text }, rest)) => (text.as_str(), rest),
        Some(_) | None => ("", items),
    };
    match turn(prompt, Replay::new(rest, tools)) {
        Ok(text) => vec![ModelEvent::Text(text), ModelEvent::Stop(StopReason::EndTurn)],
        Err(calls) => {
            let started = |(index, call): (usize, Call)| {
                let name = call.name.to_owned();
                let fragment = call.arguments.to_string();
                [ModelEvent::CallStarted { index, name }, ModelEvent::CallArguments { index, fragment }]
            };
            let stop = ModelEvent::Stop(StopReason::ToolUse);
            calls.into_iter().enumerate().flat_map(started).chain([stop]).collect()
        }
    }
}

fn turn(prompt: &str, mut replay: Replay<'_>) -> Result<String, Vec<Call>> {
    let intents = match parse(prompt) {
        Ok(intents) => intents,
        Err(words) => return Ok(answer::fallback(&words, prompt)),
    };
    let mut texts = Vec::new();
    let mut failed = false;
    for (joint, intent) in &intents {
        if failed && *joint == Joint::Then {
            texts.push("The rest was not done, because what came before it failed.".to_owned());
            break;
        }
        match answer_one(intent, &mut replay) {
            Ok(answer) => {
                failed = !answer.ok;
                texts.push(answer.text);
            }
            Err(Halt::Calls(calls)) => return Err(calls),
            Err(Halt::Failed(why) | Halt::Stuck(why)) => {
                failed = true;
                texts.push(why);
            }
        }
    }
    Ok(texts.join("\n\n"))
}

fn answer_one(intent: &Intent, replay: &mut Replay<'_>) -> Got<Answer> {
    match intent {
        Intent::List { what, scope } => list(replay, what, scope),
        Intent::Find { glob, shown, scope } => find(replay, glob, shown, scope),
        Intent::Search { what, files, scope } => {
            let scope = replay_scope(replay, scope)?;
            search(replay, what, *files, &scope)
        }
        Intent::Count { what, scope } => {
            let scope = replay_scope(replay, scope)?;
            count(replay, what, &scope)
        }
        Intent::Read { path, part } => read(replay, path, part),
        Intent::SummariseFile { path } => summarise_file(replay, path),
        Intent::SummariseDir { path, focus } => summarise_dir(replay, path.as_deref(), focus),
        Intent::Replace { old, new, whole_word, scope } => replace(replay, old, new, *whole_word, scope),
        Intent::Create { path, content, overwrite } => create(replay, path, content, *overwrite),
        Intent::Run { task } => run(replay, task),
    }
}

/// The calls of this turn with their results, handed out in the order they were asked for.
struct Replay<'a> {
    done: Vec<(&'a str, &'a str, &'a ToolOutcome)>,
    at: usize,
    steps: usize,
    tools: &'a [ToolDefinition],
}

impl<'a> Replay<'a> {
    fn new(items: &'a [Item], tools: &'a [ToolDefinition]) -> Self {
        // Parallel calls end in any order: the id pairs them.
        let result =
            |item: &'a Item| if let Item::ToolResult { id, outcome } = item { Some((*id, outcome)) } else { None };
        let results: BTreeMap<CallId, &ToolOutcome> = items.iter().filter_map(result).collect();
        let call = |item: &'a Item| match item {
            Item::ToolCall { id, name, arguments } => Some((name.as_str(), arguments.as_str(), *results.get(id)?)),
            Item::User { .. } | Item::System { .. } | Item::Assistant { .. } => None,
            Item::Reasoning { .. } | Item::ToolResult { .. } => None,
        };
        Self { done: items.iter().filter_map(call).collect(), at: 0, steps: 0, tools }
    }

    fn ask(&mut self, calls: Vec<Call>) -> Got<Vec<&'a ToolOutcome>> {
        let given = self.done.get(self.at..).unwrap_or_default();
        if given.is_empty() && !calls.is_empty() {
            if let Some(missing) = calls.iter().find(|c| !self.tools.iter().any(|t| t.name == c.name)) {
                return Err(Halt::Stuck(format!(
                    "This needs the tool {}, which this run does not have.",
                    missing.name
                )));
            }
            if self.steps >= MAX_STEPS {
                return Err(Halt::Stuck(format!(
                    "Stopped after {MAX_STEPS} steps, before the end. Ask for a part of it."
                )));
            }
            return Err(Halt::Calls(calls));
        }
        let same = |(call, (name, arguments, _)): (&Call, &(&str, &str, &ToolOutcome))| {
            call.name == *name && call.arguments.to_string() == **arguments
        };
        if given.len() < calls.len() || !calls.iter().zip(given).all(same) {
            return Err(Halt::Stuck("The steps so far are not ones this planner takes. Ask again.".to_owned()));
        }
        self.at += calls.len();
        self.steps += usize::from(!calls.is_empty());
        Ok(given.iter().take(calls.len()).map(|(_, _, outcome)| *outcome).collect())
    }

    fn one(&mut self, call: Call) -> Got<&'a ToolOutcome> {
        self.ask(vec![call])?.first().copied().ok_or_else(|| Halt::Stuck("A result is missing.".to_owned()))
    }

    fn many(&mut self, calls: Vec<Call>) -> Got<Vec<&'a ToolOutcome>> {
        let mut calls = calls.into_iter().peekable();
        let mut out = Vec::new();
        while calls.peek().is_some() {
            out.extend(self.ask(calls.by_ref().take(BATCH).collect())?);
        }
        Ok(out)
    }

    /// The whole content of a result, and whether it really is the whole: what the host cut is read by its handle.
    fn full(&mut self, outcome: &ToolOutcome) -> Got<(String, bool)> {
        let Some(handle) = answer::cut_handle(&outcome.content) else {
            let whole = !outcome.content.lines().next_back().is_some_and(answer::is_note);
            return Ok((outcome.content.clone(), whole));
        };
        let mut text = String::new();
        let mut offset = 1;
        for _ in 0..MAX_PAGES {
            let page = self.one(call("ReadOutput", json!({"handle": handle, "lines": 2_000, "offset": offset})))?;
            let total = answer::total(&page.summary).unwrap_or(0);
            let lines = page.content.lines().count() as u64;
            if page.status != ResultStatus::Ok || lines == 0 {
                return Ok((text, false));
            }
            text.push_str(&page.content);
            text.push_str(if page.content.ends_with('\n') { "" } else { "\n" });
            offset += lines;
            if offset > total {
                return Ok((text, true));
            }
        }
        Ok((text, false))
    }
}

fn call(name: &'static str, arguments: Value) -> Call {
    Call { name, arguments }
}

fn grep(regex: &str, mode: &str, scope: &Scope) -> Call {
    let mut arguments = json!({"limit": MANY, "mode": mode, "pattern": regex});
    if let (Some(path), Some(map)) = (&scope.path, arguments.as_object_mut()) {
        map.insert("path".into(), json!(path));
    }
    if let (Some(glob), Some(map)) =
        (scope.glob.clone().or_else(|| scope.lang.map(Lang::glob)), arguments.as_object_mut())
    {
        map.insert("glob".into(), json!(glob));
    }
    call("Grep", arguments)
}

fn glob(pattern: &str, path: Option<&str>) -> Call {
    call("Glob", path.map_or_else(|| json!({"pattern": pattern}), |path| json!({"path": path, "pattern": pattern})))
}

fn totals_of(path: Option<&str>) -> Call {
    call("List", path.map_or_else(|| json!({"totals": true}), |path| json!({"path": path, "totals": true})))
}

/// A file named without its directory, found; a path with one is taken as it is.
fn settle(replay: &mut Replay<'_>, path: &str) -> Got<String> {
    let bare = extension(path).is_none() && !path.starts_with('.');
    if path.contains('/') || path == "." {
        return Ok(path.to_owned());
    }
    let pattern = match (bare, path.to_lowercase().as_str()) {
        (true, "readme") => "**/[Rr][Ee][Aa][Dd][Mm][Ee]*".to_owned(),
        (true, "license" | "changelog") => format!("**/{}*", path.to_uppercase()),
        _ => format!("**/{path}"),
    };
    let found = replay.one(glob(&pattern, None))?;
    let (text, _) = replay.full(found)?;
    let depth = |p: &str| p.matches('/').count();
    let paths: Vec<&str> = files_in(found, &text).collect();
    let least = paths.iter().map(|p| depth(p)).min();
    let nearest: Vec<&str> = paths.iter().copied().filter(|p| Some(depth(p)) == least).collect();
    match nearest.as_slice() {
        [] => Ok(path.to_owned()),
        [only] => Ok((*only).to_owned()),
        [first, ..] if bare => Ok((*first).to_owned()),
        several => Err(Halt::Stuck(format!("Several files are named {path}; say which:\n{}", bounded(several, 20)))),
    }
}

fn replay_scope(replay: &mut Replay<'_>, scope: &Scope) -> Got<Scope> {
    let path = match &scope.path {
        Some(path) if extension(path).is_some() => Some(settle(replay, path)?),
        other => other.clone(),
    };
    Ok(Scope { path, glob: scope.glob.clone(), lang: scope.lang })
}

fn list(replay: &mut Replay<'_>, what: &Listing, scope: &Scope) -> Got<Answer> {
    let path = scope.path.as_deref();
    if let Listing::Largest(wanted) = what {
        let wanted = wanted.unwrap_or(10);
        let (rows, head) = if scope.glob.is_some() || scope.lang.is_some() {
            let found = replay.one(grep("^", "count", scope))?;
            let (text, whole) = replay.full(found)?;
            answer::fail(found)?;
            let mut rows: Vec<(u64, String)> =
                answer::counts(&text).map(|(p, n)| (n, format!("{n:>8} lines  {p}"))).collect();
            rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            (
                rows.into_iter().map(|(_, row)| row).collect(),
                if whole { "" } else { " (of the part that could be read)" },
            )
        } else {
            let found = replay.one(totals_of(path))?;
            answer::fail(found)?;
            (
                totals(&found.content).largest,
                if wanted > 10 { " (the ten largest are all that is counted)" } else { "" },
            )
        };
        let rows: Vec<String> = rows.into_iter().take(wanted).collect();
        return Ok(Answer::good(format!("The largest files{}{head}:\n{}", scope.place(), rows.join("\n"))));
    }
    let depth = if matches!(what, Listing::Tree) { 4 } else { 1 };
    let found = replay
        .one(call("List", path.map_or_else(|| json!({"depth": depth}), |p| json!({"depth": depth, "path": p}))))?;
    answer::fail(found)?;
    let (text, _) = replay.full(found)?;
    let lines: Vec<&str> = text.lines().filter(|l| !matches!(what, Listing::Directories) || l.ends_with('/')).collect();
    Ok(Answer::good(format!("{}{}:\n{}", found.summary, scope.place(), bounded(&lines, 200))))
}

fn find(replay: &mut Replay<'_>, pattern: &str, shown: &str, scope: &Scope) -> Got<Answer> {
    let found = replay.one(glob(pattern, scope.path.as_deref()))?;
    answer::fail(found)?;
    let (text, _) = replay.full(found)?;
    let paths: Vec<&str> = files_in(found, &text).collect();
    let number = count_before(&found.summary, "file").unwrap_or(paths.len() as u64);
    if paths.is_empty() {
        return Ok(Answer::good(format!(
            "No file matches `{shown}`{} (ignored files are not looked at).",
            scope.place()
        )));
    }
    Ok(Answer::good(format!("{} for `{shown}`{}:\n{}", plural(number, "file"), scope.place(), bounded(&paths, 200))))
}

/// One search per language that is there, for definitions of `kinds`.
fn defined<'a>(
    replay: &mut Replay<'a>,
    kinds: &[Kind],
    name: Option<&str>,
    mode: &str,
    scope: &Scope,
) -> Got<Vec<&'a ToolOutcome>> {
    let by_name = |p: &String| extension(p).and_then(Lang::of);
    let langs: Vec<&Lang> = match scope
        .lang
        .or_else(|| scope.glob.as_ref().and_then(by_name))
        .or_else(|| scope.path.as_ref().and_then(by_name))
    {
        Some(lang) => vec![lang],
        None => {
            let found = replay.one(totals_of(scope.path.as_deref()))?;
            answer::fail(found)?;
            totals(&found.content).languages().into_iter().filter_map(|(lang, _, _)| lang).collect()
        }
    };
    let search = |lang: &&'static Lang| {
        let glob = scope.glob.clone().or_else(|| Some(lang.glob()));
        let scope = Scope { path: scope.path.clone(), glob, lang: None };
        lang.pattern(kinds, name).map(|regex| grep(&regex, mode, &scope))
    };
    let calls: Vec<Call> = langs.iter().filter_map(search).collect();
    if calls.is_empty() {
        return Err(Halt::Stuck(format!(
            "No file{} is in a language whose definitions are understood here.",
            scope.place()
        )));
    }
    let found = replay.ask(calls)?;
    found.iter().try_for_each(|outcome| answer::fail(outcome))?;
    Ok(found)
}

fn search(replay: &mut Replay<'_>, what: &Sought, files: bool, scope: &Scope) -> Got<Answer> {
    let mode = if files { "files" } else { "content" };
    let (found, shown, except): (Vec<&ToolOutcome>, String, BTreeSet<(String, u64)>) = match what {
        Sought::Regex { regex, shown, ignore_case } => {
            (vec![replay.one(cased(grep(regex, mode, scope), *ignore_case))?], format!("`{shown}`"), BTreeSet::new())
        }
        Sought::Defined { kinds, noun, name } => {
            let shown = name.as_ref().map_or_else(|| noun.clone(), |name| format!("{noun} of `{name}`"));
            (defined(replay, kinds, name.as_deref(), mode, scope)?, shown, BTreeSet::new())
        }
        Sought::Used { name } => {
            let regex = if is_identifier(name) { format!(r"\b{name}\b") } else { regex_escape(name) };
            let uses = replay.one(grep(&regex, mode, scope))?;
            let mut except = BTreeSet::new();
            if !files && count_before(&uses.summary, "match").is_some_and(|n| n > 0) {
                for outcome in defined(replay, super::intent::ALL_DEFS, Some(name), mode, scope)? {
                    let (text, _) = replay.full(outcome)?;
                    except.extend(hits(&text).map(|h| (h.path.to_owned(), h.line)));
                }
            }
            (vec![uses], format!("uses of `{name}`"), except)
        }
    };
    found.iter().try_for_each(|outcome| answer::fail(outcome))?;
    let mut text = String::new();
    let mut whole = true;
    for outcome in &found {
        let (more, all) = replay.full(outcome)?;
        let more = if count_before(&outcome.summary, if files { "file" } else { "match" }) == Some(0) {
            String::new()
        } else {
            more
        };
        text.push_str(&more);
        text.push_str(if more.is_empty() || more.ends_with('\n') { "" } else { "\n" });
        whole &= all;
    }
    if files {
        let paths: Vec<&str> = text.lines().filter(|l| !l.is_empty()).collect();
        let head =
            if paths.is_empty() { "No file has" } else { &format!("{} with", plural(paths.len() as u64, "file")) };
        return Ok(Answer::good(
            format!(
                "{head} {shown}{}{}\n{}",
                scope.place(),
                if paths.is_empty() { "." } else { ":" },
                bounded(&paths, 200)
            )
            .trim_end()
            .to_owned(),
        ));
    }
    let (defs, rows): (Vec<Hit<'_>>, Vec<Hit<'_>>) =
        hits(&text).partition(|h| except.contains(&(h.path.to_owned(), h.line)));
    Ok(Answer::good(answer::matches(&shown, &scope.place(), &rows, &defs, whole)))
}

fn cased(mut call: Call, ignore_case: bool) -> Call {
    if let (true, Some(map)) = (ignore_case, call.arguments.as_object_mut()) {
        map.insert("ignore_case".into(), json!(true));
    }
    call
}

fn count(replay: &mut Replay<'_>, what: &Counted, scope: &Scope) -> Got<Answer> {
    let place = scope.place();
    let narrowed = scope.glob.is_some() || scope.lang.is_some() || scope.path.as_deref().and_then(extension).is_some();
    let text = match what {
        Counted::Lines if narrowed => {
            let found = replay.one(grep("^", "count", scope))?;
            answer::fail(found)?;
            let (lines, files) = (count_before(&found.summary, "match"), count_before(&found.summary, "file"));
            format!("{}{place}, in {}.", plural(lines.unwrap_or(0), "line"), plural(files.unwrap_or(0), "file"))
        }
        Counted::Lines | Counted::Files if !narrowed => {
            let found = replay.one(totals_of(scope.path.as_deref()))?;
            answer::fail(found)?;
            let (lines, files) = (count_before(&found.summary, "line"), count_before(&found.summary, "file"));
            let (lines, files) = (plural(lines.unwrap_or(0), "line"), plural(files.unwrap_or(0), "file"));
            let table = totals(&found.content).by_language(6);
            if matches!(what, Counted::Lines) {
                format!("{lines}{place}, in {files}: {table}.")
            } else {
                format!("{files}{place}: {table}.")
            }
        }
        Counted::Lines | Counted::Files => {
            let pattern = scope.glob.clone().or_else(|| scope.lang.map(Lang::glob)).unwrap_or_else(|| "*".into());
            let pattern = if pattern.contains('/') { pattern } else { format!("**/{pattern}") };
            let found = replay.one(glob(&pattern, scope.path.as_deref()))?;
            answer::fail(found)?;
            format!("{}{place}.", plural(count_before(&found.summary, "file").unwrap_or(0), "file"))
        }
        Counted::Directories => {
            let path = scope.path.as_deref();
            let found = replay
                .one(call("List", path.map_or_else(|| json!({"depth": 32}), |p| json!({"depth": 32, "path": p}))))?;
            answer::fail(found)?;
            format!("{}{place}.", plural(count_before(&found.summary, "director").unwrap_or(0), "directory"))
        }
        Counted::Matches(Sought::Defined { kinds, noun, name }) => {
            let found = defined(replay, kinds, name.as_deref(), "count", scope)?;
            let sum = |word: &str| found.iter().filter_map(|o| count_before(&o.summary, word)).sum::<u64>();
            format!("{} {noun}{place}, in {}.", sum("match"), plural(sum("file"), "file"))
        }
        Counted::Matches(Sought::Regex { regex, shown, ignore_case }) => {
            let found = replay.one(cased(grep(regex, "content", scope), *ignore_case))?;
            answer::fail(found)?;
            let (text, whole) = replay.full(found)?;
            let rows: Vec<Hit<'_>> = hits(&text).collect();
            answer::occurrences(shown, &place, &rows, found, whole && !ignore_case, regex)
        }
        Counted::Matches(Sought::Used { name }) | Counted::FilesWith(Sought::Used { name }) => {
            let found = replay.one(grep(&format!(r"\b{}\b", regex_escape(name)), "files", scope))?;
            answer::fail(found)?;
            format!("{} with `{name}`{place}.", plural(count_before(&found.summary, "file").unwrap_or(0), "file"))
        }
        Counted::FilesWith(Sought::Regex { regex, shown, ignore_case }) => {
            let found = replay.one(cased(grep(regex, "files", scope), *ignore_case))?;
            answer::fail(found)?;
            format!("{} with `{shown}`{place}.", plural(count_before(&found.summary, "file").unwrap_or(0), "file"))
        }
        Counted::FilesWith(Sought::Defined { kinds, noun, name }) => {
            let found = defined(replay, kinds, name.as_deref(), "files", scope)?;
            let files = found.iter().filter_map(|o| count_before(&o.summary, "file")).sum();
            format!(
                "{} with {noun}{}{place}.",
                plural(files, "file"),
                name.as_ref().map_or_else(String::new, |n| format!(" of `{n}`"))
            )
        }
    };
    Ok(Answer::good(text))
}

fn read(replay: &mut Replay<'_>, path: &str, part: &Part) -> Got<Answer> {
    if let Part::Key(key) = part {
        return read_key(replay, path, key);
    }
    let path = settle(replay, path)?;
    let arguments = match part {
        Part::Lines(from, to) => json!({"limit": to - from + 1, "offset": from, "path": path}),
        Part::Last(lines) => {
            let first = replay.one(call("Read", json!({"limit": 1, "path": path})))?;
            answer::fail(first)?;
            let total = answer::total(&first.summary).unwrap_or(1);
            json!({"limit": lines, "offset": (total + 1).saturating_sub(*lines).max(1), "path": path})
        }
        Part::All | Part::Key(_) => json!({"path": path}),
    };
    let found = replay.one(call("Read", arguments))?;
    answer::fail(found)?;
    let (text, whole) = replay.full(found)?;
    let lines: Vec<&str> = text.lines().filter_map(|l| Some(numbered(l)?.1)).collect();
    let part = if whole { "" } else { " (cut)" };
    Ok(Answer::good(format!("{}{part}\n\n{}", found.summary, lines.join("\n"))))
}

fn read_key(replay: &mut Replay<'_>, path: &str, key: &str) -> Got<Answer> {
    let path = if path == "*" {
        let found = replay.one(glob(&format!("**/{MANIFESTS}"), None))?;
        let (text, _) = replay.full(found)?;
        let first = files_in(found, &text).filter(|p| !p.ends_with("akefile")).min_by_key(|p| p.matches('/').count());
        first.ok_or_else(|| Halt::Stuck(format!("No manifest was found to look up `{key}` in.")))?.to_owned()
    } else {
        settle(replay, path)?
    };
    let scope = Scope { path: Some(path.clone()), ..Scope::default() };
    let word = regex_escape(key);
    for regex in [format!(r#"^\s*["']?{word}["']?\s*[.:=\s]"#), word] {
        let found = replay.one(cased(grep(&regex, "content", &scope), true))?;
        answer::fail(found)?;
        let (text, _) = replay.full(found)?;
        let lines: Vec<String> = hits(&text).map(|h| format!("{} (line {})", h.text.trim(), h.line)).collect();
        if !lines.is_empty() {
            return Ok(Answer::good(format!("{path}: {}", bounded(&lines, 8))));
        }
    }
    Ok(Answer::good(format!("`{key}` is not in {path}.")))
}

fn summarise_file(replay: &mut Replay<'_>, path: &str) -> Got<Answer> {
    let path = settle(replay, path)?;
    let lang = extension(&path).and_then(Lang::of);
    let scope = Scope { path: Some(path.clone()), ..Scope::default() };
    let kinds = super::intent::ALL_DEFS;
    let definitions = match lang.map(|l| (l.name, l.pattern(kinds, None))) {
        Some(("Markdown", _)) => r"^#+\s".to_owned(),
        Some((_, Some(pattern))) => pattern,
        Some((_, None)) | None => r"^\[.*\]|^\w+:".to_owned(),
    };
    let mut calls = vec![
        call("Read", json!({"limit": 60, "path": path})),
        grep(&definitions, "content", &scope),
        grep(super::intent::TODO, "count", &scope),
    ];
    calls.extend(lang.and_then(|l| l.pattern(&[Kind::Test], None)).map(|p| grep(&p, "count", &scope)));
    let found = replay.ask(calls)?;
    let [head, defs, todos, rest @ ..] = found.as_slice() else {
        return Err(Halt::Stuck("A result is missing.".into()));
    };
    answer::fail(head)?;
    let (text, whole) = replay.full(defs)?;
    let rows: Vec<String> = hits(&text).map(|h| format!("{:>6}  {}", h.line, answer::signature(h.text))).collect();
    let lines = answer::total(&head.summary).unwrap_or(head.content.lines().count() as u64);
    let mut out =
        format!("{path}: {}{}.", lang.map_or(String::new(), |l| format!("{}, ", l.name)), plural(lines, "line"));
    if let Some(about) = answer::about(&head.content) {
        out.push_str(&format!(" It says of itself: {about}"));
    }
    if !rows.is_empty() {
        let what = if lang.is_some_and(|l| !l.defs.is_empty()) { "definition" } else { "section" };
        let cut = if whole { "" } else { " at least" };
        out.push_str(&format!("\n\n{}{cut} (line, text):\n{}", plural(rows.len() as u64, what), bounded(&rows, 40)));
    }
    for (what, outcome) in [("TODO", *todos)].into_iter().chain(rest.iter().map(|o| ("test", *o))) {
        if let Some(n) = count_before(&outcome.summary, "match").filter(|n| *n > 0) {
            out.push_str(&format!("\n{}.", plural(n, what)));
        }
    }
    Ok(Answer::good(out))
}

fn summarise_dir(replay: &mut Replay<'_>, path: Option<&str>, focus: &Focus) -> Got<Answer> {
    let within = |pattern: &str| glob(&format!("**/{pattern}"), path);
    let scope = Scope { path: path.map(str::to_owned), ..Scope::default() };
    let found = replay.ask(vec![
        totals_of(path),
        within("[Rr][Ee][Aa][Dd][Mm][Ee]*"),
        within(ENTRIES),
        within(MANIFESTS),
        grep(super::intent::TODO, "count", &scope),
    ])?;
    let [tree, readmes, entries, manifests, todos] = found.as_slice() else {
        return Err(Halt::Stuck("A result is missing.".into()));
    };
    answer::fail(tree)?;
    let totals = totals(&tree.content);
    let entries: Vec<&str> = files_in(entries, &entries.content).collect();
    let entry_line = || {
        if entries.is_empty() {
            "Entry points: none of the usual names.".to_owned()
        } else {
            format!("Entry points: {}.", answer::some(&entries, 12))
        }
    };
    let languages = format!("Languages by lines: {}.", totals.by_language(8));
    match focus {
        Focus::Languages => return Ok(Answer::good(languages)),
        Focus::Entries => return Ok(Answer::good(entry_line())),
        Focus::All => {}
    }
    let nearest =
        |o: &ToolOutcome| files_in(o, &o.content).min_by_key(|p| (p.matches('/').count(), p.len())).map(str::to_owned);
    let (readme, manifest) = (nearest(readmes), nearest(manifests));
    let mut calls: Vec<Call> = totals
        .languages()
        .into_iter()
        .filter_map(|(lang, _, _)| lang)
        .filter_map(|lang| {
            Some(grep(
                &lang.pattern(&[Kind::Test], None)?,
                "count",
                &Scope { path: scope.path.clone(), glob: None, lang: Some(lang) },
            ))
        })
        .collect();
    let tests_asked = calls.len();
    calls.extend(manifest.as_ref().map(|m| {
        grep(
            r#"^\s*"?(?:name|version|description)"?\s*[:=]"#,
            "content",
            &Scope { path: Some(m.clone()), ..Scope::default() },
        )
    }));
    calls.extend(readme.as_ref().map(|r| call("Read", json!({"limit": 60, "path": r}))));
    let found = replay.ask(calls)?;
    let mut lines = Vec::new();
    let mut rest = found.iter().skip(tests_asked);
    let described = manifest.and_then(|m| Some((m, rest.next()?)));
    if let Some((readme, text)) = readme.and_then(|r| Some((r, rest.next()?))) {
        lines.extend(answer::about(&text.content).map(|about| format!("{about} ({readme})")));
    }
    if let Some((manifest, outcome)) = described {
        let keys: Vec<&str> = hits(&outcome.content).map(|h| h.text.trim().trim_end_matches(',')).take(3).collect();
        lines.extend((!keys.is_empty()).then(|| format!("{manifest}: {}.", keys.join(", "))));
    }
    lines.push(format!("{}{}.", tree.summary.trim_end_matches('.'), scope.place()));
    lines.push(languages);
    lines.push(entry_line());
    let sum = |word: &str| found.iter().take(tests_asked).filter_map(|o| count_before(&o.summary, word)).sum::<u64>();
    lines.push(format!("Tests: {} in {}.", sum("match"), plural(sum("file"), "file")));
    let noted = |word: &str| count_before(&todos.summary, word).unwrap_or(0);
    lines.push(format!("TODOs: {} in {}.", noted("match"), plural(noted("file"), "file")));
    lines.push(format!("Largest files:\n{}", bounded(&totals.largest, 5)));
    Ok(Answer::good(lines.join("\n")))
}

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

fn replace(replay: &mut Replay<'_>, old: &str, new: &str, whole_word: bool, scope: &Scope) -> Got<Answer> {
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
    let only = |path: &str| Scope { path: Some(path.to_owned()), ..Scope::default() };
    // Edit wants a file read before it changes it.
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
    if done.is_empty() {
        out = format!("Nothing replaced: `{old}` is not there as a word of its own{}.", scope.place());
    }
    if !longer.is_empty() {
        let verb =
            if whole_word { "Left alone, being longer words" } else { "Also changed, being inside longer words" };
        let longer: Vec<String> = longer.into_iter().map(|w| format!("`{w}`")).collect();
        out.push_str(&format!("\n{verb}: {}.", answer::some(&longer, 8)));
    }
    if !done.is_empty() && !new.contains(old) {
        let regex = if whole_word { format!(r"\b{literal}\b") } else { literal };
        let left = replay.one(grep(&regex, "files", &scope))?;
        let files: Vec<&str> = files_in(left, &left.content).collect();
        let rest = if files.is_empty() {
            "no `{}` is left".replace("{}", old)
        } else {
            format!("`{old}` is still in {}", answer::some(&files, 8))
        };
        out.push_str(&format!("\nChecked with a search: {rest}."));
    }
    if !problems.is_empty() {
        out.push_str(&format!("\nNot changed:\n{}", bounded(&problems, 20)));
    }
    Ok(Answer { text: out, ok: problems.is_empty() && !done.is_empty() })
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

fn create(replay: &mut Replay<'_>, path: &str, content: &str, overwrite: bool) -> Got<Answer> {
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

fn run(replay: &mut Replay<'_>, task: &Task) -> Got<Answer> {
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
