//! What keys do, one case each.

use crate::pod::{BEGIN, Story, attached, does, size, text, types};
use protocol::event::{AlertEvent, AlertLevel, Event};
use protocol::method::{
    AllowOrDeny, AllowScope, Cancel, Draft, MoveInput, Pause, Pin, PreviewedCall, RecordPage,
    Resume, Role, Withdraw,
};
use protocol::status::DeliveryMode;
use serde_json::json;
use tui::{ConnectionState, FoundFiles, Intent, Key, PodEntry, Reply, Screen, ShownText, Theme};

fn asked(command: &str) -> (Screen, u64) {
    let story =
        Story::new()
            .input(1, "go")
            .turn(1, 1)
            .calls("c1", "Bash", json!({"command": command}));
    let story = story.asks(1, "c1", command, true);
    let mut screen = story.screen(Theme::Plain);
    screen.frame(size(80, 24), story.now());
    (screen, story.now())
}

/// The intents without the drafts, which each key may change.
fn press(screen: &mut Screen, key: Key, now: u64) -> Vec<Intent> {
    screen
        .key(key, now)
        .into_iter()
        .filter(|intent| !matches!(intent, Intent::SetDraft(_)))
        .collect()
}

fn pin(text: &str) -> Intent {
    does(Pin {
        text: text.to_owned(),
        ..Pin::default()
    })
}

fn keys(screen: &mut Screen, keys: &[Key]) {
    keys.iter().for_each(|key| drop(screen.key(*key, BEGIN)));
}

fn allow(scope: AllowScope) -> Vec<Intent> {
    let decision = AllowOrDeny::Allow;
    vec![Intent::Approve {
        id: 1,
        decision,
        scope,
        words: None,
        arguments_digest: "digest-1".to_owned(),
    }]
}

fn frame(screen: &mut Screen, now: u64) -> String {
    let frame = screen.frame(size(80, 24), now);
    frame.rows.iter().map(|line| line.text() + "\n").collect()
}

/// The menu behind a slash could be read, and its first row completed; the others had to be typed.
#[test]
fn the_menu_of_commands_is_walked_with_the_arrows() {
    let mut screen = Story::new().screen(Theme::Plain);
    types(&mut screen, "/p", BEGIN);
    let marked = |screen: &mut Screen| {
        let frame = frame(screen, BEGIN);
        let row = frame.lines().find(|row| row.starts_with("▸ /"));
        row.map(|row| row.split_whitespace().nth(1).unwrap().to_owned())
    };
    // Of pause, pin, pods and print.
    assert_eq!(marked(&mut screen), None);
    let down = |screen: &mut Screen, times| keys(screen, &vec![Key::Down; times]);
    down(&mut screen, 2);
    assert_eq!(marked(&mut screen).as_deref(), Some("/pin"));
    down(&mut screen, 9);
    assert_eq!(marked(&mut screen).as_deref(), Some("/print"));
    keys(&mut screen, &[Key::Up, Key::Up, Key::Up]);
    assert_eq!(marked(&mut screen).as_deref(), Some("/pause"));
    assert_eq!(press(&mut screen, Key::Esc, BEGIN), []);
    assert_eq!(marked(&mut screen), None);
    // What needs nothing more runs; what needs a text waits for it.
    down(&mut screen, 1);
    assert_eq!(
        press(&mut screen, Key::Enter, BEGIN),
        [does(Pause::default())]
    );
    types(&mut screen, "/s", BEGIN);
    down(&mut screen, 3);
    assert_eq!(press(&mut screen, Key::Enter, BEGIN), []);
    assert!(frame(&mut screen, BEGIN).contains("› /steer "));
    types(&mut screen, "on", BEGIN);
    let sent = Intent::Send {
        text: "on".to_owned(),
        mode: DeliveryMode::Steer,
    };
    assert_eq!(press(&mut screen, Key::Enter, BEGIN), [sent]);
    // Another text, another choice; without a choice the arrows go to earlier inputs.
    types(&mut screen, "/c", BEGIN);
    down(&mut screen, 1);
    types(&mut screen, "o", BEGIN);
    keys(&mut screen, &[Key::Tab]);
    assert!(frame(&mut screen, BEGIN).contains("› /compact "));
}

/// Paths that did not fit were left out without a word.
#[test]
fn a_path_is_chosen_with_the_arrows_and_more_are_counted() {
    let mut screen = Story::new().screen(Theme::Plain);
    types(&mut screen, "see @src", BEGIN);
    let mut files = FoundFiles {
        paths: (0..20).map(|n| format!("src/{n:02}.rs")).collect(),
        is_cut: false,
    };
    screen.answered(Reply::Files(files.clone()));
    let before = frame(&mut screen, BEGIN);
    assert!(
        before.contains("  @src/00.rs") && before.contains("… 15 more\n"),
        "{before}"
    );
    files.is_cut = true;
    screen.answered(Reply::Files(files));
    let cut = frame(&mut screen, BEGIN);
    assert!(
        cut.contains("… 15 more, and files that were not listed"),
        "{cut}"
    );
    keys(&mut screen, &[Key::Down; 8]);
    assert!(frame(&mut screen, BEGIN).contains("▸ @src/07.rs"));
    keys(&mut screen, &[Key::Enter]);
    assert!(frame(&mut screen, BEGIN).contains("see @src/07.rs"));
}

#[test]
fn a_key_answers_a_question_that_was_seen_for_300_ms() {
    let (mut screen, now) = asked("make");
    assert_eq!(press(&mut screen, Key::Char('y'), now + 299), []);
    assert!(
        frame(&mut screen, now + 299).contains("› y"),
        "it is a letter like others"
    );
    let (mut screen, now) = asked("make");
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 300),
        allow(AllowScope::Once)
    );
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 900),
        [],
        "one answer"
    );
    let (mut screen, now) = asked("make");
    screen.key(Key::Char('a'), now + 600);
    screen.key(Key::Backspace, now + 700);
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 899),
        [],
        "in the middle of typing"
    );
}

#[test]
fn the_whole_conversation_is_a_key_away() {
    let mut screen = Story::new().input(1, "go").turn(1, 1).screen(Theme::Plain);
    assert_eq!(press(&mut screen, Key::Char('v'), BEGIN), []);
    keys(&mut screen, &[Key::Backspace, Key::AltUp]);
    assert_eq!(
        press(&mut screen, Key::Char('v'), BEGIN),
        [Intent::OpenConversation]
    );
    assert_eq!(
        press(&mut screen, Key::Char('['), BEGIN),
        [Intent::PrintConversation]
    );
    keys(&mut screen, &[Key::Esc]);
    let typed = |screen: &mut Screen, command: &str| {
        types(screen, command, BEGIN);
        press(screen, Key::Enter, BEGIN)
    };
    assert_eq!(typed(&mut screen, "/log"), [Intent::OpenConversation]);
    assert_eq!(typed(&mut screen, "/print"), [Intent::PrintConversation]);
}

