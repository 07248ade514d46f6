//! Bash: one shell command, its output streamed to the host.

use crate::answer::{answer, counted, fail, fix, refused};
use crate::shell::Shell;
use authority::{Access, Beyond, ChildExit, ChildResult, HostPattern, Job, SandboxMode};
use llm_worker::tool::{CommandEnd, Escalation, Touch};
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolError, ToolOutput, ToolResult};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The tool's name.
pub const NAME: &str = "Bash";
/// The description for the model.
pub const ABOUT: &str = "Run a shell command in the working directory; output and errors come merged. No input, no network unless allowed; nothing it starts outlives it. Each call is a new shell.";
/// The effect of a repeated call.
pub const EFFECT: ToolEffect = ToolEffect::Effectful;

/// The default timeout of a command, in seconds.
pub const DEFAULT_TIMEOUT_S: u64 = 120;

/// The longest timeout of a command, in seconds. A host with a shorter deadline for calls shortens it.
pub const MAX_TIMEOUT_S: u64 = 3600;

/// The longest command, in bytes: the kernel accepts 128 KiB for one argument, its end mark included.
pub const MAX_COMMAND: usize = 128 * 1024 - 1;

/// The time before the host's deadline at which a command is ended, so that the call still returns a result.
const MARGIN: Duration = Duration::from_secs(5);

/// The bytes at the end of the output that are searched for a refused path.
const LOOKED_AT: usize = 16 * 1024;

/// The longest reason of an escalation, in bytes.
pub const MAX_REASON: usize = 500;

/// The most hosts of an escalation.
pub const MAX_HOSTS: usize = 16;

/// The most changes to files that decide what git runs that a result names.
const NAMED_CHANGES: usize = 10;

/// The arguments.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(from = "Given")]
#[schemars(description = "")]
pub struct Args {
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub timeout_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalate: Option<Escalate>,
}

/// The arguments as a model gives them.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
struct Given {
    command: String,
    // Shown to people. Models know it; words about it would cost each request.
    #[serde(default)]
    #[schemars(with = "String")]
    description: Option<String>,
    /// Seconds, at most 3600.
    #[serde(default = "timeout")]
    timeout_s: u64,
    /// In milliseconds: models that were trained with other tools send it.
    #[serde(default, alias = "timeout_ms")]
    #[schemars(skip)]
    timeout: Option<u64>,
    /// If the sandbox stops the task: ask the person.
    #[serde(default)]
    #[schemars(with = "Escalate")]
    escalate: Option<Escalate>,
}

impl From<Given> for Args {
    fn from(given: Given) -> Self {
        let Given {
            command,
            description,
            timeout_s,
            timeout,
            escalate,
        } = given;
        Self {
            command,
            description,
            timeout_s: timeout.map_or(timeout_s, |ms| ms.div_ceil(1000)),
            escalate,
        }
    }
}

/// How far a command is to go beyond the sandbox, and why, in at most [`MAX_REASON`] bytes.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Escalate {
    pub to: Escalation,
    // With `network`, only these. The note of a refusal names it; words here would cost each request.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "hosts"
    )]
    pub hosts: Vec<String>,
    #[serde(deserialize_with = "reason")]
    pub reason: String,
}

fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let hosts = Vec::<String>::deserialize(from)?;
    if hosts.len() > MAX_HOSTS {
        return Err(D::Error::custom(format!(
            "names {} hosts; at most {MAX_HOSTS} are allowed",
            hosts.len()
        )));
    }
    let is_name = |host: &str| HostPattern::named(host).is_ok_and(|host| !host.names_port());
    match hosts.iter().find(|host| !is_name(host)) {
        Some(_) => Err(D::Error::custom(
            "must be names such as example.org, without ports, addresses and wildcards",
        )),
        None => Ok(hosts),
    }
}

fn reason<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let reason = String::deserialize(from)?;
    match reason.len() {
        _ if reason.trim().is_empty() => Err(D::Error::custom("say why")),
        0..=MAX_REASON => Ok(reason),
        bytes => Err(D::Error::custom(format!(
            "has {bytes} bytes; at most {MAX_REASON} are allowed"
        ))),
    }
}

