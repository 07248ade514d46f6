//! `builtin:jobs`: shell commands that outlive their call. Off until configured.
//!
//! ```text
//!   JobStart ──> the host runs it ──> its end ──> `tell` ──> waking notice, once
//! ```
//!
//! An end is noted as told after its notice is durable. The notice has a key, so that a crash in between does not repeat it.
//! Ends that a stop or a crash of the pod caused are told at the next start. What commands changed of files that git runs
//! has a notice of its own, and counts as told once that is durable.

use crate::shell::PROGRAM;
use authority::{Spawner, Workspace};
use llm_worker::tool::Touch;
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolError, ToolResult};
use pod::feature::author::AlertLevel;
use pod::feature::{
    BackgroundTaskContext, CapabilityRequest, DurableState, FeatureAlertSink, FeatureDescriptor,
    FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule, FeatureNotifySink,
    HostCapability, JobError, JobHandle, MAX_JOB_DEADLINE, MAX_JOBS_OF_FEATURE, NewJob, Restart,
    StateKey, TaskKey, TaskResult, ToolKey,
};
use pod::record::{ChildProcess, JobEndKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tools::{CONTENT_MAX, answer, bash, counted, fail};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("jobs");

/// The tool that starts jobs. Rules about the shell's tool are about its commands, too.
pub const START_TOOL: &str = "JobStart";

/// The state key of the jobs whose end was told.
pub const TOLD: StateKey<BTreeSet<u64>> = StateKey::new("told", 1);

/// The capability to wake the model.
pub const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 2500,
    per_turn: 16,
};

/// The capability to run when a job has ended.
pub const TELLS: HostCapability = HostCapability::background_task("tell");

/// Idempotent by the key of its notices. A failed run is repeated as long as the pod runs: no 16 runs fail within a second.
const TELL: TaskKey = TaskKey::new("tell", ToolEffect::Idempotent)
    .at_start()
    .on_child_end()
    .restart(Restart::OnFailure {
        max: 16,
        within: Duration::from_secs(1),
        backoff: Duration::from_secs(5 * 60),
    });

const START: ToolKey<StartArgs> = ToolKey::new(
    START_TOOL,
    ToolEffect::Effectful,
    "Start a shell command as a job: it goes on after this call, and its end wakes you. Otherwise like Bash.",
)
.touching(|args: &StartArgs| vec![Touch::Shell(args.command.clone())]);
const TAIL: ToolKey<TailArgs> = ToolKey::new(
    "JobTail",
    ToolEffect::ReadOnly,
    "Show the last output of a job, or list the jobs.",
);
const STOP: ToolKey<StopArgs> = ToolKey::new("JobStop", ToolEffect::Idempotent, "Stop a job.")
    .touching(|_| vec![Touch::Session]);

const MAX_HOURS: u64 = MAX_JOB_DEADLINE.as_secs() / 3600;
/// While so many ends were not told, no job starts: only the newest ends of a session are kept.
const MAX_UNTOLD: usize = 32;
/// The default lines of a tail, and of a notice.
const LINES: usize = 50;
const NOTICE_LINES: usize = 20;
/// The most bytes of output in a notice.
const NOTICE_OUTPUT: usize = 1200;
/// The most bytes of a notice about changed files.
const NOTICE_CHANGES: usize = 2000;

/// `[features."builtin:jobs"]`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How many run at once.
    #[schemars(range(min = 1, max = MAX_JOBS_OF_FEATURE))]
    pub max_jobs: usize,
    /// How long one may run.
    #[schemars(range(min = 1, max = MAX_HOURS))]
    pub max_hours: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_jobs: 4,
            max_hours: 24,
        }
    }
}

/// The feature that runs commands beside the turns.
#[derive(Clone, Copy, Debug)]
pub struct Jobs(Settings);

