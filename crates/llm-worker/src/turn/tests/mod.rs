//! The machine as tables and schedules, over a host that performs effects and watches every promise.

mod cancel;
mod flushes;
mod illegal;
mod limits;
mod rig;
mod schedules;
mod stories;
mod suspend;
