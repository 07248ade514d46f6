//! The phases that a pod's model recorded, for people who inspect the pod.

use super::journal::{PodStart, Starts};
use super::page::Page;
use builtins::phase_recorder::{ID, PHASES, PhaseStatus, Phases};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A pod's newest start, and the phases of its session, which outlive starts.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Recorded<'a> {
    #[serde(flatten)]
    pub(super) start: &'a PodStart,
    /// Absent if no phase was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) phases: Option<Phases>,
}

impl<'a> Recorded<'a> {
    pub(super) fn of(start: &'a PodStart, starts: &Starts) -> Self {
        let value = starts
            .states
            .get(&(ID.to_string(), PHASES.name().to_owned()));
        // One that a newer version wrote is no reason to show nothing of the pod.
        Self {
            start,
            phases: value.and_then(|value| Phases::deserialize(&**value).ok()),
        }
    }
}

/// One line a phase, in the order in which they were first named.
pub(super) fn render(Phases { forgotten, phases }: &Phases) -> Page {
    let mut page = Page::default();
    page.line("phases:");
    if *forgotten > 0 {
        page.line(format!("    {forgotten} older ones were forgotten"));
    }
    for phase in phases {
        let mark = match phase.status {
            PhaseStatus::Started => "…",
            PhaseStatus::Done => "✓",
            PhaseStatus::Failed => "✗",
            PhaseStatus::Skipped => "-",
        };
        let detail = if phase.detail.is_empty() {
            String::new()
        } else {
            format!(": {}", phase.detail)
        };
        page.wrapped(
            &format!("    {mark} {:8}", phase.status.to_string()),
            &format!("{}{detail}", phase.name),
        );
    }
    page
}
