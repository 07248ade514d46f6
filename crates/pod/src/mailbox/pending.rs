//! Records that wait for a commit, and how much each feature may still notify, alert and note.

use super::events::{Alert, Event, Outbox};
use super::keyed::{NotificationWaiter, NumberReply, UncommittedKeys};
use super::requests::{
    CommitWaiter, Declined, DriverRequest, JobRequest, Mailbox, MailboxSender, Notification,
    TaskRequest, Wakeup,
};
use crate::feature::{FeatureId, FeatureRegistry, Keeper, MAX_NOTES, ServiceEvent, sanitize};
use crate::record::{FeatureNote, NotificationQueued, Record};
use crate::session::fold::SessionState;
use llm_worker::CallId;
use protocol::event::AlertLevel;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Most notifications of all features that wait for the next model request.
pub(crate) const MAX_WAITING: usize = 64;

/// Most alerts of one feature in one turn.
pub(crate) const MAX_ALERTS: u32 = 8;

/// Turns that notifications of one feature, and of all, may begin in an hour.
pub(crate) const MAX_WAKES: u32 = 12;
const MAX_ALL_WAKES: u32 = 60;

/// Between turns the allowances are renewed after this time.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// The allowance of notes is renewed after this time.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Most bytes of an alert or a note.
pub(crate) const MAX_MESSAGE: usize = 512;

/// At this many waiting records they get a commit of their own; fewer wait for the next one.
pub(crate) const MAX_UNCOMMITTED: usize = 32;

/// Most records piggybacked on one commit; the others wait for the next.
pub(crate) const MAX_PIGGYBACK: usize = 512;

/// Nothing is added to a commit that has this many piggybacked bytes; far below what the journal accepts in one batch.
const MAX_PIGGYBACK_BYTES: usize = 4 << 20;

/// The assumed size of a record without state: a bounded text or a path.
const SMALL: usize = 8 * 1024;

/// The mailbox, and the records made from its requests that are not in a commit yet.
pub(crate) struct Pending {
    mailbox: Mailbox,
    sender: MailboxSender,
    keeper: Keeper,
    waiting: VecDeque<PendingRecord>,
    /// By feature, since the start of the turn, or of this hour while no turn is open.
    used: BTreeMap<Option<FeatureId>, UsedAllowance>,
    used_since: Instant,
    /// By feature, in this day.
    notes: BTreeMap<FeatureId, usize>,
    notes_since: Instant,
    /// Events of services; at most those that features declare.
    service_events: BTreeSet<ServiceEvent>,
    /// Jobs that features asked for, oldest first; the actor takes them at once.
    job_requests: VecDeque<Box<JobRequest>>,
    /// By feature, in this hour.
    wakes: BTreeMap<Option<FeatureId>, u32>,
    wakes_since: Instant,
    /// The highest notification number given; the number of a refused one is not reused.
    numbered: u64,
    keys: UncommittedKeys,
    /// One clone is held by each notification that waits for its commit.
    in_flight: Arc<()>,
}

#[derive(Default)]
struct UsedAllowance {
    notices: u32,
    alerts: u32,
}

/// A record that waits for a commit.
struct PendingRecord {
    record: Record,
    /// An estimate.
    bytes: usize,
    waiter: Option<Box<dyn CommitWaiter>>,
}

/// Records piggybacked on a commit, and the callers that wait for them.
#[derive(Default)]
pub(crate) struct Piggybacked {
    pub(crate) records: Vec<Record>,
    pub(crate) waiters: Vec<Box<dyn CommitWaiter>>,
}

/// The parts of the pod that handling a request needs.
pub(crate) struct RequestContext<'a> {
    pub(crate) registry: &'a FeatureRegistry,
    pub(crate) state: &'a SessionState,
    pub(crate) outbox: &'a mut Outbox,
}

/// Resolves every waiter with the same result.
pub(crate) fn resolve_all(waiters: Vec<Box<dyn CommitWaiter>>, done: Result<(), &str>) {
    for waiter in waiters {
        waiter.resolve(done);
    }
}

impl Pending {
    pub(crate) fn new((mailbox, sender): (Mailbox, MailboxSender)) -> Self {
        let now = Instant::now();
        Self {
            mailbox,
            sender,
            keeper: Keeper::default(),
            waiting: VecDeque::new(),
            used: BTreeMap::new(),
            used_since: now,
            notes: BTreeMap::new(),
            notes_since: now,
            service_events: BTreeSet::new(),
            job_requests: VecDeque::new(),
            wakes: BTreeMap::new(),
            wakes_since: now,
            numbered: 0,
            keys: UncommittedKeys::default(),
            in_flight: Arc::default(),
        }
    }

    /// The sending end of the mailbox.
    pub(crate) fn sender(&self) -> MailboxSender {
        self.sender.clone()
    }

    /// The thread that writes state files.
    pub(crate) fn keeper(&self) -> Keeper {
        self.keeper.clone()
    }

