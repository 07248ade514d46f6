//! For all events, keys, pastes and sizes: a frame has the rows and columns of its terminal, no key answers a question
//! that was seen for less than 300 ms, the fold depends on records alone, and a frame costs what is seen.

use crate::pod::{BEGIN, Story, alert, attached, delta, size, text};
use proptest::prelude::*;
use protocol::event::{DeltaPart, Event};
use protocol::method::{RecordPage, Role};
use serde_json::json;
use tui::{ConnectionState, Intent, Key, Reply, Screen, Theme};

/// Texts with what is difficult for widths and for terminals.
fn words() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,12} ",
        1 => "(日本|語|👩\u{200d}👧|🇩🇪|e\u{301}|\u{301}|❤\u{fe0f}|क्षि|مرحبا){1,4}",
        1 => "(\u{1b}\\[2J|\u{202e}|\u{200b}|\u{7}|\u{9b}|\u{2028}|\u{0}|\u{200d}|\u{fffc}|\t|\r\n|\n)",
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// What happens to a screen.
#[derive(Clone, Debug)]
enum Step {
    Pod(usize),
    Text(String),
    Thinks(String),
    Alert(String),
    Key(Key),
    Paste(String),
    Lost(String),
    Back,
    Failed(String),
    Later(u64),
    Frame(u16, u16),
}

fn key() -> impl Strategy<Value = Key> {
    let keys = vec![
        Key::Enter,
        Key::AltEnter,
        Key::Tab,
        Key::Esc,
        Key::Backspace,
        Key::Delete,
        Key::Left,
        Key::Right,
        Key::Up,
        Key::Down,
        Key::WordLeft,
        Key::WordRight,
        Key::AltUp,
        Key::AltDown,
        Key::Home,
        Key::End,
        Key::CtrlHome,
        Key::CtrlEnd,
        Key::PageUp,
        Key::PageDown,
        Key::WheelUp,
        Key::WheelDown,
        Key::F(1),
        Key::F(3),
        Key::F(4),
        Key::F(5),
        Key::Ctrl('o'),
        Key::Ctrl('f'),
        Key::Ctrl('r'),
        Key::Ctrl('w'),
        Key::Ctrl('u'),
        Key::Ctrl('k'),
        Key::Ctrl('z'),
        Key::Ctrl('y'),
        Key::Ctrl('c'),
    ];
    prop_oneof![
        2 => proptest::sample::select(keys),
        2 => proptest::sample::select(vec!['y', 'n', 'p', 'r', 'w', '/', 'e', 'x', 'u', 'd', ' ']).prop_map(Key::Char),
        1 => any::<char>().prop_map(Key::Char),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_usize..8).prop_map(Step::Pod),
        2 => words().prop_map(Step::Text),
        1 => words().prop_map(Step::Thinks),
        1 => words().prop_map(Step::Alert),
        6 => key().prop_map(Step::Key),
        1 => words().prop_map(Step::Paste),
        1 => words().prop_map(Step::Lost),
        1 => Just(Step::Back),
        1 => words().prop_map(Step::Failed),
        2 => (0_u64..700).prop_map(Step::Later),
        4 => (0_u16..100, 0_u16..50).prop_map(|(columns, rows)| Step::Frame(columns, rows)),
    ]
}

