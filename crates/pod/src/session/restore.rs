//! Restores a session from its log. Nothing is executed: open calls get a result that states what is known, the open
//! turn is closed, and one note informs the model.

use super::calls::OpenCall;
use super::fold::{IllegalRecord, SessionState};
use super::jobs;
use super::lost::{LostRecords, lost_result};
use super::tasks::orphaned;
use super::view::project;
use crate::record::{NotificationQueued, Record, Recovery, SystemItem, ToolFinished, TurnFinished};
use llm_worker::effect::Outcome;
use llm_worker::{CallId, Item, ResultStatus, ToolEffect, ToolOutcome};
use session_store::{OwnedFrame, ReadError};
use std::time::{Duration, UNIX_EPOCH};

/// A session folded to its end, with its items. Opening a pod and `yoi log` use it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restored {
    /// The folded state.
    pub state: SessionState,
    /// Every item as the view shows it, oldest first.
    pub items: Vec<Item>,
    /// The newest record's clock, microseconds; 0 for an empty log.
    pub last_time: u64,
    /// When the newest call was started, microseconds.
    pub started_at: Option<u64>,
}

/// The reason why a log cannot be folded.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The log itself is damaged or unreadable.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A frame's body does not fit its kind.
    #[error("record {seq}: the body of a `{kind}` record is invalid: {source}")]
    Body {
        seq: u64,
        kind: String,
        source: serde_json::Error,
    },
    /// A record cannot follow those before it.
    #[error("record {seq}: {source}")]
    Illegal { seq: u64, source: IllegalRecord },
}

/// Decodes one frame.
///
/// # Errors
/// Its body does not fit its kind.
pub fn decode(frame: &OwnedFrame) -> Result<Record, RestoreError> {
    Record::decode(&frame.kind, frame.v, frame.line.as_bytes()).map_err(|source| {
        RestoreError::Body {
            seq: frame.seq,
            kind: frame.kind.clone(),
            source,
        }
    })
}

impl Restored {
    /// Folds frames from the first.
    ///
    /// # Errors
    /// Damage, a body that cannot be read, or a record that does not follow from those before it.
    pub fn from_frames(
        frames: impl Iterator<Item = Result<OwnedFrame, ReadError>>,
    ) -> Result<Self, RestoreError> {
        let mut restored = Self::default();
        for frame in frames {
            let frame = frame?;
            let record = decode(&frame)?;
            restored.take(frame.seq, frame.time, &record)?;
        }
        Ok(restored)
    }

    /// Takes one more record.
    ///
    /// # Errors
    /// The record does not follow from those before it.
    pub fn take(&mut self, seq: u64, time: u64, record: &Record) -> Result<(), RestoreError> {
        let before = self.state.shown.clone();
        let items = self
            .state
            .apply_at(time, record)
            .map_err(|source| RestoreError::Illegal { seq, source })?;
        self.items.extend(items);
        project(record, &before, &self.state, &mut self.items);
        self.last_time = self.last_time.max(time);
        if matches!(record, Record::ToolStarted(_)) {
            self.started_at = Some(time);
        }
        Ok(())
    }
}

/// Facts of recovery that are not in the log: damage at its end, cleaned up processes and files. The host collects
/// them.
#[derive(Debug)]
pub struct RecoveryFacts {
    /// Damage at the end of the log.
    pub class: String,
    pub cut_bytes: u64,
    /// The name of the file that holds the cut bytes.
    pub quarantine: Option<String>,
    /// Child processes that still ran and were killed.
    pub ended_processes: u32,
    /// The reason why some may still run.
    pub survivors: Option<String>,
    /// Temporary files of unfinished changes that were removed.
    pub swept: u64,
    /// Now, microseconds.
    pub now: u64,
}

