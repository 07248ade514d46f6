//! `yoi run`: one headless run to its end.

use crate::cli::RunArgs;
use crate::commands::attached_files;
use crate::commands::ending::{self, EndedIn, FinishedRun};
use crate::commands::features;
use crate::commands::input;
use crate::commands::new_rules::RunRules;
use crate::commands::output_schema::{AnswerForm, OutputSchema};
use crate::commands::run_client::{ClientRun, DONE};
use crate::commands::run_person::PersonAsked;
use crate::commands::signals::Signals;
use crate::look::Look;
use crate::past_turn::past_end;
use crate::remedy;
use crate::report::messages;
use crate::show::progress::{Asker, JournalLines, OutputStyle, show};
use crate::show::terminal::{Terminal, children_can_type};
use client::cmd_id::cmd_id;
use host::config::{Config, UserRules};
use host::env::Env;
use host::exit::{Exit, Failure, no_thread};
use host::host_log;
use host::hosting::leftovers::Swept;
use host::hosting::messages::PersonMessages;
use host::hosting::session_location::{SessionLocation, WantedSession, now};
use host::hosting::{Driven, HostContext, Hosting, OpenedSession, PreparedPod, host_failure};
use host::launch::LaunchOptions;
use host::points::Points;
use pod::control::{
    Client, Event, NewFile, NewInput, Outbox, OutputFollower, SubmitError, TurnEnd,
};
use pod::host::HostError;
use pod::permission::Person;
use session_store::Clock;
use std::cell::Cell;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Runs a prompt to its end. Under `--json` a failure too is a result line.
pub(crate) fn run(args: &RunArgs, env: &Env, points: &Points) -> Result<Exit, Failure> {
    authority::seal_inherited(&ambient::claim());
    let signals = Signals::watch(args.timeout, args.json)?;
    let messages = messages(args.quiet);
    let swept = Swept::now(env, &messages);
    let done = run_prompt(args, env, points, signals.clone(), messages, swept);
    // Waits while a signal is ending the program: what broke because of that is not told besides.
    signals.over();
    if let (true, Err(failure)) = (args.json, &done) {
        ending::failed(failure);
    }
    done
}

fn run_prompt(
    args: &RunArgs,
    env: &Env,
    points: &Points,
    signals: Signals,
    messages: PersonMessages,
    mut swept: Swept,
) -> Result<Exit, Failure> {
    let began = Instant::now();
    let dirs = args.options.plugin_dir.iter().map(Path::new);
    let agent = args.agent.load(dirs, env)?;
    let prompt = input::prompt(args, env)?;
    let typed = args.prompt.as_deref().and_then(OsStr::to_str);
    let files = attached_files::load(&args.attach, typed, env)?;
    let log_wanted = host_log::Wanted::of(env)?;
    let schema = args
        .output_schema
        .as_deref()
        .map(|file| OutputSchema::load(file, env))
        .transpose()?;
    // An answer that has to be of a form is shown when it is.
    let stream = env.stdout_terminal && !args.json && schema.is_none();
    // A log there would part what is drawn.
    let is_logged = args.ephemeral && log_wanted.is_wanted();
    let cells = Look::of_stderr().filter(|_| !(args.json || args.quiet || is_logged));
    let answer = Look::of_stdout().filter(|_| stream);
    let style = OutputStyle {
        json: args.json,
        terminal: env.stdout_terminal,
        quiet: args.quiet,
        stream,
        colour: env.colour(),
        cells,
        answer,
    };
    let own = cmd_id();
    let key = args.key.as_deref().unwrap_or(&own);
    let sent = Cell::new(false);
    let client = ClientRun {
        args,
        env,
        prompt: &prompt,
        files: &files,
        key,
        sent: &sent,
        schema: schema.as_ref(),
        signals: &signals,
        style,
        began,
    };
    let launch = args.options.launch().with_agent(agent);
    let mut busy = 0;
    let may_hand_over = |busy| sent.get() && busy < MAX_HANDOVERS;
    loop {
        if let Some(done) = client.run_if_live()? {
            return Ok(done);
        }
        if sent.get() {
            // The process that had the pod may have been killed.
            swept.again(env, &messages);
        }
        let host = HostRun {
            args,
            env,
            points,
            signals: &signals,
            messages,
            swept: &swept,
            log_wanted: &log_wanted,
            launch: &launch,
        };
        match host.run(&client) {
            // Another process was faster: it has the pod by now, or soon.
            Err(failure)
                if failure.exit == Exit::Busy
                    && (may_hand_over(busy) || began.elapsed() < JOIN_PATIENCE) =>
            {
                busy += 1;
                thread::sleep(JOIN_PAUSE);
            }
            done => return done,
        }
    }
}

