//! One session: a pod that the editor follows and drives. A task of its own follows the pod's records, hands in prompts and
//! answers them when everything that led to their ends was told.

mod prompts;
mod questions;
mod running;

use crate::blocking::blocking;
use crate::command;
use crate::message::{FAILED, Id, PARAMS, RpcError};
use crate::modes;
use crate::out::{Gone, Out};
use crate::pods::{OpenedPod, PodOpener};
use crate::requests::{ClientKnows, Command, Opening};
use crate::transcript::Transcript;
use crate::update::{Update, note};
use client::ClientError;
use client::attachment::Attachment;
use client::connection::{Next, hello};
use protocol::event::{AlertEvent, AlertLevel, DeltaPart, Event, EventKind};
use protocol::method::{Ask, Attach, Attached, CallTool, GetFeatures, GetStatus, Page, Role};
use running::{BACK, CLIENT, Running, Waited};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tui::slash::{ForeignCommand, restart_refused};

/// How long an answer of a pod may take.
const ANSWER: Duration = Duration::from_secs(60);

/// How often the output of running calls is told.
const PRINTED: Duration = Duration::from_millis(250);

/// Bytes of a file before a change, of which a diff is shown.
const MAX_BEFORE: u64 = 256 << 10;

/// Records of a page that is looked through for the newest one.
const LOOKED: u32 = 64;

/// A pod that is connected to.
pub(crate) struct Begun {
    place: OpenedPod,
    attachment: Attachment,
    attached: Attached,
}

/// Connects to a pod, from its first record on.
pub(crate) async fn begin(place: &OpenedPod) -> Result<Begun, ClientError> {
    let attach = Attach {
        after: Some(0),
        without: vec![EventKind::Draft],
        limit: None,
    };
    let hello = hello(CLIENT, Role::Driver);
    let (attachment, attached) = Attachment::begin(&place.dir, hello, attach).await?;
    Ok(Begun {
        place: place.clone(),
        attachment,
        attached,
    })
}

/// Why something ends.
enum Stop {
    /// Nobody reads what the session tells.
    Gone,
    /// It was not done, and why.
    Failed(RpcError),
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// A session of one client.
pub(crate) struct Session<P> {
    pods: Arc<P>,
    place: OpenedPod,
    out: Out,
    client: ClientKnows,
    commands: mpsc::Receiver<Command>,
    own_commands: mpsc::WeakSender<Command>,
    attachment: Attachment,
    attached: Attached,
    /// The pod's process is there, as far as is known.
    is_connected: bool,
    transcript: Transcript,
    /// The mode that the client knows.
    mode: String,
    /// The commands that the features of the pod offer.
    offered: Vec<ForeignCommand>,
    prompts: Vec<Running>,
    waits: JoinSet<Waited>,
    /// The requests of the questions that the client was asked, by approval.
    asked: BTreeMap<u64, u64>,
    /// Texts of yoi itself so far.
    notes: u64,
    /// When the output of a running call was told last.
    printed_at: Option<Instant>,
}

impl<P: PodOpener> Session<P> {
    pub(crate) fn new(
        begun: Begun,
        pods: Arc<P>,
        out: Out,
        client: ClientKnows,
        (own_commands, commands): (mpsc::WeakSender<Command>, mpsc::Receiver<Command>),
    ) -> Self {
        let Begun {
            place,
            attachment,
            attached,
        } = begun;
        let cwd = PathBuf::from(&attached.status.host.cwd);
        let mode = modes::of_sandbox(&attached.status.host.sandbox).to_owned();
        Self {
            pods,
            place,
            out,
            client,
            commands,
            own_commands,
            attachment,
            attached,
            is_connected: true,
            transcript: Transcript::new(cwd),
            mode,
            offered: Vec::new(),
            prompts: Vec::new(),
            waits: JoinSet::new(),
            asked: BTreeMap::new(),
            notes: 0,
            printed_at: None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.place.name
    }

    /// Runs until the client leaves. The pod goes on.
    pub(crate) async fn run(mut self, opening: Opening) {
        let Opening { id, is_load, note } = opening;
        match self.open(&id, is_load, note).await {
            Ok(()) => drop(self.serve().await),
            Err(Stop::Failed(error)) => drop(self.out.fail(Some(&id), &error).await),
            Err(Stop::Gone) => {}
        }
    }

    /// Tells what was recorded, and answers the request that opened the session.
    async fn open(&mut self, id: &Id, is_load: bool, note: Option<String>) -> Result<(), Stop> {
        let report = self.ask(&GetFeatures {}).await?.report;
        self.offered = tui::slash::foreign(&report);
        self.catch_up(self.attached.status.seq).await?;
        self.tell_tasks().await?;
        let modes = modes::state(&self.mode);
        let answer = match is_load {
            true => json!({ "modes": modes }),
            false => json!({ "sessionId": self.place.name, "modes": modes }),
        };
        self.out.answer(id, Ok(answer)).await?;
        self.tell(command::offered(&self.offered)).await?;
        if let Some(note) = note {
            self.say(AlertLevel::Warning, &note).await?;
        }
        Ok(())
    }

    async fn serve(&mut self) -> Result<(), Gone> {
        loop {
            match self.settle().await {
                Ok(()) | Err(Stop::Failed(_)) => {}
                Err(Stop::Gone) => return Err(Gone),
            }
            tokio::select! {
                event = self.attachment.next(), if self.is_connected => match event {
                    Ok(event) => self.event(event).await?,
                    Err(error) => self.lost(error).await?,
                },
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command).await?,
                    None => return self.closed().await,
                },
                Some(waited) = self.waits.join_next() => self.waited(waited),
            }
        }
    }

