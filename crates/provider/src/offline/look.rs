//! The intents that only look: list, find, search, count, read, summarise.

use super::answer::{self, Answer, Hit, bounded, count_before, files_in, hits, numbered, plural, totals};
use super::intent::{ALL_DEFS, Counted, Focus, Listing, Part, Scope, Sought, TODO};
use super::lex::{Kind, Lang, extension, is_identifier, regex_escape};
use super::plan::{Call, Got, Halt, MANIFESTS, Replay, call, cased, glob, grep, settle, totals_of};
use llm_worker::ToolOutcome;
use serde_json::json;
use std::collections::BTreeSet;

/// Files a program usually begins in.
const ENTRIES: &str = "{main.rs,lib.rs,bin/*.rs,__main__.py,main.py,app.py,cli.py,manage.py,main.go,main.c,main.cpp,\
                       index.js,index.mjs,index.ts,main.js,main.ts,server.js,app.js,Main.java}";

pub(super) fn list(replay: &mut Replay<'_>, what: &Listing, scope: &Scope) -> Got<Answer> {
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

pub(super) fn find(replay: &mut Replay<'_>, pattern: &str, shown: &str, scope: &Scope) -> Got<Answer> {
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

pub(super) fn search(replay: &mut Replay<'_>, what: &Sought, files: bool, scope: &Scope) -> Got<Answer> {
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
                for outcome in defined(replay, ALL_DEFS, Some(name), mode, scope)? {
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

fn count_files(replay: &mut Replay<'_>, scope: &Scope) -> Got<String> {
    let pattern = scope.glob.clone().or_else(|| scope.lang.map(Lang::glob)).unwrap_or_else(|| "*".into());
    let pattern = if pattern.contains('/') { pattern } else { format!("**/{pattern}") };
    let found = replay.one(glob(&pattern, scope.path.as_deref()))?;
    answer::fail(found)?;
    let number = plural(count_before(&found.summary, "file").unwrap_or(0), "file");
    Ok(format!("{number}{}.", scope.place().replacen(" in ", ": ", 1)))
}

pub(super) fn count(replay: &mut Replay<'_>, what: &Counted, scope: &Scope) -> Got<Answer> {
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
        Counted::Lines | Counted::Files => count_files(replay, scope)?,
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

pub(super) fn read(replay: &mut Replay<'_>, path: &str, part: &Part) -> Got<Answer> {
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
            return Ok(Answer::good(format!("{path}: {}", bounded(&lines, 3))));
        }
    }
    Ok(Answer::good(format!("`{key}` is not in {path}.")))
}

pub(super) fn summarise_file(replay: &mut Replay<'_>, path: &str) -> Got<Answer> {
    let path = settle(replay, path)?;
    let lang = extension(&path).and_then(Lang::of);
    let scope = Scope { path: Some(path.clone()), ..Scope::default() };
    let kinds = ALL_DEFS;
    let definitions = match lang.map(|l| (l.name, l.pattern(kinds, None))) {
        Some(("Markdown", _)) => r"^#+\s".to_owned(),
        Some((_, Some(pattern))) => pattern,
        Some((_, None)) | None => r"^\[.*\]|^\w+:".to_owned(),
    };
    let mut calls = vec![
        call("Read", json!({"limit": 60, "path": path})),
        grep(&definitions, "content", &scope),
        grep(TODO, "count", &scope),
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

fn entry_points(found: &ToolOutcome) -> String {
    let entries: Vec<&str> = files_in(found, &found.content).collect();
    if entries.is_empty() {
        return "Entry points: none of the usual names.".to_owned();
    }
    format!("Entry points: {}.", answer::some(&entries, 12))
}

pub(super) fn summarise_dir(replay: &mut Replay<'_>, path: Option<&str>, focus: &Focus) -> Got<Answer> {
    let within = |pattern: &str| glob(&format!("**/{pattern}"), path);
    let scope = Scope { path: path.map(str::to_owned), ..Scope::default() };
    let found = replay.ask(vec![
        totals_of(path),
        within("[Rr][Ee][Aa][Dd][Mm][Ee]*"),
        within(ENTRIES),
        within(MANIFESTS),
        grep(TODO, "count", &scope),
    ])?;
    let [tree, readmes, entries, manifests, todos] = found.as_slice() else {
        return Err(Halt::Stuck("A result is missing.".into()));
    };
    answer::fail(tree)?;
    let totals = totals(&tree.content);
    let entry_line = || entry_points(entries);
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
