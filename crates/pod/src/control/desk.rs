//! What was handed in and is not in the log yet, and how much each feature may still hand in.

use super::inbox::{AlertLevel, Declined, Inbox, Line, Mail, Method, Ticket, Words};
use super::outbox::{Alert, Event};
use super::pod::Core;
use crate::feature::{FeatureId, Keeper, MAX_NOTES, said};
use crate::session::record::{FeatureNote, NotificationQueued, Record};
use llm_worker::CallId;
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// Notifications that may wait for the model's next step.
pub(super) const MAX_WAITING: usize = 64;

/// Alerts of one feature in one turn.
pub(super) const MAX_ALERTS: u32 = 8;

/// Bytes of an alert or a note.
pub(super) const MAX_WORDS: usize = 512;

/// Records that may wait for a commit to ride with before they get one of their own.
const MAX_RIDERS: usize = 32;

/// The inbox and what came out of it.
pub(crate) struct Desk {
    inbox: Inbox,
    line: Line,
    keeper: Keeper,
    waiting: Vec<Waiting>,
    /// What each feature used of this turn's allowance.
    used: BTreeMap<FeatureId, Used>,
    /// Notes of each feature since this start.
    notes: BTreeMap<FeatureId, usize>,
    /// The highest notification number handed out; a refused one is not given again.
    numbered: u64,
}

#[derive(Default)]
struct Used {
    notices: u32,
    alerts: u32,
}

/// A record to be written, and who is told.
struct Waiting {
    record: Record,
    ticket: Option<Box<dyn Ticket>>,
}

/// Records taken for a commit, and who is told of it.
#[derive(Default)]
pub(crate) struct Riders {
    pub(crate) records: Vec<Record>,
    pub(crate) tickets: Vec<Box<dyn Ticket>>,
}

/// Tells everybody who waits.
pub(super) fn settle(tickets: Vec<Box<dyn Ticket>>, done: Result<(), &str>) {
    for ticket in tickets {
        ticket.settle(done);
    }
}

impl Desk {
    pub(crate) fn new((inbox, line): (Inbox, Line)) -> Self {
        let (used, notes) = (BTreeMap::new(), BTreeMap::new());
        Self { inbox, line, keeper: Keeper::default(), waiting: Vec::new(), used, notes, numbered: 0 }
    }

    /// Where to hand things in.
    pub(crate) fn line(&self) -> Line {
        self.line.clone()
    }

    /// The thread that writes state files.
    pub(crate) fn keeper(&self) -> Keeper {
        self.keeper.clone()
    }

    /// What comes next. Cancel-safe.
    pub(super) async fn next(&mut self) -> Mail {
        self.inbox.next().await
    }

    /// A turn begins: allowances are whole again.
    pub(super) fn turn_began(&mut self) {
        self.used.clear();
    }

    /// Takes what waits, for a commit.
    pub(super) fn riders(&mut self) -> Riders {
        let mut riders = Riders::default();
        for Waiting { record, ticket } in std::mem::take(&mut self.waiting) {
            match ticket {
                Some(ticket) if !ticket.stands() => ticket.settle(Err("what it was built on was refused")),
                ticket => {
                    riders.records.push(record);
                    riders.tickets.extend(ticket);
                }
            }
        }
        riders
    }

    /// Nothing more is taken for the log; what was handed in and not taken up is dropped, and its askers hear of it.
    pub(super) fn shut(&mut self) {
        self.inbox.close();
        while self.inbox.now().is_some() {}
        settle(self.riders().tickets, Err("the pod has let go"));
    }

    /// The same, and the files of states are done, too; blocks while they are written.
    pub(crate) fn close(&mut self) {
        self.shut();
        self.keeper.finish();
    }

    fn wait(&mut self, record: impl Into<Record>, ticket: Option<Box<dyn Ticket>>) {
        self.waiting.push(Waiting { record: record.into(), ticket });
    }

    fn allows_alert(&mut self, feature: &FeatureId) -> bool {
        let used = self.used.entry(feature.clone()).or_default();
        used.alerts = used.alerts.saturating_add(1);
        used.alerts <= MAX_ALERTS
    }
}

