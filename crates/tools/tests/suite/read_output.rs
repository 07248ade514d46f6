//! ReadOutput.

use crate::host::{FakeHost, args, block_on, context, failed, ok};
use llm_worker::tool::{Excerpt, LineRange};
use llm_worker::{ErrorKind, ToolResult};
use serde_json::{Value, json};
use std::sync::Arc;
use tools::read_output;

fn run(earlier: Option<Excerpt>, call: Value) -> (ToolResult, Vec<(String, LineRange)>) {
    let host = Arc::new(FakeHost {
        earlier,
        ..FakeHost::default()
    });
    let result = block_on(read_output::run(args(call), context(&host)));
    let asked = host.asked.lock().unwrap().clone();
    (result, asked)
}

fn excerpt(text: &str, first: u64, last: u64, total: u64) -> Option<Excerpt> {
    Some(Excerpt {
        text: text.to_owned(),
        first,
        last,
        total,
    })
}

#[test]
fn a_page_is_asked_for_and_shown() {
    let more = "a\nb\n(more lines follow; go on with offset=3)";
    let table = [
        (
            json!({"handle": "h", "lines": 2}),
            excerpt("a\nb\n", 1, 2, 9),
            LineRange::From { from: 1, lines: 2 },
            "h: lines 1-2 of 9",
            more,
        ),
        (
            json!({"handle": "h", "offset": 8}),
            excerpt("a\nb", 8, 9, 9),
            LineRange::From {
                from: 8,
                lines: 200,
            },
            "h: lines 8-9 of 9",
            "a\nb",
        ),
        (
            json!({"handle": "h", "tail": true, "lines": 1}),
            excerpt("b\n", 9, 9, 9),
            LineRange::Tail { lines: 1 },
            "h: line 9 of 9",
            "b",
        ),
        (
            json!({"handle": "h"}),
            excerpt("", 0, 0, 0),
            LineRange::From {
                from: 1,
                lines: 200,
            },
            "h: empty output",
            "",
        ),
    ];
    for (call, earlier, window, summary, content) in table {
        let (got, asked) = run(earlier, call.clone());
        let got = ok(got);
        assert_eq!(
            (got.summary.as_str(), got.content.as_str()),
            (summary, content),
            "{call}"
        );
        assert_eq!(asked, [("h".to_owned(), window)]);
    }
}

// The host may hand over 32 KiB; with the hint that would be cut again. Whole lines go, and the numbers say so.
#[test]
fn a_full_page_is_shortened_by_whole_lines() {
    let text = "x".repeat(99) + "\n";
    let text = text.repeat(327);
    let got = ok(run(
        excerpt(&text, 1, 327, 1000),
        json!({"handle": "h", "lines": 327}),
    )
    .0);
    assert_eq!(got.summary, "h: lines 1-316 of 1000");
    assert!(
        got.content
            .ends_with("xx\n(more lines follow; go on with offset=317)")
    );
    assert_eq!(got.content.lines().count(), 317);
    let got = ok(run(
        excerpt(&text, 674, 1000, 1000),
        json!({"handle": "h", "tail": true, "lines": 327}),
    )
    .0);
    assert_eq!(
        (got.summary.as_str(), got.content.lines().count()),
        ("h: lines 685-1000 of 1000", 316)
    );
    let one_line = "y".repeat(32 * 1024);
    let got = ok(run(excerpt(&one_line, 1, 1, 1), json!({"handle": "h"})).0);
    assert_eq!(got.summary, "h: line 1 of 1");
}

#[test]
fn bad_pages_are_refused() {
    let table = [
        (json!({"handle": "h", "offset": 0}), None),
        (json!({"handle": "h", "lines": 0}), None),
        (
            json!({"handle": "h", "tail": true, "offset": 2}),
            excerpt("a", 1, 1, 1),
        ),
        (json!({"handle": "unknown"}), None),
        (json!({"handle": "h", "offset": 10}), excerpt("", 10, 9, 9)),
    ];
    for (call, earlier) in table {
        failed(run(earlier, call).0, ErrorKind::FixInput);
    }
}