/// How often a pod may pass to another process before a prompt that was accepted is given up.
const MAX_HANDOVERS: u32 = 64;

/// How long a run waits for a process that has its pod to serve it, or to let go of it: both take milliseconds, unless many
/// begin at once.
const JOIN_PATIENCE: Duration = Duration::from_secs(3);
const JOIN_PAUSE: Duration = Duration::from_millis(50);

/// A run as the host of its pod.
struct HostRun<'a> {
    args: &'a RunArgs,
    env: &'a Env,
    points: &'a Points,
    signals: &'a Signals,
    messages: PersonMessages,
    swept: &'a Swept,
    log_wanted: &'a host_log::Wanted,
    launch: &'a LaunchOptions,
}

impl HostRun<'_> {
    fn run(&self, client: &ClientRun<'_>) -> Result<Exit, Failure> {
        let Self {
            args,
            env,
            points,
            signals,
            messages,
            swept,
            log_wanted,
            launch,
        } = *self;
        let ClientRun {
            style,
            prompt,
            files,
            schema,
            key,
            began,
            ..
        } = *client;
        let key = (args.key.is_some() || client.sent.get()).then_some(key);
        let config = launch.over(Config::load(env)?, env)?;
        let ambient = ambient::claim();
        let show_report = |report: &serde_json::Value| features::render(report).warn();
        let context = HostContext {
            env,
            launch,
            config: &config,
            ambient: &ambient,
            points,
            messages,
            resolved: None,
            secrets: None,
            show_report,
        };
        let (prepared, mut place) = context.prepare(wanted(args))?;
        input::check_command(args.prompt.as_deref(), &prepared.commands)?;
        let is_planner = prepared.is_planner();
        let hosting = Hosting::new(context, signals.tag(), swept.clone(), log_wanted.clone())?;
        let asks = !(args.json || args.quiet || args.no_ask) && env.stderr_terminal;
        let run = HeadlessRun {
            context,
            style,
            signals,
            schema,
            prompt,
            files,
            expand: input::is_command(args.prompt.as_deref()),
            key,
            asks,
        };
        let result = run.run(&hosting, &mut place, prepared);
        hosting.end();
        if result.is_err() {
            place.abandon();
        }
        let removed = place.close().err();
        match result {
            Ok(ended) => {
                let ended = FinishedRun {
                    late: ended.late.or(removed),
                    ..ended
                };
                Ok(ending::report(
                    &ended,
                    EndedIn::own(place.name(), args.pod.is_some(), is_planner),
                    style,
                    began.elapsed(),
                ))
            }
            Err(failure) => {
                removed.inspect(|removed| messages.warn(&format!("warning: {}", removed.message)));
                Err(failure)
            }
        }
    }
}

fn wanted(args: &RunArgs) -> WantedSession<'_> {
    match &args.pod {
        _ if args.ephemeral => WantedSession::Ephemeral,
        Some(name) => WantedSession::Named(name),
        None if args.resume => WantedSession::Last,
        None => WantedSession::New,
    }
}

/// One prompt, and how its progress is shown.
struct HeadlessRun<'a> {
    context: HostContext<'a>,
    style: OutputStyle,
    signals: &'a Signals,
    schema: Option<&'a OutputSchema>,
    prompt: &'a str,
    files: &'a [NewFile],
    /// A person typed it as a command.
    expand: bool,
    /// The name of the input, if a pod may know it.
    key: Option<&'a str>,
    /// The person at the terminal is asked about calls that need approval.
    asks: bool,
}

