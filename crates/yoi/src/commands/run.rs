//! `yoi run`: one headless run to its end.

use crate::cli::RunArgs;
use crate::compose::model::{self, Choice};
use crate::compose::project::environment;
use crate::compose::{Composed, compose, system_prompt};
use crate::config::Config;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::Pods;
use crate::show::progress::{Look, show};
use crate::{Points, commands::input, commands::place::Place, commands::signals};
use authority::Ambient;
use llm_worker::effect::Outcome;
use llm_worker::{ErrorKind, Model, ResultStatus};
use pod::control::{Callbacks, Event, Limits, Outbox, TurnEnd};
use pod::feature::Unmet;
use pod::host::{Found, Host, HostError, Parts, Start};
use pod::session::record::HostStarted;
use session_store::Clock;
use signals::Ending;
use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

/// Runs a prompt to its end.
pub(crate) fn run(args: &RunArgs, env: &Env, points: &Points) -> Result<Exit, Failure> {
    let began = Instant::now();
    let prompt = input::prompt(args, env)?;
    let config = Config::load(env)?.with_flags(args);
    let ambient = Ambient::claim();
    let choice = model::choose(&config, env);
    let model = model::build(&ambient, &choice.name, &config, env)?;
    let mut composed = compose(&ambient, &config, env, &args.add_dir)?;
    required(&composed.plan().unmet)?;
    greet(args, &choice, &composed);
    let place = Place::choose(args, &Pods::of(env)?, &composed.project.root)?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(pod::control::callbacks::MAX_THREADS)
        .build()
        .map_err(|e| Failure::new(Exit::Unavailable, format!("no runtime: {e}")))?;
    let look =
        Look { json: args.json, quiet: args.quiet, stream: env.stdout_terminal && !args.json, colour: env.colour() };
    let whole = Whole { args, env, config: &config, ambient: &ambient, points, look };
    let result = whole.run(&runtime, &place, composed, model, &prompt);
    // Written-off threads are not waited for; their process ends with this one.
    runtime.shutdown_background();
    let kept = place.close();
    let (end, ending) = result?;
    kept?;
    Ok(report(&end, ending, &place, look, began.elapsed()))
}

/// What a run is made from.
struct Whole<'a> {
    args: &'a RunArgs,
    env: &'a Env,
    config: &'a Config,
    ambient: &'a Ambient,
    points: &'a Points,
    look: Look,
}

impl Whole<'_> {
    fn run(
        &self,
        runtime: &Runtime,
        place: &Place,
        composed: Composed,
        model: Arc<dyn Model>,
        prompt: &str,
    ) -> Result<(TurnEnd, Option<Ending>), Failure> {
        let clock: Clock = Arc::new(now);
        authority::become_subreaper(self.ambient).map_err(|e| Failure::new(Exit::Unavailable, e.to_string()))?;
        let (outbox, events) = Outbox::watched();
        let screen = self.screen(events)?;
        let done = runtime.block_on(async {
            let (host, found) = self.open(runtime, place, composed, model, outbox, clock).await?;
            self.tell(&found);
            let (cancel, signals) = signals::watch(self.args.timeout)?;
            let (host, end) = host.run(prompt, &cancel).await.map_err(|e| host_failure(&e))?;
            let ending = signals.ending();
            host.close("done").await.map_err(|e| host_failure(&e))?;
            Ok((end, ending))
        });
        // The pod let go of its end, so the screen thread ends once everything is shown.
        drop(screen.join());
        done
    }

    fn screen(&self, events: mpsc::Receiver<Event>) -> Result<thread::JoinHandle<()>, Failure> {
        let look = self.look;
        let screen = thread::Builder::new().name("screen".to_owned()).spawn(move || show(events, look));
        screen.map_err(|e| Failure::new(Exit::Unavailable, format!("no thread: {e}")))
    }

    async fn open(
        &self,
        runtime: &Runtime,
        place: &Place,
        composed: Composed,
        model: Arc<dyn Model>,
        outbox: Outbox,
        clock: Clock,
    ) -> Result<(Host, Found), Failure> {
        let opened = place.open(&clock, self.points)?;
        let tag = format!("{}/{}", opened.recovered.session, opened.recovered.epoch);
        let about = HostStarted {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            project: composed.project.root.display().to_string(),
            cwd: self.env.cwd.display().to_string(),
            sandbox: self.config.sandbox.value.text().to_owned(),
            config_digest: self.config.digest(),
        };
        let environment = environment(&composed.project, &self.env.cwd, SystemTime::now());
        let (registry, permission) = composed.install(self.ambient, self.env, &tag)?;
        required(&registry.report().unmet)?;
        let parts = Parts {
            permission: Arc::new(permission),
            model,
            callbacks: Callbacks::new(runtime.handle().clone()),
            outbox,
            limits: Limits {
                max_steps: self.config.max_steps.value,
                tool_concurrency: self.config.tool_concurrency.value,
            },
            probe: self.points.0.clone(),
            registry: Arc::new(registry),
        };
        let system = system_prompt(&parts.registry);
        let survivors = Ambient::claim();
        let end_survivors = Box::new(move |session: &str| authority::end_survivors(&survivors, session).unwrap_or(0));
        let start = Start { dir: place.dir(), opened, clock, about, system, environment, end_survivors, parts };
        Host::open(start).await.map_err(|e| host_failure(&e))
    }

    fn tell(&self, found: &Found) {
        if found.interrupted > 0 || found.cut > 0 {
            say(self.args, &format!("restored: {} calls were interrupted, {} bytes cut", found.interrupted, found.cut));
        }
        if found.existed && found.new_surface {
            say(self.args, "the model or its tools changed since the last run of this pod");
        }
    }
}

