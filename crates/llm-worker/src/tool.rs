//! The interface between tools and the host: a definition, arguments that are parsed once, and a run. Contains no tool.

mod arguments;
pub mod data;
mod schema;
mod shape;

#[cfg(test)]
mod tests;

pub(crate) use arguments::is_one_object;
pub use arguments::parse_arguments;
pub use schema::canonical_schema;

use crate::item::{Attachment, CallId};
use async_trait::async_trait;
pub use protocol::journal::CommandEnd;
pub use protocol::tool::{Escalation, ToolDefinition, ToolEffect};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A resource that a prepared call names in its arguments. Permission judges a call by these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads this path, as the model wrote it.
    Read(PathBuf),
    /// Writes this path, as the model wrote it.
    Write(PathBuf),
    /// Runs this shell command.
    Shell(String),
    /// Reads from this host: a name or address, as the model wrote it.
    Host(String),
    /// Changes only the session's own state.
    Session,
    /// Changes something at this host or service, which no sandbox of this machine bounds.
    RemoteWrite(String),
    /// Runs its command beyond the sandbox, for this reason in the words of the model. A person is asked each time.
    Escalate(Escalation, String),
    /// Its command connects to this host, which the sandbox alone would refuse, for this reason in the words of the model.
    Connect(String, String),
}

impl Touch {
    /// The command of [`Touch::Shell`].
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        if let Self::Shell(command) = self {
            Some(command)
        } else {
            None
        }
    }

    /// The path of [`Touch::Write`].
    #[must_use]
    pub fn written(&self) -> Option<&std::path::Path> {
        if let Self::Write(path) = self {
            Some(path)
        } else {
            None
        }
    }
}

/// A tool as the host calls it. Features implement the typed trait of `pod::feature`, which implements this one; a tool
/// whose schema comes from elsewhere implements this directly.
pub trait Tool: Send + Sync + 'static {
    /// The definition for the model; the same on every call.
    fn definition(&self) -> &ToolDefinition;
    /// Parses the model's raw argument text, once. Pure: no I/O.
    ///
    /// # Errors
    /// Not JSON, not an object, an unknown or duplicate field, a wrong type: never guessed at.
    fn prepare(&self, raw: &str) -> Result<Prepared, ArgumentError>;
}

/// A call with parsed arguments, from [`Tool::prepare`]. The host judges it and then runs it, so permission judges
/// exactly the arguments that run.
pub struct Prepared {
    /// The arguments re-serialised with defaults filled in: sorted keys, no spaces.
    pub canonical: Arc<str>,
    /// The resources that the arguments name.
    pub touches: Vec<Touch>,
    preview: Option<Preview>,
    run: Box<dyn FnOnce(ToolContext) -> ToolFuture + Send>,
}

/// Shows what the call would change now; see [`Prepared::preview`].
pub type Preview = Box<dyn FnOnce(&CancellationToken) -> Result<ShownChange, ToolError> + Send>;

/// What a call would change in a file, as a person who is asked about it reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownChange {
    /// Hunks of a unified diff with the numbers of lines.
    pub diff: String,
    /// Lines of the diff that were left out.
    pub more: u64,
    /// The diff shows everything that changes: no line was left out or cut.
    pub whole: bool,
}

/// A tool's running future.
pub type ToolFuture = Pin<Box<dyn Future<Output = ToolResult> + Send>>;

impl Prepared {
    /// Binds parsed arguments to the code that runs them.
    pub fn new(
        canonical: Arc<str>,
        touches: Vec<Touch>,
        run: impl FnOnce(ToolContext) -> ToolFuture + Send + 'static,
    ) -> Self {
        Self {
            canonical,
            touches,
            preview: None,
            run: Box::new(run),
        }
    }

    /// This call with code that shows what it would change. The code reads, and changes nothing.
    #[must_use]
    pub fn previewed(self, preview: Preview) -> Self {
        Self {
            preview: Some(preview),
            ..self
        }
    }

    /// What shows a person what the call would change; `None` for a tool that does not tell.
    pub fn preview(self) -> Option<Preview> {
        self.preview
    }

    /// Starts the call.
    pub fn run(self, cx: ToolContext) -> ToolFuture {
        (self.run)(cx)
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("canonical", &self.canonical)
            .field("touches", &self.touches)
            .finish()
    }
}

/// The error of parsing a call's arguments, for the model to correct, with at most [`ArgumentError::MAX_PROBLEMS`]
/// places named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("arguments do not fit {tool}: {}", problems.join("; "))]
pub struct ArgumentError {
    pub tool: String,
    /// Each a JSON pointer and what was expected there.
    pub problems: Vec<String>,
}

impl ArgumentError {
    /// The number of places that one error names.
    pub const MAX_PROBLEMS: usize = 3;

    /// Always `FixInput`: the model writes other arguments.
    #[must_use]
    pub fn kind(&self) -> crate::ErrorKind {
        crate::ErrorKind::FixInput
    }
}

/// The context of one running call: its cancellation, its deadline and the services of the host.
#[derive(Clone)]
pub struct ToolContext {
    pub call: CallId,
    /// Fires when the call must end: cancelled, revoked or past its deadline.
    pub cancel: CancellationToken,
    /// The total time that the host waits for this call.
    pub deadline: Duration,
    /// The host's side of the call.
    pub host: Arc<dyn CallHost>,
}

