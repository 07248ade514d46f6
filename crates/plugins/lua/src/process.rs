//! What a script has of its process: streams, files and time, which are handed in.

use crate::wire::Wire;
use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Write};
use std::time::Duration;

/// Reads a file of a package, by its path in it.
pub type ReadFile = Box<dyn Fn(&str) -> io::Result<Vec<u8>>>;

/// What a script has of its process.
pub struct Process {
    /// Lines of the host.
    pub input: Box<dyn BufRead>,
    pub output: Box<dyn Write>,
    /// What the script prints, and where its errors happened.
    pub log: Box<dyn Write>,
    pub read: ReadFile,
    /// The time since any fixed moment.
    pub clock: Box<dyn Fn() -> Duration>,
    pub sleep: Box<dyn Fn(Duration)>,
}

/// The same, shared with the functions of the kit.
pub(crate) struct Host {
    pub(crate) wire: RefCell<Wire>,
    pub(crate) read: ReadFile,
    pub(crate) sleep: Box<dyn Fn(Duration)>,
    log: RefCell<Box<dyn Write>>,
    clock: Box<dyn Fn() -> Duration>,
    /// Of the request that is being answered, on the clock.
    deadline: Cell<Option<Duration>>,
}

impl Host {
    pub(crate) fn new(process: Process) -> Self {
        let Process {
            input,
            output,
            log,
            read,
            clock,
            sleep,
        } = process;
        Self {
            wire: RefCell::new(Wire::new(input, output)),
            read,
            sleep,
            log: RefCell::new(log),
            clock,
            deadline: Cell::new(None),
        }
    }

    /// Begins a request that has this time, or ends one.
    pub(crate) fn set_deadline(&self, time: Option<Duration>) {
        let at = time.and_then(|time| (self.clock)().checked_add(time));
        self.deadline.set(at);
    }

    /// The time until the deadline of this request.
    pub(crate) fn left(&self) -> Option<Duration> {
        let deadline = self.deadline.get()?;
        Some(deadline.saturating_sub((self.clock)()))
    }

    pub(crate) fn log(&self, text: &str) {
        // A log that is gone is no reason to give no answer.
        writeln!(self.log.borrow_mut(), "{text}").ok();
    }
}
