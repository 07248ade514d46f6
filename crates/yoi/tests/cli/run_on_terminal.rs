//! What `yoi run` shows on a terminal that can draw: cells, and one line that is drawn over again.

use crate::approvals::bash;
use crate::person::AtTerminal;
use crate::scene::Scene;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const ANSWER: &str = "# Title\n\nAll **is** done, and this line is long enough to be broken between words.\n\n- one\n";

fn scene(command: &str) -> (Scene, String) {
    let scene = Scene::new();
    let edit = json!({ "path": "a.txt", "edits": [{ "old": "l2", "new": "line two" }] });
    let read = json!({ "name": "Read", "arguments": { "path": "a.txt" } });
    let calls: Value = json!({ "text": "I *look*.", "calls": [read] });
    scene.write("a.txt", "l1\nl2\nl3\n");
    let answers = [
        calls,
        json!({ "calls": [{ "name": "Edit", "arguments": edit }] }),
        json!({ "calls": [bash(command)] }),
        json!({ "text": ANSWER }),
    ];
    let model = scene.script("s.jsonl", &answers);
    (scene, model)
}

/// What stays when what is drawn is replaced by the next, without times.
fn kept(shown: &str) -> String {
    let timeless = |line: &str| match line.rsplit_once(" · ") {
        Some((call, time)) if time.ends_with(" s") => call.to_owned(),
        _ => line.to_owned(),
    };
    let mut lines: Vec<String> = Vec::new();
    for line in shown.replace("\r\n", "\n").lines() {
        let up = line.matches("\u{1b}[A\u{1b}[K").count();
        lines.truncate(lines.len().saturating_sub(up));
        lines.push(timeless(line.rsplit("\u{1b}[K").next().unwrap()));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn each_call_is_a_cell_with_its_result() {
    let (scene, model) = scene("seq 1 9; exit 0");
    let args = [
        "run",
        "--sandbox",
        "off",
        "--allow",
        "Bash",
        "--allow",
        "Edit",
        "--ephemeral",
        "-m",
        &model,
        "go",
    ];
    let shown = kept(&AtTerminal::start_drawing(&scene, 40, false, &args).ends(0));
    let cells = "\n\nI *look*.\n\n✓ Read a.txt · lines 1-3 of 3\n✓ Edit a.txt · 1 replacement\n  1   l1\n  2 - l2\n  2 + line two\n  3   l3\n";
    let output = "  … 4 more lines\n  5\n  6\n  7\n  8\n  9\n";
    let answer = "\n# Title\n\nAll **is** done, and this line is long\nenough to be broken between words.\n\n• one\n\n4 steps · ";
    for part in [cells, output, answer] {
        assert!(shown.contains(part), "{part}\nis not in\n{shown}");
    }
    assert!(
        shown.lines().all(|line| line.chars().count() <= 40),
        "{shown}"
    );
    let coloured = kept(&AtTerminal::start_drawing(&scene, 40, true, &args).ends(0));
    assert!(
        coloured.contains("\u{1b}[32m✓\u{1b}[0m \u{1b}[1mRead\u{1b}[0m a.txt"),
        "{coloured}"
    );
    assert!(
        coloured.contains("All \u{1b}[1mis\u{1b}[0m done"),
        "{coloured}"
    );
    // A program that reads the output gets what it got before.
    let piped = scene.yoi(&args).ends(0);
    assert_eq!(piped.out, ANSWER);
    assert!(
        piped
            .err
            .contains("• Read a.txt\n  a.txt: lines 1-3 of 3\n"),
        "{}",
        piped.err
    );
}

#[test]
fn a_call_that_runs_shows_its_time_and_leaves_one_line() {
    let (scene, model) = scene("while [ ! -e go ]; do sleep 0.1; done; echo ran; exit 3");
    let args = [
        "run",
        "--sandbox",
        "off",
        "--allow",
        "Bash",
        "--allow",
        "Edit",
        "--ephemeral",
        "-m",
        &model,
        "go",
    ];
    let mut person = AtTerminal::start_drawing(&scene, 60, false, &args);
    person.sees("\r\u{1b}[K");
    person.sees("◦ Bash while [ ! -e go ];");
    person.sees(" · 1 s");
    person.sees(" · 2 s");
    scene.write("go", "");
    person.sees("✗ Bash while");
    person.sees("exit 3");
    person.sees("  ran");
    let shown = kept(&person.ends(0));
    assert_eq!(shown.matches("Bash while").count(), 1, "{shown}");
}

#[test]
fn the_last_lines_of_a_running_command_are_shown() {
    let (scene, model) = scene(
        "echo built; printf ' 10%%\\r 20%%\\r'; while [ ! -e go ]; do sleep 0.1; done; echo; echo over",
    );
    let args = [
        "run",
        "--sandbox",
        "off",
        "--allow",
        "Bash",
        "--allow",
        "Edit",
        "--ephemeral",
        "-m",
        &model,
        "go",
    ];
    let mut person = AtTerminal::start_drawing(&scene, 60, false, &args);
    person.sees("◦ Bash echo built;");
    person.sees("\r\n  built\r\n   20%");
    // With the next second all of it is drawn over.
    person.sees("\r\u{1b}[K\u{1b}[A\u{1b}[K\u{1b}[A\u{1b}[K◦ Bash echo built;");
    scene.write("go", "");
    person.sees("✓ Bash echo built;");
    person.sees("  over\r\n");
    let shown = person.ends(0);
    assert!(!shown.contains(" 10%\r\n"), "{shown}");
    // A program that reads the output gets what it got before.
    let piped = scene.yoi(&args).ends(0);
    assert!(!piped.err.contains("built\n"), "{}", piped.err);
}

#[test]
fn a_question_is_asked_between_cells() {
    let (scene, model) = scene("touch made");
    scene.config(
        "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"ask\"\n",
    );
    let args = ["run", "--pod", "r", "-m", &model, "go"];
    let mut person = AtTerminal::start_drawing(&scene, 44, false, &args);
    for shown in [
        "✓ Edit a.txt",
        "? approval 1: Bash",
        "    command: touch made\r\n",
        "  allow this call? y: once; p: in this pod;\r\n",
    ] {
        person.sees(shown);
    }
    person.sees("waiting: ");
    person.types("y\n");
    person.sees("✓ Bash touch made");
    person.ends(0);
    assert!(scene.file("made").exists());
}

#[test]
fn a_rule_is_shown_in_lines_before_it_is_written() {
    let (scene, model) = scene("touch one");
    let asks = "[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"touch\"\ndecision = \"ask\"\n";
    let rule = "    [[permissions.rules]]\r\n    tool = \"Bash\"\r\n    program = \"touch\"\r\n    subcommand = [\"one\"]\r\n";
    let args = ["run", "--pod", "r", "-m", &model, "go"];
    scene.config(asks);
    let mut person = AtTerminal::start_drawing(&scene, 100, true, &args);
    person.sees("leave it waiting: ");
    person.types("r\n");
    person.sees("yoi/config.toml, for all pods:\r\n");
    person.sees(rule);
    person.sees("  would also have matched no past call of this pod");
    person.sees("  allow the call by these rules? y or n: ");
    let file = scene.path("config/yoi/config.toml");
    fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    person.types("y\n");
    person.sees("\nerror: $XDG_CONFIG_HOME/yoi/config.toml: the file is read-only; ");
    person.sees("\nhelp: add these lines to $XDG_CONFIG_HOME/yoi/config.toml:\r\n");
    person.sees(rule);
    person.sees("Bash\u{1b}[0m touch one");
    person.ends(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), asks);
    assert!(scene.file("one").exists());
}
