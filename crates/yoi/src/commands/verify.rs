//! `yoi verify`: every record checked, every request rebuilt; what is left of a damaged pod copied.

use crate::cli::VerifyArgs;
use crate::commands::person::meant;
use crate::show::out;
use host::compose::model::dialect;
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure, Help};
use host::hosting::session_location::{now, open_failure};
use host::pods::{Pods, check_name, read_failure, seqs};
use pod::session::replay::{Wrong, verify};
use session_store::{BLOB_BYTES, Damage, OpenError, Options, ReadError, Reader, Session, Tail};
use std::sync::Arc;
use tui::count;

/// Checks a pod without changing or locking it.
pub(crate) fn run(args: &VerifyArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = meant(&pods, args.name.as_deref(), env)?;
    if let Some(new) = &args.salvage {
        return salvage(&pods, &name, new, args.json, env);
    }
    let reader = Reader::open(&pods.dir(&name)).map_err(|e| read_failure(&name, &e))?;
    let mut found = verify(|| reader.frames(), &reader.blobs(), &dialect, BLOB_BYTES);
    // What is behind the last record shown may have been durable too: HEAD is only a hint.
    let behind = if found.wrong.is_none() {
        reader.tail()
    } else {
        Ok(Tail::Clean)
    };
    let tail = match behind {
        Ok(Tail::Clean) => String::new(),
        Ok(Tail::BeingWritten(bytes)) => {
            format!("the last {} are still being written", count(bytes, "byte"))
        }
        Ok(Tail::Unproven(bytes)) => format!(
            "the last {} may not be durable yet; they are kept",
            count(bytes, "byte")
        ),
        Ok(Tail::Cut(_, bytes)) => format!(
            "found {} after the last complete record; the next run moves {} to the pod's quarantine directory",
            count(bytes, "byte"),
            if bytes == 1 { "it" } else { "them" }
        ),
        Err(ReadError::Damaged(damage)) => {
            found.wrong = Some(Wrong {
                seq: damage.seq,
                what: damage.to_string(),
            });
            String::new()
        }
        Err(error) => return Err(read_failure(&name, &error)),
    };
    let losses = if found.wrong.is_some() {
        reader.losses().unwrap_or_default()
    } else {
        Vec::new()
    };
    if args.json {
        let ranges: Vec<_> = losses
            .iter()
            .map(|damage| [damage.lost.start(), damage.lost.end()])
            .collect();
        let wrong = found
            .wrong
            .as_ref()
            .map(|w| serde_json::json!({ "seq": w.seq, "what": w.what }));
        out::json(&serde_json::json!({
            "pod": name, "ok": found.wrong.is_none(), "records": found.records, "requests": found.requests,
            "bodies": found.bodies, "blobs": found.blobs, "dropped_blobs": found.dropped,
            "requests_behind_losses": found.beyond, "notes": found.notes, "tail": tail, "wrong": wrong, "lost": ranges,
        }));
    } else {
        for note in &found.notes {
            out::wrapped(note);
        }
        if !tail.is_empty() {
            out::wrapped(&tail);
        }
        tell(&losses);
    }
    match found.wrong {
        None => {
            if !args.json {
                out::wrapped(&format!(
                    "{name}: {}{} intact; {} of {} rebuilt byte for byte",
                    count(found.records, "record"),
                    and_data_files(found.blobs),
                    found.bodies,
                    count(found.requests + found.beyond, "request"),
                ));
            }
            Ok(Exit::Done)
        }
        Some(wrong) => {
            if !losses.is_empty() {
                return Err(lost_records(&name, &losses));
            }
            let record = format!("record {}", wrong.seq);
            // Damage names its record itself.
            let what = if wrong.what.starts_with(&record) {
                wrong.what
            } else {
                format!("{record}: {}", wrong.what)
            };
            Err(
                Failure::new(Exit::Data, format!("{name}: {what}")).help(format!(
                    "`yoi log {name}` shows the records before {}, which are intact",
                    wrong.seq
                )),
            )
        }
    }
}

/// The losses were listed, each with its place.
fn lost_records(name: &str, losses: &[Damage]) -> Failure {
    let length = |damage: &Damage| {
        damage
            .lost
            .end()
            .saturating_sub(*damage.lost.start())
            .saturating_add(1)
    };
    let (records, are) = match losses.iter().map(length).sum() {
        1 => ("1 record".to_owned(), "is"),
        more => (count(more, "record"), "are"),
    };
    Failure::new(
        Exit::Data,
        format!("the pod `{name}` is damaged: {records} {are} lost"),
    )
    .help(Help::Salvage(name.to_owned()))
}

/// Each stretch of lost records, and what is wrong where it begins.
fn tell(losses: &[Damage]) {
    for damage in losses {
        let file = damage
            .segment
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let together = if damage.lost.start() == damage.lost.end() {
            String::new()
        } else {
            format!(
                "; record {} is damaged, and records that yoi wrote together can be read only together",
                damage.seq
            )
        };
        let lost = seqs(&damage.lost);
        let offset = damage.offset;
        let bad = &damage.bad;
        out::wrapped(&format!(
            "lost: {lost} (at byte {offset} of {file}: {bad}){together}"
        ));
    }
}

/// Copies what verifies into a pod that is not there yet.
fn salvage(pods: &Pods, name: &str, new: &str, json: bool, env: &Env) -> Result<Exit, Failure> {
    check_name(new)?;
    // What can be saved does not depend on a configuration that reads.
    let any_file_system = Config::load(env).is_ok_and(|config| config.any_file_system.value);
    let options = Options {
        any_file_system,
        ..Options::new(new, Arc::new(now))
    };
    let done = Session::salvage(&pods.dir(name), &pods.dir(new), options);
    let done = done.map_err(|error| match error {
        OpenError::Exists(_) => Failure::new(Exit::Usage, format!("the pod {new} already exists"))
            .help(format!(
                "choose another name: yoi verify {name} --salvage NEW"
            )),
        error => open_failure(&error, now(), Some(name)),
    })?;
    if json {
        let ranges: Vec<_> = done
            .lost
            .iter()
            .map(|damage| [damage.lost.start(), damage.lost.end()])
            .collect();
        out::json(&serde_json::json!({
            "pod": new, "from": name, "records": done.kept, "lost": ranges, "blobs": done.blobs,
            "damaged_blobs": done.damaged_blobs,
        }));
        return Ok(Exit::Done);
    }
    tell(&done.lost);
    for digest in &done.damaged_blobs {
        out::wrapped(&format!(
            "lost: data file {digest}: its content does not match its digest"
        ));
    }
    let records = count(done.kept, "record");
    let files = and_data_files(done.blobs);
    out::wrapped(&format!(
        "copied {records}{files} of {name} to the new pod {new}; {name} was not changed"
    ));
    Ok(Exit::Done)
}

/// Files beside the log: large outputs and inputs, and the content of files before a change. Nothing if there is none.
fn and_data_files(number: u64) -> String {
    if number == 0 {
        String::new()
    } else {
        format!(" and {}", count(number, "data file"))
    }
}
