//! What was handed in and is not in the log yet, and how much each feature may still hand in.

use super::events::{Alert, Event, Outbox};
use super::requests::{AlertLevel, Declined, Inbox, Line, Mail, Method, Ticket, Words};
use crate::feature::{FeatureId, FeatureRegistry, Keeper, MAX_NOTES, sanitize};
use crate::record::{FeatureNote, NotificationQueued, Record};
use crate::session::fold::State;
use llm_worker::CallId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Notifications that may wait for the model's next step.
pub(crate) const MAX_WAITING: usize = 64;

/// Alerts of one feature in one turn.
pub(crate) const MAX_ALERTS: u32 = 8;

/// How long what a feature used counts while no turn is open.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// How long a note counts.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes of an alert or a note.
pub(crate) const MAX_WORDS: usize = 512;

/// Records that may wait for a commit to ride with before they get one of their own.
pub(crate) const MAX_RIDERS: usize = 32;

/// Records that ride with one commit; the others wait for the next.
pub(crate) const MAX_RIDE: usize = 512;

/// From so many bytes on, nothing more rides with a commit: far less than what the journal takes at once.
const MAX_RIDE_BYTES: usize = 4 << 20;

/// What a record comes to that holds no state: bounded words, or a path.
const SMALL: usize = 8 * 1024;

/// The inbox and what came out of it.
pub(crate) struct Desk {
    inbox: Inbox,
    line: Line,
    keeper: Keeper,
    waiting: VecDeque<Waiting>,
    /// What each feature used of its allowance since the turn began, or in this hour while none is open.
    used: BTreeMap<FeatureId, Used>,
    used_since: Instant,
    /// Notes of each feature in this day.
    notes: BTreeMap<FeatureId, usize>,
    notes_since: Instant,
    /// The highest notification number handed out; a refused one is not given again.
    numbered: u64,
    /// Held by each notification on its way to the log.
    on_the_way: Arc<()>,
}

#[derive(Default)]
struct Used {
    notices: u32,
    alerts: u32,
}

/// A record to be written, and who is told.
struct Waiting {
    record: Record,
    /// About how many it will have.
    bytes: usize,
    ticket: Option<Box<dyn Ticket>>,
}

/// Records taken for a commit, and who is told of it.
#[derive(Default)]
pub(crate) struct Riders {
    pub(crate) records: Vec<Record>,
    pub(crate) tickets: Vec<Box<dyn Ticket>>,
}

/// What a request is taken beside.
pub(crate) struct Around<'a> {
    pub(crate) registry: &'a FeatureRegistry,
    pub(crate) state: &'a State,
    pub(crate) outbox: &'a mut Outbox,
}

/// Tells everybody who waits.
pub(crate) fn settle(tickets: Vec<Box<dyn Ticket>>, done: Result<(), &str>) {
    for ticket in tickets {
        ticket.settle(done);
    }
}