#[test]
fn a_question_that_no_frame_had_gets_no_answer() {
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .asks(1, "c1", "make", false);
    let mut screen = story.screen(Theme::Plain);
    assert_eq!(press(&mut screen, Key::Char('y'), BEGIN + 1_000_000), []);
    for (columns, rows) in [(80, 6), (19, 40)] {
        let mut screen = story.screen(Theme::Plain);
        let frame = screen.frame(size(columns, rows), BEGIN);
        assert!(
            frame
                .rows
                .iter()
                .any(|row| row.text().contains("question waits")),
            "at {columns}x{rows}"
        );
        assert_eq!(
            press(&mut screen, Key::Char('y'), BEGIN + 2000),
            [],
            "no room for it at {columns}x{rows}"
        );
    }
}

/// An edit shows its change, and again once a file has changed since; a change that is not whole hides no argument.
#[test]
fn a_question_about_a_file_shows_the_change() {
    let arguments = json!({"path": "a.rs", "content": "let secret = 1;"}).to_string();
    let fields = json!({"approval": 1, "call": "c1", "tool": "Write", "feature": "builtin:files", "effect": "idempotent",
        "arguments": arguments, "arguments_digest": "digest-1", "question": "asked", "rule": "r", "sandbox": "off"});
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .with("approval_requested", fields);
    let mut screen = story.screen(Theme::Plain);
    let now = story.now();
    let preview = Intent::PreviewCall { id: 1 };
    assert!(screen.intents().contains(&preview));
    let call = |whole, more| PreviewedCall {
        diff: Some("@@ -0,0 +1,1 @@\n+let shown = 1;\n".to_owned()),
        more,
        whole,
        why: None,
    };
    screen.answered(Reply::CallPreview {
        id: 1,
        call: call(true, 0),
    });
    let shown = frame(&mut screen, now);
    assert!(
        shown.contains("1 + let shown = 1;") && !shown.contains("secret"),
        "{shown}"
    );
    screen.answered(Reply::CallPreview {
        id: 1,
        call: call(false, 7),
    });
    let shown = frame(&mut screen, now);
    assert!(
        shown.contains("secret") && shown.contains("… 7 more lines"),
        "{shown}"
    );
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 1),
        [],
        "another change was not seen yet"
    );
    let changed = json!({"path": "a.rs", "call": "c0"});
    let story = story.with("file_changed", changed);
    screen.event(&story.events()[story.lines.len() - 1]);
    assert!(screen.intents().contains(&preview));
    let call = PreviewedCall::unknown("a.rs has changed".to_owned());
    screen.answered(Reply::CallPreview { id: 1, call });
    assert!(frame(&mut screen, now).contains("the change cannot be shown: a.rs has changed"));
}

#[test]
fn with_a_text_in_the_composer_an_answer_needs_its_own_key() {
    let (mut screen, now) = asked("make");
    types(&mut screen, "say", now + 1000);
    assert_eq!(press(&mut screen, Key::Char('y'), now + 5000), []);
    screen.key(Key::F(4), now + 5500);
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 6000),
        allow(AllowScope::Once)
    );
    assert!(frame(&mut screen, now).contains("› sayy"), "the text stays");
}

#[test]
fn the_next_question_needs_the_key_again() {
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .asks(1, "c1", "make", true)
        .asks(2, "c2", "make", true);
    let mut screen = story.screen(Theme::Plain);
    let now = story.now();
    screen.frame(size(80, 24), now);
    types(&mut screen, "say", now);
    screen.key(Key::F(4), now + 500);
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 1000),
        allow(AllowScope::Once)
    );
    let story = story.with(
        "approval_resolved",
        json!({"approval": 1, "decision": "allow", "arguments_digest": "digest-1"}),
    );
    screen.event(&story.events()[story.lines.len() - 1]);
    assert!(frame(&mut screen, now + 1000).contains("? approval 2"));
    assert_eq!(press(&mut screen, Key::Char('y'), now + 9000), []);
}

#[test]
fn what_was_not_read_to_its_end_is_not_allowed() {
    let long: String = (1..=60).map(|n| format!("echo {n}\n")).collect();
    let (mut screen, now) = asked(&long);
    assert_eq!(press(&mut screen, Key::Char('y'), now + 1000), []);
    assert!(frame(&mut screen, now + 1000).contains("read to the end first"));
    for _ in 0..20 {
        screen.key(Key::PageDown, now + 1000);
        screen.frame(size(80, 24), now + 1000);
    }
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 2000),
        allow(AllowScope::Once)
    );
}

#[test]
fn a_rule_is_shown_before_it_is_allowed() {
    let (mut screen, now) = asked("cargo test");
    assert_eq!(
        press(&mut screen, Key::Char('r'), now + 400),
        [Intent::PreviewRule { id: 1 }]
    );
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 1000),
        [],
        "nothing is known yet"
    );
    screen.answered(Reply::RulePreview {
        id: 1,
        text: Ok("  added to config.toml:\n    [[rule]]".to_owned()),
    });
    assert!(frame(&mut screen, now + 2000).contains("[[rule]]"));
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 2299),
        [],
        "it was seen too short"
    );
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 2900),
        allow(AllowScope::Rule)
    );
    let (mut screen, now) = asked("cargo test");
    assert_eq!(
        press(&mut screen, Key::Char('p'), now + 400),
        allow(AllowScope::Pod)
    );
}

#[test]
fn a_denial_has_words() {
    let (mut screen, now) = asked("make");
    screen.key(Key::Char('w'), now + 400);
    types(&mut screen, "not yet", now + 400);
    let words = Some("not yet".to_owned());
    let deny = |words| {
        let decision = AllowOrDeny::Deny;
        let scope = AllowScope::Once;
        vec![Intent::Approve {
            id: 1,
            decision,
            scope,
            words,
            arguments_digest: "digest-1".to_owned(),
        }]
    };
    assert_eq!(press(&mut screen, Key::Enter, now + 500), deny(words));
    screen.answered(Reply::ApproveFailed {
        id: 1,
        why: "lost".to_owned(),
    });
    assert_eq!(
        press(&mut screen, Key::Char('n'), now + 1000),
        deny(None),
        "it can be answered again"
    );
}

