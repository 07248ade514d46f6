//! What an attached person sees: lines of the transcript as `yoi log` has them, and notes in brackets.

use crate::commands::live::{WHY, approval_line, model_wait};
use crate::commands::log::{MARGIN, Transcript};
use crate::show::out;
use crate::show::transcript;
use client::model::is_context_full;
use pod::record::Record;
use protocol::event::{AlertEvent, DeltaEvent, DeltaPart};
use protocol::method::Attached;
use protocol::record::{RecordHeader, RecordLine};
use protocol::status::{HoldStatus, Status};
use tui::transcript as words;

pub(super) const COMMAND: &str = "yoi attach";

/// Records that are asked for at the start, and lines of the transcript that are printed of them.
pub(super) const PAGE: u32 = 200;
const SHOWN: usize = 20;

/// Holds that follow from the end of a turn; the others begin with a record.
const UNRECORDED: [&str; 3] = ["cancel", "budget", "bug"];

pub(super) struct Screen {
    name: String,
    transcript: Transcript,
    /// The newest that was told.
    status: Status,
    /// Why a request was sent again, as it was told last.
    retried: Option<String>,
    /// The record that began the newest turn, and that of the newest one that changed a file.
    turn: Option<u64>,
    changed_from: Option<u64>,
}

impl Screen {
    /// Prints the newest part of the transcript and what the pod does.
    pub(super) fn begin(name: &str, attached: &Attached) -> Self {
        let status = attached.status.clone();
        let mut transcript = Transcript::new(false);
        for waiting in &status.queued {
            transcript.accepted_before(waiting.input, &waiting.text);
        }
        let mut screen = Self {
            name: name.to_owned(),
            transcript,
            status,
            retried: None,
            turn: None,
            changed_from: None,
        };
        let (first, lines) = attached
            .page
            .as_ref()
            .map_or((1, &[][..]), |page| (page.first, &page.records[..]));
        let mut texts: Vec<String> = lines.iter().filter_map(|line| screen.text(line)).collect();
        let left_out = texts.len().saturating_sub(SHOWN);
        if first > 1 || left_out > 0 {
            note(&format!("`yoi log {name}` shows the earlier part"));
        }
        texts.drain(..left_out);
        texts
            .iter()
            .for_each(|text| transcript::print(text, MARGIN));
        let state = words::state(screen.status.state);
        note(&format!(
            "attached to {name}, which is {state}; /help lists the commands"
        ));
        if let Some(held) = &screen.status.held {
            note(&held_text(name, &screen.status, held));
        }
        for approval in &screen.status.approvals {
            let id = approval.approval;
            note(&format!(
                "{name} waits for {}; `yoi approve {name} {id}` allows the call",
                approval_line(approval, WHY)
            ));
        }
        screen
    }

    /// Whether the pod waits for a person.
    pub(super) fn asks(&self) -> bool {
        !self.status.approvals.is_empty()
    }

    /// The record that began the newest turn that changed a file, as far as it was shown.
    pub(super) fn changed_from(&self) -> Option<u64> {
        self.changed_from
    }

    pub(super) fn record(&mut self, line: &RecordLine) {
        self.text(line)
            .iter()
            .for_each(|text| transcript::print(text, MARGIN));
    }

    /// What a record says, if it says something.
    fn text(&mut self, line: &RecordLine) -> Option<String> {
        let RecordHeader {
            seq,
            time_us,
            kind,
            version,
        } = line.header().ok()?;
        let record = Record::decode(&kind, version, line.as_str().as_bytes());
        match &record {
            Ok(Record::TurnStarted(_)) => self.turn = Some(seq),
            Ok(Record::FileChanged(_)) => self.changed_from = self.turn,
            Ok(_) | Err(_) => {}
        }
        match record {
            Ok(Record::BackgroundTask(run)) if !run.state.is_failure() => None,
            Ok(record) => self.transcript.numbered(seq, &record, time_us),
            Err(error) => Some(format!("[record {seq} is not shown: {error}]")),
        }
    }

    pub(super) fn alert(&self, alert: &AlertEvent) {
        let text = words::alert(alert.from.as_deref(), &alert.text);
        out::wrapped(&format!("! {text}"));
    }

    /// Tells that a request is sent again. The other deltas are parts of an answer, whose records follow.
    pub(super) fn delta(&mut self, delta: &DeltaEvent) {
        if let DeltaPart::Retrying {
            attempt,
            delay_ms,
            why,
        } = &delta.part
        {
            self.retried = Some(why.clone());
            note(&words::retrying(why, *attempt, *delay_ms));
        }
    }

    /// Tells what no record does: holds that follow from the end of a turn, and what the pod waits for.
    pub(super) fn status(&mut self, now: Status) {
        let before = std::mem::replace(&mut self.status, now);
        let now = &self.status;
        let told = |held: &&HoldStatus| {
            before.held.as_ref() == Some(*held) || !UNRECORDED.contains(&held.cause.as_str())
        };
        if let Some(held) = now.held.as_ref().filter(|held| !told(held)) {
            note(&held_text(&self.name, now, held));
        }
        if let Some(disk) = now
            .disk
            .as_ref()
            .filter(|disk| before.disk.as_ref() != Some(disk))
        {
            note(&format!(
                "the disk refuses writes: {disk}; yoi retries until the write succeeds"
            ));
        }
        let reason = |status: &Status| status.model_wait.as_ref().map(|wait| wait.reason.clone());
        let is_told = reason(now) == reason(&before) || reason(now) == self.retried;
        if let Some(wait) = now.model_wait.as_ref().filter(|_| !is_told) {
            note(&format!("{} waits {}", self.name, model_wait(wait)));
        }
    }

    /// Says how the connection was made again.
    pub(super) fn resumed(&mut self, attached: &Attached) {
        let again = attached.status.host.pid == self.status.host.pid && self.status.host.pid != 0;
        note(&match again {
            true => "connected again".to_owned(),
            false => format!(
                "{} was started again (process {})",
                self.name, attached.status.host.pid
            ),
        });
        self.status(attached.status.clone());
    }
}

fn held_text(name: &str, status: &Status, held: &HoldStatus) -> String {
    let help = if is_context_full(status) {
        format!(
            "; `/compact turns` drops the oldest turns, `/resume` tries again, `yoi stop {name}` ends the pod"
        )
    } else {
        String::new()
    };
    format!("{name} is held: {}{help}", held.reason)
}

pub(super) fn detached(name: &str) -> String {
    format!("detached: {name} keeps running")
}

pub(super) fn ended(name: &str) -> String {
    format!("{name} has ended; `yoi start {name}` starts it again")
}

/// A line that is no part of the transcript.
pub(super) fn note(text: &str) {
    out::wrapped(&format!("[{text}]"));
}

#[cfg(test)]
mod tests;
