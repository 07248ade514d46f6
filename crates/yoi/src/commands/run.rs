//! `yoi run`: one headless run to its end.

use crate::Points;
use crate::cli::RunArgs;
use crate::commands::changes::clear_killed;
use crate::commands::changes::everything;
use crate::commands::ending::{self, FinishedRun};
use crate::commands::features;
use crate::commands::input;
use crate::commands::left_running;
use crate::commands::output_schema::{AnswerForm, OutputSchema};
use crate::commands::session_location::{SessionLocation, now};
use crate::commands::signals::Signals;
use crate::compose::model::{self, Built, ModelChoice};
use crate::compose::roots::Added;
use crate::compose::{Composed, Installed, compose, limits, system_prompt};
use crate::config::Config;
use crate::config::file::Mode;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::host_log::{HostLog, Wanted};
use crate::instructions::Instructions;
use crate::pods::{damaged, salvage};
use crate::project::environment;
use crate::show::count::count;
use crate::show::progress::{OutputStyle, show};
use authority::{Ambient, GitGuard, Redactor, Secret};
use llm_worker::{ErrorKind, Model};
use pod::control::{Actor, Callbacks, Client, Event, Outbox, SubmitError};
use pod::feature::Unmet;
use pod::host::{self, CrashCleanup, HostError, OpenReport, Opening, PodConfig, PodDeps};
use pod::record::HostStarted;
use pod::session::restore::RestoreError;
use serde::Serialize;
use session_store::{Clock, Opened, ReadError, SessionRecords};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Instant, SystemTime};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Runs a prompt to its end. Under `--json` a failure too is a result line.
pub(crate) fn run(args: &RunArgs, env: &Env, points: &Points) -> Result<Exit, Failure> {
    authority::seal_inherited(&Ambient::claim());
    let signals = Signals::watch(args.timeout, args.json)?;
    let swept = swept(args, env);
    let done = run_prompt(args, env, points, signals.clone(), swept);
    // Waits while a signal is ending the program: what broke because of that is not told besides.
    signals.over();
    if let (true, Err(failure)) = (args.json, &done) {
        ending::failed(failure);
    }
    done
}

/// Sessions, and how many processes of each were ended.
type Swept = Vec<(String, u32)>;

/// Ends what runs that were killed left running, and removes what they left beside files.
fn swept(args: &RunArgs, env: &Env) -> Swept {
    let (ended, done) = authority::end_stale(&Ambient::claim(), &env.temp_dir());
    if let Some(text) = left_running::ended(ended.iter().map(|(_, count)| *count).sum()) {
        say(args, &text);
    }
    if let Err(error) = done {
        warn(&format!("warning: cleaning up after a killed run failed: {error}"));
    }
    clear_killed(env, ended.iter().map(|(session, _)| session.as_str()));
    ended
}

fn run_prompt(args: &RunArgs, env: &Env, points: &Points, signals: Signals, swept: Swept) -> Result<Exit, Failure> {
    let began = Instant::now();
    let prompt = input::prompt(args, env)?;
    let log_wanted = Wanted::of(env)?;
    let schema = args.output_schema.as_deref().map(|file| OutputSchema::load(file, env)).transpose()?;
    let config = args.over(Config::load(env)?);
    let ambient = Ambient::claim();
    let choice = model::choose(&config, env);
    let Built { model, recording, secrets } = model::build(&ambient, &choice.name, &config, env)?;
    model::affordable(&*model, &config, env)?;
    let mut composed = compose(&ambient, &config, env, Added { read: &args.add_dir, write: &args.add_write_dir })?;
    let plan = composed.plan();
    let roots: Vec<&Path> = composed.workspace.roots().map(|(root, _)| root).collect();
    let mut place = SessionLocation::choose(args, &config, env, &composed.project.root, &roots)?;
    // A pod that is there gets the report, also of a plan that will not do: it stands in its journal then.
    if !plan.unmet.is_empty() && !place.is_known() {
        required(&plan.unmet, &plan)?;
    }
    greet(args, &config, &choice, &composed);
    let instructions = match config.instructions.value {
        true => Instructions::read(&ambient, &composed.project, env)?,
        false => Instructions::default(),
    };
    if let Some(line) = instructions.line() {
        say(args, &line);
    }
    if let Some(file) = recording {
        say(args, &format!("answers are written to {}", env.shown(&file)));
    }
    let runtime = runtime()?;
    // An answer that has to be of a form is shown when it is.
    let stream = env.stdout_terminal && !args.json && schema.is_none();
    let style = OutputStyle { json: args.json, quiet: args.quiet, stream, colour: env.colour() };
    let run = RunContext {
        args,
        env,
        config: &config,
        ambient: &ambient,
        instructions: &instructions,
        points,
        style,
        signals,
        schema,
        swept,
        model,
        secrets,
        prompt,
        git: OnceLock::new(),
        log_wanted,
        host_log: OnceLock::new(),
    };
    let result = run.run(&runtime, &mut place, composed);
    // Written-off threads are not waited for; their process ends with this one.
    runtime.shutdown_background();
    if result.is_err() {
        place.abandon();
    }
    let removed = place.close().err();
    match result {
        Ok(ended) => {
            let ended = FinishedRun { late: ended.late.or(removed), ..ended };
            Ok(ending::report(&ended, &place, style, began.elapsed()))
        }
        Err(failure) => {
            removed.inspect(|removed| warn(&format!("warning: {}", removed.message)));
            Err(failure)
        }
    }
}

