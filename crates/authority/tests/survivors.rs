//! The host crashed and came back: what still runs under its old tag is ended, what only looks alike is not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use authority::{ErrorKind, HostChild, end_survivors, label_descendants};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

/// Set in the process that is a host.
const SESSION: &str = "YOI_TEST_SESSION";

fn start(mark: &str) -> Child {
    let child = Command::new("sleep")
        .arg("300")
        .env("YOI_CALL", mark)
        .spawn()
        .unwrap();
    let environ = format!("/proc/{}/environ", child.id());
    let wanted = format!("YOI_CALL={mark}");
    // Until the new program is in place; its parent's environment shows before that.
    while !std::fs::read(&environ)
        .unwrap()
        .split(|byte| *byte == 0)
        .any(|entry| entry == wanted.as_bytes())
    {
        std::thread::yield_now();
    }
    child
}

#[test]
fn survivors_of_a_crash() {
    let ambient = ambient::claim();
    let tag = format!("session-{}", std::process::id());
    let mut ours = [start(&format!("{tag}/1/c1")), start(&format!("{tag}/2/c2"))];
    let mut other = start(&format!("{tag}0/1/c1"));
    assert_eq!(end_survivors(&ambient, &format!("{tag}/2")).unwrap(), 1);
    assert_eq!(end_survivors(&ambient, &format!("{tag}/")).unwrap(), 1);
    assert_eq!(end_survivors(&ambient, &tag).unwrap(), 0);
    assert!(
        other.try_wait().unwrap().is_none(),
        "another tag's process was ended"
    );
    other.kill().unwrap();
    other.wait().unwrap();
    // Ended and, being children of this very process, reaped.
    for child in &mut ours {
        assert!(
            child
                .wait()
                .map_or(true, |status| status.signal() == Some(9))
        );
    }
    for empty in ["", "/"] {
        assert_eq!(
            end_survivors(&ambient, empty).unwrap_err().kind(),
            ErrorKind::FixInput
        );
    }
}

/// A host with a child of its own; does nothing unless it is that process.
#[test]
fn as_told() {
    let Ok(session) = std::env::var(SESSION) else {
        return;
    };
    assert!(label_descendants(&ambient::claim(), &session));
    let mut sleep = Command::new("sleep");
    sleep
        .arg("300")
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut own = HostChild::spawn(&ambient::claim(), &mut sleep).unwrap();
    eprintln!("{}", own.id());
    own.wait().unwrap();
}

/// A command that prints a key belongs to no call and has no mark. Of a session that lives as a copy, recovery ended the
/// host itself.
#[test]
fn what_a_dead_host_started_for_itself() {
    let session = format!("own-{}", std::process::id());
    let mut host = Command::new(std::env::current_exe().unwrap());
    host.args(["--exact", "as_told", "--nocapture"])
        .env(SESSION, &session)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut host = host.spawn().unwrap();
    let mut pid = String::new();
    let mut byte = [0];
    let mut said = host.stderr.take().unwrap();
    while said.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        pid.push(char::from(byte[0]));
    }
    assert_eq!(
        end_survivors(&ambient::claim(), &session).unwrap(),
        0,
        "its host lives"
    );
    host.kill().unwrap();
    host.wait().unwrap();
    assert_eq!(end_survivors(&ambient::claim(), &session).unwrap(), 1);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    assert!(
        stat.map_or(true, |stat| stat.contains(") Z")),
        "{pid} goes on"
    );
}
