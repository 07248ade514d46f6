//! Hosts that one child reaches beside the others', by a key that only it has.

use super::super::{HostPattern, HostPort, Net};
use crate::Error;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name before the key.
const USER: &str = "yoi";

/// What may be lent, and what is, by the words with which a request names its key.
#[derive(Clone, Debug)]
pub(super) struct Lendings {
    from: Net,
    lent: Arc<Mutex<BTreeMap<String, Net>>>,
}

/// Hosts that are lent until this is dropped.
#[derive(Debug)]
pub struct Lent {
    key: String,
    all: Lendings,
}

impl Lendings {
    pub(super) fn new(from: Net) -> Self {
        Self {
            from,
            lent: Arc::default(),
        }
    }

    pub(super) fn lend(&self, hosts: &[HostPattern]) -> Result<Lent, Error> {
        let net = self.from.limited(hosts)?;
        // The seeds of both are the system's.
        let key = [0, 1]
            .map(|part: u8| format!("{:016x}", RandomState::new().hash_one(part)))
            .concat();
        self.lock().insert(words(&key), net);
        Ok(Lent {
            key,
            all: self.clone(),
        })
    }

    /// What is lent to the one with this key.
    pub(super) fn of(&self, key: Option<&str>) -> Option<Net> {
        self.lock().get(key?).cloned()
    }

    /// Whether this host is lent to anyone.
    pub(super) fn any(&self, at: &HostPort) -> bool {
        self.lock().values().any(|net| net.names(&at.host, at.port))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Net>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lent {
    /// The user and the word for the proxy.
    pub(crate) fn user(&self) -> (&'static str, &str) {
        (USER, &self.key)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // Also what another process was handed.
        let net = self.all.lock().remove(&words(&self.key));
        drop(net.map(|net| net.door().shut()));
    }
}

fn words(key: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{USER}:{key}")))
}
