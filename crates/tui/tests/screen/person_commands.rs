//! `!`: what it says while it is written, what it sends, and that it stays what it is.

use crate::pod::{BEGIN, Story, size, types};
use protocol::status::DeliveryMode;
use serde_json::json;
use tui::{Intent, Key, Reply, Screen, Theme};

fn press(screen: &mut Screen, key: Key) -> Vec<Intent> {
    screen
        .key(key, BEGIN)
        .into_iter()
        .filter(|intent| !matches!(intent, Intent::SetDraft(_)))
        .collect()
}

fn enter(screen: &mut Screen, text: &str) -> Vec<Intent> {
    types(screen, text, BEGIN);
    press(screen, Key::Enter)
}

fn frame(screen: &mut Screen) -> String {
    screen
        .frame(size(100, 24), BEGIN)
        .rows
        .iter()
        .map(|line| line.text() + "\n")
        .collect()
}

fn run(text: &str) -> Vec<Intent> {
    vec![Intent::Send {
        text: text.to_owned(),
        mode: DeliveryMode::Run,
    }]
}

fn queued(story: Story, input: u64, text: &str, run: bool) -> Story {
    let by = json!({"client": "yoi attach", "role": "driver", "uid": 0});
    story.with(
        "input_queued",
        json!({"input": input, "text": text, "run": run, "by": by}),
    )
}

#[test]
fn it_says_what_it_does_and_runs_what_follows() {
    let mut screen = Story::new().screen(Theme::Plain);
    types(&mut screen, "!", BEGIN);
    assert!(frame(&mut screen).contains("  ! Enter runs the rest as a shell command of yours"));
    assert_eq!(press(&mut screen, Key::Enter), []);
    let shown = frame(&mut screen);
    assert!(
        shown.contains("`!` needs a command, as in `! ls`") && shown.contains("› !"),
        "nothing is lost: {shown}"
    );
    assert_eq!(enter(&mut screen, " ls -l"), run("! ls -l"));
    assert!(!frame(&mut screen).contains("shell command of yours"));
    types(&mut screen, "!for i in 1 2; do", BEGIN);
    screen.key(Key::AltEnter, BEGIN);
    assert_eq!(
        enter(&mut screen, "echo $i; done"),
        run("!for i in 1 2; do\necho $i; done")
    );
    let send = |text: &str| {
        vec![Intent::Send {
            text: text.to_owned(),
            mode: DeliveryMode::Queue,
        }]
    };
    assert_eq!(enter(&mut screen, " ! wow"), send("! wow"));
    assert_eq!(enter(&mut screen, "wow!"), send("wow!"));
}

#[test]
fn a_paste_in_one_piece_runs_only_behind_a_sign_that_was_typed() {
    let mut screen = Story::new().screen(Theme::Plain);
    let pasted = "![an image](a.png)\none\ntwo\nthree\nfour";
    screen.paste(pasted);
    let sent = vec![Intent::Send {
        text: pasted.to_owned(),
        mode: DeliveryMode::Queue,
    }];
    assert_eq!(press(&mut screen, Key::Enter), sent);
    types(&mut screen, "! ", BEGIN);
    screen.paste("one\ntwo\nthree\nfour");
    assert_eq!(
        press(&mut screen, Key::Enter),
        run("! one\ntwo\nthree\nfour")
    );
}

#[test]
fn a_command_that_was_not_accepted_comes_back_as_one() {
    let mut screen = Story::new().screen(Theme::Plain);
    assert_eq!(enter(&mut screen, "!ls"), run("!ls"));
    screen.answered(Reply::SendFailed {
        text: "!ls".to_owned(),
        why: "this pod has no tool Bash".to_owned(),
    });
    assert!(frame(&mut screen).contains("› !ls"));
    assert_eq!(press(&mut screen, Key::Enter), run("!ls"));
}

#[test]
fn earlier_inputs_come_back_as_what_they_were() {
    let story = queued(
        queued(Story::new(), 1, "! ls", true),
        2,
        "! is an exclamation mark",
        false,
    );
    let mut screen = story.screen(Theme::Plain);
    screen.key(Key::Up, BEGIN);
    assert!(
        frame(&mut screen).contains("›  ! is an exclamation mark"),
        "{}",
        frame(&mut screen)
    );
    screen.key(Key::Up, BEGIN);
    assert_eq!(press(&mut screen, Key::Enter), run("! ls"));
    types(&mut screen, "! l", BEGIN);
    screen.key(Key::Ctrl('r'), BEGIN);
    assert_eq!(press(&mut screen, Key::Enter), run("! ls"));
}

#[test]
fn an_edit_leaves_a_command_one_and_it_is_not_steered() {
    let turn = queued(Story::new(), 1, "go", false).turn(1, 1);
    let mut screen =
        queued(queued(turn, 2, "! ls", true), 3, "an input", false).screen(Theme::Plain);
    let select = |screen: &mut Screen, up: usize| {
        screen.key(Key::Esc, BEGIN + 60_000);
        (0..up).for_each(|_| drop(screen.key(Key::AltUp, BEGIN)));
    };
    select(&mut screen, 2);
    assert_eq!(press(&mut screen, Key::Char('s')), []);
    assert!(frame(&mut screen).contains("no running turn takes it"));
    press(&mut screen, Key::Char('e'));
    assert_eq!(
        enter(&mut screen, " -l"),
        [Intent::EditInput {
            input: 2,
            text: "! ls -l".to_owned()
        }]
    );
    for (up, begin) in [(2, Key::Home), (1, Key::Home)] {
        select(&mut screen, up);
        press(&mut screen, Key::Char('e'));
        screen.key(begin, BEGIN);
        if up == 2 {
            screen.key(Key::Delete, BEGIN)
        } else {
            screen.key(Key::Char('!'), BEGIN)
        };
        assert_eq!(press(&mut screen, Key::Enter), [], "{up}");
        assert!(
            frame(&mut screen).contains("an edit makes no command an input"),
            "{}",
            frame(&mut screen)
        );
    }
}

#[test]
fn the_transcript_has_it_as_what_the_person_wrote() {
    let story = queued(Story::new(), 1, "! ls", true).with("turn_started", json!({"turn": 1}));
    let story = story.with("input_consumed", json!({"input": 1})).calls(
        "c1",
        "Bash",
        json!({"command": "ls"}),
    );
    let story = story.starts("c1", "Bash", json!({"command": "ls"})).ends(
        "c1",
        "ok",
        "exit 0",
        "README.md",
    );
    let story = story
        .finished(1)
        .turn(2, 2)
        .calls("c2", "Bash", json!({"command": "ls"}));
    let story = story.starts("c2", "Bash", json!({"command": "ls"})).ends(
        "c2",
        "ok",
        "exit 0",
        "of the model",
    );
    let shown = frame(&mut story.finished(2).screen(Theme::Plain));
    let at = |text: &str| {
        shown
            .find(text)
            .unwrap_or_else(|| panic!("no {text} in {shown}"))
    };
    assert!(
        at("> ! ls") < at("Bash") && at("Bash") < at("  README.md"),
        "{shown}"
    );
    assert!(
        at("  README.md") < at("turn 1: done") && !shown.contains("of the model"),
        "{shown}"
    );
}
