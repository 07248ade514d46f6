//! `yoi format stats`: the tokens of a pod's results as they are stored, and as the model got them, from its journal.

use crate::cli::FormatStatsArgs;
use crate::commands::person::meant;
use crate::show::out;
use builtins::format;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::{Pods, read_failure};
use pod::record::{Record, ToolFinished};
use pod::session::restore::decode;
use serde::Serialize;
use session_store::{BLOB_BYTES, BlobView, Reader};
use std::collections::BTreeMap;
use tui::count;

/// What is counted of one tool.
#[derive(Default, Serialize)]
struct ToolTokens {
    results: u64,
    /// Results that were shown shorter.
    shortened: u64,
    /// Tokens of these results as they are stored.
    stored: u64,
    /// Tokens of these results as the model got them.
    shown: u64,
}

/// Counts the results of a pod. Reads beside a running pod.
pub(crate) fn run(args: &FormatStatsArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = meant(&pods, args.name.as_deref(), env)?;
    let reader = Reader::open(&pods.dir(&name)).map_err(|e| read_failure(&name, &e))?;
    let blobs = reader.blobs();
    let mut tools = BTreeMap::new();
    let mut calls = BTreeMap::new();
    let mut unread = 0;
    for frame in reader.frames() {
        let frame = frame.map_err(|e| read_failure(&name, &e))?;
        let unfit = |e| Failure::new(Exit::Data, format!("{name}: {e}"));
        match decode(&frame).map_err(unfit)? {
            Record::ToolStarted(started) => drop(calls.insert(started.call, started.name)),
            Record::ToolFinished(finished) => {
                let Some(tool) = calls.remove(&finished.call) else {
                    continue;
                };
                let of: &mut ToolTokens = tools.entry(tool).or_default();
                of.results += 1;
                match stored(&finished, &blobs) {
                    None => {}
                    Some(Err(())) => unread += 1,
                    Some(Ok(text)) => {
                        of.shortened += 1;
                        of.stored += format::tokens(&text);
                        of.shown += format::tokens(&finished.outcome.content);
                    }
                }
            }
            _ => {}
        }
    }
    if args.json {
        out::json(&serde_json::json!({ "pod": name, "tools": tools, "unread": unread }));
        return Ok(Exit::Done);
    }
    for (tool, of) in &tools {
        out::wrapped(&line(tool, of));
    }
    let mut all = ToolTokens::default();
    for of in tools.values() {
        all.results += of.results;
        all.shortened += of.shortened;
        all.stored += of.stored;
        all.shown += of.shown;
    }
    out::wrapped(&line("all tools", &all));
    if unread > 0 {
        out::wrapped(&format!(
            "{} could not be read and are not counted",
            count(unread, "stored result")
        ));
    }
    Ok(Exit::Done)
}

/// The stored text of a result that was shown shorter; an error where it cannot be read.
fn stored(finished: &ToolFinished, blobs: &BlobView) -> Option<Result<String, ()>> {
    let feature = format::ID.to_string();
    let mut by = finished.transforms.iter();
    let output = finished
        .output
        .as_ref()
        .filter(|_| by.any(|note| note.feature == feature && note.after.is_some()))?;
    let bytes = blobs.read(&output.stored.digest, BLOB_BYTES);
    Some(
        bytes
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(drop),
    )
}

/// About one tool; tokens are estimated.
fn line(tool: &str, of: &ToolTokens) -> String {
    let results = count(of.results, "result");
    if of.shortened == 0 {
        return format!("{tool}: {results}, none shortened");
    }
    let saved = of.stored.saturating_sub(of.shown);
    let part = saved.saturating_mul(100) / of.stored.max(1);
    format!(
        "{tool}: {results}, {} shortened: about {} tokens became {}, {part} % fewer",
        of.shortened, of.stored, of.shown
    )
}
