//! What one attached client is told: every record after its cursor in order, then status, draft, alerts and deltas. What
//! it does not take in time is dropped, except for records, which it gets from the files.

use super::convert;
use super::hub::{Attached, until};
use super::out::Out;
use super::requests::records;
use super::tail::{Line, LineKind, Older};
use crate::control::Event as PodEvent;
use protocol::error::{Error, ErrorKind};
use protocol::event::{
    AlertEvent, DeltaEvent, DeltaPart, Event, EventKind, Lagged, SystemItemAdded,
};
use protocol::message::{event_line, record_line};
use protocol::record::{RecordBody, RecordView};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

/// Deltas are sent this long after the first of them, merged.
const MERGED: Duration = Duration::from_millis(16);

/// Bytes of deltas that wait.
const MAX_DELTAS: usize = 64 * 1024;

/// Alerts that wait.
const MAX_ALERTS: usize = 64;

/// Bytes of records that are handed out at a time.
const PIECE: usize = 64 * 1024;

/// One client's cursor and what waits for it.
pub(super) struct Feed {
    from: Attached,
    without: Vec<EventKind>,
    /// The next record.
    next: u64,
    older: Older,
    deltas: Vec<DeltaEvent>,
    /// Bytes of their texts.
    bytes: usize,
    send_at: Option<Instant>,
    alerts: Vec<AlertEvent>,
    lost: u64,
    /// The newest request among the records that were sent.
    request: u64,
    /// Deltas up to this request are of no use.
    answered: u64,
}

impl Feed {
    pub(super) fn new(from: Attached, declined: Vec<EventKind>, cursor: u64) -> Self {
        // Each once: it is looked through at every event.
        let mut without = Vec::new();
        for kind in declined {
            if !without.contains(&kind) {
                without.push(kind);
            }
        }
        Self {
            from,
            without,
            next: cursor + 1,
            older: Older::default(),
            deltas: Vec::new(),
            bytes: 0,
            send_at: None,
            alerts: Vec::new(),
            lost: 0,
            request: 0,
            answered: 0,
        }
    }

    /// Whether every record was handed out.
    pub(super) fn is_done(&self) -> bool {
        self.next > *self.from.head.borrow()
    }