#[test]
fn the_words_of_a_denial_are_not_lost() {
    let (mut screen, now) = asked("make");
    screen.key(Key::Char('w'), now + 400);
    screen.paste("because");
    let resolved = json!({"q": 90, "t": now * 1000, "k": "approval_resolved", "v": 1, "approval": 1,
        "decision": "allow", "arguments_digest": "digest-1"});
    screen.event(&Event::Record(
        protocol::record::RecordLine::new(resolved.to_string()).unwrap(),
    ));
    screen.key(Key::Up, now);
    assert!(frame(&mut screen, now).contains("› because"));
    let (mut screen, now) = asked("make");
    screen.key(Key::Char('w'), now + 400);
    screen.paste(&"x".repeat(2049));
    assert_eq!(press(&mut screen, Key::Enter, now + 500), []);
    assert!(frame(&mut screen, now + 500).contains("at most 2 KiB"));
}

#[test]
fn an_answer_of_another_client_ends_the_question() {
    let (mut screen, now) = asked("make");
    let by = json!({"client": "yoi approve", "role": "approver", "uid": 0, "name": "ada"});
    let resolved = json!({"q": 90, "t": now * 1000, "k": "approval_resolved", "v": 1, "approval": 1,
        "decision": "deny", "arguments_digest": "digest-1", "reason": "too early", "by": by});
    screen.event(&Event::Record(
        protocol::record::RecordLine::new(resolved.to_string()).unwrap(),
    ));
    let shown = frame(&mut screen, now);
    assert!(
        shown.contains("approval 1: denied by ada (yoi approve): too early"),
        "{shown}"
    );
    assert!(!shown.contains("allow once"), "{shown}");
    assert_eq!(press(&mut screen, Key::Char('y'), now + 5000), []);
}

#[test]
fn an_answer_from_before_the_person_came_is_no_news() {
    let story =
        Story::new()
            .input(1, "go")
            .turn(1, 1)
            .calls("c1", "Bash", json!({"command": "make"}));
    let by = json!({"client": "yoi approve", "role": "approver", "uid": 0, "name": "ada"});
    let resolved =
        json!({"approval": 1, "decision": "allow", "arguments_digest": "digest-1", "by": by});
    let story = story
        .asks(1, "c1", "make", true)
        .with("approval_resolved", resolved);
    assert!(
        frame(&mut story.screen(Theme::Plain), story.now()).contains("approval 1"),
        "to who was there"
    );
    let mut screen = Screen::begin(&story.attached(), Role::Driver, Theme::Plain);
    let shown = frame(&mut screen, story.now());
    assert!(!shown.contains("approval 1"), "{shown}");
}

#[test]
fn a_paste_is_one_piece_and_is_sent_whole() {
    let mut screen = Story::new().screen(Theme::Plain);
    types(&mut screen, "see ", BEGIN);
    let paste = "a line\r\n".repeat(5);
    screen.paste(&paste);
    types(&mut screen, "!", BEGIN);
    assert!(frame(&mut screen, BEGIN).contains("› see [pasted 5 lines]!"));
    keys(&mut screen, &[Key::Left, Key::Left, Key::Delete]);
    assert!(frame(&mut screen, BEGIN).contains("› see !"));
    screen.key(Key::Ctrl('z'), BEGIN);
    let sent = |text: String| {
        [Intent::Send {
            text,
            mode: DeliveryMode::Queue,
        }]
    };
    assert_eq!(
        press(&mut screen, Key::Enter, BEGIN),
        sent(format!("see {}!", "a line\n".repeat(5)))
    );
    screen.paste(&paste);
    screen.paste(&"x".repeat(500));
    keys(&mut screen, &[Key::Left, Key::Backspace]);
    assert_eq!(
        press(&mut screen, Key::Enter, BEGIN),
        sent("x".repeat(500)),
        "of two pastes the first was removed"
    );
}

#[test]
fn a_character_is_what_a_reader_takes_for_one() {
    let mut screen = Story::new().screen(Theme::Plain);
    types(&mut screen, "ae\u{301}👩\u{200d}👧日", BEGIN);
    let sent = |screen: &mut Screen| match &press(screen, Key::Enter, BEGIN)[..] {
        [Intent::Send { text, .. }] => text.clone(),
        other => panic!("{other:?}"),
    };
    keys(&mut screen, &[Key::Left, Key::Left, Key::Backspace]);
    assert_eq!(sent(&mut screen), "a👩\u{200d}👧日");
    types(&mut screen, "one two\u{a0}three", BEGIN);
    keys(
        &mut screen,
        &[
            Key::WordLeft,
            Key::Ctrl('w'),
            Key::End,
            Key::Ctrl('u'),
            Key::Ctrl('z'),
        ],
    );
    assert!(sent(&mut screen).ends_with("three"));
}

