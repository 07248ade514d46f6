//! `builtin:write-policy`: refuses writes outside of the given directories. Off until configured.
//!
//! A path is resolved before it is checked, links and `..` included. A call whose path cannot be resolved is refused. A
//! shell command, and a call of a foreign tool that names no resource, may write anywhere and is refused unless
//! `commands` is set.

use authority::{Location, Workspace};
use llm_worker::ToolEffect;
use llm_worker::tool::Touch;
use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HookKey, HostCapability, Tier,
};
use pod::hook::{PreToolCall, ToolCallView, Verdict};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("write-policy");

const GATE: HookKey<PreToolCall> = HookKey::new("write-policy");

/// Most directories.
const MAX_SCOPES: usize = 64;

/// `[features."builtin:write-policy"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Directories below the project, 1 to 64, without `..`; `.` is all of it.
    #[schemars(length(max = MAX_SCOPES))]
    pub scopes: Vec<PathBuf>,
    /// Whether shell commands are allowed.
    pub commands: bool,
}

/// The feature that refuses writes outside of some directories of the project.
#[derive(Debug)]
pub struct WritePolicy(Settings);

impl WritePolicy {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings) -> Result<Self, String> {
        if settings.scopes.is_empty() || settings.scopes.len() > MAX_SCOPES {
            return Err(format!(
                "`scopes` must name 1 to {MAX_SCOPES} directories, not {}",
                settings.scopes.len()
            ));
        }
        let plain = |path: &Path| {
            path.components()
                .all(|c| matches!(c, Component::CurDir | Component::Normal(_)))
        };
        match settings.scopes.iter().find(|scope| !plain(scope)) {
            Some(scope) => Err(format!(
                "`scopes` must name directories below the project, not {}",
                scope.display()
            )),
            None => Ok(Self(settings)),
        }
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Write policy")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .request(CapabilityRequest::required(
            HostCapability::READ_WORKSPACE,
            "find out where paths lead",
        ))
        .gate(&GATE)
        .build()
}

impl FeatureModule for WritePolicy {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let workspace = ctx.services().fs(HostCapability::WORKSPACE)?;
        let live = Arc::new(Live {
            settings: self.0.clone(),
            workspace,
        });
        ctx.hooks().gate(&GATE, &live, Live::judge).map(drop)
    }
}

struct Live {
    settings: Settings,
    workspace: Workspace,
}

impl Live {
    fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        let silent = call.effect != ToolEffect::ReadOnly
            && call.feature.tier() != Tier::Builtin
            && !call
                .touches
                .iter()
                .any(|touch| matches!(touch, Touch::Write(_) | Touch::Shell(_)));
        let command = call
            .touches
            .iter()
            .any(|touch| matches!(touch, Touch::Shell(_)));
        if (silent || command) && !self.settings.commands {
            return Verdict::deny(format!(
                "rule `commands`: {} can write anywhere; use a tool that names the file it writes",
                call.tool
            ));
        }
        let writes = call.touches.iter().filter_map(|touch| match touch {
            Touch::Write(path) => Some(path),
            Touch::Read(_) | Touch::Shell(_) | Touch::Host(_) | Touch::Session => None,
            Touch::RemoteWrite(_) | Touch::Escalate(..) | Touch::Connect(..) => None,
        });
        match writes.into_iter().find_map(|path| self.outside(path)) {
            Some(reason) => Verdict::deny(reason),
            None => Verdict::allow(),
        }
    }

    /// Why this path may not be written, if it may not.
    fn outside(&self, path: &Path) -> Option<String> {
        let shown = self.workspace.show(path);
        let place = match self.workspace.locate(path) {
            Ok(place) => place,
            Err(error) => {
                return Some(format!(
                    "rule `scopes`: the target of {shown} cannot be determined: {error}"
                ));
            }
        };
        let settled = match &place {
            Location::Inside(at) => at.path(),
            Location::Outside(at) => at.as_path(),
        };
        let below =
            |scope: &PathBuf| settled.starts_with(self.workspace.project().join(plain(scope)));
        if self.settings.scopes.iter().any(below) {
            return None;
        }
        let scopes: Vec<_> = self
            .settings
            .scopes
            .iter()
            .map(|scope| scope.display().to_string())
            .collect();
        Some(format!(
            "rule `scopes`: {shown} leads to {}, which is not below {}; write there instead",
            self.workspace.show(settled),
            scopes.join(", ")
        ))
    }
}

/// Without `.`, which a settled path never has.
fn plain(scope: &Path) -> PathBuf {
    scope
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect()
}