/// Nothing starts without the features the configuration requires.
fn required(unmet: &[Unmet]) -> Result<(), Failure> {
    unmet.first().map_or(Ok(()), |Unmet { feature_id, required_by, reason }| {
        let message = format!("{feature_id} is required by {required_by} and will not be there: {reason}");
        Err(Failure::new(Exit::Config, message).help("`yoi features --plan` shows the plan"))
    })
}

/// Microseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

/// One line for a person, unless they want none.
fn say(args: &RunArgs, text: &str) {
    if !args.quiet {
        let text = format!("{}\n", crate::show::escape::plain(text));
        // A standard error that is gone cannot be told so.
        drop(std::io::stderr().write_all(text.as_bytes()));
    }
}

fn greet(args: &RunArgs, choice: &Choice, composed: &Composed) {
    say(args, &format!("model: {} ({})", choice.name, choice.why));
    if let Some(file) = &composed.project.ignored {
        say(args, &format!("{} is not read by this version: project files have no say yet", file.display()));
    }
    if composed.project.too_wide {
        say(args, "this directory is / or your home: nothing is written here; work in a project directory");
    }
    if composed.mode == authority::SandboxMode::Off {
        say(args, "warning: the sandbox is off; commands can do whatever you can do");
    }
}

/// What went wrong below the command line, as an exit code and a next step.
fn host_failure(error: &HostError) -> Failure {
    let exit = match error.kind() {
        ErrorKind::Corrupt => Exit::Data,
        ErrorKind::Bug => Exit::Internal,
        ErrorKind::Exhausted if matches!(error, HostError::Fatal(pod::control::Fatal::Stuck)) => Exit::Internal,
        ErrorKind::Retry
        | ErrorKind::FixInput
        | ErrorKind::Denied
        | ErrorKind::Unavailable
        | ErrorKind::Exhausted
        | ErrorKind::Cancelled => Exit::Journal,
    };
    let failure = Failure::new(exit, error.to_string());
    match exit {
        Exit::Journal => failure.help("what was committed is kept; mend the disk, then run it again with --pod NAME"),
        Exit::Data => failure.help("`yoi verify NAME` names the first bad record"),
        _ => failure,
    }
}