/// The control thread's, with as many threads as callbacks may have.
fn runtime() -> Result<Runtime, Failure> {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(pod::foreign::MAX_THREADS).build();
    runtime
        .map_err(|e| Failure::new(Exit::Unavailable, format!("the runtime cannot start: {}", authority::explain(&e))))
}

/// What a run goes by.
struct RunContext<'a> {
    args: &'a RunArgs,
    env: &'a Env,
    config: &'a Config,
    ambient: &'a Ambient,
    instructions: &'a Instructions,
    points: &'a Points,
    style: OutputStyle,
    signals: Signals,
    schema: Option<OutputSchema>,
    swept: Swept,
    model: Arc<dyn Model>,
    secrets: Vec<Secret>,
    prompt: String,
    /// Watches what git would run, once commands can.
    git: OnceLock<Option<Arc<GitGuard>>>,
    log_wanted: Wanted,
    host_log: OnceLock<HostLog>,
}

impl RunContext<'_> {
    fn run(&self, runtime: &Runtime, place: &mut SessionLocation, composed: Composed) -> Result<FinishedRun, Failure> {
        let clock: Clock = Arc::new(now);
        authority::become_subreaper(self.ambient).map_err(|e| Failure::new(Exit::Unavailable, e.to_string()))?;
        self.signals.begin();
        let opened = place.open(self.ambient, &clock, self.points)?;
        self.signals.scratch(place.scratch());
        let (outbox, events) = Outbox::watched();
        let screen = self.screen(events)?;
        let callbacks = Callbacks::new(runtime.handle().clone());
        let done = runtime.block_on(async {
            let (actor, client, found) = self.open(place, opened, composed, callbacks.clone(), outbox).await?;
            self.tell(&found);
            let fail = |error: HostError| host_failure(&error, place.name());
            let asks = async {
                match &self.schema {
                    Some(schema) => schema.run(&client, &self.prompt).await,
                    None => client.submit(&self.prompt).await.map(|end| (end, AnswerForm::Free)),
                }
            };
            let mut pod = std::pin::pin!(actor.run(self.signals.cancel.clone()));
            let done = tokio::select! {
                done = asks => done,
                over = &mut pod => return Err(fail(over.result.err().map_or(SubmitError::Closed.into(), Into::into))),
            };
            match done {
                Ok((end, output)) => {
                    client.close("done").await;
                    // The answer is committed: what fails from here on does not take it back.
                    Ok((end, output, pod.await.result.err().map(|fatal| fail(fatal.into()))))
                }
                // Why is the pod's to say.
                Err(SubmitError::Closed) => {
                    Err(fail(pod.await.result.err().map_or(SubmitError::Closed.into(), Into::into)))
                }
                Err(error @ (SubmitError::Blob(_) | SubmitError::Busy)) => Err(fail(error.into())),
            }
        });
        let ending = self.signals.over();
        // The pod let go of its end, so the screen thread ends once everything is shown.
        let streamed = screen.join().unwrap_or(false);
        self.host_log.get().into_iter().for_each(HostLog::flush);
        if done.is_err() || callbacks.stuck() > 0 {
            self.end_children();
        }
        // Of commands whose call was given up, and that ended after it.
        for found in self.git.get().into_iter().flatten().flat_map(|guard| guard.untold()) {
            warn(&format!("warning: {}", found.text(authority::escape)));
        }
        done.map(|(end, output, late)| FinishedRun { end, streamed, output, ending, late })
    }

    /// The log of the host, once all secrets that features may meet are known. A run goes on without it.
    fn begin_log(&self, place: &SessionLocation, redactor: Redactor) {
        let dir = place.name().map(|_| place.dir());
        match self.log_wanted.begin(dir.as_deref(), redactor) {
            Ok(log) => log.into_iter().for_each(|log| drop(self.host_log.set(log))),
            Err(why) => warn(&format!("warning: no log of the host: {why}")),
        }
    }

    /// Ends whatever a callback that was given up still runs.
    fn end_children(&self) {
        let descendants = authority::end_descendants(self.ambient).map(drop);
        let tag = self.signals.tag();
        let marked = tag.map_or(Ok(()), |tag| authority::end_survivors(self.ambient, &tag).map(drop));
        for error in [descendants, marked].into_iter().filter_map(Result::err) {
            warn(&format!("warning: {error}"));
        }
    }

    fn screen(&self, events: mpsc::Receiver<Event>) -> Result<thread::JoinHandle<bool>, Failure> {
        let style = self.style;
        let screen = thread::Builder::new().name("screen".to_owned()).spawn(move || show(events, style));
        screen.map_err(|e| Failure::new(Exit::Unavailable, format!("no thread: {}", authority::explain(&e))))
    }

    /// The named points. The first record that is durable is noted for `-c`, before anybody can see it.
    fn points(&self, place: &SessionLocation) -> Arc<dyn Fn(&str) + Send + Sync> {
        let (points, note) = (self.points.0.clone(), Mutex::new(Some(place.note())));
        Arc::new(move |point| {
            let durable = !point.starts_with("commit:");
            let note = note.lock().unwrap_or_else(PoisonError::into_inner).take_if(|_| durable);
            if let Some(warning) = note.and_then(|note| note()) {
                warn(&warning);
            }
            points(point);
        })
    }

    async fn open(
        &self,
        place: &SessionLocation,
        opened: (Opened, SessionRecords),
        composed: Composed,
        callbacks: Callbacks,
        outbox: Outbox,
    ) -> Result<(Actor, Client, OpenReport), Failure> {
        let recovered = &opened.0.recovered;
        let (tag, known) = (format!("{}/{}", recovered.session, recovered.epoch), recovered.existed);
        self.signals.children(&tag);
        authority::label_descendants(self.ambient, &tag);
        let shown = |dirs: &[PathBuf]| dirs.iter().map(|dir| authority::escape(dir)).collect();
        let about = HostStarted {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            project: composed.project.root.display().to_string(),
            cwd: self.env.cwd.display().to_string(),
            sandbox: composed.mode.text().to_owned(),
            config_digest: self.config.digest(),
            add_dirs: shown(&composed.added.read),
            add_write_dirs: shown(&composed.added.write),
        };
        let (project, cwd) = (composed.project.clone(), self.env.cwd.clone());
        let environment = Box::new(move || environment(&project, &cwd, SystemTime::now()));
        let survivors = Ambient::claim();
        let before =
            |session: &str| self.swept.iter().filter(|(of, _)| of == session).map(|(_, count)| *count).sum::<u32>();
        let end_survivors = move |session: &str| {
            let ended = authority::end_survivors(&survivors, session).map_err(|error| error.to_string());
            ended.map(|ended| ended.saturating_add(before(session)))
        };
        let fail = |error: HostError| host_failure(&error, place.name());
        // Also what features had written outside of the project, and also in a run that may only read.
        let files = everything(&Ambient::claim())?;
        let after = CrashCleanup { now: now(), end_survivors: &end_survivors, files: Some(&files) };
        let opening = Opening::of(&place.dir(), opened, &after).map_err(fail)?;
        let Installed { registry, permission, no_shell, git } =
            composed.install(self.ambient, self.env, &tag, opening.link(), &self.secrets)?;
        self.git.set(git).ok();
        self.begin_log(place, registry.redactor().clone());
        let lacking = required(&registry.report().unmet, registry.report());
        if !known {
            lacking.clone()?;
        }
        if let Some(why) = no_shell {
            say(self.args, &format!("shell commands are not available here: {why}"));
        }
        let parts = PodDeps {
            permission: Arc::new(permission),
            model: self.model.clone(),
            callbacks,
            outbox,
            limits: limits(self.config),
            probe: self.points(place),
            registry: Arc::new(registry),
        };
        let system = system_prompt(&parts.registry, self.instructions);
        let start = PodConfig { about, system, environment, parts };
        let (actor, client, found) = host::open(opening, start).await.map_err(fail)?;
        let Err(failure) = lacking else { return Ok((actor, client, found)) };
        self.tell(&found);
        client.close(&failure.message).await;
        if let Err(error) = actor.run(CancellationToken::new()).await.result {
            warn(&format!("warning: the install report was not saved in this pod: {error}"));
        }
        Err(failure)
    }

    fn tell(&self, found: &OpenReport) {
        if found.crashed || found.cut > 0 {
            let was = if found.interrupted == 1 { "was" } else { "were" };
            let calls = format!("{} {was}", count(found.interrupted, "call"));
            let cut = if found.cut > 0 {
                format!(", {} after the last complete record set aside", count(found.cut, "byte"))
            } else {
                String::new()
            };
            say(self.args, &format!("restored after a crash: {calls} interrupted{cut}"));
        }
        if let Some(lost) = &found.lost {
            say(self.args, &format!("restored from a damaged journal: {lost}; the model is told"));
        }
        if let Some(why) = &found.survivors {
            // Said even to those who want no progress: two may be writing now.
            warn(&format!("warning: processes of an earlier run may still be running: {why}"));
        }
        if found.waiting > 0 {
            let inputs = count(found.waiting, "earlier input");
            say(self.args, &format!("{inputs} had not been processed; the model gets this first"));
        }
        if found.existed && found.new_surface {
            say(self.args, "the model or its tools changed since the last run of this pod");
        }
        if found.old_system {
            say(self.args, "the instruction files changed; this pod keeps the instructions it started with");
        }
    }
}

