//! Whether a feature is installed: before that, and after its removal, its updates and notifications have no effect.
//! Does not depend on grants.

use std::sync::atomic::{AtomicU8, Ordering};

const INSTALLING: u8 = 0;
const INSTALLED: u8 = 1;
const REMOVED: u8 = 2;

/// The presence of one feature from the start of its install on. Its handles and sinks share it.
#[derive(Debug, Default)]
pub(crate) struct Presence(AtomicU8);

/// The reason why a call of a feature's sink or state has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// The feature is installing: the install may fail, and then must have no effect.
    Early,
    /// The install failed, or the feature was removed.
    Gone,
}

impl Presence {
    /// Marks the feature as installed; no effect after its removal.
    pub(crate) fn set_installed(&self) {
        // `Err`: it was removed meanwhile.
        self.0
            .compare_exchange(INSTALLING, INSTALLED, Ordering::SeqCst, Ordering::SeqCst)
            .ok();
    }

    /// Marks the feature as removed, or as failed to install.
    pub(crate) fn set_removed(&self) {
        self.0.store(REMOVED, Ordering::SeqCst);
    }

    pub(crate) fn check(&self) -> Result<(), Absent> {
        match self.0.load(Ordering::SeqCst) {
            INSTALLED => Ok(()),
            INSTALLING => Err(Absent::Early),
            _removed => Err(Absent::Gone),
        }
    }
}