    async fn command(&mut self, command: Command) -> Result<(), Gone> {
        match command {
            Command::Prompt { id, prompt } => self.prompt(id, prompt).await,
            Command::Cancel => self.cancel().await,
            Command::SetMode { id, mode } => match self.set_mode(&mode).await {
                Ok(()) => self.out.answer(&id, Ok(json!({}))).await,
                Err(Stop::Failed(error)) => self.out.fail(Some(&id), &error).await,
                Err(Stop::Gone) => Err(Gone),
            },
            Command::Answered { approval, outcome } => self.resolve(approval, outcome).await,
        }
    }

    /// What follows from what was told: a list of tasks, questions, ends of prompts.
    async fn settle(&mut self) -> Result<(), Stop> {
        if !self.is_connected {
            return Ok(());
        }
        self.tell_tasks().await?;
        self.ask_person().await?;
        self.answer_ended().await?;
        // What was read meanwhile may ask, too.
        self.ask_person().await
    }

    async fn event(&mut self, event: Event) -> Result<(), Gone> {
        match event {
            Event::Record(line) => {
                let pods = self.pods.clone();
                let name = self.place.name.clone();
                let before = |digest: &str| pods.text_before(&name, digest, MAX_BEFORE);
                for update in self.transcript.record(&line, before) {
                    self.out.update(&self.place.name, &update).await?;
                }
                // Of a request that was there before this client, parts may have been told to nobody.
                if self.attachment.cursor() <= self.attached.status.seq {
                    self.transcript.missed();
                }
                Ok(())
            }
            Event::Delta(delta) => {
                let updates = self.transcript.delta(&delta);
                if matches!(delta.part, DeltaPart::Output { .. }) && !self.may_print() {
                    return Ok(());
                }
                for update in updates {
                    self.out.update(&self.place.name, &update).await?;
                }
                Ok(())
            }
            Event::Lagged(_) => {
                self.transcript.missed();
                Ok(())
            }
            Event::Alert(alert) if self.client.notices => self.notice(&alert).await,
            Event::Status(status) => self.in_mode(&status.host.sandbox).await,
            Event::Alert(_)
            | Event::SystemItem(_)
            | Event::Draft(_)
            | Event::Ended(_)
            | Event::Other { .. } => Ok(()),
        }
    }

    /// Whether the output of running calls, which is told whole, is told again now.
    fn may_print(&mut self) -> bool {
        let is_soon = |at: Instant| at.elapsed() < PRINTED;
        let may = !self.printed_at.is_some_and(is_soon);
        if may {
            self.printed_at = Some(Instant::now());
        }
        may
    }

