//! `yoi acp`: an agent for an editor on standard input and output. What it says to people goes to standard error.

use crate::cli::{AcpArgs, AgentFlags, PodFlags, StartArgs};
use crate::commands::attach::own;
use crate::commands::pod_names;
use crate::commands::start::{self, Started};
use crate::remedy::help;
use crate::socket::{LiveClient, Reached, block_on, failure, owner};
use acp::{ListedPod, OpenedPod, PodRefusal};
use client::ClientError;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::{Pods, check_name, is_of_run};
use host::points::Points;
use pod::session::summary::Summary;
use session_store::Reader;
use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::{stdin, stdout};
use tokio::runtime::Builder;

/// This program, for the journal.
const COMMAND: &str = "yoi acp";

/// Names that are tried for a new pod, if other programs take them meanwhile.
const NAMES: u32 = 8;

pub(crate) fn run(args: &AcpArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Arc::new(UserPods {
        pods: Pods::of(env)?,
        env: env.clone(),
        options: args.options.clone(),
    });
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        let why = authority::explain(&error);
        let text = format!("the asynchronous runtime cannot start: {why}");
        Failure::new(Exit::Unavailable, text)
    })?;
    runtime.block_on(acp::serve(
        stdin(),
        stdout(),
        pods,
        env!("CARGO_PKG_VERSION"),
    ));
    // Standard input may be open still; nobody waits for it.
    runtime.shutdown_background();
    Ok(Exit::Done)
}

/// The pods of this user; new ones have these options.
struct UserPods {
    pods: Pods,
    env: Env,
    options: PodFlags,
}

impl acp::PodOpener for UserPods {
    fn create(&self, cwd: &Path) -> Result<OpenedPod, PodRefusal> {
        let env = self.at(cwd)?;
        for _ in 0..NAMES {
            let name = pod_names::new_name(&env).map_err(refusal)?;
            match self.start(&name, self.options.clone(), &env) {
                Ok(Started::Ready(_) | Started::Ended(_)) => return Ok(self.place(&name)),
                // Somebody else took the name.
                Ok(Started::Running { .. } | Started::Suspended { .. }) => {}
                Err(failure) if failure.exit == Exit::Busy => {}
                Err(failure) => return Err(refusal(failure)),
            }
        }
        let text = format!("no name is free for a new pod in {}", cwd.display());
        Err(PodRefusal::new(text, Some("try again".to_owned())))
    }

    fn open(&self, name: &str, cwd: Option<&Path>) -> Result<OpenedPod, PodRefusal> {
        let dir = self.pods.dir(name);
        if check_name(name).is_err() || !dir.is_dir() {
            return Err(PodRefusal::unknown(name));
        }
        let is_at = |known: &Path, given: &Path| {
            let given = given.canonicalize();
            given.is_ok_and(|given| given == known)
        };
        let recorded = start::directory_of(&dir);
        if let (Some(given), Some(known)) = (cwd, &recorded)
            && !is_at(known, given)
        {
            let text = format!("{name} works in {}", known.display());
            let step = format!("open that directory, or `yoi start {name}` with -C there first");
            return Err(PodRefusal::new(text, Some(step)));
        }
        let reached = block_on(LiveClient::reach(&dir, name, COMMAND));
        match reached.map_err(refusal)?.map_err(refusal)? {
            Reached::Live(_) => {}
            Reached::Free => {
                // One without a record starts as a new one does.
                let options = match recorded {
                    Some(_) => PodFlags::default(),
                    None => self.options.clone(),
                };
                let env = cwd.map_or_else(|| Ok(self.env.clone()), |cwd| self.at(cwd))?;
                drop(self.start(name, options, &env).map_err(refusal)?);
            }
            Reached::Silent(_, failure) | Reached::Incompatible(_, failure) => {
                return Err(refusal(failure));
            }
            Reached::Locked(owner) => {
                let text = format!("{name} is in use by process {}", owner.pid);
                return Err(PodRefusal::new(
                    text,
                    Some("try again when it has ended".to_owned()),
                ));
            }
        }
        Ok(self.place(name))
    }

    fn restart(&self, name: &str, mode: &str) -> Result<(), PodRefusal> {
        let options = ["--sandbox".to_owned(), mode.to_owned()];
        own::restart(name, &options).map_err(|why| PodRefusal::new(why, None))
    }

    fn list(&self, cwd: Option<&Path>, most: usize) -> Result<Vec<ListedPod>, PodRefusal> {
        let wanted = cwd.map(|cwd| cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned()));
        let mut names = self.pods.names().map_err(refusal)?;
        names.retain(|name| !is_of_run(name));
        names.sort_by_cached_key(|name| Reverse(self.pods.touched(name)));
        let listed = names.into_iter().filter_map(|name| {
            let reader = Reader::open(&self.pods.dir(&name)).ok()?;
            let summary = Summary::read(&reader, || {}).ok()?;
            let cwd = summary.state.started?.cwd;
            let is_there = wanted
                .as_ref()
                .is_none_or(|wanted| wanted == Path::new(&cwd));
            let at = SystemTime::UNIX_EPOCH + Duration::from_micros(summary.last_time);
            let updated = humantime::format_rfc3339_seconds(authority::dated(at)).to_string();
            is_there.then_some(ListedPod {
                name,
                cwd,
                title: summary.prompt,
                updated: Some(updated),
            })
        });
        Ok(listed.take(most).collect())
    }

    fn text_before(&self, name: &str, digest: &str, most: u64) -> Option<String> {
        let reader = Reader::open(&self.pods.dir(name)).ok()?;
        let bytes = reader.blobs().read(&digest.parse().ok()?, most).ok()?;
        String::from_utf8(bytes).ok()
    }

    fn explain(&self, name: &str, error: ClientError) -> PodRefusal {
        match owner(&self.pods.dir(name)) {
            Ok(Some(owner)) => refusal(failure(error, name, &owner)),
            Ok(None) => {
                let step = "send a prompt to start it again".to_owned();
                PodRefusal::new(format!("{name} is not running"), Some(step))
            }
            Err(failure) => refusal(failure),
        }
    }
}

impl UserPods {
    /// The environment in this directory.
    fn at(&self, cwd: &Path) -> Result<Env, PodRefusal> {
        if !cwd.is_dir() {
            let text = format!("{} is not a directory", cwd.display());
            return Err(PodRefusal::new(
                text,
                Some("open an existing one".to_owned()),
            ));
        }
        Env::of_process(Some(cwd), self.env.added.clone(), self.env.words).map_err(refusal)
    }

    fn start(&self, name: &str, options: PodFlags, env: &Env) -> Result<Started, Failure> {
        let args = StartArgs {
            name: name.to_owned(),
            prompt: None,
            agent: AgentFlags::default(),
            options,
            foreground: false,
            json: false,
            quiet: true,
        };
        start::started(&args, false, env, &Points::none())
    }

    fn place(&self, name: &str) -> OpenedPod {
        OpenedPod {
            name: name.to_owned(),
            dir: self.pods.dir(name),
        }
    }
}

fn refusal(failure: Failure) -> PodRefusal {
    PodRefusal::new(failure.message, failure.help.as_ref().map(help))
}