/// A story of everything, with these words.
fn story(said: &[String]) -> Story {
    let at = |n: usize| said.get(n % said.len().max(1)).cloned().unwrap_or_default();
    let mut story = Story::new();
    for turn in 1..4_u64 {
        let n = usize::try_from(turn).unwrap() * 7;
        let call = format!("c{turn}");
        let asked = format!("d{turn}");
        let arguments = json!({"command": at(n), "path": at(n + 1), at(n + 2): at(n + 3)});
        story = story
            .input(turn, &at(n + 4))
            .input(turn + 100, &at(n + 5))
            .turn(turn, turn);
        story = story
            .item(json!({"type": "reasoning", "text": at(n)}))
            .says(&at(n + 1));
        story = story
            .calls(&call, &at(n + 2), arguments.clone())
            .calls(&asked, "Bash", arguments.clone())
            .response();
        story = story.with(
            "verdict",
            json!({"call": call, "decision": "allow", "rule": at(n + 3)}),
        );
        story = story.starts(&call, &at(n + 2), arguments).asks(
            turn,
            &asked,
            &at(n + 4),
            turn % 2 == 0,
        );
        story = story.ends(
            &call,
            if turn % 2 == 0 { "ok" } else { "error" },
            &at(n + 5),
            &at(n + 6),
        );
        let resolved = json!({"approval": turn, "decision": "allow", "arguments_digest": format!("digest-{turn}"),
            "by": {"client": at(n), "role": "driver", "uid": 0, "name": at(n + 1)}});
        story = story
            .with("approval_resolved", resolved)
            .ends(&asked, "refused", &at(n), &at(n + 1))
            .finished(turn);
        story = story.with(
            "feature_note",
            json!({"feature": at(n + 2), "text": at(n + 3)}),
        );
    }
    story
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_frame_has_the_size_of_its_terminal_and_no_early_key_answers(
        said in proptest::collection::vec(words(), 1..9),
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let lines = story(&said).lines;
        let mut left = lines.iter();
        let mut screen = Screen::begin(&attached(&[]), Role::Driver, Theme::Plain);
        let mut now = BEGIN;
        // Since when each question was in a frame.
        let mut seen = std::collections::BTreeMap::new();
        for step in steps {
            match step {
                Step::Pod(count) => left.by_ref().take(count).for_each(|line| screen.event(&Event::Record(line.clone()))),
                Step::Text(part) => screen.event(&text(&part)),
                Step::Thinks(part) => screen.event(&delta(DeltaPart::Reasoning { text: part })),
                Step::Alert(said) => screen.event(&alert(&said)),
                Step::Key(key) => {
                    for intent in screen.key(key, now) {
                        if let Intent::Approve { id, .. } = intent {
                            let since = seen.get(&id).copied();
                            prop_assert!(since.is_some_and(|since| now >= since + 300), "{id} {since:?} {now}");
                        }
                    }
                }
                Step::Paste(said) => screen.paste(&said),
                Step::Lost(why) => screen.connection(ConnectionState::Lost(why)),
                Step::Back => screen.connection(ConnectionState::Live),
                Step::Failed(why) => screen.answered(Reply::Failed(why)),
                Step::Later(ms) => now += ms,
                Step::Frame(columns, rows) => {
                    let frame = screen.frame(size(columns, rows), now);
                    prop_assert_eq!(frame.rows.len(), usize::from(rows));
                    for line in &frame.rows {
                        prop_assert!(line.width() <= usize::from(columns), "{} of {columns}: {:?}", line.width(), line.text());
                        let acts = line.text().chars().find(|c| c.is_control());
                        prop_assert_eq!(acts, None);
                        if let Some(id) = line.text().strip_prefix("? approval ") {
                            let id: u64 = id.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
                            seen.entry(id).or_insert(now);
                        }
                    }
                    if let Some((column, row)) = frame.cursor {
                        prop_assert!(column < columns && row < rows, "{column} {row} of {columns} {rows}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_early_key_answers(steps in proptest::collection::vec((0_usize..12, 0_u64..450), 1..60)) {
        let mut story = (1..=9).fold(Story::new().input(1, "go").turn(1, 1), |story, at| {
            story.asks(at, &format!("c{at}"), "make", true)
        });
        let mut screen = story.screen(Theme::Plain);
        let mut now = BEGIN;
        let mut answered = 0_u64;
        // When the question that waits was in a frame first.
        let mut seen = None;
        for (what, later) in steps {
            now += later;
            let keys = [Key::Char('y'), Key::Char('p'), Key::Char('n'), Key::F(4), Key::Char('a'), Key::Backspace, Key::Esc];
            let Some(key) = keys.get(what) else {
                screen.frame(size(80, 30), now);
                seen = seen.or(Some(now));
                continue;
            };
            let writes = !screen.key(Key::Left, now).is_empty();
            prop_assert!(!writes, "moving the caret does nothing for the pod");
            for intent in screen.key(*key, now) {
                let Intent::Approve { id, .. } = intent else { continue };
                prop_assert_eq!(id, answered + 1);
                prop_assert!(seen.is_some_and(|seen| now >= seen + 300), "{:?} {now}", seen);
                answered = id;
                let resolved = json!({"approval": id, "decision": "allow", "arguments_digest": format!("digest-{id}")});
                story = story.with("approval_resolved", resolved);
                story.events().last().into_iter().for_each(|event| screen.event(event));
                seen = None;
            }
        }
    }

    #[test]
    fn the_fold_depends_on_records_alone(
        said in proptest::collection::vec(words(), 1..9),
        cut in 0_usize..80,
        parts in proptest::collection::vec(words(), 0..5),
    ) {
        let lines = story(&said).lines;
        let cut = cut.min(lines.len());
        let mut whole = Screen::begin(&attached(&lines), Role::Driver, Theme::Colour);
        let mut grown = Screen::begin(&attached(&lines[..cut]), Role::Driver, Theme::Plain);
        for line in &lines[cut..] {
            parts.iter().for_each(|part| grown.event(&text(part)));
            grown.event(&Event::Record(line.clone()));
            // A record that comes twice changes nothing.
            grown.event(&Event::Record(line.clone()));
            grown.frame(size(40, 12), BEGIN);
        }
        whole.frame(size(100, 30), BEGIN);
        prop_assert_eq!(whole.digest(), grown.digest());
    }

    #[test]
    fn older_pages_give_the_same_cells(said in proptest::collection::vec(words(), 1..9), cut in 1_usize..80) {
        let lines = story(&said).lines;
        let cut = cut.min(lines.len() - 1);
        let whole = Screen::begin(&attached(&lines), Role::Driver, Theme::Plain);
        let mut late = attached(&lines);
        late.page = Some(RecordPage { records: lines[cut..].to_vec(), first: cut as u64 + 1 });
        let mut paged = Screen::begin(&late, Role::Driver, Theme::Plain);
        paged.frame(size(40, 200), BEGIN);
        let page = RecordPage { records: lines[..cut].to_vec(), first: 1 };
        paged.answered(Reply::Page(page));
        prop_assert_eq!(shown(whole), shown(paged));
    }
}

/// Everything that a screen shows of its records.
fn shown(mut screen: Screen) -> Vec<String> {
    let frame = screen.frame(size(60, 2000), BEGIN);
    // How long a turn took is known if its begin was seen with it.
    let untimed = |text: String| {
        text.split(" · ")
            .next()
            .filter(|_| text.starts_with("  ── turn"))
            .map(str::to_owned)
            .unwrap_or(text)
    };
    let lines = frame.rows.iter().map(|line| untimed(line.text()));
    lines
        .filter(|line| !line.trim().is_empty())
        .take_while(|line| !line.contains("Before you came") && !line.starts_with("───"))
        .collect()
}

#[test]
fn a_frame_costs_what_is_seen() {
    let mut story = Story::new();
    for turn in 1..=500 {
        story = story
            .input(turn, "go")
            .turn(turn, turn)
            .says("an answer")
            .response()
            .finished(turn);
    }
    let mut screen = story.screen(Theme::Plain);
    let now = story.now();
    screen.frame(size(80, 24), now);
    let first = screen.cells_made();
    assert!(first <= 24, "{first} cells for 24 rows");
    screen.frame(size(80, 24), now);
    assert_eq!(screen.cells_made(), first, "nothing changed");
    screen.key(Key::PageUp, now);
    screen.frame(size(80, 24), now);
    let paged = screen.cells_made();
    assert!(paged <= first + 48, "{paged} cells after a page of 24 rows");
    screen.key(Key::CtrlHome, now);
    screen.frame(size(80, 24), now);
    assert!(
        screen.cells_made() <= paged + 24,
        "the begin costs a screen"
    );
    screen.event(&text("one more"));
    screen.frame(size(80, 24), now);
    assert!(
        screen.cells_made() <= paged + 24,
        "a delta makes no cell again"
    );
}
