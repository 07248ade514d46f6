//! Processes that fork and end faster than they can be listed: none outlives its call, or the result says that some may.
//! Alone in its binary: as a subreaper, the process ends every child it cannot attribute, other tests' among them.
//!
//! `YOI_TEST_CHAINS=N` repeats everything N times.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[allow(dead_code, reason = "a part is used")]
#[path = "children/shared.rs"]
mod shared;

use authority::{SandboxMode, label_descendants};
use shared::{Place, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A chain ends by itself after so many steps; one that is left is found before.
const MOST: &str = "200000";

/// The waits of a chain in each of its processes, in microseconds.
const SPEEDS: [&str; 3] = ["0", "150", "3000"];

fn build(place: &Place) -> PathBuf {
    let program = place.project.join("chain");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/children/chain.c");
    let built = Command::new("cc")
        .args(["-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    assert!(built.expect("cc, Rust's linker").success());
    program
}

/// How far a chain came.
fn steps(file: &Path) -> i64 {
    fs::read(file)
        .unwrap()
        .first_chunk()
        .map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

/// Whether a chain goes on: whoever looks at all processes so often sees it make steps.
fn goes_on(file: &Path) -> bool {
    let before = steps(file);
    (0..10).any(|_| {
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .for_each(|entry| drop(fs::read(entry.path().join("stat"))));
        steps(file) != before
    })
}

#[tokio::test]
async fn no_chain_outlives_its_call() {
    let place = Place::new();
    let chain = build(&place);
    label_descendants(&ambient::claim(), &place.tag);
    let spawner = place.spawner(SandboxMode::Off).unwrap();
    let times = std::env::var("YOI_TEST_CHAINS").map_or(1, |times| times.parse().unwrap());
    let mut ended = 0;
    let mut told = 0;
    for _ in 0..times {
        for how in ["group", "once", "each", "bare", "hidden", "thread"] {
            for speed in SPEEDS {
                for busy in [false, true] {
                    let mut long =
                        place.job("sh", &["-c", "while ! [ -e done ]; do sleep 0.01; done"]);
                    long.call = "c2".to_owned();
                    let file = place.project.join(format!("{how}-{speed}-{busy}"));
                    let job = place.job(&chain, &[file.to_str().unwrap(), how, speed, MOST]);
                    let short = async {
                        let (result, _) = run(&spawner, job).await.unwrap();
                        let left = goes_on(&file);
                        assert!(steps(&file) > 2, "it did not run");
                        assert!(
                            !left || result.remaining > 0,
                            "{how} {speed} {busy}: goes on, unsaid: {result:?}"
                        );
                        fs::write(place.project.join("done"), "").unwrap();
                        (left, result.remaining)
                    };
                    let (left, remaining) = if busy {
                        let (long, short) = tokio::join!(run(&spawner, long), short);
                        // A chain that outran its own call is told of by the other one, too.
                        assert!(
                            long.unwrap().0.remaining == 0 || short.1 > 0,
                            "{how} {speed}: {short:?}"
                        );
                        short
                    } else {
                        short.await
                    };
                    fs::remove_file(place.project.join("done")).unwrap();
                    ended += u32::from(!left && remaining == 0);
                    told += u32::from(remaining > 0);
                }
            }
        }
    }
    println!("{ended} chains ended, {told} told");
    assert!(
        told * 20 <= ended,
        "they are not too fast, though a busy machine may be too slow for one"
    );
}
