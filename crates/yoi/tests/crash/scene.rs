//! A home, a state directory and a project of their own, and `yoi` started in them.

use crate::victim;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The pod's name.
pub(crate) const POD: &str = "victim";

pub(crate) struct Scene {
    root: TempDir,
}

impl Scene {
    /// In memory where there is such a place, so that the disk's speed does not matter.
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let place = Self { root };
        for dir in ["home", "live/state", "live/project", "tmp", "config"] {
            fs::create_dir_all(place.root.path().join(dir)).unwrap();
        }
        fs::write(
            place.root.path().join("script.jsonl"),
            crate::script::text(),
        )
        .unwrap();
        place
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("live/project")
    }

    pub(crate) fn pod(&self) -> PathBuf {
        self.root.path().join("live/state/yoi/pods").join(POD)
    }

    /// The newest segment of the log.
    pub(crate) fn segment(&self) -> PathBuf {
        let mut segments: Vec<PathBuf> = fs::read_dir(self.pod().join("log"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        segments.sort();
        segments.pop().unwrap()
    }

    /// Another script.
    pub(crate) fn script(&self, text: &str) {
        fs::write(self.root.path().join("script.jsonl"), text).unwrap();
    }

    /// A command of this program as `yoi`.
    pub(crate) fn yoi(&self, args: &[&str]) -> Command {
        let root = self.root.path();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env(victim::ROLE, "1")
            .env("HOME", root.join("home"))
            .env("TMPDIR", root.join("tmp"));
        command
            .env("XDG_STATE_HOME", root.join("live/state"))
            .env("XDG_CONFIG_HOME", root.join("config"));
        command
            .arg("-C")
            .arg(self.project())
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// A run on the pod, dying at `point` if there is one.
    pub(crate) fn run(&self, point: Option<&str>) -> Output {
        self.run_command(point).output().unwrap()
    }

    pub(crate) fn run_command(&self, point: Option<&str>) -> Command {
        let model = self.model();
        let mut command = self.yoi(&["run", "--pod", POD, "--json", "-m", &model, "go on"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(point) = point {
            command.env(victim::POINT, point);
        }
        command
    }

    /// The script as a model.
    pub(crate) fn model(&self) -> String {
        format!(
            "scripted:{}",
            self.root.path().join("script.jsonl").display()
        )
    }

    /// For what a process leaves word of.
    pub(crate) fn record_file(&self) -> PathBuf {
        self.root.path().join("points")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// A run that writes down the points it reaches.
    pub(crate) fn record(&self) -> (Output, Vec<String>) {
        let file = self.record_file();
        drop(fs::remove_file(&file));
        let output = self
            .run_command(None)
            .env(victim::RECORD, &file)
            .output()
            .unwrap();
        (
            output,
            fs::read_to_string(&file)
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Keeps state and project as they are now, to come back to.
    pub(crate) fn keep(&self) {
        let kept = self.root.path().join("kept");
        if kept.exists() {
            fs::remove_dir_all(&kept).unwrap();
        }
        copy(&self.root.path().join("live"), &kept);
    }

    /// Comes back to what was kept.
    pub(crate) fn restore(&self) {
        fs::remove_dir_all(self.root.path().join("live")).unwrap();
        copy(
            &self.root.path().join("kept"),
            &self.root.path().join("live"),
        );
    }

    pub(crate) fn effects(&self) -> String {
        fs::read_to_string(self.project().join(crate::script::EFFECTS)).unwrap_or_default()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            // A killed host leaves its socket, which cannot be copied and is replaced by the next host.
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
