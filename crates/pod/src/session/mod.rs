//! What a pod's records mean: their bodies, how a turn's facts become a batch, the fold of a log into state,
//! what recovery says of a crash, and the proof that every request can be rebuilt.

pub mod changes;
pub mod commit;
pub mod fold;
pub mod record;
pub mod replay;
pub mod restore;
