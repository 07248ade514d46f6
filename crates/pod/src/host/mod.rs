//! Opening a pod and putting its parts together: the same for a headless run and for a pod that stays.

mod again;
mod opening;
mod staged;

pub use opening::{Aftermath, Opening, Rest};
pub use staged::sweep;

use crate::control::{self, Callbacks, Core, Fatal, Limits, Outbox, Permission, Pod, TurnEnd};
use crate::feature::{DiagnosticCode, FeatureDiagnostic, FeatureRegistry, RegistryReport};
use crate::hook::{HookPoint, PromptSubmit, PromptView};
use crate::permission::Remedy;
use crate::record::{
    Encoder, Features, HostStarted, HostStopped, InputId, InputQueued, Output, Record, Stored, SurfaceSet, SystemItem,
};
use crate::session::Lost;
use crate::session::kind_of_store;
use crate::session::restore::{RestoreError, Restored, loss, still_running};
use llm_worker::history::{Counters, History, HistoryError};
use llm_worker::projection::Surface;
use llm_worker::{ErrorKind, Model};
use session_store::{BlobError, ReadError};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// An input up to this many bytes, encoded as JSON, stands in the history whole.
pub const MAX_INLINE_INPUT: usize = 256 * 1024;

/// Of a longer one, this much of its beginning and of its end.
const INPUT_ENDS: usize = 16 * 1024;

/// Most bytes of an install report in the log; a record has at most 1 MiB.
const MAX_REPORT: usize = 896 * 1024;

/// Of a report that is cut: most diagnostics about no feature, and most features that are missed.
const MAX_REPORTED: usize = 64;

/// What a program hands over to open a pod.
pub struct Start {
    /// Journaled as it is.
    pub about: HostStarted,
    /// The system prompt, instructions of features included.
    pub system: String,
    /// Where and when: shown to the model when it changed.
    pub environment: String,
    /// What the pod works with.
    pub parts: Parts,
}

/// What a pod works with.
pub struct Parts {
    /// What features contributed.
    pub registry: Arc<FeatureRegistry>,
    /// What may run.
    pub permission: Arc<Permission>,
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Threads for foreign code.
    pub callbacks: Callbacks,
    /// Who watches.
    pub outbox: Outbox,
    /// What one turn may use.
    pub limits: Limits,
    /// Called at named points; a no-op outside tests.
    pub probe: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Why a pod was not opened.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Its log does not read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its log does not fold.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Its items are no history.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A large input could not be stored.
    #[error(transparent)]
    Input(#[from] BlobError),
    /// The pod could not go on.
    #[error(transparent)]
    Fatal(#[from] Fatal),
}

impl HostError {
    /// What the caller does next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => kind_of_store(error.kind()),
            Self::Input(error) => kind_of_store(error.kind()),
            Self::Restore(RestoreError::Read(error)) => kind_of_store(error.kind()),
            Self::Restore(RestoreError::Body { .. } | RestoreError::Illegal { .. }) | Self::History(_) => {
                ErrorKind::Corrupt
            }
            Self::Fatal(fatal) => fatal.kind(),
        }
    }
}

/// A pod that was opened, and what it has still to say: the records of this start go into the log with the first
/// input, in one flush.
pub struct Host {
    pod: Pod,
    prelude: Vec<Record>,
    notes: Vec<SystemItem>,
}

/// What opening found, for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether the session had records before.
    pub existed: bool,
    /// Whether its last turn was left open.
    pub crashed: bool,
    /// Bytes cut from the log's end.
    pub cut: u64,
    /// Where they are.
    pub quarantine: Option<PathBuf>,
    /// Calls that got a result from recovery.
    pub interrupted: u64,
    /// Records that are lost, in a copy of a damaged session.
    pub lost: Option<Lost>,
    /// Why child processes of before may still run.
    pub survivors: Option<String>,
    /// Inputs that were accepted before and that no turn has taken: the next turn takes them first.
    pub waiting: u64,
    /// Whether the request's fixed part differs from the recorded one.
    pub new_surface: bool,
    /// Whether the recorded system prompt stays in force, and today's differs.
    pub old_system: bool,
}

