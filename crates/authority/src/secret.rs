//! Secrets: values that are read by an explicit call and never printed by accident. Does not depend on their origin.

use crate::{Ambient, Door, Error};
use std::fmt;
use std::sync::Arc;

/// A secret value, such as an API key, under a grant. Clones share the grant's door. Not serialisable; its memory is
/// not wiped.
#[derive(Clone)]
pub struct Secret {
    id: Arc<str>,
    value: Arc<str>,
    door: Arc<Door>,
}

impl Secret {
    /// A secret with the name `id`, which may be printed.
    pub fn new(_: &Ambient, id: &str, value: String) -> Self {
        Self {
            id: id.into(),
            value: value.into(),
            door: Door::new(),
        }
    }

    /// The printable name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The value; each call is counted as a use.
    ///
    /// # Errors
    /// `Revoked`.
    pub fn expose(&self) -> Result<&str, Error> {
        let _use = self
            .door
            .enter()
            .map_err(|_| Error::revoked(&format!("secret {}", self.id)))?;
        Ok(&self.value)
    }

    /// The value, for redaction.
    pub(crate) fn words(&self) -> &[u8] {
        self.value.as_bytes()
    }

    /// A handle for the same secret under a derived door.
    pub fn derive(&self) -> Self {
        Self {
            door: self.door.derive(),
            ..self.clone()
        }
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
