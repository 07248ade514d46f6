//! What a pod's records mean: their bodies, how a turn's facts become a batch, the fold of a log into state,
//! what recovery says of a crash, and the proof that every request can be rebuilt.

pub mod changes;
pub mod checkpoint;
pub mod commit;
pub mod fold;
mod glance;
mod lost;
pub mod record;
pub mod references;
pub mod replay;
pub mod restore;
pub mod resume;

pub use lost::Lost;

use llm_worker::ErrorKind;

/// What a refusal of the store asks of whoever meets it.
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
