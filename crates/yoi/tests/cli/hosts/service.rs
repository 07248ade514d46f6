//! The unit file for systemd: what it runs is what this program does.

use super::newest;
use crate::scene::{Scene, finish, signal};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const UNIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/yoi@.service");

/// Section and key to value.
fn unit() -> BTreeMap<(String, String), String> {
    let text = fs::read_to_string(UNIT).unwrap();
    let mut section = String::new();
    let mut keys = BTreeMap::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            Some(name) => name.clone_into(&mut section),
            None => {
                let (key, value) = line.split_once('=').expect(line);
                let old = keys.insert((section.clone(), key.to_owned()), value.to_owned());
                assert_eq!(old, None, "{key} twice");
            }
        }
    }
    keys
}

/// The words of a command line for the pod `p`, with the program of this test.
fn words(value: &str) -> Vec<String> {
    let yoi = |word: &str| {
        if word.ends_with("/yoi") {
            env!("CARGO_BIN_EXE_yoi").to_owned()
        } else {
            word.replace("%i", "p")
        }
    };
    value.split_whitespace().map(yoi).collect()
}

#[test]
fn the_unit_starts_reloads_and_ends_a_pod() {
    let unit = unit();
    let service = |key: &str| unit[&("Service".to_owned(), key.to_owned())].clone();
    let scene = Scene::new();
    let start = words(&service("ExecStart"));
    let plain = scene.command(&[]);
    let mut host = Command::new(&start[0]);
    host.args(&start[1..]).env_clear().envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    host.current_dir(scene.path("project"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut host = host.spawn().unwrap();
    let mut lines = BufReader::new(host.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line.contains("p is ready (process ")));
    let reload = service("ExecReload").replace("$MAINPID", &host.id().to_string());
    assert!(
        Command::new("sh")
            .args(["-c", &reload])
            .status()
            .unwrap()
            .success()
    );
    assert!(lines.any(|line| line.contains("the configuration was read again")));
    // What systemd sends to end a service.
    signal(host.id(), Signal::TERM);
    finish(host).ends(0);
    assert_eq!(
        newest(&scene, "host_stopped").unwrap()["reason"],
        "stopped by a signal"
    );
    // Failures that a restart repeats are not restarted; an error of the program is.
    let prevented = service("RestartPreventExitStatus");
    let prevented: Vec<&str> = prevented.split_whitespace().collect();
    assert_eq!(
        (service("Restart").as_str(), prevented.as_slice()),
        ("on-failure", &["2", "65", "75", "78"][..])
    );
    assert!(service("TimeoutStopSec").parse::<u64>().unwrap() > 20);
}

#[test]
fn systemd_takes_the_unit_where_there_is_one() {
    if Command::new("systemd-analyze")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("yoi@p.service");
    let text = fs::read_to_string(UNIT)
        .unwrap()
        .replace("%h/.local/bin/yoi", env!("CARGO_BIN_EXE_yoi"));
    fs::write(&file, text).unwrap();
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--user", "--man=no"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&verify.stderr);
    let about: Vec<&str> = said.lines().filter(|line| line.contains("yoi@")).collect();
    assert!(
        about.is_empty(),
        "{}: {about:?}",
        Path::new(&file).display()
    );
}