    /// Waits until there is something to hand out. Cancel-safe.
    pub(super) async fn changed(&mut self) {
        if !self.is_done() {
            return;
        }
        // While something is about to be sent, calls that write wake nobody.
        let follows = self.send_at.is_none() && self.wants(EventKind::Delta);
        let event = tokio::select! {
            moved = self.from.head.changed() => {
                // The hub lives as long as this.
                drop(moved);
                return;
            }
            _changed = self.from.status.changed() => return self.from.status.mark_changed(),
            _changed = self.from.draft.changed() => return self.from.draft.mark_changed(),
            () = until(self.send_at) => return,
            () = self.from.outputs.changed(), if follows => {
                self.send_at = Some(Instant::now() + MERGED);
                return;
            }
            event = self.from.transient.recv() => event,
        };
        match event {
            Ok(PodEvent::Delta {
                turn,
                request,
                delta,
            }) => {
                self.delta(DeltaEvent {
                    turn,
                    request,
                    part: delta,
                });
            }
            Ok(PodEvent::Alert(alert)) if self.wants(EventKind::Alert) => {
                if self.alerts.len() < MAX_ALERTS {
                    self.alerts.push(convert::alert(alert));
                }
                self.send_at.get_or_insert_with(Instant::now);
            }
            Ok(PodEvent::Record { .. } | PodEvent::Suspended { .. } | PodEvent::Alert(_)) => {}
            Err(RecvError::Lagged(lost)) => self.lose(lost),
            // The pod has ended; the records that are left are sent.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    fn delta(&mut self, delta: DeltaEvent) {
        if !self.wants(EventKind::Delta) || delta.request <= self.answered {
            return;
        }
        let bytes = match &delta.part {
            DeltaPart::Text { text } | DeltaPart::Reasoning { text } => text.len(),
            DeltaPart::CallStarted { .. }
            | DeltaPart::Retrying { .. }
            | DeltaPart::Output { .. }
            | DeltaPart::Unknown => size_of::<DeltaEvent>(),
        };
        if self.bytes + bytes > MAX_DELTAS {
            return self.lose(1);
        }
        self.bytes += bytes;
        let DeltaEvent {
            turn,
            request,
            mut part,
        } = delta;
        if let Some(last) = self
            .deltas
            .last_mut()
            .filter(|last| last.request == request)
        {
            part = match last.part.append(part) {
                Ok(()) => return,
                Err(part) => part,
            };
        }
        self.deltas.push(DeltaEvent {
            turn,
            request,
            part,
        });
        self.send_at.get_or_insert_with(|| Instant::now() + MERGED);
    }

    fn lose(&mut self, deltas: u64) {
        if self.wants(EventKind::Delta) {
            self.lost += deltas;
            self.send_at.get_or_insert_with(|| Instant::now() + MERGED);
        }
    }

    fn wants(&self, kind: EventKind) -> bool {
        !self.without.contains(&kind)
    }

    /// Hands out what there is, up to a piece of records.
    ///
    /// # Errors
    /// The records cannot be read.
    pub(super) fn fill(&mut self, out: &mut Out) -> Result<(), Error> {
        let head = *self.from.head.borrow_and_update();
        if self.next <= head {
            let lines = records(&self.from.hub, &mut self.older, self.next, head, PIECE)?;
            if lines.is_empty() {
                let text = format!("the journal has no record {}", self.next);
                return Err(Error::new(ErrorKind::Internal, text));
            }
            for line in lines {
                self.next = line.seq + 1;
                self.record(&line, out);
            }
            if self.from.outputs.waits() {
                self.send_at.get_or_insert_with(|| Instant::now() + MERGED);
            }
        }
        if self.from.status.has_changed().unwrap_or(false) {
            let status = self.from.status.borrow_and_update().clone();
            if let Some(status) = status.filter(|_| self.wants(EventKind::Status)) {
                push(out, &Event::Status(Box::new(status.as_ref().clone())));
            }
        }
        if self.from.draft.has_changed().unwrap_or(false) {
            let draft = self.from.draft.borrow_and_update().clone();
            if self.wants(EventKind::Draft) {
                push(out, &Event::Draft(draft));
            }
        }
        if self.send_at.is_some_and(|at| at <= Instant::now()) {
            self.send_transient(out);
        }
        Ok(())
    }

    fn record(&mut self, line: &Line, out: &mut Out) {
        match line.kind {
            LineKind::Hidden => return,
            LineKind::Request(number) => self.request = number,
            LineKind::Answered => {
                self.answered = self.request;
                self.deltas.retain(|delta| delta.request > self.answered);
            }
            LineKind::SystemItem | LineKind::Other => {}
        }
        if self.wants(EventKind::Record) {
            out.push(&record_line(&line.text));
        } else if line.kind == LineKind::SystemItem
            && self.wants(EventKind::SystemItem)
            && let Ok(RecordView {
                seq,
                body: RecordBody::SystemItem(item),
                ..
            }) = RecordView::read(&line.text)
        {
            push(out, &Event::SystemItem(SystemItemAdded { seq, item }));
        }
    }

    fn send_transient(&mut self, out: &mut Out) {
        (self.send_at, self.bytes) = (None, 0);
        if self.lost > 0 {
            push(
                out,
                &Event::Lagged(Lagged {
                    deltas: std::mem::take(&mut self.lost),
                }),
            );
        }
        self.alerts
            .drain(..)
            .for_each(|alert| push(out, &Event::Alert(alert)));
        self.deltas
            .drain(..)
            .for_each(|delta| push(out, &Event::Delta(delta)));
        if self.wants(EventKind::Delta) {
            let parts = self.from.outputs.take(self.next.saturating_sub(1));
            parts
                .into_iter()
                .for_each(|part| push(out, &Event::Delta(convert::output(part))));
        }
    }
}

fn push(out: &mut Out, event: &Event) {
    // These types are always JSON.
    if let Ok(line) = event_line(event) {
        out.push(&line);
    }
}
