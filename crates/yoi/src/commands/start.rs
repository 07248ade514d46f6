//! `yoi start`: a pod that stays, as a process of its own.
//!
//! This process has the person's terminal, so it reads the configuration and resolves keys and secrets here. The process that
//! hosts the pod gets them on a pipe, and answers with one line once the pod is open.

use crate::cli::{HOST, StartArgs};
use crate::commands::host::{PodThatStays, started_line, suspended};
use crate::commands::host_process::{HostProcess, running};
use crate::commands::input;
use crate::commands::person::only_a_person;
use crate::commands::signals::SignalPlan;
use crate::report::messages;
use crate::show::out;
use host::compose::keys;
use host::compose::model::ResolvedModel;
use host::compose::secrets::ResolvedSecrets;
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure, no_thread};
use host::host_log;
use host::hosting::handshake::{HostReply, Ready, StartMessage};
use host::hosting::messages::PersonMessages;
use host::launch::LaunchOptions;
use host::nearest::nearest;
use host::pods::{Pods, check_name, is_of_run};
use host::points::Points;
use pod::record::{HoldCause, HostStarted};
use pod::session::fold::SessionState;
use pod::session::summary::Summary;
use rustix::process::Signal;
use session_store::{Owner, Reader};
use std::cell::Cell;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How long a pod may take to open before its starter leaves it to itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often, and how long each time, a process is waited for that was asked to end: as long as it has for that, and a
/// little.
const WAIT: Duration = Duration::from_millis(5);
const ENDS: u32 = 5_000;

/// This program, also after its file was replaced.
pub(crate) const SELF: &str = "/proc/self/exe";

/// Starts the pod, or tells that it runs. `placed`: the command line says in which directory.
pub(crate) fn run(
    args: &StartArgs,
    placed: bool,
    env: &Env,
    points: &Points,
) -> Result<Exit, Failure> {
    let started = started(args, placed, env, points)?;
    if let Started::Ready(ready) = &started {
        print(args, ready);
    }
    Ok(told(args, started))
}

/// Starts the pod and prints nothing, unless it runs already.
pub(crate) fn quietly(
    args: &StartArgs,
    placed: bool,
    env: &Env,
    points: &Points,
) -> Result<(), Failure> {
    told(args, started(args, placed, env, points)?);
    Ok(())
}

/// Tells that a pod was not started, and why.
fn told(args: &StartArgs, started: Started) -> Exit {
    let StartArgs { name, json, .. } = args;
    match started {
        Started::Ended(exit) => return exit,
        Started::Ready(_) => {}
        Started::Suspended { pid, missing } => out::wrapped(&suspended(name, pid, &missing)),
        Started::Running { pid, held } if *json => out::json(&serde_json::json!({
            "pod": name, "state": if held.is_some() { "held" } else { "running" }, "started": false,
            "pid": pid, "held": held,
        })),
        Started::Running { pid, held: _ } => out::wrapped(&is_running(name, pid)),
    }
    Exit::Done
}

fn is_running(name: &str, pid: u32) -> String {
    format!("{name} is already running (process {pid})")
}

/// The directory of a pod that does not run, as its last start recorded it.
pub(crate) fn stopped_in(dir: &Path) -> Option<PathBuf> {
    let is_stopped = running(dir).is_none();
    directory_of(dir).filter(|_| is_stopped)
}

/// The directory of a pod, as its last start recorded it.
pub(super) fn directory_of(dir: &Path) -> Option<PathBuf> {
    recorded(dir).started.map(|started| started.cwd.into())
}

/// What became of a start.
pub(crate) enum Started {
    Ready(Ready),
    /// It runs already, as it was; why it is held, if it is.
    Running {
        pid: u32,
        held: Option<String>,
    },
    /// It runs already and lacks something, as before.
    Suspended {
        pid: u32,
        missing: String,
    },
    /// It ran in this process.
    Ended(Exit),
}

