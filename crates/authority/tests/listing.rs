//! The list of a pod's processes. Alone in its binary: it labels all that this program starts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

#[allow(dead_code, reason = "a part is used")]
#[path = "children/shared.rs"]
mod shared;

use authority::{
    HostChild, PodProcess, ProcessOwner, SandboxMode, label_descendants, processes_of,
};
use shared::{Place, run};
use std::process::Command;
use std::time::{Duration, Instant};

/// A call with a child that shed environment and session; the words are what is shown of it.
const SCRIPT: &str = "setsid env -i sleep 61 & : '\u{1b}[2J' '\u{202e}'; echo; \
                      while ! [ -e done ]; do sleep 0.01; done";

/// Set in the process that lists another one's.
const SESSION: &str = "YOI_TEST_SESSION";

fn one(list: &[PodProcess], what: impl Fn(&PodProcess) -> bool) -> PodProcess {
    let found: Vec<_> = list.iter().filter(|process| what(process)).collect();
    assert_eq!(found.len(), 1, "{list:#?}");
    found[0].clone()
}

/// The list, once there is such a process.
async fn until(
    list: &impl Fn() -> Vec<PodProcess>,
    what: impl Fn(&PodProcess) -> bool,
) -> Vec<PodProcess> {
    let started = Instant::now();
    loop {
        let all = list();
        if all.iter().any(&what) {
            return all;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{all:#?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// What another process lists; does nothing unless it is that one.
#[test]
fn as_told() {
    let Ok(session) = std::env::var(SESSION) else {
        return;
    };
    processes_of(&ambient::claim(), &session)
        .iter()
        .for_each(|process| eprintln!("{}", process.pid));
}

#[tokio::test]
async fn what_a_pod_runs_is_listed_with_its_owners() {
    let place = Place::new();
    let ambient = ambient::claim();
    let session = place.tag.split('/').next().unwrap().to_owned();
    assert!(label_descendants(&ambient, &place.tag));
    let spawner = place.spawner(SandboxMode::Off).unwrap();
    let list = || processes_of(&ambient::claim(), &session);
    assert_eq!(list(), []);
    let look = async {
        let started = until(&list, |process| process.command == "sleep 61").await;
        // After a call started, what the host starts is still its own.
        let mut own = HostChild::spawn(&ambient, Command::new("sleep").arg("62")).unwrap();
        let mut long = Command::new("sh");
        long.args(["-c", "read _", &"x".repeat(4000)])
            .stdin(std::process::Stdio::piped());
        let mut long = HostChild::spawn(&ambient, &mut long).unwrap();
        let both = until(&list, |process| process.command.ends_with('…')).await;
        assert!(processes_of(&ambient::claim(), "another").is_empty());
        let mut outside = Command::new(std::env::current_exe().unwrap());
        let outside = outside
            .args(["--exact", "as_told", "--nocapture"])
            .env(SESSION, &session)
            .output()
            .unwrap();
        let outside = String::from_utf8(outside.stderr).unwrap();
        let pids: Vec<u32> = outside.lines().map(|line| line.parse().unwrap()).collect();
        assert!(
            pids.contains(&own.id()) && !pids.contains(&std::process::id()),
            "not its host: {outside}"
        );
        for child in [&mut own, &mut long] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        std::fs::write(place.project.join("done"), "").unwrap();
        (started, both)
    };
    let (ended, (started, both)) =
        tokio::join!(run(&spawner, place.job("sh", &["-c", SCRIPT])), look);
    let call = ProcessOwner::Call("c00000001".to_owned());
    let main = one(&started, |process| process.command.starts_with("sh -c"));
    assert_eq!(
        (main.pid, &main.owner, main.parent),
        (ended.unwrap().0.pid, &call, std::process::id())
    );
    assert!(
        main.command.contains("\\u{1b}[2J' '\\u{202e}'"),
        "{}",
        main.command
    );
    assert!(
        main.memory > Some(100 << 10) && main.memory < Some(1 << 30),
        "{main:?}"
    );
    assert!(main.age < Duration::from_secs(60), "{main:?}");
    // Known by the number of its call alone.
    assert_eq!(
        one(&started, |process| process.command == "sleep 61").owner,
        call
    );
    assert!(started.is_sorted_by_key(|process| process.started));
    assert_eq!(
        one(&both, |process| process.command == "sleep 62").owner,
        ProcessOwner::Host
    );
    let long = one(&both, |process| process.command.ends_with('…'));
    assert!(long.command.len() < 1_100, "{}", long.command.len());
    assert_eq!(list(), []);
}
