//! What became of each event, as the durable state of the feature. Does not depend on how messages are sent.

use super::message::EventKey;
use pod::feature::StateKey;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The deliveries of a session.
pub const DELIVERIES: StateKey<Deliveries> = StateKey::new("deliveries", 1);

/// Most events that are kept; the oldest are forgotten.
pub const MAX_KEPT: usize = 64;

/// Most bytes of a reason.
const MAX_REASON: usize = 200;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// The newest events of a session, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliveries {
    /// Whether the feature has started once in this session.
    pub started: bool,
    pub events: VecDeque<Delivery>,
    /// When messages were sent or tried in the last hour, in milliseconds since 1970; at most 60.
    pub attempted_ms: VecDeque<u64>,
}

/// One event and its message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    #[serde(flatten)]
    pub key: EventKey,
    /// When it began, in milliseconds since 1970.
    pub since_ms: u64,
    /// When `state` became what it is.
    pub at_ms: u64,
    pub attempts: u32,
    pub state: DeliveryState,
    /// Why it was suppressed, failed or was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// An attempt failed, or the limit of the hour was reached: it is tried again.
    Waiting,
    Sending,
    Sent,
    Suppressed,
    GivenUp,
    /// The process ended during an attempt.
    Unknown,
}

/// What a run does about an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    No,
    Suppressed(&'static str),
    /// At this time.
    Later(u64),
    /// Its number, from 1.
    Send {
        number: u32,
    },
}

impl Deliveries {
    /// Decides about an event that began at `since`; `seen` is until when a driver was attached. What it returns is in
    /// the state.
    pub(super) fn attempt(
        &mut self,
        key: EventKey,
        since: u64,
        now: u64,
        seen: Option<u64>,
        by_person: bool,
        most: usize,
    ) -> Attempt {
        // A clock that was set back must not stop messages.
        self.attempted_ms
            .retain(|at| *at <= now && now - *at < HOUR_MS);
        let full = self.attempted_ms.len() >= most;
        let oldest = self.attempted_ms.front().map_or(now, |at| at + HOUR_MS);
        let Some(delivery) = self.entry(key, since, now) else {
            return Attempt::No;
        };
        match delivery.state {
            DeliveryState::Waiting => {}
            DeliveryState::Sending => {
                // The run that sent it was abandoned.
                delivery.set(DeliveryState::Unknown, now, Some("its run did not end"));
                return Attempt::No;
            }
            DeliveryState::Sent
            | DeliveryState::Suppressed
            | DeliveryState::GivenUp
            | DeliveryState::Unknown => {
                return Attempt::No;
            }
        }
        let suppressed = if by_person {
            Some("a person did it")
        } else {
            seen.filter(|seen| *seen >= delivery.since_ms)
                .map(|_| "a client was attached that can send inputs")
        };
        if let Some(why) = suppressed {
            delivery.set(DeliveryState::Suppressed, now, Some(why));
            return Attempt::Suppressed(why);
        }
        if full {
            delivery.set(
                DeliveryState::Waiting,
                now,
                Some("the limit of messages in an hour was reached"),
            );
            return Attempt::Later(oldest);
        }
        delivery.attempts += 1;
        delivery.set(DeliveryState::Sending, now, None);
        let number = delivery.attempts;
        self.attempted_ms.push_back(now);
        Attempt::Send { number }
    }

    /// The end of an attempt.
    pub(super) fn end(
        &mut self,
        key: &EventKey,
        now: u64,
        state: DeliveryState,
        why: Option<String>,
    ) {
        if let Some(delivery) = self
            .events
            .iter_mut()
            .rfind(|delivery| delivery.key == *key)
        {
            delivery.set(state, now, why.as_deref());
        }
    }

    /// The pod went on: what waits for another attempt is not told any more.
    pub(super) fn forsake_others(&mut self, key: Option<&EventKey>, now: u64) {
        let others = self
            .events
            .iter_mut()
            .filter(|delivery| Some(&delivery.key) != key);
        for delivery in others.filter(|delivery| delivery.state == DeliveryState::Waiting) {
            delivery.set(DeliveryState::Suppressed, now, Some("the pod went on"));
        }
    }

    /// A host started. Returns the events whose attempt it ended. At the first start, the pod as it is is known.
    pub(super) fn start(&mut self, key: Option<&EventKey>, now: u64) -> Vec<EventKey> {
        let mut unknown = Vec::new();
        for delivery in self
            .events
            .iter_mut()
            .filter(|delivery| delivery.state == DeliveryState::Sending)
        {
            delivery.set(
                DeliveryState::Unknown,
                now,
                Some("the process ended during the attempt"),
            );
            unknown.push(delivery.key.clone());
        }
        if let (false, Some(key)) = (self.started, key)
            && let Some(delivery) = self.entry(key.clone(), now, now)
        {
            delivery.set(
                DeliveryState::Suppressed,
                now,
                Some("it was so when the feature first started"),
            );
        }
        self.started = true;
        unknown
    }

    /// The event of this key, which may be new.
    fn entry(&mut self, key: EventKey, since: u64, now: u64) -> Option<&mut Delivery> {
        if !self.events.iter().any(|delivery| delivery.key == key) {
            let state = DeliveryState::Waiting;
            let key = key.clone();
            self.events.push_back(Delivery {
                key,
                since_ms: since,
                at_ms: now,
                attempts: 0,
                state,
                reason: None,
            });
            let over = self.events.len().saturating_sub(MAX_KEPT);
            self.events.drain(..over);
        }
        self.events.iter_mut().rfind(|delivery| delivery.key == key)
    }
}

impl Delivery {
    fn set(&mut self, state: DeliveryState, now: u64, why: Option<&str>) {
        (self.state, self.at_ms) = (state, now);
        self.reason = why.map(|why| {
            why.get(..why.floor_char_boundary(MAX_REASON))
                .unwrap_or_default()
                .to_owned()
        });
    }
}
