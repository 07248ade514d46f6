//! Results read and answers written: every number in an answer is found in a result here.

use super::intent::Scope;
use super::lex::{Lang, is_word};
use super::plan::Halt;
use llm_worker::{ResultStatus, ToolOutcome};

/// What an intent came to.
pub(super) struct Answer {
    pub(super) text: String,
    /// What hangs on it with "then" may go on.
    pub(super) ok: bool,
}

impl Answer {
    pub(super) fn good(text: String) -> Self {
        Self { text, ok: true }
    }
    pub(super) fn bad(text: String) -> Self {
        Self { text, ok: false }
    }
}

/// One row of a search.
pub(super) struct Hit<'a> {
    pub(super) path: &'a str,
    pub(super) line: u64,
    pub(super) text: &'a str,
}

/// `path:line:text` rows; anything else is skipped.
pub(super) fn hits(content: &str) -> impl Iterator<Item = Hit<'_>> {
    content.lines().filter_map(|row| {
        row.match_indices(':').find_map(|(at, _)| {
            let (path, rest) = (row.get(..at)?, row.get(at + 1..)?);
            let (line, text) = rest.split_once(':')?;
            let line = line.parse().ok().filter(|_| !path.is_empty())?;
            Some(Hit { path, line, text: text.trim_end_matches('\r') })
        })
    })
}

/// `path:count` rows.
pub(super) fn counts(content: &str) -> impl Iterator<Item = (&str, u64)> {
    content.lines().filter_map(|row| {
        let (path, n) = row.rsplit_once(':')?;
        Some((path, n.trim().parse().ok()?))
    })
}

/// One path per line; none when the summary says so.
pub(super) fn files_in<'a>(outcome: &ToolOutcome, content: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
    let some = outcome.status == ResultStatus::Ok && count_before(&outcome.summary, "file") != Some(0);
    content.lines().filter(move |row| some && !row.trim().is_empty() && !is_note(row))
}

/// A tool's last words about what it left out: `(200 of 534 matches are shown; …)`.
pub(super) fn is_note(row: &str) -> bool {
    row.starts_with('(') && row.ends_with(')') && row.contains(' ')
}

/// The search cut this line.
pub(super) fn is_cut(text: &str) -> bool {
    text.contains(" [cut: the line has ")
}

/// The number in front of a word that begins so: 12 of `12 matches in 3 files` for `match`.
pub(super) fn count_before(summary: &str, word: &str) -> Option<u64> {
    let words: Vec<&str> = summary.split_whitespace().collect();
    words.windows(2).find_map(|pair| match pair {
        ["no" | "No", next] if next.starts_with(word) => Some(0),
        [number, next] if next.starts_with(word) => number.replace([',', '_'], "").parse().ok(),
        _ => None,
    })
}

/// The number after "of": 340 of `src/a.rs: lines 1-200 of 340`.
pub(super) fn total(summary: &str) -> Option<u64> {
    let number = summary.rsplit_once(" of ")?.1;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The handle by which `ReadOutput` gives the whole of a result that was cut.
pub(super) fn cut_handle(content: &str) -> Option<&str> {
    let row = content.lines().find(|row| row.contains("ReadOutput"))?;
    let after = row.split_once("handle")?.1;
    after.split(|c: char| !(is_word(c) || c == '-')).find(|word| !word.is_empty())
}

/// `{n:>6}\t{text}` as `Read` shows a line.
pub(super) fn numbered(row: &str) -> Option<(u64, &str)> {
    let (number, text) = row.split_once('\t')?;
    Some((number.trim().parse().ok()?, text))
}

/// A failed call ends its intent with what failed.
pub(super) fn fail(outcome: &ToolOutcome) -> Result<(), Halt> {
    if outcome.status == ResultStatus::Ok { Ok(()) } else { Err(Halt::Failed(failure(outcome))) }
}

/// What a failed call said.
pub(super) fn failure(outcome: &ToolOutcome) -> String {
    let how = match outcome.status {
        ResultStatus::Ok => "This went well",
        ResultStatus::Error => "This failed",
        ResultStatus::Refused => "This was refused",
        ResultStatus::Cancelled => "This was cancelled",
        ResultStatus::Interrupted => "This was interrupted",
    };
    let text = outcome.text();
    let rows: Vec<&str> = text.lines().collect();
    format!("{how}: {}", bounded(&rows, 12))
}

/// The table of `List` with totals.
pub(super) struct Totals {
    /// Extension, files, lines.
    rows: Vec<(String, u64, u64)>,
    /// The largest files, as the tool shows them.
    pub(super) largest: Vec<String>,
}

pub(super) fn totals(content: &str) -> Totals {
    let number = |text: &&str| text.replace(',', "").parse::<u64>().ok();
    let mut out = Totals { rows: Vec::new(), largest: Vec::new() };
    let mut files = false;
    for row in content.lines() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        files |= row.trim_start().starts_with("largest");
        match cells.as_slice() {
            [lines, bytes, path @ ..] if files && number(lines).is_some() && number(bytes).is_some() => {
                out.largest.push(format!("{lines:>8} lines {bytes:>10} bytes  {}", path.join(" ")));
            }
            [name @ .., files, lines, _bytes] if !name.is_empty() => {
                if let (Some(files), Some(lines)) = (number(files), number(lines)) {
                    out.rows.push((name.join(" ").trim_start_matches('.').to_owned(), files, lines));
                }
            }
            _ => {}
        }
    }
    out
}

