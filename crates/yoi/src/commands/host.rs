//! The process of a pod that stays: started by `yoi start` without a terminal, or in the foreground for a service
//! manager. It takes inputs until a signal or `yoi stop` ends it.

use crate::commands::features;
use crate::commands::signals::{SignalPlan, Signals};
use crate::remedy::WORDS;
use crate::report::messages;
use host::added::AddedFeatures;
use host::compose::model::ResolvedModel;
use host::compose::secrets::ResolvedSecrets;
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::host_log;
use host::hosting::handshake::{HostReply, Ready, StartMessage};
use host::hosting::leftovers::Swept;
use host::hosting::lost_host::note_end;
use host::hosting::session_location::{SessionLocation, WantedSession, now};
use host::hosting::socket_file::SOCKET;
use host::hosting::{Driven, HostContext, Hosting, OpenedSession, host_failure};
use host::launch::LaunchOptions;
use host::pods::Pods;
use host::points::Points;
use pod::control::{Client, NewInput, Outbox, SubmitError};
use pod::host::HostError;
use pod::permission::Person;
use pod::record::HoldCause;
use session_store::Clock;
use std::any::Any;
use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How the process is called in lists of processes: it was started through a link of another name.
const PROCESS: &str = "yoi";

/// Why a pod stopped, in its journal.
const STOPPED: &str = "stopped by a signal";

/// The hidden command: a session of its own, the start from standard input, one line back on standard output.
pub(crate) fn run(added: AddedFeatures, points: &Points) -> Result<Exit, Failure> {
    // A process that leads its group already was started by hand.
    rustix::process::setsid().ok();
    authority::seal_inherited(&ambient::claim());
    drop(fs::write("/proc/self/comm", PROCESS));
    let ready = Cell::new(false);
    let hosted =
        start_message(added).and_then(|(message, env)| hosted(message, &env, points, &ready));
    match hosted {
        Err(failure) if !ready.get() => {
            // The starter has the terminal, and tells the person.
            reply(&HostReply::Failure(failure.clone()));
            Ok(failure.exit)
        }
        // Into the log.
        hosted => hosted,
    }
}

fn start_message(added: AddedFeatures) -> Result<(StartMessage, Env), Failure> {
    let message = StartMessage::read(io::stdin().lock())?;
    let env = Env::of_process(Some(&message.cwd), added, WORDS)?;
    Ok((message, env))
}

fn hosted(
    message: StartMessage,
    env: &Env,
    points: &Points,
    ready: &Cell<bool>,
) -> Result<Exit, Failure> {
    let StartMessage {
        name,
        launch,
        model,
        secrets,
        prompt,
        quiet,
        ..
    } = message;
    let launch = LaunchOptions::of_message(launch, env)?;
    let config = launch.over(Config::load(env)?, env)?;
    let log_wanted = host_log::Wanted::of(env)?.or_warnings();
    let plan = SignalPlan::Detached;
    PodThatStays {
        name: &name,
        launch,
        config,
        model,
        secrets,
        prompt,
        quiet,
        plan,
        log_wanted,
        ready,
    }
    .run(env, points)
}

/// One line to the process that started this one, if it is still there.
fn reply(reply: &HostReply) {
    let line = serde_json::to_string(reply).unwrap_or_default();
    let mut out = io::stdout();
    drop(
        out.write_all(format!("{line}\n").as_bytes())
            .and_then(|()| out.flush()),
    );
}

/// A pod that stays, before it is opened.
pub(crate) struct PodThatStays<'a> {
    pub(crate) name: &'a str,
    pub(crate) launch: LaunchOptions,
    pub(crate) config: Config,
    pub(crate) model: ResolvedModel,
    pub(crate) secrets: ResolvedSecrets,
    pub(crate) prompt: Option<String>,
    pub(crate) quiet: bool,
    pub(crate) plan: SignalPlan,
    pub(crate) log_wanted: host_log::Wanted,
    /// Whether the process that started the pod was told that the pod is open.
    pub(crate) ready: &'a Cell<bool>,
}