    /// The next event of the mailbox. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Wakeup {
        self.mailbox.next().await
    }

    /// Renews allowances at the start of a turn.
    pub(crate) fn turn_began(&mut self) {
        self.used.clear();
        self.used_since = Instant::now();
    }

    /// Renews allowances: every hour between turns, and that of notes every day.
    fn renew(&mut self, turn_open: bool) {
        if !turn_open && self.used_since.elapsed() >= HOUR {
            self.turn_began();
        }
        if self.wakes_since.elapsed() >= HOUR {
            self.wakes.clear();
            self.wakes_since = Instant::now();
        }
        if self.notes_since.elapsed() >= DAY {
            self.notes.clear();
            self.notes_since = Instant::now();
        }
    }

    /// Takes the waiting records for the next commit, oldest first, up to its bounds.
    pub(crate) fn piggybacked(&mut self) -> Piggybacked {
        let mut piggybacked = Piggybacked::default();
        let mut taken = 0;
        while piggybacked.records.len() < MAX_PIGGYBACK && taken < MAX_PIGGYBACK_BYTES {
            let Some(PendingRecord {
                record,
                bytes,
                waiter,
            }) = self.waiting.pop_front()
            else {
                break;
            };
            match waiter {
                Some(waiter) if !waiter.is_valid() => {
                    waiter.resolve(Err("an earlier change of this state could not be stored"))
                }
                waiter => {
                    taken += bytes;
                    piggybacked.records.push(record);
                    piggybacked.waiters.extend(waiter);
                }
            }
        }
        piggybacked
    }

    /// How many records wait for a commit.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Refuses further requests, and drops requests and records that wait; their callers get an error.
    pub(crate) fn shut(&mut self) {
        self.mailbox.close();
        while self.mailbox.now().is_some() {}
        while !self.waiting.is_empty() {
            resolve_all(self.piggybacked().waiters, Err("the pod has ended"));
        }
    }

    /// As [`Self::shut`], and finishes the state files; blocks while they are written.
    pub(crate) fn close(&mut self) {
        self.shut();
        self.keeper.finish();
    }

    /// Adds a record of the host to those of the next commit.
    pub(crate) fn add(&mut self, record: impl Into<Record>) {
        self.wait(record, None);
    }

    /// Adds a record of the host to those of the next commit; the receiver learns when it is durable.
    pub(crate) fn add_awaited(
        &mut self,
        record: impl Into<Record>,
    ) -> oneshot::Receiver<Result<(), String>> {
        let (reply, answer) = oneshot::channel();
        self.wait(record, Some(Box::new(reply)));
        answer
    }

    fn wait(&mut self, record: impl Into<Record>, waiter: Option<Box<dyn CommitWaiter>>) {
        self.waiting.push_back(PendingRecord {
            record: record.into(),
            bytes: SMALL,
            waiter,
        });
    }

    fn allows_alert(&mut self, feature: &FeatureId) -> bool {
        let used = self.used.entry(Some(feature.clone())).or_default();
        used.alerts = used.alerts.saturating_add(1);
        used.alerts <= MAX_ALERTS
    }

    /// The next request of the mailbox, without waiting.
    pub(crate) fn now(&mut self) -> Option<DriverRequest> {
        self.mailbox.now()
    }

    /// Handles one request. Returns whether its record needs a commit of its own now. `runs` tells whether a call still
    /// runs and so may change files.
    pub(crate) fn take(
        &mut self,
        request: DriverRequest,
        pod: &mut RequestContext<'_>,
        runs: &dyn Fn(CallId) -> bool,
    ) -> bool {
        self.renew(pod.state.turn_open);
        match request {
            DriverRequest::AnnounceChange {
                call,
                change,
                reply,
            } => {
                if !runs(call) {
                    Box::new(reply).resolve(Err("the call has ended; nothing was changed"));
                    return false;
                }
                self.wait(*change, Some(Box::new(reply)));
                true
            }
            DriverRequest::UpdateState {
                state,
                bytes,
                waiter,
            } => {
                let waiting = PendingRecord {
                    record: state.into(),
                    bytes: bytes + SMALL,
                    waiter: Some(waiter),
                };
                self.waiting.push_back(waiting);
                self.waiting.len() >= MAX_UNCOMMITTED
            }
            DriverRequest::Notify {
                notification,
                reply,
            } => self.notify(notification, reply, pod),
            DriverRequest::Alert {
                feature,
                level,
                text,
            } => {
                self.alert(feature, level, &text, pod);
                false
            }
            DriverRequest::FeatureDisabled { feature } => {
                let text = "disabled until the next start, because a call of its code did not return; its grants are revoked";
                pod.outbox
                    .show(Event::warning(format!("{feature}: {text}")));
                self.wait(
                    FeatureNote {
                        feature: feature.to_string(),
                        text: text.to_owned(),
                    },
                    None,
                );
                false
            }
            DriverRequest::ServiceEvent(event) => {
                self.service_events.insert(event);
                false
            }
            DriverRequest::StartJob(request) => {
                self.job_requests.push_back(request);
                false
            }
            DriverRequest::Note { feature, text } => {
                let taken = self.notes.entry(feature.clone()).or_default();
                *taken += 1;
                if *taken <= MAX_NOTES {
                    let text = if *taken == MAX_NOTES {
                        "further notes are dropped for 24 hours"
                    } else {
                        &text
                    };
                    let text = sanitize(text, MAX_MESSAGE, pod.registry.redactor());
                    let note = FeatureNote {
                        feature: feature.to_string(),
                        text,
                    };
                    self.wait(note, None);
                }
                false
            }
        }
    }

    /// The oldest request for a run of a background task that was not taken yet.
    pub(crate) fn next_task_request(&mut self) -> Option<TaskRequest> {
        self.mailbox.next_run()
    }

    /// An event of a service that was not taken yet.
    pub(crate) fn next_service_event(&mut self) -> Option<ServiceEvent> {
        self.service_events.pop_first()
    }

    /// The oldest job that was asked for and not taken yet.
    pub(crate) fn next_job_request(&mut self) -> Option<Box<JobRequest>> {
        self.job_requests.pop_front()
    }

    fn notify(
        &mut self,
        notification: Notification,
        reply: NumberReply,
        pod: &mut RequestContext<'_>,
    ) -> bool {
        let Notification {
            feature,
            by,
            text,
            wake,
            key,
            per_turn,
        } = notification;
        let sender = feature.as_ref().map_or_else(
            || NotificationQueued::CLIENT.to_owned(),
            ToString::to_string,
        );
        let redactor = pod.registry.redactor();
        let key = key.map(|key| (sender.clone(), redactor.text(&key).into_owned()));
        let known = key
            .as_ref()
            .and_then(|key| pod.state.notice_keys.number(|known| known == key));
        let reply = match (known, &key) {
            (Some(number), _) => {
                drop(reply.send(Ok(number)));
                return false;
            }
            (None, Some(key)) => self.keys.join(key, reply),
            (None, None) => Some(reply),
        };
        let Some(reply) = reply else { return false };
        let in_flight = Arc::strong_count(&self.in_flight) - 1;
        let waiting = pod.state.notices.len() + in_flight;
        let used = self.used.entry(feature.clone()).or_default();
        let declined = if used.notices >= per_turn {
            Some(format!(
                "the limit of {sender} is reached: notifications per turn: {per_turn}; send it after the next turn"
            ))
        } else if waiting >= MAX_WAITING {
            Some(format!(
                "{waiting} notifications are already waiting for the model's next step"
            ))
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
        let text = redactor.text(&text).into_owned();
        let in_flight = Arc::clone(&self.in_flight);
        let wake = wake && self.may_wake(feature, pod.outbox);
        let waiter = NotificationWaiter::new(number, reply, key.clone(), &mut self.keys, in_flight);
        let key = key.map(|(_, key)| key);
        let queued = NotificationQueued {
            number,
            feature: sender,
            registry_generation,
            text,
            wake,
            key,
            by,
        };
        self.wait(queued, Some(Box::new(waiter)));
        true
    }

    /// Counts a wake of this sender. Beyond the bounds its notification waits for the next turn, and people are told once.
    fn may_wake(&mut self, feature: Option<FeatureId>, outbox: &mut Outbox) -> bool {
        let own = self.wakes.entry(feature.clone()).or_default();
        *own = own.saturating_add(1);
        let own = *own;
        let all = self
            .wakes
            .values()
            .fold(0_u32, |all, one| all.saturating_add(*one));
        if own == MAX_WAKES + 1 || (own <= MAX_WAKES && all == MAX_ALL_WAKES + 1) {
            let whose = feature
                .as_ref()
                .map_or_else(|| "clients".to_owned(), ToString::to_string);
            let text = match own > MAX_WAKES {
                true => {
                    format!("notifications of {whose} started {MAX_WAKES} turns within an hour")
                }
                false => format!("notifications started {MAX_ALL_WAKES} turns within an hour"),
            };
            let text =
                format!("{text}; for up to an hour, those of {whose} wait for the next turn");
            outbox.show(Event::Alert(Alert {
                level: AlertLevel::Warning,
                from: feature,
                text,
            }));
        }
        own <= MAX_WAKES && all <= MAX_ALL_WAKES
    }

    fn alert(
        &mut self,
        feature: FeatureId,
        level: AlertLevel,
        text: &str,
        pod: &mut RequestContext<'_>,
    ) {
        if self.allows_alert(&feature) {
            let text = sanitize(text, MAX_MESSAGE, pod.registry.redactor());
            pod.outbox.show(Event::Alert(Alert {
                level,
                from: Some(feature),
                text,
            }));
        } else if self
            .used
            .get(&Some(feature.clone()))
            .is_some_and(|used| used.alerts == MAX_ALERTS + 1)
        {
            let text = "further alerts of this turn are dropped".to_owned();
            pod.outbox.show(Event::Alert(Alert {
                level: AlertLevel::Warning,
                from: Some(feature),
                text,
            }));
        }
    }
}
