//! Kills of runs that do nothing but change files: after the next run nothing staged is left beside them, and no directory
//! that was made for a file which did not come.

use crate::checks::{self, said};
use crate::drivers::{Tally, each};
use crate::moments::Dice;
use crate::scene::{POD, Scene};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Kills by default, and the variable that says another number.
const KILLS: usize = 10;
const VARIABLE: &str = "YOI_TEST_EDIT_KILLS";
/// Rounds of one new file in new directories, and of edits of those before.
const ROUNDS: usize = 8;
/// Long enough that writing it takes a part of the run.
const LINES: usize = 9_000;
/// One of so many kills is by the clock, the others at points.
const BY_CLOCK: u64 = 2;

/// Where a kill comes.
enum Moment {
    Point(String),
    After(Duration),
}

pub(crate) fn kills(seed: u64, tally: &mut Tally) {
    let place = Scene::new();
    place.script(&script());
    let began = Instant::now();
    let (output, reached) = place.record();
    let took = began.elapsed();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(odd(&place.project()), Vec::<String>::new());
    let first = reached
        .iter()
        .position(|name| name == "commit:tool_started")
        .unwrap();
    let count =
        std::env::var(VARIABLE).map_or(KILLS, |text| text.parse().expect("a number of kills"));
    let mut dice = Dice(seed.rotate_left(16) | 1);
    let moments: Vec<Moment> = (0..count)
        .map(|_| match dice.roll() % BY_CLOCK {
            0 => Moment::After(took.mul_f64((dice.roll() % 1000) as f64 / 1000.0)),
            _ => Moment::Point(format!(
                "any:{}",
                first as u64 + dice.roll() % (reached.len() - first) as u64
            )),
        })
        .collect();
    tally.add("of runs that edit", each(&moments, killed));
}

fn killed(moment: &Moment) -> Result<(), String> {
    let place = Scene::new();
    place.script(&script());
    let (killed, what) = match moment {
        Moment::Point(point) => (place.run(Some(point)), point.clone()),
        Moment::After(time) => {
            let mut child = place.run_command(None).spawn().unwrap();
            thread::sleep(*time);
            child.kill().unwrap();
            (child.wait_with_output().unwrap(), format!("after {time:?}"))
        }
    };
    if killed.status.signal() != Some(9) && !killed.status.success() {
        return Err(format!("{what}: {}", said(&killed)));
    }
    let shown = checks::shown(&killed);
    let left = odd(&place.project());
    // Taking back finds it as well as going on does.
    let undo = place.yoi(&["undo", POD]).output().unwrap();
    let undone = undo
        .status
        .success()
        .then(|| fs::read_dir(place.project()).unwrap().count());
    if let Some(more @ 1..) = undone {
        return Err(format!(
            "{what}: {more} things are there after undo; before it: {left:?}"
        ));
    }
    let next = place.run(None);
    if !next.status.success() {
        return Err(format!("{what}: the next run: {}", said(&next)));
    }
    match odd(&place.project()).as_slice() {
        [] => checks::all(&place, &shown),
        odd => Err(format!("{what}: left behind: {odd:?}")),
    }
}

/// What is no file of the script, and directories in which nothing is.
fn odd(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap();
        let is_dir = entry.file_type().unwrap().is_dir();
        if name.contains(".tmp") || (is_dir && fs::read_dir(&path).unwrap().next().is_none()) {
            found.push(path.display().to_string());
        } else if is_dir {
            found.extend(odd(&path));
        }
    }
    found
}

fn script() -> String {
    let text = "a line of text\n".repeat(LINES);
    let mut answers: Vec<Value> = Vec::new();
    for round in 0..ROUNDS {
        let path = format!("new-{round}/deep/file.txt");
        let content = format!("round {round}\n{text}");
        let edit = |old: &str, new: String| json!({"name": "Edit", "arguments": {"path": path, "edits": [{"old": old, "new": new}]}});
        let first = format!("round {round}");
        answers.push(
            json!({"calls": [{"name": "Write", "arguments": {"path": path, "content": content}}]}),
        );
        answers.push(json!({"calls": [edit(&first, format!("edited {round}"))]}));
        answers.push(json!({"calls": [
            edit("edited", "again".to_owned()),
            {"name": "Write", "arguments": {"path": format!("other-{round}/file.txt"), "content": "short\n"}},
        ]}));
    }
    answers.extend((0..40).map(|_| json!({"text": "done"})));
    answers.iter().map(|answer| format!("{answer}\n")).collect()
}
