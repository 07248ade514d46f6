//! From intents and the results so far to the next calls or the answer.
//!
//! Each intent is a function that asks for results as if it waited for them. It is run from its beginning on every
//! step: what is in history is handed to it, and the first thing that is not becomes the next step's calls.

use crate::about::about;
use crate::answer::{self, Found, bounded, count_before, counted, hit, plural, rows, total};
use crate::grammar::is_known;
use crate::intent::{Intent, MANIFESTS, Misread, Part, Scope, Sought, parse};
use crate::lang::{ALL_DEFS, Lang};
use crate::lex::{attached, extension, regex_escape, shell_quote};
use crate::runs;
use llm_worker::{CallId, Item, ModelEvent, ResultStatus, Shortfall, StopReason, ToolDefinition, ToolOutcome};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Model requests in one turn, the answer apart: what a person is ready to wait for.
const MAX_STEPS: usize = 40;
/// Calls in one step, so that a step's results stay within a few hundred KiB.
const BATCH: usize = 48;
/// Files one replacement may change: looked at, changed and checked within [`MAX_STEPS`].
const MAX_FILES: usize = 8 * BATCH;
/// Matches asked of one search; `Grep` gives 200 unless told.
const MANY: u64 = 10_000;
/// How long a build or a test run may take.
const BUILD_SECONDS: u64 = 1_800;

/// Files a program usually begins in.
const ENTRIES: &str = "{main,lib,__main__,app,cli,manage,index,server}.{rs,py,go,c,cpp,js,mjs,ts}";

