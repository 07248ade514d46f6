//! Results read and answers written: every number in an answer is found in a result here.

use super::intent::{Scope, Sought};
use super::lex::{Lang, is_word};
use llm_worker::{ResultStatus, ToolOutcome};
use std::collections::BTreeSet;
use std::fmt::Display;

/// What a call that succeeded found.
pub(super) struct Found {
    pub(super) summary: String,
    pub(super) text: String,
}

/// What a call found, or how it failed.
pub(super) fn good(outcome: &ToolOutcome) -> Result<Found, String> {
    let how = match outcome.status {
        ResultStatus::Ok => return Ok(Found { summary: outcome.summary.clone(), text: outcome.content.clone() }),
        ResultStatus::Error => "failed",
        ResultStatus::Refused => "was refused",
        ResultStatus::Cancelled => "was cancelled",
        ResultStatus::Interrupted => "was interrupted",
    };
    Err(format!("A step {how}: {}", bounded(outcome.text().lines(), 12)))
}

/// One match of a search.
pub(super) struct Hit<'a> {
    path: &'a str,
    pub(super) line: u64,
    pub(super) text: &'a str,
}

/// A row `path:line:text`.
fn hit(row: &str) -> Option<Hit<'_>> {
    row.match_indices(':').find_map(|(at, _)| {
        let (line, text) = row.get(at + 1..)?.split_once(':')?;
        Some(Hit { path: row.get(..at)?, line: line.parse().ok()?, text })
    })
}

pub(super) fn hits(content: &str) -> impl Iterator<Item = Hit<'_>> {
    content.lines().filter_map(hit)
}

/// A match on one line of an answer; other rows as they are.
pub(super) fn shown(row: &str) -> Option<String> {
    let hit = hit(row)?;
    Some(format!("{}:{}: {}", hit.path, hit.line, hit.text.trim().chars().take(160).collect::<String>()))
}

/// The rows of a result without the tool's notes at its end, such as `(200 of 534 matches are shown; …)`.
pub(super) fn rows(content: &str) -> impl Iterator<Item = &str> {
    content.lines().filter(|row| !(row.is_empty() || row.starts_with('(') && row.ends_with(')') && row.contains(' ')))
}

/// A search marks lines it cut with this.
pub(super) const CUT: &str = " [cut: the line has ";

/// The number in front of a word that begins so: 12 of `12 matches in 3 files` for `match`.
pub(super) fn count_before(summary: &str, word: &str) -> Option<u64> {
    let words: Vec<&str> = summary.split_whitespace().collect();
    words
        .windows(2)
        .find_map(|pair| if let [n, next] = pair { n.parse().ok().filter(|_| next.starts_with(word)) } else { None })
}

/// 200 and 340 of `src/a.rs: lines 1-200 of 340`; zero where there are none.
pub(super) fn total(summary: &str) -> (u64, u64) {
    let Some((before, after)) = summary.rsplit_once(" of ") else { return (0, 0) };
    let number = |text: Option<&str>| text.and_then(|t| t.parse().ok()).unwrap_or(0);
    (number(before.rsplit('-').next()), number(after.split(|c: char| !c.is_ascii_digit()).next()))
}

/// `12 tests in 3 files` over several searches; the files alone without a noun.
pub(super) fn counted(found: &[Found], noun: &str) -> String {
    let sum = |word: &str| found.iter().filter_map(|f| count_before(&f.summary, word)).sum::<u64>();
    let least = if found.iter().any(|f| f.summary.contains("at least")) { "at least " } else { "" };
    let files = plural(sum("file"), "file");
    if noun.is_empty() {
        format!("{least}{files}")
    } else {
        format!("{least}{} in {files}", plural(sum("match"), noun))
    }
}

/// `1 file`, `2 files`; a noun that ends in `s` stays as it is.
pub(super) fn plural(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 || noun.ends_with('s') { "" } else { "s" })
}

/// Rows, up to `most` of them, and how many more there are.
pub(super) fn bounded<S: Display>(rows: impl IntoIterator<Item = S>, most: usize) -> String {
    let mut rows = rows.into_iter();
    let mut out: Vec<String> = rows.by_ref().take(most).map(|row| row.to_string()).collect();
    let more = rows.count();
    out.extend((more > 0).then(|| format!("… and {more} more")));
    out.join("\n")
}

pub(super) fn place(path: Option<&str>) -> String {
    path.map(|path| format!(" in {path}")).unwrap_or_default()
}

impl Scope {
    /// " in *.rs in src", or nothing.
    pub(super) fn place(&self) -> String {
        let files = self.glob.clone().or_else(|| self.lang.map(|lang| format!("{} files", lang.name)));
        place(files.as_deref()) + &place(self.path.as_deref())
    }
}

impl Sought {
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text { shown, .. } => format!("`{shown}`"),
            Self::Defined { plural, name: Some(name), .. } => format!("{plural} of `{name}`"),
            Self::Defined { plural, name: None, .. } => (*plural).to_owned(),
        }
    }
}

