//! Children that are talked to: lines there and back, and whatever a child does instead.

use super::run::alive;
use super::shared::{LONG, Place, apart, confinable, run};
use authority::{ChildExit, ErrorKind, MAX_LINE, SandboxMode, Spawner, Talk};
use std::time::Duration;
use tokio::time::{Instant, timeout};

const CALL: &str = "c00000001";
const AT_ONCE: Duration = Duration::ZERO;

/// Without a sandbox, confined, and in namespaces, as far as this machine has them.
fn spawners(place: &Place) -> Vec<Spawner> {
    let mut all = vec![place.spawner(SandboxMode::Off).unwrap()];
    if confinable() {
        all.push(place.spawner(SandboxMode::WorkspaceWrite).unwrap());
        all.extend(apart(place, SandboxMode::WorkspaceWrite));
    }
    all
}

async fn talk(spawner: &Spawner, place: &Place, script: &str) -> Talk {
    spawner
        .talk(place.job("bash", &["-c", script]))
        .await
        .unwrap()
}

async fn line(talk: &mut Talk) -> Option<String> {
    let line = timeout(LONG, talk.line()).await.expect("a line").unwrap();
    line.map(|line| String::from_utf8(line).unwrap())
}

/// What a child says to `hello`.
type Says = Result<&'static [&'static str], ErrorKind>;

/// (what a child runs, its first lines, how it ends).
const CHILDREN: &[(&str, Says, Option<ChildExit>)] = &[
    // Answers each line.
    (
        "while read -r line; do echo \"heard $line\"; echo aside >&2; done; exit 4",
        Ok(&["heard hello"]),
        Some(ChildExit::Exit(4)),
    ),
    // One line of a gigabyte.
    (
        "head -c 1073741824 /dev/zero",
        Err(ErrorKind::Exhausted),
        None,
    ),
    // A flood, and a flood of standard error.
    ("yes y", Ok(&["y", "y", "y"]), None),
    ("yes >&2 & echo here; cat", Ok(&["here", "hello"]), None),
    // Closes its output and goes on; dies; dies within a line.
    (
        "exec >&-; trap '' TERM; sleep 300; sleep 300",
        Ok(&[]),
        None,
    ),
    ("exit 3", Ok(&[]), Some(ChildExit::Exit(3))),
    ("printf 'half a li'", Ok(&[]), Some(ChildExit::Exit(0))),
    ("kill -9 $$", Ok(&[]), Some(ChildExit::Signal(9))),
    // Starts others, and ends before them.
    (
        "setsid sleep 300 & (setsid sleep 300 &) ; echo forked",
        Ok(&["forked"]),
        Some(ChildExit::Exit(0)),
    ),
];

#[tokio::test]
async fn a_child_says_lines_or_is_ended_with_all_that_it_started() {
    let place = Place::new();
    for spawner in spawners(&place) {
        for (script, says, how) in CHILDREN {
            let mut talk = talk(&spawner, &place, script).await;
            // One that has ended already does not read it.
            timeout(LONG, talk.send(b"hello")).await.unwrap().ok();
            match says {
                Ok(lines) => {
                    for said in *lines {
                        assert_eq!(line(&mut talk).await.as_deref(), Some(*said), "{script}");
                    }
                    if lines.is_empty() {
                        assert_eq!(line(&mut talk).await, None, "{script}");
                    }
                }
                Err(kind) => {
                    let error = timeout(LONG, talk.line()).await.unwrap().unwrap_err();
                    assert_eq!(error.kind(), *kind, "{script}: {error}");
                }
            }
            let kept = talk.stderr();
            assert!(kept.len() <= 16 << 10, "{script}: {}", kept.len());
            let wait = how.map_or(AT_ONCE, |_| LONG);
            let ended = talk.end(wait).await.unwrap();
            assert_eq!(ended.remaining, 0, "{script}");
            assert!(
                how.is_none_or(|how| how == ended.how),
                "{script}: {ended:?}"
            );
            assert!(!alive(&place, CALL), "{script}");
        }
    }
}

