//! One model of a pod, folded from what the pod tells an attached client. Pure: recorded events give the same model
//! again. Its status equals the pod's own whenever the pod is quiet.
//!
//! A status has a number: the newest record that it knows. Records up to it change what follows from records alone:
//! the transcript, open calls, the answer. Records after it also change the status.

mod live;
mod outputs;
mod progress;
mod tally;
mod transcript;

pub use live::{LiveAnswer, RetryNotice};
pub use outputs::{LiveOutput, MAX_OUTPUT, MAX_OUTPUTS, Outputs};
pub use progress::UnfinishedCall;
pub use tally::{digest, drops_turns, is_context_full};
pub use transcript::{MAX_ENTRIES, MAX_ENTRY_BYTES, TranscriptEntry};

use live::Live;
use progress::Progress;
use protocol::event::{AlertEvent, DeltaEvent, DeltaPart, Event};
use protocol::method::{Attached, Draft};
use protocol::record::{RecordBody, RecordLine};
use protocol::status::Status;
use std::collections::VecDeque;
use transcript::Transcript;

/// Alerts that are kept, and the characters of each.
pub const MAX_ALERTS: usize = 16;
const MAX_ALERT: usize = 1000;

/// What a client knows of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodModel {
    status: Status,
    progress: Progress,
    live: Live,
    outputs: Outputs,
    transcript: Transcript,
    alerts: VecDeque<AlertEvent>,
    draft: Draft,
}

impl PodModel {
    /// The model behind the first answer to `attach`.
    #[must_use]
    pub fn new(attached: &Attached) -> Self {
        let mut model = Self::of(attached.status.clone());
        model.draft = attached.draft.clone();
        if let Some(page) = &attached.page {
            model.transcript.begin_at(page.first);
            page.records.iter().for_each(|line| model.record(line));
        }
        model.progress.add_waiting(&attached.status.approvals);
        model
    }

    /// The model of a pod without a record, into which a whole log can be folded.
    #[must_use]
    pub fn before_any_record(pod: &str) -> Self {
        Self::of(tally::before_any_record(pod))
    }

    fn of(status: Status) -> Self {
        Self {
            status,
            progress: Progress::default(),
            live: Live::default(),
            outputs: Outputs::default(),
            transcript: Transcript::default(),
            alerts: VecDeque::new(),
            draft: Draft::default(),
        }
    }

    /// Goes on behind a later answer to `attach`, whose cursor was the newest record of this model. What a process
    /// that has ended had only in memory is gone.
    pub fn resume(&mut self, attached: &Attached) {
        self.status = tally::rebased(&self.status, &attached.status);
        self.draft = attached.draft.clone();
        self.live.lost();
        self.outputs.clear();
    }

    /// Folds an event. A record that was seen before changes nothing, and neither does an event of a later version.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Record(line) => self.record(line),
            Event::Delta(DeltaEvent {
                part: DeltaPart::Output { call, text, anew },
                ..
            }) => {
                self.outputs.take(call, text, *anew);
            }
            Event::Delta(delta) => self.live.take(delta),
            Event::Lagged(_) => self.live.missed(),
            Event::Alert(alert) => {
                let text = alert.text.chars().take(MAX_ALERT).collect();
                self.alerts.push_back(AlertEvent {
                    text,
                    ..alert.clone()
                });
                self.alerts
                    .drain(..self.alerts.len().saturating_sub(MAX_ALERTS));
            }
            Event::Status(status) => self.status = tally::rebased(&self.status, status),
            Event::Draft(draft) if draft.revision >= self.draft.revision => {
                self.draft = draft.clone()
            }
            Event::Draft(_) | Event::SystemItem(_) | Event::Ended(_) | Event::Other { .. } => {}
        }
    }

    fn record(&mut self, line: &RecordLine) {
        let Ok(seq) = line.seq() else { return };
        if !self.transcript.push(seq, line) {
            return;
        }
        // What a kind says that its mirror does not fit is for a later program.
        let Ok(record) = line.read() else { return };
        if seq > self.status.seq {
            tally::fold(&mut self.status, &record, self.progress.crashes());
        }
        self.progress.fold(&record, &self.status.approvals);
        self.live.fold(&record.body);
        match &record.body {
            RecordBody::ToolFinished(finished) => self.outputs.forget(&finished.call),
            RecordBody::TurnFinished(_) => self.outputs.clear(),
            _ => {}
        }
    }

    /// The pod's status, as far as records and the newest status tell. `state` says `working` while a turn waits, until
    /// the pod says otherwise.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The calls without a result, in order of their numbers.
    pub fn unfinished_calls(&self) -> impl Iterator<Item = &UnfinishedCall> {
        self.progress.calls()
    }

    /// The newest answer text of the newest turn, as far as its records were seen.
    #[must_use]
    pub fn last_answer(&self) -> Option<&str> {
        self.progress.last_answer()
    }

    /// The part of the answer under way that arrived.
    #[must_use]
    pub fn live(&self) -> Option<&LiveAnswer> {
        self.live.answer()
    }

    /// The newest output of the running calls, as far as it came.
    #[must_use]
    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// The newest alerts, oldest first.
    pub fn alerts(&self) -> impl Iterator<Item = &AlertEvent> {
        self.alerts.iter()
    }

    /// The text that a person is writing.
    #[must_use]
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// The newest records, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &TranscriptEntry> {
        self.transcript.entries()
    }

    /// The newest record that was seen; 0 if none was.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.transcript.seen()
    }

    /// The cursor for the page before the oldest of [`Self::entries`]; none if there is no such page.
    #[must_use]
    pub fn before(&self) -> Option<u64> {
        Some(
            self.transcript
                .before()
                .unwrap_or(self.status.seq.saturating_add(1)),
        )
        .filter(|before| *before > 1)
    }
}