fn timeout() -> u64 {
    DEFAULT_TIMEOUT_S
}

/// The resources that permission judges.
#[must_use]
pub fn touches(args: &Args) -> Vec<Touch> {
    let escalate = args
        .escalate
        .iter()
        .flat_map(|Escalate { to, hosts, reason }| match to {
            Escalation::Network if !hosts.is_empty() => hosts
                .iter()
                .map(|host| Touch::Connect(host.clone(), reason.clone()))
                .collect(),
            Escalation::Network | Escalation::Unconfined => {
                vec![Touch::Escalate(*to, reason.clone())]
            }
        });
    escalate
        .chain([Touch::Shell(args.command.clone())])
        .collect()
}

/// Runs one call. All output goes to the host; the result has a summary of it.
///
/// # Errors
/// A command that did not exit with 0 is an error, too: `FixInput` for its exit status or a signal, `Exhausted` at the
/// deadline, `Cancelled`. Otherwise the error of the spawner or the host.
pub async fn run(live: Arc<Shell>, args: Args, cx: ToolContext) -> ToolResult {
    let deadline = judge(&args, cx.deadline)?;
    let wants = args.escalate.is_some();
    let mark = live.spawner.git_mark();
    let job = Job {
        program: live.program.clone(),
        args: vec!["-c".into(), args.command.into()],
        cwd: live.workspace.cwd().to_owned(),
        call: cx.call.to_string(),
        deadline,
        input: Vec::new(),
    };
    let mut output = Output {
        cx: &cx,
        tail: Vec::new(),
        refused: None,
    };
    let ran = live
        .spawner
        .run(job, |bytes| output.write(bytes), &cx.cancel)
        .await;
    let Output {
        tail,
        refused: unwritten,
        ..
    } = output;
    // Read in every case: a command that failed may have changed them, too.
    let changed = live.spawner.git_findings(mark);
    let changed: Vec<_> = changed
        .iter()
        .map(|found| found.text(|path| live.workspace.show(path)))
        .collect();
    changed.iter().for_each(|text| cx.host.warn(text));
    if let Some(why) = live.spawner.weaker() {
        cx.host.warn(&format!(
            "commands run without namespaces of their own: {why}; `yoi doctor` says what that means"
        ));
    }
    let ended = match (unwritten, ran) {
        (None, Ok(ended)) => ended,
        (Some(error), _) => return Err(with_changes(error, &changed)),
        (None, Err(error)) => return Err(with_changes(refused(&error), &changed)),
    };
    let confined = live.spawner.mode() != SandboxMode::Off && ended.beyond.is_none();
    let text = if confined {
        authority::shown(&tail)
    } else {
        "".into()
    };
    let network = ended.refused.is_some_and(|refused| refused > 0);
    let mut notes = notes(&ended, cx.host.may_escalate(), &changed);
    let is_written = |path: &Path| {
        live.workspace
            .roots()
            .any(|(root, access)| access == Access::ReadWrite && path.starts_with(root))
    };
    let found = refused_path(&text, |path| {
        let outside = |path: &Path| live.workspace.existing_outside(path);
        PathFacts {
            leads_to: outside(path),
            is_in: path.parent().and_then(outside).is_some(),
            is_hidden: live.spawner.withholds(path),
            is_written: is_written(path),
        }
    });
    let may_read = |path: &Path| live.spawner.reads(path);
    notes.extend(found.as_deref().map(|path| {
        let reach = if may_read(path) { WRITE_REACH } else { REACH };
        format!(
            "[the sandbox refused access to {}; commands can {reach}]",
            authority::escape(path)
        )
    }));
    cx.host.command_ended(CommandEnd {
        exit: match ended.how {
            ChildExit::Exit(status) => Some(status),
            ChildExit::Signal(_) | ChildExit::Deadline | ChildExit::Cancelled => None,
        },
        may_read: found.as_deref().is_some_and(may_read),
        path: found.map(|path| path.to_string_lossy().into_owned()),
        no_network: network,
        hosts: ended.traffic.refused(),
    });
    notes.extend(escalated(wants, ended.beyond.as_ref(), confined));
    notes.extend((!notes.is_empty()).then(String::new));
    let notes = notes.join("\n");
    match summary(&ended, deadline) {
        Ok(output) => Ok(ToolOutput {
            content: notes,
            ..output
        }),
        Err(error) => Err(ToolError {
            content: notes,
            ..error
        }),
    }
}