/// The batch that closes open calls, but not those that wait for a person, the open turn, open runs of background tasks
/// and jobs after a crash; empty if the log ended in good order.
#[must_use]
pub fn closing(restored: &Restored, found: &RecoveryFacts) -> Vec<Record> {
    let state = &restored.state;
    let open_tasks = state.open_tasks().count() as u64;
    let cut_calls = || {
        state
            .open_calls
            .iter()
            .filter(|(_, call)| call.waits_for().is_none())
    };
    let waits = state
        .open_calls
        .values()
        .any(|call| call.waits_for().is_some());
    let orderly =
        !state.turn_open && cut_calls().next().is_none() && state.lost.is_none() && open_tasks == 0;
    let orderly = orderly && state.open_jobs().next().is_none();
    if orderly && found.cut_bytes == 0 && found.ended_processes == 0 && found.survivors.is_none() {
        return Vec::new();
    }
    let down_us = found.now.saturating_sub(restored.last_time);
    let mut batch: Vec<Record> = vec![
        Recovery {
            class: found.class.clone(),
            cut_bytes: found.cut_bytes,
            quarantine: found.quarantine.clone(),
            open_calls: cut_calls().count() as u64,
            open_turn: state.turn_open,
            open_tasks,
            ended_processes: found.ended_processes,
            survivors: found.survivors.clone(),
            down_us,
            swept: found.swept,
            lost: state.lost.map_or(0, |lost| lost.records),
        }
        .into(),
    ];
    let mut note = vec![format!(
        "The host stopped without warning and was down for {}. Nothing was run again.",
        humantime::format_duration(Duration::from_secs(down_us / 1_000_000))
    )];
    for (id, call) in cut_calls() {
        let outcome = if call.records_lost_after_start {
            lost_result()
        } else {
            interrupted(*id, call, restored.started_at)
        };
        note.push(format!("{id} {}: {}", call.name, outcome.summary));
        let transforms = Vec::new();
        batch.push(
            ToolFinished {
                call: *id,
                feature: None,
                outcome,
                output: None,
                ms: 0,
                transforms,
                warnings: Vec::new(),
                command: None,
                answered_by: None,
                data: None,
            }
            .into(),
        );
    }
    batch.extend(
        state
            .open_tasks()
            .map(|(task, open)| orphaned(task, open, found.now).into()),
    );
    batch.extend(
        state
            .open_jobs()
            .map(|job| jobs::ended(job, found.now).into()),
    );
    note.extend(unknown_effects(state));
    if found.cut_bytes > 0 {
        note.push(format!(
            "{} incomplete bytes at the end of the log were moved aside.",
            found.cut_bytes
        ));
    }
    if found.ended_processes > 0 {
        note.push(format!(
            "Child processes that were left running were ended: {}.",
            found.ended_processes
        ));
    }
    note.extend(found.survivors.as_deref().map(still_running));
    note.extend(state.untold.as_ref().map(loss));
    if state.turn_open {
        let generation = state.surface_generation;
        let text = note.join("\n");
        // Nothing may stand between a call and its result, so this note waits for the next request.
        batch.push(if waits {
            waiting_note(state, text)
        } else {
            SystemItem::Recovery { generation, text }.into()
        });
        let outcome = if waits {
            Outcome::Waiting
        } else {
            Outcome::Interrupted
        };
        batch.push(
            TurnFinished {
                turn: state.turns,
                outcome,
                unanswered: None,
                by: None,
                end_gates: false,
            }
            .into(),
        );
    }
    batch
}

/// The note of a recovery, as a notification of the host.
fn waiting_note(state: &SessionState, text: String) -> Record {
    NotificationQueued {
        number: state.notified + 1,
        feature: "host".to_owned(),
        registry_generation: state.surface_generation,
        text,
        wake: false,
        key: None,
        by: None,
    }
    .into()
}

/// Most open runs of background tasks that a note names.
const MAX_NAMED_RUNS: usize = 8;

/// The note to the model about background tasks that may have had effects.
fn unknown_effects(state: &SessionState) -> Option<String> {
    let effectful = state
        .open_tasks()
        .filter(|(_, open)| open.effect == ToolEffect::Effectful);
    let mut runs: Vec<String> = effectful
        .map(|((feature, task), _)| format!("{task} of {feature}"))
        .collect();
    let more = runs.len().saturating_sub(MAX_NAMED_RUNS);
    runs.truncate(MAX_NAMED_RUNS);
    runs.extend((more > 0).then(|| format!("{more} more")));
    (!runs.is_empty()).then(|| {
        format!(
            "Background tasks were interrupted and may have had effects; verify before you rely on them: {}",
            runs.join(", ")
        )
    })
}

/// The note to the model about processes that may still run.
#[must_use]
pub fn still_running(why: &str) -> String {
    format!("Child processes of the earlier run may still run and change files: {why}")
}

/// The note to the model about lost records.
#[must_use]
pub fn loss(lost: &LostRecords) -> String {
    format!(
        "This session was restored from a damaged journal: {lost}. What you were told, did or were asked in them is \
         gone; where a result says `lost`, or something you rely on is not above, look again."
    )
}

/// The recovery result of a call, as in the table of `docs/JOURNAL.md`.
fn interrupted(id: CallId, call: &OpenCall, started_at: Option<u64>) -> ToolOutcome {
    let (summary, content) = match call.started {
        None => ("not executed; safe to retry".to_owned(), String::new()),
        Some(effect @ (ToolEffect::ReadOnly | ToolEffect::Idempotent)) => {
            (cut_off(effect).to_owned(), String::new())
        }
        Some(effect @ ToolEffect::Effectful) => {
            let when = started_at.map_or_else(
                || "at an unknown time".to_owned(),
                |us| format!("at {}", utc(us)),
            );
            let content = format!(
                "{id} {} was started {when} with: {}",
                call.name,
                clip(&call.arguments)
            );
            (cut_off(effect).to_owned(), content)
        }
    };
    ToolOutcome {
        status: ResultStatus::Interrupted,
        summary,
        content,
        attachments: Vec::new(),
    }
}

/// The result of a started call that could not finish.
pub(crate) fn cut_off(effect: ToolEffect) -> &'static str {
    match effect {
        ToolEffect::ReadOnly => "interrupted; safe to run again",
        ToolEffect::Idempotent => "interrupted; repeating is safe",
        ToolEffect::Effectful => "outcome unknown; verify before retrying",
    }
}

/// The longest argument text a recovery note repeats, in bytes.
const MAX_REPEATED_ARGUMENTS: usize = 2048;

fn clip(text: &str) -> &str {
    let end = text.floor_char_boundary(MAX_REPEATED_ARGUMENTS);
    text.get(..end).unwrap_or_default()
}

/// `2026-06-03T12:23:17Z` of a Unix time in microseconds.
#[must_use]
pub fn utc(us: u64) -> String {
    humantime::format_rfc3339_seconds(authority::dated(UNIX_EPOCH + Duration::from_micros(us)))
        .to_string()
}
