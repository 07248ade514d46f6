//! A person at the full screen: a program on a terminal of its own, and what that terminal shows.

use crate::scene::{Scene, signal, terminal};
use rustix::process::Signal;
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use vt100::{Parser, Screen};

/// What is not shown for so long does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The terminal before a program changed it, in words.
type Modes = String;

struct Shown {
    parser: Parser,
    /// Every byte.
    raw: Vec<u8>,
    over: bool,
}

pub(crate) struct AtScreen {
    keys: File,
    program: Child,
    shown: Arc<(Mutex<Shown>, Condvar)>,
    /// Held by whoever reads from the terminal.
    reads: Arc<Mutex<()>>,
    before: Modes,
}

impl AtScreen {
    /// Starts the program on a terminal of 80 columns and 24 rows, and waits for its screen.
    #[track_caller]
    pub(crate) fn start(scene: &Scene, args: &[&str]) -> Self {
        let person = Self::start_on(scene, (80, 24), "xterm-256color", args);
        person.until("no caret", |screen| {
            screen.alternate_screen() && !screen.hide_cursor() && !is_blank(screen)
        });
        person
    }

    /// Starts it on a terminal of this kind and size.
    pub(crate) fn start_on(
        scene: &Scene,
        (columns, rows): (u16, u16),
        kind: &str,
        args: &[&str],
    ) -> Self {
        let (shows, end) = terminal();
        tcsetwinsize(&shows, size(columns, rows)).unwrap();
        let keys = shows.try_clone().unwrap();
        let before = modes(&keys);
        let model = scene.command(args);
        let mut command = Command::new("setsid");
        command
            .arg("-c")
            .arg(model.get_program())
            .args(model.get_args())
            .current_dir(scene.path("project"));
        command.env_clear().envs(
            model
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.env("TERM", kind).env("EDITOR", "cat");
        command
            .stdin(end.try_clone().unwrap())
            .stdout(end.try_clone().unwrap())
            .stderr(end);
        let program = command.spawn().unwrap();
        drop(command);
        let shown = Shown {
            parser: Parser::new(some(rows), some(columns), 0),
            raw: Vec::new(),
            over: false,
        };
        let shown = Arc::new((Mutex::new(shown), Condvar::new()));
        let told = Arc::clone(&shown);
        let reads = Arc::new(Mutex::new(()));
        let may_read = Arc::clone(&reads);
        thread::spawn(move || {
            let mut reader = shows;
            let mut bytes = [0; 4096];
            loop {
                drop(may_read.lock().unwrap());
                let Ok(read @ 1..) = reader.read(&mut bytes) else {
                    break;
                };
                let mut shown = told.0.lock().unwrap();
                shown.parser.process(&bytes[..read]);
                shown.raw.extend_from_slice(&bytes[..read]);
                told.1.notify_all();
            }
            told.0.lock().unwrap().over = true;
            told.1.notify_all();
        });
        Self {
            keys,
            program,
            shown,
            reads,
            before,
        }
    }

    /// Waits until the screen is so; gives its text.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Screen) -> bool) -> String {
        let (shown, changed) = &*self.shown;
        let waits = |shown: &mut Shown| !is_so(shown.parser.screen()) && !shown.over;
        let (shown, _) = changed
            .wait_timeout_while(shown.lock().unwrap(), PATIENCE, waits)
            .unwrap();
        let fits = is_so(shown.parser.screen());
        let text = shown.parser.screen().contents();
        drop(shown);
        assert!(fits, "{what}:\n{text}");
        text
    }

    /// Waits until the screen shows this text.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) -> String {
        self.until(&format!("`{text}` is not shown"), |screen| {
            screen.contents().contains(text)
        })
    }

    /// Waits until the screen does not show this text.
    #[track_caller]
    pub(crate) fn misses(&self, text: &str) -> String {
        self.until(&format!("`{text}` is shown"), |screen| {
            !screen.contents().contains(text)
        })
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    /// Does this while nobody reads what the program shows, but for one piece at most.
    pub(crate) fn unread<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let reads = Arc::clone(&self.reads);
        let _stopped = reads.lock().unwrap();
        act(self)
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.shown
            .0
            .lock()
            .unwrap()
            .parser
            .screen_mut()
            .set_size(some(rows), some(columns));
        tcsetwinsize(&self.keys, size(columns, rows)).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.program.id()
    }

    /// Waits for the program's end, and that it left the terminal as it was; gives what the terminal shows behind it.
    #[track_caller]
    pub(crate) fn ends(mut self, code: i32) -> String {
        let began = Instant::now();
        while self.program.try_wait().unwrap().is_none() {
            let text = self.shown.0.lock().unwrap().parser.screen().contents();
            assert!(began.elapsed() < PATIENCE, "it did not end:\n{text}");
            thread::sleep(Duration::from_millis(5));
        }
        // What it wrote last may still be on its way.
        let (shown, changed) = &*self.shown;
        drop(
            changed
                .wait_timeout_while(shown.lock().unwrap(), PATIENCE, |shown| !shown.over)
                .unwrap(),
        );
        self.is_given_back();
        let status = self.program.wait().unwrap();
        let text = self.until("the end", |screen| !screen.alternate_screen());
        assert_eq!(status.code(), Some(code), "{text}");
        text
    }

    /// The terminal is in its first mode and shows its first screen.
    #[track_caller]
    pub(crate) fn is_given_back(&self) {
        self.until("the alternate screen was not left", |screen| {
            !screen.alternate_screen() && !screen.bracketed_paste() && !screen.hide_cursor()
        });
        self.until("the mouse was not given back", |screen| {
            screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
        });
        assert_eq!(modes(&self.keys), self.before);
    }

    /// Every byte that was written.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.shown.0.lock().unwrap().raw).into_owned()
    }
}

impl Drop for AtScreen {
    fn drop(&mut self) {
        if self.program.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(self.program.id(), Signal::KILL);
            drop(self.program.wait());
        }
    }
}

fn is_blank(screen: &Screen) -> bool {
    screen.contents().trim().is_empty()
}

fn some(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Of the end for programs: both ends have one mode.
fn modes(terminal: &File) -> Modes {
    let modes = tcgetattr(terminal).unwrap();
    format!(
        "{:?} {:?} {:?} {:?}",
        modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes
    )
}
