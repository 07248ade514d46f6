//! Frames of each view as people see them.

use crate::pod::{BEGIN, SIZES, Story, alert, delta, drawn, size, text, types};
use protocol::event::{DeltaPart, Event};
use protocol::method::Role;
use protocol::record::RecordLine;
use protocol::status::ModelRetry;
use serde_json::{Value, json};
use tui::{
    ConnectionState, FeatureList, Key, Line, Paragraph, PodEntry, Reply, Screen, Theme, Tone,
};

/// The frames of a screen at every size.
fn frames(now: u64, screen: impl Fn() -> Screen) -> String {
    let frame = |(columns, rows)| {
        let mut screen = screen();
        drawn(
            &screen.frame(size(columns, rows), now),
            usize::from(columns),
        )
    };
    SIZES.map(frame).join("\n")
}

const DIFF: &str =
    "@@ -8,3 +8,3 @@\n fn width(text: &str) -> usize {\n-    text.len()\n+    text.width()\n }";

/// A turn with everything that a turn can have.
fn busy() -> Story {
    let command = json!({"command": "cargo test -p tui"});
    let edit = json!({"path": "src/line.rs", "edits": [{"old": "len", "new": "width"}]});
    let story = Story::new()
        .input(1, "fix the width of 日本語 text, please")
        .turn(1, 1);
    let story = story.item(
        json!({"type": "reasoning", "text": "The width is in bytes.\nIt has to be in columns."}),
    );
    let story = story
        .says("I look at **the file** first:\n\n- `src/line.rs`")
        .calls("c00000001", "Edit", edit.clone());
    let story = story.calls("c00000002", "Bash", command.clone()).response();
    let allowed =
        json!({"call": "c00000002", "decision": "allow", "rule": "Bash: allow (built in)"});
    let story = story
        .with("verdict", allowed)
        .starts("c00000001", "Edit", edit);
    let story = story.with(
        "file_changed",
        json!({"call": "c00000001", "path": "src/line.rs"}),
    );
    let story = story.ends("c00000001", "ok", "src/line.rs: 1 replacement", DIFF);
    story.starts("c00000002", "Bash", command)
}

fn asking(count: u64) -> Story {
    (1..=count).fold(
        Story::new().input(1, "run the tests").turn(1, 1),
        |story, at| {
            let call = format!("c{at:08}");
            let command = format!("cargo test -p tui && rm -rf target/{at}");
            story
                .calls(&call, "Bash", json!({"command": command}))
                .asks(at, &call, &command, true)
        },
    )
}

#[test]
fn a_turn_that_works() {
    let story = busy();
    insta::assert_snapshot!(frames(story.now() + 12_300, || story.screen(Theme::Plain)));
}

fn output(call: &str, text: &str) -> Event {
    delta(DeltaPart::Output {
        call: call.to_owned(),
        text: text.to_owned(),
        anew: false,
    })
}

#[test]
fn a_call_that_writes() {
    let story = busy();
    insta::assert_snapshot!(frames(story.now() + 12_300, || {
        let mut screen = story.screen(Theme::Plain);
        (1..=20)
            .for_each(|n| screen.event(&output("c00000002", &format!("test part_{n} ... ok\r\n"))));
        screen.event(&output(
            "c00000002",
            "\u{1b}]0;title\u{7}and a line that is wider than the smallest terminal\n",
        ));
        screen.event(&output("c00000002", "  10%\r  20%\r  30%"));
        screen
    }));
}

#[test]
fn several_calls_that_write() {
    let calls = ["c1", "c2", "c3"];
    let command = |call: &str| json!({"command": format!("make {call}")});
    let story = Story::new().input(1, "make all").turn(1, 1);
    let story = calls
        .iter()
        .fold(story, |story, call| {
            story.calls(call, "Bash", command(call))
        })
        .response();
    let story = calls.iter().fold(story, |story, call| {
        story.starts(call, "Bash", command(call))
    });
    insta::assert_snapshot!(frames(story.now() + 2_000, || {
        let mut screen = story.screen(Theme::Plain);
        calls.iter().for_each(|call| {
            screen.event(&output(
                call,
                &format!("{call} one\n{call} two\n{call} three\n"),
            ))
        });
        screen
    }));
}