/// Starts the pod; prints what a person who starts it is told on the way, unless `args` says to be quiet, and no result.
pub(crate) fn started(
    args: &StartArgs,
    placed: bool,
    env: &Env,
    points: &Points,
) -> Result<Started, Failure> {
    check_name(&args.name)?;
    only_a_person("start a pod")?;
    authority::seal_inherited(&ambient::claim());
    let prompt = input::optional(args.prompt.as_ref(), env)?;
    let dir = Pods::of(env)?.dir(&args.name);
    let flags = launch(args, env)?;
    let owner = running(&dir);
    let last = recorded(&dir);
    // It lacks something, and does nothing until it is started with that.
    let is_suspended = last
        .held
        .as_ref()
        .is_some_and(|hold| hold.cause == HoldCause::Required);
    if let Some(owner) = owner.as_ref().filter(|_| !is_suspended) {
        return already(args, &flags, prompt.is_some(), owner, &last);
    }
    let messages = messages(args.quiet);
    let Start { launch, env } =
        Start::new(args, flags.clone(), placed, env, last.started, messages)?;
    let config = launch.over(Config::load(&env)?, &env)?;
    let model = ResolvedModel::of(&ambient::claim(), &config, &env);
    let secrets = ResolvedSecrets::of(&ambient::claim(), &config, &env)?;
    if let Some(owner) = owner {
        if let Some(missing) = model.key.missing() {
            let pid = owner.pid;
            return Ok(Started::Suspended { pid, missing });
        }
        replace(&args.name, &owner, &dir)?;
    }
    tell_if_new(&args.name, &Pods::of(&env)?, messages)?;
    let name = args.name.clone();
    let quiet = args.quiet;
    if args.foreground {
        let plan = if env.stdin_terminal {
            SignalPlan::Terminal
        } else {
            SignalPlan::Service
        };
        let log_wanted = host_log::Wanted::of(&env)?.or_warnings();
        let ready = Cell::new(false);
        return PodThatStays {
            name: &name,
            launch,
            config,
            model,
            secrets,
            prompt,
            quiet,
            plan,
            log_wanted,
            ready: &ready,
        }
        .run(&env, points)
        .map(Started::Ended);
    }
    host_log::Wanted::of(&env)?;
    let child = spawn(&config, &env)?;
    let pid = child.id();
    let cwd = env.cwd.clone();
    let launch = launch.message();
    let message = StartMessage {
        name,
        cwd,
        launch,
        model,
        secrets,
        prompt,
        quiet,
    };
    match ready(child, &message) {
        Ok(ready) => Ok(Started::Ready(ready)),
        Err(failure) if failure.exit == Exit::Busy => {
            // Another start was faster. The process of this one may be the owner, too: it only takes long.
            let owner = running(&dir)
                .filter(|owner| owner.pid != pid)
                .ok_or(failure)?;
            let last = recorded(&dir);
            already(args, &flags, message.prompt.is_some(), &owner, &last)
        }
        Err(failure) => Err(failure),
    }
}

/// What the command line says, with its agent.
fn launch(args: &StartArgs, env: &Env) -> Result<LaunchOptions, Failure> {
    let plugin_dirs = args.options.plugin_dir.iter().map(Path::new);
    let agent = args.agent.load(plugin_dirs, env)?;
    Ok(args.options.launch().with_agent(agent))
}

fn tell_if_new(name: &str, pods: &Pods, messages: PersonMessages) -> Result<(), Failure> {
    if !pods.dir(name).exists() {
        messages.say(&new_pod(name, &pods.names()?));
    }
    Ok(())
}

/// What a person is told who may have meant a pod that there is.
fn new_pod(name: &str, others: &[String]) -> String {
    let named: Vec<&str> = others
        .iter()
        .map(String::as_str)
        .filter(|other| !is_of_run(other))
        .collect();
    let meant = nearest(name, &named).map_or_else(String::new, |other| {
        format!("; if you meant {other}: `yoi stop {name}`, `yoi rm {name}`, `yoi start {other}`")
    });
    format!("{name} is a new pod{meant}")
}

/// Where and how a pod starts.
struct Start {
    launch: LaunchOptions,
    env: Env,
}

impl Start {
    /// As the pod was started before, if it was.
    fn new(
        args: &StartArgs,
        flags: LaunchOptions,
        placed: bool,
        env: &Env,
        started: Option<HostStarted>,
        messages: PersonMessages,
    ) -> Result<Self, Failure> {
        let name = &args.name;
        let Some(started) = started else {
            return Ok(Self {
                launch: flags,
                env: env.clone(),
            });
        };
        if started.launch.is_none() {
            messages.say(&format!(
                "{name} was last started by an older version of yoi, which recorded no options: the current configuration is used"
            ));
        }
        let env = if placed {
            env.clone()
        } else {
            Env::of_process(Some(Path::new(&started.cwd)), env.added.clone(), env.words).map_err(|failure| {
                failure
                    .help(format!("move the directory of {name} back, or choose another one: yoi -C DIR start {name}"))
            })?
        };
        let launch = flags.after(&started, &env)?;
        let launch = launch.with_agent_of(&started, name, &env)?;
        if let Some(recorded) = launch.recorded() {
            messages.say(&format!(
                "{name} uses the options of its last start: {recorded}; options on the command line override them"
            ));
        }
        Ok(Self { launch, env })
    }
}

/// The state of a pod, as far as its journal can be read; what is wrong with it is told when the pod is opened.
fn recorded(dir: &Path) -> SessionState {
    let summary = Reader::open(dir)
        .ok()
        .and_then(|reader| Summary::read(&reader, || {}).ok());
    summary.unwrap_or_default().state
}

