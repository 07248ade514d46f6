//! `yoi attach`: follows a live pod and talks to it, on a full screen or in plain lines. Leaving changes nothing for the
//! pod.

mod full;
mod last_seen;
mod screen;
mod typed;

use self::full::{Left, words};
use self::screen::{PAGE, Screen, note};
use self::typed::Lines;
use crate::cli::AttachArgs;
use crate::commands::control;
use crate::commands::live::{live, waits};
use crate::commands::pin;
use crate::commands::status;
use crate::look::Look;
use crate::report::Report;
use crate::show::out;
use crate::show::question::{self, Shown};
use crate::socket::{block_on, failure, of_wire, owner, statuses};
use crate::terminal::Takes;
use client::ClientError;
use client::attachment::Attachment;
use client::cmd_id::cmd_id;
use client::connection::hello;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::Pods;
use host::project::Project;
use protocol::event::{Event, EventKind, PodEnded};
use protocol::method::{Ask, Attach, GetStatus, PreviewCall, Role, SendInput, Verb};
use protocol::record::RecordBody;
use protocol::status::{DeliveryMode, Status};
use session_store::Owner;
use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::pin;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tui::slash::{Slash, TypedText, plain_help};

const COMMAND: &str = "yoi attach";

/// How long a pod that is gone may take to come back.
const BACK: Duration = Duration::from_secs(120);

/// How long the pods of a directory may take to tell what they do.
const ASKED: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &AttachArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = match &args.name {
        Some(name) => pods.find(name)?,
        None => newest(&pods, env)?.ok_or_else(|| {
            Failure::new(Exit::Unavailable, "no pod of this directory is running")
                .help("`yoi ls` lists pods; `yoi start NAME` starts one")
        })?,
    };
    show(&pods, &name, args, None, env)
}

/// The live pod of this directory, or of the project around it, that was started last.
pub(super) fn newest(pods: &Pods, env: &Env) -> Result<Option<String>, Failure> {
    block_on(newest_here(pods, env))?
}

/// Shows a pod of this directory; where there are others, with the list of pods.
pub(super) fn show_first(
    pods: &Pods,
    name: &str,
    hint: Option<&str>,
    has_others: bool,
    env: &Env,
) -> Result<Exit, Failure> {
    show_at(pods, name, &AttachArgs::default(), (hint, has_others), env)
}

/// Shows a live pod, on a full screen if the terminal can draw one. `hint` is told to a person at the start.
pub(super) fn show(
    pods: &Pods,
    name: &str,
    args: &AttachArgs,
    hint: Option<&str>,
    env: &Env,
) -> Result<Exit, Failure> {
    show_at(pods, name, args, (hint, false), env)
}

fn show_at(
    pods: &Pods,
    name: &str,
    args: &AttachArgs,
    (hint, has_others): (Option<&str>, bool),
    env: &Env,
) -> Result<Exit, Failure> {
    let lists = Cell::new(has_others);
    let draws = env.stdin_terminal && env.stdout_terminal && Look::of_stdout().is_some();
    let screen = Takes::Screen {
        mouse: !args.no_mouse,
    };
    let ways: &[Takes] = match args {
        _ if !draws || args.plain => &[],
        _ if args.inline => &[Takes::RowsBelow],
        _ => &[screen, screen, Takes::RowsBelow],
    };
    let full = |name: &str, hint: Option<&str>, takes| {
        let begin = full::Begin {
            hint,
            takes,
            lists_pods: lists.take(),
        };
        block_on(full::run(pods, name, begin, env)).and_then(|left| left)
    };
    let place = Place {
        name: name.to_owned(),
        hint: hint.map(str::to_owned),
    };
    let Place { name, hint } = match on_screens(ways, place, full, |text| note(&text))? {
        ControlFlow::Break(exit) => return Ok(exit),
        ControlFlow::Continue(place) => place,
    };
    block_on(in_lines(pods, &name, hint.as_deref(), env))?
}

/// The pod that is shown, and what a person is told there first.
struct Place {
    name: String,
    hint: Option<String>,
}