/// Whether a shell can be given this command.
///
/// # Errors
/// `FixInput` for an empty or too long command, or one with a NUL byte.
pub fn check(command: &str) -> Result<(), ToolError> {
    if command.trim().is_empty() {
        return Err(fix("the command is empty"));
    }
    if command.len() > MAX_COMMAND {
        return Err(fix(format!(
            "the command has more than {MAX_COMMAND} bytes; Write a script and run that"
        )));
    }
    if command.contains('\0') {
        return Err(fix("a command cannot contain a NUL byte"));
    }
    Ok(())
}

/// The timeout of the command, or the error that it may not run.
fn judge(args: &Args, host: Duration) -> Result<Duration, ToolError> {
    check(&args.command)?;
    if args.timeout_s == 0 || args.timeout_s > MAX_TIMEOUT_S {
        return Err(fix(format!("timeout_s must be 1 to {MAX_TIMEOUT_S}")));
    }
    if args
        .escalate
        .as_ref()
        .is_some_and(|wanted| wanted.to != Escalation::Network && !wanted.hosts.is_empty())
    {
        return Err(fix("`hosts` of `escalate` goes with `network`"));
    }
    let host = host
        .checked_sub(MARGIN)
        .filter(|left| !left.is_zero())
        .unwrap_or(host);
    Ok(Duration::from_secs(args.timeout_s).min(host))
}

fn summary(ended: &ChildResult, deadline: Duration) -> ToolResult {
    let took = ended.took.as_secs_f64();
    match ended.how {
        ChildExit::Exit(0) => Ok(answer(&format!("exit 0 in {took:.1} s"), String::new())),
        ChildExit::Exit(status) => Err(fail(
            ErrorKind::FixInput,
            format!("exit {status} in {took:.1} s"),
        )),
        ChildExit::Signal(signal) => Err(fail(
            ErrorKind::FixInput,
            format!("killed by signal {signal} after {took:.1} s"),
        )),
        ChildExit::Deadline => Err(fail(
            ErrorKind::Exhausted,
            format!(
                "stopped at its time limit of {} s",
                deadline.as_secs_f64().round()
            ),
        )),
        ChildExit::Cancelled => Err(fail(
            ErrorKind::Cancelled,
            format!("cancelled after {took:.1} s"),
        )),
    }
}

/// What became of an escalation.
fn escalated(wants: bool, beyond: Option<&Beyond>, confined: bool) -> Option<String> {
    Some(match beyond {
        Some(Beyond::Hosts(hosts)) => {
            let hosts: Vec<_> = hosts.iter().map(HostPattern::to_string).collect();
            format!("[ran in the sandbox, with a way to {}]", hosts.join(", "))
        }
        Some(Beyond::Network) => "[ran in the sandbox, with the network]".to_owned(),
        Some(Beyond::Unconfined) => "[ran outside the sandbox]".to_owned(),
        None if wants && confined => "[`escalate` changed nothing: ran in the sandbox]".to_owned(),
        None if wants => "[`escalate` changed nothing: there is no sandbox]".to_owned(),
        None => return None,
    })
}

