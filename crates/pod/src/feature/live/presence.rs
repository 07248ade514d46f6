//! Whether a feature is installed: before that, and after it left, its updates and notifications have no effect. It
//! knows no grant.

use std::sync::atomic::{AtomicU8, Ordering};

const INSTALLING: u8 = 0;
const HERE: u8 = 1;
const GONE: u8 = 2;

/// One feature's, from the begin of its install on. What a feature holds shares it.
#[derive(Debug, Default)]
pub(crate) struct Presence(AtomicU8);

/// Why something of a feature has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It installs: it may still fail, and then nothing of it may be left.
    Early,
    /// It failed to install, or it left.
    Gone,
}

impl Presence {
    /// It is installed whole; means nothing to one that is gone.
    pub(crate) fn come(&self) {
        // `Err` is one that is gone.
        self.0.compare_exchange(INSTALLING, HERE, Ordering::SeqCst, Ordering::SeqCst).ok();
    }

    /// It is not there any more, or will never be.
    pub(crate) fn leave(&self) {
        self.0.store(GONE, Ordering::SeqCst);
    }

    pub(crate) fn check(&self) -> Result<(), Absent> {
        match self.0.load(Ordering::SeqCst) {
            HERE => Ok(()),
            INSTALLING => Err(Absent::Early),
            _gone => Err(Absent::Gone),
        }
    }
}