/// A tool's name and arguments.
type Call = (&'static str, Value);

/// Why an intent does not go on.
pub(crate) enum Halt {
    Calls(Vec<Call>),
    /// What went wrong, for the answer.
    Failed(String),
    /// A word in the place of a directory is none here.
    NoPlace(String),
}
type Got<T> = Result<T, Halt>;

fn failed<T>(why: impl Into<String>) -> Got<T> {
    Err(Halt::Failed(why.into()))
}

/// The next events for a history whose last turn is open, ending with one [`ModelEvent::Stop`]. Pure; time linear in
/// the history.
#[must_use]
pub fn next(items: &[Item], tools: &[ToolDefinition]) -> Vec<ModelEvent> {
    let asked = items.iter().enumerate().rev().find_map(|(at, item)| match item {
        Item::User { text } => Some((text.as_str(), items.get(at..)?)),
        _ => None,
    });
    let (prompt, turn) = asked.unwrap_or(("", items));
    match answer(prompt, Results::new(turn, tools)) {
        Ok((text, shortfall)) => {
            let shortfall = shortfall.map(ModelEvent::Shortfall);
            let events = std::iter::once(ModelEvent::Text(text)).chain(shortfall);
            events.chain([ModelEvent::Stop(StopReason::EndTurn)]).collect()
        }
        Err(calls) => {
            let events = calls.into_iter().enumerate().flat_map(|(index, (name, arguments))| {
                let fragment = arguments.to_string();
                [
                    ModelEvent::CallStarted { index, name: name.to_owned() },
                    ModelEvent::CallArguments { index, fragment },
                ]
            });
            events.chain([ModelEvent::Stop(StopReason::ToolUse)]).collect()
        }
    }
}

/// The answer, and whether it falls short of what was asked for.
type Told = (String, Option<Shortfall>);

fn answer(prompt: &str, mut results: Results<'_>) -> Result<Told, Vec<Call>> {
    let (head, piped) = attached(prompt);
    let intents = match parse(prompt) {
        Ok(intents) => intents,
        Err(misread) => return misunderstood(&misread, head, &mut results),
    };
    let (mut texts, mut ok, mut shortfall) = (Vec::new(), true, None);
    for (waits, intent) in &intents {
        if !ok && *waits {
            texts.push("The rest was not done, because what came before it failed.".to_owned());
            break;
        }
        let done = act(intent, piped.unwrap_or_default(), &mut results);
        ok = done.is_ok();
        match done {
            Ok(text) => texts.push(text),
            Err(Halt::Calls(calls)) => return Err(calls),
            // Nothing was done yet: the word was never a place here.
            Err(Halt::NoPlace(place)) if texts.is_empty() => {
                let misread = Misread { part: place, nearest: None, why: "there is no such file or directory here" };
                return misunderstood(&misread, head, &mut results);
            }
            Err(Halt::NoPlace(place)) => texts.push(format!("There is no file or directory `{place}` here.")),
            Err(Halt::Failed(why)) => texts.push(why),
        }
        shortfall = shortfall.or((!ok).then_some(Shortfall::NotDone));
    }
    texts.extend(results.notes.iter().cloned());
    Ok((texts.join("\n\n"), shortfall))
}

fn misunderstood(misread: &Misread, prompt: &str, results: &mut Results<'_>) -> Result<Told, Vec<Call>> {
    let mut examples = examples(results)?;
    examples.retain(|example| parse(example).is_ok());
    Ok((answer::not_understood(misread, prompt, examples), Some(Shortfall::NotUnderstood)))
}

/// What can be asked here; with other names where the working directory cannot be listed.
fn examples(results: &mut Results<'_>) -> Result<Vec<String>, Vec<Call>> {
    match results.one(totals(None)) {
        Ok(found) => Ok(answer::examples(&found.text)),
        Err(Halt::Calls(calls)) => Err(calls),
        Err(Halt::Failed(_) | Halt::NoPlace(_)) => Ok(answer::examples("")),
    }
}

fn act(intent: &Intent, piped: &str, results: &mut Results<'_>) -> Got<String> {
    match intent {
        Intent::List { depth, path } => list(results, *depth, path.as_deref()),
        Intent::Largest { most, path } => largest(results, *most, path.as_deref()),
        Intent::Find { glob, path } => find(results, glob, path.as_deref()),
        Intent::Search { what, files, count, scope } => search(results, what, *files, *count, scope),
        Intent::Count { lines, scope } => count(results, *lines, scope),
        Intent::Read { path, part } => read(results, path, part),
        Intent::SummariseFile { path } => summarise_file(results, path),
        Intent::SummariseDir { path } => summarise_dir(results, path.as_deref()),
        Intent::Replace { old, new, whole_word, scope } => replace(results, old, new, *whole_word, scope),
        Intent::Create { path, content, overwrite } => create(results, path, content, *overwrite),
        Intent::Command(command) => run(results, command, false, None),
        Intent::Script(path) => script(results, path),
        Intent::Project { tests, path } => {
            let command = project(results, *tests, path.as_deref())?;
            run(results, &command, *tests, Some(BUILD_SECONDS))
        }
        Intent::Help => Ok(answer::help(&examples(results).map_err(Halt::Calls)?)),
        Intent::Piped { texts, count } => answer::piped(piped, texts.as_deref(), *count),
    }
}

/// The calls of this turn with their results, handed out in the order they were asked for.
struct Results<'a> {
    done: Vec<(&'a str, &'a str, &'a ToolOutcome)>,
    at: usize,
    steps: usize,
    tools: &'a [ToolDefinition],
    /// What tools could not look at.
    notes: BTreeSet<String>,
}

impl<'a> Results<'a> {
    fn new(turn: &'a [Item], tools: &'a [ToolDefinition]) -> Self {
        // Parallel calls end in any order: the id pairs them.
        let result = |item: &'a Item| match item {
            Item::ToolResult { id, outcome } => Some((*id, outcome)),
            _ => None,
        };
        let ended: BTreeMap<CallId, &ToolOutcome> = turn.iter().filter_map(result).collect();
        let call = |item: &'a Item| match item {
            Item::ToolCall { id, name, arguments } => Some((name.as_str(), arguments.as_str(), *ended.get(id)?)),
            _ => None,
        };
        Self { done: turn.iter().filter_map(call).collect(), at: 0, steps: 0, tools, notes: BTreeSet::new() }
    }

    /// The results of these calls, or the calls as the next step.
    fn ask(&mut self, calls: Vec<Call>) -> Got<Vec<&'a ToolOutcome>> {
        let given = self.done.get(self.at..).unwrap_or_default();
        if given.is_empty() && !calls.is_empty() {
            return match calls.iter().find(|(name, _)| !self.tools.iter().any(|t| t.name == *name)) {
                Some((missing, _)) => failed(format!("This needs the tool {missing}, which this run does not have.")),
                None if self.steps >= MAX_STEPS => {
                    failed(format!("Stopped after {MAX_STEPS} steps, before the end. Ask for a part of it."))
                }
                None => Err(Halt::Calls(calls)),
            };
        }
        let same = |((name, arguments), (given, text, _)): (&Call, &(&str, &str, &ToolOutcome))| {
            name == given && serde_json::from_str::<Value>(text).is_ok_and(|given| given == *arguments)
        };
        if given.len() < calls.len() || !calls.iter().zip(given).all(same) {
            return failed("The steps so far are not ones this planner takes. Ask again.");
        }
        self.at += calls.len();
        self.steps += usize::from(!calls.is_empty());
        Ok(given.iter().take(calls.len()).map(|(_, _, outcome)| *outcome).collect())
    }

    /// As many steps as it takes.
    fn batches(&mut self, calls: &[Call]) -> Got<Vec<&'a ToolOutcome>> {
        let mut all = Vec::new();
        for batch in calls.chunks(BATCH) {
            all.extend(self.ask(batch.to_vec())?);
        }
        Ok(all)
    }

    /// What these calls found; the first that failed ends the intent.
    fn all(&mut self, calls: Vec<Call>) -> Got<Vec<Found>> {
        let asked = self.ask(calls.clone())?;
        let found = asked.into_iter().zip(&calls).map(|(outcome, (_, arguments))| {
            let absent = outcome.status == ResultStatus::Error && outcome.text().contains("does not exist");
            // What is written like a path is meant as one.
            let word = arguments["path"].as_str().filter(|path| absent && !path.contains(['/', '.']));
            answer::good(outcome).map_err(|why| word.map_or(Halt::Failed(why), |word| Halt::NoPlace(word.to_owned())))
        });
        let found = found.collect::<Got<Vec<Found>>>()?;
        self.notes.extend(found.iter().flat_map(|found| answer::notes(&found.text)));
        Ok(found)
    }

    fn one(&mut self, call: Call) -> Got<Found> {
        self.all(vec![call])?.pop().map_or_else(|| failed("A result is missing."), Ok)
    }
}

