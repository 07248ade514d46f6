//! Background tasks: which run starts, ends and is repeated, and when. Does not depend on turns.

pub mod supervisor;
