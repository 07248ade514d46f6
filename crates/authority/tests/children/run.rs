//! Running: output, deadlines, cancellation, revocation, and what is left behind.

use super::shared::{self, LONG, Place, probe};
use authority::{ChildExit, DRAIN, ErrorKind, GRACE, SandboxMode, Spawner, resident_memory};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn free() -> (Place, Spawner) {
    let place = Place::new();
    let spawner = place.spawner(SandboxMode::Off).unwrap();
    (place, spawner)
}

/// Whether a process whose environment carries this call's mark is alive; zombies have none.
pub(super) fn alive(place: &Place, call: &str) -> bool {
    let mark = format!("YOI_CALL={}/{call}", place.tag);
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .map(|entry| entry.path().join("environ"))
        .filter_map(|path| std::fs::read(path).ok())
        .any(|environ| {
            environ
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        })
}

#[tokio::test]
async fn output_is_merged_in_order_and_input_is_empty() {
    let (place, spawner) = free();
    let script = "echo 1; echo 2 >&2; echo 3; cat; echo 4 >&2; exit 7";
    let (ended, output) = shared::run(&spawner, place.job("sh", &["-c", script]))
        .await
        .unwrap();
    assert_eq!(output, "1\n2\n3\n4\n");
    assert_eq!((ended.how, ended.leftovers), (ChildExit::Exit(7), 0));
    let (ended, _) = shared::run(&spawner, place.job("sh", &["-c", "kill -9 $$"]))
        .await
        .unwrap();
    assert_eq!(ended.how, ChildExit::Signal(9));
    assert_eq!(spawner.door().uses(), 2);
}

#[tokio::test]
async fn a_child_reads_its_input_to_the_end() {
    for mode in [SandboxMode::Off, SandboxMode::WorkspaceWrite] {
        let place = Place::new();
        let Ok(spawner) = place.spawner(mode) else {
            assert!(!shared::confinable());
            return;
        };
        let input = [b"first\0".as_slice(), &vec![b'x'; 300_000]].concat();
        let job = authority::Job {
            input: input.clone(),
            ..place.job("cat", &[])
        };
        let (ended, output) = shared::run(&spawner, job).await.unwrap();
        assert_eq!(
            (ended.how, output.as_bytes()),
            (ChildExit::Exit(0), input.as_slice())
        );
        let job = authority::Job {
            input: vec![0; (1 << 20) + 1],
            ..place.job("cat", &[])
        };
        assert_eq!(
            shared::run(&spawner, job).await.unwrap_err().kind(),
            ErrorKind::FixInput
        );
    }
}

#[tokio::test]
async fn the_memory_of_a_child_is_that_of_its_processes() {
    let (place, spawner) = free();
    let child = spawner
        .spawn(place.job("sh", &["-c", "sleep 300 & sleep 300 & echo ready; wait"]))
        .await
        .unwrap();
    let memory = child.memory().unwrap();
    let pid = child.pid();
    let cancel = CancellationToken::new();
    let mut seen = None;
    let ready = |_: &[u8]| {
        let alone = resident_memory(&ambient::claim(), pid).unwrap();
        seen = memory.resident().map(|all| (alone, all));
        cancel.cancel();
        Ok(())
    };
    child.run(ready, &cancel).await.unwrap();
    let (alone, all) = seen.unwrap();
    assert!(alone > 0 && all > alone, "{alone} of {all}");
    assert_eq!(memory.resident(), None, "it has ended");
}