#[test]
fn a_caret_goes_up_in_the_text_and_then_to_earlier_inputs() {
    let story = Story::new()
        .input(1, "the first")
        .turn(1, 1)
        .finished(1)
        .input(2, "the second");
    let mut screen = story.screen(Theme::Plain);
    types(&mut screen, "mine", BEGIN);
    let shown = |screen: &mut Screen, key| {
        screen.key(key, BEGIN);
        frame(screen, BEGIN)
            .lines()
            .rev()
            .nth(1)
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(shown(&mut screen, Key::Up), "› the second");
    assert_eq!(shown(&mut screen, Key::Up), "› the first");
    assert_eq!(shown(&mut screen, Key::Up), "› the first");
    assert_eq!(shown(&mut screen, Key::Down), "› the second");
    assert_eq!(shown(&mut screen, Key::Down), "› mine");
    screen.key(Key::Ctrl('u'), BEGIN);
    types(&mut screen, "FIR", BEGIN);
    assert_eq!(shown(&mut screen, Key::Ctrl('r')), "› the first");
}

#[test]
fn an_input_that_waits_can_be_changed() {
    let story = (1..=3).fold(Story::new(), |story, input| {
        story.input(input, &format!("input {input}"))
    });
    let now = story.now();
    let pressed = |keys: &[Key]| {
        let mut screen = story.screen(Theme::Plain);
        screen.frame(size(80, 24), now);
        screen.key(Key::AltUp, now);
        let all: Vec<Intent> = keys
            .iter()
            .flat_map(|key| press(&mut screen, *key, now))
            .collect();
        all
    };
    assert_eq!(
        pressed(&[Key::Char('x')]),
        [does(Withdraw {
            input: 3,
            ..Withdraw::default()
        })]
    );
    assert_eq!(
        pressed(&[Key::Char('u')]),
        [does(MoveInput {
            input: 3,
            before: Some(2),
            ..MoveInput::default()
        })]
    );
    assert_eq!(
        pressed(&[Key::AltUp, Key::Char('d')]),
        [does(MoveInput {
            input: 2,
            before: None,
            ..MoveInput::default()
        })]
    );
    assert_eq!(
        pressed(&[Key::AltUp, Key::AltUp, Key::Char('d')]),
        [does(MoveInput {
            input: 1,
            before: Some(3),
            ..MoveInput::default()
        })]
    );
    assert_eq!(
        pressed(&[Key::Char('s')]),
        [Intent::SendNow {
            input: 3,
            text: "input 3".to_owned(),
            typed: None,
        }]
    );
    let edited = Intent::EditInput {
        input: 3,
        text: "input 3!".to_owned(),
    };
    assert_eq!(
        pressed(&[Key::Char('e'), Key::Char('!'), Key::Enter]),
        [edited]
    );
}

#[test]
fn an_input_that_is_gone_has_no_keys() {
    let story = (1..=2).fold(Story::new(), |story, input| {
        story.input(input, &format!("input {input}"))
    });
    for over in [
        story.clone().with("input_withdrawn", json!({"input": 2})),
        story.clone().turn(1, 2),
    ] {
        let mut screen = story.screen(Theme::Plain);
        screen.key(Key::AltUp, story.now());
        assert!(frame(&mut screen, story.now()).contains("x withdraw"));
        over.events()[story.lines.len()..]
            .iter()
            .for_each(|event| screen.event(event));
        let shown = frame(&mut screen, over.now());
        assert!(!shown.contains("x withdraw"), "{shown}");
        types(&mut screen, "exit", over.now());
        assert!(frame(&mut screen, over.now()).contains("› exit"));
    }
}

#[test]
fn a_slash_begins_a_command() {
    let mut screen = Story::new().screen(Theme::Plain);
    let mut enter = |text: &str| {
        types(&mut screen, text, BEGIN);
        let intents = press(&mut screen, Key::Enter, BEGIN);
        (intents, frame(&mut screen, BEGIN))
    };
    let send = |text: &str, mode| {
        vec![Intent::Send {
            text: text.to_owned(),
            mode,
        }]
    };
    assert_eq!(enter("/pause").0, [does(Pause::default())]);
    assert_eq!(enter("/resume").0, [does(Resume::default())]);
    assert_eq!(
        enter("/more").0,
        [does(Resume {
            more: true,
            ..Resume::default()
        })]
    );
    assert_eq!(
        enter("/steer use less").0,
        send("use less", DeliveryMode::Steer)
    );
    assert_eq!(enter(" /pause").0, send(" /pause", DeliveryMode::Queue));
    assert!(
        enter("/usr/bin is full")
            .1
            .contains("there is no command `/usr/bin is full`")
    );
    screen.key(Key::Ctrl('c'), BEGIN);
    let mut told = |text: &str| {
        types(&mut screen, text, BEGIN);
        screen.key(Key::Enter, BEGIN);
        let frame = frame(&mut screen, BEGIN);
        screen.key(Key::Ctrl('c'), BEGIN);
        frame
            .split_whitespace()
            .filter(|word| *word != "│")
            .collect::<Vec<_>>()
            .join(" ")
    };
    // Commands of other programs were answered only with "put a space in front of it".
    for (line, meant) in [
        ("/quit", "`/detach` leaves"),
        ("/q", "`/detach` leaves"),
        ("/EXIT", "`/detach` leaves"),
        ("/stop", "`/cancel` ends the running turn"),
        ("/clear", "`/new` starts a pod"),
        ("/?", "`/help` shows"),
        ("/cancle", "did you mean `/cancel`?"),
        ("/stat", "did you mean `/status`?"),
        ("/pause now", "write nothing after /pause"),
        ("/tmp is full", "put a space in front"),
    ] {
        let frame = told(line);
        assert!(
            frame.contains(meant)
                && (meant.contains("space") || !frame.contains("a space in front")),
            "{line}: {frame}"
        );
    }
    types(&mut screen, "/can", BEGIN);
    screen.key(Key::Tab, BEGIN);
    assert_eq!(
        press(&mut screen, Key::Enter, BEGIN),
        [does(Cancel::default())]
    );
}

#[test]
fn leaving_and_interrupting() {
    let story = Story::new().input(1, "go").turn(1, 1);
    let mut screen = story.screen(Theme::Plain);
    assert_eq!(press(&mut screen, Key::Ctrl('d'), BEGIN), [Intent::Detach]);
    assert_eq!(press(&mut screen, Key::Ctrl('c'), BEGIN), []);
    assert_eq!(
        press(&mut screen, Key::Ctrl('c'), BEGIN + 9000),
        [],
        "too late to be the second"
    );
    assert_eq!(
        press(&mut screen, Key::Ctrl('c'), BEGIN + 9500),
        [Intent::Detach]
    );
    assert_eq!(
        press(&mut screen, Key::Esc, BEGIN + 20_000),
        [does(Cancel::default())]
    );
    assert_eq!(press(&mut screen, Key::Esc, BEGIN + 20_500), []);
    assert!(
        frame(&mut screen, BEGIN).contains("› go"),
        "the input is back"
    );
    assert_eq!(
        press(&mut screen, Key::Ctrl('d'), BEGIN),
        [],
        "there is a text"
    );
}

#[test]
fn nothing_typed_is_lost() {
    let mut screen = Story::new().screen(Theme::Plain);
    screen.connection(ConnectionState::Lost("gone".to_owned()));
    types(&mut screen, "an input", BEGIN);
    assert_eq!(press(&mut screen, Key::Enter, BEGIN), []);
    assert!(frame(&mut screen, BEGIN).contains("› an input"));
    // The pod came back as a new process, which has no draft.
    screen.resume(&attached(&Story::new().lines));
    assert!(frame(&mut screen, BEGIN).contains("› an input"));
    press(&mut screen, Key::Enter, BEGIN);
    screen.answered(Reply::SendFailed {
        text: "an input".to_owned(),
        why: "the pod is stopping".to_owned(),
    });
    let shown = frame(&mut screen, BEGIN);
    assert!(
        shown.contains("› an input") && shown.contains("the pod is stopping"),
        "{shown}"
    );
}

#[test]
fn a_draft_goes_to_the_pod_and_comes_from_it() {
    let mut screen = Story::new().screen(Theme::Plain);
    let draft = |text: &str| {
        Event::Draft(Draft {
            text: text.to_owned(),
            revision: 9,
            by: None,
        })
    };
    assert_eq!(
        screen.key(Key::Char('a'), BEGIN),
        [Intent::SetDraft("a".to_owned())]
    );
    screen.key(Key::Char('b'), BEGIN);
    screen.event(&draft("a"));
    assert!(
        frame(&mut screen, BEGIN).contains("› ab"),
        "an echo changes nothing"
    );
    screen.event(&draft("of another client"));
    assert!(
        frame(&mut screen, BEGIN).contains("› ab"),
        "what is being written here stays"
    );
    screen.event(&draft("ab"));
    screen.event(&draft("of another client"));
    assert!(frame(&mut screen, BEGIN).contains("› of another client"));
}

#[test]
fn what_is_read_stays_where_it_is() {
    let story = (1..=40).fold(Story::new(), |story, _| story.says("an older answer"));
    let mut late = story.attached();
    late.page = Some(RecordPage {
        records: story.lines[30..].to_vec(),
        first: 31,
    });
    let mut screen = Screen::begin(&late, Role::Driver, Theme::Plain);
    screen.frame(size(80, 10), BEGIN);
    assert_eq!(screen.intents(), []);
    screen.key(Key::CtrlHome, BEGIN);
    let before = screen.frame(size(80, 10), BEGIN);
    assert_eq!(screen.intents(), [Intent::OlderPage { before: 31 }]);
    screen.frame(size(80, 10), BEGIN);
    assert_eq!(screen.intents(), [], "it is asked for once");
    screen.event(&Event::Record(story.lines[0].clone()));
    screen.event(&text("something new"));
    let rows = |frame: &tui::Frame| {
        frame
            .rows
            .iter()
            .take(6)
            .map(tui::Line::text)
            .collect::<Vec<_>>()
    };
    assert_eq!(rows(&screen.frame(size(80, 10), BEGIN)), rows(&before));
    screen.answered(Reply::Page(RecordPage {
        records: story.lines[..30].to_vec(),
        first: 1,
    }));
    // The first cell that was there has an empty line before it now.
    let shown = rows(&screen.frame(size(80, 10), BEGIN));
    assert!(
        shown
            .iter()
            .filter(|row| row.contains("older answer"))
            .count()
            == 3,
        "{shown:?}"
    );
    screen.key(Key::CtrlHome, BEGIN);
    assert!(frame(&mut screen, BEGIN).contains("started in"));
}

#[test]
fn an_idle_screen_sleeps() {
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .says("done")
        .response()
        .finished(1);
    let mut screen = story.screen(Theme::Plain);
    screen.frame(size(80, 24), story.now());
    assert_eq!(screen.redraw_in(story.now()), None);
    let story = Story::new().input(1, "go").turn(1, 1);
    let mut screen = story.screen(Theme::Plain);
    screen.frame(size(80, 24), story.now() + 300);
    assert_eq!(screen.redraw_in(story.now() + 300), Some(700));
    screen.connection(ConnectionState::Ended(None));
    screen.frame(size(80, 24), story.now());
    assert_eq!(screen.redraw_in(story.now()), None);
    // Waiting for a person, it wakes when the question ends.
    let (screen, now) = asked("make");
    assert_eq!(
        screen.redraw_in(now),
        Some((BEGIN + 600_000 - now) % 1000 + 1)
    );
}

#[test]
fn memory_has_a_bound() {
    let mut story = Story::new();
    for _ in 0..5000 {
        story = story.says(&"many words ".repeat(300));
    }
    let mut screen = story.screen(Theme::Plain);
    screen.key(Key::CtrlHome, BEGIN);
    screen.frame(size(80, 24), BEGIN);
    // About 3,400 bytes each: 8 MiB have fewer than 2,600.
    let intents = screen.intents();
    let [Intent::OlderPage { before }] = &intents[..] else {
        panic!("{intents:?}")
    };
    assert!((2400..4000).contains(before), "{before}");
}

#[test]
fn a_person_who_does_not_look_is_told_once() {
    let (mut screen, _) = asked("make");
    assert_eq!(screen.title(), "1 waiting · night · yoi");
    assert_eq!(
        screen.notification().as_deref(),
        Some("night waits for you: Bash")
    );
    assert_eq!(screen.notification(), None);
}

#[test]
fn a_question_whose_record_was_not_seen_is_fetched() {
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .asks(1, "c1", "make", true)
        .says("more");
    let mut late = story.attached();
    late.page = Some(RecordPage {
        records: story.lines[story.lines.len() - 1..].to_vec(),
        first: 9,
    });
    let mut screen = Screen::begin(&late, Role::Driver, Theme::Plain);
    assert_eq!(screen.intents(), [Intent::FetchApprovals]);
    let protocol::record::RecordBody::ApprovalRequested(asked) =
        story.lines[story.lines.len() - 2].read().unwrap().body
    else {
        panic!("no question")
    };
    let open = protocol::method::OpenApprovals {
        approvals: vec![asked],
        rules: Vec::new(),
    };
    screen.answered(Reply::Approvals(open));
    assert!(frame(&mut screen, BEGIN).contains("command: make"));
}

#[test]
fn questions_that_could_not_be_fetched_are_asked_for_again() {
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .asks(1, "c1", "make", true)
        .says("more");
    let mut late = story.attached();
    late.page = Some(RecordPage {
        records: story.lines[story.lines.len() - 1..].to_vec(),
        first: 9,
    });
    let mut screen = Screen::begin(&late, Role::Driver, Theme::Plain);
    assert_eq!(screen.intents(), [Intent::FetchApprovals]);
    screen.answered(Reply::ApprovalsFailed("too many requests".to_owned()));
    assert_eq!(screen.intents(), [], "not at once");
    screen.event(&text("something"));
    assert_eq!(screen.intents(), [Intent::FetchApprovals]);
}

#[test]
fn a_page_that_was_refused_is_not_asked_for_with_another_cursor() {
    let story = (1..=40).fold(Story::new(), |story, n| story.says(&format!("answer {n}")));
    let mut late = story.attached();
    late.page = Some(RecordPage {
        records: story.lines[30..].to_vec(),
        first: 31,
    });
    for reply in [
        Reply::PageFailed("gone".to_owned()),
        Reply::Page(RecordPage {
            records: vec![story.lines[0].clone(); 4001],
            first: 1,
        }),
    ] {
        let mut screen = Screen::begin(&late, Role::Driver, Theme::Plain);
        screen.key(Key::CtrlHome, BEGIN);
        screen.frame(size(80, 10), BEGIN);
        assert_eq!(screen.intents(), [Intent::OlderPage { before: 31 }]);
        screen.answered(reply);
        let next = story.clone().says("new");
        screen.event(&Event::Record(next.lines.last().unwrap().clone()));
        screen.frame(size(80, 10), BEGIN);
        assert_eq!(screen.intents(), []);
        screen.resume(&late);
        screen.frame(size(80, 10), BEGIN);
        assert_eq!(
            screen.intents(),
            [Intent::OlderPage { before: 31 }],
            "over a new connection"
        );
    }
}

#[test]
fn what_was_written_before_a_waiting_input_is_edited_is_not_lost() {
    let story = Story::new().input(1, "go").turn(1, 1).input(2, "waits");
    let mut screen = story.screen(Theme::Plain);
    types(&mut screen, "half a thought", BEGIN);
    keys(&mut screen, &[Key::AltUp, Key::Char('e')]);
    assert!(frame(&mut screen, BEGIN).contains("✎ waits"));
    screen.key(Key::Esc, BEGIN);
    screen.key(Key::Up, BEGIN);
    assert!(frame(&mut screen, BEGIN).contains("› half a thought"));
}

#[test]
fn an_input_may_say_what_stands_for_an_unknown_one() {
    let state = |text: &str| {
        let story = Story::new().input(1, text).turn(1, 1);
        story.screen(Theme::Plain).digest()
    };
    assert_ne!(
        state("(input 7)"),
        state("(input 8)"),
        "both are in records, whole"
    );
}

#[test]
fn a_note_that_reads_like_an_answer_is_none() {
    let story =
        Story::new()
            .input(1, "go")
            .turn(1, 1)
            .calls("c1", "Bash", json!({"command": "make"}));
    let begun = story.lines.len();
    let story = story.asks(1, "c1", "make", true);
    let asked = story.lines.len();
    let story = story
        .with("item", json!({"item": {"type": "assistant", "text": "x"}}))
        .input(2, "approval 1: a text");
    let story = story.with("input_withdrawn", json!({"input": 2}));
    let note = json!({"q": 90, "t": story.now() * 1000, "k": "suspended", "v": 1, "reason": "x", "cause": "disk"});
    let mut late = story.attached();
    late.page = Some(RecordPage {
        records: story.lines[asked..].to_vec(),
        first: asked as u64 + 1,
    });
    let mut screen = Screen::begin(&late, Role::Driver, Theme::Plain);
    let alert = AlertEvent {
        level: AlertLevel::Warning,
        from: None,
        text: "approval 1: looks like one".to_owned(),
    };
    screen.event(&Event::Alert(alert));
    let line = protocol::record::RecordLine::new(note.to_string()).unwrap();
    screen.event(&Event::Record(line));
    let before = RecordPage {
        records: story.lines[begun - 1..asked].to_vec(),
        first: begun as u64,
    };
    screen.key(Key::CtrlHome, BEGIN);
    screen.frame(size(80, 30), BEGIN);
    screen.answered(Reply::Page(before));
    assert!(frame(&mut screen, BEGIN).contains("approval 1: looks like one"));
}

#[test]
fn texts_of_inputs_have_a_bound_in_bytes() {
    let long = "x".repeat(1 << 20);
    let story = (1..=20).fold(Story::new(), |story, n| {
        story.input(n, &format!("{n}{long}"))
    });
    let mut copied = 0;
    for n in 1..=20 {
        let mut screen = story.screen(Theme::Plain);
        for _ in 0..n {
            screen.key(Key::AltUp, BEGIN);
        }
        copied += usize::from(
            press(&mut screen, Key::Char('c'), BEGIN)
                .iter()
                .any(|intent| matches!(intent, Intent::Copy(_))),
        );
    }
    assert_eq!(copied, 7, "8 MiB have seven of these");
}

#[test]
fn an_absence_whose_beginning_is_not_on_the_page_is_told_so() {
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .says("one")
        .finished(1);
    let story = story
        .with("turn_started", json!({"turn": 2}))
        .says("two")
        .finished(2);
    let mut late = story.attached();
    let told = |late: &protocol::method::Attached| {
        let mut screen = Screen::begin(late, Role::Driver, Theme::Plain);
        frame(&mut screen, BEGIN)
    };
    assert!(told(&late).contains("Before you came:"));
    let from = story.lines.len() - 3;
    late.page = Some(RecordPage {
        records: story.lines[from..].to_vec(),
        first: from as u64 + 1,
    });
    assert!(told(&late).contains("Before you came, at least:"));
}

/// A turn that a person had watched without a key was told again when they came back.
#[test]
fn what_a_client_of_the_person_showed_did_not_happen_while_they_were_away() {
    let story = Story::new().input(1, "go").turn(1, 1).finished(1);
    let watched = story.lines.len() as u64;
    let story = story
        .with("turn_started", json!({"turn": 2}))
        .says("two")
        .finished(2);
    let attached = story.attached();
    let told = |seen| {
        let mut screen = Screen::begin_after(&attached, seen, Role::Driver, Theme::Plain);
        frame(&mut screen, BEGIN)
    };
    // Nobody knows whether someone who comes for the first time was away.
    let first = told(None);
    assert!(
        first.contains("2 turns") && !first.contains("While you were away"),
        "{first}"
    );
    assert!(told(Some(watched)).contains("1 turn ·"));
    let all = story.lines.len() as u64;
    assert!(!told(Some(all)).contains("While you were away"));
    // The first page begins behind what was seen, or at it.
    let mut later = story.attached();
    later.page = Some(RecordPage {
        records: story.lines[watched as usize..].to_vec(),
        first: watched + 1,
    });
    let told = |seen| {
        let mut screen = Screen::begin_after(&later, Some(seen), Role::Driver, Theme::Plain);
        frame(&mut screen, BEGIN)
    };
    assert!(told(watched).contains("While you were away:"));
    assert!(told(watched - 1).contains("While you were away, at least:"));
}

#[test]
fn a_frame_that_is_not_at_the_terminal_was_not_seen() {
    let (mut screen, now) = asked("make");
    screen.not_shown();
    assert_eq!(press(&mut screen, Key::Char('y'), now + 5000), []);
    screen.key(Key::Backspace, now + 5000);
    screen.frame(size(80, 24), now + 6000);
    assert_eq!(press(&mut screen, Key::Char('y'), now + 6299), []);
    screen.key(Key::Backspace, now + 6299);
    assert_eq!(
        press(&mut screen, Key::Char('y'), now + 7000),
        allow(AllowScope::Once)
    );
}

/// Types a command, and gives what is asked for.
fn commands(screen: &mut Screen, command: &str) -> Vec<Intent> {
    types(screen, command, BEGIN);
    press(screen, Key::Enter, BEGIN)
}

/// What was to be undone, and which models there are, was on other pages of the manual. An undo is shown before it is made.
#[test]
fn a_person_undoes_a_turn_and_changes_the_model_without_leaving() {
    let story = Story::new().input(1, "go").turn(1, 1);
    let first = story.lines.len() as u64 - 2;
    let story = story.with("file_changed", json!({"path": "a.rs", "call": "c0"}));
    let mut screen = story.screen(Theme::Plain);
    assert_eq!(commands(&mut screen, "/model"), [], "a turn runs");
    let mut screen = story.finished(1).screen(Theme::Plain);
    let undo = Intent::PreviewUndo { to: first };
    assert_eq!(commands(&mut screen, "/undo"), [undo]);
    let mut shown = ShownText {
        text: "would be restored: a.rs".to_owned(),
        confirms: Some(Intent::Undo { to: first }),
        ..ShownText::default()
    };
    screen.answered(Reply::Shown(Ok(shown.clone())));
    assert_eq!(press(&mut screen, Key::Char('y'), BEGIN), [], "not seen");
    assert!(frame(&mut screen, BEGIN).contains("y does it"));
    assert_eq!(
        press(&mut screen, Key::Char('y'), BEGIN),
        [Intent::Undo { to: first }]
    );
    (shown.confirms, shown.more) = (None, 3);
    screen.answered(Reply::Shown(Ok(shown)));
    assert!(frame(&mut screen, BEGIN).contains("… 3 more lines"));
    keys(&mut screen, &[Key::Esc]);
    for (command, since) in [("/diff", 0), ("/diff turn", first)] {
        assert_eq!(
            commands(&mut screen, command),
            [Intent::ShowDiff { since }],
            "{command}"
        );
        keys(&mut screen, &[Key::Esc]);
    }
    assert_eq!(commands(&mut screen, "/agents"), [Intent::ListAgents]);
    keys(&mut screen, &[Key::Esc]);
    assert_eq!(commands(&mut screen, "/model"), [Intent::ListModels]);
    let choices = ["a", "b"].map(|name| (name.to_owned(), pin(name)));
    screen.answered(Reply::Shown(Ok(ShownText {
        choices: choices.to_vec(),
        ..ShownText::default()
    })));
    assert!(frame(&mut screen, BEGIN).contains("▶ a"));
    assert_eq!(press(&mut screen, Key::Down, BEGIN), []);
    assert_eq!(press(&mut screen, Key::Enter, BEGIN), [pin("b")]);
    assert!(
        matches!(&commands(&mut screen, "/new")[..], [Intent::NewPod { dir, .. }] if dir == "/src/app")
    );
}

fn entry(name: &str, is_live: bool, waits: bool) -> PodEntry {
    let state = if waits { "waiting for you" } else { "idle" };
    let details = if waits {
        vec![format!("waiting for approval 1: a call of {name}")]
    } else {
        Vec::new()
    };
    PodEntry {
        name: name.to_owned(),
        state: state.to_owned(),
        is_live,
        waits,
        details,
    }
}

/// A screen of the pod `night`, which lists these pods.
fn listed() -> Screen {
    let mut screen = Story::new().screen(Theme::Plain);
    assert_eq!(press(&mut screen, Key::F(4), BEGIN), [Intent::ListPods]);
    assert!(frame(&mut screen, BEGIN).contains("listing the pods"));
    let pods = [
        ("build", true, true),
        ("gone", false, true),
        ("night", true, false),
        ("notes", true, false),
    ];
    screen.answered(Reply::Pods(Ok(pods
        .map(|(name, is_live, waits)| entry(name, is_live, waits))
        .to_vec())));
    screen
}

#[test]
fn the_list_of_pods_leads_to_another_one() {
    let mut screen = listed();
    let shown = frame(&mut screen, BEGIN);
    assert!(
        shown.contains("▶ build · waiting for you")
            && shown.contains("approval 1: a call of build"),
        "{shown}"
    );
    assert!(shown.contains("night · idle · this one"), "{shown}");
    assert_eq!(
        press(&mut screen, Key::Enter, BEGIN),
        [Intent::Switch("build".to_owned())]
    );
    // One that does not run is started first.
    let mut screen = listed();
    assert_eq!(press(&mut screen, Key::Down, BEGIN), []);
    assert_eq!(
        press(&mut screen, Key::Enter, BEGIN),
        [Intent::StartPod("gone".to_owned())]
    );
    screen.answered(Reply::Started("gone".to_owned()));
    assert_eq!(screen.intents(), [Intent::Switch("gone".to_owned())]);
    // Letters narrow the list, and are no text.
    let mut screen = listed();
    keys(
        &mut screen,
        &[
            Key::Char('n'),
            Key::Char('o'),
            Key::Char('x'),
            Key::Backspace,
        ],
    );
    let shown = frame(&mut screen, BEGIN);
    assert!(
        shown.contains("▶ notes") && !shown.contains("build"),
        "{shown}"
    );
    assert_eq!(
        press(&mut screen, Key::Enter, BEGIN),
        [Intent::Switch("notes".to_owned())]
    );
    assert!(!frame(&mut screen, BEGIN).contains("› no"));
    // Its own pod.
    let mut screen = listed();
    keys(
        &mut screen,
        &[Key::Char('g'), Key::Backspace, Key::Down, Key::Down],
    );
    assert_eq!(press(&mut screen, Key::Enter, BEGIN), []);
    assert!(!frame(&mut screen, BEGIN).contains("── pods"));
}

#[test]
fn the_chosen_pod_of_a_long_list_is_seen() {
    let mut screen = listed();
    let pods = (0..60)
        .map(|n| entry(&format!("pod-{n}"), true, false))
        .collect();
    screen.answered(Reply::Pods(Ok(pods)));
    for n in 0..60 {
        let shown = frame(&mut screen, BEGIN);
        assert!(shown.contains(&format!("▶ pod-{n} ")), "{n}:\n{shown}");
        press(&mut screen, Key::Down, BEGIN);
    }
    screen.answered(Reply::Pods(Err("the disk is gone".to_owned())));
    assert!(frame(&mut screen, BEGIN).contains("the disk is gone"));
}

#[test]
fn keys_for_the_list_of_pods_answer_no_question() {
    let (mut screen, now) = asked("touch made");
    frame(&mut screen, now);
    let later = now + 1000;
    press(&mut screen, Key::F(4), later);
    assert_eq!(press(&mut screen, Key::F(4), later), [Intent::ListPods]);
    frame(&mut screen, later);
    frame(&mut screen, later + 1000);
    assert_eq!(press(&mut screen, Key::Char('y'), later + 1000), []);
    keys(&mut screen, &[Key::Esc]);
    let shown = frame(&mut screen, later + 1000);
    assert!(
        !shown.contains("── pods") && shown.contains("y allow once"),
        "{shown}"
    );
}

#[test]
fn a_line_about_an_absence_leads_to_its_record() {
    let story = Story::new().input(1, "go").turn(1, 1).calls(
        "c00000001",
        "Bash",
        json!({"command": "rm -r x"}),
    );
    let story = story
        .ends("c00000001", "refused", "not allowed", "")
        .says("so I did not")
        .finished(1);
    let mut screen = Screen::begin(&story.attached(), Role::Driver, Theme::Plain);
    let now = story.now();
    assert!(frame(&mut screen, now).contains("1 call refused"));
    press(&mut screen, Key::AltUp, now);
    assert!(frame(&mut screen, now).contains("Enter goes there"));
    press(&mut screen, Key::Enter, now);
    let shown = frame(&mut screen, now);
    assert!(shown.contains("▶ ⊘ Bash rm -r x"), "{shown}");
    // From there on it is a part of the transcript like others.
    assert!(shown.contains("Enter opens or closes"), "{shown}");
}

#[test]
fn an_at_sign_begins_the_path_of_a_file() {
    let mut screen = Story::new().screen(Theme::Plain);
    let asks = |screen: &mut Screen, text: &str| {
        let typed = text
            .chars()
            .flat_map(|c| press(screen, Key::Char(c), BEGIN));
        typed
            .filter(|intent| matches!(intent, Intent::ListFiles(_)))
            .collect::<Vec<_>>()
    };
    assert_eq!(asks(&mut screen, "mail a@b, see "), []);
    assert_eq!(
        asks(&mut screen, "@WID"),
        [Intent::ListFiles("/src/app".to_owned())]
    );
    assert!(!frame(&mut screen, BEGIN).contains("@src"));
    let paths = [
        "docs/widths.md",
        "src/narrow.rs",
        "src/unwidened.rs",
        "src/width.rs",
        "wide notes.txt",
    ];
    screen.answered(Reply::Files(FoundFiles {
        paths: paths.map(str::to_owned).to_vec(),
        is_cut: false,
    }));
    let shown = frame(&mut screen, BEGIN);
    let order: Vec<_> = shown
        .lines()
        .filter_map(|line| line.trim_matches(['│', ' ']).strip_prefix('@'))
        .collect();
    assert_eq!(
        order,
        [
            "src/width.rs",
            "docs/widths.md",
            "wide notes.txt",
            "src/unwidened.rs"
        ]
    );
    press(&mut screen, Key::Tab, BEGIN);
    assert_eq!(
        asks(&mut screen, "and @wide n"),
        [Intent::ListFiles("/src/app".to_owned())]
    );
    // The name has a space, and what is written has one: the word at the caret is `n`.
    assert!(!frame(&mut screen, BEGIN).contains("wide notes"));
    keys(&mut screen, &[Key::Backspace, Key::Backspace, Key::Tab]);
    let sent = press(&mut screen, Key::Enter, BEGIN);
    let text = "mail a@b, see @src/width.rs and @\"wide notes.txt\"";
    assert!(
        sent.contains(&Intent::Send {
            text: text.to_owned(),
            mode: DeliveryMode::Queue
        }),
        "{sent:?}"
    );
    // With no file Tab changes nothing.
    asks(&mut screen, "@zzz");
    press(&mut screen, Key::Tab, BEGIN);
    assert!(frame(&mut screen, BEGIN).contains("› @zzz"));
}

#[test]
fn features_are_asked_for_where_the_pod_tells_them() {
    let mut screen = Story::new().screen(Theme::Plain);
    assert_eq!(press(&mut screen, Key::F(2), BEGIN), []);
    assert!(
        !frame(&mut screen, BEGIN).contains("── features"),
        "absent, not empty"
    );
    keys(&mut screen, &[Key::F(1)]);
    assert!(!frame(&mut screen, BEGIN).contains("F2"));
    keys(&mut screen, &[Key::F(1), Key::Char('/'), Key::Char('f')]);
    assert!(!frame(&mut screen, BEGIN).contains("/features"));
    screen.offers(&["features".to_owned()]);
    assert!(frame(&mut screen, BEGIN).contains("/features"));
    keys(&mut screen, &[Key::F(1)]);
    assert!(frame(&mut screen, BEGIN).contains("F2 "));
    assert_eq!(
        press(&mut screen, Key::F(2), BEGIN),
        [Intent::FetchFeatures]
    );
    assert!(frame(&mut screen, BEGIN).contains("asking the pod"));
    screen.answered(Reply::Features(Err("the pod is stopping".to_owned())));
    assert!(frame(&mut screen, BEGIN).contains("the pod is stopping"));
    assert_eq!(press(&mut screen, Key::F(2), BEGIN), [], "closed");
    assert_eq!(
        press(&mut screen, Key::F(2), BEGIN),
        [Intent::FetchFeatures],
        "asked for anew"
    );
    assert!(frame(&mut screen, BEGIN).contains("asking the pod"));
}

/// A cell may be longer than the screen, and a call is closed.
#[test]
fn the_line_that_was_found_is_seen() {
    let long: String = (1..200)
        .map(|n| format!("paragraph {n} of many\n\n"))
        .collect();
    let story = Story::new().input(1, "go").turn(1, 1).says(&long);
    let story = story.starts("c1", "Bash", json!({"command": "make"}));
    let story = story
        .ends("c1", "ok", "exit 0", "one\nthe Needle\nthree")
        .finished(1);
    let mut screen = story.screen(Theme::Plain);
    let found = |screen: &mut Screen, query: &str| {
        screen.key(Key::Ctrl('f'), story.now());
        types(screen, query, story.now());
        screen.key(Key::Enter, story.now());
        let shown = frame(screen, story.now());
        screen.key(Key::Esc, story.now());
        shown.lines().take(20).collect::<Vec<_>>().join("\n")
    };
    assert!(!frame(&mut screen, story.now()).contains("Needle"));
    assert!(
        found(&mut screen, "needle").contains("the Needle"),
        "in a closed call"
    );
    let shown = found(&mut screen, "paragraph 37 of");
    assert!(shown.contains("▶ paragraph 37 of many"), "{shown}");
    // What is seen stays where it is.
    let again = found(&mut screen, "paragraph 38 of");
    assert!(
        again.contains("paragraph 38 of") && shown.lines().take(10).eq(again.lines().take(10)),
        "{again}"
    );
}

#[test]
fn only_what_opens_is_said_to_open() {
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .says("done")
        .finished(1);
    let mut screen = story.screen(Theme::Plain);
    screen.frame(size(80, 24), story.now());
    screen.key(Key::AltUp, story.now());
    let shown = frame(&mut screen, story.now());
    assert!(
        shown.contains("▶ ── turn 1: done") && shown.contains("c copies · / searches · Esc"),
        "{shown}"
    );
    assert!(!shown.contains("opens or closes"), "{shown}");
}

/// The list of pods ended after 200 without a word.
#[test]
fn pods_that_are_not_listed_are_counted() {
    let mut screen = Story::new().screen(Theme::Plain);
    screen.key(Key::F(4), BEGIN);
    let pod = |number: usize| PodEntry {
        name: format!("pod-{number:03}"),
        state: "idle".to_owned(),
        is_live: true,
        waits: false,
        details: Vec::new(),
    };
    screen.answered(Reply::Pods(Ok((0..203).map(pod).collect())));
    keys(&mut screen, &[Key::Down; 210]);
    assert!(!frame(&mut screen, BEGIN).contains("pod-202"));
    let shown = frame(&mut screen, BEGIN);
    assert!(
        shown.contains("… 3 more: letters narrow the list"),
        "{shown}"
    );
    types(&mut screen, "202", BEGIN);
    assert!(frame(&mut screen, BEGIN).contains("pod-202"));
}
