//! A pod whose process ended, or starts again: what the screen says, and what was typed meanwhile.

use crate::pod::{BEGIN, Story, attached, does, size, types};
use protocol::method::{Pause, Role};
use protocol::status::DeliveryMode;
use tui::{ConnectionState, Intent, Key, Reply, Screen, Theme};

fn press(screen: &mut Screen, key: Key) -> Vec<Intent> {
    let mut intents = screen.key(key, BEGIN);
    intents.retain(|intent| !matches!(intent, Intent::SetDraft(_)));
    intents
}

fn enter(screen: &mut Screen, text: &str) -> Vec<Intent> {
    types(screen, text, BEGIN);
    press(screen, Key::Enter)
}

fn frame(screen: &mut Screen, now: u64) -> String {
    let frame = screen.frame(size(100, 24), now);
    frame.rows.iter().map(|line| line.text() + "\n").collect()
}

fn send(text: &str) -> Intent {
    Intent::Send {
        text: text.to_owned(),
        mode: DeliveryMode::Queue,
    }
}

fn runs_again(screen: &mut Screen) -> Vec<Intent> {
    screen.resume(&attached(&Story::new().lines));
    let mut intents = screen.intents();
    intents.retain(|intent| matches!(intent, Intent::Send { .. } | Intent::Do(_)));
    intents
}

/// The screen said only that the connection was lost, for as long as nobody looked elsewhere.
#[test]
fn a_crash_says_what_happened_and_when_and_enter_starts_the_pod() {
    let mut screen = Story::new().screen(Theme::Plain);
    let pod = attached(&Story::new().lines).status.pod;
    screen.died("its process was killed", BEGIN);
    let shown = frame(&mut screen, BEGIN + 12_000);
    for wanted in [
        "the process died 12 s ago · Enter starts it again",
        &format!("! {pod} crashed: its process was killed"),
    ] {
        assert!(shown.contains(wanted), "{shown}");
    }
    assert_eq!(screen.redraw_in(BEGIN + 12_400), Some(600));
    assert_eq!(
        press(&mut screen, Key::Enter),
        [Intent::StartPod(pod.clone())]
    );
    assert_eq!(press(&mut screen, Key::Enter), [], "it is being started");
    // The connection is made again; the screen need not go anywhere.
    screen.answered(Reply::Started(pod));
    assert_eq!(screen.intents(), []);
}

/// What was typed while `/model` started the pod again was lost with "not connected".
#[test]
fn what_is_typed_while_the_pod_starts_again_is_sent_then() {
    let mut screen = Story::new().screen(Theme::Plain);
    screen.answered(Reply::Shown(Ok(tui::ShownText::default())));
    screen.key(Key::BackTab, BEGIN);
    screen.connection(ConnectionState::Ended(None));
    assert_eq!(enter(&mut screen, "/pause"), []);
    assert_eq!(enter(&mut screen, "go on"), []);
    assert!(frame(&mut screen, BEGIN).contains("sent once the pod runs again"));
    assert_eq!(
        runs_again(&mut screen),
        [does(Pause::default()), send("go on")]
    );
    assert_eq!(runs_again(&mut screen), [], "once");
}

/// It was kept with "not connected", beside words that said that Enter starts the pod.
#[test]
fn an_input_starts_a_pod_that_died() {
    let mut screen = Story::new().screen(Theme::Plain);
    let pod = attached(&Story::new().lines).status.pod;
    screen.connection(ConnectionState::Died(BEGIN));
    assert_eq!(enter(&mut screen, "go on"), [Intent::StartPod(pod)]);
    assert_eq!(enter(&mut screen, "and on"), []);
    assert_eq!(runs_again(&mut screen), [send("go on"), send("and on")]);
}

/// Enter did nothing more after a start that had failed.
#[test]
fn a_start_that_failed_can_be_tried_again() {
    let mut screen = Story::new().screen(Theme::Plain);
    let pod = attached(&Story::new().lines).status.pod;
    screen.key(Key::BackTab, BEGIN);
    screen.connection(ConnectionState::Ended(None));
    assert_eq!(enter(&mut screen, "go on"), []);
    screen.answered(Reply::Failed("no key".to_owned()));
    assert_eq!(press(&mut screen, Key::Enter), [Intent::StartPod(pod)]);
    assert_eq!(runs_again(&mut screen), [send("go on")]);
}

/// Without a start under way, a command was taken from the person and not carried out.
#[test]
fn a_command_for_a_pod_that_is_gone_stays_written() {
    let mut screen = Story::new().screen(Theme::Plain);
    screen.connection(ConnectionState::Lost("gone".to_owned()));
    assert_eq!(enter(&mut screen, "/pause"), []);
    assert!(frame(&mut screen, BEGIN).contains("› /pause"));
    assert_eq!(runs_again(&mut screen), []);
    assert_eq!(press(&mut screen, Key::Enter), [does(Pause::default())]);
}

#[test]
fn requests_that_wait_for_the_start_are_bounded() {
    let mut screen = Story::new().screen(Theme::Plain);
    screen.key(Key::BackTab, BEGIN);
    screen.connection(ConnectionState::Ended(None));
    for number in 0..17 {
        assert_eq!(enter(&mut screen, &format!("input {number}")), []);
    }
    assert!(frame(&mut screen, BEGIN).contains("› input 16"));
    assert_eq!(runs_again(&mut screen).len(), 16);
}

#[test]
fn a_key_makes_the_pod_read_only_and_gives_the_sandbox_back() {
    let restart = |intents: &[Intent]| match intents {
        [Intent::Restart { options, .. }] => options.join(" "),
        other => panic!("{other:?}"),
    };
    let in_sandbox = |sandbox: &str| {
        let mut attached = attached(&Story::new().lines);
        attached.status.host.sandbox = sandbox.to_owned();
        attached
    };
    let mut screen = Story::new().screen(Theme::Plain);
    screen.resume(&in_sandbox("off"));
    assert_eq!(
        restart(&press(&mut screen, Key::BackTab)),
        "--sandbox read-only"
    );
    screen.resume(&in_sandbox("read-only"));
    assert!(frame(&mut screen, BEGIN).contains("read-only"));
    assert_eq!(restart(&press(&mut screen, Key::BackTab)), "--sandbox off");
    // No start with another one was seen.
    let mut attached = in_sandbox("read-only");
    attached.page = None;
    let mut screen = Screen::begin(&attached, Role::Driver, Theme::Plain);
    assert_eq!(press(&mut screen, Key::BackTab), []);
    assert!(frame(&mut screen, BEGIN).contains("--sandbox MODE"));
}

#[test]
fn a_key_turns_the_mouse() {
    let mut screen = Story::new().screen(Theme::Plain);
    assert_eq!(press(&mut screen, Key::F(6)), [Intent::TurnMouse]);
}

/// The pod was started for an input that was not sent.
#[test]
fn an_input_that_is_too_long_starts_nothing() {
    let mut screen = Story::new().screen(Theme::Plain);
    screen.connection(ConnectionState::Died(BEGIN));
    // Few bytes to paste, twice as many as JSON.
    screen.paste(&"\"".repeat(1_000_000));
    assert_eq!(press(&mut screen, Key::Enter), []);
    assert!(frame(&mut screen, BEGIN).contains("an input has at most 1.4 MiB"));
}