/// The last words of a run and its exit code.
fn report(end: &TurnEnd, ending: Option<Ending>, place: &Place, look: Look, took: Duration) -> Exit {
    let exit = exit_of(end, ending);
    let mut out = std::io::stdout();
    let answer = end.answer.as_deref();
    if look.json {
        let result = serde_json::json!({
            "k": "result", "answer": answer, "exit": exit.number(), "outcome": end.outcome, "steps": end.steps,
            "usage": end.usage, "cost": null, "pod": place.name(),
        });
        // A closed standard output is the reader's own decision.
        drop(writeln!(out, "{result}"));
    } else if !look.stream
        && let Some(answer) = answer
    {
        drop(writeln!(out, "{}", answer.trim_end_matches('\n')));
    }
    if !look.quiet && !look.json {
        let mut text = failure_text(&end.outcome, ending).map(|text| format!("{text}\n")).unwrap_or_default();
        text.push_str(&closing_line(end, place, took));
        drop(writeln!(std::io::stderr(), "{}", crate::show::escape::plain(&text)));
    } else if let Some(text) = failure_text(&end.outcome, ending) {
        drop(writeln!(std::io::stderr(), "{}", crate::show::escape::plain(&text)));
    }
    exit
}

/// `12 steps · 34 s · 18k tokens · run-7f3a (yoi log run-7f3a)`.
fn closing_line(end: &TurnEnd, place: &Place, took: Duration) -> String {
    let steps = if end.steps == 1 { "1 step".to_owned() } else { format!("{} steps", end.steps) };
    let mut parts = vec![steps, format!("{:.1} s", took.as_secs_f64())];
    let tokens = end.usage.input + end.usage.output;
    match tokens {
        0 => {}
        1..=9_999 => parts.push(format!("{tokens} tokens")),
        10_000.. => parts.push(format!("{}k tokens", tokens / 1000)),
    }
    parts.push(match place.name() {
        Some(name) => format!("{name} (yoi log {name})"),
        None => "nothing kept".to_owned(),
    });
    parts.join(" · ")
}

fn exit_of(end: &TurnEnd, ending: Option<Ending>) -> Exit {
    match &end.outcome {
        Outcome::Done if end.last_result == Some(ResultStatus::Refused) => Exit::Refused,
        Outcome::Done => Exit::Done,
        Outcome::MaxTokens | Outcome::Refused | Outcome::Empty | Outcome::Interrupted => Exit::Failed,
        Outcome::StepLimit => Exit::Limit,
        Outcome::Aborted { .. } => Exit::Refused,
        Outcome::Cancelled => ending.map_or(Exit::Failed, Ending::exit),
        Outcome::ModelFailed { kind, .. } => match kind {
            ErrorKind::Retry | ErrorKind::Unavailable => Exit::Model,
            ErrorKind::Denied | ErrorKind::FixInput => Exit::Config,
            ErrorKind::Bug => Exit::Internal,
            ErrorKind::Corrupt | ErrorKind::Exhausted | ErrorKind::Cancelled => Exit::Failed,
        },
    }
}

/// What failed and the next step; nothing for a run that is done.
fn failure_text(outcome: &Outcome, ending: Option<Ending>) -> Option<String> {
    Some(match outcome {
        Outcome::Done => return None,
        Outcome::MaxTokens => {
            "error: the model's output limit cut its answer\nhelp: ask for less, or continue with -c".to_owned()
        }
        Outcome::Refused => "error: the model refused to answer".to_owned(),
        Outcome::Empty => {
            "error: the model answered nothing\nhelp: ask again with -c, or use another model with -m".to_owned()
        }
        Outcome::Interrupted => "error: the run was interrupted".to_owned(),
        Outcome::StepLimit => {
            "error: the step limit was reached\nhelp: continue with -c, or raise --max-steps".to_owned()
        }
        Outcome::Aborted { reason } => format!("error: ended by a gate: {reason}"),
        Outcome::Cancelled => match ending {
            Some(Ending::Timeout) => {
                "error: the time limit was reached\nhelp: continue with -c, or raise --timeout".to_owned()
            }
            Some(Ending::Signal(_)) | None => "cancelled; continue with -c".to_owned(),
        },
        Outcome::ModelFailed { message, help, .. } => {
            let help = help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
            format!("error: {message}{help}")
        }
    })
}