#[test]
fn an_output_leaves_the_screen_to_the_transcript() {
    let story = busy();
    for (rows, shown) in [(12, 3), (30, 5), (45, 8), (120, 8)] {
        let mut screen = story.screen(Theme::Plain);
        (1..=40).for_each(|n| screen.event(&output("c00000002", &format!("part {n}\n"))));
        let frame = screen.frame(size(80, rows), story.now());
        assert_eq!(
            frame
                .rows
                .iter()
                .filter(|line| line.text().contains("  part "))
                .count(),
            shown,
            "{rows}"
        );
    }
}

/// The result replaces the output, and what stands below did not move meanwhile.
#[test]
fn an_output_has_as_many_rows_as_it_had() {
    let story = busy();
    let mut screen = story.screen(Theme::Plain);
    let now = story.now();
    let rows = |screen: &mut Screen| {
        let shown = drawn(&screen.frame(size(40, 12), now), 40);
        shown
            .lines()
            .position(|line| line.contains("◦ Bash"))
            .unwrap()
    };
    screen.event(&output("c00000002", "a\nb\nc\nd\n"));
    let full = rows(&mut screen);
    screen.event(&delta(DeltaPart::Output {
        call: "c00000002".to_owned(),
        text: "x\n".to_owned(),
        anew: true,
    }));
    assert_eq!(rows(&mut screen), full);
    let over = story.ends("c00000002", "ok", "exit 0 in 1.5 s", "");
    screen.event(over.events().last().unwrap());
    let shown = drawn(&screen.frame(size(40, 12), now), 40);
    assert!(
        shown.contains("✓ Bash") && !shown.contains("  x"),
        "{shown}"
    );
}

#[test]
fn a_turn_that_is_over() {
    let story = busy().ends(
        "c00000002",
        "error",
        "exit 101 in 1.5 s",
        "test width ... FAILED\n1 failed",
    );
    let story = story
        .says("It fails.")
        .finished(1)
        .input(2, "again")
        .input(3, "and then\ncommit it");
    insta::assert_snapshot!(frames(story.now(), || story.screen(Theme::Plain)));
}

#[test]
fn an_answer_that_comes() {
    let story = Story::new().input(1, "what is it?").turn(1, 1);
    insta::assert_snapshot!(frames(story.now() + 1000, || {
        let mut screen = story.screen(Theme::Plain);
        screen.event(&text("# A title\n\nThe first line of an answer, and the "));
        screen.event(&text("rest of it.\n\n```\nlet code"));
        screen
    }));
}

