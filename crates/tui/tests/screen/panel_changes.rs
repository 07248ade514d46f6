//! What is chosen and changed in panels: jobs and tasks that are stopped, features that are switched and granted.

use crate::pod::does;
use crate::pod::{BEGIN, SIZES, Story, drawn, size};
use protocol::event::Event;
use protocol::method::Role;
use protocol::method::StopRun;
use protocol::status::Status;
use serde_json::json;
use tui::{
    ConnectionState, FeatureChange, FeatureEntry, FeatureList, Intent, Key, Line, Paragraph, Reply,
    Screen, Theme, Tone,
};

fn press(screen: &mut Screen, key: Key) -> Vec<Intent> {
    screen
        .key(key, BEGIN + 9_000)
        .into_iter()
        .filter(|intent| !matches!(intent, Intent::SetDraft(_)))
        .collect()
}

fn presses(screen: &mut Screen, keys: &[Key]) {
    keys.iter().for_each(|key| drop(press(screen, *key)));
}

fn frame(screen: &mut Screen) -> String {
    let frame = screen.frame(size(80, 24), BEGIN + 10_000);
    frame.rows.iter().map(|line| line.text() + "\n").collect()
}

fn methods(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A pod with a task that runs, one that does not, and two jobs.
fn running() -> Status {
    let mut status = Story::new().attached().status;
    let run =
        json!({"run": 7, "trigger": "cron", "attempt": 1, "due_ms": BEGIN, "since_ms": BEGIN});
    let tasks = [
        json!({"feature": "builtin:schedule", "task": "clock", "run": run}),
        json!({"feature": "builtin:schedule", "task": "idle"}),
    ];
    let job = |job: u64, memory: Option<u64>| {
        let mut fields = json!({"job": job, "feature": "builtin:jobs", "call": "c00000003", "command": "npm run dev",
            "since_ms": BEGIN, "until_ms": BEGIN + 3_600_000});
        memory.inspect(|memory| fields["memory"] = json!(memory));
        serde_json::from_value(fields).unwrap()
    };
    status.tasks = tasks
        .map(|task| serde_json::from_value(task).unwrap())
        .to_vec();
    status.jobs = vec![job(4, Some(300 << 20)), job(5, None)];
    status
}

fn screen_of(status: &Status, role: Role) -> Screen {
    let mut attached = Story::new().attached();
    attached.status = status.clone();
    let mut screen = Screen::begin(&attached, role, Theme::Plain);
    screen.offers(&methods(&["features", "stop_job", "stop_run"]));
    screen
}

#[test]
fn a_job_is_stopped_once_that_was_confirmed() {
    let mut screen = screen_of(&running(), Role::Driver);
    assert_eq!(press(&mut screen, Key::F(3)), [Intent::FetchStatus]);
    let shown = frame(&mut screen);
    assert!(
        shown.contains("job 4 · npm run dev · 10 s, at most")
            && shown.contains("more · 300 MiB · of"),
        "{shown}"
    );
    assert!(
        shown.contains("↑ ↓ choose what runs") && !shown.contains("x stop"),
        "{shown}"
    );
    // Nothing is chosen yet, so letters are text.
    press(&mut screen, Key::Char('x'));
    assert!(frame(&mut screen).contains("› x"));
    press(&mut screen, Key::Backspace);
    presses(&mut screen, &[Key::Up, Key::Up]);
    assert!(frame(&mut screen).contains("▶ job 4"));
    assert_eq!(press(&mut screen, Key::Char('x')), []);
    assert_eq!(
        press(&mut screen, Key::Char('y')),
        [],
        "nobody has read the question"
    );
    assert!(frame(&mut screen).contains("stop job 4 with all of its processes? y stop · n back"));
    screen.several_keys();
    assert_eq!(
        press(&mut screen, Key::Char('y')),
        [],
        "keys that came at once answer nothing"
    );
    frame(&mut screen);
    assert_eq!(press(&mut screen, Key::Char('y')), [Intent::StopJob(4)]);
    // It is shown until the pod says that it has ended.
    assert!(frame(&mut screen).contains("▶ job 4"));
    let mut over = running();
    over.jobs.remove(0);
    screen.answered(Reply::Status(Box::new(over)));
    let shown = frame(&mut screen);
    assert!(!shown.contains("job 4") && !shown.contains("▶"), "{shown}");
}

#[test]
fn a_run_of_a_task_is_stopped_in_the_same_way() {
    let mut screen = screen_of(&running(), Role::Driver);
    presses(&mut screen, &[Key::F(3), Key::Down]);
    assert!(frame(&mut screen).contains("▶ task clock of builtin:schedule"));
    press(&mut screen, Key::Char('x'));
    frame(&mut screen);
    press(&mut screen, Key::Char('n'));
    assert!(!frame(&mut screen).contains("y stop"));
    press(&mut screen, Key::Char('x'));
    frame(&mut screen);
    assert_eq!(
        press(&mut screen, Key::Char('y')),
        [does(StopRun {
            run: 7,
            ..StopRun::default()
        })]
    );
    // A task without a run is passed over.
    press(&mut screen, Key::Down);
    assert!(frame(&mut screen).contains("▶ job 4"));
    assert_eq!(
        [Key::Esc, Key::Esc].map(|key| press(&mut screen, key)),
        [vec![], vec![]]
    );
    assert!(
        !frame(&mut screen).contains("── pod"),
        "Esc leaves the job, then the panel"
    );
}

#[test]
fn who_may_not_stop_is_offered_nothing() {
    let mut viewer = screen_of(&running(), Role::Viewer);
    let mut old = screen_of(&running(), Role::Driver);
    old.offers(&methods(&["status", "cancel"]));
    for screen in [&mut viewer, &mut old] {
        presses(screen, &[Key::F(3), Key::Down, Key::Char('x')]);
        let shown = frame(screen);
        assert!(
            shown.contains("job 4") && !shown.contains("▶") && !shown.contains("choose"),
            "{shown}"
        );
    }
    let mut lost = screen_of(&running(), Role::Driver);
    presses(&mut lost, &[Key::F(3), Key::Up]);
    assert!(frame(&mut lost).contains("▶ job 5"));
    lost.connection(ConnectionState::Lost("the pod closed it".to_owned()));
    assert!(!frame(&mut lost).contains("▶"));
}

fn features() -> FeatureList {
    let row = |first: &str, text: &str| Paragraph {
        first: Line::of(first, Tone::Ok),
        text: Line::of(text, Tone::Plain),
    };
    let entry = |id: &str, row: usize, changes: &[FeatureChange]| FeatureEntry {
        id: id.to_owned(),
        row,
        changes: changes.to_vec(),
    };
    FeatureList {
        rows: vec![
            row("✓ ", "builtin:files  1.0.0"),
            row("    tools  ", "Read Write"),
            row("✓ ", "builtin:web  1.0.0"),
            row("- ", "disabled by default: builtin:jobs"),
        ],
        entries: vec![
            entry("builtin:files", 0, &[]),
            entry(
                "builtin:web",
                2,
                &[FeatureChange::Disable, FeatureChange::Grant],
            ),
            entry("builtin:jobs", 3, &[FeatureChange::Enable]),
        ],
    }
}

const WRITES: &str = "writes into ~/.config/yoi/config.toml, at the end:\n    [features.\"builtin:web\"]\n    enabled = false\ncounts from the next start of the pod";

#[test]
fn a_feature_is_changed_once_what_changes_was_read() {
    let mut screen = screen_of(&running(), Role::Driver);
    press(&mut screen, Key::F(2));
    screen.answered(Reply::Features(Ok(features())));
    assert!(frame(&mut screen).contains("↑ ↓ choose a feature"));
    press(&mut screen, Key::Down);
    assert!(frame(&mut screen).contains("▶ builtin:files: nothing to change from here"));
    press(&mut screen, Key::Down);
    assert!(frame(&mut screen).contains("▶ builtin:web: d disable · g grant"));
    // What is not offered is text.
    press(&mut screen, Key::Char('e'));
    assert!(frame(&mut screen).contains("› e"));
    press(&mut screen, Key::Backspace);
    let id = "builtin:web".to_owned();
    let change = FeatureChange::Disable;
    let preview = Intent::PreviewFeature {
        id: id.clone(),
        change,
    };
    assert_eq!(press(&mut screen, Key::Char('d')), [preview]);
    assert!(frame(&mut screen).contains("looking up what would change"));
    assert_eq!(
        press(&mut screen, Key::Char('y')),
        [],
        "it is not known what changes"
    );
    let text = Ok(WRITES.to_owned());
    screen.answered(Reply::FeaturePreview {
        id: id.clone(),
        change: FeatureChange::Grant,
        text: text.clone(),
    });
    assert!(
        frame(&mut screen).contains("looking up"),
        "that is another question"
    );
    screen.answered(Reply::FeaturePreview {
        id: id.clone(),
        change,
        text,
    });
    assert_eq!(press(&mut screen, Key::Char('y')), [], "nobody has read it");
    let shown = frame(&mut screen);
    assert!(
        shown.contains("    enabled = false") && shown.contains("y change it · n back"),
        "{shown}"
    );
    assert_eq!(
        press(&mut screen, Key::Char('y')),
        [Intent::ChangeFeature { id, change }]
    );
    screen.answered(Reply::FeatureChanged("the file was changed".to_owned()));
    assert_eq!(
        screen.intents(),
        [Intent::FetchFeatures],
        "what is offered now is another thing"
    );
    assert!(frame(&mut screen).contains("the file was changed"));
}

/// As with the question of a call: what is long is read to its end first.
#[test]
fn a_long_change_is_read_to_its_end() {
    let mut screen = screen_of(&running(), Role::Driver);
    press(&mut screen, Key::F(2));
    screen.answered(Reply::Features(Ok(features())));
    presses(&mut screen, &[Key::Down, Key::Down, Key::Char('g')]);
    let id = "builtin:web".to_owned();
    let change = FeatureChange::Grant;
    let text: String = (1..=60).map(|n| format!("line {n}\n")).collect();
    screen.answered(Reply::FeaturePreview {
        id: id.clone(),
        change,
        text: Ok(text),
    });
    assert!(!frame(&mut screen).contains("line 60"));
    assert_eq!(press(&mut screen, Key::Char('y')), []);
    for _ in 0..4 {
        press(&mut screen, Key::PageDown);
        frame(&mut screen);
    }
    let shown = frame(&mut screen);
    assert!(
        shown.contains("line 60") && shown.contains("y change it"),
        "{shown}"
    );
    assert_eq!(
        press(&mut screen, Key::Char('y')),
        [Intent::ChangeFeature { id, change }]
    );
}

#[test]
fn a_change_that_cannot_be_made_says_why() {
    let mut screen = screen_of(&running(), Role::Driver);
    press(&mut screen, Key::F(2));
    screen.answered(Reply::Features(Ok(features())));
    presses(&mut screen, &[Key::Up, Key::Char('e')]);
    let id = "builtin:jobs".to_owned();
    let change = FeatureChange::Enable;
    screen.answered(Reply::FeaturePreview {
        id,
        change,
        text: Err("config.toml:3: not valid".to_owned()),
    });
    assert!(frame(&mut screen).contains("config.toml:3: not valid"));
    assert_eq!(press(&mut screen, Key::Char('y')), []);
    press(&mut screen, Key::Char('n'));
    assert!(frame(&mut screen).contains("▶ builtin:jobs: e enable"));
    let mut viewer = screen_of(&running(), Role::Viewer);
    press(&mut viewer, Key::F(2));
    viewer.answered(Reply::Features(Ok(features())));
    press(&mut viewer, Key::Down);
    assert!(!frame(&mut viewer).contains("▶"));
}

#[test]
fn what_is_chosen_in_panels() {
    let mut shown = String::new();
    for (columns, rows) in SIZES {
        let mut screen = screen_of(&running(), Role::Driver);
        presses(&mut screen, &[Key::F(3), Key::Up, Key::Char('x')]);
        shown += &drawn(
            &screen.frame(size(columns, rows), BEGIN),
            usize::from(columns),
        );
        press(&mut screen, Key::F(2));
        screen.answered(Reply::Features(Ok(features())));
        presses(&mut screen, &[Key::Down, Key::Down, Key::Char('d')]);
        let id = "builtin:web".to_owned();
        let change = FeatureChange::Disable;
        screen.answered(Reply::FeaturePreview {
            id,
            change,
            text: Ok(WRITES.to_owned()),
        });
        shown += &drawn(
            &screen.frame(size(columns, rows), BEGIN),
            usize::from(columns),
        );
    }
    insta::assert_snapshot!(shown);
}

/// An input that was taken out of the queue to be sent now.
#[test]
fn an_input_that_is_sent_now_is_not_shown_as_withdrawn() {
    let steered = |text: &str| json!({"input": 3, "text": text, "mode": "steer"});
    let story = Story::new().input(1, "go").turn(1, 1).input(2, "use less");
    let story = story.with("input_withdrawn", json!({"input": 2}));
    let withdrawn = |screen: &mut Screen| frame(screen).contains("(withdrawn)");
    let mut screen = story.screen(Theme::Plain);
    assert!(withdrawn(&mut screen));
    let now = story
        .clone()
        .with("input_queued", steered("use less"))
        .with("input_consumed", json!({"input": 3}));
    now.events()[story.lines.len()..]
        .iter()
        .for_each(|event| screen.event(event));
    let shown = frame(&mut screen);
    assert!(
        !shown.contains("(withdrawn)") && shown.matches("use less").count() == 1,
        "{shown}"
    );
    // Another text, another mode, another input between them.
    let queued = |text: &str| json!({"input": 3, "text": text});
    for other in [
        story.clone().with("input_queued", steered("use more")),
        story.clone().with("input_queued", queued("use less")),
        story
            .clone()
            .input(4, "x")
            .with("input_queued", steered("use less")),
    ] {
        assert!(withdrawn(&mut other.screen(Theme::Plain)));
    }
}

/// What was printed is printed, and what comes behind it is printed once.
#[test]
fn a_withdrawal_that_was_printed_takes_nothing_else_along() {
    let story = Story::new().input(1, "go").turn(1, 1).input(2, "use less");
    let story = story.with("input_withdrawn", json!({"input": 2}));
    let mut screen = story.screen(Theme::Plain);
    let mut printed: Vec<String> = Vec::new();
    let mut print = |screen: &mut Screen| {
        let (lines, _) = screen.inline_frame(size(80, 24), story.now());
        printed.extend(lines.iter().map(Line::text));
    };
    print(&mut screen);
    let more = story.clone().with(
        "input_queued",
        json!({"input": 3, "text": "use less", "mode": "steer"}),
    );
    let more = more
        .with("input_consumed", json!({"input": 3}))
        .says("The answer.")
        .finished(1);
    more.events()[story.lines.len()..].iter().for_each(|event| {
        screen.event(event);
        print(&mut screen);
    });
    let all = printed.join("\n");
    assert_eq!(
        (
            all.matches("> use less").count(),
            all.matches("The answer.").count()
        ),
        (1, 1),
        "{all}"
    );
}

#[test]
fn a_slash_searches_where_a_part_of_the_transcript_is_selected() {
    let story = Story::new()
        .input(1, "go")
        .turn(1, 1)
        .says("done")
        .finished(1);
    let mut screen = story.screen(Theme::Plain);
    press(&mut screen, Key::Char('/'));
    assert!(
        frame(&mut screen).contains("/compact"),
        "a command is begun"
    );
    presses(&mut screen, &[Key::Esc, Key::Backspace, Key::AltUp]);
    press(&mut screen, Key::Char('/'));
    let shown = frame(&mut screen);
    assert!(
        shown.contains("search") && !shown.contains("/compact"),
        "{shown}"
    );
    "done"
        .chars()
        .for_each(|letter| drop(press(&mut screen, Key::Char(letter))));
    press(&mut screen, Key::Enter);
    assert!(frame(&mut screen).contains("▶"));
}

#[test]
fn the_memory_of_jobs_is_asked_for_while_the_panel_is_open() {
    let mut screen = screen_of(&running(), Role::Driver);
    let open = BEGIN + 9_000;
    assert_eq!(press(&mut screen, Key::F(3)), [Intent::FetchStatus]);
    let mut status = running();
    status.jobs[1].memory = Some(5 << 10);
    screen.event(&Event::Status(Box::new(status.clone())));
    assert!(frame(&mut screen).contains("5 KiB"));
    for (after, asked) in [
        (1_999, vec![]),
        (2_000, vec![Intent::FetchStatus]),
        (3_999, vec![]),
    ] {
        screen.frame(size(80, 24), open + after);
        assert_eq!(screen.intents(), asked, "{after}");
    }
    assert_eq!(
        screen.redraw_in(open + 4_300),
        Some(700),
        "ages are in seconds"
    );
    screen.connection(ConnectionState::Lost("the pod closed it".to_owned()));
    screen.frame(size(80, 24), open + 60_000);
    assert_eq!(
        (screen.intents(), screen.redraw_in(open + 60_000)),
        (vec![], None)
    );
    // Without a job nothing is asked, and nothing changes by time.
    (status.jobs, status.tasks) = (Vec::new(), Vec::new());
    let mut screen = screen_of(&status, Role::Driver);
    assert_eq!(press(&mut screen, Key::F(3)), []);
    screen.frame(size(80, 24), open + 60_000);
    assert_eq!(
        (screen.intents(), screen.redraw_in(open + 60_000)),
        (vec![], None)
    );
}