/// Shows pods in the first of these ways that works, until the person leaves. Where none works, gives what was to be shown.
fn on_screens(
    ways: &[Takes],
    mut place: Place,
    mut full: impl FnMut(&str, Option<&str>, Takes) -> Result<Left, Failure>,
    mut tell: impl FnMut(String),
) -> Result<ControlFlow<Exit, Place>, Failure> {
    let mut at = 0;
    let mut failed = None;
    let mut before = None;
    while let Some(takes) = ways.get(at) {
        if let Some(why) = failed.take().filter(|_| at > 1) {
            tell(format!(
                "the full screen failed twice: {why}; --inline follows"
            ));
        }
        let shown = || full(&place.name, place.hint.as_deref(), *takes);
        // The terminal was given back before the message of a panic.
        failed = match (catch_unwind(AssertUnwindSafe(shown)), before.take()) {
            (Ok(Ok(Left::Detached(exit))), _) => return Ok(ControlFlow::Break(exit)),
            (Ok(Ok(Left::Switched { to, unsent })), _) => {
                let hint = (!unsent.is_empty())
                    .then(|| format!("not sent to {}: {}", place.name, unsent.join("\n")));
                before = Some(std::mem::replace(&mut place, Place { name: to, hint }).name);
                continue;
            }
            // The pod has ended meanwhile: back to the one before.
            (Ok(Err(failure)), Some(name)) => {
                place = Place {
                    name,
                    hint: Some(words(&failure)),
                };
                continue;
            }
            (Ok(Err(failure)), None) => return Err(failure),
            (Ok(Ok(Left::NoScreen(why))), _) => Some(why),
            (Err(_panicked), _) => Some("an internal error".to_owned()),
        };
        at += 1;
    }
    if let Some(why) = failed {
        tell(format!("the screen failed: {why}; plain lines follow"));
    }
    Ok(ControlFlow::Continue(place))
}

async fn in_lines(pods: &Pods, name: &str, hint: Option<&str>, env: &Env) -> Result<Exit, Failure> {
    // Says why, if it cannot be attached to.
    let owner = live(pods, name, COMMAND).await?.owner;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|e| {
        Failure::new(
            Exit::Unavailable,
            format!("signals cannot be handled: {}", authority::explain(&e)),
        )
    })?;
    let mut session = Session::begin(pods, name, owner).await?;
    hint.iter().for_each(|hint| note(hint));
    let stop = tokio::select! {
        stop = session.run() => match stop { Err(stop) => stop },
        () = out::reader_left() => Stop::Unread,
        _ = interrupted.recv() => Stop::Detached,
    };
    if env.stdout_terminal {
        let attachment = &session.attachment;
        let seen = attachment.cursor();
        last_seen::write(&pods.dir(name), &attachment.welcome().session, seen);
    }
    // What a script sent and the pod did not take is no success; a person has seen it.
    let waits = matches!(stop, Stop::InputEnded) && session.screen.asks();
    let failed = session
        .failed
        .filter(|_| !env.stdin_terminal)
        .or(waits.then_some(Exit::Waiting));
    match stop {
        Stop::Detached | Stop::InputEnded => note(&detached(name)),
        Stop::Unread => {}
        Stop::Failed(failure) => return Err(failure),
        Stop::Ended(PodEnded {
            failure: Some(failure),
        }) => return Err(of_wire(failure)),
        Stop::Ended(PodEnded { failure: None }) => note(&ended(name)),
    }
    Ok(failed.unwrap_or(Exit::Done))
}

fn detached(name: &str) -> String {
    format!("detached: {name} keeps running")
}

fn ended(name: &str) -> String {
    format!("{name} has ended; `yoi start {name}` starts it again")
}

async fn newest_here(pods: &Pods, env: &Env) -> Result<Option<String>, Failure> {
    let mut live = Vec::new();
    for name in pods.names()? {
        let dir = pods.dir(&name);
        if owner(&dir)?.is_some() {
            live.push((dir, name));
        }
    }
    let root = Project::around(env).root;
    let is_here =
        |status: &Status| [&root, &env.cwd].contains(&&Path::new(&status.host.cwd).to_path_buf());
    let here = statuses(live, "yoi attach", ASKED)
        .await
        .into_iter()
        .filter(|(_, status)| is_here(status));
    Ok(here
        .max_by_key(|(_, status)| status.host.since_us)
        .map(|(name, _)| name))
}

/// Why a session ends.
enum Stop {
    Detached,
    /// The end of standard input.
    InputEnded,
    Ended(PodEnded),
    /// Standard output is not read any more.
    Unread,
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

struct Session<'a> {
    pods: &'a Pods,
    name: &'a str,
    owner: Owner,
    attachment: Attachment,
    lines: Lines,
    /// What was typed while there was no connection.
    waiting: Option<TypedText>,
    screen: Screen,
    /// Questions whose changes were not shown yet.
    asked: VecDeque<u64>,
    /// The first request that failed.
    failed: Option<Exit>,
}

impl<'a> Session<'a> {
    async fn begin(pods: &'a Pods, name: &'a str, owner: Owner) -> Result<Self, Failure> {
        let without = vec![EventKind::Lagged, EventKind::Draft];
        let attach = Attach {
            after: None,
            without,
            limit: Some(PAGE),
        };
        let begun = Attachment::begin(&pods.dir(name), hello(COMMAND, Role::Driver), attach).await;
        let (attachment, attached) = begun.map_err(|error| failure(error, name, &owner))?;
        let screen = Screen::begin(name, &attached);
        if attachment.welcome().role == Role::Viewer {
            note("this process was started by a pod; it can follow this pod, but not change it");
        }
        let waiting = attached.status.approvals.iter();
        Ok(Self {
            asked: waiting.map(|waiting| waiting.approval).collect(),
            pods,
            name,
            owner,
            attachment,
            lines: Lines::begin(name)?,
            waiting: None,
            screen,
            failed: None,
        })
    }