impl Totals {
    /// Languages and unknown extensions with their files and lines, most lines first.
    pub(super) fn languages(&self) -> Vec<(Option<&'static Lang>, String, (u64, u64))> {
        let mut out: Vec<(Option<&'static Lang>, String, (u64, u64))> = Vec::new();
        for (ext, files, lines) in &self.rows {
            let lang = Lang::of(ext);
            let name = lang.map_or_else(|| ext.clone(), |l| l.name.to_owned());
            match out.iter_mut().find(|(_, known, _)| *known == name) {
                Some((_, _, (f, l))) => (*f, *l) = (*f + files, *l + lines),
                None => out.push((lang, name, (*files, *lines))),
            }
        }
        out.sort_by(|a, b| b.2.1.cmp(&a.2.1).then_with(|| a.1.cmp(&b.1)));
        out
    }

    pub(super) fn by_language(&self, most: usize) -> String {
        let show = |(_, name, (files, lines)): (_, String, (u64, u64))| {
            format!("{name} {} in {}", plural(lines, "line"), plural(files, "file"))
        };
        some(&self.languages().into_iter().map(show).collect::<Vec<_>>(), most)
    }
}

impl Scope {
    /// " in src, *.rs", or nothing.
    pub(super) fn place(&self) -> String {
        let files = self.glob.clone().or_else(|| self.lang.map(|l| format!("{} files", l.name)));
        match (files, &self.path) {
            (Some(files), Some(path)) => format!(" in {files} under {path}"),
            (Some(one), None) => format!(" in {one}"),
            (None, Some(one)) => format!(" in {one}"),
            (None, None) => String::new(),
        }
    }
}

/// `1 file`, `2 files`, `3 matches`, `4 directories`.
pub(super) fn plural(n: u64, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if n == 1 => format!("1 {noun}"),
        Some(stem) => format!("{n} {stem}ies"),
        None if noun.ends_with("ch") => format!("{n} {noun}es"),
        None => format!("{n} {noun}s"),
    }
}

/// Rows, up to `most` of them, and how many more there are.
pub(super) fn bounded<S: AsRef<str>>(rows: &[S], most: usize) -> String {
    let mut out: Vec<&str> = rows.iter().take(most).map(AsRef::as_ref).collect();
    let more = rows.len().saturating_sub(most);
    let note = format!("… and {more} more");
    out.extend((more > 0).then_some(note.as_str()));
    out.join("\n")
}

/// A few, separated by commas.
pub(super) fn some<S: AsRef<str>>(all: &[S], most: usize) -> String {
    bounded(all, most).replace('\n', ", ")
}

/// What a search found, uses and definitions apart.
pub(super) fn matches(shown: &str, place: &str, rows: &[Hit<'_>], defs: &[Hit<'_>], whole: bool) -> String {
    let show = |h: &Hit<'_>| format!("{}:{}: {}", h.path, h.line, h.text.trim().chars().take(160).collect::<String>());
    let at = |h: &Hit<'_>| format!("{}:{}", h.path, h.line);
    let defined = some(&defs.iter().map(at).collect::<Vec<_>>(), 6);
    let defined = if defs.is_empty() { String::new() } else { format!("\nDefined at {defined}.") };
    if rows.is_empty() {
        return format!("Nothing found for {shown}{place}.{defined}");
    }
    let mut files: Vec<&str> = rows.iter().map(|h| h.path).collect();
    files.sort_unstable();
    files.dedup();
    let least = if whole { "" } else { "at least " };
    let head = format!(
        "{least}{} in {} for {shown}{place}:",
        plural(rows.len() as u64, "matching line"),
        plural(files.len() as u64, "file")
    );
    format!("{head}\n{}{defined}", bounded(&rows.iter().map(show).collect::<Vec<_>>(), 100))
}