impl PodThatStays<'_> {
    /// Hosts the pod until it ends. A panic of this program is told as a failure of it. What ends a pod that was open is noted,
    /// for those who come later.
    pub(crate) fn run(self, env: &Env, points: &Points) -> Result<Exit, Failure> {
        let name = self.name.to_owned();
        let ready = self.ready;
        let hosted = catch_unwind(AssertUnwindSafe(|| self.host(env, points)));
        let hosted = hosted.unwrap_or_else(|panic| {
            Err(Failure::new(
                Exit::Internal,
                format!(
                    "the host of {name} ended because of an error in yoi: {}",
                    message(&*panic)
                ),
            )
            .help(format!(
                "`yoi start {name}` starts the pod again; please report the error with its host.log"
            )))
        });
        if let (Err(failure), true, Ok(pods)) = (&hosted, ready.get(), Pods::of(env)) {
            note_end(&pods.dir(&name), failure);
        }
        hosted
    }

    fn host(self, env: &Env, points: &Points) -> Result<Exit, Failure> {
        let signals = Signals::of_host(self.plan)?;
        let messages = messages(self.quiet);
        let swept = Swept::now(env, &messages);
        let ambient = ambient::claim();
        let show_report = |report: &serde_json::Value| features::render(report).warn();
        let Self { config, launch, .. } = &self;
        let context = HostContext {
            env,
            launch,
            config,
            ambient: &ambient,
            points,
            messages,
            resolved: Some(&self.model),
            secrets: Some(&self.secrets),
            show_report,
        };
        let (prepared, mut place) = context.prepare(WantedSession::Named(self.name))?;
        let hosting = Hosting::new(context, signals.tag(), swept, self.log_wanted.clone())?;
        let clock: Clock = Arc::new(now);
        signals.begin();
        let opened = place.open(&ambient, &clock, points)?;
        let session = opened.0.recovered.session.clone();
        let session_parts = OpenedSession {
            place: &place,
            opened,
            prepared,
            outbox: Outbox::unwatched(),
            person: Person::Later,
        };
        let work = async |client: &Client| {
            self.serve(client, &hosting, &signals, &place, session)
                .await
        };
        let driven = hosting.run(session_parts, &CancellationToken::new(), STOPPED, work);
        let done = driven.and_then(|driven| ended(driven, &place));
        let done = done.map_err(|failure| {
            if self.ready.get() {
                failure
            } else {
                self.not_begun(failure)
            }
        });
        signals.over();
        hosting.clean_up(done.is_err());
        hosting.end();
        if done.is_err() {
            place.abandon();
        }
        done
    }

    /// Says that the pod is ready, hands in the prompt, and waits for what ends the pod.
    async fn serve(
        &self,
        client: &Client,
        hosting: &Hosting<'_>,
        signals: &Signals,
        place: &SessionLocation,
        session: String,
    ) -> Result<(), Failure> {
        tokio::select! {
            accepted = self.accept(client) => accepted.map_err(|error| host_failure(&error.into(), place.name()))?,
            () = signals.cancel.cancelled() => {
                client.leave(STOPPED).await;
                return Ok(());
            }
        }
        let missing = self.model.key.missing();
        let hold = client.status().await.and_then(|status| status.held);
        let held = hold
            .filter(|hold| hold.cause != HoldCause::Required)
            .map(|hold| hold.reason);
        let pid = std::process::id();
        let ready = Ready {
            pid,
            session,
            socket: place.dir().join(SOCKET),
            missing,
            held,
        };
        match self.plan {
            SignalPlan::Detached => {
                let null = let_go(hosting).map_err(|error| streams(&error))?;
                reply(&HostReply::Ready(ready));
                rustix::stdio::dup2_stdout(&null).map_err(|error| streams(&error.into()))?;
            }
            SignalPlan::Run | SignalPlan::Service | SignalPlan::Terminal => {
                hosting
                    .messages()
                    .say(&format!("{} is ready (process {pid})", self.name));
                if ready.missing.is_some() || ready.held.is_some() {
                    hosting.messages().say(&started_line(&ready, self.name));
                }
            }
        }
        self.ready.set(true);
        let reloads = async {
            loop {
                signals.reload.notified().await;
                hosting.reload(client).await;
            }
        };
        tokio::select! {
            () = signals.cancel.cancelled() => {}
            () = reloads => {}
        }
        // The next start goes on with the turn that runs.
        client.leave(STOPPED).await;
        Ok(())
    }

    /// A start that the journal did not take.
    fn not_begun(&self, failure: Failure) -> Failure {
        if failure.exit != Exit::Journal {
            return failure;
        }
        let name = self.name;
        Failure::new(Exit::Journal, format!("{name} cannot start: {}", failure.message))
            .help(format!("nothing was started; free disk space or fix the cause, then run `yoi start {name}` again"))
    }

    /// Returns once the start is in the journal, and the prompt, if there is one.
    async fn accept(&self, client: &Client) -> Result<(), SubmitError> {
        match self.prompt.clone() {
            Some(text) => client
                .send(NewInput {
                    text,
                    ..NewInput::default()
                })
                .await
                .map(drop),
            None => client
                .folded()
                .changed()
                .await
                .map_err(|_closed| SubmitError::Closed),
        }
    }
}

/// The words of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let words = panic.downcast_ref::<&str>().copied();
    words
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it has no words")
}

/// Nothing of the terminal or pipes of the starter stays open but the end that the answer goes to.
fn let_go(hosting: &Hosting<'_>) -> io::Result<File> {
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    if !hosting.log_takes_stderr() {
        rustix::stdio::dup2_stderr(&null)?;
    }
    Ok(null)
}

fn streams(error: &io::Error) -> Failure {
    Failure::new(
        Exit::Unavailable,
        format!("the standard streams: {}", authority::explain(error)),
    )
}

fn ended(driven: Driven<Result<(), Failure>>, place: &SessionLocation) -> Result<Exit, Failure> {
    driven
        .end
        .map_err(|fatal| host_failure(&HostError::from(fatal), place.name()))?;
    driven.work.unwrap_or(Ok(()))?;
    Ok(Exit::Done)
}

/// A pod that a start opened, for people.
pub(crate) fn started_line(ready: &Ready, name: &str) -> String {
    let pid = ready.pid;
    match (&ready.missing, &ready.held) {
        (Some(missing), _) => suspended(name, pid, missing),
        (None, Some(held)) => {
            format!(
                "{name} is held (process {pid}): {held}; `yoi status {name}` shows what ends the hold"
            )
        }
        (None, None) => format!(
            "{name} is running (process {pid}): yoi send {name} \"INPUT\" · yoi log {name} --follow · yoi stop {name}"
        ),
    }
}

/// A pod that waits for what is missing.
pub(crate) fn suspended(name: &str, pid: u32, missing: &str) -> String {
    format!("{name} is held (process {pid}): {missing}; then run `yoi start {name}` again")
}
