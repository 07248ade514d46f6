//! The terminal of the full screen: taken over, read, drawn on, and given back on every way out. Knows no pod and no
//! screen.
//!
//! Keys and frames go over the program's own opening of the terminal, which does not block: what shares standard input
//! with the program keeps its mode, and a terminal that takes no bytes stops nothing but the drawing.

mod decode;
mod inline;
mod paint;

pub(crate) use decode::TerminalInput;
pub(crate) use inline::InlinePainter;
pub(crate) use paint::Painter;

use decode::Decoder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::termios::{
    LocalModes, OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, ttyname,
};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

/// Bytes of one read.
const PIECE: usize = 4096;

/// How long the rest of a sequence may be under way behind its first byte.
const SEQUENCE: Duration = Duration::from_millis(30);

/// How long a terminal that takes no bytes is waited for when it is given back.
const LAST: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// The alternate screen, with a title of its own, pastes in brackets, notes about the focus, keys with modifiers as
/// kitty and xterm report them; lines do not wrap.
const ENTER: &str = "\x1b[?1049h\x1b[22;2t\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[>4;1m\x1b[?7l\x1b[2J";
const LEAVE: &str =
    "\x1b[?2026l\x1b[0m\x1b[<u\x1b[>4m\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[23;2t\x1b[?1049l\x1b[?25h";

/// The same without the alternate screen; what stands from the row of the caret on goes.
const ENTER_INLINE: &str = "\x1b[22;2t\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[>4;1m\x1b[?7l";
const LEAVE_INLINE: &str =
    "\x1b[?2026l\x1b[0m\r\x1b[J\x1b[<u\x1b[>4m\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[23;2t\x1b[?25h";

/// The wheel of the mouse.
const MOUSE: &str = "\x1b[?1000h\x1b[?1006h";
const NO_MOUSE: &str = "\x1b[?1006l\x1b[?1000l";

/// Columns and rows of a terminal that does not say how many it has.
const SIZE: (u16, u16) = (80, 24);

/// The terminal that was taken over. There is one, and the handler of panics gives it back, too.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

struct Taken {
    file: File,
    before: Termios,
    leave: String,
}

/// How much of a terminal is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// All of it, on its alternate screen, and the mouse if this is set.
    Screen { mouse: bool },
    /// The rows below what stands there.
    RowsBelow,
}

impl Takes {
    /// What is written first.
    const fn enter(self) -> [&'static str; 2] {
        match self {
            Self::Screen { mouse: true } => [ENTER, MOUSE],
            Self::Screen { mouse: false } => [ENTER, ""],
            Self::RowsBelow => [ENTER_INLINE, ""],
        }
    }

    /// What is written last.
    const fn leave(self) -> [&'static str; 2] {
        match self {
            Self::Screen { .. } => [NO_MOUSE, LEAVE],
            Self::RowsBelow => ["", LEAVE_INLINE],
        }
    }
}

/// A terminal that was taken over; it is given back when this is dropped.
pub(crate) struct FullTerminal {
    file: AsyncFd<File>,
    takes: Takes,
    decoder: Decoder,
    /// What the terminal did not take yet.
    unsent: Vec<u8>,
}

/// The end of a terminal: it hung up, or its input ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HungUp;

impl FullTerminal {
    /// Takes over the terminal of standard input, if standard output is the same one.
    ///
    /// # Errors
    /// There is no such terminal, or it cannot be opened or set.
    pub(crate) fn begin(takes: Takes) -> io::Result<Self> {
        let input = ttyname(io::stdin(), Vec::new())?;
        let output = ttyname(io::stdout(), Vec::new())?;
        if input != output {
            return Err(io::Error::other(
                "standard input and standard output are two terminals",
            ));
        }
        // After `su`, the terminal can be opened by the first name only; without a session of its own, by the second.
        let by_name = |_none| open(Path::new(OsStr::from_bytes(input.as_bytes())));
        let file = open(Path::new("/dev/tty")).or_else(by_name)?;
        Self::over(file, takes)
    }

    /// Takes over a terminal that was opened for it, to read and write without blocking.
    fn over(file: File, takes: Takes) -> io::Result<Self> {
        let mut terminal = Self {
            file: driven(file)?,
            takes,
            decoder: Decoder::default(),
            unsent: Vec::new(),
        };
        terminal.enter()?;
        Ok(terminal)
    }