/// Ends a pod that waits for what is here now.
fn replace(name: &str, owner: &Owner, dir: &Path) -> Result<(), Failure> {
    if let Some(process) = HostProcess::of(owner, dir) {
        process.signal(Signal::TERM);
    }
    for _ in 0..ENDS {
        if running(dir).is_none() {
            return Ok(());
        }
        thread::sleep(WAIT);
    }
    Err(Failure::new(
        Exit::Busy,
        format!("{name} is held, and its process {} does not end", owner.pid),
    )
    .help(format!("`yoi stop {name} --now` ends the process")))
}

/// A pod that runs stays as it is.
fn already(
    args: &StartArgs,
    flags: &LaunchOptions,
    prompted: bool,
    owner: &Owner,
    state: &SessionState,
) -> Result<Started, Failure> {
    let StartArgs {
        name, foreground, ..
    } = args;
    let text = is_running(name, owner.pid);
    let busy = |help: String| Err(Failure::new(Exit::Busy, text.clone()).help(help));
    match flags.flags().as_slice() {
        _ if prompted => busy(format!("`yoi send {name} \"INPUT\"` sends an input to it")),
        [] if *foreground => busy(format!("`yoi stop {name}` ends that process")),
        [] => Ok(Started::Running {
            pid: owner.pid,
            held: state.held.as_ref().map(|hold| hold.reason.clone()),
        }),
        set => busy(format!(
            "{} can change only while the pod is stopped: run `yoi stop {name}` first",
            set.join(" and ")
        )),
    }
}

/// Starts the process, which waits for its start. Variables that hold keys are not for it: what it needs is in there.
fn spawn(config: &Config, env: &Env) -> Result<Child, Failure> {
    let mut command = Command::new(SELF);
    command
        .arg0("yoi")
        .arg(HOST)
        .current_dir(&env.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    for name in keys::variables(config) {
        command.env_remove(name);
    }
    command.spawn().map_err(|error| {
        Failure::new(
            Exit::Unavailable,
            format!(
                "the process of the pod cannot start: {}",
                authority::explain(&error)
            ),
        )
    })
}

/// Hands the start over and waits for the answer.
fn ready(mut child: Child, message: &StartMessage) -> Result<Ready, Failure> {
    let broken = |what: String| {
        Failure::new(
            Exit::Internal,
            format!("the process of {}: {what}", message.name),
        )
    };
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(broken("no pipe".to_owned()));
    };
    let (told, answer) = mpsc::channel();
    let reads = move || drop(told.send(HostReply::read(stdout)));
    thread::Builder::new()
        .spawn(reads)
        .map_err(|e| no_thread(&e))?;
    let text = serde_json::to_vec(message).map_err(|error| broken(error.to_string()))?;
    // A process that has ended has said why.
    drop(stdin.write_all(&text));
    drop(stdin);
    let reply = answer.recv_timeout(PATIENCE);
    match reply {
        Ok(Ok(Some(HostReply::Ready(ready)))) => Ok(ready),
        Ok(Ok(Some(HostReply::Failure(failure)))) => {
            drop(child.wait());
            Err(failure)
        }
        Ok(Ok(None)) => {
            let status = child.wait().map_err(|error| broken(error.to_string()))?;
            Err(
                broken(format!("it ended before the pod was ready ({status})")).help(format!(
                    "`yoi log {}` and host.log in the pod's directory may show the reason",
                    message.name
                )),
            )
        }
        Ok(Err(error)) => Err(broken(error.to_string())),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            let text = format!(
                "{} is not ready after {} s",
                message.name,
                PATIENCE.as_secs()
            );
            let help = format!(
                "process {} continues to start; `yoi status {}` shows the state",
                child.id(),
                message.name
            );
            Err(Failure::new(Exit::Busy, text).help(help))
        }
    }
}

fn print(args: &StartArgs, ready: &Ready) {
    let name = &args.name;
    let Ready {
        pid,
        session,
        socket,
        missing,
        held,
    } = ready;
    if args.json {
        let state = match (missing, held) {
            (Some(_), _) => "suspended",
            (None, Some(_)) => "held",
            (None, None) => "running",
        };
        return out::json(&serde_json::json!({
            "pod": name, "state": state, "started": true, "pid": pid, "session": session, "socket": socket,
            "missing": missing, "held": held,
        }));
    }
    out::wrapped(&started_line(ready, name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_pod_names_the_one_that_may_be_meant() {
        let others = ["night", "run-nigt", "docs"].map(str::to_owned);
        assert_eq!(new_pod("parser", &others), "parser is a new pod");
        let meant = "if you meant night: `yoi stop nigth`, `yoi rm nigth`, `yoi start night`";
        assert_eq!(
            new_pod("nigth", &others),
            format!("nigth is a new pod; {meant}")
        );
    }
}
