//! The house rules of this repository as checks that fail the build: arrows between crates, budgets, docs of modules
//! and public items, one idea per type name, invariant pairs, words that a host must not know, paths in documents,
//! dependencies with their reasons, what may stand where, one binding for a `let`.
//!
//! Every check is a function from a root directory (or a text) to findings, so that the same function can be pointed at
//! this repository and at a small bad tree that it must refuse. This crate knows no other crate of ours: it reads them
//! as text. It is used by its own tests only (`tests/`), where the data stands: the arrow table and the exceptions.

pub mod finding;
pub mod source;

pub mod arrows;
pub mod bindings;
pub mod budget;
pub mod dependencies;
pub mod documents;
pub mod homonyms;
pub mod ignorance;
pub mod invariants;
pub mod layout;
pub mod modules;
pub mod prose;
pub mod public_docs;
pub mod words;
