//! Inputs from public reports of other agent programs, gateways and libraries, with the values that are right for a user.
//! The rows are in the TOML files beside this module; their heads say what the keys mean. Each row runs the real program.

mod played;
mod row;
mod scripted;

use row::{Row, Rows};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;

/// Rows that are known to be wrong, with the reason. A row that becomes right fails the test until it is removed here.
const KNOWN: &[(&str, &str)] = &[
    (
        "BaseIntelligence/bounty-challenge#11203",
        "files: Edit after a Read that was refused as UTF-16 says to read it first",
    ),
    (
        "CopilotKit/OpenBot#470",
        "wire or words: a configured key of the environment is cut at its first line without a word",
    ),
    ("IvanMurzak/Unity-MCP#754", "results"),
    ("Kilo-Org/kilocode#1439", "files: Edit after a Read that was refused for its encoding says to read it first"),
    ("anomalyco/opencode#31786", "files: NFC and NFD look the same; `old` does not occur, and nothing says why"),
    ("anomalyco/opencode#43112", "files"),
    ("anthropics/claude-code#92648", "results"),
    ("anthropics/claude-code#94055", "results"),
    ("att/rcloud#1201", "results"),
    ("caura-ai/caura-cross-fleet-gov#13", "files"),
    ("chalk/strip-ansi#43", "results"),
    ("coddy-project/coddy-agent#57", "files: `old` with CRLF in a file with LF"),
    ("code-yeongyu/senpi#1103", "files: a URL with another scheme than file"),
    ("earendil-works/pi#9785", "turn"),
    ("folkertvanheusden/multitail#71", "results"),
    ("freee/freee-mcp#15", "results"),
    ("jee599/contextzip#13", "results"),
    ("kenn-io/kata#365", "results"),
    ("langgenius/mosoo#94", "files: @ before a path that exists without it"),
    ("letta-ai/letta-code#3146", "files"),
    ("msarson/Clarion-Extension#629", "files"),
    ("nex-agi/NexAU#8", "results"),
    ("omaclaren/pi-studio#3", "files"),
    ("runmedev/web#233", "results"),
    ("tontinton/maki#142", "results"),
    ("wasmerio/wasmer#4833", "files"),
    ("yvgude/lean-ctx#1418", "files"),
];

/// While more rows are known to be wrong than these, the kinds are being closed: a row that becomes right is only told.
const FEW: usize = 5;

/// Rows that run at once. Some wait for a retry, so there are more than processors.
const AT_ONCE: usize = 6;

const FILES: [&str; 10] = [
    include_str!("chat_calls.toml"),
    include_str!("chat_text.toml"),
    include_str!("messages.toml"),
    include_str!("errors.toml"),
    include_str!("files.toml"),
    include_str!("paths.toml"),
    include_str!("outputs.toml"),
    include_str!("numbers.toml"),
    include_str!("commands.toml"),
    include_str!("settings.toml"),
];

/// What is wrong with a row: expectations that are not met, each with what was found.
fn problems(row: &Row) -> Vec<String> {
    let ran = catch_unwind(AssertUnwindSafe(|| if row.is_played() { played::run(row) } else { scripted::run(row) }));
    ran.unwrap_or_else(|panic| {
        let words =
            panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        vec![format!("the row could not be run: {}", words.unwrap_or("a panic"))]
    })
}

#[test]
fn public_reports_have_their_right_values() {
    let rows: Vec<Row> = FILES.iter().flat_map(|text| toml::from_str::<Rows>(text).unwrap().row).collect();
    // For work on one kind: a part of the reports' names.
    let only = std::env::var("YOI_TEST_REPORT").unwrap_or_default();
    let rows: Vec<Row> = rows.into_iter().filter(|row| row.report.contains(&only)).collect();
    for (report, _) in KNOWN.iter().filter(|_| only.is_empty()) {
        assert!(rows.iter().any(|row| row.report == *report), "no row has the report {report}");
    }

    let (left, wrong) = (Mutex::new(rows.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(row) = left.lock().unwrap().next() else { return };
                    let problems = problems(row);
                    let known = KNOWN.iter().find(|(report, _)| *report == row.report);
                    let line = match (known, problems.is_empty()) {
                        (None, false) => format!("{}: {}\n    {}", row.report, row.fault, problems.join("\n    ")),
                        (Some((report, owner)), true) if KNOWN.len() > FEW => {
                            println!("right now: {report} ({owner})");
                            continue;
                        }
                        (Some((report, reason)), true) => {
                            format!("{report} is right now; remove it from KNOWN ({reason})")
                        }
                        (None, true) | (Some(_), false) => continue,
                    };
                    wrong.lock().unwrap().push(line);
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