impl Host {
    /// Closes what a crash left open, and puts the pod together. Executes nothing.
    ///
    /// # Errors
    /// The items are no history, or the disk refuses.
    pub async fn open(opening: Opening, start: Start) -> Result<(Self, Found), HostError> {
        let Start { about, system, environment, parts } = start;
        let (mut core, Rest { recovered, mut items, closing, survivors }) = opening.core(parts);
        let (interrupted, crashed) = (core.state.open_calls.len() as u64, core.state.turn_open);
        let lost = core.state.lost;
        if !closing.is_empty() {
            // The same fold that `commit` does, for the items alone: they are needed to build the history.
            let mut ahead = Restored { state: core.state.clone(), ..Restored::default() };
            for record in &closing {
                ahead.take(0, 0, record)?;
            }
            items.append(&mut ahead.items);
            core.commit(closing).await?;
        }
        let waiting = core.state.queued.len() as u64;

        let (surface, encoder, new_surface) = surface(&core, &system);
        let old_system = surface.system != system;
        let counters = Counters { calls: core.state.calls, requests: core.state.requests };
        let history = History::restore(surface.clone(), core.model.dialect(), items, counters)?;
        let report = Features { report: reported(core.registry.report()) };
        let mut prelude: Vec<Record> = vec![about.into(), report.into()];
        let generation = surface.generation;
        if new_surface {
            prelude.push(SurfaceSet { surface, encoder }.into());
        }
        let untold = core.state.untold.as_ref().map(loss);
        let mut notes: Vec<_> = untold.map(|text| SystemItem::Recovery { generation, text }).into_iter().collect();
        if core.state.environment.as_deref() != Some(environment.as_str()) {
            notes.push(SystemItem::Environment { generation, text: environment });
        }
        if let Some(why) = survivors.as_deref().filter(|_| !crashed) {
            // After a crash the recovery's own note says it.
            notes.push(SystemItem::Recovery { generation, text: still_running(why) });
        }
        let found = Found {
            existed: recovered.existed,
            crashed,
            cut: recovered.cut,
            quarantine: recovered.quarantine,
            interrupted,
            lost,
            survivors,
            waiting,
            new_surface,
            old_system,
        };
        Ok((Self { pod: Pod { core, history }, prelude, notes }, found))
    }

    /// Accepts one input, unless a gate refuses it, and takes everything queued through one turn.
    ///
    /// # Errors
    /// The pod cannot go on; what was committed is on disk.
    pub async fn run(mut self, text: &str, cancel: &CancellationToken) -> Result<(Self, TurnEnd), HostError> {
        let (registry, callbacks) = (self.pod.core.registry.clone(), self.pod.core.callbacks.clone());
        let view = || PromptView { text: text.to_owned() };
        let passed = self.pod.core.attend(registry.hooks().decide::<PromptSubmit>(&callbacks, view)).await?;
        let verdicts = control::verdicts(HookPoint::PromptSubmit, None, &passed).into_iter().map(Record::from);
        if let Some(reason) = control::refusal(&passed) {
            let records = std::mem::take(&mut self.prelude).into_iter().chain(verdicts).collect();
            self.pod.core.commit(records).await?;
            return Ok((self, TurnEnd::refused(reason)));
        }
        let input = self.pod.core.state.inputs + 1;
        let queued = self.input(input, text)?;
        let mut records = std::mem::take(&mut self.prelude);
        records.extend(verdicts);
        // Somebody who was told that it failed says it again: it is the same input.
        if self.pod.core.state.queued.last_key_value().is_none_or(|(_, waiting)| *waiting != queued.text) {
            records.push(queued.into());
        }
        self.pod.core.commit(records).await?;
        let notes = std::mem::take(&mut self.notes);
        let (pod, end) = self.pod.turn(notes, cancel).await?;
        Ok((Self { pod, ..self }, end))
    }

    /// Takes nothing: writes the report of this start down, with the reason, and lets go. The surface on record stays.
    ///
    /// # Errors
    /// The disk refuses.
    pub async fn refuse(mut self, reason: &str) -> Result<(), HostError> {
        let mut records = std::mem::take(&mut self.prelude);
        records.retain(|record| !matches!(record, Record::SurfaceSet(_)));
        self.pod.core.commit(records).await?;
        self.close(reason).await
    }

