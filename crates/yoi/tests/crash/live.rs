//! A pod that stays, killed at its points while clients work with it, and clients killed before their answer.

use crate::checks::{self, said};
use crate::drivers::{PATIENCE, Tally, each};
use crate::moments::{self, Dice};
use crate::scene::{POD, Scene};
use crate::script;
use crate::victim;
use pod::record::{InputId, Record};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Kills by default.
const SAMPLE: usize = 6;
/// Clients that are killed: by default, and all.
const CLIENTS: [u64; 2] = [4, 40];
/// The longest time that a client may live, in microseconds: about what one takes.
const LIFE: u64 = 60_000;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// In the project: what the first call waits for.
const GO: &str = "go";

/// A person's command with an effect.
const COMMAND: &str = "echo effect-9 >> effects.log";

/// Why a story went no further.
enum Cut {
    /// The host is dead.
    Dead,
    Wrong(String),
}

/// What clients were told.
#[derive(Default)]
struct Told {
    inputs: BTreeMap<InputId, &'static str>,
    withdrawn: Vec<InputId>,
}

/// The kills at named points, and those of clients.
pub(crate) fn kills(seed: u64, tally: &mut Tally) {
    let place = scene();
    let record = place.record_file();
    let mut told = Told::default();
    match story(
        &place,
        |start| {
            start.env(victim::RECORD, &record);
        },
        &mut told,
    ) {
        Ok(()) => {}
        Err(Cut::Dead) => {
            return tally.add(
                "of a live pod",
                vec![(0, Err("it died by itself".to_owned()))],
            );
        }
        Err(Cut::Wrong(why)) => {
            return tally.add(
                "of a live pod",
                vec![(0, Err(format!("undisturbed: {why}")))],
            );
        }
    }
    let reached: Vec<String> = fs::read_to_string(&record)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let undisturbed = go_on(&place, &told).map_err(|why| format!("undisturbed: {why}"));
    let (names, mut points) = moments::named(&reached);
    if !moments::all() {
        let mut dice = Dice(seed.rotate_left(16) | 1);
        points.sort_by_cached_key(|_| dice.roll());
        points.truncate(SAMPLE);
    }
    println!(
        "live pod: {} points reached, {names} names; killing at {} of them",
        reached.len(),
        points.len()
    );
    let done = each(&points, |point| {
        at(point).map_err(|why| format!("{point}: {why}"))
    });
    // How many commits a story has depends on which client is faster.
    let missed = done
        .iter()
        .filter(|(_, killed)| matches!(killed, Ok(false)))
        .count();
    if missed * 3 > points.len() {
        tally.fail(format!("of a live pod: {missed} points were not reached"));
    }
    println!("live pod: {missed} of the points were not reached again");
    undisturbed.unwrap_or_else(|why| tally.fail(why));
    tally.add(
        "of a live pod",
        done.into_iter()
            .map(|(at, done)| (at, done.map(drop)))
            .collect(),
    );
    clients(seed, tally);
}

/// Two effects with a gate between them, one with a process that stays behind, and texts.
fn scene() -> Scene {
    let mut number = 0;
    let mut effect = |rest: &str| {
        number += 1;
        let command = format!("{}{number} >> {}{rest}", script::MARK, script::EFFECTS);
        json!({"calls": [{"name": "Bash", "arguments": {"command": command}}]})
    };
    let mut answers = vec![
        effect(&format!("; until [ -e {GO} ]; do sleep 0.02; done")),
        json!({"text": "one and two"}),
        effect("; setsid sleep 300 >/dev/null 2>&1 &"),
        json!({"text": "three"}),
        effect(""),
    ];
    answers.extend((0..40).map(|_| json!({"text": "continued"})));
    let place = Scene::new();
    place.script(
        &answers
            .iter()
            .map(|answer| format!("{answer}\n"))
            .collect::<String>(),
    );
    place
}

/// One kill; whether the point was reached.
fn at(point: &str) -> Result<bool, String> {
    let place = scene();
    let died = place.record_file();
    let mut told = Told::default();
    let prepare = |start: &mut Command| {
        start.env(victim::POINT, point).env(victim::DIED, &died);
    };
    if let Err(Cut::Wrong(why)) = story(&place, prepare, &mut told) {
        return Err(why);
    }
    go_on(&place, &told)?;
    Ok(died.exists())
}

/// Steered, withdrawn, paused, resumed and stopped.
fn story(place: &Scene, prepare: impl Fn(&mut Command), told: &mut Told) -> Result<(), Cut> {
    let model = place.model();
    let mut start = place.yoi(&["start", POD, "--json", "-q", "-m", &model]);
    prepare(&mut start);
    let Some(pid) = pid(&output(&mut start)) else {
        return Err(Cut::Dead);
    };
    let pod = Live { place, pid };
    pod.send(&["one"], told)?;
    pod.until("the first call", |_| place.effects().contains("effect-1"))?;
    pod.send(&["--steer", "two"], told)?;
    pod.send(&["three"], told)?;
    pod.send(&["--run", COMMAND], told)?;
    pod.withdrawn("four", told)?;
    pod.ask(&["pause", POD])?;
    fs::write(place.project().join(GO), "").unwrap();
    pod.until("the pause", |status| status["state"] == "held")?;
    pod.ask(&["resume", POD])?;
    pod.until("the end of the queue", is_settled)?;
    pod.send(&["five"], told)?;
    pod.ask(&["stop", POD])?;
    pod.gone()
}

