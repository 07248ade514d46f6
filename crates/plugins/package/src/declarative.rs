//! A feature of a package as a module of the registry: each call of a tool runs its program, confined as every command, or
//! guests answer its tools and hooks.

mod answered;

use crate::manifest::DeclaredFeature;
use crate::program::ToolProgram;
use authority::{ChildExit, Job, Spawner, Workspace};
use llm_worker::{ErrorKind, ToolContext, ToolError, ToolOutput, ToolResult};
use pod::feature::{
    FeatureDescriptor, FeatureInstallContext, FeatureInstallError, FeatureModule, HostCapability,
    ToolContribution,
};
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The longest time before the host's deadline at which a program is ended, so that the call still returns a result; at most a
/// quarter of the deadline.
const MARGIN: Duration = Duration::from_secs(5);

/// Most output of one call, in bytes; a program that writes more is ended.
const MAX_OUTPUT: usize = 16 << 20;

/// The exit code by which a program says that a later call may succeed, as in `sysexits.h`.
const TEMPORARY: i32 = 75;

/// Says whether the package still is what was granted.
pub(crate) type Unchanged = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A feature of a granted package.
pub struct DeclarativeFeature {
    declared: DeclaredFeature,
    package: PathBuf,
    digest: String,
    unchanged: Unchanged,
}

impl DeclarativeFeature {
    /// A feature whose programs find the package at `package`. `digest` is that of its granted content; `unchanged` is asked
    /// before each call.
    pub fn new(
        declared: DeclaredFeature,
        package: PathBuf,
        digest: String,
        unchanged: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            declared,
            package,
            digest,
            unchanged: Arc::new(unchanged),
        }
    }
}

impl FeatureModule for DeclarativeFeature {
    fn descriptor(&self) -> FeatureDescriptor {
        self.declared.descriptor.clone()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let DeclaredFeature {
            descriptor,
            programs,
            guest,
            ..
        } = &self.declared;
        if let Some(guest) = guest {
            return self.install_guests(guest, ctx);
        }
        if programs.is_empty() {
            return Ok(());
        }
        let workspace = ctx.services().fs(HostCapability::WORKSPACE)?;
        for tool in &descriptor.declared_tools {
            let Some(program) = programs.get(&tool.name) else {
                continue;
            };
            let runner = Arc::new(Runner {
                program: program.clone(),
                spawner: ctx
                    .services()
                    .programs(program.network)?
                    .with_guarded_path(),
                workspace: workspace.clone(),
                package: self.package.clone(),
                unchanged: Arc::clone(&self.unchanged),
            });
            let run = move |arguments, cx| Arc::clone(&runner).run(arguments, cx);
            ctx.tools()
                .register(ToolContribution::of_text(descriptor.id.clone(), tool, run))?;
        }
        Ok(())
    }

    fn source(&self) -> Cow<'static, str> {
        self.package.display().to_string().into()
    }

    fn body(&self) -> Option<String> {
        Some(self.digest.clone())
    }
}

/// What one tool needs for its calls.
struct Runner {
    program: ToolProgram,
    spawner: Spawner,
    workspace: Workspace,
    package: PathBuf,
    unchanged: Unchanged,
}

impl Runner {
    /// Runs the program once: the arguments on its standard input as JSON, and in its words where the manifest says so.
    async fn run(self: Arc<Self>, arguments: Arc<str>, cx: ToolContext) -> ToolResult {
        (self.unchanged)().map_err(|why| ToolError::new(ErrorKind::Denied, why))?;
        let fix = |why: String| ToolError::new(ErrorKind::FixInput, why);
        let deadline = cx.deadline.saturating_sub(MARGIN.min(cx.deadline / 4));
        let job = Job {
            program: self.program.program.clone().into(),
            args: self.program.words(&arguments, &self.package).map_err(fix)?,
            cwd: self.workspace.cwd().to_owned(),
            call: cx.call.to_string(),
            deadline,
            input: arguments.as_bytes().to_vec(),
        };
        let mut unwritten = None;
        let mut written = 0_usize;
        let write = |bytes: &[u8]| {
            written = written.saturating_add(bytes.len());
            let bounded = match written {
                0..=MAX_OUTPUT => cx.host.write_output(bytes),
                _ => Err(ToolError::new(
                    ErrorKind::Exhausted,
                    format!("ended: it wrote over {} MiB", MAX_OUTPUT >> 20),
                )),
            };
            bounded.map_err(|error| {
                let text = error.message.clone();
                unwritten = Some(error);
                io::Error::other(text)
            })
        };
        let ended = self.spawner.run(job, write, &cx.cancel).await;
        match (unwritten, ended) {
            (Some(error), _) => Err(error),
            (None, Ok(ended)) => outcome(ended.how, ended.took, deadline),
            (None, Err(error)) => Err(not_run(&error)),
        }
    }
}

/// Why a program did not run, without what only the person may know of the machine.
fn not_run(error: &authority::Error) -> ToolError {
    use authority::ErrorKind as Kind;
    let kind = match error.kind() {
        Kind::FixInput | Kind::Revoked | Kind::Exhausted | Kind::Cancelled => {
            return tools::refused(error);
        }
        Kind::Denied => ErrorKind::Denied,
        Kind::Unavailable | Kind::Bug => ErrorKind::Unavailable,
    };
    tracing::debug!("the program of a tool did not run: {error}");
    ToolError::new(
        kind,
        "the program of this tool did not run; with YOI_LOG=debug, the log of the host says why",
    )
}

/// What the end of a program means for its call.
fn outcome(how: ChildExit, took: Duration, deadline: Duration) -> ToolResult {
    let took = took.as_secs_f64();
    let (kind, message) = match how {
        ChildExit::Exit(0) => {
            return Ok(ToolOutput {
                summary: format!("exit 0 in {took:.1} s"),
                ..ToolOutput::default()
            });
        }
        ChildExit::Exit(TEMPORARY) => (
            ErrorKind::Unavailable,
            format!("exit {TEMPORARY} in {took:.1} s: try later"),
        ),
        ChildExit::Exit(status) => (ErrorKind::FixInput, format!("exit {status} in {took:.1} s")),
        ChildExit::Signal(signal) => (
            ErrorKind::FixInput,
            format!("ended by signal {signal} after {took:.1} s"),
        ),
        ChildExit::Deadline => (
            ErrorKind::Exhausted,
            format!(
                "stopped at its time limit of {} s",
                deadline.as_secs_f64().round()
            ),
        ),
        ChildExit::Cancelled => (ErrorKind::Cancelled, format!("cancelled after {took:.1} s")),
    };
    Err(ToolError::new(kind, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_kind() {
        let kind = |how| {
            outcome(how, Duration::ZERO, MARGIN)
                .err()
                .map(|error| error.kind)
        };
        for (how, expected) in [
            (ChildExit::Exit(0), None),
            (ChildExit::Exit(1), Some(ErrorKind::FixInput)),
            (ChildExit::Exit(TEMPORARY), Some(ErrorKind::Unavailable)),
            (ChildExit::Signal(9), Some(ErrorKind::FixInput)),
            (ChildExit::Deadline, Some(ErrorKind::Exhausted)),
            (ChildExit::Cancelled, Some(ErrorKind::Cancelled)),
        ] {
            assert_eq!(kind(how), expected, "{how:?}");
        }
    }
}