/// The services of the host for one running call, in [`ToolContext`]. Implemented by the host and by test rigs.
#[async_trait]
pub trait CallHost: Send + Sync {
    /// Appends to this call's full output, in order. The host keeps the first and last 32 MiB. Blocks while a file is
    /// written. The model reads it as a terminal shows it in the end, with `ToolOutput::content` behind it.
    ///
    /// # Errors
    /// The disk write failed; the call should end.
    fn write_output(&self, bytes: &[u8]) -> Result<(), ToolError>;

    /// Shows the user a warning with the result, also when progress is not shown: for facts that the user must know
    /// even if the model does not mention them. One line of at most 1 KiB, journaled with the result. After 16 warnings
    /// of one call further ones are dropped, and the last one says so.
    fn warn(&self, text: &str) {
        // The default is for a host without a user.
        let _unheard = text;
    }

    /// Tells how the call's command ended, as facts for people; journaled with the result. The last one counts.
    fn command_ended(&self, end: CommandEnd) {
        // The default is for a host without a user.
        let _unheard = end;
    }

    /// Puts an image or a document beside the result, for models that read its type. Blocks while it is stored.
    ///
    /// # Errors
    /// `FixInput` says what the file is and why no model can see it; the disk refused; the host keeps no files.
    fn attach(&self, name: &str, bytes: &[u8]) -> Result<Attachment, ToolError> {
        // The default is for a host without blobs.
        let _unseen = (name, bytes);
        let why = "this host shows no files to models";
        Err(ToolError::new(crate::ErrorKind::Unavailable, why))
    }

    /// Whether a call may ask a person to let its command go beyond the sandbox.
    fn may_escalate(&self) -> bool {
        // The default is for a host without a user.
        false
    }

    /// Reads lines of an earlier full output of this session, by its handle.
    ///
    /// # Errors
    /// An unknown handle names the known ones.
    fn read_output(&self, handle: &str, window: LineRange) -> Result<Excerpt, ToolError>;

    /// Whether the call may write this file where it is about to: where permission judged its path.
    ///
    /// # Errors
    /// The path leads elsewhere by now: do not change the file.
    fn may_land(&self, landing: &Landing) -> Result<(), ToolError> {
        // The default is for a host that judges no paths.
        let _anywhere = landing;
        Ok(())
    }

    /// Makes a file change durable before it happens: keeps the before-image and journals the intent. Call it before
    /// any part of the change is on disk. Returns the number under which the next content is staged: after a crash,
    /// recovery removes the content staged for this file under this number.
    ///
    /// # Errors
    /// The journal refused: do not change the file.
    async fn file_changing(&self, change: FileChange) -> Result<u64, ToolError>;

    /// Makes a move of a directory durable before it happens: journals the intent. Call it before the rename and before
    /// directories are made for it, and with both ends exchanged if the rename fails.
    ///
    /// # Errors
    /// The journal refused: do not move the directory.
    async fn directory_moving(&self, moving: DirectoryMove) -> Result<(), ToolError>;
}

/// A range of lines of a full output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRange {
    /// `lines` lines from line `from` (1-based).
    From { from: u64, lines: u64 },
    /// The last `lines` lines.
    Tail { lines: u64 },
}

/// The lines of a [`LineRange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The text, lossy where the bytes are not UTF-8; at most 32 KiB.
    pub text: String,
    /// First line shown, 1-based.
    pub first: u64,
    pub last: u64,
    /// Lines in the whole output.
    pub total: u64,
}

/// Where a file is written: its path, and the directory that the path leads to; see [`CallHost::may_land`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landing {
    /// Absolute path after resolution.
    pub path: PathBuf,
    /// Device and inode of the deepest existing directory above it.
    pub dir: (u64, u64),
    /// When that directory was created, since 1970; `None` where the file system does not tell.
    pub born: Option<Duration>,
    /// Whether directories are missing between it and the file.
    pub missing: bool,
}

/// One file that is about to change; see [`CallHost::file_changing`].
#[derive(Clone, Debug)]
pub struct FileChange {
    /// Absolute path after resolution.
    pub path: PathBuf,
    /// The content before the change; `None` for a file that does not exist yet.
    pub before: Option<Vec<u8>>,
    /// The file's permission bits before.
    pub mode: Option<u32>,
    /// BLAKE3 of the bytes after, lower-case hex; `None` for a file that is removed.
    pub after: Option<String>,
    /// The directory created for it, the topmost if there are several; absolute.
    pub made: Option<PathBuf>,
}

/// One directory that is about to be renamed with its content; see [`CallHost::directory_moving`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryMove {
    /// The path before; absolute, after resolution.
    pub from: PathBuf,
    /// The path after; absolute, after resolution.
    pub to: PathBuf,
    /// The directory created above `to`, the topmost if there are several; absolute.
    pub made: Option<PathBuf>,
}

/// The result of running a tool.
pub type ToolResult = Result<ToolOutput, ToolError>;

/// The output of a tool that succeeded: one line that is always kept, and a body that may be cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolOutput {
    /// One line, at most 512 bytes.
    pub summary: String,
    /// The body. The host cuts it at its inline limit and keeps the full text by a handle.
    #[serde(default)]
    pub content: String,
    /// A value for programs, at most [`data::MAX_DATA`] bytes as JSON. It is kept with the result; no model gets it by
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

/// The failure of a tool, as the model and the user read it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub kind: crate::ErrorKind,
    /// The failed operation, its object, and the next step.
    pub message: String,
    /// The output before the failure; bounded like any content.
    pub content: String,
}

impl ToolError {
    /// An error without output.
    pub fn new(kind: crate::ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            content: String::new(),
        }
    }
}
