//! `yoi log`: a transcript, or the records as they are.

use crate::cli::LogArgs;
use crate::commands::out::{self, read_failure};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::Pods;
use crate::show::escape::line;
use crate::show::progress::brief;
use llm_worker::{Item, ResultStatus};
use pod::session::record::{Decision, Record, ToolFinished};
use pod::session::restore::{decode, duration, utc};
use session_store::Reader;
use std::collections::BTreeMap;

/// How many lines of an output a transcript shows.
const ABRIDGED: usize = 8;

/// Prints a pod's log. Reads beside a running pod.
pub(crate) fn run(args: &LogArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let reader = Reader::open(&pods.dir(&name)).map_err(|e| read_failure(&name, &e))?;
    let mut transcript = Transcript { full: args.full, inputs: BTreeMap::new() };
    for frame in reader.frames() {
        let frame = frame.map_err(|e| read_failure(&name, &e))?;
        if args.json {
            if frame.seq >= args.from.unwrap_or(0) {
                out::line(&frame.line);
            }
            continue;
        }
        let record = decode(&frame).map_err(|e| Failure::new(Exit::Data, format!("{name}: {e}")))?;
        let text = transcript.text(&record, frame.time);
        if frame.seq >= args.from.unwrap_or(0)
            && let Some(text) = text
        {
            out::line(&format!("{:>6}  {text}", frame.seq));
        }
    }
    Ok(Exit::Done)
}

struct Transcript {
    full: bool,
    inputs: BTreeMap<u64, String>,
}

impl Transcript {
    /// What one record says to a person; most say nothing.
    fn text(&mut self, record: &Record, time: u64) -> Option<String> {
        Some(match record {
            Record::HostStarted(started) => {
                format!("── {} in {} (yoi {}, sandbox {})", utc(time), started.cwd, started.version, started.sandbox)
            }
            Record::SurfaceSet(set) => format!("model {} with {} tools", set.surface.model, set.surface.tools.len()),
            Record::Recovery(recovery) => format!(
                "restored after {} down: {} calls open, {} bytes cut ({})",
                duration(recovery.down_us),
                recovery.open_calls,
                recovery.cut_bytes,
                recovery.class
            ),
            Record::InputQueued(queued) => {
                self.inputs.insert(queued.input, queued.text.clone());
                return None;
            }
            Record::InputConsumed(consumed) => {
                let text = self.inputs.remove(&consumed.input).unwrap_or_default();
                format!("> {}", indent(&text))
            }
            Record::SystemItem(note) => format!("({}) {}", note.source, indent(&note.text)),
            Record::ItemAdded(added) => self.item(&added.item)?,
            Record::VerdictGiven(verdict) if verdict.decision != Decision::Allow => {
                let call = verdict.call.map_or_else(|| "-".to_owned(), |call| call.to_string());
                format!("⊘ {call} {}: {}", verdict.rule, verdict.reason)
            }
            Record::ToolFinished(finished) => self.result(finished),
            Record::FileChanged(change) => format!("  changes {}", change.path),
            Record::Suspended(suspended) => format!("! suspended: {}", suspended.reason),
            Record::Resumed(_) => "! resumed".to_owned(),
            Record::TurnFinished(finished) => {
                let outcome = serde_json::to_value(&finished.outcome).unwrap_or_default();
                format!("── turn {}: {}", finished.turn, outcome.get("outcome").and_then(|o| o.as_str()).unwrap_or("?"))
            }
            Record::HostStopped(_)
            | Record::Features(_)
            | Record::TurnStarted(_)
            | Record::Request(_)
            | Record::Response(_)
            | Record::VerdictGiven(_)
            | Record::ToolStarted(_)
            | Record::Other { .. } => return None,
        })
    }

    fn item(&self, item: &Item) -> Option<String> {
        Some(match item {
            Item::Assistant { text } => indent(text),
            Item::Reasoning { text } if self.full => format!("(thinks) {}", indent(text)),
            Item::ToolCall { id, name, arguments } => {
                let arguments = if self.full { indent(arguments) } else { line(&brief(arguments), 100) };
                format!("• {id} {name} {arguments}")
            }
            Item::Reasoning { .. } | Item::User { .. } | Item::System { .. } | Item::ToolResult { .. } => return None,
        })
    }

    fn result(&self, finished: &ToolFinished) -> String {
        let mark = match finished.outcome.status {
            ResultStatus::Ok => " ",
            ResultStatus::Error => "✗",
            ResultStatus::Refused => "⊘",
            ResultStatus::Cancelled | ResultStatus::Interrupted => "…",
        };
        let mut text = format!("{mark} {} {}", finished.call, finished.outcome.summary);
        let shown = if self.full { usize::MAX } else { ABRIDGED };
        let mut lines = finished.outcome.content.lines();
        for content in lines.by_ref().take(shown) {
            text.push_str("\n          ");
            text.push_str(content);
        }
        let left = lines.count();
        if left > 0 {
            text.push_str(&format!("\n          … {left} more lines (--full)"));
        }
        if let Some(output) = &finished.output {
            text.push_str(&format!("\n          whole output: {} ({} bytes)", output.handle, output.stored.total()));
        }
        text
    }
}

/// Later lines stand below the first.
fn indent(text: &str) -> String {
    text.trim_end().replace('\n', "\n          ")
}