/// A call with what is given of its optional arguments.
fn call(name: &'static str, arguments: Value, optional: &[(&str, Option<&str>)]) -> Call {
    let Value::Object(mut map) = arguments else { return (name, arguments) };
    map.extend(optional.iter().filter_map(|(key, value)| Some(((*key).to_owned(), json!((*value)?)))));
    (name, Value::Object(map))
}

fn glob(pattern: &str, path: Option<&str>) -> Call {
    call("Glob", json!({"pattern": pattern}), &[("path", path)])
}

fn totals(path: Option<&str>) -> Call {
    call("List", json!({"totals": true}), &[("path", path)])
}

fn grep(regex: &str, mode: &str, scope: &Scope) -> Call {
    let arguments = json!({"limit": MANY, "mode": mode, "pattern": regex});
    call("Grep", arguments, &[("glob", scope.glob.as_deref()), ("path", scope.path.as_deref())])
}

fn only(path: &str) -> Scope {
    Scope { path: Some(path.to_owned()), ..Scope::default() }
}

/// The paths a `Glob` gave, nearest to the working directory first.
fn near(found: &Found) -> Vec<&str> {
    let mut paths: Vec<&str> = rows(&found.text).collect();
    paths.sort_by_key(|path| path.matches('/').count());
    paths
}

/// A glob of the files of this name: "readme" stands for any README.
fn named(path: &str) -> String {
    let either = |c: char| format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase());
    if is_known(path) { path.chars().map(either).chain(["*".to_owned()]).collect() } else { path.to_owned() }
}

