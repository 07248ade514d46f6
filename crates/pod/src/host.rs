//! Opens a pod and connects its parts. `yoi` supplies the parts; tests supply scripted ones.

mod opening;
mod staged;

pub use opening::{CrashCleanup, Opening, RecoveredSession};
pub use staged::sweep;

use crate::control::{
    Actor, Callbacks, Client, Core, Fatal, HostMode, Outbox, Permission, PodLimits, Preamble,
    RunLimits, SubmitError,
};
use crate::feature::{DiagnosticCode, Drift, FeatureDiagnostic, FeatureRegistry, RegistryReport};
use crate::record::{
    Encoder, Features, HoldCause, HostStarted, Record, SurfaceSet, SurfaceSources, Suspended,
    SystemItem, SystemSource,
};
use crate::session::LostRecords;
use crate::session::kind_of_store;
use crate::session::restore::{RestoreError, Restored, still_running};
use crate::session::view::ContextPolicy;
use llm_worker::history::{Counters, History, HistoryError};
use llm_worker::projection::Surface;
use llm_worker::{ErrorKind, Model};
use session_store::{BlobError, Clock, ReadError};
use std::path::PathBuf;
use std::sync::Arc;
use tracing::{info, warn};

/// Bytes of an install report in the log; a record has at most 1 MiB.
const MAX_REPORT: usize = 896 * 1024;

/// Limit of a cut report on general diagnostics, and on missing required features.
const MAX_REPORTED: usize = 64;

/// The configuration and parts that a program supplies to [`open`] a pod.
pub struct PodConfig {
    pub about: HostStarted,
    /// The parts of the system prompt, which blank lines separate.
    pub system: Vec<SystemText>,
    /// Describes date, directory and git state; called as each turn begins, and sent to the model if the text changed.
    pub environment: Box<dyn Fn() -> String + Send>,
    /// Whether the pod stays when its program has no input for it.
    pub mode: HostMode,
    pub parts: PodDeps,
}

/// A part of the system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemText {
    /// As in [`SystemSource`](crate::record::SystemSource).
    pub source: String,
    pub text: String,
}

impl SystemText {
    /// The host's own part.
    #[must_use]
    pub fn of_host(text: &str) -> Self {
        Self {
            source: SurfaceSources::HOST.to_owned(),
            text: text.to_owned(),
        }
    }
}

/// The parts that a pod is built from: installed features, permission, model, threads, and the channel to its watcher.
pub struct PodDeps {
    pub registry: Arc<FeatureRegistry>,
    pub permission: Arc<Permission>,
    pub model: Arc<dyn Model>,
    pub callbacks: Callbacks,
    pub outbox: Outbox,
    pub limits: RunLimits,
    pub pod_limits: PodLimits,
    pub context_policy: ContextPolicy,
    /// Called at named points; a no-op outside tests.
    pub probe: Arc<dyn Fn(&str) + Send + Sync>,
    pub clock: Clock,
}

/// The reason why a pod was not opened, or ended.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log cannot be folded.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The items of the log do not form a history.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The blobs are not accessible.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// An input did not get into a turn.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The pod could not continue.
    #[error(transparent)]
    Fatal(#[from] Fatal),
}

impl HostError {
    /// The category of the error, which decides the caller's reaction.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => kind_of_store(error.kind()),
            Self::Blob(error) => kind_of_store(error.kind()),
            Self::Submit(error) => error.kind(),
            Self::Restore(RestoreError::Read(error)) => kind_of_store(error.kind()),
            Self::Restore(RestoreError::Body { .. } | RestoreError::Illegal { .. })
            | Self::History(_) => ErrorKind::Corrupt,
            Self::Fatal(fatal) => fatal.kind(),
        }
    }
}

