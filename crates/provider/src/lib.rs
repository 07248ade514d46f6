//! One vendor's bytes to model events and back, and the connection they travel over.
//!
//! Codecs here are pure: bytes in, events out, whatever the fragmentation. The transport reaches the network only
//! through an [`authority::Net`] it was given, time and chance only through [`retry::Pacing`].
//! It knows nothing of history policy, of what a tool means, of files (a script is handed in as text), of
//! configuration or of where keys are kept.
#![warn(missing_docs)]

pub mod catalog;
pub mod offline;
pub mod openai_chat;
pub mod retry;
pub mod scripted;
pub mod transport;

mod failure;
mod sse;