#[tokio::test]
async fn a_gigabyte_goes_by_in_pieces() {
    let (place, spawner) = free();
    let mut total = 0_u64;
    let count = |bytes: &[u8]| {
        assert!(bytes.len() <= 64 * 1024);
        total += bytes.len() as u64;
        Ok(())
    };
    let job = place.job("head", &["-c", "1073741824", "/dev/zero"]);
    let ended = spawner
        .run(job, count, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((ended.how, total), (ChildExit::Exit(0), 1 << 30));
}

/// The caller's disk is full: the child is not left writing.
#[tokio::test]
async fn refused_output_ends_the_child() {
    let (place, spawner) = free();
    let refuse = |_: &[u8]| Err(io::Error::from(io::ErrorKind::StorageFull));
    let job = place.job("sh", &["-c", "yes"]);
    let error = spawner
        .run(job, refuse, &CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exhausted);
    assert!(!alive(&place, "c00000001"));
}

#[tokio::test]
async fn deadlines() {
    let (place, spawner) = free();
    let grace = GRACE.as_millis();
    // What runs, the least and the most time it takes after a deadline of 100 ms, in ms.
    let table: &[(&[&str], u128, u128)] = &[
        (&["polite"], 100, grace),
        (&["stop"], 100, grace),
        (&["stubborn"], 100 + grace, 100 + 2 * grace),
    ];
    for (args, least, most) in table {
        let mut job = place.job(probe(), args);
        job.deadline = Duration::from_millis(100);
        let (ended, _) = shared::run(&spawner, job).await.unwrap();
        assert_eq!(ended.how, ChildExit::Deadline, "{args:?}");
        let took = ended.took.as_millis();
        assert!(took >= *least && took < *most, "{args:?} took {took} ms");
        assert!(!alive(&place, "c00000001"), "{args:?}");
    }
}

/// Endless output must not keep the deadline from being looked at.
#[tokio::test]
async fn a_flood_does_not_delay_its_deadline() {
    let (place, spawner) = free();
    let mut job = place.job("yes", &[]);
    job.deadline = Duration::from_millis(200);
    let ended = spawner
        .run(job, |_| Ok(()), &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(ended.how, ChildExit::Deadline);
    assert!(ended.took < GRACE, "{:?}", ended.took);
}

#[tokio::test]
async fn cancelled_and_revoked() {
    let (place, spawner) = free();
    let cancel = CancellationToken::new();
    let stop = |bytes: &[u8]| {
        assert_eq!(bytes, b"ready\n");
        cancel.cancel();
        Ok(())
    };
    let ended = spawner
        .run(place.job(probe(), &["polite"]), stop, &cancel)
        .await
        .unwrap();
    assert_eq!(ended.how, ChildExit::Cancelled);
    // Revoked while it runs: `shut` resolves when nothing of it is left.
    let derived = spawner.derive();
    let door = spawner.door().clone();
    let (told, mut hear) = tokio::sync::mpsc::unbounded_channel();
    let job = place.job(probe(), &["polite"]);
    let run = async {
        let ready = |_: &[u8]| told.send(()).map_err(io::Error::other);
        derived
            .run(job, ready, &CancellationToken::new())
            .await
            .unwrap_err()
    };
    let revoke = async {
        hear.recv().await.unwrap();
        door.shut().await;
        assert!(!alive(&place, "c00000001"));
    };
    let (error, ()) = tokio::join!(run, revoke);
    assert_eq!(error.kind(), ErrorKind::Revoked);
    assert_eq!(
        shared::run(&spawner, place.job("true", &[]))
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::Revoked
    );
}

/// A background process keeps the pipe open: its output so far counts, its end is not waited for.
#[tokio::test]
async fn a_grandchild_that_holds_the_pipe() {
    let (place, spawner) = free();
    let script = "(sleep 0.02; echo late; exec sleep 300) & echo early";
    let (ended, output) = shared::run(&spawner, place.job("sh", &["-c", script]))
        .await
        .unwrap();
    assert_eq!((ended.how, ended.leftovers), (ChildExit::Exit(0), 1));
    assert_eq!(output, "early\nlate\n");
    assert!(ended.took < DRAIN, "quiet ends it: {:?}", ended.took);
    // One that never stops talking.
    let (ended, _) = shared::run(&spawner, place.job("sh", &["-c", "yes & true"]))
        .await
        .unwrap();
    assert_eq!((ended.how, ended.leftovers), (ChildExit::Exit(0), 1));
    assert!(ended.took < Duration::from_secs(5), "{:?}", ended.took);
}

/// A daemon left the group and the session; with its own environment it is known, without it is a stranger.
#[tokio::test]
async fn daemons_are_found() {
    let (place, spawner) = free();
    for kind in ["loud", "quiet"] {
        let (ended, output) = shared::run(&spawner, place.job(probe(), &["daemon", "300", kind]))
            .await
            .unwrap();
        assert_eq!(
            (ended.how, ended.leftovers, output.trim()),
            (ChildExit::Exit(0), 1, "ok"),
            "{kind}"
        );
        assert!(!alive(&place, "c00000001"), "{kind}");
    }
}

#[tokio::test]
async fn a_dropped_run_kills() {
    let (place, spawner) = free();
    let (told, mut hear) = tokio::sync::mpsc::unbounded_channel();
    let ready = |_: &[u8]| told.send(()).map_err(io::Error::other);
    let cancel = CancellationToken::new();
    {
        let run = spawner.run(place.job(probe(), &["stubborn"]), ready, &cancel);
        tokio::select! {
            _ = run => panic!("it runs for ever"),
            heard = hear.recv() => assert!(heard.is_some()),
        }
    }
    spawner.door().shut().await;
    assert!(!alive(&place, "c00000001"));
}

/// As the pod does it: I/O on a current-thread runtime, eight callers that block on it from threads of their own.
#[test]
fn eight_at_once_from_other_threads() {
    let place = Place::new();
    let spawner = place.spawner(SandboxMode::Off).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let handle = runtime.handle().clone();
    runtime.block_on(async {
        let calls: Vec<_> = (0..8)
            .map(|n| {
                let spawner = spawner.clone();
                let handle = handle.clone();
                let mut job = place.job(
                    "sh",
                    &["-c", &format!("sleep 0.1; echo {n}; (setsid sleep 300 &)")],
                );
                job.call = format!("c{n}");
                tokio::task::spawn_blocking(move || handle.block_on(shared::run(&spawner, job)))
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            let (ended, output) = call.await.unwrap().unwrap();
            assert_eq!(
                (ended.how, output.trim()),
                (ChildExit::Exit(0), n.to_string().as_str())
            );
            assert_eq!(ended.leftovers, 1);
            assert!(ended.took < LONG);
        }
    });
    for n in 0..8 {
        assert!(!alive(&place, &format!("c{n}")));
    }
}

/// Directories that their owner cannot empty, as Go's module cache makes them, are removed all the same.
#[tokio::test]
async fn temporary_directories_go() {
    let (place, spawner) = free();
    let script = "mkdir -p $TMPDIR/a/b && touch $TMPDIR/a/b/c && chmod 500 $TMPDIR/a/b $TMPDIR/a && echo $TMPDIR";
    let (_, output) = shared::run(&spawner, place.job("sh", &["-c", script]))
        .await
        .unwrap();
    let temp = Path::new(output.trim());
    let base = temp.parent().unwrap().to_owned();
    assert!(!temp.exists() && base.exists());
    drop(spawner);
    assert!(!base.exists());
}

/// Three quarters of a start were for children of which most runs have none yet.
#[tokio::test]
async fn what_confines_children_is_built_when_it_is_prepared_or_used() {
    if !shared::confinable() {
        return;
    }
    for is_prepared in [true, false] {
        let mut place = Place::new();
        let temp = place.dir.path().join("temp");
        std::fs::create_dir(&temp).unwrap();
        place.vars.push(("TMPDIR".into(), temp.clone().into()));
        let count = || std::fs::read_dir(&temp).unwrap().count();
        let spawner = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
        assert_eq!(count(), 0);
        if is_prepared {
            spawner.clone().prepare().unwrap();
            assert_eq!(count(), 1);
        }
        let (ended, _) = shared::run(&spawner, place.job("true", &[])).await.unwrap();
        assert_eq!((ended.how, count()), (ChildExit::Exit(0), 1));
        drop(spawner);
        assert_eq!(count(), 0);
    }
}

/// What would fail at the first child fails at the start.
#[test]
fn a_directory_for_temporary_files_is_looked_at_first() {
    let mut place = Place::new();
    let absent = place.dir.path().join("absent");
    place.vars.push(("TMPDIR".into(), absent.clone().into()));
    let error = place.spawner(SandboxMode::Off).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("set TMPDIR"), "{error}");
}

/// A host that stayed for weeks met a cleaner of `/tmp` that looks at ages and not at locks: no command ran any more.
#[tokio::test]
async fn temporary_directories_that_were_removed_are_made_again() {
    for mode in [SandboxMode::Off, SandboxMode::WorkspaceWrite] {
        if mode == SandboxMode::WorkspaceWrite && !shared::confinable() {
            return;
        }
        let mut place = Place::new();
        let temp = place.dir.path().join("temp");
        std::fs::create_dir(&temp).unwrap();
        place.vars.push(("TMPDIR".into(), temp.clone().into()));
        let spawner = place.spawner(mode).unwrap();
        let writes = place.job("sh", &["-c", "echo x > $TMPDIR/file && echo $TMPDIR"]);
        let used = async || {
            shared::run(&spawner, writes.clone())
                .await
                .unwrap()
                .1
                .trim()
                .to_owned()
        };
        let calls = Path::new(&used().await).parent().unwrap().to_owned();
        let host = calls.parent().unwrap();
        let owner = std::fs::read_link(host.join("owner")).unwrap();
        std::fs::remove_file(host.join("owner")).unwrap();
        assert!(
            used().await.starts_with(calls.to_str().unwrap()),
            "what is there is used"
        );
        assert_eq!(std::fs::read_link(host.join("owner")).unwrap(), owner);
        for above in [1, 2] {
            let before = used().await;
            let gone = Path::new(&before).ancestors().nth(above).unwrap();
            authority::remove_dir(&ambient::claim(), gone).unwrap();
            let again = used().await;
            assert!(again.starts_with(temp.to_str().unwrap()), "{again}");
            assert!(!again.starts_with(gone.to_str().unwrap()), "{again}");
        }
        drop(spawner);
        assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
    }
}

/// 25,000 directories in each other were removed with a frame of the stack for each, which ended the host.
#[tokio::test]
async fn temporary_directories_of_any_depth_go() {
    let mut place = Place::new();
    // Where it is no matter of the disk.
    if Path::new("/dev/shm").is_dir() {
        place.vars.push(("TMPDIR".into(), "/dev/shm".into()));
    }
    let depth = "25000";
    for mode in [SandboxMode::Off, SandboxMode::WorkspaceWrite] {
        if mode == SandboxMode::WorkspaceWrite && !shared::confinable() {
            return;
        }
        let spawner = place.spawner(mode).unwrap();
        let (_, said) = shared::run(&spawner, place.job("sh", &["-c", "echo $TMPDIR"]))
            .await
            .unwrap();
        let base = Path::new(said.trim()).parent().unwrap().to_owned();
        assert_eq!(
            place.says(&spawner, &["nested", "TMPDIR", depth]).await,
            "ok"
        );
        if mode == SandboxMode::WorkspaceWrite {
            assert_eq!(
                place
                    .says(&spawner, &["nested", "XDG_CACHE_HOME", depth])
                    .await,
                "ok"
            );
        }
        drop(spawner);
        assert!(!base.exists());
    }
}
