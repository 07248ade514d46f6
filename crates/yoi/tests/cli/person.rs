//! A person at a terminal: a program in a pseudo-terminal of its own, what it shows, and what is typed.

use crate::scene::{Scene, signal, terminal};
use rustix::process::Signal;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// What is not shown for so long does not come.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Shown {
    text: String,
    over: bool,
}

pub(crate) struct AtTerminal {
    keys: File,
    program: Child,
    shown: Arc<(Mutex<Shown>, Condvar)>,
    /// How much of it was waited for.
    read: usize,
}

impl AtTerminal {
    /// Starts the program on a terminal of its own, on which `typed` was typed before.
    pub(crate) fn start(scene: &Scene, typed: &str, args: &[&str]) -> Self {
        let command = scene.command(args);
        let mut argv = vec![command.get_program().to_owned()];
        argv.extend(command.get_args().map(ToOwned::to_owned));
        Self::start_by(scene, typed, &argv, &[])
    }

    /// The same by this script of bash, to which the program is `$YOI`.
    pub(crate) fn start_by_script(scene: &Scene, typed: &str, script: &str) -> Self {
        Self::start_by(
            scene,
            typed,
            &["bash".into(), "-c".into(), script.into()],
            &[],
        )
    }

    /// The program on a terminal of this many columns that can draw, with colours or without.
    pub(crate) fn start_drawing(scene: &Scene, columns: u16, colour: bool, args: &[&str]) -> Self {
        let command = scene.command(args);
        let size = format!("stty cols {columns}; exec \"$YOI\" \"$@\"");
        let mut argv = ["bash", "-c", &size, "yoi"]
            .map(std::ffi::OsString::from)
            .to_vec();
        argv.extend(command.get_args().map(ToOwned::to_owned));
        let no_colour = if colour { "" } else { "1" };
        Self::start_by(
            scene,
            "",
            &argv,
            &[("TERM", "xterm-256color"), ("NO_COLOR", no_colour)],
        )
    }

    fn start_by(
        scene: &Scene,
        typed: &str,
        argv: &[std::ffi::OsString],
        variables: &[(&str, &str)],
    ) -> Self {
        let (shows, end) = terminal();
        let mut keys = shows.try_clone().unwrap();
        keys.write_all(typed.as_bytes()).unwrap();
        let model = scene.command(&[]);
        let mut command = Command::new("setsid");
        command
            .arg("-c")
            .args(argv)
            .env_clear()
            .current_dir(scene.path("project"));
        command.envs(
            model
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command
            .env("YOI", model.get_program())
            .env("TERM", "dumb")
            .env("NO_COLOR", "1");
        command.envs(variables.iter().copied());
        command
            .stdin(end.try_clone().unwrap())
            .stdout(end.try_clone().unwrap())
            .stderr(end);
        let program = command.spawn().unwrap();
        // Only the program holds its end now; when it is gone, reading fails.
        drop(command);
        let shown = Arc::<(Mutex<Shown>, Condvar)>::default();
        let told = Arc::clone(&shown);
        thread::spawn(move || {
            let mut reader = shows;
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                told.0
                    .lock()
                    .unwrap()
                    .text
                    .push_str(&String::from_utf8_lossy(&bytes[..read]));
                told.1.notify_all();
            }
            told.0.lock().unwrap().over = true;
            told.1.notify_all();
        });
        Self {
            keys,
            program,
            shown,
            read: 0,
        }
    }

    /// Waits until this is shown, behind what was waited for before.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) {
        let (shown, changed) = &*self.shown;
        let found = |shown: &Shown| {
            shown.text[self.read..]
                .find(text)
                .map(|at| self.read + at + text.len())
        };
        let waits = |shown: &mut Shown| found(shown).is_none() && !shown.over;
        let (shown, _) = changed
            .wait_timeout_while(shown.lock().unwrap(), PATIENCE, waits)
            .unwrap();
        let found = found(&shown);
        let rest = shown.text[self.read..].to_owned();
        drop(shown);
        assert!(found.is_some(), "`{text}` is not in\n{rest}");
        self.read = found.unwrap();
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.program.id()
    }

    /// Waits for the program's end; gives all that was shown.
    #[track_caller]
    pub(crate) fn ends(mut self, code: i32) -> String {
        let (shown, changed) = &*self.shown;
        let (shown, _) = changed
            .wait_timeout_while(shown.lock().unwrap(), PATIENCE, |shown| !shown.over)
            .unwrap();
        let over = shown.over;
        let text = shown.text.clone();
        drop(shown);
        assert!(over, "it did not end:\n{text}");
        assert_eq!(self.program.wait().unwrap().code(), Some(code), "{text}");
        text
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        if self.program.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(self.program.id(), Signal::KILL);
            drop(self.program.wait());
        }
    }
}