/// The rows of `List` with totals: extension, files, lines.
fn extensions(content: &str) -> impl Iterator<Item = (&str, u64, u64)> {
    content.lines().skip(1).take_while(|row| !row.is_empty()).filter_map(|row| {
        let mut cells = row.split_whitespace();
        Some((cells.next()?, cells.next()?.parse().ok()?, cells.next()?.parse().ok()?))
    })
}

pub(super) fn by_extension(content: &str, most: usize) -> String {
    let show = |(ext, files, lines)| {
        let name = Lang::of(ext).map_or(ext, |lang| lang.name);
        format!("{name} {} in {}", plural(lines, "line"), plural(files, "file"))
    };
    bounded(extensions(content).map(show), most).replace('\n', ", ")
}

/// The languages whose files are there.
pub(super) fn languages(content: &str) -> Vec<&'static Lang> {
    let mut out: Vec<&'static Lang> = Vec::new();
    for lang in extensions(content).filter_map(|(ext, ..)| Lang::of(ext)) {
        out.extend(Some(lang).filter(|lang| !out.contains(lang)));
    }
    out
}

/// The largest files, one per row.
pub(super) fn largest(content: &str) -> impl Iterator<Item = String> {
    content.lines().skip_while(|row| *row != "largest files").skip(2).filter(|row| !row.starts_with('(')).filter_map(
        |row| {
            let (lines, rest) = row.trim_start().split_once(' ')?;
            let (bytes, path) = rest.trim_start().split_once(' ')?;
            Some(format!("{lines:>8} lines {bytes:>10} bytes  {}", path.trim_start()))
        },
    )
}

/// Where `word` stands in a line, and whether on its own.
fn places<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = (usize, bool)> + 'a {
    line.match_indices(word).map(move |(at, _)| {
        let before = line.get(..at).and_then(|s| s.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|s| s.chars().next());
        (at, !before.is_some_and(is_word) && !after.is_some_and(is_word))
    })
}

fn replace_words(line: &str, old: &str, new: &str) -> String {
    let (mut out, mut from) = (String::with_capacity(line.len()), 0);
    for (at, _) in places(line, old).filter(|(_, whole)| *whole) {
        out.extend([line.get(from..at).unwrap_or_default(), new]);
        from = at + old.len();
    }
    out + line.get(from..).unwrap_or_default()
}

/// How one file is changed.
pub(super) struct Edits {
    /// Old and new text, each replaced everywhere in the file, in order.
    pub(super) edits: Vec<(String, String)>,
    /// Places that will change; what `Edit` says when `None`.
    pub(super) places: Option<u64>,
    /// Longer words that contain the old one and stay.
    pub(super) longer: BTreeSet<String>,
}

/// `Edit` is literal. Where a file also has the old word inside longer ones, whole lines are replaced instead, and
/// the outcome is tried on the lines found before anything is changed.
pub(super) fn edits(found: &str, old: &str, new: &str, whole_word: bool) -> Result<Edits, String> {
    let lines: Vec<&str> = hits(found).map(|hit| hit.text).collect();
    let words =
        lines.iter().flat_map(|line| line.split(|c| !is_word(c))).filter(|word| word.contains(old) && *word != old);
    let longer: BTreeSet<String> = words.map(str::to_owned).collect();
    let all = found.lines().count() == lines.len() && !found.contains(CUT);
    match (whole_word, all, longer.is_empty()) {
        (true, false, _) => return Err("its lines are too many or too long to tell whole words apart".to_owned()),
        (false, _, _) => {
            return Ok(Edits { edits: vec![(old.to_owned(), new.to_owned())], places: None, longer: BTreeSet::new() });
        }
        (true, true, true) => return Ok(Edits { edits: vec![(old.to_owned(), new.to_owned())], places: None, longer }),
        (true, true, false) => {}
    }
    let wanted: Vec<String> = lines.iter().map(|line| replace_words(line, old, new)).collect();
    let places = lines.iter().map(|line| places(line, old).filter(|(_, whole)| *whole).count() as u64).sum();
    let mut order: BTreeSet<_> = lines.iter().zip(&wanted).filter(|(line, want)| **line != want.as_str()).collect();
    let (mut tried, mut edits): (Vec<String>, Vec<_>) =
        (lines.iter().map(|line| (*line).to_owned()).collect(), Vec::new());
    // The longest first, so that no line is changed as a part of another.
    while let Some((line, want)) = order.iter().copied().max_by_key(|(line, _)| line.len()) {
        order.remove(&(line, want));
        if tried.iter().any(|tried| tried.contains(*line)) {
            tried.iter_mut().for_each(|tried| *tried = tried.replace(*line, want));
            edits.push(((*line).to_owned(), want.clone()));
        }
    }
    if tried != wanted {
        return Err(format!("`{old}` is also part of longer words here and cannot be told apart line by line"));
    }
    Ok(Edits { edits, places: Some(places), longer })
}

