//! Bash: one shell command, its output streamed to the host.

use crate::answer::{answer, counted, fail, fix, refused};
use crate::shell::Shell;
use authority::{Access, Beyond, ChildExit, ChildResult, HostPattern, Job, SandboxMode};
use llm_worker::tool::{Escalation, Touch};
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

/// The bytes at the end of the output that are searched for signs of a refused connection.
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
    // Where nothing counts what was refused, the output is searched.
    let is_counted = ended.refused.is_some();
    let network = match ended.refused {
        Some(refused) => refused > 0,
        None => !live.spawner.has_network() && no_network(&text),
    };
    let mut notes = notes(&ended, network, cx.host.may_escalate(), &changed);
    let tests = if is_counted {
        Vec::new()
    } else {
        refused_tests(&text)
    };
    if network && !tests.is_empty() {
        let (named, left) = tests.split_at(tests.len().min(NAMED_TESTS));
        let more = if left.is_empty() {
            String::new()
        } else {
            format!(" and {} more", left.len())
        };
        notes.push(format!(
            "[tests that failed because of that: {}{more}]",
            named.join(", ")
        ));
    }
    let is_written = |path: &Path| {
        live.workspace
            .roots()
            .any(|(root, access)| access == Access::ReadWrite && path.starts_with(root))
    };
    let outside = |path: &Path| live.workspace.existing_outside(path);
    let refused = refused_path(&text, is_written, outside, |path| {
        live.spawner.withholds(path)
    });
    // A command that went on may have printed anything: what is there, and not for commands, is no matter of words.
    let is_there =
        |path: &str| outside(Path::new(path)).is_some() || live.spawner.withholds(Path::new(path));
    let refused = refused.filter(|(path, _)| ended.how != ChildExit::Exit(0) || is_there(path));
    notes.extend(
        refused.map(|(path, reach)| format!("[{REFUSED_PATH}{path}; commands can {reach}]")),
    );
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
fn notes(
    ended: &ChildResult,
    no_network: bool,
    may_escalate: bool,
    changed: &[String],
) -> Vec<String> {
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
    if no_network {
        let reach = match ended.refused {
            Some(refused) => format!(
                " outside of their own: refused {}",
                counted(u64::from(refused), "time", "times")
            ),
            None => ", not even connections within this machine".to_owned(),
        };
        notes.push(format!("[{NO_NETWORK}{reach}{help}]"));
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

/// Messages of programs that occur only if a name or an address cannot be reached.
const UNREACHABLE: &[&str] = &[
    "could not resolve",
    "couldn't resolve",
    "unable to resolve",
    "name resolution",
    "name or service not known",
    "getaddrinfo",
    "couldn't connect",
    "failed to connect",
    "network is unreachable",
    "unable to create socket",
];

/// Messages about a refused system call, which may also concern a file.
const REFUSED: &[&str] = &["operation not permitted", "permission denied", "eperm"];

/// Words that show that a refused system call concerns the network.
const ABOUT_NETWORK: &[&str] = &["socket", "connect", "listen", "bind", "network", "dns"];

/// The largest distance of the two in lines: a traceback names the call some lines before the error.
const NEAR: usize = 12;

/// The beginning of the note about a path that the sandbox refused; the path follows, up to a semicolon.
pub const REFUSED_PATH: &str = "the sandbox refused access to ";

/// What commands can write.
const WRITE_REACH: &str = "write only in the project and in directories added for writing";

/// What commands can read and write.
const REACH: &str = "read only the system, the project and added directories, and write only in the project and in directories added for \
     writing";

/// Words in messages about a change that was refused.
const OF_WRITING: &[&str] = &[
    "touch",
    "creat",
    "writ",
    "remov",
    "delet",
    "mov",
    "renam",
    "read-only file system",
];

/// What git says of the repository of a worktree or a submodule that it cannot read.
const NO_REPOSITORY: &str = "not a git repository";
/// What git says of a repository whose objects are used and are not there.
const NO_ALTERNATE: &str = "unable to normalize alternate object path";

/// The beginning of the note about the network.
pub const NO_NETWORK: &str = "commands in the sandbox cannot use the network";

/// The most failed tests that a note names.
const NAMED_TESTS: usize = 10;

/// Below these, a person's permissions do not suffice either.
const OF_SYSTEM: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/var",
];

/// The tests of Rust whose output says that a socket was refused.
fn refused_tests(output: &str) -> Vec<&str> {
    let (mut names, mut test) = (Vec::new(), None);
    for line in output.lines() {
        let head = line
            .strip_prefix("---- ")
            .and_then(|line| line.strip_suffix(" stdout ----"));
        if line == "failures:" {
            test = None;
        }
        test = head.or(test);
        let low = line.to_lowercase();
        let refused = low.contains("operation not permitted") || low.contains("permissiondenied");
        if let Some(name) = test.filter(|name| refused && !names.contains(name)) {
            names.push(name);
        }
    }
    names
}

/// The first path outside of what commands can write about which the output says that it was refused, and what commands
/// can do, as far as the output tells what this one tried.
/// `outside`: where a path leads, if something is there that is outside of the workspace. `is_hidden`: whether it is missing
/// for commands only.
fn refused_path(
    output: &str,
    is_written: impl Fn(&Path) -> bool,
    outside: impl Fn(&Path) -> Option<PathBuf>,
    is_hidden: impl Fn(&Path) -> bool,
) -> Option<(String, &'static str)> {
    let is_refused = |line: &str| {
        let low = line.to_lowercase();
        ["permission denied", "read-only file system", NO_REPOSITORY]
            .iter()
            .any(|words| low.contains(words))
    };
    let is_missing = |line: &str| {
        let low = line.to_lowercase();
        ["no such file", NO_ALTERNATE]
            .iter()
            .any(|words| low.contains(words))
    };
    let is_known =
        |path: &Path| is_written(path) || OF_SYSTEM.iter().any(|system| path.starts_with(system));
    let paths = output
        .lines()
        .filter(|line| is_refused(line) || is_missing(line))
        .filter_map(|line| {
            let words = line
                .split_whitespace()
                .map(|word| word.trim_matches(|c: char| "'\"`‘’“”:;,()".contains(c)));
            let path = words
                .into_iter()
                .find(|word| word.starts_with('/') && word.len() > 1)?;
            let words = line.replace(path, "").to_lowercase();
            // Git says so of a directory that is there, too, and names the way to it.
            let path = Path::new(path);
            let found = match words.contains(NO_REPOSITORY) {
                true => outside(path)?,
                false if is_missing(line) && !is_hidden(path) => return None,
                false => outside(path).unwrap_or_else(|| path.to_owned()),
            };
            Some((found, OF_WRITING.iter().any(|word| words.contains(word))))
        });
    let (path, writes) = paths.into_iter().find(|(path, _)| !is_known(path))?;
    Some((
        authority::escape(&path),
        if writes { WRITE_REACH } else { REACH },
    ))
}

/// Whether an output reads as if a socket was refused.
fn no_network(output: &str) -> bool {
    let output = output.to_lowercase();
    if UNREACHABLE.iter().any(|sign| output.contains(sign)) {
        return true;
    }
    let has = |line: &str, words: &[&str]| words.iter().any(|word| line.contains(word));
    let lines: Vec<&str> = output.lines().collect();
    let near = |index: usize| {
        lines
            .get(index.saturating_sub(NEAR)..=index)
            .unwrap_or_default()
    };
    let refused = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| has(line, REFUSED));
    refused.into_iter().any(|(index, line)| {
        // A refused file says EACCES; only the seccomp filter's EPERM is looked up beyond its own line.
        has(line, ABOUT_NETWORK)
            || (!line.contains("permission denied")
                && near(index).iter().any(|line| line.contains("socket")))
    })
}

#[cfg(test)]
mod tests;