/// How often a text occurs; lines only where occurrences cannot be counted in what was shown.
pub(super) fn occurrences(
    shown: &str,
    place: &str,
    rows: &[Hit<'_>],
    found: &ToolOutcome,
    whole: bool,
    regex: &str,
) -> String {
    let lines = count_before(&found.summary, "match").unwrap_or(rows.len() as u64);
    let files = plural(count_before(&found.summary, "file").unwrap_or(0), "file");
    let times: u64 = match (regex == super::lex::regex_escape(shown), regex.starts_with(r"\b(")) {
        (true, _) => rows.iter().map(|h| h.text.matches(shown).count() as u64).sum(),
        (false, true) => rows.len() as u64,
        (false, false) => rows.iter().map(|h| count_words(h.text, shown.trim_end_matches("()"))).sum(),
    };
    if !whole || times < rows.len() as u64 || (rows.len() as u64) < lines.min(1) || rows.iter().any(|h| is_cut(h.text))
    {
        return format!("`{shown}`: {}{place}, in {files}.", plural(lines, "matching line"));
    }
    format!("`{shown}`: {} on {}{place}, in {files}.", plural(times, "time"), plural(rows.len() as u64, "line"))
}

/// Where `word` stands in a line, and whether on its own.
fn places<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = (usize, bool)> + 'a {
    line.match_indices(word).map(move |(at, _)| {
        let before = line.get(..at).and_then(|s| s.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|s| s.chars().next());
        (at, !before.is_some_and(is_word) && !after.is_some_and(is_word))
    })
}

pub(super) fn count_words(line: &str, word: &str) -> u64 {
    places(line, word).filter(|(_, whole)| *whole).count() as u64
}

pub(super) fn replace_words(line: &str, old: &str, new: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut from = 0;
    for (at, _) in places(line, old).filter(|(_, whole)| *whole) {
        out.push_str(line.get(from..at).unwrap_or_default());
        out.push_str(new);
        from = at + old.len();
    }
    out.push_str(line.get(from..).unwrap_or_default());
    out
}

/// The longer words of a line that contain `word`.
pub(super) fn longer_words(line: &str, word: &str) -> Vec<String> {
    line.split(|c| !is_word(c)).filter(|w| w.contains(word) && *w != word).map(str::to_owned).collect()
}

/// A definition's line without its body.
pub(super) fn signature(line: &str) -> String {
    line.trim_end().trim_end_matches(['{', ':', ' ']).chars().take(140).collect()
}

/// What a file says of itself: the first paragraph of a text, or of the comment at its head.
pub(super) fn about(content: &str) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    for row in content.lines() {
        let line = numbered(row).map_or(row, |(_, text)| text).trim();
        let marks = ["//!", "///", "//", "/**", "/*", "*/", "\"\"\"", "'''", "*"];
        let bare = marks.iter().find_map(|m| line.strip_prefix(m)).unwrap_or(line).trim();
        let bare = bare.trim_end_matches("\"\"\"").trim_end_matches("*/").trim();
        let rule = bare.chars().all(|c| "=-~*_#".contains(c));
        let skip = rule || bare.starts_with(['#', '[', '!', '<', '|']) || bare.starts_with("use ") || line == "---";
        match (skip, words.len()) {
            (true, 0) => {}
            // a title with a rule below it
            (true, 1) if rule && !bare.is_empty() => words.clear(),
            (true, _) => break,
            (false, _) => words.push(bare),
        }
    }
    let text = words.join(" ");
    let code = text.contains([';', '{', '=']) && words.len() < 2;
    (!text.is_empty() && !code).then(|| text.chars().take(600).collect())
}

const VERDICTS: &str = "test result: |running 0 tests|Ran |passed|failed|# pass|# fail|ℹ pass|ℹ fail|ok  \t|FAIL\t|OK";
const FAULTS: &str = "FAILED|error[|error:|panicked at|FAIL: |ERROR: |--- FAIL|not ok|✖|Error:|assertion";

