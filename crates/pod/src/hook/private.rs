//! Panics of hooks that may withhold: their words may quote what must not be shown, and the standard panic hook would
//! print them. Does not depend on hooks.

use std::cell::Cell;
use std::panic::{self, PanicHookInfo};

thread_local! {
    static PRIVATE: Cell<bool> = const { Cell::new(false) };
}

/// While it exists, the words of panics on this thread are not printed, if [`silence_private_panics`] was called.
pub(crate) struct Private(());

/// From here on this thread works on what may have to be withheld.
pub(crate) fn begin() -> Private {
    PRIVATE.set(true);
    Private(())
}

impl Drop for Private {
    fn drop(&mut self) {
        PRIVATE.set(false);
    }
}

/// Keeps the words of such panics off standard error, for the whole process; their place is still printed.
#[allow(
    clippy::print_stderr,
    reason = "stands in for the standard panic hook, which prints there"
)]
pub fn silence_private_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        match (PRIVATE.get(), info.location()) {
            (false, _) => before(info),
            (true, Some(place)) => eprintln!("a hook panicked at {place}; its words are withheld"),
            (true, None) => eprintln!("a hook panicked; its words are withheld"),
        }
    }));
}