    fn enter(&mut self) -> io::Result<()> {
        restore_on_panic();
        let file = self.file.get_ref();
        let before = tcgetattr(file)?;
        let mut raw = before.clone();
        raw.make_raw();
        let again = file.try_clone()?;
        // Of a terminal that was not given back, the mode is that of the screen.
        lock().get_or_insert(Taken {
            file: again,
            before,
            leave: self.takes.leave().concat(),
        });
        tcsetattr(file, OptionalActions::Now, &raw)?;
        self.unsent
            .extend_from_slice(self.takes.enter().concat().as_bytes());
        Ok(())
    }

    /// Takes the mouse, or gives it back; what that means, for people.
    pub(crate) fn turn_mouse(&mut self) -> &'static str {
        let Takes::Screen { mouse } = &mut self.takes else {
            return "the terminal has the mouse: it selects text";
        };
        *mouse = !*mouse;
        let (bytes, said) = if *mouse {
            (
                MOUSE,
                "the wheel scrolls; Shift selects text in most terminals",
            )
        } else {
            (
                NO_MOUSE,
                "the mouse selects text; F6: the wheel scrolls again",
            )
        };
        self.send(bytes.as_bytes());
        said
    }

    /// Gives the terminal back until [`Self::again`].
    pub(crate) fn leave(&mut self) {
        self.unsent.clear();
        give_back();
    }

    /// Takes the terminal over again.
    ///
    /// # Errors
    /// It cannot be set any more.
    pub(crate) fn again(&mut self) -> io::Result<()> {
        self.enter()
    }

    /// Whether another program, such as a shell, has set the mode of the terminal meanwhile.
    pub(crate) fn was_set(&self) -> bool {
        tcgetattr(self.file.get_ref()).is_ok_and(|now| now.local_modes.contains(LocalModes::ICANON))
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        match tcgetwinsize(self.file.get_ref()) {
            Ok(Winsize {
                ws_col: columns @ 1..,
                ws_row: rows @ 1..,
                ..
            }) => (columns, rows),
            _ => SIZE,
        }
    }

    /// Whether everything that was drawn is at the terminal: nothing is drawn before.
    pub(crate) fn is_ready(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Adds bytes for the terminal; [`Self::exchange`] writes them.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
    }

    /// Writes what the terminal takes now.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn flush(&mut self) -> Result<(), HungUp> {
        while !self.unsent.is_empty() {
            match self.file.get_ref().write(&self.unsent) {
                Ok(0) => return Err(HungUp),
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_gone) => return Err(HungUp),
            }
        }
        Ok(())
    }

    /// Waits until something was typed, or the terminal took bytes; then there may be nothing. Cancel-safe.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) async fn exchange(&mut self) -> Result<Vec<TerminalInput>, HungUp> {
        if self.decoder.is_undecided() {
            match timeout(SEQUENCE, self.read()).await {
                Ok(typed) => typed,
                Err(_late) => Ok(self.decoder.decide()),
            }
        } else if self.unsent.is_empty() {
            self.read().await
        } else {
            tokio::select! {
                typed = read(&self.file, &mut self.decoder) => typed,
                ready = self.file.writable() => {
                    // It is tried, whatever the kernel says of it.
                    ready.map_err(|_gone| HungUp)?.clear_ready();
                    self.flush()?;
                    Ok(Vec::new())
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Vec<TerminalInput>, HungUp> {
        read(&self.file, &mut self.decoder).await
    }
}

async fn read(file: &AsyncFd<File>, decoder: &mut Decoder) -> Result<Vec<TerminalInput>, HungUp> {
    let mut bytes = [0; PIECE];
    loop {
        let mut ready = file.readable().await.map_err(|_gone| HungUp)?;
        match ready.try_io(|file| file.get_ref().read(&mut bytes)) {
            Ok(Ok(0)) => return Err(HungUp),
            Ok(Ok(read)) => return Ok(decoder.push(bytes.get(..read).unwrap_or_default())),
            Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
            Ok(Err(_gone)) => return Err(HungUp),
            Err(_not_ready) => {}
        }
    }
}

impl Drop for FullTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

#[expect(
    deprecated,
    reason = "what replaces it is unsafe, for descriptors that change while they are owned"
)]
fn driven(file: File) -> io::Result<AsyncFd<File>> {
    AsyncFd::new(file)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

fn lock() -> std::sync::MutexGuard<'static, Option<Taken>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the terminal back as it was, once.
fn give_back() {
    let Some(Taken {
        mut file,
        before,
        leave,
    }) = lock().take()
    else {
        return;
    };
    tcsetattr(&file, OptionalActions::Now, &before).ok();
    // A frame may be at the terminal in part: what follows a broken sequence is read whole.
    let mut text = leave.into_bytes();
    while !text.is_empty() {
        match file.write(&text) {
            Ok(written @ 1..) => drop(text.drain(..written)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut polled = [PollFd::new(&file, PollFlags::OUT)];
                if !poll(&mut polled, Some(&LAST)).is_ok_and(|ready| ready > 0) {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => break,
        }
    }
}

/// The message of a panic is for the screen that was there before.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::os::fd::OwnedFd;
    use tokio::runtime::Builder;

    fn pty() -> (OwnedFd, File) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let shows = openpt(flags).unwrap();
        grantpt(&shows).unwrap();
        unlockpt(&shows).unwrap();
        let name = ptsname(&shows, Vec::new()).unwrap();
        (
            shows,
            open(Path::new(OsStr::from_bytes(name.as_bytes()))).unwrap(),
        )
    }

    fn modes(file: &File) -> (LocalModes, String) {
        let modes = tcgetattr(file).unwrap();
        (modes.local_modes, format!("{modes:?}"))
    }

    /// What was written so far.
    fn shown(shows: &OwnedFd) -> String {
        let mut bytes = [0; PIECE];
        let read = rustix::io::read(shows, &mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    // One test: there is one terminal that is given back.
    #[test]
    fn the_terminal_is_given_back_when_it_is_dropped_and_by_a_panic() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let (shows, file) = pty();
        let watched = file.try_clone().unwrap();
        let before = modes(&file);
        let mut terminal = FullTerminal::over(file, Takes::Screen { mouse: true }).unwrap();
        terminal.flush().unwrap();
        assert!(!modes(&watched).0.contains(LocalModes::ICANON));
        assert!(shown(&shows).starts_with("\x1b[?1049h"));
        terminal.leave();
        assert_eq!(modes(&watched), before);
        terminal.again().unwrap();
        terminal.again().unwrap();
        assert!(!modes(&watched).0.contains(LocalModes::ICANON));
        drop(terminal);
        assert_eq!(modes(&watched), before);
        let written = shown(&shows);
        assert!(
            written.ends_with("\x1b[?1049l\x1b[?25h") && written.contains(NO_MOUSE),
            "{written:?}"
        );

        let again = watched.try_clone().unwrap();
        let terminal = FullTerminal::over(again, Takes::Screen { mouse: false }).unwrap();
        let panicked = std::panic::catch_unwind(|| {
            let hook_is_first = modes(&watched);
            assert_ne!(hook_is_first, before);
            panic!("meant");
        });
        assert!(panicked.is_err());
        assert_eq!(modes(&watched), before, "before the screen is dropped");
        assert!(shown(&shows).ends_with("\x1b[?1049l\x1b[?25h"));
        drop(terminal);
    }

    #[test]
    fn keys_are_read_and_a_terminal_that_hung_up_has_ended() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let (shows, file) = pty();
        let file = driven(file).unwrap();
        let mut raw = tcgetattr(file.get_ref()).unwrap();
        raw.make_raw();
        tcsetattr(file.get_ref(), OptionalActions::Now, &raw).unwrap();
        let mut decoder = Decoder::default();
        rustix::io::write(&shows, b"a\x1b[A").unwrap();
        let typed = runtime.block_on(read(&file, &mut decoder)).unwrap();
        assert_eq!(
            typed,
            [
                TerminalInput::Key(tui::Key::Char('a')),
                TerminalInput::Key(tui::Key::Up)
            ]
        );
        drop(shows);
        assert_eq!(runtime.block_on(read(&file, &mut decoder)), Err(HungUp));
    }
}
