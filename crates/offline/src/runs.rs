//! Reporting a command's result: its exit, the number of tests, missing programs, its last lines.

use crate::answer::{bounded, count_before};
use llm_worker::{ResultStatus, ToolOutcome};

/// Messages about missing programs, in lower case, and what to do about each.
const MISSING: &[(&str, &str, &str)] = &[
    (
        "command not found|: not found",
        "a program is not installed",
        "install it, then ask again",
    ),
    (
        "missing script",
        "the project has no such script",
        "add it to package.json, or write: run `COMMAND`",
    ),
    (
        "no test specified",
        "the project has no tests yet",
        "write some, and set the script `test` in package.json",
    ),
    (
        "cannot find module",
        "a dependency is missing",
        "run npm install in a terminal",
    ),
    (
        "no matching package|failed to get `|to download",
        "a dependency is missing",
        "run cargo fetch in a terminal",
    ),
    (
        "missing go.sum",
        "a dependency is missing",
        "run go mod download in a terminal",
    ),
    (
        "no module named|cannot find package",
        "a dependency is missing",
        "install it in a terminal",
    ),
];

/// The report of how a command ended, for the answer; an error if it failed.
pub(crate) fn report(command: &str, ended: &ToolOutcome, tests: bool) -> Result<String, String> {
    let good = ended.status == ResultStatus::Ok && ended.summary.starts_with("exit 0");
    let rows: Vec<&str> = ended
        .content
        .lines()
        .filter(|row| !row.trim().is_empty())
        .collect();
    let low = ended.content.to_lowercase();
    let absent = MISSING
        .iter()
        .find(|(marks, ..)| marks.split('|').any(|mark| low.contains(mark)));
    let absent = absent.filter(|_| !good || low.contains("no test specified"));
    let cut = ended.content.contains("ReadOutput {");
    let tally = if tests { tally(&rows) } else { None };
    let none = tests
        && (tally.is_some_and(|(passed, failed)| passed + failed == 0) && !cut
            || low.contains("no tests ran"));
    let passed = tally.is_some_and(|(passed, _)| passed > 0);
    let (verdict, done) = match (ended.status, good, tests) {
        (ResultStatus::Refused, ..) => ("The command was refused", false),
        (ResultStatus::Cancelled, ..) => ("The command was cancelled", false),
        (ResultStatus::Interrupted, ..) => ("The command was interrupted", false),
        (_, _, true) if absent.is_some() && !passed => ("The tests did not run", false),
        (_, _, true) if none => ("No tests ran", false),
        (_, true, true) if passed => ("The tests pass", true),
        (_, true, true) => (
            "The command succeeded, and its output does not say how many tests ran",
            true,
        ),
        (_, true, false) => ("Done", true),
        (_, false, true) if tally.is_some() => ("The tests fail", false),
        (_, false, true) => ("The tests fail, or did not run", false),
        (_, false, false) => ("The command failed", false),
    };
    let mut out = match ended.summary.strip_prefix("cancelled") {
        Some(after) => format!("`{command}` was cancelled{after}\n"),
        None => format!("{verdict}: `{command}`: {}\n", ended.summary),
    };
    let counted = tally.filter(|(passed, failed)| passed + failed > 0 && !cut);
    if let Some((passed, failed)) = counted {
        out.push_str(&format!("{passed} passed, {failed} failed.\n"));
    }
    if let Some((_, what, next)) = absent.filter(|_| !done) {
        let why = if next.ends_with("terminal") {
            ": commands here have no network"
        } else {
            ""
        };
        out.push_str(&format!("Probably {what}; {next}{why}.\n"));
    } else if none {
        out.push_str(
            "Nothing was tested: the project has no tests where this command looks for them.\n",
        );
    }
    let fault = |row: &&&str| {
        ["FAILED", "error[", "error:", "panicked at", "FAIL: "]
            .iter()
            .any(|m| row.contains(m))
    };
    let last = match (done, counted.is_some()) {
        (true, true) => 0,
        (true, false) => 40,
        (false, _) => 15,
    };
    if !done {
        out.push_str(&format!("{}\n", bounded(rows.iter().filter(fault), 10)));
    }
    out.push_str(
        &rows
            .get(rows.len().saturating_sub(last)..)
            .unwrap_or_default()
            .join("\n"),
    );
    let out = out.trim_end().to_owned();
    if done { Ok(out) } else { Err(out) }
}

/// The numbers of passed and failed tests in the output of known test runners; `None` if there are none.
fn tally(rows: &[&str]) -> Option<(u64, u64)> {
    let mut sum: Option<(u64, u64)> = None;
    for row in rows {
        let cells: Vec<&str> = row
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|cell| !cell.is_empty())
            .collect();
        let number = |cell: &str| cell.parse::<u64>().unwrap_or(0);
        let behind = |word: &str| {
            cells
                .iter()
                .skip_while(|cell| **cell != word)
                .nth(1)
                .map_or(0, |cell| number(cell))
        };
        let before = |word: &str| count_before(&cells.join(" "), word);
        let counts = matches!(cells.as_slice(), ["test", "result", ..] | ["Tests", ..])
            || cells
                .first()
                .is_some_and(|cell| cell.parse::<u64>().is_ok());
        let (passed, failed) = sum.unwrap_or_default();
        sum = match cells.as_slice() {
            ["Ran", n, "test" | "tests", ..] | ["pass", n] => Some((passed + number(n), failed)),
            ["fail", n] => Some((passed, failed + number(n))),
            ["FAILED" | "OK", "failures" | "errors" | "skipped", ..] => {
                let bad = behind("failures") + behind("errors");
                Some((passed.saturating_sub(bad + behind("skipped")), failed + bad))
            }
            _ if counts => {
                let errors = before("error").filter(|_| cells.contains(&"in"));
                let all = [before("pass"), before("fail"), errors];
                let [ok, bad, errors] = all.map(Option::unwrap_or_default);
                if all == [None; 3] {
                    sum
                } else {
                    Some((passed + ok, failed + bad + errors))
                }
            }
            _ => sum,
        };
    }
    sum
}