/// Nothing starts without the features the configuration requires; what became of all of them is said first.
fn required(unmet: &[Unmet], report: impl Serialize) -> Result<(), Failure> {
    unmet.first().map_or(Ok(()), |Unmet { feature_id, required_by, reason }| {
        features::render(&serde_json::to_value(report).unwrap_or_default()).warn();
        let message = format!("{feature_id} is required by {required_by} but is not available: {reason}");
        Err(Failure::new(Exit::Config, message).help("`yoi features --plan` shows the plan"))
    })
}

/// One line for a person, unless they want none.
fn say(args: &RunArgs, text: &str) {
    if !args.quiet {
        warn(text);
    }
}

fn warn(text: &str) {
    let text = format!("{}\n", authority::text::escape_line(text));
    // A standard error that is gone cannot be told so.
    drop(std::io::stderr().write_all(text.as_bytes()));
}

fn greet(args: &RunArgs, config: &Config, choice: &ModelChoice, composed: &Composed) {
    if let Some(warning) = config.warning() {
        say(args, &warning);
    }
    say(args, &format!("model: {} ({})", choice.name, choice.why));
    for line in config.asks() {
        say(args, &line);
    }
    let provider = provider::catalog::split(model::bare(&choice.name)).map(|(provider, _)| provider);
    if let Some(exposed) = provider.and_then(|provider| model::in_the_clear(provider, config)) {
        // Said even to those who want no progress.
        warn(&format!("warning: {exposed}"));
    }
    if let Some(failure) = &config.grants_unread {
        warn(&format!("warning: {}", failure.message));
    }
    if composed.project.too_wide {
        let root = authority::escape(&composed.project.root);
        say(
            args,
            &format!(
                "{root} is read-only here: it is /, your home directory, or contains yoi's own files; start in a project directory"
            ),
        );
    }
    if composed.mode == Mode::Off {
        // Said even to those who want no progress.
        warn("warning: the sandbox is off; commands have all of your permissions");
    }
}

