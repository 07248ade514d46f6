//! The Responses API, without a network.

mod dialect;
mod loopback;
mod oddities;
