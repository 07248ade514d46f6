//! The host crashed and came back: what still runs under its old tag is ended, what only looks alike is not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use authority::{Ambient, ErrorKind, end_survivors};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

fn start(mark: &str) -> Child {
    let child = Command::new("sleep").arg("300").env("YOI_CALL", mark).spawn().unwrap();
    let environ = format!("/proc/{}/environ", child.id());
    let wanted = format!("YOI_CALL={mark}");
    // Until the new program is in place; its parent's environment shows before that.
    while !std::fs::read(&environ).unwrap().split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()) {
        std::thread::yield_now();
    }
    child
}

#[test]
fn survivors_of_a_crash() {
    let ambient = Ambient::claim();
    let tag = format!("session-{}", std::process::id());
    let mut ours = [start(&format!("{tag}/1/c1")), start(&format!("{tag}/2/c2"))];
    let mut other = start(&format!("{tag}0/1/c1"));
    assert_eq!(end_survivors(&ambient, &format!("{tag}/2")).unwrap(), 1);
    assert_eq!(end_survivors(&ambient, &format!("{tag}/")).unwrap(), 1);
    assert_eq!(end_survivors(&ambient, &tag).unwrap(), 0);
    assert!(other.try_wait().unwrap().is_none(), "another tag's process was ended");
    other.kill().unwrap();
    other.wait().unwrap();
    // Ended and, being children of this very process, reaped.
    for child in &mut ours {
        assert!(child.wait().map_or(true, |status| status.signal() == Some(9)));
    }
    for empty in ["", "/"] {
        assert_eq!(end_survivors(&ambient, empty).unwrap_err().kind(), ErrorKind::FixInput);
    }
}
