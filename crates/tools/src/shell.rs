//! The live handle of Bash. Does not depend on commands.

use authority::{Spawner, Workspace};
use std::ffi::OsString;

/// The live handle of Bash: runs commands in a workspace.
#[derive(Debug)]
pub struct Shell {
    pub(crate) workspace: Workspace,
    pub(crate) spawner: Spawner,
    pub(crate) program: OsString,
}

impl Shell {
    /// Commands run as `program -c COMMAND` in the working directory of `workspace`. `program` is a POSIX shell, by
    /// path or by a name that is looked up in the children's `PATH`; models expect `bash`.
    #[must_use]
    pub fn new(workspace: Workspace, spawner: Spawner, program: impl Into<OsString>) -> Self {
        Self {
            workspace,
            spawner,
            program: program.into(),
        }
    }
}