impl Jobs {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let Settings {
            max_jobs,
            max_hours,
        } = settings;
        if !(1..=MAX_JOBS_OF_FEATURE).contains(&max_jobs) {
            return Err(format!(
                "`max_jobs` is {max_jobs}; expected 1 to {MAX_JOBS_OF_FEATURE}"
            ));
        }
        if !(1..=MAX_HOURS).contains(&max_hours) {
            return Err(format!(
                "`max_hours` is {max_hours}; expected 1 to {MAX_HOURS}"
            ));
        }
        Ok(Self(settings))
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Jobs")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .request(CapabilityRequest::required(
            HostCapability::ANY_PROGRAM,
            "run the commands the model writes",
        ))
        .request(CapabilityRequest::required(
            HostCapability::READ_WORKSPACE,
            "run them in the working directory",
        ))
        .request(CapabilityRequest::required(
            NOTIFY,
            "wake the model when a job has ended",
        ))
        .request(CapabilityRequest::optional(
            HostCapability::EmitUserAlert,
            "tell what a job changed for git",
        ))
        .tool(&START)
        .tool(&TAIL)
        .tool(&STOP)
        .background_task(&TELL)
        .state(&TOLD)
        .build()
}

impl FeatureModule for Jobs {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            settings: self.0,
            workspace: ctx.services().fs(HostCapability::WORKSPACE)?,
            jobs: ctx.services().jobs()?,
            spawner: ctx.services().process()?,
            notify: ctx.notifications()?,
            alerts: ctx.alerts().ok(),
            told: ctx.state(&TOLD)?,
        });
        ctx.tools().implement(&START, &live, Live::start)?;
        ctx.tools().implement(&TAIL, &live, Live::tail)?;
        ctx.tools().implement(&STOP, &live, Live::stop)?;
        ctx.background_tasks().run(&TELL, &live, Live::tell)?;
        Ok(())
    }
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct StartArgs {
    /// Shell command.
    command: String,
    /// As Bash has it; shown to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    description: Option<String>,
    /// Minutes until it is killed.
    #[serde(default = "an_hour")]
    timeout_min: u64,
}