/// The result of opening a session: recovery, losses and waiting inputs. The program reports it to the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenReport {
    pub existed: bool,
    /// Whether the last turn had no end: the process was killed or crashed.
    pub crashed: bool,
    pub cut: u64,
    /// The file that holds the cut bytes.
    pub quarantine: Option<PathBuf>,
    /// Calls that got a result from recovery.
    pub interrupted: u64,
    /// Runs of background tasks that recovery closed.
    pub orphaned: u64,
    /// Records that are lost, in a copy of a damaged session.
    pub lost: Option<LostRecords>,
    /// The reason why child processes of an earlier start may still run.
    pub survivors: Option<String>,
    /// Inputs accepted by an earlier start that no turn has taken; the next turn takes them first.
    pub waiting: u64,
    /// Whether the request's fixed part differs from the recorded one.
    pub new_surface: bool,
    /// The model of the recorded one, if this start has another.
    pub old_model: Option<String>,
    /// Whether the recorded system prompt still applies although the current one differs.
    pub old_system: bool,
    /// What changed in the features since the last start.
    pub drift: Drift,
}

/// Closes open calls and turns after a crash, and builds the pod. Executes nothing.
///
/// # Errors
/// The items do not form a history, or the disk refuses.
pub async fn open(
    opening: Opening,
    start: PodConfig,
) -> Result<(Actor, Client, OpenReport), HostError> {
    let PodConfig {
        about,
        system,
        environment,
        mode,
        parts,
    } = start;
    let limits = parts.limits;
    let drift = opening.drift(parts.registry.report());
    let (
        mut core,
        RecoveredSession {
            recovered,
            mut items,
            closing,
            survivors,
        },
    ) = opening.core(parts);
    core.stays = mode != HostMode::Run;
    core.outbox.folded(recovered.last);
    let open = core.state.open_calls.len();
    let waits = core.state.parked().count();
    let interrupted = (open - waits) as u64;
    let crashed = core.state.turn_open;
    let lost = core.state.lost;
    let orphaned = core.state.open_tasks().count() as u64;
    if !closing.is_empty() {
        // The same fold that `commit` does, for the items alone: they are needed to build the history.
        let mut ahead = Restored {
            state: core.state.clone(),
            ..Restored::default()
        };
        for record in &closing {
            ahead.take(0, 0, record)?;
        }
        items.append(&mut ahead.items);
        core.repair(closing).await?;
    }
    let waiting = core.state.queued.len() as u64;
    let existed = recovered.existed;
    let cut = recovered.cut;
    if crashed || cut > 0 || orphaned > 0 || lost.is_some() || survivors.is_some() {
        let damaged = lost.is_some();
        let survivors = survivors.is_some();
        warn!(
            crashed,
            cut, interrupted, orphaned, damaged, survivors, "recovered the session"
        );
    }
    info!(existed, waiting, "opened the session");

    let prompt = system
        .iter()
        .map(|part| part.text.as_str())
        .collect::<Vec<_>>()
        .join("\n\n");
    let (surface, encoder, new_surface) = surface(&core, &prompt);
    let old_system = surface.system != prompt;
    let recorded = core
        .state
        .surface
        .as_ref()
        .map(|(recorded, _)| &recorded.model);
    let old_model = recorded.filter(|model| **model != surface.model).cloned();
    let counters = Counters {
        calls: core.state.calls,
        requests: core.state.requests,
    };
    let parked = core.state.parked().collect();
    let history = History::restore_parked(
        surface.clone(),
        core.model.dialect(),
        items,
        counters,
        &parked,
    )?;
    let report = Features {
        report: reported(core.registry.report()),
    };
    let mut prelude: Vec<Record> = vec![about.into(), report.into()];
    let generation = surface.generation;
    if new_surface {
        prelude.push(
            SurfaceSet {
                surface,
                encoder,
                sources: sources(&core, &system),
            }
            .into(),
        );
    }
    if let HostMode::Stay {
        missing: Some(reason),
    } = mode
    {
        prelude.push(
            Suspended {
                reason,
                cause: Some(HoldCause::Required),
                budget: None,
                by: None,
            }
            .into(),
        );
    }
    let notes = notes(
        &core,
        generation,
        survivors.as_deref().filter(|_| !crashed),
        &drift,
    );
    let found = OpenReport {
        existed: recovered.existed,
        crashed,
        cut: recovered.cut,
        quarantine: recovered.quarantine,
        interrupted,
        orphaned,
        lost,
        survivors,
        waiting,
        new_surface,
        old_model,
        old_system,
        drift,
    };
    let preamble = Preamble {
        records: prelude,
        notes,
        environment,
    };
    let (actor, client) = Actor::new(core, history, preamble, limits);
    Ok((actor, client, found))
}

