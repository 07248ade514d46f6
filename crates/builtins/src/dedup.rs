//! `builtin:dedup`: a result of a tool that only reads, and that the model has already, becomes a reference to it. Off
//! until configured.
//!
//! Results are compared by their content, so a reference is never to something else. After a call with effects the model
//! gets the next result whole, also when it is the same. The memory is state of the session.

use llm_worker::{CallId, ResultStatus, ToolEffect, ToolOutput};
use pod::feature::{
    DurableState, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HookKey, StateKey,
};
use pod::hook::{Change, ToolOutcome, ToolOutcomeView};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("dedup");

const RESULTS: HookKey<ToolOutcome> = HookKey::new("dedup");
const SEEN: StateKey<Seen> = StateKey::new("seen", 1);

/// Results that are remembered; the oldest is forgotten first.
const MAX_SEEN: usize = 256;
/// Hexadecimal digits of a digest: those of results must not collide.
const DIGITS: usize = 40;

/// `[features."builtin:dedup"]`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Shorter contents stay as they are; 1 to 32,768 bytes.
    #[schemars(range(min = 1, max = 32_768))]
    pub min_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { min_bytes: 512 }
    }
}

/// The feature that refers to results that the model has.
#[derive(Debug)]
pub struct Dedup(Settings);

impl Dedup {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings) -> Result<Self, String> {
        match settings.min_bytes {
            1..=32_768 => Ok(Self(settings)),
            bytes => Err(format!("`min_bytes` must be 1 to 32768, not {bytes}")),
        }
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("References to results")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .transform(&RESULTS)
        .state(&SEEN)
        .build()
}

impl FeatureModule for Dedup {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            min_bytes: self.0.min_bytes,
            seen: ctx.state(&SEEN)?,
        });
        ctx.hooks()
            .transform(&RESULTS, &live, Live::finished)
            .map(drop)
    }
}

/// The digest of each result that the model has, by its call.
type Seen = BTreeMap<CallId, String>;

struct Live {
    min_bytes: usize,
    seen: DurableState<Seen>,
}

impl Live {
    fn finished(&self, view: &ToolOutcomeView) -> Change<ToolOutput> {
        let call = &view.call;
        let outcome = &view.outcome;
        if call.effect != ToolEffect::ReadOnly {
            if !self.seen.newest().is_empty() {
                drop(self.seen.update(BTreeMap::clear));
            }
            return Change::Unchanged;
        }
        if outcome.status != ResultStatus::Ok || outcome.content.len() < self.min_bytes {
            return Change::Unchanged;
        }
        let id = call.call;
        let digest = digest(&call.tool, &outcome.content);
        let mut first = None;
        // Not awaited: it is written with the result.
        drop(self.seen.update(|seen| {
            first = seen
                .iter()
                .find(|(_, known)| **known == digest)
                .map(|(first, _)| *first);
            if first.is_none() {
                seen.insert(id, digest);
                while seen.len() > MAX_SEEN {
                    seen.pop_first();
                }
            }
        }));
        let Some(first) = first else {
            return Change::Unchanged;
        };
        let content = format!(
            "[the same {} bytes as the result of call {first}]",
            outcome.content.len()
        );
        match content.len() < outcome.content.len() {
            true => Change::Replaced(ToolOutput {
                summary: outcome.summary.clone(),
                content,
                data: None,
            }),
            false => Change::Unchanged,
        }
    }
}

fn digest(tool: &str, content: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(&(tool.len() as u64).to_le_bytes())
        .update(tool.as_bytes())
        .update(content.as_bytes());
    hasher.finalize().to_hex().chars().take(DIGITS).collect()
}