/// What a command came to: how it ended, what decides, its last lines.
pub(super) fn ran(command: &str, ended: &ToolOutcome, output: &str, good: bool, tests: bool) -> String {
    let any = |marks: &str, row: &str| marks.split('|').any(|m| row.contains(m));
    let rows: Vec<&str> = output.lines().filter(|l| !l.trim().is_empty()).collect();
    let verdict = match (tests, good, ended.status) {
        (true, true, _) => "The tests pass",
        (true, false, ResultStatus::Ok | ResultStatus::Error) => "The tests fail",
        (false, true, _) => "Done",
        (_, false, ResultStatus::Ok | ResultStatus::Error) => "The command failed",
        (_, _, ResultStatus::Refused) => "The command was refused",
        (_, _, ResultStatus::Cancelled | ResultStatus::Interrupted) => "The command did not end",
    };
    let mut out = format!("{verdict}: `{command}`: {}", ended.summary);
    let results: Vec<&&str> = rows.iter().filter(|r| r.starts_with("test result: ")).collect();
    let sum = |word: &str| results.iter().filter_map(|r| count_before(&r.replace(';', " "), word)).sum::<u64>();
    if tests && !results.is_empty() {
        out.push_str(&format!("\n{} passed, {} failed.", sum("passed"), sum("failed")));
    } else if tests {
        let verdicts: Vec<&str> = rows.iter().copied().filter(|r| any(VERDICTS, r)).collect();
        out.push_str(&format!("\n{}", bounded(&verdicts, 10)));
    }
    if !good {
        let faults: Vec<&str> = rows.iter().copied().filter(|r| any(FAULTS, r)).collect();
        out.push_str(&format!("\n{}", bounded(&faults, 10)));
    }
    if !tests || !good {
        let shown = if good { 40 } else { 15 };
        let hidden = rows.len().saturating_sub(shown);
        let note = if hidden > 0 { format!("\n(the last {shown} of {} lines)", rows.len()) } else { String::new() };
        out.push_str(&format!("{note}\n{}", rows.get(hidden..).unwrap_or_default().join("\n")));
    }
    out.trim_end().to_owned()
}

const EXAMPLES: &[&str] = &[
    "list the files in src",
    "list the largest files",
    "find files named config",
    "is there a file called Cargo.toml",
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
    "run the tests",
    "run `git status`",
];

/// The answer to what cannot be planned: nothing was done, what could be asked, how to get more.
pub(super) fn fallback(words: &str, prompt: &str) -> String {
    let asked: String = words.chars().take(200).collect();
    let low = prompt.to_lowercase();
    let has = |w: &str| {
        w.len() > 2 && low.split(|c: char| !is_word(c)).any(|p| p.len() > 2 && (p.starts_with(w) || w.starts_with(p)))
    };
    let score = |example: &&&str| {
        std::cmp::Reverse(example.to_lowercase().split(|c: char| !is_word(c)).filter(|w| has(w)).count())
    };
    let mut nearest: Vec<&&str> = EXAMPLES.iter().collect();
    nearest.sort_by_key(score);
    let shown: Vec<String> = nearest.iter().take(3).map(|e| format!("  {e}")).collect();
    format!(
        "Not understood, and nothing was done: {asked:?}\n`offline` is {}.\nThe nearest it can do:\n{}\n\
         For a language model: set OPENAI_API_KEY, or run `yoi run -m PROVIDER/NAME \"…\"`; `yoi models` lists what can be used.",
        super::ABOUT,
        shown.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::intent::parse;

    #[test]
    fn every_example_is_understood() {
        for example in EXAMPLES {
            assert!(parse(example).is_ok(), "{example}");
        }
    }

    #[test]
    fn words_are_told_from_longer_ones() {
        assert_eq!(replace_words("rate(rate_table, my_rate, rate)", "rate", "r"), "r(rate_table, my_rate, r)");
        assert_eq!(longer_words("rate(rate_table, my_rate)", "rate"), ["rate_table", "my_rate"]);
    }

    #[test]
    fn numbers_are_read_where_tools_put_them() {
        let table = [
            ("12 matches in 3 files", "match", Some(12)),
            ("12 matches in 3 files", "file", Some(3)),
            ("matches in 3 files", "match", None),
            ("at least 1,200 matches in 3 files", "match", Some(1200)),
            ("0 matches in 0 files (9 searched)", "file", Some(0)),
            ("src/a.rs: 1 replacement", "replacement", Some(1)),
        ];
        for (summary, word, want) in table {
            assert_eq!(count_before(summary, word), want, "{summary}");
        }
        assert_eq!(total("src/a.rs: lines 1-200 of 340, CRLF line ends"), Some(340));
        let cut = "head\n[… 9 of 99 bytes left out; ReadOutput {\"handle\":\"o-0123456789ab\"} pages the whole]\ntail";
        assert_eq!(cut_handle(cut), Some("o-0123456789ab"));
    }
}
