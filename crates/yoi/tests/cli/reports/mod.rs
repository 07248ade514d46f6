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
const KNOWN: &[(&str, &str)] = &[];

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
    let ran = catch_unwind(AssertUnwindSafe(|| {
        if row.is_played() {
            played::run(row)
        } else {
            scripted::run(row)
        }
    }));
    ran.unwrap_or_else(|panic| {
        let words = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        vec![format!(
            "the row could not be run: {}",
            words.unwrap_or("a panic")
        )]
    })
}

#[test]
fn public_reports_have_their_right_values() {
    let rows: Vec<Row> = FILES
        .iter()
        .flat_map(|text| toml::from_str::<Rows>(text).unwrap().row)
        .collect();
    // For work on one kind: a part of the reports' names.
    let only = std::env::var("YOI_TEST_REPORT").unwrap_or_default();
    let rows: Vec<Row> = rows
        .into_iter()
        .filter(|row| row.report.contains(&only))
        .collect();
    for (report, _) in KNOWN.iter().filter(|_| only.is_empty()) {
        assert!(
            rows.iter().any(|row| row.report == *report),
            "no row has the report {report}"
        );
    }

    let left = Mutex::new(rows.iter());
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(row) = left.lock().unwrap().next() else {
                        return;
                    };
                    let problems = problems(row);
                    let known = KNOWN.iter().find(|(report, _)| *report == row.report);
                    let line = match (known, problems.is_empty()) {
                        (None, false) => format!(
                            "{}: {}\n    {}",
                            row.report,
                            row.fault,
                            problems.join("\n    ")
                        ),
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
    assert!(
        wrong.is_empty(),
        "{} of {} rows:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}
