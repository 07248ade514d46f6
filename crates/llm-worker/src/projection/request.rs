//! A request as exact bytes for a model. Does not depend on their encoding.

use super::Body;
use crate::item::Attachment;

/// A request whose record is durable. Only the turn machine creates it, after the acknowledgement, so a model never
/// gets an item that is not on disk.
#[derive(Debug)]
pub struct ModelRequest {
    body: Body,
    number: u64,
    generation: u64,
}

impl ModelRequest {
    /// Called only by `turn`, once per acknowledged [`crate::Fact::Request`].
    pub(crate) fn new(body: Body, number: u64, generation: u64) -> Self {
        Self {
            body,
            number,
            generation,
        }
    }

    /// The exact bytes to send.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The same with the bytes of its files.
    ///
    /// # Errors
    /// As `read`.
    pub fn with_files<E>(
        self,
        read: impl FnMut(&Attachment) -> Result<Vec<u8>, E>,
    ) -> Result<Self, E> {
        Ok(Self {
            body: self.body.with_files(read)?,
            ..self
        })
    }

    /// Its number in the session, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The generation of the tool surface it was made with.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }
}