#[test]
fn a_model_that_is_silent() {
    let story = Story::new().input(1, "think").turn(1, 1);
    let now = story.now();
    let mut screen = story.screen(Theme::Plain);
    let mut seen = |now| drawn(&screen.frame(size(40, 10), now), 40);
    let mut shown = vec![seen(now + 1000), seen(now + 2500)];
    screen.event(&delta(DeltaPart::Reasoning {
        text: "hm".to_owned(),
    }));
    shown.push(drawn(&screen.frame(size(40, 10), now + 9000), 40));
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_question() {
    let story = asking(1);
    insta::assert_snapshot!(frames(story.now(), || story.screen(Theme::Plain)));
}

#[test]
fn a_question_about_an_edit() {
    let edits = json!([{"old": "let a = 1;\nlet b = 2;\n", "new": "let c = 日本;"}, {"old": "gone", "new": ""}]);
    let arguments = json!({"path": "src/line.rs", "edits": edits});
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .calls("c1", "Edit", arguments.clone());
    let fields = json!({"approval": 1, "call": "c1", "tool": "Edit", "feature": "builtin:files", "effect": "effectful",
        "arguments": arguments.to_string(), "arguments_digest": "d", "question": "the rule `Edit: ask` asks",
        "rule": "Edit: ask", "sandbox": "workspace-write"});
    let story = story.with("approval_requested", fields);
    insta::assert_snapshot!(frames(story.now(), || story.screen(Theme::Plain)));
    let frame = story.screen(Theme::Colour).frame(size(80, 24), story.now());
    let shown: String = frame
        .rows
        .iter()
        .map(|line| line.ansi(Theme::Colour))
        .collect();
    assert!(
        shown.contains(
            "\u{1b}[31m- \u{1b}[0m\u{1b}[35mlet\u{1b}[0m\u{1b}[31m a = \u{1b}[0m\u{1b}[36m1"
        ),
        "{shown}"
    );
}

#[test]
fn a_question_while_something_is_written() {
    let story = asking(20);
    insta::assert_snapshot!(frames(story.now(), || {
        let mut screen = story.screen(Theme::Plain);
        types(&mut screen, "first look at", story.now());
        screen
    }));
}

#[test]
fn a_denial_with_words() {
    let story = asking(2);
    insta::assert_snapshot!(frames(story.now() + 1000, || {
        let mut screen = story.screen(Theme::Plain);
        screen.frame(size(80, 24), story.now());
        screen.key(Key::Char('w'), story.now() + 900);
        types(&mut screen, "not the target", story.now() + 900);
        screen
    }));
}

#[test]
fn what_is_written() {
    let story = Story::new();
    insta::assert_snapshot!(frames(story.now(), || {
        let mut screen = story.screen(Theme::Plain);
        types(
            &mut screen,
            "look at 日本語 e\u{301} and \u{1b}[2J ",
            story.now(),
        );
        screen.paste(&"a line\n".repeat(120));
        screen.key(Key::AltEnter, story.now());
        types(
            &mut screen,
            "a second line that is so long that it does not fit into forty columns",
            story.now(),
        );
        screen
    }));
}

#[test]
fn commands_with_what_they_do() {
    let story = Story::new();
    insta::assert_snapshot!(frames(story.now(), || {
        let mut screen = story.screen(Theme::Plain);
        types(&mut screen, "/", story.now());
        screen
    }));
}

#[test]
fn what_a_command_does_fits_80_columns() {
    let mut screen = Story::new().screen(Theme::Plain);
    types(&mut screen, "/", BEGIN);
    let rows: Vec<String> = screen
        .frame(size(80, 200), BEGIN)
        .rows
        .iter()
        .map(Line::text)
        .collect();
    let commands: Vec<&String> = rows.iter().filter(|row| row.starts_with("  /")).collect();
    assert!(commands.len() > 10 && commands.is_sorted(), "{commands:#?}");
    assert!(
        !commands.iter().any(|row| row.contains('…')),
        "{commands:#?}"
    );
}

#[test]
fn an_open_call() {
    let story = busy().ends("c00000002", "ok", "exit 0 in 1.5 s", "running 3 tests\nok");
    insta::assert_snapshot!(frames(story.now(), || {
        let mut screen = story.screen(Theme::Plain);
        screen.key(Key::AltUp, story.now());
        screen.key(Key::Enter, story.now());
        screen
    }));
}

#[test]
fn the_panel_of_keys() {
    let story = Story::new();
    insta::assert_snapshot!(frames(story.now(), || {
        let mut screen = story.screen(Theme::Plain);
        screen.key(Key::F(1), story.now());
        screen
    }));
}

#[test]
fn the_panel_of_all_pods() {
    let story = Story::new();
    let pods = [
        (
            "build",
            true,
            "waiting for you",
            "waiting for approval 3: the rule `Bash: ask` requires your approval; ends in 9 min",
        ),
        (
            "old",
            false,
            "waiting for you",
            "waiting for approval 1: the gate of confirm asks, and 19 more",
        ),
        (
            "nightly-日本語",
            true,
            "held",
            "held: the turn reached its cost limit",
        ),
        ("night", true, "working", ""),
    ];
    let entry = |(name, is_live, state, detail): (&str, bool, &str, &str)| PodEntry {
        name: name.to_owned(),
        state: state.to_owned(),
        is_live,
        waits: state == "waiting for you",
        details: Some(detail.to_owned())
            .into_iter()
            .filter(|detail| !detail.is_empty())
            .collect(),
    };
    insta::assert_snapshot!(frames(story.now(), || {
        let mut screen = story.screen(Theme::Plain);
        screen.key(Key::F(4), story.now());
        screen.answered(Reply::Pods(Ok(pods.map(entry).to_vec())));
        screen.key(Key::Down, story.now());
        screen
    }));
}

#[test]
fn the_panel_of_the_pod() {
    let story = Story::new();
    let mut attached = story.attached();
    let task = json!({"feature": "builtin:schedule", "task": "clock", "next_due_ms": story.now() + 61_000,
        "last": {"run": 3, "trigger": "cron", "attempt": 1, "state": "failed", "reason": "no host", "at_ms": 5}});
    let job = json!({"job": 4, "feature": "builtin:jobs", "command": "npm run dev", "since_ms": story.now() - 5000,
        "until_ms": story.now() + 3_600_000, "memory": 734_003_200});
    attached.status.tasks = vec![serde_json::from_value(task).unwrap()];
    attached.status.jobs = vec![serde_json::from_value(job).unwrap()];
    insta::assert_snapshot!(frames(story.now(), || {
        let mut screen = Screen::begin(&attached, Role::Driver, Theme::Plain);
        screen.key(Key::F(3), story.now());
        screen
    }));
}

#[test]
fn the_panel_of_the_features() {
    let row = |first: &str, text: &str| Paragraph {
        first: Line::of(first, Tone::Ok),
        text: Line::of(text, Tone::Plain),
    };
    let long = "Glob Grep List Read ReadOutput ApplyPatch Delete Edit Move Write";
    let rows: Vec<Paragraph> = (1..=6)
        .flat_map(|at| {
            [
                row("✓ ", &format!("feature:{at}  0.1.0")),
                row("    tools  ", long),
                row("", "and no more"),
            ]
        })
        .collect();
    let shown = |scrolled: bool| {
        frames(BEGIN, || {
            let mut screen = Story::new().screen(Theme::Plain);
            screen.offers(&["status".to_owned(), "features".to_owned()]);
            screen.key(Key::F(2), BEGIN);
            screen.answered(Reply::Features(Ok(FeatureList {
                rows: rows.clone(),
                entries: Vec::new(),
            })));
            if scrolled {
                screen.frame(size(40, 12), BEGIN);
                screen.key(Key::PageDown, BEGIN);
            }
            screen
        })
    };
    insta::assert_snapshot!([shown(false), shown(true)].join("\n"));
}

#[test]
fn the_status_line_has_what_fits() {
    let mut attached = Story::new().attached();
    attached.status.host.branch = Some("fix/日本語".to_owned());
    attached.status.clients = 3;
    insta::assert_snapshot!(frames(BEGIN, || Screen::begin(
        &attached,
        Role::Driver,
        Theme::Plain
    )));
}

#[test]
fn the_panel_of_the_next_request() {
    let story = Story::new();
    let mut attached = story.attached();
    let part = |kind: &str, name: Option<&str>, tokens: u64| json!({"kind": kind, "name": name, "tokens": tokens, "cached": 0});
    let parts = [
        part("results", Some("Bash"), 40_000),
        part("feature_instructions", None, 812),
    ];
    let context = json!({
        "used": 40_812, "window": 50_000, "percent": 81, "measured": true, "cached": 900, "parts": parts,
        "masks_above": 37_500, "masking_frees": 9_000, "steps_free": 12_500, "left_results": 3, "left": [part("results", Some("Read"), 9_000)]
    });
    attached.status.context = Some(serde_json::from_value(context).unwrap());
    insta::assert_snapshot!(frames(story.now(), || {
        let mut screen = Screen::begin(&attached, Role::Driver, Theme::Plain);
        screen.key(Key::F(5), story.now());
        screen
    }));
}

#[test]
fn while_you_were_away() {
    let story = busy()
        .ends("c00000002", "refused", "not allowed", "")
        .finished(1);
    insta::assert_snapshot!(frames(story.now(), || {
        Screen::begin(&story.attached(), Role::Driver, Theme::Plain)
    }));
}

#[test]
fn what_is_wrong() {
    let failed =
        json!({"outcome": "model_failed", "message": "the key is wrong", "help": "set TOY_KEY"});
    let story = Story::new().input(1, "go").turn(1, 1);
    let story = story.with("turn_finished", json!({"turn": 1, "outcome": failed}));
    let story = story.with(
        "suspended",
        json!({"reason": "needs a key", "cause": "required"}),
    );
    insta::assert_snapshot!(frames(story.now(), || {
        let mut screen = story.screen(Theme::Plain);
        screen.event(&alert("it rains"));
        screen.connection(ConnectionState::Lost("the pod closed it".to_owned()));
        types(&mut screen, "go on", story.now());
        screen.key(Key::Enter, story.now());
        screen
    }));
}

#[test]
fn a_reader_and_a_recorded_screen() {
    let story = busy();
    let mut recorded = Screen::before_any_record("night", Theme::Plain);
    story
        .events()
        .iter()
        .for_each(|event| recorded.event(event));
    let mut reader = Screen::begin(&story.attached(), Role::Viewer, Theme::Plain);
    let shown = [&mut recorded, &mut reader]
        .map(|screen| drawn(&screen.frame(size(60, 14), story.now()), 60));
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_search() {
    let story = busy();
    insta::assert_snapshot!(frames(story.now(), || {
        let mut screen = story.screen(Theme::Plain);
        screen.frame(size(40, 12), story.now());
        screen.key(Key::Ctrl('f'), story.now());
        types(&mut screen, "日本", story.now());
        screen.key(Key::Enter, story.now());
        screen
    }));
}

#[test]
fn with_colours() {
    let story = asking(1);
    let mut screen = story.screen(Theme::Colour);
    let frame = screen.frame(size(60, 18), story.now());
    let shown: Vec<String> = frame
        .rows
        .iter()
        .map(|line| line.ansi(Theme::Colour).replace('\u{1b}', "^"))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// A budget that is used up is a question, with the command that answers it.
#[test]
fn a_budget_that_is_used_up_waits_for_the_person() {
    for (budget, says) in [
        ("pod", "waiting for you (/more): it reached"),
        ("run", "waiting for you (/resume): it reached"),
    ] {
        let mut attached = Story::new().attached();
        let held = json!({"cause": "budget", "reason": "it reached its limit of 3 steps", "budget": budget});
        attached.status.held = Some(serde_json::from_value(held).unwrap());
        let shown = frames(BEGIN, || {
            Screen::begin(&attached, Role::Driver, Theme::Plain)
        });
        assert!(shown.contains(says), "{shown}");
    }
}

/// The pod tells once when it tries again.
#[test]
fn the_time_to_the_next_attempt_is_counted_down() {
    let mut attached = Story::new().attached();
    attached.status.model_wait = Some(ModelRetry {
        reason: "the server is busy".to_owned(),
        retry_in_s: 62,
        since_ms: Some(BEGIN - 90_000),
    });
    let mut screen = Screen::begin(&attached, Role::Driver, Theme::Plain);
    for (after_ms, says, wait) in [
        (
            0,
            "waiting for the model for 1 min 30 s: the server is busy; next attempt in 1 min 2 s",
            Some(1000),
        ),
        (999, "busy; next attempt in 1 min 2 s", Some(1)),
        (2500, "busy; next attempt in 1 min", Some(500)),
        (61_000, "busy; next attempt in 1 s", Some(1000)),
        (70_000, "busy; next attempt now", None),
    ] {
        let frame = screen.frame(size(120, 10), BEGIN + after_ms);
        let line = frame.rows.last().unwrap().text();
        assert!(line.contains(&format!("{says} · ")), "{after_ms}: {line}");
        assert_eq!(screen.redraw_in(BEGIN + after_ms), wait, "{after_ms}");
    }
}

#[test]
fn a_turn_is_not_shorter_than_its_calls() {
    let mut story = Story::new().input(1, "go").turn(1, 1).finished(1);
    let mut line: Value = serde_json::from_str(story.lines.last().unwrap().as_str()).unwrap();
    let begun = story
        .lines
        .iter()
        .position(|line| line.as_str().contains("turn_started"))
        .unwrap() as u64
        + 1;
    line["t"] = json!((BEGIN + begun * 1000) * 1000 + 3_940_000);
    *story.lines.last_mut().unwrap() = RecordLine::new(line.to_string()).unwrap();
    let shown = drawn(
        &story.screen(Theme::Plain).frame(size(60, 14), story.now()),
        60,
    );
    assert!(shown.contains("turn 1: done · 3.9 s"), "{shown}");
}
