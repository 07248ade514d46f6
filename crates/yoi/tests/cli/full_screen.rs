//! The full screen of `yoi attach` and of `yoi` alone, on real terminals: what they show, and how they are given back.

use crate::approvals::bash;
use crate::at_screen::AtScreen;
use crate::hosts::{Host, pause, until};
use crate::scene::{Scene, fifo, reached, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::thread;
use std::time::Duration;

const DETACH: &str = "\u{1c}";
const F4: &str = "\u{1b}OS";

/// The question of a call, under it the keys that answer.
const KEYS: &str = "y allow once";

fn scene(answers: &[Value]) -> (Scene, Host) {
    let scene = Scene::new();
    scene.config(
        "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"ask\"\n",
    );
    let model = scene.script("s.jsonl", answers);
    let host = Host::start(&scene, &["-m", &model]);
    (scene, host)
}

fn asking() -> (Scene, Host) {
    scene(&[
        json!({ "calls": [bash("touch made")] }),
        json!({ "text": "all is done" }),
        json!({ "text": "once more" }),
    ])
}

/// Types an answer to the question that is shown, after the time in which no key answers.
fn answers(person: &mut AtScreen, key: &str) {
    person.sees(KEYS);
    thread::sleep(Duration::from_millis(400));
    person.types(key);
}

/// All of it meant leaving, and knowing the names of commands. The pod before keeps running, and the list leads back to one
/// that was stopped.
#[test]
fn a_person_undoes_changes_the_model_and_goes_from_pod_to_pod() {
    let write = json!({ "name": "Write", "arguments": { "path": "made", "content": "one\n" } });
    let (scene, host) = scene(&[json!({ "calls": [write] }), json!({ "text": "made it" })]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.types("go\r");
    person.sees("turn 1: done");
    person.types("/diff\r");
    person.sees("+one");
    person.types("\u{1b}");
    person.misses("+one");
    person.types("/undo\r");
    person.sees("y does it");
    person.types("y");
    person.sees("removed: ");
    assert!(!scene.file("made").exists());
    person.types("\u{1b}");
    person.misses("removed: ");
    person.types("/resume\r");
    person.sees("p was not held; nothing changed");
    person.types("/model\r");
    // No list has it.
    person.sees("  scripted:");
    person.sees("▶ offline");
    person.types("\r");
    // The screen is connected again.
    person.sees("p · idle · offline");
    assert!(host.is_gone());
    person.types("/new\r");
    person.sees("project · idle");
    until("it runs", || {
        scene
            .yoi(&["ls", "--json"])
            .ends(0)
            .json()
            .as_array()
            .is_some_and(|all| all.len() == 2)
    });
    scene.yoi(&["stop", "p"]).ends(0);
    person.types(F4);
    person.sees("p · done");
    person.types("\u{1b}[B");
    person.sees("▶ p · done");
    person.types("\r");
    until("it runs again", || {
        scene.yoi(&["status", "p", "--json"]).ends(0).json()["state"] == "idle"
    });
    person.sees("made it");
    person.types(DETACH);
    person.ends(0);
    scene.yoi(&["stop", "p"]).ends(0);
    scene.yoi(&["stop", "project"]).ends(0);
}

#[test]
fn a_person_sends_approves_detaches_and_comes_back() {
    let (scene, host) = asking();
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.types("make the file");
    person.sees("make the file");
    person.types("\r");
    answers(&mut person, "y");
    person.sees("all is done");
    // What is on the screen before may not be recorded.
    person.sees("turn 1: done");
    assert!(scene.file("made").exists());
    person.types(DETACH);
    let left = person.ends(0);
    for text in [
        "> make the file",
        "all is done",
        "[detached: p keeps running]",
    ] {
        assert!(left.contains(text), "{left}");
    }
    let mut person = AtScreen::start(&scene, &["attach"]);
    person.sees("all is done");
    person.types("again\r");
    person.sees("once more");
    // On an empty composer.
    person.types("\u{4}");
    person.ends(0);
    assert!(!host.is_gone());
    host.end(Signal::TERM);
    scene.sound("p");
}

/// A call that a person approved shows what it writes, on each screen.
#[test]
fn a_command_that_runs_shows_its_last_lines() {
    let command = "touch made; echo first; printf ' 10%%\\r 20%%'; while [ ! -e go ]; do sleep 0.1; done; echo last";
    let (scene, host) = scene(&[
        json!({ "calls": [bash(command)] }),
        json!({ "text": "all is done" }),
    ]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.types("make the file\r");
    answers(&mut person, "y");
    let shown = person.sees("   20%");
    assert!(
        shown.contains("first") && !shown.contains("   10%"),
        "{shown}"
    );
    let other = AtScreen::start(&scene, &["attach", "p"]);
    other.sees("   20%");
    fs::write(scene.file("go"), "").unwrap();
    for screen in [&person, &other] {
        screen.sees("all is done");
        screen.misses("   20%");
    }
    for mut screen in [person, other] {
        screen.types(DETACH);
        screen.ends(0);
    }
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn a_killed_pod_that_starts_again_is_followed() {
    let (scene, host) = scene(&[json!({ "text": "one" }), json!({ "text": "two" })]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.types("first\r");
    person.sees("one");
    host.end(Signal::KILL);
    person.sees("the process died");
    person.types("second");
    person.sees("second");
    let host = Host::start(&scene, &[]);
    person.misses("the process died");
    person.types("\r");
    person.sees("two");
    person.types(DETACH);
    person.ends(0);
    host.end(Signal::TERM);
    scene.sound("p");
}

/// Turns that a person had watched were told again as what happened while they were away.
#[test]
fn what_a_person_watched_is_not_told_again() {
    let (scene, host) = scene(&[json!({ "text": "one" }), json!({ "text": "two" })]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("idle");
    scene.yoi(&["send", "p", "first", "--wait"]).ends(0);
    person.sees("one");
    person.types(DETACH);
    person.ends(0);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("one");
    person.misses("While you were away");
    person.types(DETACH);
    person.ends(0);
    scene.yoi(&["send", "p", "second", "--wait"]).ends(0);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("While you were away");
    person.types(DETACH);
    person.ends(0);
    host.end(Signal::TERM);
}

#[test]
fn a_text_that_was_written_without_a_connection_is_not_gone() {
    let (scene, host) = scene(&[json!({ "text": "one" })]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("idle");
    host.end(Signal::KILL);
    person.sees("the process died");
    person.types("written meanwhile");
    person.sees("written meanwhile");
    person.types(DETACH);
    let left = person.ends(0);
    assert!(left.contains("not sent: written meanwhile"), "{left}");
}

#[test]
fn a_pod_that_ends_is_shown_and_comes_back() {
    let (scene, _host) = scene(&[json!({ "text": "one" })]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("idle");
    scene.yoi(&["stop", "p"]).ends(0);
    person.sees("ended");
    let _host = Host::start(&scene, &[]);
    person.sees("idle");
    scene.yoi(&["stop", "p"]).ends(0);
    person.sees("ended · Enter starts it again");
    person.types("\r");
    person.sees("idle");
    scene.yoi(&["stop", "p"]).ends(0);
    person.sees("ended");
    person.types(DETACH);
    let left = person.ends(0);
    assert!(
        left.contains("[p has ended; `yoi start p` starts it again]"),
        "{left}"
    );
}

#[test]
fn signals_give_the_terminal_back() {
    let (scene, _host) = scene(&[json!({ "text": "one" })]);
    for (number, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let person = AtScreen::start(&scene, &["attach", "p"]);
        person.sees("idle");
        signal(person.pid(), number);
        person.ends(code);
    }
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("idle");
    person.types("\u{3}");
    person.types("\u{3}");
    person.ends(0);
}

#[test]
fn a_stopped_screen_gives_the_terminal_back_and_goes_on() {
    let (scene, _host) = scene(&[json!({ "text": "one" })]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("idle");
    signal(person.pid(), Signal::TSTP);
    person.is_given_back();
    // A signal to continue that comes before would be in vain.
    let stat = format!("/proc/{}/stat", person.pid());
    until("it has stopped", || {
        fs::read_to_string(&stat).unwrap().contains(") T ")
    });
    signal(person.pid(), Signal::CONT);
    person.until("not drawn again", |screen| {
        screen.alternate_screen() && screen.contents().contains("idle")
    });
    person.types(DETACH);
    person.ends(0);
}

#[test]
fn the_screen_is_drawn_again_for_another_size_while_an_answer_comes() {
    fn lines(screen: &vt100::Screen) -> usize {
        screen.contents().lines().count()
    }
    let scene = Scene::new();
    fifo(&scene.file("started"));
    fifo(&scene.file("gate"));
    let command = "echo $$ > started; read line < gate; echo through";
    let answers = [
        json!({ "calls": [bash(command)] }),
        json!({ "text": "all is done" }),
    ];
    let host = Host::start(&scene, &["-m", &scene.script("s.jsonl", &answers)]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.types("go\r");
    reached(&scene.file("started"));
    for (columns, rows) in [(40, 12), (140, 45), (20, 5), (80, 24)] {
        person.resize(columns, rows);
        person.until("not drawn for this size", |screen| {
            lines(screen) == usize::from(rows)
        });
    }
    fs::write(scene.file("gate"), "on\n").unwrap();
    person.sees("all is done");
    person.types(DETACH);
    person.ends(0);
    host.end(Signal::TERM);
}

#[test]
fn a_dumb_terminal_and_a_pipe_get_plain_lines() {
    let (scene, _host) = scene(&[json!({ "text": "one" })]);
    for (kind, flags) in [("dumb", &[][..]), ("xterm", &["--plain"])] {
        let mut person =
            AtScreen::start_on(&scene, (80, 24), kind, &[&["attach", "p"], flags].concat());
        person.sees("[attached to p, which is");
        person.types("/detach\n");
        person.sees("[detached: p keeps running]");
        let raw = person.raw();
        assert!(!raw.contains("\u{1b}[?"), "{raw:?}");
        person.ends(0);
    }
    scene
        .fed(&["attach", "p"], b"")
        .ends(0)
        .prints(&["[attached to p, which is", "[detached: p keeps running]"]);
}

#[test]
fn inline_prints_what_is_finished_into_the_terminal() {
    let (scene, host) = asking();
    let mut person = AtScreen::start_on(
        &scene,
        (80, 60),
        "xterm-256color",
        &["attach", "p", "--inline"],
    );
    person.sees("idle");
    person.types("make the file\r");
    answers(&mut person, "y");
    person.sees("all is done");
    person.sees("turn 1: done");
    person.types("again\r");
    person.sees("once more");
    person.sees("turn 2: done");
    person.types("\u{1b}OP");
    person.sees("── keys");
    person.types(DETACH);
    let raw = person.raw();
    assert!(
        !raw.contains("\u{1b}[?1049") && !raw.contains("\u{1b}[2J"),
        "{raw:?}"
    );
    let left = person.ends(0);
    for text in [
        "> make the file",
        "all is done",
        "> again",
        "once more",
        "[detached: p keeps running]",
    ] {
        assert_eq!(left.matches(text).count(), 1, "{text}:\n{left}");
    }
    for text in [KEYS, "F1 keys", "›", "── keys"] {
        assert!(!left.contains(text), "{text}:\n{left}");
    }
    scene.yoi(&["attach", "p", "--inline", "--plain"]).ends(2);
    host.end(Signal::TERM);
}

#[test]
fn an_approval_that_is_answered_disappears_at_the_other_terminal() {
    let command = "touch made; read line < gate";
    let (scene, host) = scene(&[
        json!({ "calls": [bash(command)] }),
        json!({ "text": "all is done" }),
    ]);
    fifo(&scene.file("gate"));
    let mut one = AtScreen::start(&scene, &["attach", "p"]);
    let mut two = AtScreen::start(&scene, &["attach", "p"]);
    two.resize(60, 20);
    one.types("make the file\r");
    two.sees(KEYS);
    answers(&mut one, "y");
    // Before the call ends.
    for person in [&one, &two] {
        person.misses(KEYS);
    }
    fs::write(scene.file("gate"), "on\n").unwrap();
    for person in [&one, &two] {
        person.sees("all is done");
        person.sees("idle");
    }
    // The panel of the keys identifies the state.
    let mut states = Vec::new();
    for person in [&mut one, &mut two] {
        person.resize(80, 40);
        person.types("\u{1b}OP");
        // Also where a part of the line was not painted yet.
        let state = |screen: &str| {
            let line = screen
                .lines()
                .find(|line| line.trim_start().starts_with("state "))?
                .trim()
                .to_owned();
            line.rsplit(':')
                .next()
                .is_some_and(|hash| hash.len() == 16)
                .then_some(line)
        };
        let text = person.until("no state", |screen| state(&screen.contents()).is_some());
        states.extend(state(&text));
        person.types(DETACH);
    }
    assert_eq!(states[0], states[1]);
    one.ends(0);
    two.ends(0);
    host.end(Signal::TERM);
    scene.sound("p");
}

#[test]
fn what_waits_in_another_pod_is_answered_from_here() {
    let (scene, host) = asking();
    let model = scene.script("other.jsonl", &[json!({ "text": "here" })]);
    let other = Host::of(
        &scene
            .yoi(&["start", "q", "--json", "-q", "-m", &model])
            .ends(0),
    );
    let mut first = AtScreen::start(&scene, &["attach", "p"]);
    first.types("make the file\r");
    first.sees(KEYS);
    first.types(DETACH);
    first.ends(0);
    let mut person = AtScreen::start(&scene, &["attach", "q"]);
    person.sees("idle");
    person.types("half a thought");
    person.sees("half a thought");
    person.types(F4);
    person.sees("▶ p · waiting for you");
    person.types("\r");
    answers(&mut person, "y");
    person.sees("all is done");
    assert!(scene.file("made").exists());
    // And back, where the draft is.
    person.types(F4);
    person.sees("── pods");
    person.types("q");
    person.sees("▶ q · idle");
    person.types("\r");
    person.sees("half a thought");
    // One that ended meanwhile leaves the screen where it is.
    person.types(F4);
    person.sees("p · idle");
    person.types("p");
    person.sees("▶ p · idle");
    scene.yoi(&["stop", "p"]).ends(0);
    person.types("\r");
    person.sees("p is not running");
    person.sees("half a thought");
    person.types(DETACH);
    let left = person.ends(0);
    assert!(left.contains("[detached: q keeps running]"), "{left}");
    until("the stopped pod has ended", || host.is_gone());
    other.end(Signal::TERM);
    scene.sound("p");
    scene.sound("q");
}

#[test]
fn the_path_of_a_file_is_completed() {
    let (scene, host) = scene(&[json!({ "text": "seen" })]);
    scene.write("docs/long name of a note.md", "");
    scene.write("docs/other.md", "");
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("idle");
    person.types("read @oth");
    person.sees("  @docs/other.md");
    person.types("\t");
    person.sees("› read @docs/other.md");
    person.types("\r");
    person.sees("seen");
    person.types(DETACH);
    assert!(person.ends(0).contains("> read @docs/other.md"));
    host.end(Signal::TERM);
}

#[test]
fn the_whole_conversation_is_opened_and_printed() {
    let (scene, host) = scene(&[json!({ "text": "the answer" })]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.resize(80, 60);
    person.types("the input\r");
    person.sees("turn 1: done");
    // The editor of this terminal prints the file.
    person.types("/log\r");
    person.sees("the conversation was in the editor");
    person.types("/print\r");
    person.sees("the conversation is in the terminal's scrollback");
    let left = fs::read_dir(scene.path("tmp"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    assert!(
        left.into_iter().all(|path| path.extension().is_none()),
        "the file stays"
    );
    let log = scene.yoi(&["log", "p"]).ends(0).out.clone();
    assert!(
        person.raw().replace('\r', "").contains(log.trim_end()),
        "{log}"
    );
    fs::rename(scene.path("state"), scene.path("away")).unwrap();
    person.types("/log\r");
    person.sees("`yoi log p`: error: ");
    fs::rename(scene.path("away"), scene.path("state")).unwrap();
    person.types(DETACH);
    let left = person.ends(0);
    assert_eq!(left.matches("11  the answer").count(), 2, "{left}");
    host.end(Signal::TERM);
}

/// Frames are left out while the terminal takes none; a question that waits behind them is answered by no key.
#[test]
fn a_terminal_that_nobody_reads_costs_no_memory_and_answers_nothing() {
    const TURNS: usize = 100;
    let page = |turn: usize| {
        (0..24)
            .map(|line| format!("{turn} {line} {}\n\n", "x".repeat(70)))
            .collect::<String>()
    };
    let mut answers: Vec<Value> = (0..TURNS)
        .map(|turn| json!({ "text": page(turn) }))
        .collect();
    answers.extend([
        json!({ "calls": [bash("touch made")] }),
        json!({ "text": "all is done" }),
    ]);
    let (scene, host) = scene(&answers);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("idle");
    let before = person.raw().len();
    person.unread(|person| {
        for turn in 0..TURNS {
            // A frame for another size is drawn whole.
            person.resize(80, if turn % 2 == 0 { 30 } else { 24 });
            scene.yoi(&["send", "--wait", "p", "go"]).ends(0);
        }
        scene.yoi(&["send", "p", "go"]).ends(0);
        until("it asks", || {
            scene.yoi(&["approve", "p"]).out.contains("touch made")
        });
        thread::sleep(Duration::from_millis(400));
        person.types("y");
        thread::sleep(Duration::from_millis(400));
    });
    person.sees("› y");
    let shown = person.raw().len() - before;
    assert!(shown < 64 << 10, "{shown} bytes");
    assert!(!scene.file("made").exists());
    person.types("\u{7f}");
    self::answers(&mut person, "y");
    person.sees("all is done");
    person.types(DETACH);
    person.ends(0);
    host.end(Signal::TERM);
}

/// What the kernel counts as waiting, of all threads.
fn waits(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let count = |status: String| -> u64 {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .unwrap();
        line.trim().parse().unwrap()
    };
    tasks
        .map(|task| count(fs::read_to_string(task.unwrap().path().join("status")).unwrap()))
        .sum()
}

#[test]
fn an_idle_screen_never_wakes_up() {
    let (scene, _host) = scene(&[json!({ "text": "one" })]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.types("go\r");
    person.sees("one");
    person.sees("idle");
    let pid = person.pid();
    // What still follows an answer, until nothing happened for the time that is measured.
    until("it is idle", || {
        let before = waits(pid);
        thread::sleep(Duration::from_millis(pause() * 5));
        waits(pid) == before
    });
    let before = waits(pid);
    thread::sleep(Duration::from_millis(pause() * 10));
    assert_eq!(waits(pid), before);
    person.types(DETACH);
    person.ends(0);
}

#[test]
fn alone_it_starts_a_pod_of_the_directory_and_comes_back_to_it() {
    let scene = Scene::new();
    // What a run made for itself is no pod to choose from.
    scene.yoi(&["run", "list the files"]).ends(0);
    let named = || {
        let mut pods = scene.pods();
        pods.retain(|name| !name.starts_with("run-"));
        pods
    };
    let mut person = AtScreen::start(&scene, &[]);
    person.sees("No language model is set up");
    person.types("list the files\r");
    person.sees("> list the files");
    person.types(DETACH);
    let left = person.ends(0);
    assert!(left.contains("[detached: project keeps running]"), "{left}");
    let mut person = AtScreen::start(&scene, &[]);
    person.sees("list the files");
    person.types(DETACH);
    person.ends(0);
    assert_eq!(named(), ["project"]);
    // A stopped pod of this directory is started again.
    scene.yoi(&["stop", "project"]).ends(0);
    let mut person = AtScreen::start(&scene, &[]);
    person.sees("list the files");
    person.types(DETACH);
    person.ends(0);
    assert_eq!(named(), ["project"]);
    scene.yoi(&["stop", "project"]).ends(0);
    scene.yoi(&[]).ends(0).prints(&["Usage: yoi"]);
}

#[test]
fn a_log_shows_what_a_client_showed() {
    let (scene, host) = asking();
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.types("make the file\r");
    person.sees(KEYS);
    let records = scene.records("p");
    let asked = records
        .iter()
        .find(|record| record["k"] == "approval_requested")
        .unwrap()["q"]
        .as_u64()
        .unwrap();
    answers(&mut person, "n");
    person.sees("all is done");
    person.types(DETACH);
    person.ends(0);
    let at = asked.to_string();
    let done = scene
        .yoi(&["log", "p", "--screen", "--at", &at, "--size", "80x24"])
        .ends(0);
    assert_eq!(done.out.lines().count(), 24, "{}", done.out);
    let done = done.prints(&["make the file", "touch made", KEYS]);
    assert!(!done.out.contains("all is done"), "{}", done.out);
    scene
        .yoi(&["log", "p", "--screen"])
        .ends(0)
        .prints(&["all is done"]);
    scene
        .yoi(&["log", "p", "--screen", "--at", "99999"])
        .ends(2)
        .says(&["p has no record 99999"]);
    scene.yoi(&["log", "p", "--at", "3"]).ends(2);
    host.end(Signal::TERM);
}

#[test]
fn the_features_are_told_in_the_words_of_the_command() {
    let (scene, _host) = scene(&[json!({ "text": "one" })]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.resize(80, 120);
    person.types("\u{1b}OQ");
    person.sees("── features");
    let told = scene.yoi(&["features", "p"]).ends(0).out;
    // Behind its first line, about the start that is in the journal.
    for line in told.lines().skip(1).filter(|line| !line.is_empty()) {
        person.sees(line);
    }
    person.types(DETACH);
    person.ends(0);
}

#[test]
fn the_status_line_has_the_branch_and_who_else_is_there() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("project/.git")).unwrap();
    let head = scene.path("project/.git/HEAD");
    fs::write(&head, "ref: refs/heads/topic/one\n").unwrap();
    let model = scene.script("s.jsonl", &[json!({ "text": "done" })]);
    let _host = Host::start(&scene, &["-m", &model]);
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("branch topic/one");
    person.misses("client");
    let mut other = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("2 clients");
    other.sees("2 clients");
    other.types(DETACH);
    other.ends(0);
    person.misses("client");
    fs::write(&head, "ref: refs/heads/topic/two\n").unwrap();
    person.types("go\r");
    person.sees("branch topic/two");
    person.types(DETACH);
    person.ends(0);
}

#[test]
fn a_person_may_write_with_the_keys_of_vi() {
    let (scene, _host) = scene(&[json!({ "text": "one" })]);
    scene.config("[terminal]\nvi_keys = true\n");
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.types("one two");
    person.sees("INSERT · p · idle");
    person.types("\u{1b}");
    person.sees("NORMAL · p · idle");
    person.types("bD");
    person.misses("two");
    person.types("aand");
    person.sees("one and");
    person.types(DETACH);
    person.ends(0);
}

/// The provider counts more tokens than the window has.
#[test]
fn a_full_context_is_a_question_that_keys_answer() {
    const QUESTION: &str = "1 drop the oldest turns";
    let scene = Scene::new();
    let third = json!({ "text": "three", "usage": { "input": 20_000, "output": 10, "cached": 0 } });
    let answers = [
        json!({ "text": "one" }),
        json!({ "text": "two" }),
        third,
        json!({ "text": "went on" }),
    ];
    let model = scene.script("s.jsonl", &answers);
    scene.config(&format!("[models.\"{model}\"]\ncontext = 8000\n"));
    let host = Host::start(&scene, &["-m", &model]);
    let send = |bytes: usize| scene.yoi(&["send", "--wait", "p", &"x".repeat(bytes)]);
    for bytes in [10_000, 3_000, 10_000] {
        send(bytes).ends(0);
    }
    send(10)
        .ends(4)
        .says(&["help: `yoi compact p --drop-turns` continues it without the oldest turns"]);
    scene
        .yoi(&["ls"])
        .ends(0)
        .prints(&["waiting for you", "`yoi compact p --drop-turns`"]);
    scene
        .yoi(&["status", "p"])
        .ends(0)
        .prints(&["`yoi compact p --drop-turns` continues it"]);
    let press = |person: &mut AtScreen, key: &str| {
        person.sees(QUESTION);
        thread::sleep(Duration::from_millis(400));
        person.types(key);
    };
    let mut person = AtScreen::start(&scene, &["attach", "p"]);
    person.sees("waiting for you: the context is full");
    press(&mut person, "3");
    person.sees("p · ended");
    until("the pod has ended", || host.is_gone());
    // It still waits for an answer when the pod runs again.
    let host = Host::start(&scene, &[]);
    press(&mut person, "2");
    person.sees("p · idle");
    person.types("again\r");
    press(&mut person, "1");
    person.sees("p · idle");
    person.misses(QUESTION);
    person.types("and on\r");
    person.sees("the oldest turns and their steps left the context");
    person.sees("turn 6: done");
    person.types(DETACH);
    person.ends(0);
    host.end(Signal::TERM);
    scene.sound("p");
}