fn is_settled(status: &Value) -> bool {
    status["state"] == "idle" && status["queued"].as_array().is_some_and(Vec::is_empty)
}

/// The next start, after a kill or not: what clients were told is there, and the pod works on it, stops and leaves nothing.
fn go_on(place: &Scene, told: &Told) -> Result<(), String> {
    fs::write(place.project().join(GO), "").unwrap();
    let model = place.model();
    // As it was, if it ever was.
    let known = checks::records(place)
        .is_ok_and(|all| all.values().any(|r| matches!(r, Record::HostStarted(_))));
    let flags: &[&str] = if known { &[] } else { &["-m", &model] };
    let started = output(&mut place.yoi(&[&["start", POD, "--json", "-q"], flags].concat()));
    let Some(pid) = pid(&started) else {
        return Err(format!("the next start: {}", said(&started)));
    };
    let pod = Live { place, pid };
    let finished = (|| {
        queue(place, told, false)?;
        pod.until("the end of all inputs", |status| {
            if status["held"].is_object() {
                output(&mut place.yoi(&["resume", POD]));
            }
            is_settled(status)
        })?;
        pod.ask(&["stop", POD])?;
        pod.gone()
    })();
    finished.map_err(|cut| match cut {
        Cut::Dead => "the next start died".to_owned(),
        Cut::Wrong(why) => why,
    })?;
    match queue(place, told, true) {
        Err(Cut::Wrong(why)) => return Err(why),
        Ok(()) | Err(Cut::Dead) => {}
    }
    checks::all(place, &[])?;
    let left = left(place);
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!("left behind: {left:?}"))
    }
}

/// Every input that clients were told of is in the journal, and taken at most once; `over`: exactly once.
fn queue(place: &Scene, told: &Told, over: bool) -> Result<(), Cut> {
    let wrong = |why: String| Err(Cut::Wrong(why));
    let records = checks::records(place).map_err(Cut::Wrong)?;
    let mut queued: BTreeMap<InputId, (&str, usize, bool)> = BTreeMap::new();
    for record in records.values() {
        match record {
            Record::InputQueued(input) => drop(queued.insert(input.input, (&input.text, 0, false))),
            Record::InputConsumed(input) => queued.entry(input.input).or_default().1 += 1,
            Record::InputWithdrawn(input) => queued.entry(input.input).or_default().2 = true,
            _ => {}
        }
    }
    for (input, text) in &told.inputs {
        let is_kept = |kept: &str| kept == *text || kept.strip_prefix("! ") == Some(text);
        if queued.get(input).is_none_or(|(kept, _, _)| !is_kept(kept)) {
            return wrong(format!(
                "input {input} was acknowledged as {text} and is now {:?}",
                queued.get(input)
            ));
        }
    }
    if let Some(input) = told
        .withdrawn
        .iter()
        .find(|input| queued.get(input).is_none_or(|(_, _, gone)| !gone))
    {
        return wrong(format!("input {input} was withdrawn and is not"));
    }
    for (input, (text, taken, withdrawn)) in &queued {
        if *taken > 1 || (*withdrawn && *taken > 0) || (over && !withdrawn && *taken != 1) {
            return wrong(format!(
                "input {input} ({text}): withdrawn {withdrawn}, taken {taken} times"
            ));
        }
    }
    Ok(())
}

