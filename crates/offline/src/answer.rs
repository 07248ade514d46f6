//! Reading results and writing answers: every number in an answer comes from a result.

use crate::lang::{ALL_DEFS, LANGS, Lang};
use crate::lex::{extension, is_word};
use crate::results::{Got, failed};
use llm_worker::{ResultStatus, ToolOutcome};
use std::cmp::Reverse;
use std::fmt::Display;

/// Next steps for models, which are of no use to a person.
const TOOL_HINTS: [&str; 2] = [
    "; List or Glob shows the files that exist",
    "; give a directory, or use Read for a file",
];

/// The error of a tool in words for people.
fn for_people(text: &str) -> String {
    let text = TOOL_HINTS
        .iter()
        .find_map(|hint| text.strip_suffix(hint))
        .unwrap_or(text);
    let past = text
        .strip_suffix(" is past its end")
        .and_then(|text| text.split_once("; offset "));
    match past.and_then(|(has, line)| Some((has.split_once(" has ")?, line))) {
        Some(((path, lines), line)) => {
            format!("{path} has only {lines}; line {line} does not exist")
        }
        None => text.to_owned(),
    }
}

/// The result of a call, or its error as text.
pub(crate) fn good(outcome: &ToolOutcome) -> Result<&ToolOutcome, String> {
    let how = match outcome.status {
        ResultStatus::Ok => return Ok(outcome),
        ResultStatus::Error => return Err(bounded(for_people(&outcome.text()).lines(), 12)),
        ResultStatus::Refused => return Err(refused(&outcome.text())),
        ResultStatus::Cancelled => "was cancelled",
        ResultStatus::Interrupted => "was interrupted",
    };
    Err(format!(
        "A step {how}: {}",
        bounded(outcome.text().lines(), 12)
    ))
}

/// A refusal without its rule and its next step, which the program prints for the person.
fn refused(text: &str) -> String {
    let reason = text.lines().next().unwrap_or_default();
    let what = reason
        .split_once(" (`")
        .map_or(reason, |(what, _rule)| what);
    let secrets = if reason.contains("may hold secrets") {
        ", because the file may hold secrets"
    } else {
        ""
    };
    format!("Not done: {what}{secrets}.")
}

/// The path, the line and the text of a row `path:line:text`.
pub(crate) fn hit(row: &str) -> Option<(&str, u64, &str)> {
    row.match_indices(':').find_map(|(at, _)| {
        let (line, text) = row.get(at + 1..)?.split_once(':')?;
        Some((row.get(..at)?, line.parse().ok()?, text))
    })
}

/// A tool's note at the end of a result, such as `(200 of 534 matches are shown; …)`.
fn is_note(row: &str) -> bool {
    row.starts_with('(') && row.ends_with(')') && row.contains(' ')
}

/// The rows of a result without the tool's notes.
pub(crate) fn rows(content: &str) -> impl Iterator<Item = &str> {
    content
        .lines()
        .filter(|row| !row.is_empty() && !is_note(row))
}

/// The number in front of a word that begins so: 12 of `12 matches in 3 files` for `match`.
pub(crate) fn count_before(summary: &str, word: &str) -> Option<u64> {
    let mut pairs = summary
        .split_whitespace()
        .zip(summary.split_whitespace().skip(1));
    pairs.find_map(|(n, next)| n.parse().ok().filter(|_| next.starts_with(word)))
}

/// 340 of `src/a.rs: lines 1-200 of 340`; zero where there is none.
pub(crate) fn total(summary: &str) -> u64 {
    let digits = summary
        .rsplit_once(" of ")
        .and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// `12 tests in 3 files` over several searches; the files alone without a noun.
pub(crate) fn counted(found: &[&ToolOutcome], noun: &str) -> String {
    let sum = |word: &str| {
        found
            .iter()
            .filter_map(|f| count_before(&f.summary, word))
            .sum::<u64>()
    };
    let least = if found.iter().any(|f| f.summary.contains("at least")) {
        "at least "
    } else {
        ""
    };
    let files = plural(sum("file"), "file");
    if noun.is_empty() {
        format!("{least}{files}")
    } else {
        format!("{least}{} in {files}", plural(sum("match"), noun))
    }
}

/// `12 lines in 3 files match` over several searches.
pub(crate) fn counted_lines(found: &[&ToolOutcome]) -> String {
    let lines = found
        .iter()
        .filter_map(|f| count_before(&f.summary, "match"))
        .sum();
    format!("{} {}", counted(found, "line"), matching(lines))
}

/// The verb after a number of lines.
fn matching(lines: u64) -> &'static str {
    if lines == 1 { "matches" } else { "match" }
}

