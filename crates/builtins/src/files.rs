//! `builtin:files`: Read, List, Write and Edit. Without the grant to write, the last two are not installed.

use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HostCapability, ToolKey,
};
use std::sync::Arc;
use std::time::Duration;
use tools::{edit, list, read, write};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("files");

const WRITES: &[HostCapability] = &[HostCapability::WRITE_WORKSPACE];

const READ: ToolKey<read::Args> =
    ToolKey::new(read::NAME, read::EFFECT, read::ABOUT).touching(read::touches);
/// Totals count every line below a directory.
const LIST: ToolKey<list::Args> = ToolKey::new(list::NAME, list::EFFECT, list::ABOUT)
    .touching(list::touches)
    .deadline(Duration::from_secs(120));
const WRITE: ToolKey<write::Args> = ToolKey::new(write::NAME, write::EFFECT, write::ABOUT)
    .touching(write::touches)
    .needs(WRITES);
const EDIT: ToolKey<edit::Args> = ToolKey::new(edit::NAME, edit::EFFECT, edit::ABOUT)
    .touching(edit::touches)
    .needs(WRITES);

/// The feature that adds the tools to read and change files of the workspace.
#[derive(Debug)]
pub struct FilesFeature(pub tools::Remedies);

impl FeatureModule for FilesFeature {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .display_name("Files")
            .version(env!("CARGO_PKG_VERSION"))
            .request(CapabilityRequest::required(
                HostCapability::READ_WORKSPACE,
                "read and list files",
            ))
            .request(CapabilityRequest::optional(
                HostCapability::WRITE_WORKSPACE,
                "write and edit files",
            ))
            .tool(&READ)
            .tool(&LIST)
            .tool(&WRITE)
            .tool(&EDIT)
            .instruction(
                "paths",
                "Paths are relative to the working directory. Read a file before you change it.",
            )
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let workspace = ctx.services().fs(HostCapability::WORKSPACE)?;
        let search = Arc::new(tools::Search::new(workspace.read_only()).with_remedies(self.0));
        let files = Arc::new(tools::Files::new(workspace).with_remedies(self.0));
        ctx.tools().implement(&READ, &files, read::run)?;
        ctx.tools().implement(&LIST, &search, list::run)?;
        ctx.tools()
            .implement_previewed(&WRITE, &files, write::run, write::preview)?;
        ctx.tools()
            .implement_previewed(&EDIT, &files, edit::run, edit::preview)?;
        Ok(())
    }
}