/// A file named without its directory, found; a path with one is taken as it is.
fn settle(results: &mut Results<'_>, path: &str) -> Got<String> {
    if path.contains('/') {
        return Ok(path.to_owned());
    }
    let found = results.one(glob(&named(path), None))?;
    let depth = |path: &str| path.matches('/').count();
    match near(&found).as_slice() {
        [first, second, ..] if depth(first) == depth(second) && extension(path).is_some() => {
            failed(format!("Several files are named {path}; say which:\n{}", bounded(rows(&found.text), 20)))
        }
        [first, ..] => Ok((*first).to_owned()),
        [] => Ok(path.to_owned()),
    }
}

fn settled(results: &mut Results<'_>, scope: &Scope) -> Got<Scope> {
    let path = match &scope.path {
        Some(path) if extension(path).is_some() || is_known(path) => Some(settle(results, path)?),
        path => path.clone(),
    };
    Ok(Scope { path, ..scope.clone() })
}

fn list(results: &mut Results<'_>, depth: u64, path: Option<&str>) -> Got<String> {
    let found = results.one(call("List", json!({"depth": depth}), &[("path", path)]))?;
    Ok(format!("{}{}:\n{}", found.summary, answer::place(path), bounded(found.text.lines(), 200)))
}

fn largest(results: &mut Results<'_>, most: usize, path: Option<&str>) -> Got<String> {
    let found = results.one(totals(path))?;
    let files = answer::largest(&found.text, most);
    let number = plural(files.len() as u64, "largest file");
    Ok(format!("The {number} by lines{}:\n{}", answer::place(path), files.join("\n")))
}

fn find(results: &mut Results<'_>, pattern: &str, path: Option<&str>) -> Got<String> {
    let found = results.one(glob(&named(pattern), path))?;
    let place = answer::place(path);
    Ok(match count_before(&found.summary, "file") {
        Some(0) => format!("No file matches `{pattern}`{place}; ignored files are not looked at."),
        _ => format!("{} for `{pattern}`{place}:\n{}", found.summary, bounded(rows(&found.text), 200)),
    })
}

/// Searches for something: once for a text, once per language for definitions.
fn look(results: &mut Results<'_>, what: &Sought, mode: &str, scope: &Scope) -> Got<Vec<Found>> {
    let (kinds, name) = match what {
        Sought::Text { regex, .. } => return Ok(vec![results.one(grep(regex, mode, scope))?]),
        Sought::Defined { kinds, name, .. } => (kinds, name.as_deref()),
    };
    let known =
        [scope.glob.as_deref(), scope.path.as_deref()].into_iter().flatten().find_map(|p| Lang::of(extension(p)?));
    let langs = match scope.lang.or(known) {
        Some(lang) => vec![lang],
        None => answer::languages(&results.one(totals(scope.path.as_deref()))?.text),
    };
    let search = |lang: &'static Lang| {
        let glob = scope.glob.clone().or_else(|| Some(lang.glob()));
        Some(grep(&lang.pattern(kinds, name)?, mode, &Scope { glob, ..scope.clone() }))
    };
    let calls: Vec<Call> = langs.into_iter().filter_map(search).collect();
    if calls.is_empty() {
        return failed(format!("No file{} is in a language whose definitions are understood here.", scope.place()));
    }
    results.all(calls)
}