impl Desk {
    pub(crate) fn new((inbox, line): (Inbox, Line)) -> Self {
        let now = Instant::now();
        Self {
            inbox,
            line,
            keeper: Keeper::default(),
            waiting: VecDeque::new(),
            used: BTreeMap::new(),
            used_since: now,
            notes: BTreeMap::new(),
            notes_since: now,
            numbered: 0,
            on_the_way: Arc::default(),
        }
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
    pub(crate) async fn next(&mut self) -> Mail {
        self.inbox.next().await
    }

    /// A turn begins: allowances are whole again.
    pub(crate) fn turn_began(&mut self) {
        self.used.clear();
        self.used_since = Instant::now();
    }

    /// Between turns an allowance lasts an hour, and that of notes always a day.
    fn renew(&mut self, turn_open: bool) {
        if !turn_open && self.used_since.elapsed() >= HOUR {
            self.turn_began();
        }
        if self.notes_since.elapsed() >= DAY {
            self.notes.clear();
            self.notes_since = Instant::now();
        }
    }

    /// Takes what waits, for a commit: as much of it as one takes, oldest first.
    pub(crate) fn riders(&mut self) -> Riders {
        let (mut riders, mut taken) = (Riders::default(), 0);
        while riders.records.len() < MAX_RIDE && taken < MAX_RIDE_BYTES {
            let Some(Waiting { record, bytes, ticket }) = self.waiting.pop_front() else { break };
            match ticket {
                Some(ticket) if !ticket.stands() => ticket.settle(Err("what it was built on was refused")),
                ticket => {
                    taken += bytes;
                    riders.records.push(record);
                    riders.tickets.extend(ticket);
                }
            }
        }
        riders
    }

    /// How many records wait for a commit.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Nothing more is taken for the log; what was handed in and not taken up is dropped, and its askers hear of it.
    pub(crate) fn shut(&mut self) {
        self.inbox.close();
        while self.inbox.now().is_some() {}
        while !self.waiting.is_empty() {
            settle(self.riders().tickets, Err("the pod has let go"));
        }
    }

    /// The same, and the files of states are done, too; blocks while they are written.
    pub(crate) fn close(&mut self) {
        self.shut();
        self.keeper.finish();
    }

    /// Adds a record of the host's own to those that ride with the next commit.
    pub(crate) fn add(&mut self, record: impl Into<Record>) {
        self.wait(record, None);
    }

    fn wait(&mut self, record: impl Into<Record>, ticket: Option<Box<dyn Ticket>>) {
        self.waiting.push_back(Waiting { record: record.into(), bytes: SMALL, ticket });
    }

    fn allows_alert(&mut self, feature: &FeatureId) -> bool {
        let used = self.used.entry(feature.clone()).or_default();
        used.alerts = used.alerts.saturating_add(1);
        used.alerts <= MAX_ALERTS
    }

    /// What was handed in and not taken up, if anything.
    pub(crate) fn now(&mut self) -> Option<Method> {
        self.inbox.now()
    }

    /// Takes one request. Answers whether its record should be written without waiting for another commit. `runs` says
    /// which calls may still change files.
    pub(crate) fn take(&mut self, method: Method, pod: &mut Around<'_>, runs: &dyn Fn(CallId) -> bool) -> bool {
        self.renew(pod.state.turn_open);
        match method {
            Method::Changing { call, change, reply } => {
                if !runs(call) {
                    Box::new(reply).settle(Err("the call was given up; nothing was changed"));
                    return false;
                }
                self.wait(*change, Some(Box::new(reply)));
                true
            }
            Method::UpdateState { state, bytes, ticket } => {
                let waiting = Waiting { record: state.into(), bytes: bytes + SMALL, ticket: Some(ticket) };
                self.waiting.push_back(waiting);
                self.waiting.len() >= MAX_RIDERS
            }
            Method::Notify { words, reply } => self.notify(words, reply, pod),
            Method::Alert { feature, level, text } => {
                self.alert(feature, level, &text, pod);
                false
            }
            Method::Off { feature } => {
                let text = "its code never came back; it is off until the next start, and holds nothing any more";
                pod.outbox.show(Event::warning(format!("{feature}: {text}")));
                self.wait(FeatureNote { feature: feature.to_string(), text: text.to_owned() }, None);
                false
            }
            Method::Note { feature, text } => {
                let taken = self.notes.entry(feature.clone()).or_default();
                *taken += 1;
                if *taken <= MAX_NOTES {
                    let text = if *taken == MAX_NOTES { "further notes of today are dropped" } else { &text };
                    let text = sanitize(text, MAX_WORDS, pod.registry.redactor());
                    let note = FeatureNote { feature: feature.to_string(), text };
                    self.wait(note, None);
                }
                false
            }
        }
    }

    fn notify(&mut self, words: Words, reply: oneshot::Sender<Result<u64, Declined>>, pod: &Around<'_>) -> bool {
        let Words { feature, text, per_turn } = words;
        let on_the_way = Arc::strong_count(&self.on_the_way) - 1;
        let waiting = pod.state.notices.len() + on_the_way;
        let used = self.used.entry(feature.clone()).or_default();
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
        self.numbered = self.numbered.max(pod.state.notified) + 1;
        let number = self.numbered;
        let registry_generation = pod.registry.generation();
        let text = pod.registry.redactor().text(&text).into_owned();
        let on_the_way = Arc::clone(&self.on_the_way);
        let queued = NotificationQueued { number, feature: feature.to_string(), registry_generation, text };
        self.wait(queued, Some(Box::new(Numbered { number, reply, _on_the_way: on_the_way })));
        true
    }

    fn alert(&mut self, feature: FeatureId, level: AlertLevel, text: &str, pod: &mut Around<'_>) {
        if self.allows_alert(&feature) {
            let text = sanitize(text, MAX_WORDS, pod.registry.redactor());
            pod.outbox.show(Event::Alert(Alert { level, from: Some(feature), text }));
        } else if self.used.get(&feature).is_some_and(|used| used.alerts == MAX_ALERTS + 1) {
            let text = "further alerts of this turn are dropped".to_owned();
            pod.outbox.show(Event::Alert(Alert { level: AlertLevel::Warning, from: Some(feature), text }));
        }
    }
}

/// Whoever waits for a notification.
struct Numbered {
    number: u64,
    reply: oneshot::Sender<Result<u64, Declined>>,
    _on_the_way: Arc<()>,
}

impl Ticket for Numbered {
    fn stands(&self) -> bool {
        true
    }

    fn settle(self: Box<Self>, done: Result<(), &str>) {
        let Self { number, reply, _on_the_way } = *self;
        let done = done.map(|()| number).map_err(|why| Declined::Refused(why.to_owned()));
        drop(reply.send(done));
    }
}
