//! `yoi verify`: every record checked, every request rebuilt.

use crate::cli::NameArgs;
use crate::commands::out::{self, read_failure};
use crate::compose::model::dialect;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::Pods;
use pod::session::replay::{Wrong, verify};
use session_store::{ReadError, Reader, Tail};

/// Checks a pod without changing or locking it.
pub(crate) fn run(args: &NameArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let reader = Reader::open(&pods.dir(&name)).map_err(|e| read_failure(&name, &e))?;
    let mut found = verify(reader.frames(), &reader.blobs(), &dialect);
    // What is behind the last record shown may have been durable too: HEAD is only a hint.
    let behind = if found.wrong.is_none() { reader.tail() } else { Ok(Tail::Clean) };
    let tail = match behind {
        Ok(Tail::Clean) => String::new(),
        Ok(Tail::BeingWritten(bytes)) => format!("{bytes} bytes at the end are being written"),
        Ok(Tail::Unproven(bytes)) => format!("{bytes} bytes at the end were not yet proven durable; they are kept"),
        Ok(Tail::Cut(class, bytes)) => {
            format!("{bytes} bytes at the end are unfinished ({class:?}); the next run cuts them")
        }
        Err(ReadError::Damaged(damage)) => {
            found.wrong = Some(Wrong { seq: damage.seq, what: damage.to_string() });
            String::new()
        }
        Err(error) => return Err(read_failure(&name, &error)),
    };
    if args.json {
        let wrong = found.wrong.as_ref().map(|w| serde_json::json!({ "seq": w.seq, "what": w.what }));
        out::json(&serde_json::json!({
            "pod": name, "ok": found.wrong.is_none(), "records": found.records, "requests": found.requests,
            "bodies": found.bodies, "blobs": found.blobs, "notes": found.notes, "tail": tail, "wrong": wrong,
        }));
    } else {
        for note in &found.notes {
            out::line(note);
        }
        if !tail.is_empty() {
            out::line(&tail);
        }
    }
    match found.wrong {
        None => {
            if !args.json {
                out::line(&format!(
                    "{name}: {} records good, {} of {} requests rebuilt byte for byte, {} blobs good",
                    found.records, found.bodies, found.requests, found.blobs
                ));
            }
            Ok(Exit::Done)
        }
        Some(wrong) => Err(Failure::new(Exit::Data, format!("{name}: record {}: {}", wrong.seq, wrong.what))
            .help(format!("records before {} are good: yoi log {name}", wrong.seq))),
    }
}