#[tokio::test]
async fn a_line_has_a_bound_and_both_outputs_are_apart() {
    let place = Place::new();
    for spawner in spawners(&place) {
        let script = "echo aside >&2; while read -r line; do echo \"$line\"; done";
        let mut talk = talk(&spawner, &place, script).await;
        let most = vec![b'x'; MAX_LINE];
        // The child reads and writes while this writes.
        let sent = timeout(LONG, talk.send(&most)).await.unwrap();
        sent.unwrap();
        assert_eq!(line(&mut talk).await.unwrap().len(), MAX_LINE);
        for bad in [vec![b'x'; MAX_LINE + 1], b"two\nlines".to_vec()] {
            let error = talk.send(&bad).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FixInput, "{error}");
        }
        talk.send(b"more").await.unwrap();
        assert_eq!(line(&mut talk).await.as_deref(), Some("more"));
        assert_eq!(talk.stderr(), "aside\n");
        assert_eq!(talk.end(LONG).await.unwrap().how, ChildExit::Exit(0));
        assert!(!alive(&place, CALL));
    }
}

// A line that was cut off would be read as the begin of the next one.
#[tokio::test]
async fn a_child_that_never_reads_is_not_written_to_again() {
    let place = Place::new();
    for spawner in spawners(&place) {
        let mut talk = talk(&spawner, &place, "echo ready; exec sleep 300").await;
        assert_eq!(line(&mut talk).await.as_deref(), Some("ready"));
        let most = vec![b'x'; MAX_LINE];
        let late = timeout(Duration::from_millis(50), talk.send(&most)).await;
        assert!(late.is_err(), "a pipe holds less");
        let error = talk.send(b"hello").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        talk.end(AT_ONCE).await.unwrap();
        assert!(!alive(&place, CALL));
    }
}

#[tokio::test]
async fn it_has_little_of_the_environment() {
    let place = Place::new();
    for spawner in spawners(&place) {
        let mut talk = spawner.talk(place.job("env", &[])).await.unwrap();
        let mut names = Vec::new();
        while let Some(line) = line(&mut talk).await {
            names.push(line.split('=').next().unwrap().to_owned());
        }
        names.sort();
        assert_eq!(names, ["PATH", "TMPDIR", "YOI_CALL"]);
    }
}

#[tokio::test]
async fn it_ends_when_it_is_dropped_or_its_grant_is_revoked_or_its_time_is_up() {
    let place = Place::new();
    let stubborn = "trap '' TERM; echo ready; sleep 300; sleep 300";
    for (at, spawner) in spawners(&place).into_iter().enumerate() {
        let own = spawner.derive();
        let mut dropped = talk(&own, &place, stubborn).await;
        assert_eq!(line(&mut dropped).await.as_deref(), Some("ready"));
        drop(dropped);
        // Resolves when nothing uses the grant any more, and revokes nothing before.
        let unused = own.door().drain(Instant::now() + LONG);
        timeout(LONG / 2, unused).await.expect("it was killed");
        assert!(!alive(&place, CALL), "{at}");

        let own = spawner.derive();
        let mut revoked = talk(&own, &place, stubborn).await;
        assert_eq!(line(&mut revoked).await.as_deref(), Some("ready"));
        own.door().shut().await;
        assert!(!alive(&place, CALL), "{at}");
        assert_eq!(line(&mut revoked).await, None, "{at}");
        let error = revoked.end(LONG).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Revoked, "{error}");

        let job = authority::Job {
            deadline: Duration::from_millis(50),
            ..place.job("sleep", &["300"])
        };
        let mut late = spawner.talk(job).await.unwrap();
        assert_eq!(line(&mut late).await, None, "{at}");
        let ended = late.end(LONG).await.unwrap();
        assert_eq!(ended.how, ChildExit::Deadline, "{at}");
    }
}

/// Scripts of plugins are read by this program, which is in no directory that children read. In namespaces, the helper is this
/// program; that of these tests is another one.
#[tokio::test]
async fn a_confined_child_may_run_this_program_again() {
    let place = Place::new();
    if !confinable() {
        return;
    }
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let spawner = place.spawner(mode).unwrap();
        let job = place.job("/proc/self/exe", &["--list", "no such test"]);
        let (ended, said) = run(&spawner, job).await.unwrap();
        assert_eq!(ended.how, ChildExit::Exit(0), "{mode:?}: {said}");
    }
}
