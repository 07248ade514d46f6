//! Secrets: values that are handed over by exposing them, and never printed by accident. Where they come from is not
//! known.

use crate::{Ambient, Door, Error};
use std::fmt;
use std::sync::Arc;

/// A secret value under a grant. Clones share the grant's door. It is not serialisable; its memory is not wiped.
#[derive(Clone)]
pub struct Secret {
    id: Arc<str>,
    value: Arc<str>,
    door: Arc<Door>,
}

impl Secret {
    /// A secret known as `id`, which may be printed.
    pub fn new(_: &Ambient, id: &str, value: String) -> Self {
        Self { id: id.into(), value: value.into(), door: Door::new() }
    }

    /// The printable name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The value itself; each call is counted.
    ///
    /// # Errors
    /// `Revoked`.
    pub fn expose(&self) -> Result<&str, Error> {
        let _use = self.door.enter().map_err(|_| Error::revoked(&format!("secret {}", self.id)))?;
        Ok(&self.value)
    }

    /// The value, for whoever keeps it out of texts.
    pub(crate) fn words(&self) -> &[u8] {
        self.value.as_bytes()
    }

    /// The same secret under a door of its own, which shuts with this one's.
    pub fn derive(&self) -> Self {
        Self { door: self.door.derive(), ..self.clone() }
    }

    /// The door of this grant.
    pub fn door(&self) -> &Arc<Door> {
        &self.door
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "‹secret {}›", self.id)
    }
}
