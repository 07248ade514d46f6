//! What is handed to a model: exact bytes, whatever they mean.

use super::Body;

/// A request whose record is durable. The turn machine makes it after the acknowledgement and nobody else can,
/// so a model is never shown what is not on disk.
#[derive(Debug)]
pub struct ModelRequest {
    body: Body,
    number: u64,
    generation: u64,
}

impl ModelRequest {
    /// Called by `turn` alone, once per acknowledged [`crate::Fact::Request`].
    pub(crate) fn new(body: Body, number: u64, generation: u64) -> Self {
        Self { body, number, generation }
    }

    /// The exact bytes to send.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
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
