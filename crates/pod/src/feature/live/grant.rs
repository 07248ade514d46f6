//! The doors of grants: which feature holds a grant, how often it was used, and how it is revoked. Do not depend on the
//! policy.

use super::presence::Presence;
use super::service::Service;
use crate::feature::declare::capability::HostCapability;
use crate::feature::declare::grants::GrantUse;
use crate::feature::declare::id::FeatureId;
use authority::Door;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// One door under a grant.
#[derive(Clone)]
pub(crate) struct GrantHandle {
    pub(crate) capability: HostCapability,
    pub(crate) door: Arc<Door>,
    /// The object of the grant, if it is not the door alone.
    pub(crate) about: GrantObject,
}

/// The kind of object that a door protects.
#[derive(Clone)]
pub(crate) enum GrantObject {
    /// An operation at a time.
    Operations,
    Used(Arc<Service>),
    Provided(Arc<Service>),
}

impl GrantHandle {
    /// Refuses new uses at once; the future resolves when no use runs any more.
    fn shut(&self, how: Revoke) -> ShutFuture {
        if let GrantObject::Provided(service) = &self.about {
            service.leave();
        }
        match how {
            Revoke::Now => Box::pin(self.door.shut()),
            Revoke::Drain(time) => Box::pin(self.door.drain(Instant::now() + time)),
        }
    }
}

type ShutFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How to end a grant; argument of [`FeatureRegistry::revoke`](crate::feature::FeatureRegistry::revoke).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoke {
    /// At once: running uses end at their next wait, and their results are dropped.
    Now,
    /// New uses are refused at once; those under way may finish within this time.
    Drain(Duration),
}

/// The doors of one feature while it installs. The host shares it with the install, so that a feature that is abandoned
/// holds no authority, even while its thread runs.
#[derive(Clone, Default)]
pub(crate) struct FeatureGrants(Arc<Mutex<GrantHandles>>, Arc<Presence>);

#[derive(Default)]
struct GrantHandles {
    given_up: bool,
    held: Vec<GrantHandle>,
}

impl FeatureGrants {
    pub(crate) fn presence(&self) -> &Arc<Presence> {
        &self.1
    }

    /// Records a door; shuts it at once if the feature was abandoned.
    pub(crate) fn hold(&self, held: GrantHandle) {
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if handles.given_up {
            drop(held.shut(Revoke::Now));
        }
        handles.held.push(held);
    }

    /// The existing door of this grant.
    pub(crate) fn find(&self, capability: &HostCapability) -> Option<Arc<Door>> {
        let handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handles
            .held
            .iter()
            .find(|held| held.capability == *capability)
            .map(|held| Arc::clone(&held.door))
    }

    /// The existing door of this service.
    pub(crate) fn service(&self, wanted: &Arc<Service>) -> Option<Arc<Door>> {
        let handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handles.held.iter().find_map(|held| match &held.about {
            GrantObject::Used(service) if Arc::ptr_eq(service, wanted) => {
                Some(Arc::clone(&held.door))
            }
            GrantObject::Used(_) | GrantObject::Operations | GrantObject::Provided(_) => None,
        })
    }

    /// Shuts all doors, and every later one.
    pub(crate) fn give_up(&self) {
        self.1.set_removed();
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handles.given_up = true;
        for held in &handles.held {
            // Running uses are not awaited.
            drop(held.shut(Revoke::Now));
        }
    }

    /// Returns the open doors of an installed feature.
    pub(crate) fn take(&self) -> Vec<GrantHandle> {
        self.1.set_installed();
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).held)
    }
}

fn row(feature: &FeatureId, capability: &HostCapability, doors: &[&GrantHandle]) -> GrantUse {
    let doors = || doors.iter().map(|held| &held.door);
    GrantUse {
        feature_id: feature.clone(),
        capability: capability.clone(),
        held: doors().next().is_some(),
        uses: doors().map(|door| door.uses()).sum(),
        refused: doors().map(|door| door.refused()).sum(),
        last_use_ms: doors().filter_map(|door| door.last_use().map(millis)).max(),
        revoked: doors().next().is_some() && doors().all(|door| door.is_shut()),
    }
}