/// What went wrong below the command line, as an exit code and a next step.
fn host_failure(error: &HostError, name: Option<&str>) -> Failure {
    if let (
        HostError::Read(ReadError::Damaged(damage))
        | HostError::Restore(RestoreError::Read(ReadError::Damaged(damage))),
        Some(name),
    ) = (error, name)
    {
        return damaged(name, damage);
    }
    let exit = match error.kind() {
        ErrorKind::Corrupt => Exit::Data,
        ErrorKind::Bug => Exit::Internal,
        ErrorKind::Exhausted if matches!(error, HostError::Fatal(pod::control::Fatal::Stuck)) => Exit::Internal,
        // An answer that fits no record: no disk is to blame.
        ErrorKind::FixInput => Exit::Failed,
        ErrorKind::Retry | ErrorKind::Denied | ErrorKind::Unavailable | ErrorKind::Exhausted | ErrorKind::Cancelled => {
            Exit::Journal
        }
    };
    let failure = Failure::new(exit, error.to_string());
    match (exit, name) {
        (Exit::Journal, Some(name)) => {
            failure.help(format!("what was recorded is kept; fix the cause, then continue with --pod {name}"))
        }
        (Exit::Data, Some(name)) => failure.help(salvage(name)),
        (Exit::Failed, Some(name)) => failure.help(format!("ask for less at a time, then continue with --pod {name}")),
        _ => failure,
    }
}
