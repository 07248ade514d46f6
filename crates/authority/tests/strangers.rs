//! A process that shed its group, its session and its environment. Alone in its binary: as a subreaper, the process
//! ends every child it cannot attribute, other tests' among them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[allow(dead_code, reason = "a part is used")]
#[path = "children/shared.rs"]
mod shared;

use authority::{SandboxMode, end_descendants, label_descendants};
use shared::{Place, probe, run};

fn children() -> String {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .collect()
}

#[tokio::test]
async fn a_stranger_is_ended_when_no_call_runs() {
    let place = Place::new();
    let spawner = place.spawner(SandboxMode::Off).unwrap();
    let bare = place.job(probe(), &["daemon", "300", "bare"]);
    let (ended, output) = run(&spawner, bare).await.unwrap();
    assert_eq!(output.trim(), "ok");
    // Without another call it could be nobody else's. Nothing is left to reap.
    assert_eq!((ended.leftovers, ended.remaining), (1, 0));
    assert_eq!(children(), "");
    // While another call runs, nobody can say whose it is.
    let mut long = place.job("sh", &["-c", "while ! [ -e done ]; do sleep 0.01; done"]);
    long.call = "c2".to_owned();
    let bare = place.job(probe(), &["daemon", "300", "bare"]);
    let short = async {
        let (ended, _) = run(&spawner, bare).await.unwrap();
        assert_eq!(
            (ended.leftovers, ended.remaining),
            (0, 1),
            "said, as it may be this call's"
        );
        let left = children();
        std::fs::write(place.project.join("done"), "").unwrap();
        left.split_whitespace().count()
    };
    let (long, left) = tokio::join!(run(&spawner, long), short);
    long.unwrap();
    assert_eq!(left, 2, "the long call and the stranger");
    assert_eq!(children(), "");
    // With a label that descendants cannot shed, it is known: also to one that starts confined processes.
    assert!(label_descendants(&ambient::claim(), &place.tag));
    for mode in [SandboxMode::Off, SandboxMode::WorkspaceWrite] {
        if mode == SandboxMode::WorkspaceWrite && !shared::confinable() {
            continue;
        }
        std::fs::remove_file(place.project.join("done")).unwrap();
        let mut long = place.job("sh", &["-c", "while ! [ -e done ]; do sleep 0.01; done"]);
        long.call = "c3".to_owned();
        let confined = place.spawner(mode).unwrap();
        let bare = place.job(probe(), &["daemon", "300", "bare"]);
        let short = async {
            let (ended, _) = run(&confined, bare).await.unwrap();
            std::fs::write(place.project.join("done"), "").unwrap();
            (ended.leftovers, ended.remaining)
        };
        let (long, short) = tokio::join!(run(&spawner, long), short);
        assert_eq!((long.unwrap().0.remaining, short), (0, (1, 0)), "{mode:?}");
    }
    // The process is to be left: now nobody has to know whose it is.
    let mut long = place.job("sleep", &["300"]);
    long.call = "c4".to_owned();
    let bare = place.job(probe(), &["daemon", "300", "bare"]);
    let leave = async {
        run(&spawner, bare).await.unwrap();
        assert_eq!(children().split_whitespace().count(), 1);
        end_descendants(&ambient::claim()).unwrap()
    };
    let (long, ended) = tokio::join!(run(&spawner, long), leave);
    long.unwrap();
    assert_eq!((ended, children().as_str()), (1, ""));
    let late = run(&spawner, place.job("true", &[])).await.unwrap_err();
    assert!(
        late.to_string().contains("this process is ending"),
        "{late}"
    );
}
