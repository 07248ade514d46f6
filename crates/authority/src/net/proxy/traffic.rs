//! What a proxy passed on and refused, by host.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most hosts that are counted by name; all others count as one.
const MAX_HOSTS: usize = 256;
const OTHERS: &str = "other hosts";

/// The most hosts that a text names.
const MAX_NAMED: usize = 10;

/// The beginning of a text about refused hosts.
pub const NOT_CONNECTED: &str = "the sandbox did not connect to ";

/// Where requests count that name no host.
pub(super) const NO_HOST: &str = "no host";

/// Why a proxy refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostRefusal {
    /// The host is not of the grant.
    NotNamed,
    /// An address in place of a name, or a name of one that is not public.
    Address,
    /// No answer, or no such name.
    Unreachable,
    /// No proper request.
    Request,
}

impl HostRefusal {
    fn text(self) -> &'static str {
        match self {
            Self::NotNamed => "not in `hosts`",
            Self::Address => "no name of the public internet",
            Self::Unreachable => "not reachable",
            Self::Request => "no proper request",
        }
    }
}

/// What was counted for one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTraffic {
    pub connections: u64,
    /// Bytes to the host.
    pub sent: u64,
    /// Bytes from the host.
    pub received: u64,
    pub refused: BTreeMap<HostRefusal, u64>,
}

/// By host, as the setting names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic(pub BTreeMap<String, HostTraffic>);

impl Traffic {
    /// What came since `before`.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        for (host, old) in &before.0 {
            let Some(now) = self.0.get_mut(host) else {
                continue;
            };
            now.connections -= old.connections.min(now.connections);
            now.sent -= old.sent.min(now.sent);
            now.received -= old.received.min(now.received);
            for (why, times) in &mut now.refused {
                *times -= old.refused.get(why).copied().unwrap_or(0).min(*times);
            }
            now.refused.retain(|_, times| *times > 0);
        }
        self.0.retain(|_, now| *now != HostTraffic::default());
        self
    }

    /// Which hosts were refused, why, and the setting that allows those that are only not named.
    #[must_use]
    pub fn refused(&self) -> Option<String> {
        let refused = || {
            self.0
                .iter()
                .filter(|(_, counted)| !counted.refused.is_empty())
        };
        let of = |(host, counted): (&String, &HostTraffic)| {
            let why: Vec<_> = counted.refused.keys().map(|why| why.text()).collect();
            format!("{host} ({})", why.join(", "))
        };
        let all = listed(refused().map(of))?;
        let unnamed =
            refused().filter(|(_, counted)| counted.refused.contains_key(&HostRefusal::NotNamed));
        let allowed = listed(unnamed.map(|(host, _)| format!("\"{host}\"")));
        let help = allowed
            .map(|hosts| format!("; {}", allowing(&hosts)))
            .unwrap_or_default();
        Some(format!("{NOT_CONNECTED}{all}{help}"))
    }

    /// How many bytes went to which hosts, and came from them.
    #[must_use]
    pub fn passed(&self) -> Option<String> {
        let passed = self
            .0
            .iter()
            .filter(|(_, counted)| counted.connections + counted.sent + counted.received > 0);
        let all = listed(passed.map(|(host, HostTraffic { sent, received, .. })| {
            format!("{host} {sent} out, {received} in")
        }))?;
        Some(format!("bytes through the proxy: {all}"))
    }
}

/// The settings that allow hosts; the first one may be there.
pub(super) fn allowing(hosts: &str) -> String {
    format!("network = \"hosts\" and hosts = [{hosts}] under [sandbox] allow it")
}

fn listed(some: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = some.collect();
    let (named, more) = all.split_at(all.len().min(MAX_NAMED));
    let more = if more.is_empty() {
        String::new()
    } else {
        format!(" and {} more", more.len())
    };
    (!all.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<Traffic>);

impl Counts {
    pub(super) fn read(&self) -> Traffic {
        self.lock().clone()
    }

    pub(super) fn connected(&self, host: &str) {
        self.change(host, |counted| counted.connections += 1);
    }

    pub(super) fn passed(&self, host: &str, is_sent: bool, bytes: u64) {
        self.change(host, |counted| {
            *if is_sent {
                &mut counted.sent
            } else {
                &mut counted.received
            } += bytes
        });
    }

    pub(super) fn refused(&self, host: &str, why: HostRefusal) {
        self.change(host, |counted| {
            *counted.refused.entry(why).or_default() += 1
        });
    }

    fn change(&self, host: &str, change: impl FnOnce(&mut HostTraffic)) {
        let mut all = self.lock();
        let known = all.0.contains_key(host) || all.0.len() < MAX_HOSTS;
        change(
            all.0
                .entry(if known { host } else { OTHERS }.to_owned())
                .or_default(),
        );
    }

    fn lock(&self) -> MutexGuard<'_, Traffic> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