fn an_hour() -> u64 {
    60
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct TailArgs {
    /// Its number; all are listed without.
    #[serde(default)]
    job: Option<u64>,
    #[serde(default = "lines")]
    lines: usize,
}

fn lines() -> usize {
    LINES
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct StopArgs {
    job: u64,
}

struct Live {
    settings: Settings,
    workspace: Workspace,
    jobs: JobHandle,
    /// For what commands changed of files that git runs.
    spawner: Spawner,
    notify: FeatureNotifySink,
    /// None if alerts were denied.
    alerts: Option<FeatureAlertSink>,
    told: DurableState<BTreeSet<u64>>,
}

impl Live {
    async fn start(self: Arc<Self>, args: StartArgs, cx: ToolContext) -> ToolResult {
        bash::check(&args.command)?;
        let Settings {
            max_jobs,
            max_hours,
        } = self.settings;
        let most = max_hours * 60;
        if args.timeout_min == 0 || args.timeout_min > most {
            return Err(fail(
                ErrorKind::FixInput,
                format!("timeout_min must be 1 to {most}"),
            ));
        }
        let untold = self.untold().map_err(|error| refused(&error))?.len();
        if untold >= MAX_UNTOLD {
            let ends = counted(untold as u64, "end of a job waits", "ends of jobs wait");
            return Err(fail(
                ErrorKind::Exhausted,
                format!("{ends} to be told; end the turn to read them"),
            ));
        }
        let new = NewJob {
            program: PROGRAM.into(),
            args: vec!["-c".into(), (&args.command).into()],
            cwd: self.workspace.cwd().to_owned(),
            command: args.command,
            deadline: Duration::from_secs(args.timeout_min * 60),
            most: max_jobs,
        };
        let job = self
            .jobs
            .start(new, &cx)
            .await
            .map_err(|error| refused(&error))?;
        Ok(answer(&format!("job {job} started"), String::new()))
    }

    async fn tail(self: Arc<Self>, args: TailArgs, _: ToolContext) -> ToolResult {
        let Some(job) = args.job else {
            let jobs = self.jobs.list().map_err(|error| refused(&error))?;
            let lines: Vec<_> = jobs
                .iter()
                .map(|job| format!("{}: {}", status(job), job.command))
                .collect();
            return Ok(answer(
                &counted(lines.len() as u64, "job", "jobs"),
                last(&lines.join("\n"), LINES).to_owned(),
            ));
        };
        let tail = self
            .jobs
            .tail(job, CONTENT_MAX)
            .map_err(|error| refused(&error))?;
        let summary = format!(
            "{}, {} of output",
            status(&tail.job),
            counted(tail.bytes, "byte", "bytes")
        );
        Ok(answer(
            &summary,
            last(&tail.text, args.lines.max(1)).to_owned(),
        ))
    }

    async fn stop(self: Arc<Self>, args: StopArgs, _: ToolContext) -> ToolResult {
        let job = self
            .jobs
            .stop(args.job)
            .await
            .map_err(|error| refused(&error))?;
        Ok(answer(&status(&job), String::new()))
    }

    async fn tell(self: Arc<Self>, _: BackgroundTaskContext) -> TaskResult {
        for job in self.untold()? {
            self.tell_changes().await?;
            self.notify
                .wake_model_once(&format!("job-{}", job.job), self.notice(&job))
                .await?;
            let known: BTreeSet<u64> = self.jobs.list()?.iter().map(|job| job.job).collect();
            let note = |told: &mut BTreeSet<u64>| {
                told.retain(|old| known.contains(old));
                told.insert(job.job);
            };
            self.told.update(note).await?;
        }
        Ok(())
    }

    /// The jobs whose end was not told yet.
    fn untold(&self) -> Result<Vec<ChildProcess>, JobError> {
        let told = self.told.read();
        let jobs = self.jobs.list()?.into_iter();
        Ok(jobs
            .filter(|job| job.ended.is_some() && !told.contains(&job.job))
            .collect())
    }

    fn notice(&self, job: &ChildProcess) -> String {
        let tail = self.jobs.tail(job.job, NOTICE_OUTPUT).ok();
        let output = tail
            .as_ref()
            .map(|tail| last(&tail.text, NOTICE_LINES).trim_end())
            .filter(|text| !text.is_empty());
        let is_lost = job
            .ended
            .as_ref()
            .is_some_and(|end| end.how == JobEndKind::Lost);
        let output = match output {
            Some(text) => format!("Last output:\n{text}"),
            None if is_lost => "Its output is lost.".to_owned(),
            None => "No output is kept.".to_owned(),
        };
        format!("{}.\nCommand: {}\n{output}", status(job), job.command)
    }

    /// Tells what commands changed of files that git runs, unless that was told.
    async fn tell_changes(&self) -> TaskResult {
        let (found, upto) = self.spawner.git_waiting();
        if found.is_empty() {
            return Ok(());
        }
        let texts: Vec<_> = found
            .iter()
            .map(|found| found.text(|path: &Path| self.workspace.show(path)))
            .collect();
        let all = texts.join("\n");
        self.notify
            .notify_model(
                all.get(..all.floor_char_boundary(NOTICE_CHANGES))
                    .unwrap_or_default(),
            )
            .await?;
        self.spawner.git_told(upto);
        if let Some(alerts) = &self.alerts {
            // A person who does not watch finds them in the journal.
            texts
                .iter()
                .for_each(|text| drop(alerts.alert(AlertLevel::Warning, text)));
        }
        Ok(())
    }
}

/// What a job does, or how it ended, in one line.
fn status(job: &ChildProcess) -> String {
    let number = job.job;
    let Some(end) = &job.ended else {
        return format!("job {number} runs");
    };
    let took = end
        .ms
        .map_or_else(String::new, |ms| format!(" after {} s", ms.div_ceil(1000)));
    format!("job {number} ended{took}: {end}")
}

/// The last lines of a text.
fn last(text: &str, lines: usize) -> &str {
    let ends = text.trim_end_matches('\n').rmatch_indices('\n');
    ends.map(|(at, _)| at + 1)
        .nth(lines.saturating_sub(1))
        .and_then(|at| text.get(at..))
        .unwrap_or(text)
}

fn refused(error: &JobError) -> ToolError {
    fail(error.kind(), error.to_string())
}
