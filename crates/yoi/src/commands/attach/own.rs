//! What both forms of `yoi attach` have this program do beside the pod: it lists models, stops and starts. Each may take long.

use crate::commands::start::SELF;
use crate::commands::{models, pod_names};
use crate::remedy::in_one;
use host::compose::model::OFFLINE;
use host::config::Config;
use host::env::Env;
use host::exit::Failure;
use pod::record::Record;
use pod::session::restore::decode;
use session_store::Reader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Models of earlier starts that are listed.
const MAX_EARLIER: usize = 16;

/// The models that a pod can change to: the planner, those of the starts of this pod, which no endpoint may list, and those that
/// can answer now.
pub(super) fn models(dir: &Path, env: &Env) -> Result<Vec<String>, Failure> {
    let found = models::find(&Config::load(env)?, env)?;
    let ready = found.into_iter().filter(|found| found.ready);
    let mut names = vec![OFFLINE.to_owned()];
    for name in of_starts(dir)
        .into_iter()
        .chain(ready.flat_map(|found| found.models))
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// The models that a pod was started with, the newest first.
fn of_starts(dir: &Path) -> Vec<String> {
    let Ok(reader) = Reader::open(dir) else {
        return Vec::new();
    };
    let mut found: Vec<String> = Vec::new();
    let frames = reader.frames().map_while(Result::ok);
    for frame in frames.filter(|frame| frame.kind == "host_started") {
        let model = match decode(&frame) {
            Ok(Record::HostStarted(started)) => started.launch.and_then(|launch| launch.model),
            Ok(_) | Err(_) => None,
        };
        if let Some(model) = model {
            found.retain(|other| *other != model);
            found.insert(0, model);
        }
    }
    found.truncate(MAX_EARLIER);
    found
}

/// Stops the pod in good order and starts it again with these options.
///
/// # Errors
/// Why it goes on as it was; or why it was stopped and cannot start.
pub(crate) fn restart(name: &str, options: &[String]) -> Result<(), String> {
    let start: Vec<&str> = ["start", "-q", name]
        .into_iter()
        .chain(options.iter().map(String::as_str))
        .collect();
    printed(None, &["stop", name])?;
    if let Err(why) = printed(None, &start) {
        // It goes on as it was; if it cannot do that either, the first reason is the one to know.
        printed(None, &["start", "-q", name]).ok();
        return Err(why);
    }
    Ok(())
}

/// Starts a pod with an empty conversation in this directory; gives its name.
pub(super) fn new_pod(dir: &str, model: &str, env: &Env) -> Result<String, String> {
    let mut env = env.clone();
    env.cwd = PathBuf::from(dir);
    let name = pod_names::new_name(&env).map_err(|failure| in_one(&failure))?;
    printed(Some(dir), &["start", "-q", &name, "-m", model])?;
    Ok(name)
}

/// What a command of this program prints; or the first line of why it failed.
pub(super) fn printed(dir: Option<&str>, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new(SELF);
    command.args(args).stdin(Stdio::null());
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    let done = command
        .output()
        .map_err(|error| authority::explain(&error))?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        let why = why.lines().next().unwrap_or("it failed");
        return Err(why.strip_prefix("error: ").unwrap_or(why).to_owned());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
