//! `yoi attach` in plain lines: what the pod records goes out as `yoi log` has it, and lines that are typed are inputs and commands.

use super::last_seen;
use super::own;
use super::screen::{COMMAND, PAGE, Screen, detached, ended, note};
use super::typed::Lines;
use crate::cli::DiffArgs;
use crate::commands::live::{LOST_LOOK, live, lost, waits};
use crate::commands::{changes, control, pin, status, undo};
use crate::look::Look;
use crate::report::Report;
use crate::show::out;
use crate::show::question::{self, Shown};
use crate::socket::{failure, of_wire, owner};
use client::ClientError;
use client::attachment::Attachment;
use client::cmd_id::cmd_id;
use client::connection::hello;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::Pods;
use protocol::event::{Event, EventKind, PodEnded};
use protocol::method::{Ask, Attach, GetStatus, PreviewCall, Role, SendInput, Undo, Verb};
use protocol::record::RecordBody;
use protocol::status::DeliveryMode;
use session_store::Owner;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tui::Intent;
use tui::slash::{NOTHING_CHANGED, Slash, TypedText, plain_help, restart_refused};

/// The line that does what was shown.
const YES: &str = "y";

/// How long a pod that is gone may take to come back.
const BACK: Duration = Duration::from_secs(120);

/// Shows pods in plain lines, one after the other, until the person leaves.
pub(super) async fn in_lines(
    pods: &Pods,
    name: &str,
    hint: Option<&str>,
    env: &Env,
) -> Result<Exit, Failure> {
    // Says why, if it cannot be attached to.
    let mut owner = live(pods, name, COMMAND).await?.owner;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|e| {
        Failure::new(
            Exit::Unavailable,
            format!("signals cannot be handled: {}", authority::explain(&e)),
        )
    })?;
    let mut lines = Lines::begin()?;
    let mut name = name.to_owned();
    let mut failed = None;
    let mut hint = hint;
    loop {
        let mut session = Session::begin(pods, &name, owner, &mut lines, env).await?;
        hint.take().iter().for_each(|hint| note(hint));
        let stop = tokio::select! {
            stop = session.run() => match stop { Err(stop) => stop },
            () = out::reader_left() => Stop::Unread,
            _ = interrupted.recv() => Stop::Detached,
        };
        if env.stdout_terminal {
            let attachment = &session.attachment;
            let seen = attachment.cursor();
            last_seen::write(&pods.dir(&name), &attachment.welcome().session, seen);
        }
        // What a script sent and the pod did not take is no success; a person has seen it.
        failed = failed.or(session.failed).filter(|_| !env.stdin_terminal);
        let waits = matches!(stop, Stop::InputEnded) && session.screen.asks();
        drop(session);
        match stop {
            Stop::Switched(to) => {
                owner = live(pods, &to, COMMAND).await?.owner;
                name = to;
                continue;
            }
            Stop::Detached | Stop::InputEnded => note(&detached(&name)),
            Stop::Unread => {}
            Stop::Failed(failure) => return Err(failure),
            Stop::Ended(PodEnded {
                failure: Some(failure),
            }) => return Err(of_wire(failure)),
            Stop::Ended(PodEnded { failure: None }) => note(&ended(&name)),
        }
        return Ok(failed
            .or(waits.then_some(Exit::Waiting))
            .unwrap_or(Exit::Done));
    }
}

/// Why a session ends.
enum Stop {
    Detached,
    /// For the pod of this name.
    Switched(String),
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
    env: &'a Env,
    attachment: Attachment,
    lines: &'a mut Lines,
    /// What was typed while there was no connection.
    waiting: Option<TypedText>,
    screen: Screen,
    /// Questions whose changes were not shown yet.
    asked: VecDeque<u64>,
    /// The undo that was shown: a `y` undoes the changes after this record.
    shown_undo: Option<u64>,
    /// The pod was stopped from here to start again: its end ends nothing.
    restarts: bool,
    /// The first request that failed.
    failed: Option<Exit>,
}

