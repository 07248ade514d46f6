//! The terminal at which a person answers questions: what was typed before a question does not answer it. Knows no pod.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// A line that is typed so soon after a question appeared was meant for something else.
const DEAD: Duration = Duration::from_millis(300);

/// How often it is checked whether a question still stands.
const TICK: Duration = Duration::from_millis(50);

/// Bytes of a line; a terminal gives no longer one.
const MAX_LINE: usize = 4096;

/// The controlling terminal of this process.
pub(crate) struct Terminal(File);

/// How a question ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TypedLine {
    Line(String),
    /// The end of input, or the terminal is gone or another program's.
    Left,
    /// The question does not stand any more.
    Over,
}

impl Terminal {
    /// The terminal, if this process is in its foreground and `shows`, which shows questions, is the same one.
    pub(crate) fn of_process(shows: impl AsFd) -> Option<Self> {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open("/dev/tty")
            .ok()?;
        (is_ours(&shows) && is_ours(&file)).then_some(Self(file))
    }

    /// Asks a question. Only `y` or `yes` agrees.
    pub(crate) fn agrees(
        &mut self,
        question: &str,
        stands: &mut dyn FnMut() -> bool,
        show: &mut dyn FnMut(&str),
    ) -> Result<bool, TypedLine> {
        self.settle(stands)?;
        show(question);
        match self.line(stands) {
            TypedLine::Line(line) => Ok(matches!(line.to_ascii_lowercase().as_str(), "y" | "yes")),
            none => Err(none),
        }
    }

    /// Drops what was typed before the question and in the moment after it. `stands` says whether the question still does.
    pub(crate) fn settle(&mut self, stands: &mut dyn FnMut() -> bool) -> Result<(), TypedLine> {
        let until = Instant::now() + DEAD;
        while Instant::now() < until {
            self.check(stands)?;
            std::thread::sleep(TICK);
        }
        tcflush(&self.0, QueueSelector::IFlush).map_err(|_gone| TypedLine::Left)
    }

    /// The next line that is typed.
    pub(crate) fn line(&mut self, stands: &mut dyn FnMut() -> bool) -> TypedLine {
        let mut typed = Vec::new();
        loop {
            if let Err(over) = self.check(stands) {
                return over;
            }
            if !self.is_readable() {
                continue;
            }
            let mut bytes = [0; MAX_LINE];
            match self.0.read(&mut bytes) {
                Ok(0) => return TypedLine::Left,
                Ok(read) => typed.extend_from_slice(bytes.get(..read).unwrap_or_default()),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_gone) => return TypedLine::Left,
            }
            if typed.ends_with(b"\n") || typed.len() >= MAX_LINE {
                return TypedLine::Line(String::from_utf8_lossy(&typed).trim().to_owned());
            }
        }
    }

    /// A process in the background would be stopped by reading.
    fn check(&self, stands: &mut dyn FnMut() -> bool) -> Result<(), TypedLine> {
        match (stands(), is_ours(&self.0)) {
            (false, _) => Err(TypedLine::Over),
            (true, false) => Err(TypedLine::Left),
            (true, true) => Ok(()),
        }
    }

    fn is_readable(&self) -> bool {
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: TICK.subsec_nanos().into(),
        };
        let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut polled, Some(&wait)).is_ok_and(|ready| ready > 0)
    }
}

/// Whether it is the terminal of this process, which is in its foreground.
fn is_ours(terminal: impl AsFd) -> bool {
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}

/// Whether a process without a sandbox can type on the terminal that started it (`TIOCSTI`). A sandbox prevents that.
pub(crate) fn children_can_type() -> bool {
    // Kernels without this setting allow it.
    fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti")
        .map_or(true, |setting| setting.trim() != "0")
}
