//! What a tool is to the host: a definition, a parse that happens once, and a run. Knows no tool.

mod arguments;
mod schema;

#[cfg(test)]
mod tests;

pub use arguments::parse_arguments;
pub use schema::canonical_schema;

use crate::item::CallId;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What repeating a call would do; decides what recovery says of a call whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Changes nothing.
    ReadOnly,
    /// Doing it twice is the same as once.
    Idempotent,
    /// May change the world each time.
    Effectful,
}

/// The definition of a tool for the model. `schema` is canonical JSON: sorted keys, no spaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// 1 to 64 bytes of `[A-Za-z0-9_-]`.
    pub name: String,
    /// At most 8 KiB.
    pub description: String,
    /// Canonical JSON Schema of the arguments object, at most 64 KiB.
    pub schema: Arc<str>,
    pub effect: ToolEffect,
}

/// A resource that a prepared call names in its arguments: what permission judges.
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
    /// Changes nothing but what this session keeps of itself.
    Session,
}

impl Touch {
    /// The command, if it runs one.
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        if let Self::Shell(command) = self { Some(command) } else { None }
    }

    /// The file, if it writes one.
    #[must_use]
    pub fn written(&self) -> Option<&std::path::Path> {
        if let Self::Write(path) = self { Some(path) } else { None }
    }
}

/// What the host calls. Typed tools come from `pod::feature`; a foreign schema implements this directly.
pub trait Tool: Send + Sync + 'static {
    /// The definition for the model; the same on every call.
    fn definition(&self) -> &ToolDefinition;
    /// Parses the model's raw argument text, once. Pure: no I/O.
    ///
    /// # Errors
    /// Not JSON, not an object, an unknown or duplicate field, a wrong type: never guessed at.
    fn prepare(&self, raw: &str) -> Result<Prepared, ArgumentError>;
}

/// A parsed call. Permission judges exactly the arguments that run.
pub struct Prepared {
    /// The arguments re-serialised with defaults filled in: sorted keys, no spaces.
    pub canonical: Arc<str>,
    /// What the arguments name.
    pub touches: Vec<Touch>,
    run: Box<dyn FnOnce(ToolContext) -> ToolFuture + Send>,
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
        Self { canonical, touches, run: Box::new(run) }
    }

    /// Starts the call.
    pub fn run(self, cx: ToolContext) -> ToolFuture {
        (self.run)(cx)
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("canonical", &self.canonical).field("touches", &self.touches).finish()
    }
}

/// Arguments that do not fit, with at most [`ArgumentError::MAX_PROBLEMS`] places named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("arguments do not fit {tool}: {}", problems.join("; "))]
pub struct ArgumentError {
    pub tool: String,
    /// Each a JSON pointer and what was expected there.
    pub problems: Vec<String>,
}

impl ArgumentError {
    /// How many places one error names.
    pub const MAX_PROBLEMS: usize = 3;

    /// What the caller does next: the model writes other arguments.
    #[must_use]
    pub fn kind(&self) -> crate::ErrorKind {
        crate::ErrorKind::FixInput
    }
}

/// What one running call is given.
#[derive(Clone)]
pub struct ToolContext {
    pub call: CallId,
    /// Fires when the call must end: cancelled, revoked or past its deadline.
    pub cancel: CancellationToken,
    /// How long the host waits for this call in all.
    pub deadline: Duration,
    /// The host's side of the call.
    pub host: Arc<dyn CallHost>,
}

/// What a running call may ask of the host.
#[async_trait]
pub trait CallHost: Send + Sync {
    /// Appends to this call's full output, in order. The host keeps the first and last 32 MiB. Blocks for
    /// the time of a file write. When a tool writes output, its `ToolOutput::content` must be empty.
    ///
    /// # Errors
    /// The disk refused; the call should end.
    fn write_output(&self, bytes: &[u8]) -> Result<(), ToolError>;

    /// Tells the person, with the result and also where they want no progress: for what they must know of a call,
    /// whatever the model says of it. One line of at most 1 KiB, journaled with the result; beyond 16 of one call they
    /// are dropped, and the last one says so.
    fn warn(&self, text: &str) {
        // A host without a person.
        let _unheard = text;
    }

    /// A window of an earlier full output of this session, by its handle.
    ///
    /// # Errors
    /// An unknown handle names the known ones.
    fn read_output(&self, handle: &str, window: LineRange) -> Result<Excerpt, ToolError>;

    /// Makes a file change durable before it happens: keeps the before-image and journals the intent. Call it before
    /// anything of the change is on disk. Answers the number under which the next content is staged: after a crash,
    /// recovery removes what was staged for this file under it.
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

/// One file about to change.
#[derive(Clone, Debug)]
pub struct FileChange {
    /// Absolute path after resolution.
    pub path: PathBuf,
    /// The bytes before; `None` for a file that does not exist yet.
    pub before: Option<Vec<u8>>,
    /// The file's permission bits before.
    pub mode: Option<u32>,
    /// BLAKE3 of the bytes after, lower-case hex; `None` for a file that is removed.
    pub after: Option<String>,
    /// The directory that is made for it, the topmost where there are several; absolute.
    pub made: Option<PathBuf>,
}

/// One directory about to get another name, with all it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryMove {
    /// Where it stands; absolute, after resolution.
    pub from: PathBuf,
    /// Where it will stand; absolute, after resolution.
    pub to: PathBuf,
    /// The directory that is made above that, the topmost where there are several; absolute.
    pub made: Option<PathBuf>,
}

/// What a tool answers.
pub type ToolResult = Result<ToolOutput, ToolError>;

/// A result: one line that always stays, and a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// One line, at most 512 bytes.
    pub summary: String,
    /// The body; the host cuts what is over its inline limit and keeps the whole by handle.
    pub content: String,
}

/// A failure, as the model and the person read it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub kind: crate::ErrorKind,
    /// What failed and where, and the next step.
    pub message: String,
    /// What was produced before it failed; bounded like any content.
    pub content: String,
}

impl ToolError {
    /// An error without output.
    pub fn new(kind: crate::ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), content: String::new() }
    }
}
