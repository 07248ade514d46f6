//! The meaning of a pod's records: the fold of a log into state, the report of recovery after a crash, and the proof
//! that every request can be rebuilt. Does not depend on features or the actor.

pub mod approvals;
pub mod calls;
pub mod changes;
pub mod checkpoint;
pub mod context;
mod decode_lite;
pub mod fold;
pub mod jobs;
mod lost;
mod note;
pub mod queue;
pub mod references;
pub mod replay;
pub mod restore;
pub mod resume;
pub mod spent;
pub mod standing;
pub mod summary;
pub mod tasks;
pub mod view;

pub use lost::LostRecords;

use llm_worker::ErrorKind;

/// A number that identifies the staged content of a file change.
pub(crate) fn stage_number(parts: &[&[u8]]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part).update(&[0]);
    }
    hasher
        .finalize()
        .as_bytes()
        .first_chunk()
        .map_or(0, |first| u64::from_be_bytes(*first))
}

/// The error kind of a store's error.
pub(crate) fn kind_of_store(kind: session_store::ErrorKind) -> ErrorKind {
    match kind {
        session_store::ErrorKind::Retry => ErrorKind::Retry,
        session_store::ErrorKind::FixInput => ErrorKind::FixInput,
        session_store::ErrorKind::Denied => ErrorKind::Denied,
        session_store::ErrorKind::Unavailable => ErrorKind::Unavailable,
        session_store::ErrorKind::Corrupt => ErrorKind::Corrupt,
        session_store::ErrorKind::Exhausted => ErrorKind::Exhausted,
        session_store::ErrorKind::Bug => ErrorKind::Bug,
    }
}
