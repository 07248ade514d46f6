//! `builtin:search`: Glob and Grep.

use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HostCapability, ToolKey,
};
use std::sync::Arc;
use std::time::Duration;
use tools::{glob, grep};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("search");

/// Enough for a search of the largest allowed tree on a cold disk.
const DEADLINE: Duration = Duration::from_secs(120);

const GLOB: ToolKey<glob::Args> = ToolKey::new(glob::NAME, glob::EFFECT, glob::ABOUT)
    .touching(glob::touches)
    .deadline(DEADLINE);
const GREP: ToolKey<grep::Args> = ToolKey::new(grep::NAME, grep::EFFECT, grep::ABOUT)
    .touching(grep::touches)
    .deadline(DEADLINE);

/// The feature that adds the tools to find files and text in the workspace.
#[derive(Debug)]
pub struct SearchFeature(pub tools::Remedies);

impl FeatureModule for SearchFeature {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .display_name("Search")
            .version(env!("CARGO_PKG_VERSION"))
            .request(CapabilityRequest::required(
                HostCapability::READ_WORKSPACE,
                "find files and text",
            ))
            .tool(&GLOB)
            .tool(&GREP)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let workspace = ctx.services().fs(HostCapability::WORKSPACE)?;
        let search = Arc::new(tools::Search::new(workspace).with_remedies(self.0));
        ctx.tools().implement(&GLOB, &search, glob::run)?;
        ctx.tools().implement(&GREP, &search, grep::run)?;
        Ok(())
    }
}
