//! A refused value of an option. Reads no value.

use crate::exit::Help;
use std::error::Error;
use std::fmt;

/// Why a value of an option is refused, and what to write in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    pub message: String,
    pub help: Help,
}

impl BadValue {
    /// A refusal and what to write instead.
    pub fn new(message: impl Into<String>, help: impl Into<Help>) -> Self {
        Self {
            message: message.into(),
            help: help.into(),
        }
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for BadValue {}