    async fn run(&mut self) -> Result<Infallible, Stop> {
        loop {
            if let Some(typed) = self.waiting.take() {
                self.obey(typed).await?;
            }
            if let Some(id) = self.asked.pop_front() {
                self.show_change(id).await?;
                continue;
            }
            tokio::select! {
                event = self.attachment.next() => match event {
                    Ok(event) => self.event(event)?,
                    Err(error) => self.reconnect(error).await?,
                },
                typed = self.lines.next() => self.obey(typed.ok_or(Stop::InputEnded)?).await?,
            }
        }
    }

    fn event(&mut self, event: Event) -> Result<(), Stop> {
        match event {
            Event::Record(line) => {
                self.screen.record(&line);
                if let Ok(RecordBody::ApprovalRequested(asked)) = line.read().map(|read| read.body)
                {
                    self.asked.push_back(asked.approval);
                }
            }
            Event::Alert(alert) => self.screen.alert(&alert),
            Event::Status(status) => self.screen.status(*status),
            Event::Ended(ended) => return Err(Stop::Ended(ended)),
            Event::Delta(delta) => self.screen.delta(&delta),
            Event::SystemItem(_) | Event::Lagged(_) | Event::Draft(_) | Event::Other { .. } => {}
        }
        if out::is_unread() {
            Err(Stop::Unread)
        } else {
            Ok(())
        }
    }

    /// Shows what still arrived, and goes on behind it over a new connection.
    async fn reconnect(&mut self, error: ClientError) -> Result<(), Stop> {
        while let Ok(event) = self.attachment.next().await {
            self.event(event)?;
        }
        if !error.may_pass() {
            return Err(failure(error, self.name, &self.owner).into());
        }
        note(&format!(
            "the connection to {} was lost; connecting again",
            self.name
        ));
        let mut resuming = pin!(self.attachment.resume(BACK));
        let attached = loop {
            tokio::select! {
                attached = &mut resuming => break attached,
                typed = self.lines.next(), if self.waiting.is_none() => match typed {
                    None | Some(TypedText::Slash(Slash::Detach)) => return Err(Stop::Detached),
                    typed => self.waiting = typed,
                },
            }
        };
        match attached {
            Ok(attached) => self.screen.resumed(&attached),
            Err(error) if error.may_pass() => {
                let text = format!(
                    "{} did not come back within {} seconds",
                    self.name,
                    BACK.as_secs()
                );
                let help = format!("`yoi start {}` starts it again", self.name);
                return Err(Failure::new(Exit::Unavailable, text).help(help).into());
            }
            Err(error) => return Err(failure(error, self.name, &self.owner).into()),
        }
        Ok(())
    }

    /// Asks, again over a new connection if need be.
    async fn ask<A: Ask>(&mut self, ask: A) -> Result<Result<A::Answer, Failure>, Stop> {
        loop {
            match self.attachment.ask(&ask).await {
                Ok(answer) => return Ok(Ok(answer)),
                Err(
                    error @ (ClientError::Refused(_)
                    | ClientError::Silent(_)
                    | ClientError::TooLong(_)),
                ) => {
                    return Ok(Err(failure(error, self.name, &self.owner)));
                }
                Err(error) => self.reconnect(error).await?,
            }
        }
    }

    /// Shows what the call of a question would change in a file.
    async fn show_change(&mut self, id: u64) -> Result<(), Stop> {
        // A pod of an older program cannot tell, and one that was answered need not.
        if let Ok(call) = self.ask(PreviewCall { id }).await? {
            let lines = question::change("", &call);
            let look = Look::of_stdout();
            if !lines.is_empty() {
                note(&format!("approval {id}:"));
            }
            for line in &lines {
                out::raw(&Shown::Line(line).text(look));
            }
        }
        Ok(())
    }

    /// Does what was typed. A request that fails ends nothing.
    async fn obey(&mut self, typed: TypedText) -> Result<(), Stop> {
        let done = match typed {
            TypedText::Nothing => Ok(()),
            TypedText::Input(text) => self.send(text, DeliveryMode::Queue).await?,
            TypedText::Run(text) => {
                let command = text.strip_prefix('!').unwrap_or(&text).trim().to_owned();
                self.send(command, DeliveryMode::Run).await?
            }
            TypedText::Wrong(why) => Err(Failure::new(Exit::Usage, why).help(plain_help())),
            TypedText::Slash(slash) => self.slash(slash).await?,
        };
        if let Err(failure) = done {
            failure.say();
            self.failed.get_or_insert(failure.exit);
        }
        if out::is_unread() {
            Err(Stop::Unread)
        } else {
            Ok(())
        }
    }