fn search(results: &mut Results<'_>, what: &Sought, files: bool, count: bool, scope: &Scope) -> Got<String> {
    let scope = settled(results, scope)?;
    let (mode, noun, with) = match what {
        _ if files => ("files", "", " with "),
        Sought::Defined { noun, name: None, .. } if count => ("count", *noun, ""),
        _ => (if count { "count" } else { "content" }, "matching line", " for "),
    };
    let found = look(results, what, mode, &scope)?;
    let (shown, place) = (what.shown(), scope.place());
    let head = counted(&found, noun) + &if with.is_empty() { String::new() } else { format!("{with}{shown}") } + &place;
    if count {
        let once = if noun == "matching line" { " A line counts once, however often it matches." } else { "" };
        return Ok(format!("{head}.{once}"));
    }
    let some = |found: &&Found| count_before(&found.summary, "file") != Some(0);
    let text: Vec<&str> = found.iter().filter(some).flat_map(|found| rows(&found.text)).collect();
    Ok(match text.is_empty() {
        true => format!("Nothing found for {shown}{place}."),
        false if files => format!("{head}:\n{}", bounded(text, 200)),
        false => {
            let show = |(path, line, text): (_, _, &str)| {
                format!("{path}:{line}: {}", text.trim().chars().take(160).collect::<String>())
            };
            format!("{head}:\n{}", bounded(text.into_iter().filter_map(hit).map(show), 100))
        }
    })
}

fn count(results: &mut Results<'_>, lines: bool, scope: &Scope) -> Got<String> {
    let scope = settled(results, scope)?;
    let (place, path) = (scope.place(), scope.path.as_deref());
    if scope.glob.is_none() && path.and_then(extension).is_none() {
        let found = results.one(totals(path))?;
        return Ok(format!("{}{place}: {}.", found.summary, answer::by_extension(&found.text, 8)));
    }
    if lines {
        let found = results.one(grep("^", "count", &scope))?;
        return Ok(format!("{}{place}.", counted(&[found], "line")));
    }
    let pattern = scope.glob.as_deref().unwrap_or("*");
    Ok(format!("{}{place}.", results.one(glob(pattern, path))?.summary))
}

fn read(results: &mut Results<'_>, path: &str, part: &Part) -> Got<String> {
    let path = settle(results, path)?;
    let arguments = match part {
        Part::Lines(from, to) => json!({"limit": to - from + 1, "offset": from, "path": path}),
        Part::Last(lines) => {
            let (_, all) = total(&results.one(("Read", json!({"limit": 1, "path": path})))?.summary);
            json!({"limit": lines, "offset": (all + 1).saturating_sub(*lines).max(1), "path": path})
        }
        Part::All => json!({"path": path}),
    };
    let found = results.one(("Read", arguments))?;
    let lines: Vec<&str> = found.text.lines().filter_map(|line| Some(line.split_once('\t')?.1)).collect();
    Ok(format!("{}\n\n{}", found.summary, lines.join("\n")))
}

fn summarise_file(results: &mut Results<'_>, path: &str) -> Got<String> {
    let path = settle(results, path)?;
    let lang = extension(&path).and_then(Lang::of);
    let parts = lang.and_then(|l| l.pattern(ALL_DEFS, None)).unwrap_or_else(|| r"^#+\s|^\[.*\]|^\w+:".to_owned());
    let found =
        results.all(vec![("Read", json!({"limit": 60, "path": path})), grep(&parts, "content", &only(&path))])?;
    let [head, parts] = found.as_slice() else { return failed("A result is missing.") };
    let signature =
        |(_, line, text): (_, _, &str)| format!("{line:>6}  {}", text.trim_end().trim_end_matches(['{', ':', ' ']));
    let signatures = parts.text.lines().filter_map(hit).map(signature);
    let about = about(&head.text, lang).map(|about| format!("\n{about}")).unwrap_or_default();
    let (kind, (_, lines)) = (lang.map_or("text", |lang| lang.name), total(&head.summary));
    let number = count_before(&parts.summary, "match").unwrap_or(0);
    Ok(format!(
        "{path}: {kind}, {}.{about}\n{}:\n{}",
        plural(lines, "line"),
        plural(number, if lang.is_some_and(Lang::has_definitions) { "definition" } else { "section" }),
        bounded(signatures, 40)
    ))
}