impl HeadlessRun<'_> {
    fn run(
        &self,
        hosting: &Hosting<'_>,
        place: &mut SessionLocation,
        prepared: PreparedPod,
    ) -> Result<FinishedRun, Failure> {
        let clock: Clock = Arc::new(now);
        self.signals.begin();
        let opened = place
            .open(self.context.ambient, &clock, self.context.points)
            .map_err(|failure| {
                match failure.help.clone().filter(|_| failure.exit == Exit::Busy) {
                    Some(help) => {
                        let help = remedy::help(&help);
                        failure.help(format!("{help}, or use another pod with --pod NAME"))
                    }
                    None => failure,
                }
            })?;
        self.signals.scratch(place.scratch());
        let (outbox, events) = Outbox::watched();
        let outputs = outbox.outputs().follow();
        let journal = JournalLines::from(place.dir(), opened.0.recovered.last + 1);
        let terminal = self.terminal(&prepared);
        let rules = Box::new(RunRules {
            file: UserRules::of(self.context.env)?,
            shown: None,
        });
        let (asker, outcomes) = terminal
            .map(|terminal| Asker::new(terminal, self.signals.cancel.clone(), rules))
            .unzip();
        let screen = self.screen(events, outputs, journal, asker)?;
        let dir = || place.dir().to_path_buf();
        let mut asked = outcomes.map(|outcomes| PersonAsked::new(self.signals, outcomes, dir()));
        let person = if asked.is_some() {
            Person::Later
        } else {
            Person::Never
        };
        let session = OpenedSession {
            place,
            opened,
            prepared,
            outbox,
            person,
        };
        let cancel = asked
            .as_ref()
            .map_or_else(|| self.signals.cancel.clone(), PersonAsked::cancel);
        let at = dir();
        let ask = async |client: &Client| self.ask(client, asked.as_mut(), &at).await;
        let driven = hosting.run(session, &cancel, DONE, ask);
        let done = driven.and_then(|driven| finished(driven, place));
        let ending = self.signals.over();
        // The pod let go of its end, so the screen thread ends once everything is shown.
        let streamed = screen.join().unwrap_or(false);
        hosting.clean_up(done.is_err());
        done.map(|(end, output, late)| FinishedRun {
            end,
            streamed,
            output,
            ending,
            late,
        })
    }

    /// The terminal at which a person is asked. Only commands without a sandbox could type there.
    fn terminal(&self, prepared: &PreparedPod) -> Option<Terminal> {
        let asks = self.asks && !(prepared.is_unconfined() && children_can_type());
        asks.then(|| Terminal::of_process(std::io::stderr()))
            .flatten()
    }

    async fn ask(
        &self,
        client: &Client,
        asked: Option<&mut PersonAsked<'_>>,
        dir: &Path,
    ) -> Result<(TurnEnd, AnswerForm), SubmitError> {
        let output_schema = self.schema.map(|schema| schema.json.to_string());
        let key = self.key.map(str::to_owned);
        let input = NewInput {
            text: self.prompt.to_owned(),
            expand: self.expand,
            output_schema,
            key,
            files: self.files.to_vec(),
            ..NewInput::default()
        };
        let end = match asked {
            Some(asked) => asked.submit(client, input).await,
            None => client.submit_input(input).await,
        };
        let end = match end {
            Err(SubmitError::Over(input)) => {
                past_end(dir, input).ok_or(SubmitError::Over(input))?
            }
            end => end?,
        };
        let output = AnswerForm::of(&end, self.schema);
        Ok((end, output))
    }

    fn screen(
        &self,
        events: mpsc::Receiver<Event>,
        outputs: OutputFollower,
        journal: JournalLines,
        asker: Option<Asker>,
    ) -> Result<thread::JoinHandle<bool>, Failure> {
        let style = self.style;
        let screen = thread::Builder::new()
            .name("screen".to_owned())
            .spawn(move || show(events, outputs, style, journal, asker));
        screen.map_err(|e| no_thread(&e))
    }
}

/// The end of the turn, and what failed after its answer was committed: that does not take it back.
fn finished(
    driven: Driven<Result<(TurnEnd, AnswerForm), SubmitError>>,
    place: &SessionLocation,
) -> Result<(TurnEnd, AnswerForm, Option<Failure>), Failure> {
    let Driven { work, end } = driven;
    let fail = |error: HostError| host_failure(&error, place.name());
    match work {
        Some(Ok((turn, output))) => Ok((turn, output, end.err().map(|fatal| fail(fatal.into())))),
        // Why is the pod's to say.
        Some(Err(SubmitError::Closed)) | None => Err(fail(
            end.err()
                .map_or(SubmitError::Closed.into(), HostError::from),
        )),
        Some(Err(error)) => Err(fail(error.into())),
    }
}