/// `1 file`, `2 files`, `2 classes`.
pub(crate) fn plural(n: u64, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {}", many(noun))
    }
}

pub(crate) fn many(noun: &str) -> String {
    format!("{noun}{}", if noun.ends_with('s') { "es" } else { "s" })
}

/// Rows, up to `most` of them, and how many more there are.
pub(crate) fn bounded<S: Display>(rows: impl IntoIterator<Item = S>, most: usize) -> String {
    let mut rows = rows.into_iter();
    let mut out: Vec<String> = rows
        .by_ref()
        .take(most)
        .map(|row| row.to_string())
        .collect();
    let more = rows.count();
    out.extend((more > 0).then(|| format!("… and {more} more")));
    out.join("\n")
}

/// The rows of `List` with totals: extension, files, lines.
fn extensions(content: &str) -> impl Iterator<Item = (&str, u64, u64)> {
    content
        .lines()
        .skip(1)
        .take_while(|row| !row.is_empty())
        .filter_map(|row| {
            let mut cells = row.split_whitespace();
            Some((
                cells.next()?,
                cells.next()?.parse().ok()?,
                cells.next()?.parse().ok()?,
            ))
        })
}

pub(crate) fn by_extension(content: &str, most: usize) -> String {
    let show = |(ext, files, lines)| {
        let name = Lang::of(ext).map_or(ext, |lang| lang.name);
        format!(
            "{name} {} in {}",
            plural(lines, "line"),
            plural(files, "file")
        )
    };
    bounded(extensions(content).map(show), most).replace('\n', ", ")
}

/// The languages whose files are there.
pub(crate) fn languages(content: &str) -> Vec<&'static Lang> {
    let there = |lang: &&Lang| extensions(content).any(|(ext, ..)| Lang::of(ext) == Some(lang));
    LANGS.iter().filter(there).collect()
}

/// The lines, bytes and path of the largest files.
fn sizes(content: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    rows(content)
        .skip_while(|row| *row != "largest files")
        .skip(2)
        .filter_map(|row| {
            let (lines, rest) = row.trim_start().split_once(' ')?;
            let (bytes, path) = rest.trim_start().split_once(' ')?;
            Some((lines, bytes, path.trim_start()))
        })
}

/// The largest files, one per row.
pub(crate) fn largest(content: &str, most: usize) -> Vec<String> {
    let noun = |n: &str, one, more| if n == "1" { one } else { more };
    let show = |(lines, bytes, path)| {
        let line = noun(lines, "line ", "lines");
        let byte = noun(bytes, "byte ", "bytes");
        format!("{lines:>8} {line} {bytes:>10} {byte}  {path}")
    };
    sizes(content).take(most).map(show).collect()
}

/// Notes of a tool about parts that it could not read.
pub(crate) fn notes(content: &str) -> impl Iterator<Item = String> + '_ {
    let own = |row: &&str| {
        !["shown", "more lines follow", "did not fit"]
            .iter()
            .any(|word| row.contains(word))
    };
    content
        .lines()
        .filter(|row| is_note(row))
        .filter(own)
        .map(str::to_owned)
}

/// Said of a number of lines that match.
pub(crate) const ONCE: &str = " A line counts once, however often it matches.";

/// The requested part of the piped text. Only text that reached the planner is counted.
pub(crate) fn piped(text: &str, texts: Option<&[String]>, count: bool) -> Got<String> {
    if text.contains("ReadOutput {\"handle\":") && text.contains(" bytes left out; ") {
        return failed(
            "The piped text is too long: only a part of it gets here. Save it to a file and name that.",
        );
    }
    let Some(texts) = texts else {
        return Ok(format!(
            "{} in the piped text.",
            plural(text.split('\n').count() as u64, "line")
        ));
    };
    let found = text
        .lines()
        .enumerate()
        .filter(|(_, line)| texts.iter().any(|text| line.contains(text.as_str())));
    let found: Vec<String> = found
        .map(|(at, line)| format!("{}: {line}", at + 1))
        .collect();
    let lines = plural(found.len() as u64, "line");
    let verb = matching(found.len() as u64);
    let head = format!(
        "{lines} of the piped text {verb} `{}`",
        texts.join("` or `")
    );
    Ok(if count || found.is_empty() {
        format!("{head}.{ONCE}")
    } else {
        format!("{head}:\n{}", bounded(found, 100))
    })
}

