//! `builtin:files`: Read, List, Write and Edit. Without the grant to write, the last two are left out.

use llm_worker::{ToolContext, ToolResult};
use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HostCapability, ToolKey,
};
use std::sync::Arc;
use std::time::Duration;
use tools::{edit, list, read, write};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("files");

const WRITES: &[HostCapability] = &[HostCapability::WRITE_WORKSPACE];

const READ: ToolKey<read::Args> = ToolKey::new(read::NAME, read::EFFECT, read::ABOUT).touching(read::touches);
/// Totals count every line below a directory.
const LIST: ToolKey<list::Args> =
    ToolKey::new(list::NAME, list::EFFECT, list::ABOUT).touching(list::touches).deadline(Duration::from_secs(120));
const WRITE: ToolKey<write::Args> =
    ToolKey::new(write::NAME, write::EFFECT, write::ABOUT).touching(write::touches).needs(WRITES);
const EDIT: ToolKey<edit::Args> =
    ToolKey::new(edit::NAME, edit::EFFECT, edit::ABOUT).touching(edit::touches).needs(WRITES);

/// Reading and changing files of the workspace.
#[derive(Debug)]
pub struct Files(pub tools::Remedies);

impl FeatureModule for Files {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .display_name("Files")
            .version(env!("CARGO_PKG_VERSION"))
            .request(CapabilityRequest::required(HostCapability::READ_WORKSPACE, "read and list files"))
            .request(CapabilityRequest::optional(HostCapability::WRITE_WORKSPACE, "write and edit files"))
            .tool(&READ)
            .tool(&LIST)
            .tool(&WRITE)
            .tool(&EDIT)
            .instruction("paths", "Paths are relative to the working directory. Read a file before you change it.")
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let workspace = ctx.services().fs(HostCapability::WORKSPACE)?;
        let search = tools::Search::new(workspace.read_only()).with_remedies(self.0);
        let live = Arc::new(Live { files: tools::Files::new(workspace).with_remedies(self.0), search });
        ctx.tools().implement(&READ, &live, Live::read)?;
        ctx.tools().implement(&LIST, &live, Live::list)?;
        ctx.tools().implement(&WRITE, &live, Live::write)?;
        ctx.tools().implement(&EDIT, &live, Live::edit)?;
        Ok(())
    }
}

struct Live {
    files: tools::Files,
    search: tools::Search,
}

impl Live {
    async fn read(self: Arc<Self>, args: read::Args, cx: ToolContext) -> ToolResult {
        read::run(&self.files, args, cx).await
    }

    async fn list(self: Arc<Self>, args: list::Args, cx: ToolContext) -> ToolResult {
        list::run(&self.search, args, cx).await
    }

    async fn write(self: Arc<Self>, args: write::Args, cx: ToolContext) -> ToolResult {
        write::run(&self.files, args, cx).await
    }

    async fn edit(self: Arc<Self>, args: edit::Args, cx: ToolContext) -> ToolResult {
        edit::run(&self.files, args, cx).await
    }
}