/// The notes that this tool adds at the end of the output.
fn notes(ended: &ChildResult, may_escalate: bool, changed: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    // Not for a killed command: the processes that it started are killed with it.
    if ended.leftovers > 0 && matches!(ended.how, ChildExit::Exit(_) | ChildExit::Signal(_)) {
        let left = counted(u64::from(ended.leftovers), "process", "processes");
        notes.push(format!("[ended with the call: {left} that still ran]"));
    }
    if ended.remaining > 0 {
        let left = counted(u64::from(ended.remaining), "process", "processes");
        notes.push(format!(
            "[may still run: at least {left} that it started; they could not be ended, or new ones started faster than they ended]"
        ));
    }
    let help = if may_escalate {
        "; `escalate` asks the person, for all or for `hosts`"
    } else {
        ""
    };
    if let Some(refused) = ended.refused.filter(|refused| *refused > 0) {
        let times = counted(u64::from(refused), "time", "times");
        notes.push(format!(
            "[commands in the sandbox cannot use the network outside of their own: refused {times}{help}]"
        ));
    }
    notes.extend(
        ended
            .traffic
            .refused()
            .map(|text| format!("[{text}{help}]")),
    );
    notes.extend(ended.traffic.passed().map(|text| format!("[{text}]")));
    notes.extend(
        changed
            .iter()
            .take(NAMED_CHANGES)
            .map(|text| format!("[{text}]")),
    );
    if let Some(more) = changed
        .len()
        .checked_sub(NAMED_CHANGES)
        .filter(|more| *more > 0)
    {
        notes.push(format!("[{more} more changes of files that git runs]"));
    }
    notes
}

/// Adds the changes to an error after which no output can be written.
fn with_changes(mut error: ToolError, changed: &[String]) -> ToolError {
    if !changed.is_empty() {
        error.message = format!("{}; {}", error.message, changed.join("; "));
    }
    fail(error.kind, &error.message)
}

/// Writes a child's output to the host.
struct Output<'a> {
    cx: &'a ToolContext,
    tail: Vec<u8>,
    refused: Option<ToolError>,
}

impl Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.cx.host.write_output(bytes) {
            let text = error.message.clone();
            self.refused = Some(error);
            return Err(io::Error::other(text));
        }
        let new = bytes
            .get(bytes.len().saturating_sub(LOOKED_AT)..)
            .unwrap_or(bytes);
        let excess = (self.tail.len() + new.len()).saturating_sub(LOOKED_AT);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend_from_slice(new);
        Ok(())
    }
}

/// What commands can write.
const WRITE_REACH: &str = "write only in the project and in directories added for writing";

/// What commands can read and write.
const REACH: &str = "read only the system, the project and added directories, and write only in the project and in directories added for \
     writing";

/// What git says of the repository of a worktree or a submodule that it cannot read.
const NO_REPOSITORY: &str = "not a git repository";
/// What git says of a repository whose objects are used and are not there.
const NO_ALTERNATE: &str = "unable to normalize alternate object path";

/// Below these, a person's permissions do not suffice either.
const OF_SYSTEM: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/var",
];

/// What the host knows of a path.
struct PathFacts {
    /// Where it leads, if something is there that is outside of the workspace.
    leads_to: Option<PathBuf>,
    /// Whether its directory is there, outside of the workspace.
    is_in: bool,
    /// Whether it is missing for commands only.
    is_hidden: bool,
    /// Whether commands may write it.
    is_written: bool,
}

/// The first path of which the output says that it was refused or is missing, and of which the host knows that the
/// sandbox is the reason.
fn refused_path(output: &str, known: impl Fn(&Path) -> PathFacts) -> Option<PathBuf> {
    output.lines().find_map(|line| {
        let low = line.to_lowercase();
        let has = |signs: &[&str]| signs.iter().any(|sign| low.contains(sign));
        let is_refused = has(&["permission denied", "read-only file system"]);
        let is_repository = has(&[NO_REPOSITORY]);
        if !is_refused && !is_repository && !has(&["no such file", NO_ALTERNATE]) {
            return None;
        }
        let path = line
            .split_whitespace()
            .map(|word| word.trim_matches(|c: char| "'\"`‘’“”:;,()".contains(c)))
            .find(|word| word.starts_with('/') && word.len() > 1)
            .map(Path::new)?;
        let facts = known(path);
        let is_it = match facts.leads_to {
            // Git says so of a directory that is there, too, and names the way to it.
            Some(_) => is_refused || is_repository || facts.is_hidden,
            None => facts.is_hidden || (is_refused && facts.is_in),
        };
        let path = facts.leads_to.unwrap_or_else(|| path.to_owned());
        let is_system = OF_SYSTEM.iter().any(|system| path.starts_with(system));
        (is_it && !facts.is_written && !is_system).then_some(path)
    })
}

#[cfg(test)]
mod tests;
