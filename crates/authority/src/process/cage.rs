//! What confines one child: Landlock rules, a filter of system calls and capabilities, applied by the thread that starts it.

use landlock::{RulesetCreated, RulesetStatus};
use rustix::thread::CapabilitySet;
use seccompiler::BpfProgram;
use std::io;

/// The capabilities that root's children keep: to open files and to change their own identity, but not to change owners
/// of files. With SETUID they can become another user and change permissions as that user. An ordinary user's children
/// have none.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// The Landlock rules and the system call filter of a confinement, applied by each spawning thread.
pub(super) struct Cage {
    pub(super) ruleset: RulesetCreated,
    pub(super) filter: BpfProgram,
}

impl std::fmt::Debug for Cage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cage").finish_non_exhaustive()
    }
}

impl Cage {
    /// Confines the calling thread and all processes that it starts, irrevocably.
    pub(super) fn close(&self) -> io::Result<()> {
        for capability in CapabilitySet::all().difference(KEPT).iter() {
            // Fails for an ordinary user, whose children have no capabilities anyway, and for numbers that this kernel
            // does not have.
            rustix::thread::remove_capability_from_bounding_set(capability).ok();
        }
        // Ambient and inheritable capabilities survive exec: root's children would keep them in spite of the bounding
        // set.
        rustix::thread::clear_ambient_capability_set()?;
        let mut sets = rustix::thread::capabilities(None)?;
        sets.inheritable &= KEPT;
        rustix::thread::set_capabilities(None, sets)?;
        let status = self
            .ruleset
            .try_clone()?
            .restrict_self()
            .map_err(io::Error::other)?;
        if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
            return Err(io::Error::other(
                "the kernel applied only a part of the Landlock rules",
            ));
        }
        seccompiler::apply_filter(&self.filter).map_err(io::Error::other)
    }
}
