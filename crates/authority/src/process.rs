//! Child processes: confining them, running them, and ending every descendant.
//!
//! ```text
//! Spawner::spawn ─▶ fresh thread: Landlock, seccomp, spawn ─▶ child (own group, one pipe for its output)
//!      │ reads the pipe; deadline, cancel, revoked: TERM ─2 s─▶ KILL, to the whole group
//!      ▼ main process ended: pipe drained until quiet, group killed, what is left of the call killed and reaped
//! ```
//!
//! Landlock and seccomp apply to the thread that requests them and to its children, so a thread that confines itself
//! and then spawns needs neither code between fork and exec nor a helper program.

#[cfg(test)]
mod alone;
mod apart;
mod cage;
mod confinement;
mod descendants;
mod env;
mod exit;
mod filter;
mod git_guard;
mod host_child;
mod inherited;
mod label;
mod listing;
mod memory;
mod owners;
mod peer;
mod processes;
mod programs;
mod public;
mod rules;
mod run;
mod spawner;
mod stale;
mod started;
mod survivors;
mod talk;
mod temp;
mod trail;

pub use apart::{HelperProgram, serve_helper};
pub use confinement::{Beyond, Confinement, Network, SandboxMode, Support, support};
pub use descendants::{become_subreaper, end_descendants, end_survivors};
pub use env::{EnvPolicy, TalkEnv};
pub use exit::{ChildExit, KILL_WAIT};
pub use git_guard::{GitFinding, GitGuard, Handled, LinkedRepository, borrowed_objects};
pub use host_child::HostChild;
pub use inherited::seal_inherited;
pub use label::label_descendants;
pub use listing::{PodProcess, ProcessOwner, processes_of, resident_memory};
pub use memory::ChildMemory;
pub use peer::{OnlyLooks, Peer, peer_of, started_by_pod};
pub use processes::is_running;
pub(crate) use rules::{ETC_GIVEN, ETC_WITHHELD, HOME_HIDDEN};
pub use run::{ChildResult, DRAIN, GRACE, Job, QUIET, SpawnedChild};
pub use spawner::{Permit, Spawner};
pub use stale::{StaleHost, end_stale, stale_hosts};
pub use talk::{MAX_LINE, Talk};
