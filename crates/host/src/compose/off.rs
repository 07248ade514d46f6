//! Features that are off, and those of which a start uses nothing.

use crate::config::{Config, Sourced};
use pod::feature::{FeatureDescriptor, FeatureInstallContext, FeatureInstallError, FeatureModule};

/// A feature that is off: it stands in plans, and nothing of it runs.
pub(super) struct Off(pub(super) FeatureDescriptor);

impl FeatureModule for Off {
    fn descriptor(&self) -> FeatureDescriptor {
        self.0.clone()
    }

    fn install(&self, _: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        Err(FeatureInstallError::failed("it is off"))
    }
}

/// Whether a feature only offers tools that this start leaves out.
pub(super) fn is_unused(config: &Config, feature: &FeatureDescriptor) -> bool {
    let Some(Sourced { value: kept, .. }) = &config.only_tools else {
        return false;
    };
    let FeatureDescriptor {
        id,
        declared_tools: tools,
        declared_hooks: hooks,
        declared_background_tasks: background_tasks,
        provides,
        rules,
        ..
    } = feature;
    let is_required = config
        .features
        .get(&id.to_string())
        .is_some_and(|switches| switches.required().is_some());
    let does_more = !(hooks.is_empty()
        && background_tasks.is_empty()
        && provides.is_empty()
        && rules.is_empty());
    !(is_required || does_more || tools.is_empty())
        && tools.iter().all(|tool| !kept.contains(&tool.name))
}