impl Core {
    /// Takes everything handed in so far. Answers whether somebody waits for it. `runs` says which calls may still
    /// change files.
    pub(super) fn collect(&mut self, runs: &dyn Fn(CallId) -> bool) -> bool {
        let mut urgent = false;
        while let Some(method) = self.desk.inbox.now() {
            urgent |= self.asked(method, runs);
        }
        urgent
    }

    /// Takes one request. Answers whether its record should be written without waiting for another commit.
    pub(super) fn asked(&mut self, method: Method, runs: &dyn Fn(CallId) -> bool) -> bool {
        match method {
            Method::FileChanging { change, reply } => {
                if !change.call.is_some_and(runs) {
                    Box::new(reply).settle(Err("the call was given up; nothing was changed"));
                    return false;
                }
                self.desk.wait(change, Some(Box::new(reply)));
                true
            }
            Method::UpdateState { state, ticket } => {
                self.desk.wait(state, Some(ticket));
                self.desk.waiting.len() >= MAX_RIDERS
            }
            Method::Notify { words, reply } => self.notify(words, reply),
            Method::Alert { feature, level, text } => {
                self.alert(feature, level, &text);
                false
            }
            Method::Off { feature } => {
                let text = "its code never came back; it is off until the next start, and holds nothing any more";
                self.outbox.show(Event::warning(format!("{feature}: {text}")));
                self.desk.wait(FeatureNote { feature: feature.to_string(), text: text.to_owned() }, None);
                false
            }
            Method::Note { feature, text } => {
                let taken = self.desk.notes.entry(feature.clone()).or_default();
                *taken += 1;
                if *taken <= MAX_NOTES {
                    let text = if *taken == MAX_NOTES { "further notes of this start are dropped" } else { &text };
                    let text = said(text, MAX_WORDS, self.registry.redactor());
                    let note = FeatureNote { feature: feature.to_string(), text };
                    self.desk.wait(note, None);
                }
                false
            }
        }
    }

    fn notify(&mut self, words: Words, reply: oneshot::Sender<Result<u64, Declined>>) -> bool {
        let Words { feature, text, per_turn } = words;
        let waiting = self.state.notices.len() + self.desk.waiting.len();
        let used = self.desk.used.entry(feature.clone()).or_default();
        let declined = if used.notices >= per_turn {
            Some(format!("{feature} may notify {per_turn} times in a turn and did"))
        } else if waiting >= MAX_WAITING {
            Some(format!("{waiting} notifications wait for the model's next step already"))
        } else {
            None
        };
        if let Some(why) = declined {
            drop(reply.send(Err(Declined::TooMany(why))));
            return false;
        }
        used.notices += 1;
        self.desk.numbered = self.desk.numbered.max(self.state.notified) + 1;
        let number = self.desk.numbered;
        let generation = self.registry.generation();
        let text = self.registry.redactor().text(&text).into_owned();
        let queued = NotificationQueued { number, feature: feature.to_string(), generation, text };
        self.desk.wait(queued, Some(Box::new(Numbered { number, reply })));
        true
    }

    fn alert(&mut self, feature: FeatureId, level: AlertLevel, text: &str) {
        if self.desk.allows_alert(&feature) {
            let text = said(text, MAX_WORDS, self.registry.redactor());
            self.outbox.show(Event::Alert(Alert { level, from: Some(feature), text }));
        } else if self.desk.used.get(&feature).is_some_and(|used| used.alerts == MAX_ALERTS + 1) {
            let text = "further alerts of this turn are dropped".to_owned();
            self.outbox.show(Event::Alert(Alert { level: AlertLevel::Warning, from: Some(feature), text }));
        }
    }
}

/// Whoever waits for a notification.
struct Numbered {
    number: u64,
    reply: oneshot::Sender<Result<u64, Declined>>,
}

impl Ticket for Numbered {
    fn stands(&self) -> bool {
        true
    }

    fn settle(self: Box<Self>, done: Result<(), &str>) {
        let Self { number, reply } = *self;
        let done = done.map(|()| number).map_err(|why| Declined::Refused(why.to_owned()));
        drop(reply.send(done));
    }
}
