//! The codec over fixtures and tables, and the whole model against a server on loopback.

mod dialect;
mod errors;
mod fixtures;
mod loopback;