/// Sockets and temporary files.
fn left(place: &Scene) -> Vec<String> {
    let names = |dir: &Path| -> Vec<String> {
        let entries = fs::read_dir(dir).into_iter().flatten();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let mut left: Vec<String> = names(&place.pod())
        .into_iter()
        .filter(|name| name.contains("sock"))
        .collect();
    for dir in ["", "idx", "log", "blobs", "quarantine"] {
        left.extend(
            names(&place.pod().join(dir))
                .into_iter()
                .filter(|name| name.contains("tmp")),
        );
    }
    left.extend(
        names(&place.temporary())
            .into_iter()
            .filter(|name| !name.ends_with(".lock")),
    );
    left
}

/// Clients that die between their request and the answer: an input with the same key is the same input.
fn clients(seed: u64, tally: &mut Tally) {
    let place = scene();
    place.script(&"{\"text\":\"fine\"}\n".repeat(100));
    let model = place.model();
    let started = output(&mut place.yoi(&["start", POD, "--json", "-q", "-m", &model]));
    let Some(pid) = pid(&started) else {
        return tally.add("of clients", vec![(0, Err(said(&started)))]);
    };
    let pod = Live { place: &place, pid };
    let mut dice = Dice(seed.rotate_left(48) | 1);
    let killed: Vec<_> = (0..CLIENTS[usize::from(moments::all())])
        .map(|number| {
            let key = format!("key-{number}");
            let text = format!("input {number}");
            let send = ["send", POD, "--key", &key, &text];
            let mut child = place
                .yoi(&send)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            thread::sleep(Duration::from_micros(dice.roll() % LIFE));
            child.kill().unwrap();
            child.wait().unwrap();
            let again = output(&mut place.yoi(&send));
            let printed = String::from_utf8_lossy(&again.stdout)
                .trim()
                .parse::<InputId>();
            let input = printed.map_err(|_| format!("{key}: {}", said(&again)))?;
            Ok((key, input))
        })
        .collect();
    let ended = pod
        .until("the end of all inputs", is_settled)
        .and_then(|()| pod.ask(&["stop", POD]))
        .and_then(|_| pod.gone());
    let records = checks::records(&place);
    let once = |(key, input): (String, InputId)| {
        let all = records.as_ref().map_err(Clone::clone)?;
        let named = all.values().filter_map(|record| match record {
            Record::InputQueued(queued) if queued.key.as_ref() == Some(&key) => Some(queued.input),
            _ => None,
        });
        let named: Vec<_> = named.collect();
        if named == [input] {
            Ok(())
        } else {
            Err(format!("{key} is {input} and in the journal {named:?}"))
        }
    };
    let mut done: Vec<_> = killed.into_iter().map(|sent| sent.and_then(once)).collect();
    if let Err(Cut::Wrong(why)) = ended {
        done.push(Err(why));
    }
    tally.add("of clients", done.into_iter().enumerate().collect());
}

/// The host of a pod. One that is still there when a test is over is ended.
struct Live<'a> {
    place: &'a Scene,
    pid: i32,
}

impl Live<'_> {
    /// A command that succeeds while the host lives.
    fn ask(&self, args: &[&str]) -> Result<Output, Cut> {
        let done = output(&mut self.place.yoi(args));
        if done.status.success() {
            Ok(done)
        } else {
            Err(self.cut(format!("{args:?}: {}", said(&done))))
        }
    }

    /// A host that was killed explains everything.
    fn cut(&self, why: String) -> Cut {
        if self.gone().is_ok() {
            Cut::Dead
        } else {
            Cut::Wrong(why)
        }
    }

    fn is_gone(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit_once(')')
            .is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
    }

    /// Waits a little for the end of the host.
    fn gone(&self) -> Result<(), Cut> {
        let began = Instant::now();
        while !self.is_gone() {
            if began.elapsed() > Duration::from_secs(2) {
                return Err(Cut::Wrong("the host does not end".to_owned()));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn send(&self, input: &[&'static str], told: &mut Told) -> Result<(), Cut> {
        let done = output(&mut self.place.yoi(&[&["send", POD], input].concat()));
        // Whatever comes after it: the number is the promise.
        if let Ok(number) = String::from_utf8_lossy(&done.stdout).trim().parse() {
            told.inputs.insert(number, input.last().unwrap());
        }
        if done.status.success() {
            Ok(())
        } else {
            Err(self.cut(said(&done)))
        }
    }

    /// An input whose client leaves while it waits.
    fn withdrawn(&self, text: &'static str, told: &mut Told) -> Result<(), Cut> {
        let mut run = self.place.yoi(&["run", "--pod", POD, text]);
        let client = run
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let number = Cell::new(None);
        let waits = self.until("the input of a run", |status| {
            let queued = status["queued"].as_array().unwrap();
            number.set(
                queued
                    .iter()
                    .find(|input| input["text"] == text)
                    .and_then(|input| input["input"].as_u64()),
            );
            number.get().is_some()
        });
        kill_process(
            Pid::from_raw(client.id().cast_signed()).unwrap(),
            Signal::INT,
        )
        .unwrap();
        let ended = client.wait_with_output().unwrap();
        waits?;
        self.until("the end of an input", |status| {
            !status["queued"]
                .as_array()
                .unwrap()
                .iter()
                .any(|input| input["text"] == text)
        })
        .map_err(|_| self.cut(said(&ended)))?;
        told.withdrawn.extend(number.get());
        Ok(())
    }

    fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Result<(), Cut> {
        let began = Instant::now();
        loop {
            let status = self.ask(&["status", POD, "--json"])?;
            let status: Value = serde_json::from_slice(&status.stdout).unwrap();
            if status["answers"] == true && holds(&status) {
                return Ok(());
            }
            if self.is_gone() {
                return Err(Cut::Dead);
            }
            if began.elapsed() > PATIENCE {
                return Err(Cut::Wrong(format!("{what} did not come: {status}")));
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        if !self.is_gone() {
            kill_process(Pid::from_raw(self.pid).unwrap(), Signal::KILL).ok();
            drop(self.gone());
        }
    }
}

fn pid(started: &Output) -> Option<i32> {
    let answer: Value = serde_json::from_slice(&started.stdout).ok()?;
    i32::try_from(answer["pid"].as_i64()?).ok()
}

fn output(command: &mut Command) -> Output {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap()
}