impl<'a> Session<'a> {
    async fn begin(
        pods: &'a Pods,
        name: &'a str,
        owner: Owner,
        lines: &'a mut Lines,
        env: &'a Env,
    ) -> Result<Self, Failure> {
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
            env,
            attachment,
            lines,
            shown_undo: None,
            restarts: false,
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
                typed = self.lines.next(self.name) => self.obey(typed.ok_or(Stop::InputEnded)?).await?,
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
            Event::Ended(ended) if !self.restarts => return Err(Stop::Ended(ended)),
            Event::Delta(delta) => self.screen.delta(&delta),
            Event::Ended(_)
            | Event::SystemItem(_)
            | Event::Lagged(_)
            | Event::Draft(_)
            | Event::Other { .. } => {}
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
        if !self.restarts {
            note(&format!(
                "the connection to {} was lost; connecting again",
                self.name
            ));
        }
        let dir = self.pods.dir(self.name);
        let mut has_died = self.restarts;
        let mut resuming = pin!(self.attachment.resume(BACK));
        let attached = loop {
            tokio::select! {
                attached = &mut resuming => break attached,
                () = sleep(LOST_LOOK), if !has_died => {
                    has_died = matches!(owner(&dir), Ok(None));
                    if has_died {
                        let name = self.name;
                        let how = lost(&dir);
                        note(&format!("{name} crashed: {how}; `yoi start {name}` starts it again"));
                    }
                }
                typed = self.lines.next(self.name), if self.waiting.is_none() => match typed {
                    None | Some(TypedText::Slash(Slash::Detach)) => return Err(Stop::Detached),
                    typed => self.waiting = typed,
                },
            }
        };
        match attached {
            Ok(attached) => {
                self.restarts = false;
                self.screen.resumed(&attached);
            }
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
        let shown_undo = self.shown_undo.take();
        let done = match typed {
            TypedText::Nothing => Ok(()),
            TypedText::Input(text) => match shown_undo.filter(|_| text == YES) {
                Some(to) => self.undo(to).await?,
                None => self.send(text, DeliveryMode::Queue).await?,
            },
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
            Slash::Diff { turn } => {
                let to = self.screen.changed_from().filter(|_| turn);
                let args = DiffArgs {
                    name: Some(self.name.to_owned()),
                    to,
                    json: false,
                };
                let env = self.env.clone();
                Ok(beside(move || changes::diff(&args, &env)).await.map(drop))
            }
            Slash::Undo { all } => {
                let to = if all {
                    Some(0)
                } else {
                    self.screen.changed_from()
                };
                self.show_undo(to).await
            }
            Slash::Model(ref name) if name.is_empty() => {
                let dir = self.pods.dir(self.name);
                let env = self.env.clone();
                let models = beside(move || own::models(&dir, &env)).await;
                Ok(models.map(|models| {
                    models.iter().for_each(|model| note(model));
                    note("`/model MODEL` changes to one: the pod stops and starts again, and its conversation stays");
                }))
            }
            Slash::Model(_) | Slash::Effort(_) => self.restart(&slash).await,
            Slash::New => {
                let now = match self.ask(GetStatus {}).await? {
                    Ok(now) => now,
                    Err(failure) => return Ok(Err(failure)),
                };
                let env = self.env.clone();
                let new = move || own::new_pod(&now.host.cwd, &now.model, &env).map_err(failed);
                match beside(new).await {
                    Ok(name) => Err(Stop::Switched(name)),
                    Err(failure) => Ok(Err(failure)),
                }
            }
            // Reading them gave what does the same.
            Slash::Agents
            | Slash::Approvals
            | Slash::Context
            | Slash::Copy
            | Slash::Editor
            | Slash::Features
            | Slash::Log
            | Slash::Pods
            | Slash::Print
            | Slash::Search(_) => Ok(Ok(())),
        }
    }

    /// Shows what an undo of the changes after this record would do, which a `y` then does.
    async fn show_undo(&mut self, to: Option<u64>) -> Result<Result<(), Failure>, Stop> {
        let Some(to) = to else {
            note(NOTHING_CHANGED);
            return Ok(Ok(()));
        };
        let pods = self.pods.clone();
        let name = self.name.to_owned();
        let lines = beside(move || undo::preview(&pods, &name, to)).await;
        Ok(lines.map(|lines| {
            lines.iter().for_each(|line| out::wrapped(line));
            if lines.is_empty() {
                note(&format!("{}: nothing to undo", self.name));
            } else {
                self.shown_undo = Some(to);
                note("a line with `y` does it; any other line leaves it");
            }
        }))
    }

    async fn undo(&mut self, to: u64) -> Result<Result<(), Failure>, Stop> {
        let cmd_id = cmd_id();
        Ok(self.ask(Undo { to, cmd_id }).await?.and_then(|undone| {
            undone.lines.iter().for_each(|line| out::wrapped(line));
            undone
                .failure
                .map_or(Ok(()), |failure| Err(of_wire(failure)))
        }))
    }

    /// Stops the pod between two turns, and starts it with what the command asks for.
    async fn restart(&mut self, slash: &Slash) -> Result<Result<(), Failure>, Stop> {
        let Some(Intent::Restart { options, said }) = Intent::restart(slash) else {
            return Ok(Ok(()));
        };
        let now = match self.ask(GetStatus {}).await? {
            Ok(now) => now,
            Err(failure) => return Ok(Err(failure)),
        };
        if let Some(why) = restart_refused(&now) {
            return Ok(Err(Failure::new(Exit::Busy, why)));
        }
        note("the pod starts again …");
        let name = self.name.to_owned();
        let done = beside(move || own::restart(&name, &options).map_err(failed)).await;
        let holds = owner(&self.pods.dir(self.name)).ok().flatten();
        self.restarts = holds.is_none_or(|holds| holds.pid != now.host.pid);
        Ok(done.map(|()| note(&said)))
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
        Ok(told.map(|told| note(&control::said(&verb, self.name, &before, &told))))
    }
}

/// Runs what takes long, beside what the pod tells.
async fn beside<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = spawn_blocking(run).await;
    done.unwrap_or_else(|error| Err(Failure::new(Exit::Internal, error.to_string())))
}

/// What a command of this program said.
fn failed(why: String) -> Failure {
    Failure::new(Exit::Failed, why)
}
