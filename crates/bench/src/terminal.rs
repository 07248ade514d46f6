//! A program on a terminal of its own, and when what it writes there arrives.

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What is not written for so long does not come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ends a frame.
const FRAME_END: &str = "\x1b[?2026l";
const SIZE: Winsize = Winsize {
    ws_col: 140,
    ws_row: 45,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

/// The terminal with the program.
pub struct Terminal {
    keys: File,
    program: Child,
    written: Arc<(Mutex<Written>, Condvar)>,
    /// Bytes that were looked at.
    seen: usize,
}

#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    /// How many bytes there were after each read.
    reads: Vec<(usize, Instant)>,
}

impl Written {
    /// The last of it.
    fn last(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes[self.bytes.len().saturating_sub(500)..])
    }
}

impl Terminal {
    /// Starts a program as the leader of a session with this terminal.
    #[must_use]
    pub fn start(wanted: &Command) -> Self {
        let shows = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&shows).unwrap();
        unlockpt(&shows).unwrap();
        tcsetwinsize(&shows, SIZE).unwrap();
        let name = ptsname(&shows, Vec::new()).unwrap().into_string().unwrap();
        let flags = OFlags::NOCTTY.bits().cast_signed();
        let end = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(name)
            .unwrap();
        let mut command = Command::new("setsid");
        command
            .arg("-c")
            .arg(wanted.get_program())
            .args(wanted.get_args());
        command.env_clear().envs(
            wanted
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.env("TERM", "xterm-256color");
        command
            .stdin(end.try_clone().unwrap())
            .stdout(end.try_clone().unwrap())
            .stderr(end);
        let program = command.spawn().unwrap();
        let mut shows = File::from(shows);
        let written = Arc::<(Mutex<Written>, Condvar)>::default();
        let keys = shows.try_clone().unwrap();
        let told = Arc::clone(&written);
        thread::spawn(move || {
            let mut piece = vec![0; 64 * 1024];
            while let Ok(read @ 1..) = shows.read(&mut piece) {
                let at = Instant::now();
                let mut written = told.0.lock().unwrap();
                written.bytes.extend_from_slice(&piece[..read]);
                let length = written.bytes.len();
                written.reads.push((length, at));
                told.1.notify_all();
            }
        });
        Self {
            keys,
            program,
            written,
            seen: 0,
        }
    }

    /// Types this; when that began.
    pub fn types(&mut self, text: &str) -> Instant {
        let began = Instant::now();
        self.keys.write_all(text.as_bytes()).unwrap();
        began
    }

    /// Waits until this is written, behind what was looked at; when its last byte was read.
    pub fn sees(&mut self, text: &str) -> Instant {
        let (written, more) = &*self.written;
        let mut held = written.lock().unwrap();
        let mut from = self.seen;
        loop {
            let found = held.bytes[from..]
                .windows(text.len())
                .position(|bytes| bytes == text.as_bytes());
            if let Some(at) = found {
                self.seen = from + at + text.len();
                return held.reads[held
                    .reads
                    .partition_point(|(length, _)| *length < self.seen)]
                .1;
            }
            from = held.bytes.len().saturating_sub(text.len()).max(from);
            let (again, waited) = more.wait_timeout(held, PATIENCE).unwrap();
            held = again;
            assert!(
                !waited.timed_out(),
                "{text:?} was not written, but {:?}",
                held.last()
            );
        }
    }

    /// How many frames were written, and none for that long behind them.
    pub fn frames(&mut self, quiet: Duration) -> usize {
        let (written, more) = &*self.written;
        let mut held = written.lock().unwrap();
        loop {
            let length = held.bytes.len();
            let (again, waited) = more
                .wait_timeout_while(held, quiet, |held| held.bytes.len() == length)
                .unwrap();
            held = again;
            if waited.timed_out() {
                let ends = held.bytes[self.seen..].windows(FRAME_END.len());
                let count = ends.filter(|bytes| *bytes == FRAME_END.as_bytes()).count();
                self.seen = held.bytes.len();
                return count;
            }
        }
    }

    /// The program.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.id()
    }

    /// Detaches and waits for the program's end.
    pub fn leaves(mut self) {
        self.types("\x1c");
        assert!(self.program.wait().unwrap().success());
    }
}
