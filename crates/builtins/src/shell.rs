//! `builtin:shell`: Bash, and ReadOutput for the parts of long outputs that results omit.

use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HostCapability, MAX_DEADLINE, ToolKey,
};
use std::sync::Arc;
use tools::{bash, read_output};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("shell");

/// The shell, looked up in the children's `PATH`.
pub(crate) const PROGRAM: &str = "bash";

/// Each command has its own timeout; the host waits for the longest one.
const BASH: ToolKey<bash::Args> = ToolKey::new(bash::NAME, bash::EFFECT, bash::ABOUT)
    .touching(bash::touches)
    .deadline(MAX_DEADLINE);
const READ_OUTPUT: ToolKey<read_output::Args> =
    ToolKey::new(read_output::NAME, read_output::EFFECT, read_output::ABOUT)
        .touching(read_output::touches);

/// The arguments with which Bash runs a command of a person. Who waits can cancel it, so it has the longest timeout.
#[must_use]
pub fn run_by_person(command: &str) -> String {
    serde_json::json!({ "command": command, "timeout_s": bash::MAX_TIMEOUT_S }).to_string()
}

/// The feature that adds the tools to run shell commands and to page their output.
#[derive(Debug)]
pub struct ShellFeature;

impl FeatureModule for ShellFeature {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(ID)
            .display_name("Shell")
            .version(env!("CARGO_PKG_VERSION"))
            .request(CapabilityRequest::required(
                HostCapability::ANY_PROGRAM,
                "run the commands the model writes",
            ))
            .request(CapabilityRequest::required(
                HostCapability::READ_WORKSPACE,
                "run them in the working directory",
            ))
            .tool(&BASH)
            .tool(&READ_OUTPUT)
            .instruction(
                "use",
                "Use Bash to build, test and use version control, and the other tools for files.",
            )
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let workspace = ctx.services().fs(HostCapability::WORKSPACE)?;
        let spawner = ctx.services().process()?;
        let shell = Arc::new(tools::Shell::new(workspace, spawner, PROGRAM));
        ctx.tools().implement(&BASH, &shell, bash::run)?;
        ctx.tools().implement(&READ_OUTPUT, &shell, |_, args, cx| {
            read_output::run(args, cx)
        })?;
        Ok(())
    }
}
