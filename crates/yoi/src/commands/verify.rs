//! `yoi verify`: every record checked, every request rebuilt.

use crate::cli::NameArgs;
use crate::commands::out::{self, read_failure};
use crate::compose::model::dialect;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::Pods;
use pod::session::replay::verify;
use session_store::{Reader, Tail};

/// Checks a pod without changing or locking it.
pub(crate) fn run(args: &NameArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let reader = Reader::open(&pods.dir(&name)).map_err(|e| read_failure(&name, &e))?;
    let found = verify(reader.frames(), &reader.blobs(), &dialect);
    let tail = match (&found.wrong, reader.tail()) {
        (Some(_), _) => String::new(),
        (None, Ok(Tail::Clean)) => String::new(),
        (None, Ok(Tail::BeingWritten(bytes))) => format!("{bytes} bytes at the end are being written"),
        (None, Ok(Tail::Unproven(bytes))) => {
            format!("{bytes} bytes at the end were not yet proven durable; they are kept")
        }
        (None, Ok(Tail::Cut(class, bytes))) => {
            format!("{bytes} bytes at the end are unfinished ({class:?}); the next run cuts them")
        }
        (None, Err(error)) => error.to_string(),
    };
    if args.json {
        let wrong = found.wrong.as_ref().map(|w| serde_json::json!({ "seq": w.seq, "what": w.what }));
        out::line(
            &serde_json::json!({
                "pod": name, "ok": found.wrong.is_none(), "records": found.records, "requests": found.requests,
                "bodies": found.bodies, "blobs": found.blobs, "notes": found.notes, "tail": tail, "wrong": wrong,
            })
            .to_string(),
        );
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
