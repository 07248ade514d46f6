//! `builtin:phase-recorder`: the model says which phase of its work begins and how it ended; `yoi features NAME` shows
//! them. Off until configured.

use crate::plain;
use llm_worker::tool::Touch;
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolResult};
use pod::feature::{
    DurableState, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, StateKey, ToolKey,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tools::{answer, counted, fail};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("phase-recorder");

/// The phases of a session.
pub const PHASES: StateKey<Phases> = StateKey::new("phases", 1);

const RECORD: ToolKey<Phase> = ToolKey::new(
    "record_phase",
    ToolEffect::Idempotent,
    "Say that a phase of your work begins, or how it ended; a name that was used before is updated.",
)
.touching(|_| vec![Touch::Session]);

/// Most phases that are kept.
pub const MAX_PHASES: usize = 64;
/// Most bytes of a phase's name.
pub const MAX_NAME: usize = 64;
/// Most bytes of its detail. All of them, escaped as JSON, stay within what a state may have.
pub const MAX_DETAIL: usize = 300;

/// The state of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Status")]
pub enum PhaseStatus {
    /// The phase has begun.
    Started,
    /// The phase ended with success.
    Done,
    /// The phase ended without success.
    Failed,
    /// The phase was not necessary.
    Skipped,
}

plain::names!(PhaseStatus);

/// A phase of the work, as the model reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct Phase {
    /// The name, such as `build`.
    pub name: String,
    /// The state of the phase.
    #[schemars(description = "")]
    pub status: PhaseStatus,
    /// A remark in one line.
    #[serde(default)]
    pub detail: String,
}

/// The phases that are kept, in the order in which they were first named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phases {
    /// The number of older phases that were removed from the list.
    pub forgotten: u64,
    /// The phases that are kept.
    pub phases: Vec<Phase>,
}

impl Phases {
    fn record(&mut self, phase: Phase) {
        match self
            .phases
            .iter_mut()
            .find(|known| known.name == phase.name)
        {
            Some(known) => *known = phase,
            None => self.phases.push(phase),
        }
        let over = self.phases.len().saturating_sub(MAX_PHASES);
        self.phases.drain(..over);
        self.forgotten += over as u64;
    }
}

/// The feature that adds the tool to record phases of the work.
#[derive(Debug)]
pub struct PhaseRecorder;

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Phase recorder")
        .version(env!("CARGO_PKG_VERSION"))
        .tool(&RECORD)
        .state(&PHASES)
        .instruction(
            "use",
            "Record with record_phase when a phase of longer work begins and how it ended.",
        )
        .build()
}

impl FeatureModule for PhaseRecorder {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            phases: ctx.state(&PHASES)?,
        });
        ctx.tools()
            .implement(&RECORD, &live, Live::record)
            .map(drop)
    }
}

struct Live {
    phases: DurableState<Phases>,
}

impl Live {
    async fn record(self: Arc<Self>, phase: Phase, _: ToolContext) -> ToolResult {
        let fits =
            plain::line("name", &phase.name, MAX_NAME).and_then(|()| match phase.detail.as_str() {
                "" => Ok(()),
                detail => plain::line("detail", detail, MAX_DETAIL),
            });
        fits.map_err(|problem| fail(ErrorKind::FixInput, &problem))?;
        let said = format!("{}: {}", phase.name, phase.status);
        let kept = self.phases.update(|phases| {
            phases.record(phase);
            phases.phases.len()
        });
        let kept = counted(kept.await? as u64, "phase", "phases");
        Ok(answer(&format!("{said}; {kept} recorded"), String::new()))
    }
}