/// The grants of one generation of the registry, by feature in install order: each with its door, so that uses can be
/// counted and the grant revoked.
#[derive(Default)]
pub(crate) struct GrantLedger {
    handles: Vec<(FeatureId, GrantHandle)>,
    /// Doors of tools and hooks: calls enter them, no feature has a handle.
    contributions: Vec<(FeatureId, GrantHandle)>,
    presence: BTreeMap<FeatureId, Arc<Presence>>,
}

impl GrantLedger {
    /// Adds an installed feature with its doors.
    pub(crate) fn extend(&mut self, feature: &FeatureId, grants: &FeatureGrants) {
        self.handles.extend(
            grants
                .take()
                .into_iter()
                .map(|held| (feature.clone(), held)),
        );
        self.presence
            .insert(feature.clone(), Arc::clone(grants.presence()));
    }

    /// The door of a tool or hook; shared by all under the same grant.
    pub(crate) fn contributes(
        &mut self,
        feature: &FeatureId,
        capability: HostCapability,
    ) -> Arc<Door> {
        let mut known = self
            .contributions
            .iter()
            .rev()
            .take_while(|(id, _)| id == feature);
        if let Some((_, held)) = known.find(|(_, held)| held.capability == capability) {
            return Arc::clone(&held.door);
        }
        let door = Door::new();
        let held = GrantHandle {
            capability,
            door: Arc::clone(&door),
            about: GrantObject::Operations,
        };
        self.contributions.push((feature.clone(), held));
        door
    }

    pub(crate) fn uses<'a>(
        &'a self,
        granted: impl Iterator<Item = (&'a FeatureId, &'a HostCapability)>,
    ) -> Vec<GrantUse> {
        let mut doors: BTreeMap<(&FeatureId, &HostCapability), Vec<&GrantHandle>> = BTreeMap::new();
        for (feature, held) in &self.handles {
            doors
                .entry((feature, &held.capability))
                .or_default()
                .push(held);
        }
        let held = |of| doors.get(&of).map_or(&[][..], Vec::as_slice);
        granted
            .map(|(feature, capability)| row(feature, capability, held((feature, capability))))
            .collect()
    }

    /// Ends every grant of `feature` that has any part of `capability`.
    pub(crate) fn revoke(
        &self,
        feature: &FeatureId,
        capability: &HostCapability,
        how: Revoke,
    ) -> impl Future<Output = usize> + Send + use<> {
        let contributed = self
            .contributions
            .iter()
            .filter(|(id, _)| id == feature)
            .map(|(_, held)| held);
        let all = self
            .of(feature)
            .chain(contributed)
            .filter(|held| capability.meet(&held.capability).is_some());
        shut(all.map(|held| held.shut(how)).collect())
    }

    /// Ends every grant of `feature`, also of its sinks and states.
    pub(crate) fn leave(&self, feature: &FeatureId) -> impl Future<Output = usize> + Send + use<> {
        if let Some(presence) = self.presence.get(feature) {
            presence.set_removed();
        }
        shut(
            self.of(feature)
                .map(|held| held.shut(Revoke::Now))
                .collect(),
        )
    }

    fn of(&self, feature: &FeatureId) -> impl Iterator<Item = &GrantHandle> {
        self.handles
            .iter()
            .filter(move |(id, _)| id == feature)
            .map(|(_, held)| held)
    }
}

/// Waits until no door has running uses.
async fn shut(closing: Vec<ShutFuture>) -> usize {
    let count = closing.len();
    // All at the same time: each has the whole time to drain.
    let mut closing = JoinAll(closing);
    poll_fn(|cx| closing.poll(cx)).await;
    count
}

/// Futures that are awaited together.
struct JoinAll(Vec<ShutFuture>);

impl JoinAll {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0
            .retain_mut(|closing| closing.as_mut().poll(cx).is_pending());
        if self.0.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