/// Example requests; `FILE`, `DIR` and `ENDING` are replaced by names from the working directory.
const EXAMPLES: &str = "list the files in DIR; list the largest files; find files named config; find ENDING files; \
    search for \"timeout\" in ENDING; where is `main` defined; where is `main` used; which files import json; find all TODOs; \
    how many lines are in DIR; how many files are there; how many functions are in FILE; list the tests; show FILE; \
    show lines 1-20 of FILE; what is the version of this project; summarise FILE; what does this project do; \
    replace `old_name` with `new_name` in ENDING, then run the tests; create notes.txt with \"hello\"; run the tests; \
    run `git status`";

/// What only examples about source files contain.
const DEFINITIONS: [&str; 3] = ["functions", "`main`", "import"];

/// [`EXAMPLES`] with the largest file in a known language that needs no quotes, its directory and its ending; from
/// `List` with totals. Those that would not be understood with these names are left out.
pub(crate) fn examples(content: &str, is_understood: fn(&str) -> bool) -> Vec<String> {
    let plain = |path: &&str| path.chars().all(|c| is_word(c) || "./-".contains(c));
    let paths: Vec<&str> = sizes(content)
        .map(|(.., path)| path)
        .filter(plain)
        .collect();
    let defines = |path: &&str| {
        Lang::of_files(path).is_some_and(|lang| lang.pattern(ALL_DEFS, None).is_some())
    };
    let source = paths.iter().copied().find(defines);
    let other = paths.first().copied();
    let file = source.or(other).unwrap_or("src/lib.rs");
    // Nothing is defined in a project without a source file.
    let fits = |example: &&str| {
        source.is_some() || other.is_none() || !DEFINITIONS.iter().any(|w| example.contains(w))
    };
    let dir = file
        .rsplit_once('/')
        .map_or("this directory", |(dir, _)| dir);
    let ending = format!("*.{}", extension(file).unwrap_or("rs"));
    let fill = |text: &str| {
        text.replace("FILE", file)
            .replace("DIR", dir)
            .replace("ENDING", &ending)
    };
    EXAMPLES
        .split("; ")
        .filter(fits)
        .map(fill)
        .filter(|example| is_understood(example))
        .collect()
}

/// A description in one line, for lists and help.
pub const ABOUT: &str = "a rule-based planner that is built into yoi, not a language model";

const MODEL: &str = "For a language model: set OPENAI_API_KEY, or run `yoi run -m PROVIDER/MODEL \"…\"`; `yoi models` lists what can be used.";

pub(crate) fn help(examples: &[String]) -> String {
    format!(
        "`offline` is {}. It accepts prompts such as:\n  {}\nYou can join several of them with \"then\" or \"and\". Put \
         text in double quotes, and names and commands in backticks. In piped text, it can count lines and search.\n{MODEL}",
        ABOUT,
        examples.join("\n  ")
    )
}

/// The answer to a prompt that is not understood: the words, example requests, and how to get a language model.
pub(crate) fn not_understood(
    part: &str,
    why: &str,
    prompt: &str,
    mut examples: Vec<String>,
) -> String {
    let parts = |text: &str| {
        let low = text.to_lowercase();
        low.split(|c: char| !is_word(c))
            .filter(|word| word.len() > 2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let words = parts(prompt);
    let like = |word: &String| {
        words
            .iter()
            .any(|w| w.starts_with(word.as_str()) || word.starts_with(w.as_str()))
    };
    examples.sort_by_key(|example| Reverse(parts(example).into_iter().filter(like).count()));
    examples.truncate(3);
    let odd = part
        .chars()
        .take(200)
        .collect::<String>()
        .replace('\n', " ");
    let why = if why.is_empty() {
        String::new()
    } else {
        format!(" ({why})")
    };
    format!(
        "Not understood: `{odd}`{why}. Nothing was done.\n`offline` is {}.\nExamples of prompts that it accepts here:\n  {}\n\
         `yoi run -m offline help` prints examples of prompts. {MODEL}",
        ABOUT,
        examples.join("\n  ")
    )
}
