//! The codec over fixtures and tables, and the whole model against a server on loopback.

mod dialect;
mod fixtures;
mod loopback;
