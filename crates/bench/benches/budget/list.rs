//! Listing a thousand pods.

use crate::Amount;
use crate::table::Table;
use authority::Ambient;
use bench::pods::{PodPlace, copy};
use bench::program::Program;
use bench::ratio::{median, ms};
use bench::server::Server;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Pods whose log is read whole, and the fewest records of each.
const SMALL: (usize, u64) = (990, 50);
/// Pods with a checkpoint near the end, and the fewest records of each.
const LARGE: (usize, u64) = (10, 20_000);
/// Pods that run.
const LIVE: usize = 10;
/// Milliseconds, with checkpoints and without.
const BUDGETS: (f64, f64) = (150.0, 3000.0);

/// Lists them with checkpoints, then with others that run, then without checkpoints. Each has the socket of a process
/// that was killed.
pub(crate) fn list(ambient: &Ambient, binary: &Path, amount: Amount, table: &mut Table) {
    let server = Server::start();
    let program = Program::new(binary, &server);
    let pods = program.pods();
    for ((count, records), kind) in [(SMALL, "small"), (LARGE, "large")] {
        let place = PodPlace::new();
        while place.records() < records {
            drop(place.run(ambient, if kind == "small" { 3 } else { 500 }, 1));
        }
        for pod in (0..count).map(|n| pods.join(format!("{kind}-{n}"))) {
            copy(&place.session(), &pod);
            drop(UnixListener::bind(pod.join("sock")).unwrap());
        }
    }
    let listed = |rounds, live| -> f64 {
        median(
            &(0..rounds)
                .map(|_| listed(&program, live))
                .collect::<Vec<_>>(),
        )
    };
    listed(1, 0);
    table.figure(
        "ls of 990 pods of 50 records, 10 of 20,000",
        listed(amount.rounds, 0),
        "ms",
        Some(BUDGETS.0),
    );
    let live: Vec<String> = (0..LIVE).map(|n| format!("live-{n}")).collect();
    for name in &live {
        program.start(name);
    }
    table.figure(
        "  and 10 that run and are asked",
        listed(amount.rounds, LIVE),
        "ms",
        Some(BUDGETS.0),
    );
    for name in &live {
        program.stop(name);
        fs::remove_dir_all(pods.join(name)).unwrap();
    }
    for pod in fs::read_dir(&pods).unwrap() {
        drop(fs::remove_dir_all(pod.unwrap().path().join("idx")));
    }
    table.figure("  without checkpoints", listed(3, 0), "ms", Some(BUDGETS.1));
}

/// Milliseconds of one `yoi ls`.
fn listed(program: &Program, live: usize) -> f64 {
    let (rows, took) = program.list();
    let count = |state: &str| rows.matches(state).count();
    assert_eq!(
        (count("  done  "), count("  idle  ")),
        (SMALL.0 + LARGE.0, live)
    );
    ms(took)
}