    async fn slash(&mut self, slash: Slash) -> Result<Result<(), Failure>, Stop> {
        match slash {
            Slash::Verb(verb) => self.tell(verb).await,
            Slash::Steer(text) => self.send(text, DeliveryMode::Steer).await,
            Slash::Pins => {
                let now = self.ask(GetStatus {}).await?;
                Ok(now.map(|now| {
                    pin::listed(self.name, &now)
                        .iter()
                        .for_each(|pin| note(pin))
                }))
            }
            Slash::Status => {
                let now = self.ask(GetStatus {}).await?;
                Ok(now.and_then(|now| status::print_live(self.pods, self.name, now)))
            }
            Slash::Detach => Err(Stop::Detached),
            Slash::Help => {
                note(&plain_help());
                Ok(Ok(()))
            }
            // Reading them gave what does the same.
            Slash::Approvals
            | Slash::Context
            | Slash::Copy
            | Slash::Diff { .. }
            | Slash::Editor
            | Slash::Features
            | Slash::Log
            | Slash::Effort(_)
            | Slash::Model
            | Slash::New
            | Slash::Pods
            | Slash::Print
            | Slash::Search(_)
            | Slash::Undo { .. } => Ok(Ok(())),
        }
    }

    async fn send(
        &mut self,
        text: String,
        mode: DeliveryMode,
    ) -> Result<Result<(), Failure>, Stop> {
        let accepted = self
            .ask(SendInput {
                text,
                mode,
                cmd_id: cmd_id(),
                ..SendInput::default()
            })
            .await?;
        let input = match accepted {
            Ok(accepted) => accepted.input,
            Err(failure) => return Ok(Err(failure)),
        };
        note(&format!("input {input} is accepted"));
        let now = self.ask(GetStatus {}).await?;
        now.ok()
            .and_then(|now| waits(&now, self.name))
            .iter()
            .for_each(|why| note(why));
        Ok(Ok(()))
    }

    /// Has the pod do it, and says what that does, given the state before.
    async fn tell(&mut self, verb: Verb) -> Result<Result<(), Failure>, Stop> {
        let before = match self.ask(GetStatus {}).await? {
            Ok(before) => before,
            Err(failure) => return Ok(Err(failure)),
        };
        let told = self.ask(verb.clone().with_cmd_id(cmd_id())).await?;
        Ok(told.map(|told| note(&control::said(&verb, self.name, &before, told))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Takes = Takes::Screen { mouse: true };

    fn place() -> Place {
        Place {
            name: "p".to_owned(),
            hint: None,
        }
    }

    #[test]
    fn after_two_failed_starts_the_pod_is_shown_in_the_rows_below() {
        for works in [true, false] {
            let mut tried = Vec::new();
            let mut told = Vec::new();
            let full = |name: &str, _: Option<&str>, takes| {
                assert_eq!(name, "p");
                tried.push(matches!(takes, Takes::RowsBelow));
                match tried[..] {
                    [false] => panic!("a bug of the screen"),
                    [false, false, true] if works => Ok(Left::Detached(Exit::Done)),
                    _ => Ok(Left::NoScreen("no modes".to_owned())),
                }
            };
            let done = on_screens(&[SCREEN, SCREEN, Takes::RowsBelow], place(), full, |text| {
                told.push(text)
            })
            .unwrap();
            assert_eq!(matches!(done, ControlFlow::Break(Exit::Done)), works);
            assert_eq!(tried, [false, false, true]);
            let mut wanted = vec!["the full screen failed twice: no modes; --inline follows"];
            wanted.extend((!works).then_some("the screen failed: no modes; plain lines follow"));
            assert_eq!(told, wanted);
        }
    }

    #[test]
    fn a_pod_that_cannot_be_shown_leads_back_to_the_one_before() {
        let mut shown = Vec::new();
        let full = |name: &str, hint: Option<&str>, _| {
            shown.push(format!("{name}: {}", hint.unwrap_or_default()));
            match shown.len() {
                1 => Ok(Left::Switched {
                    to: "q".to_owned(),
                    unsent: vec!["a thought".to_owned()],
                }),
                2 => Err(Failure::new(Exit::Unavailable, "q is not running")),
                _ => Err(Failure::new(Exit::Unavailable, "p is not running")),
            }
        };
        let done = on_screens(&[SCREEN], place(), full, |text| panic!("{text}"));
        assert!(matches!(done, Err(failure) if failure.message == "p is not running"));
        assert_eq!(
            shown,
            ["p: ", "q: not sent to p: a thought", "p: q is not running"]
        );
    }
}
