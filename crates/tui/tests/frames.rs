//! Cells as people see them, at three widths; with colours as marks that can be read in a file.

use std::time::Duration;
use tui::{CallBody, CallCell, CallState, Line, Theme, Tone, diff, joined, labelled, markdown};

const WIDTHS: [usize; 3] = [40, 80, 140];

/// Lines with a margin that shows their width, for each width.
fn frames(cell: impl Fn(usize) -> Vec<Line>) -> String {
    let frame = |width: usize| {
        let lines = cell(width);
        let rows = lines.iter().map(|line| {
            assert!(line.width() <= width);
            format!("{}{}│\n", line.text(), " ".repeat(width - line.width()))
        });
        format!("{:─<width$}┐ {width}\n{}", "", rows.collect::<String>())
    };
    WIDTHS.map(frame).concat()
}

const ANSWER: &str = "# What I found

The tests pass after *one* change: `Line::wrap` counted **bytes**, not columns, so that 日本語 text was broken too early. See [the rule](https://www.unicode.org/reports/tr11/) and <https://example.org>.

1. `crates/tui/src/line.rs`: widths are those of clusters
2. a test with wide characters, which fails without the change and which has a description that is longer than a line
   - it runs at every width
   - and with every character

   A second paragraph of the item.
3. nothing else

> A quote that is long enough to be broken at eighty columns, and that goes on after the break as a quote.

```rust
fn width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum() // a comment that is too long for a narrow terminal
}
```

| crate | tests | what it is for |
|:--|--:|---|
| tui | 12 | what people see, as lines |
| 日本 | 7 | a name of **wide** characters |

- [x] done
- [ ] open

---
The end. \x20
With a hard break, ~~struck~~ text and <b>HTML</b>.
Largest files:
   12  a.rs
  345  b.rs
";

#[test]
fn an_answer() {
    insta::assert_snapshot!(frames(|width| markdown(ANSWER, width, Theme::Colour)));
}

#[test]
fn an_answer_without_colours() {
    insta::assert_snapshot!(frames(|width| markdown(ANSWER, width, Theme::Plain)));
}

/// A fit of 6 s, with a long subject.
fn call<'a>(state: CallState, summary: &'a str, body: CallBody<'a>) -> CallCell<'a> {
    let subject =
        "cargo test -p tui --test cells -- --nocapture no_line_is_wider | tail -n 30\nsecond line";
    CallCell {
        name: "Bash",
        subject,
        state,
        took: Duration::from_millis(6_400),
        summary,
        body,
    }
}

const EDIT: &str = "@@ -8,4 +8,5 @@
 fn width(text: &str) -> usize {
-    text.len()
+    // columns, not bytes: a wide character takes two of them, a combining one takes none
+    text.width()
 }
\x20
@@ -99,3 +100,2 @@
 the last
-\tline
 of all
(the diff continues)";

#[test]
fn calls() {
    let output: String = (1..=60)
        .map(|n| format!("line {n} of an output\twith a tab\n"))
        .collect();
    let refused = "Write /etc/x is refused by the default rule `writing outside the project: deny`";
    let short = CallCell {
        subject: "a.txt",
        name: "Read",
        took: Duration::ZERO,
        ..call(CallState::Ok, "lines 1-8 of 8", CallBody::Nothing)
    };
    let cells = [
        call(CallState::Running, "", CallBody::Nothing),
        short,
        call(CallState::Ok, "", CallBody::Output(&output)),
        call(CallState::Failed, "exit 1", CallBody::Output(&output)),
        CallCell {
            name: "Write",
            subject: "/etc/x",
            took: Duration::ZERO,
            ..call(CallState::Refused, refused, CallBody::Nothing)
        },
        CallCell {
            name: "Edit",
            subject: "src/line.rs",
            took: Duration::ZERO,
            ..call(CallState::Ok, "1 replacement", CallBody::Diff(EDIT))
        },
        call(
            CallState::Waiting,
            "the rule `ask` requires your approval",
            CallBody::Nothing,
        ),
        call(
            CallState::Cancelled,
            "cancelled after 6.4 s",
            CallBody::Nothing,
        ),
    ];
    insta::assert_snapshot!(frames(|width| cells
        .iter()
        .flat_map(|cell| cell.lines(width))
        .collect()));
}

#[test]
fn a_diff_is_bounded() {
    insta::assert_snapshot!(frames(|width| diff("", EDIT, width, 7)));
}

#[test]
fn words_that_differ_are_marked() {
    let marked = |text: &str| -> String {
        let shown: String = diff("", text, 60, 20)
            .iter()
            .map(|line| line.ansi(Theme::Colour) + "\n")
            .collect();
        let ends = [
            ("\u{1b}[4;31m", "<"),
            ("\u{1b}[4;32m", "<"),
            ("\u{1b}[31m", ""),
            ("\u{1b}[32m", ""),
        ];
        ends.iter()
            .fold(shown, |shown, (from, to)| shown.replace(from, to))
            .replace("\u{1b}[0m", "|")
    };
    let one = marked(
        "@@ -1,4 +1,4 @@\n a\n-let width = 3;\n-\tb(one)\n+let width = 42;\n+\tb(two)\n c\n",
    );
    assert!(
        one.contains("- let width = |<3|;|") && one.contains("+ let width = |<42|;|"),
        "{one}"
    );
    assert!(
        one.contains("-     b(|<one|)|") && one.contains("+     b(|<two|)|"),
        "{one}"
    );
    // Nobody knows which line replaces which.
    let uneven = marked("@@ -1,2 +1,1 @@\n-let width = 3;\n-two\n+let width = 42;\n");
    assert!(!uneven.contains('<'), "{uneven}");
}

#[test]
fn the_code_of_a_diff_has_its_colours() {
    let text = "@@ -1,4 +1,4 @@\n /* one\n two */ let x = 1;\n-let width = \"a\"; // old\n+let width = \"b\"; // new\n";
    let text = format!(
        "{text}@@ -90,2 +90,2 @@\n-/* open\n+fn f() {{}}\n let y = 2; // last\n@@ -190,1 +190,0 @@\n-let z = 3;\n"
    );
    let shown = |name: &str, theme| -> Vec<String> {
        diff(name, &text, 60, 20)
            .iter()
            .map(|line| line.ansi(theme).replace('\u{1b}', "^"))
            .collect()
    };
    insta::assert_snapshot!(shown("src/a.rs", Theme::Colour).join("\n"));
    // No language is known, and there is more than is looked at.
    for name in ["src/a", "a.nothing", "", ".rs/a"] {
        assert!(
            !shown(name, Theme::Colour).concat().contains("^[35m"),
            "{name}"
        );
    }
    let long = format!("@@ -1,1 +1,1 @@\n+let x = 1;\n+{}\n", "x".repeat(64 << 10));
    assert!(
        !diff("a.rs", &long, 60, 20)
            .iter()
            .any(|line| line.ansi(Theme::Colour).contains("\u{1b}[35m"))
    );
    assert!(
        shown("a.rs", Theme::Plain)
            .iter()
            .all(|line| !line.contains('^'))
    );
}

#[test]
fn notes() {
    insta::assert_snapshot!(frames(|width| {
        let error = "a.toml: line 3: unknown key `modle` in a table with a name that is long enough for a break\nsecond line";
        let mut lines = labelled("error:", Tone::Failed, error, width);
        lines.extend(labelled(
            "help:",
            Tone::Strong,
            "did you mean `model`?",
            width,
        ));
        lines.extend(joined(
            [
                "12 steps",
                "34 s",
                "18k tokens",
                "$0.05",
                "run-7f3a (yoi log run-7f3a)",
            ],
            Tone::Dim,
            width,
        ));
        lines
    }));
}

#[test]
fn colours_have_meanings() {
    let answer = markdown(
        "# T\n\n*e* **s** `c` ~~x~~ [l](u)\n\n```\nb\n```\n\n```rust\nif 1 \"a\" // b\n```\n",
        80,
        Theme::Colour,
    );
    let mut lines = answer;
    lines.extend(diff("", EDIT, 60, 6));
    for state in [
        CallState::Running,
        CallState::Waiting,
        CallState::Ok,
        CallState::Failed,
        CallState::Refused,
        CallState::Cancelled,
    ] {
        lines.extend(
            CallCell {
                subject: "a",
                ..call(state, "summary", CallBody::Output("output"))
            }
            .lines(60),
        );
    }
    lines.extend(labelled("error:", Tone::Failed, "wrong", 60));
    let shown: Vec<String> = lines
        .iter()
        .map(|line| line.ansi(Theme::Colour).replace('\u{1b}', "^"))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_link_that_says_its_target_says_it_once() {
    let shown = |source: &str| {
        markdown(source, 80, Theme::Colour)
            .iter()
            .map(Line::text)
            .collect::<String>()
    };
    for (source, expected) in [
        ("[u/`v`](u/v)", "u/v"),
        ("[u](u/v)", "u (u/v)"),
        ("[u/vw](u/v)", "u/vw (u/v)"),
        ("[v u](u)", "v u (u)"),
        ("[![u](i)](u)", "u (i) (u)"),
        ("[u![x](i)](u)", "ux (i) (u)"),
        ("[![x](x) y](z)", "x y (z)"),
    ] {
        assert_eq!(shown(source), expected, "{source}");
    }
}
