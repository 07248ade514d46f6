//! `builtin:retry`: runs calls again that failed because something could not be reached. Off until configured.
//!
//! Only calls that are safe to repeat: of tools that only read, or that are idempotent. Each repeat is a record of its
//! own, with the call's idempotency key.

use crate::tool_search;
use llm_worker::ErrorKind;
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HookKey,
};
use pod::hook::{Change, ToolRepeat, ToolRepeatView};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("retry");

const REPEAT: HookKey<ToolRepeat> = HookKey::new("retry");

/// The most repeats of one call.
const MAX_TIMES: u32 = 5;
/// The longest first wait.
const MAX_WAIT: u64 = 60_000;
/// Most names of tools.
const MAX_TOOLS: usize = 64;

/// `[features."builtin:retry"]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The tools whose calls are repeated; `*` is any.
    #[schemars(length(max = MAX_TOOLS))]
    pub tools: Vec<String>,
    /// How often one call is repeated; 1 to 5.
    #[schemars(range(min = 1, max = MAX_TIMES))]
    pub times: u32,
    /// The wait before the first repeat, in milliseconds; it doubles. At most 60,000.
    #[schemars(range(max = MAX_WAIT))]
    pub wait_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tools: vec!["*".to_owned()],
            times: 2,
            wait_ms: 1_000,
        }
    }
}

/// The feature that repeats calls.
#[derive(Debug)]
pub struct Retry(Settings);

impl Retry {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let Settings {
            tools,
            times,
            wait_ms,
        } = &settings;
        tool_search::names_a_tool(tools)?;
        match (tools.len(), *times, *wait_ms) {
            (0, ..) => Err("`tools` is empty; expected names of tools, or `*`".to_owned()),
            (many, ..) if many > MAX_TOOLS => {
                Err(format!("`tools` has {many}; expected at most {MAX_TOOLS}"))
            }
            (_, times, _) if !(1..=MAX_TIMES).contains(&times) => {
                Err(format!("`times` must be 1 to 5, not {times}"))
            }
            (.., wait) if wait > MAX_WAIT => {
                Err(format!("`wait_ms` must be at most {MAX_WAIT}, not {wait}"))
            }
            _ => Ok(Self(settings)),
        }
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Repeated calls")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .transform(&REPEAT)
        .build()
}

impl FeatureModule for Retry {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.hooks()
            .transform(&REPEAT, &Arc::new(Live(self.0.clone())), Live::again)
            .map(drop)
    }
}

struct Live(Settings);

impl Live {
    fn again(&self, view: &ToolRepeatView) -> Change<Duration> {
        let Settings {
            tools,
            times,
            wait_ms,
        } = &self.0;
        let passes = matches!(view.error, Some(ErrorKind::Retry | ErrorKind::Unavailable));
        let named = tools
            .iter()
            .any(|tool| tool == "*" || *tool == view.call.tool);
        if !passes || !named || view.tries > *times {
            return Change::Unchanged;
        }
        Change::Replaced(Duration::from_millis(
            wait_ms << view.tries.saturating_sub(1).min(MAX_TIMES),
        ))
    }
}
