//! The machine as tables and schedules.
