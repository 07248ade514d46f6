//! Children that outlive the call that started them. Alone in its binary: it labels all that this program starts.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[allow(dead_code, reason = "a part is used")]
#[path = "children/shared.rs"]
mod shared;

use authority::{ChildExit, GRACE, Job, SandboxMode, label_descendants, processes_of};
use shared::{LONG, Place, probe, run};
use std::fs;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A child that is no call's: it says `ready`, starts a process that leaves its group, session and environment, and
/// never ends by itself.
const SCRIPT: &str =
    "setsid env -i sleep 301 & echo ready; trap '' TERM; while :; do sleep 302; done";

fn lasting(place: &Place, name: &str, script: &str) -> Job {
    Job {
        call: name.to_owned(),
        ..place.job("sh", &["-c", script])
    }
}

/// The command lines of the living processes of this place.
fn alive(place: &Place) -> Vec<String> {
    let session = place.tag.split('/').next().unwrap();
    processes_of(&ambient::claim(), session)
        .into_iter()
        .map(|process| process.command)
        .collect()
}

async fn until(what: impl Fn() -> bool) {
    let started = Instant::now();
    while !what() {
        assert!(started.elapsed() < LONG, "it took too long");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Threads of this program whose names begin like this.
fn threads(name: &str) -> usize {
    let names = fs::read_dir("/proc/self/task").unwrap().flatten();
    names
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .filter(|n| n.starts_with(name))
        .count()
}

#[tokio::test]
async fn a_child_of_no_call_outlives_calls_and_ends_with_all_that_it_started() {
    let place = Place::new();
    label_descendants(&ambient::claim(), &place.tag);
    let spawner = place.spawner(SandboxMode::Off).unwrap();
    let child = spawner
        .spawn(lasting(&place, "job-1", SCRIPT))
        .await
        .unwrap();
    assert!(child.pid() > 0 && child.started() > 0);
    let stop = CancellationToken::new();
    let mut said = Vec::new();
    let work = async {
        until(|| alive(&place).iter().any(|command| command == "sleep 301")).await;
        // No thread waits for it; the one that started it may take a moment to end.
        until(|| threads("spawn") + threads("wait") == 0).await;
        for script in [
            "true",
            "sleep 303 & exit 3",
            "exec setsid --wait sh -c 'exit 0'",
        ] {
            let (ended, _) = run(&spawner, place.job("sh", &["-c", script]))
                .await
                .unwrap();
            assert_eq!(ended.remaining, 0, "{script}: {ended:?}");
            assert_eq!(
                ended.leftovers,
                u32::from(script.contains("303")),
                "{script}"
            );
        }
        let left = alive(&place);
        assert!(
            ["sleep 301", "sleep 302"]
                .iter()
                .all(|wanted| left.iter().any(|command| command == wanted)),
            "{left:?}"
        );
        stop.cancel();
    };
    let mut keep = |bytes: &[u8]| {
        said.extend_from_slice(bytes);
        Ok(())
    };
    let (ended, ()) = tokio::join!(child.run(&mut keep, &stop), work);
    let ended = ended.unwrap();
    assert_eq!((ended.how, ended.remaining), (ChildExit::Cancelled, 0));
    assert!(ended.took >= GRACE, "it ignores SIGTERM: {:?}", ended.took);
    assert_eq!(
        (said.as_slice(), alive(&place)),
        (b"ready\n".as_slice(), Vec::new())
    );
}

#[tokio::test]
async fn a_dropped_child_is_killed() {
    let place = Place::new();
    let spawner = place.spawner(SandboxMode::Off).unwrap();
    drop(
        spawner
            .spawn(lasting(&place, "job-2", SCRIPT))
            .await
            .unwrap(),
    );
    spawner.door().shut().await;
    assert_eq!(alive(&place), Vec::<String>::new());
}

/// It is confined as a call is.
#[tokio::test]
async fn a_child_of_no_call_is_confined() {
    if !shared::confinable() {
        return;
    }
    let place = Place::new();
    let spawner = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let secret = place.home.join(".ssh/id");
    let script = format!(
        "cat {}; echo x > {}/new; echo $YOI_CALL",
        secret.display(),
        place.outside.display()
    );
    let child = spawner
        .spawn(lasting(&place, "job-3", &script))
        .await
        .unwrap();
    let mut said = Vec::new();
    let keep = |bytes: &[u8]| {
        said.extend_from_slice(bytes);
        Ok(())
    };
    child.run(keep, &CancellationToken::new()).await.unwrap();
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.ends_with(&format!("{}/job-3\n", place.tag)) && !said.contains("key\n"),
        "{said}"
    );
    assert!(!place.outside.join("new").exists());
}

/// A child that ended before it was waited for has ended.
#[tokio::test]
async fn an_end_before_the_wait_is_noticed() {
    let place = Place::new();
    let spawner = place.spawner(SandboxMode::Off).unwrap();
    let child = spawner
        .spawn(Job {
            call: "job-4".to_owned(),
            ..place.job(probe(), &["no-such-word"])
        })
        .await
        .unwrap();
    let zombie = || {
        fs::read_to_string(format!("/proc/{}/stat", child.pid()))
            .unwrap()
            .contains(") Z ")
    };
    until(zombie).await;
    let ended = child
        .run(|_| Ok(()), &CancellationToken::new())
        .await
        .unwrap();
    assert!(matches!(ended.how, ChildExit::Exit(_)), "{ended:?}");
}