    /// Lets go of the session in good order.
    ///
    /// # Errors
    /// The journal refused the last record.
    pub async fn close(mut self, reason: &str) -> Result<(), HostError> {
        // What observers make of the last turn rides with the last record.
        let registry = self.pod.core.registry.clone();
        let heard = self.pod.core.attend(registry.hooks().farewell()).await;
        let used = registry.grants_used();
        let last = HostStopped { reason: reason.to_owned() };
        let done = match heard {
            Ok(()) => self.pod.core.commit(vec![used.into(), last.into()]).await,
            Err(fatal) => Err(fatal),
        };
        self.pod.core.desk.close();
        // The lock goes first: a slow watcher keeps nobody else out.
        self.pod.core.store.journal.close();
        self.pod.core.outbox.drain().await;
        self.pod.core.registry.hooks().farewell().await;
        Ok(done?)
    }

    fn input(&self, input: InputId, text: &str) -> Result<InputQueued, HostError> {
        if encoded_len(text) <= MAX_INLINE_INPUT {
            return Ok(InputQueued { input, text: text.to_owned(), whole: None });
        }
        let whole = Output::from(Stored::from(self.pod.core.store.blobs.put(text.as_bytes())?));
        let head = text.get(..text.floor_char_boundary(INPUT_ENDS)).unwrap_or_default();
        let tail = text.get(text.ceil_char_boundary(text.len() - INPUT_ENDS)..).unwrap_or_default();
        let missing = text.len() - head.len() - tail.len();
        let total = text.len();
        let hint = (self.pod.core.permission.policy.terms.remedy)(&Remedy::PageOutput(whole.handle.clone()));
        let text = format!("{head}\n[… {missing} of {total} bytes left out; {hint}]\n{tail}");
        Ok(InputQueued { input, text, whole: Some(whole) })
    }
}

/// The report as the log takes it: whole, or without the features it has no room for, and then it says so.
fn reported(report: &RegistryReport) -> serde_json::Value {
    let bytes = |part: &dyn Fn() -> serde_json::Result<String>| part().map_or(0, |text| text.len());
    if bytes(&|| serde_json::to_string(report)) <= MAX_REPORT {
        return serde_json::to_value(report).unwrap_or_default();
    }
    let mut cut = report.clone();
    let features = std::mem::take(&mut cut.features);
    cut.diagnostics.truncate(MAX_REPORTED);
    cut.unmet.truncate(MAX_REPORTED);
    let (mut left, all) = (MAX_REPORT.saturating_sub(bytes(&|| serde_json::to_string(&cut))), features.len());
    for feature in features {
        let Some(rest) = left.checked_sub(bytes(&|| serde_json::to_string(&feature)) + 1) else { break };
        left = rest;
        cut.features.push(feature);
    }
    let kept = cut.features.len();
    let words = format!("of {all} features, only the reports of the first {kept} have room in the log");
    cut.diagnostics.push(FeatureDiagnostic::general(DiagnosticCode::TooManyFeatures, words));
    serde_json::to_value(cut).unwrap_or_default()
}

/// Bytes of the text as a JSON string: at least its own, at most six times as many.
fn encoded_len(text: &str) -> usize {
    text.bytes().map(|byte| if byte < 0x20 { 6 } else { 1 + usize::from(matches!(byte, b'"' | b'\\')) }).sum()
}

/// The fixed part of this start's requests: the recorded one while it still stands, else the next generation.
fn surface(core: &Core, system: &str) -> (Surface, Encoder, bool) {
    let dialect = core.model.dialect();
    let encoder = Encoder { id: dialect.id().to_owned(), version: dialect.version() };
    let today = Surface {
        generation: core.state.generation + 1,
        model: core.model.name().to_owned(),
        system: system.to_owned(),
        tools: core.registry.tools().definitions(),
        max_output: core.model.max_output(),
    };
    match &core.state.surface {
        Some((recorded, with))
            if *with == encoder
                && recorded.model == today.model
                && recorded.tools == today.tools
                && recorded.max_output == today.max_output =>
        {
            (recorded.clone(), encoder, false)
        }
        Some(_) | None => (today, encoder, true),
    }
}