    /// The pod has this sandbox: a client that knows another mode is told.
    async fn in_mode(&mut self, sandbox: &str) -> Result<(), Gone> {
        let mode = modes::of_sandbox(sandbox);
        if self.mode == mode {
            return Ok(());
        }
        self.mode = mode.to_owned();
        let told = json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode });
        self.tell(told).await
    }

    /// Tells something that is in no record.
    async fn tell(&self, body: Value) -> Result<(), Gone> {
        let update = Update { body, seq: None };
        self.out.update(&self.place.name, &update).await
    }

    /// A text of yoi itself for people: a notice where the client knows notices, else a message of its own.
    async fn say(&mut self, level: AlertLevel, text: &str) -> Result<(), Gone> {
        if self.client.notices {
            let alert = AlertEvent {
                level,
                from: None,
                text: text.to_owned(),
            };
            return self.notice(&alert).await;
        }
        self.notes += 1;
        self.tell(note(text, &format!("yoi-{}", self.notes))).await
    }

    async fn notice(&self, alert: &AlertEvent) -> Result<(), Gone> {
        let severity = match alert.level {
            AlertLevel::Info | AlertLevel::Unknown => "info",
            AlertLevel::Warning => "warning",
            AlertLevel::Error => "error",
        };
        let text = tui::transcript::alert(alert.from.as_deref(), &alert.text);
        self.tell(json!({ "sessionUpdate": "notice", "severity": severity, "title": text }))
            .await
    }

    /// Tells the model's list of tasks, if it may have changed. A pod without the feature has none.
    async fn tell_tasks(&mut self) -> Result<(), Stop> {
        if !self.transcript.take_tasks_changed() {
            return Ok(());
        }
        let mut arguments = Map::new();
        arguments.insert("all".to_owned(), json!(true));
        let list = CallTool {
            tool: "TaskList".to_owned(),
            arguments,
            cmd_id: None,
        };
        match self.ask(&list).await {
            Ok(answer) => Ok(self.tell(plan(&answer.content)).await?),
            Err(Stop::Failed(_)) => Ok(()),
            Err(gone) => Err(gone),
        }
    }

    /// Asks the pod. What it tells meanwhile is told at once.
    async fn ask<A: Ask>(&mut self, ask: &A) -> Result<A::Answer, Stop> {
        match self.asked_pod(ask).await? {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failed(error)),
        }
    }

    async fn asked_pod<A: Ask>(&mut self, ask: &A) -> Result<Result<A::Answer, ClientError>, Gone> {
        let begun = match self.attachment.begin_request(ask) {
            Ok(begun) => begun,
            Err(error) => return Ok(Err(error)),
        };
        let until = Instant::now() + ANSWER;
        loop {
            match timeout_at(until, self.attachment.next_or(&begun)).await {
                Ok(Ok(Next::Event(event))) => self.event(event).await?,
                Ok(Ok(Next::Answer(answer))) => return Ok(Ok(answer)),
                Ok(Err(error)) => return Ok(Err(error)),
                Err(_late) => return Ok(Err(ClientError::Silent(ANSWER))),
            }
        }
    }

    fn failed(&self, error: ClientError) -> Stop {
        Stop::Failed(self.pods.explain(&self.place.name, error).into())
    }

    /// Tells everything up to this record.
    async fn catch_up(&mut self, seq: u64) -> Result<(), Stop> {
        let newest = self.newest_told(seq).await?;
        while self.attachment.cursor() < newest {
            match self.attachment.next().await {
                Ok(event) => self.event(event).await?,
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }

    /// The newest record up to this one that clients are sent: those of features' states are not.
    async fn newest_told(&mut self, seq: u64) -> Result<u64, Stop> {
        let mut before = seq.saturating_add(1);
        while before > self.attachment.cursor().saturating_add(1) {
            let limit = LOOKED;
            let page = self.ask(&Page { before, limit }).await?;
            if let Some(last) = page.records.last() {
                return Ok(last.seq().unwrap_or(seq));
            }
            if page.first >= before {
                break;
            }
            before = page.first;
        }
        Ok(self.attachment.cursor())
    }

    async fn set_mode(&mut self, mode: &str) -> Result<(), Stop> {
        self.connected().await?;
        let status = self.ask(&GetStatus {}).await?;
        if modes::of_sandbox(&status.host.sandbox) == mode {
            return Ok(());
        }
        if !modes::is_offered(mode) {
            let message = format!("there is no mode `{mode}`");
            let help = "choose one of `availableModes`";
            return Err(Stop::Failed(RpcError::new(PARAMS, message, help)));
        }
        if let Some(why) = restart_refused(&status) {
            return Err(Stop::Failed(RpcError::new(FAILED, why, "try again then")));
        }
        let pods = self.pods.clone();
        let name = self.place.name.clone();
        let chosen = mode.to_owned();
        let restarted = blocking(move || pods.restart(&name, &chosen)).await;
        let back = self.resume().await;
        restarted.map_err(Stop::Failed)?;
        back
    }

    /// Connects again behind what was told.
    async fn resume(&mut self) -> Result<(), Stop> {
        self.transcript.missed();
        self.is_connected = false;
        match self.attachment.resume(BACK).await {
            Ok(attached) => {
                self.is_connected = true;
                self.attached = attached;
                let sandbox = self.attached.status.host.sandbox.clone();
                Ok(self.in_mode(&sandbox).await?)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Starts the pod again, if its process has ended.
    async fn connected(&mut self) -> Result<(), Stop> {
        if self.is_connected {
            return Ok(());
        }
        let pods = self.pods.clone();
        let name = self.place.name.clone();
        blocking(move || pods.open(&name, None))
            .await
            .map_err(Stop::Failed)?;
        self.resume().await
    }

    /// The connection was lost. If it does not come back, what waits for the pod has failed.
    async fn lost(&mut self, error: ClientError) -> Result<(), Gone> {
        let failed = match error.may_pass() {
            true => match self.resume().await {
                Ok(()) => return Ok(()),
                Err(Stop::Failed(error)) => error,
                Err(Stop::Gone) => return Err(Gone),
            },
            false => self.pods.explain(&self.place.name, error).into(),
        };
        self.is_connected = false;
        self.waits.abort_all();
        for prompt in std::mem::take(&mut self.prompts) {
            self.out.fail(Some(&prompt.id), &failed).await?;
        }
        Ok(())
    }

    /// Another task has the session now, or nobody.
    async fn closed(&mut self) -> Result<(), Gone> {
        let message = format!(
            "a later session/load closed the session `{}`",
            self.place.name
        );
        let help = "the turn goes on; session/load tells it";
        let error = RpcError::new(FAILED, message, help);
        for prompt in std::mem::take(&mut self.prompts) {
            self.out.fail(Some(&prompt.id), &error).await?;
        }
        for request in std::mem::take(&mut self.asked).into_values() {
            self.take_back(request).await?;
        }
        Ok(())
    }
}

/// The lines of a task list as a plan.
fn plan(lines: &str) -> Value {
    let entry = |line: &str| {
        let (_, rest) = line.split_once(' ')?;
        let (status, title) = rest.split_once(": ")?;
        let status = match status {
            "active" => "in_progress",
            "done" | "dropped" => "completed",
            _ => "pending",
        };
        Some(json!({ "content": title, "priority": "medium", "status": status }))
    };
    let entries: Vec<Value> = lines.lines().filter_map(entry).collect();
    json!({ "sessionUpdate": "plan", "entries": entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_tasks_is_a_plan() {
        let plan = plan("1 done: read it\n2 active: change: it\n3 open: test it\nnot a task");
        let entries: Vec<_> = plan["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| (entry["content"].as_str(), entry["status"].as_str()))
            .collect();
        let wanted = [
            (Some("read it"), Some("completed")),
            (Some("change: it"), Some("in_progress")),
            (Some("test it"), Some("pending")),
        ];
        assert_eq!(entries, wanted);
    }
}