/// What the model is told of this start. After a crash the recovery's note reports survivors.
fn notes(core: &Core, generation: u64, survivors: Option<&str>, drift: &Drift) -> Vec<SystemItem> {
    // A start that lacks a required feature does not go on.
    let lost = core
        .registry
        .report()
        .unmet
        .is_empty()
        .then(|| drift.for_model())
        .flatten();
    let texts = survivors.map(still_running).into_iter().chain(lost);
    texts
        .map(|text| SystemItem::Recovery { generation, text })
        .collect()
}

/// The report for the log: whole, or without the features that do not fit, with a diagnostic that says so.
fn reported(report: &RegistryReport) -> serde_json::Value {
    let bytes = |part: &dyn Fn() -> serde_json::Result<String>| part().map_or(0, |text| text.len());
    if bytes(&|| serde_json::to_string(report)) <= MAX_REPORT {
        return serde_json::to_value(report).unwrap_or_default();
    }
    let mut cut = report.clone();
    let features = std::mem::take(&mut cut.features);
    cut.diagnostics.truncate(MAX_REPORTED);
    cut.unmet.truncate(MAX_REPORTED);
    let mut left = MAX_REPORT.saturating_sub(bytes(&|| serde_json::to_string(&cut)));
    let all = features.len();
    for feature in features {
        let Some(rest) = left.checked_sub(bytes(&|| serde_json::to_string(&feature)) + 1) else {
            break;
        };
        left = rest;
        cut.features.push(feature);
    }
    let kept = cut.features.len();
    let words = format!("the log has room for the reports of only {kept} of {all} features");
    cut.diagnostics.push(FeatureDiagnostic::general(
        DiagnosticCode::TooManyFeatures,
        words,
    ));
    serde_json::to_value(cut).unwrap_or_default()
}

/// The sources of a new surface.
fn sources(core: &Core, system: &[SystemText]) -> SurfaceSources {
    let part = |part: &SystemText| SystemSource {
        source: part.source.clone(),
        bytes: part.text.len() as u64,
    };
    let tools = core
        .registry
        .tools()
        .offered()
        .map(|tool| tool.feature.to_string())
        .collect();
    SurfaceSources {
        system: system.iter().map(part).collect(),
        tools,
    }
}

/// The surface for this start: the recorded one if it still applies, else the next generation.
fn surface(core: &Core, system: &str) -> (Surface, Encoder, bool) {
    let dialect = core.model.dialect();
    let encoder = Encoder {
        id: dialect.id().to_owned(),
        version: dialect.version(),
    };
    let thinking = core.model.thinking();
    let today = Surface {
        generation: core.state.surface_generation + 1,
        model: core.model.name().to_owned(),
        system: system.to_owned(),
        tools: core.registry.tools().definitions(),
        max_output: core.model.max_output(),
        effort: thinking.effort,
        thinking: thinking.shown,
        media: core.model.media().to_vec(),
    };
    match &core.state.surface {
        Some((recorded, with))
            if *with == encoder
                && recorded.model == today.model
                && recorded.tools == today.tools
                && recorded.max_output == today.max_output
                && recorded.effort == today.effort
                && recorded.thinking == today.thinking
                && recorded.media == today.media =>
        {
            (recorded.clone(), encoder, false)
        }
        Some(_) | None => (today, encoder, true),
    }
}
