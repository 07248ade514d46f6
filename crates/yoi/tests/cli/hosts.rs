//! Pods that stay: processes of their own, started, ended, killed, and started again as they were.

mod full_disk;
mod idle;
mod keys;
mod lives;
mod outside;
mod recorded_options;
mod reloads;
mod service;

use crate::scene::{Done, Scene, gone, signal};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// How long anything here may take that is not measured.
const PATIENCE: Duration = Duration::from_secs(30);

/// The process of a pod. A test that fails leaves none.
pub(crate) struct Host {
    pub(crate) pid: u32,
}

impl Host {
    /// Starts the pod `p` and takes the process from the answer.
    #[track_caller]
    pub(crate) fn start(scene: &Scene, flags: &[&str]) -> Self {
        let done = scene
            .yoi(&[&["start", "p", "--json", "-q"], flags].concat())
            .ends(0);
        Self::of(&done)
    }

    #[track_caller]
    pub(crate) fn of(done: &Done) -> Self {
        let answer = done.json();
        assert_eq!(answer["started"], true, "{answer}");
        Self {
            pid: u32::try_from(answer["pid"].as_u64().unwrap()).unwrap(),
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        gone(&self.pid.to_string())
    }

    /// Sends a signal and waits for the end.
    #[track_caller]
    pub(crate) fn end(&self, with: Signal) {
        signal(self.pid, with);
        until("the host has ended", || self.is_gone());
    }

    fn proc(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.pid)).join(file)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if !self.is_gone() {
            signal(self.pid, Signal::KILL);
            until("the host was killed", || self.is_gone());
        }
    }
}

/// Waits until something holds; another process sends no signal when it does.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// How long a pod is stopped, in milliseconds; `.ci/long` sets a minute.
pub(crate) fn pause() -> u64 {
    std::env::var("YOI_TEST_PAUSE_MS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(300)
}

/// The newest record of a kind in a pod's journal, as it is on disk: the pod may be running.
pub(crate) fn newest(scene: &Scene, kind: &str) -> Option<Value> {
    let text = fs::read_to_string(scene.log_file("p")).unwrap_or_default();
    let mut records = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.rfind(|record| record["k"] == kind)
}
