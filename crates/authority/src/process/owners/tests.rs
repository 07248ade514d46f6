//! Which processes the end of a call ends: in processes of their own, as a subreaper ends what it cannot attribute.
#![allow(clippy::zombie_processes, reason = "calls reap them")]

use super::*;
use crate::process::alone::alone;
use crate::process::descendants::{Leftovers, RunningCall, become_subreaper};
use crate::process::host_child::HostChild;
use crate::process::label::label_descendants;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn sleep() -> Command {
    let mut sleep = Command::new("sleep");
    sleep
        .arg("60")
        .env_clear()
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    sleep
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

fn lives(pid: Pid) -> bool {
    processes::look(pid).is_some_and(|process| !process.zombie)
}

/// What the call started, as an orphan that shed its group and its environment.
fn labelled(call: &RunningCall) -> Child {
    let _guard = lock();
    label::next_child(Some(call.call));
    sleep().spawn().unwrap()
}

/// What the end of a short call ends and says.
fn short_call() -> Leftovers {
    let call = RunningCall::take();
    let main = call
        .spawn(&mut Command::new("true"), "s/1/short", || Ok(()))
        .unwrap();
    call.end(pid(&main)).0
}

/// A child of the host's own, and one that it leaves behind.
fn host_child() -> (HostChild, Pid) {
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            "setsid sh -c 'sleep 60 >&- 2>&- & echo $!'; exec sleep 60 2>&-",
        ])
        .stdout(Stdio::piped());
    let mut child = HostChild::spawn(&ambient::claim(), &mut shell).unwrap();
    let mut text = String::new();
    let mut byte = [0];
    let mut stdout = child.stdout.take().unwrap();
    while stdout.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        text.push(char::from(byte[0]));
    }
    let left = processes::pid_of(&text).unwrap();
    while processes::look(left).unwrap().parent != rustix::process::getpid().as_raw_nonzero().get()
    {
        std::thread::yield_now();
    }
    (child, left)
}

fn end(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn only_dead_owners_lose_their_processes() {
    if !alone(module_path!(), "only_dead_owners_lose_their_processes") {
        return;
    }
    become_subreaper(&ambient::claim()).unwrap();
    assert!(label_descendants(&ambient::claim(), "s/1"));
    let running = RunningCall::take();
    let main = running.spawn(&mut sleep(), "s/1/long", || Ok(())).unwrap();
    let below = labelled(&running);
    let (mut ward, left) = host_child();
    // Not entered in the table: its label is the host's.
    let mut other = sleep().spawn().unwrap();
    let ended = RunningCall::take();
    let dead = labelled(&ended);
    drop(ended);
    assert_eq!(
        short_call(),
        Leftovers {
            ended: 1,
            remaining: 0,
            refused: None
        }
    );
    assert!(!lives(pid(&dead)));
    let all = [pid(&main), pid(&below), pid(&ward), left, pid(&other)];
    assert_eq!(all.map(lives), [true; 5]);
    // This call is never ended, so it is a dead owner, too.
    drop(running);
    assert_eq!(
        short_call(),
        Leftovers {
            ended: 2,
            remaining: 0,
            refused: None
        }
    );
    assert_eq!(all.map(lives), [false, false, true, true, true]);
    // A ward that ended is waited for by the host alone.
    ward.kill().unwrap();
    while lives(pid(&ward)) {
        std::thread::yield_now();
    }
    assert_eq!(short_call(), Leftovers::default());
    assert!(!ward.wait().unwrap().success());
    end(&mut other);
    // What it left behind is reaped, even where no call ends.
    rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
    while lives(left) {
        std::thread::yield_now();
    }
    drop(ward);
    assert_eq!(processes::look(left), None);
    assert_eq!(processes::own_children(), []);
    assert!(lock().table().calls.is_empty() && lock().table().wards.is_empty());
}

#[test]
fn a_stranger_is_left_while_its_owner_may_live() {
    if !alone(
        module_path!(),
        "a_stranger_is_left_while_its_owner_may_live",
    ) {
        return;
    }
    become_subreaper(&ambient::claim()).unwrap();
    let mut ward = HostChild::spawn(&ambient::claim(), &mut sleep()).unwrap();
    let call = RunningCall::take();
    let main = call
        .spawn(&mut Command::new("true"), "s/1/c1", || Ok(()))
        .unwrap();
    // No label, no mark, another group.
    let stranger = pid(&sleep().spawn().unwrap());
    assert_eq!(
        call.end(pid(&main)).0,
        Leftovers {
            ended: 0,
            remaining: 1,
            refused: None
        },
        "it may be this call's"
    );
    // Start times count 10 ms.
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(
        short_call(),
        Leftovers::default(),
        "it is older than this call"
    );
    assert!(lives(stranger) && lives(pid(&ward)));
    // A mark of a call that ended is enough.
    let marked = sleep().env(MARK, "s/1/c1").spawn().unwrap();
    assert_eq!(
        short_call(),
        Leftovers {
            ended: 1,
            remaining: 0,
            refused: None
        }
    );
    assert!(!lives(pid(&marked)) && lives(stranger));
    end(&mut ward);
    drop(ward);
    // A younger owner has not started it.
    let young = RunningCall::take();
    let main = young.spawn(&mut sleep(), "s/1/young", || Ok(())).unwrap();
    assert_eq!(
        short_call(),
        Leftovers {
            ended: 1,
            remaining: 0,
            refused: None
        }
    );
    assert!(!lives(stranger) && lives(pid(&main)));
    drop(young);
    assert_eq!(
        short_call(),
        Leftovers {
            ended: 1,
            remaining: 0,
            refused: None
        }
    );
    assert_eq!(processes::own_children(), []);
}