fn summarise_dir(results: &mut Results<'_>, path: Option<&str>) -> Got<String> {
    let scope = Scope { path: path.map(str::to_owned), ..Scope::default() };
    let found =
        results.all(vec![totals(path), glob(&named("readme"), path), glob(ENTRIES, path), glob(MANIFESTS, path)])?;
    let [tree, readmes, entries, manifests] = found.as_slice() else { return failed("A result is missing.") };
    let test = |lang: &'static Lang| {
        Some(grep(&lang.pattern("test", None)?, "count", &Scope { glob: Some(lang.glob()), ..scope.clone() }))
    };
    let mut calls: Vec<Call> = answer::languages(&tree.text).into_iter().filter_map(test).collect();
    let (tested, readme, manifest) = (calls.len(), near(readmes).first().copied(), near(manifests).first().copied());
    calls.extend(readme.map(|path| ("Read", json!({"limit": 60, "path": path}))));
    calls.extend(manifest.map(|path| grep(r#"^\s*"?(?:name|version|description)"?\s*[:=]"#, "content", &only(path))));
    let found = results.all(calls)?;
    let (tests, rest) = found.split_at_checked(tested).unwrap_or_default();
    let mut lines: Vec<String> = Vec::new();
    if let (Some(path), Some(text)) = (readme, rest.first()) {
        lines.extend(about(&text.text, None).map(|about| format!("{about} ({path})")));
    }
    if let (Some(path), Some(keys)) = (manifest, rest.last()) {
        let keys = bounded(keys.text.lines().filter_map(hit).map(|(.., text)| text.trim().trim_end_matches(',')), 3)
            .replace('\n', ", ");
        lines.extend((!keys.is_empty()).then(|| format!("{path}: {keys}")));
    }
    let entries = bounded(near(entries), 12).replace('\n', ", ");
    lines.extend([
        format!("{}{}: {}.", tree.summary, answer::place(path), answer::by_extension(&tree.text, 8)),
        format!("Entry points: {}.", if entries.is_empty() { "none of the usual names" } else { &entries }),
        format!("It has {}.", counted(tests, "test")),
        format!("Largest files:\n{}", answer::largest(&tree.text, 5).join("\n")),
    ]);
    Ok(lines.join("\n"))
}

fn replace(results: &mut Results<'_>, old: &str, new: &str, whole_word: bool, scope: &Scope) -> Got<String> {
    let scope = settled(results, scope)?;
    let literal = regex_escape(old);
    let regex = if whole_word { format!(r"\b{literal}\b") } else { literal.clone() };
    let found = results.one(grep(&regex, "files", &scope))?;
    let paths: Vec<&str> = rows(&found.text).collect();
    match count_before(&found.summary, "file") {
        Some(0) => return failed(format!("Nothing replaced: `{old}` does not occur{}.", scope.place())),
        Some(n) if n == paths.len() as u64 && paths.len() <= MAX_FILES => {}
        _ => {
            return failed(format!(
                "Nothing replaced: {} are more than one run changes ({MAX_FILES}). Name a directory.",
                found.summary
            ));
        }
    }
    if whole_word {
        // `Edit` is literal: it would change the longer words of the same file, too.
        let longer = results.one(grep(&format!(r"\w{literal}|{literal}\w"), "files", &scope))?;
        let both: Vec<&str> = rows(&longer.text).filter(|path| paths.contains(path)).collect();
        if !both.is_empty() {
            return failed(format!(
                "Nothing replaced: `{old}` is also a part of longer words in these files, which would change with it:\n\
                 {}\nTo replace it there as well: replace \"{old}\" with \"{new}\"",
                bounded(both, 20)
            ));
        }
    }
    // `Edit` wants the file read.
    let reads: Vec<Call> = paths.iter().map(|path| ("Read", json!({"limit": 1, "path": path}))).collect();
    results.batches(&reads)?;
    let edit = |path: &&str| ("Edit", json!({"edits": [{"new": new, "old": old, "replace_all": true}], "path": path}));
    let edits: Vec<Call> = paths.iter().map(edit).collect();
    let (mut done, mut places, mut problems) = (Vec::new(), 0, Vec::new());
    for (path, outcome) in paths.iter().zip(results.batches(&edits)?) {
        match answer::good(outcome) {
            Ok(edited) => {
                let n = count_before(&edited.summary, "replacement").unwrap_or(0);
                places += n;
                done.push(format!("{n:>6}  {path}"));
            }
            Err(why) => problems.push(format!("{path}: {why}")),
        }
    }
    let (files, number) = (plural(done.len() as u64, "file"), plural(places, "place"));
    let mut out = format!("Replaced `{old}` with `{new}`: {number} in {files}.\n{}", bounded(done, 60));
    if !new.contains(old) {
        let left = results.one(grep(&regex, "files", &scope))?;
        out.push_str(&format!("\nChecked with a search for `{old}`: {}.", left.summary));
    }
    if problems.is_empty() { Ok(out) } else { failed(format!("{out}\nNot changed:\n{}", bounded(problems, 20))) }
}

fn create(results: &mut Results<'_>, path: &str, content: &str, overwrite: bool) -> Got<String> {
    let inside = path.trim_start_matches("./");
    let here = !path.starts_with('/') && !path.contains("..");
    let exists = here && rows(&results.one(glob(inside, None))?.text).any(|path| path == inside);
    if exists && !overwrite {
        return failed(format!(
            "{path} exists already, and was not changed. To replace what is in it: overwrite {path} with \"…\""
        ));
    }
    if exists {
        results.one(("Read", json!({"limit": 1, "path": path})))?;
    }
    Ok(format!("{}.", results.one(("Write", json!({"content": content, "path": path})))?.summary))
}

fn script(results: &mut Results<'_>, path: &str) -> Got<String> {
    let path = settle(results, path)?;
    let known = extension(&path).and_then(|ext| SCRIPTS.iter().find(|(known, _)| *known == ext));
    let Some((_, program)) = known else {
        return failed(format!("How to run {path} is not known; say: run `the command`"));
    };
    run(results, &format!("{program} {}", shell_quote(&path)), false, None)
}

fn run(results: &mut Results<'_>, command: &str, tests: bool, seconds: Option<u64>) -> Got<String> {
    let arguments = match seconds {
        Some(seconds) => json!({"command": command, "timeout_s": seconds}),
        None => json!({"command": command}),
    };
    let outcome = results.ask(vec![("Bash", arguments)])?;
    let Some(ended) = outcome.first() else { return failed("A result is missing.") };
    runs::report(command, ended, tests).map_err(Halt::Failed)
}

/// What runs a file, by its extension.
const SCRIPTS: &[(&str, &str)] =
    &[("py", "python3"), ("js", "node"), ("mjs", "node"), ("sh", "bash"), ("go", "go run"), ("rb", "ruby")];

const PYTHON_TESTS: &str = "if python3 -c 'import pytest' 2>/dev/null; then python3 -m pytest -q; \
                            else PYTHONPATH=src:. python3 -m unittest discover -s \"$(ls -d tests 2>/dev/null || echo .)\" -t .; fi";
/// A manifest, how what it describes is tested, how it is built.
const PROJECTS: &[(&str, &str, &str)] = &[
    ("Cargo.toml", "cargo test --offline", "cargo build --offline"),
    ("go.mod", "go test ./...", "go build ./..."),
    ("package.json", "npm test", "npm run build"),
    ("pyproject.toml", PYTHON_TESTS, "python3 -m compileall -q ."),
    ("setup.py", PYTHON_TESTS, "python3 -m compileall -q ."),
];

/// How the project is tested or built, by the manifest nearest to the working directory.
fn project(results: &mut Results<'_>, tests: bool, path: Option<&str>) -> Got<String> {
    let found = results.one(glob(MANIFESTS, path))?;
    let Some(manifest) = near(&found).first().copied() else {
        return failed("How this project is built and tested was not found out from its files; say: run `the command`");
    };
    let (dir, name) = manifest.rsplit_once('/').unwrap_or(("", manifest));
    let command = PROJECTS
        .iter()
        .find(|(known, ..)| *known == name)
        .map_or("", |(_, test, build)| if tests { test } else { build });
    Ok(if dir.is_empty() { command.to_owned() } else { format!("cd {} && {command}", shell_quote(dir)) })
}
