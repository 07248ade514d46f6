//! A repository that somebody hostile made: whatever is in it, nothing of it runs by itself, and it gets nothing that
//! its user did not give.

mod configuration;
mod repository;
pub(crate) mod terminal;

use crate::scene::{Done, Scene};
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;

/// Something that commands of the repository would make.
fn marker(scene: &Scene) -> PathBuf {
    scene.path("marker")
}

/// A command that shows that it ran.
fn touch(scene: &Scene) -> String {
    format!("[\"touch\", \"{}\"]", marker(scene).display())
}

/// A server of the attacker's that notes whether anybody came.
struct Lair(TcpListener);

impl Lair {
    fn new() -> Self {
        let lair = TcpListener::bind("127.0.0.1:0").unwrap();
        lair.set_nonblocking(true).unwrap();
        Self(lair)
    }

    fn url(&self) -> String {
        format!("http://{}/v1", self.0.local_addr().unwrap())
    }

    #[track_caller]
    fn nobody_came(&self) {
        assert_eq!(
            self.0.accept().map(drop).map_err(|e| e.kind()),
            Err(std::io::ErrorKind::WouldBlock)
        );
    }
}

/// What people do in a repository before they trust it.
fn everything(scene: &Scene) -> Vec<Done> {
    let commands: [&[&str]; 11] = [
        &["run", "list the files"],
        &["run", "-c", "summarise this project"],
        &["run", "--ephemeral", "what changed?"],
        &["config", "show"],
        &["config", "check"],
        &["config", "path"],
        &["features"],
        &["features", "--explain", "Bash"],
        &["models"],
        &["doctor"],
        &["grant"],
    ];
    commands.iter().map(|args| scene.yoi(args)).collect()
}

/// Nothing ran, nothing was granted, nothing was written into the repository.
#[track_caller]
fn unharmed(scene: &Scene) {
    assert!(!marker(scene).exists(), "something ran");
    let granted =
        fs::read_dir(scene.path("state/yoi/grants")).is_ok_and(|mut files| files.next().is_some());
    assert!(!granted, "something was granted");
}

/// Every file below the project, with its length.
fn files(scene: &Scene) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut dirs = vec![scene.path("project")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let (path, meta) = entry
                .map(|e| (e.path(), e.path().symlink_metadata().unwrap()))
                .unwrap();
            if meta.is_dir() {
                dirs.push(path.clone());
            }
            found.push((path, meta.len()));
        }
    }
    found.sort();
    found
}
