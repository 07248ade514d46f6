//! Gemini's own API, without a network.

mod dialect;
mod loopback;
mod oddities;
