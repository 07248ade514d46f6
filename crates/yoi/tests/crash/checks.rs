//! What must hold after a kill, and after the run that followed it.

use crate::scene::{POD, Scene};
use crate::script;
use llm_worker::{CallId, Item, ResultStatus};
use pod::record::Record;
use pod::session::restore::decode;
use serde_json::Value;
use session_store::{OwnedFrame, Reader};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Output;

/// A record as a run printed it: what the run had acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    seq: u64,
    line: String,
}

/// The records in a run's output. The last line of a killed one may be cut.
pub(crate) fn shown(output: &Output) -> Vec<Shown> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines = text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    lines
        .filter_map(|line| {
            let seq = serde_json::from_str::<Value>(line)
                .unwrap()
                .get("q")?
                .as_u64()
                .unwrap();
            Some(Shown {
                seq,
                line: line.to_owned(),
            })
        })
        .collect()
}

/// Right after the kill: nothing was shown that was not durable. HEAD is written behind each flush, before anybody
/// is told of it.
pub(crate) fn nothing_early(place: &Scene, shown: &[Shown]) -> Result<(), String> {
    let head = fs::read_to_string(place.pod().join("HEAD")).unwrap_or_default();
    let durable =
        serde_json::from_str::<Value>(&head).map_or(0, |head| head["q"].as_u64().unwrap_or(0));
    match shown.iter().map(|record| record.seq).max() {
        Some(last) if last > durable => {
            Err(format!("record {last} was shown, durable was {durable}"))
        }
        Some(_) | None => Ok(()),
    }
}

/// After the next run: everything the module says.
pub(crate) fn all(place: &Scene, killed: &[Shown]) -> Result<(), String> {
    let frames = frames(place)?;
    for Shown { seq, line } in killed {
        let kept = frames.get(seq).map(|frame| &frame.line);
        if kept != Some(line) {
            return Err(format!(
                "record {seq} was acknowledged as\n  {line}\nand is now\n  {kept:?}"
            ));
        }
    }
    let calls = Calls::of(&decoded(frames)?);
    calls.one_result_each()?;
    calls.effects_once(&place.effects())?;
    no_survivor(&session(place), place)?;
    let verify = place.yoi(&["verify", POD]).output().unwrap();
    if verify.status.success() {
        Ok(())
    } else {
        Err(format!("verify: {}", said(&verify)))
    }
}

pub(crate) fn records(place: &Scene) -> Result<BTreeMap<u64, Record>, String> {
    decoded(frames(place)?)
}

fn frames(place: &Scene) -> Result<BTreeMap<u64, OwnedFrame>, String> {
    let reader = Reader::open(&place.pod()).map_err(|e| e.to_string())?;
    let frames = reader.frames().map(|frame| {
        frame
            .map(|frame| (frame.seq, frame))
            .map_err(|e| e.to_string())
    });
    frames.collect()
}

fn decoded(frames: BTreeMap<u64, OwnedFrame>) -> Result<BTreeMap<u64, Record>, String> {
    let records = frames
        .into_iter()
        .map(|(seq, frame)| Ok((seq, decode(&frame).map_err(|e| e.to_string())?)));
    records.collect()
}

#[derive(Default)]
struct Calls {
    /// By call: the effect its arguments name.
    asked: BTreeMap<CallId, Option<u32>>,
    started: BTreeMap<CallId, u32>,
    finished: BTreeMap<CallId, Vec<ResultStatus>>,
}

impl Calls {
    fn of(records: &BTreeMap<u64, Record>) -> Self {
        let mut calls = Self::default();
        for record in records.values() {
            match record {
                Record::ItemAdded(added) => {
                    if let Item::ToolCall { id, arguments, .. } = &added.item {
                        calls.asked.insert(*id, script::effect_of(arguments));
                    }
                }
                Record::ToolStarted(started) => {
                    *calls.started.entry(started.call).or_default() += 1
                }
                Record::ToolFinished(done) => calls
                    .finished
                    .entry(done.call)
                    .or_default()
                    .push(done.outcome.status),
                _ => {}
            }
        }
        calls
    }

    fn one_result_each(&self) -> Result<(), String> {
        let asked: BTreeSet<_> = self.asked.keys().collect();
        let finished: BTreeSet<_> = self.finished.keys().collect();
        if asked != finished {
            let odd: Vec<_> = asked.symmetric_difference(&finished).collect();
            return Err(format!(
                "calls without result or results without call: {odd:?}"
            ));
        }
        if let Some((call, _)) = self.finished.iter().find(|(_, results)| results.len() != 1) {
            return Err(format!("{call} has several results"));
        }
        match self.started.iter().find(|(_, times)| **times != 1) {
            Some((call, times)) => Err(format!("{call} was started {times} times")),
            None => Ok(()),
        }
    }

    /// An effect is there once if its call ended well, at most once if nobody knows, and not if it never started.
    fn effects_once(&self, log: &str) -> Result<(), String> {
        for (call, effect) in &self.asked {
            let Some(effect) = effect else { continue };
            let line = format!("effect-{effect}");
            let times = log.lines().filter(|found| *found == line).count();
            let ok = self
                .finished
                .get(call)
                .is_some_and(|results| results == &[ResultStatus::Ok]);
            let most = usize::from(self.started.contains_key(call));
            if times > most || (ok && times != 1) {
                return Err(format!(
                    "{line} of {call} happened {times} times ({:?})",
                    self.finished.get(call)
                ));
            }
        }
        let lines = log.lines().count();
        let distinct = log.lines().collect::<BTreeSet<_>>().len();
        if lines == distinct {
            Ok(())
        } else {
            Err(format!("{lines} effects, {distinct} of them different"))
        }
    }

    fn count(&self) -> usize {
        self.asked.len()
    }
}

/// How many calls the log has.
pub(crate) fn calls(place: &Scene) -> Result<usize, String> {
    Ok(Calls::of(&records(place)?).count())
}

/// The session's id, from its first record.
pub(crate) fn session(place: &Scene) -> String {
    let first = Reader::open(&place.pod())
        .unwrap()
        .frames()
        .next()
        .unwrap()
        .unwrap();
    serde_json::from_str::<Value>(&first.line).unwrap()["session"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Processes that carry the session's mark.
pub(crate) fn alive(session: &str) -> Vec<u32> {
    let mark = format!("YOI_CALL={session}/");
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let marked = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(mark.as_bytes()))
    };
    pids.filter(marked).collect()
}

/// Processes that stand in the project, whatever they carry.
fn standing(place: &Scene) -> Vec<u32> {
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let project = place.project();
    pids.filter(|pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at == project))
        .collect()
}

fn no_survivor(session: &str, place: &Scene) -> Result<(), String> {
    match [alive(session), standing(place)].concat().as_slice() {
        [] => Ok(()),
        pids => Err(format!("children survived: {pids:?}")),
    }
}

/// An output for a failure's message.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let from = text.ceil_char_boundary(text.len().saturating_sub(600));
        text[from..].to_owned()
    };
    format!(
        "{}\nstdout: {}\nstderr: {}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}
