//! The fold as properties.