/// What a file says of itself: the first paragraph of a text, or of the comment at its head. From `Read`'s rows.
pub(super) fn about(content: &str) -> Option<String> {
    const MARKS: &[&str] = &["//!", "///", "//", "/**", "/*", "\"\"\"", "'''", "*"];
    let mut words: Vec<&str> = Vec::new();
    for row in content.lines() {
        let line = row.split_once('\t').map_or(row, |(_, text)| text).trim();
        let bare = MARKS.iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).trim();
        let bare = bare.trim_end_matches("\"\"\"").trim_end_matches("*/").trim();
        let rule = bare.chars().all(|c| "=-~*_#".contains(c));
        let skip = rule || bare.starts_with(['#', '[', '!', '<', '|']) || bare.starts_with("use ");
        match (skip, words.is_empty()) {
            (true, true) => {}
            // a title with a rule below it
            (true, false) if rule && !bare.is_empty() => words.clear(),
            (true, false) => break,
            (false, _) => words.push(bare),
        }
    }
    let text = words.join(" ");
    let code = text.contains([';', '{', '=']) && words.len() < 2;
    (!text.is_empty() && !code).then(|| text.chars().take(600).collect())
}

/// What a command came to: how it ended, what its tests counted, what went wrong, its last lines.
pub(super) fn ran(command: &str, ended: &ToolOutcome, good: bool, tests: bool) -> String {
    let verdict = match (good, tests, ended.status) {
        (true, true, _) => "The tests pass",
        (true, false, _) => "Done",
        (false, _, ResultStatus::Refused) => "The command was refused",
        (false, _, ResultStatus::Cancelled) => "The command was cancelled",
        (false, _, ResultStatus::Interrupted) => "The command was interrupted",
        (false, true, ResultStatus::Ok | ResultStatus::Error) => "The tests fail",
        (false, false, ResultStatus::Ok | ResultStatus::Error) => "The command failed",
    };
    let rows: Vec<&str> = ended.content.lines().filter(|row| !row.trim().is_empty()).collect();
    let mut out = format!("{verdict}: `{command}`: {}\n", ended.summary);
    // Cargo says how each test program ended; a sum needs all of them, and the host cuts long outputs.
    let sums: Vec<String> =
        rows.iter().filter(|row| row.starts_with("test result: ")).map(|row| row.replace(';', "")).collect();
    let sum = |word: &str| sums.iter().filter_map(|row| count_before(row, word)).sum::<u64>();
    let summed = tests && !sums.is_empty() && !rows.iter().any(|row| row.contains("ReadOutput {"));
    if summed {
        out.push_str(&format!("{} passed, {} failed.\n", sum("passed"), sum("failed")));
    }
    let fault =
        |row: &&&str| ["FAILED", "error[", "error:", "panicked at", "FAIL: "].iter().any(|mark| row.contains(mark));
    let last = match (good, summed) {
        (true, true) => 0,
        (true, false) => 40,
        (false, _) => 15,
    };
    if !good {
        out.push_str(&format!("{}\n", bounded(rows.iter().filter(fault), 10)));
    }
    out.push_str(&rows.get(rows.len().saturating_sub(last)..).unwrap_or_default().join("\n"));
    out.trim_end().to_owned()
}

const EXAMPLES: &[&str] = &[
    "list the files in src",
    "list the largest files",
    "find files named config",
    "search for \"timeout\" in *.py",
    "where is parse_line defined",
    "where is Config used",
    "which files import json",
    "find all TODOs",
    "how many lines of rust code are there",
    "how many functions are in src/lib.rs",
    "show lines 10-20 of src/main.rs",
    "what is the version in Cargo.toml",
    "summarise src/lib.rs",
    "what does this project do",
    "replace `old_name` with `new_name` in *.rs, then run the tests",
    "create notes.txt with \"hello\"",
    "run `git status`",
];

/// The answer to what cannot be planned: nothing was done, what could be asked, how to get more.
pub(super) fn fallback(words: &str, prompt: &str) -> String {
    let low = prompt.to_lowercase();
    let parts = |text: &'static str| text.split(|c: char| !is_word(c)).filter(|word| word.len() > 2);
    let like = |word: &str| {
        low.split(|c: char| !is_word(c)).any(|w| w.len() > 2 && (w.starts_with(word) || word.starts_with(w)))
    };
    let mut nearest: Vec<&str> = EXAMPLES.to_vec();
    nearest.sort_by_key(|example| std::cmp::Reverse(parts(example).filter(|word| like(&word.to_lowercase())).count()));
    format!(
        "Not understood, and nothing was done: {:?}\n`offline` is {}.\nThe nearest it can do:\n  {}\n\
         For a language model: set OPENAI_API_KEY, or run `yoi run -m PROVIDER/NAME \"…\"`; `yoi models` lists what can be used.",
        words.chars().take(200).collect::<String>(),
        super::ABOUT,
        nearest.get(..3).unwrap_or_default().join("\n  ")
    )
}
