//! Prints the budget table: each figure beside its floor, measured in turns in the same run.
//!
//! `cargo bench -p bench` measures everything in about three minutes; `cargo bench -p bench -- quick` takes fewer rounds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a measurement that cannot be made ends the program")]

mod inside;
mod list;
mod restore;
mod runs;
mod table;

use authority::Ambient;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use table::Table;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Amount {
    /// Rounds of what is compared.
    rounds: usize,
    /// Steps of the longest run.
    steps: usize,
    /// How long an idle pod is watched.
    idle: Duration,
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "quick");
    let amount = if quick {
        Amount { rounds: 5, steps: 300, idle: Duration::from_secs(5) }
    } else {
        Amount { rounds: 21, steps: 1000, idle: Duration::from_secs(60) }
    };
    let ambient = Ambient::claim();
    authority::become_subreaper(&ambient).unwrap();
    let binary = release();
    println!("load {:.2} when it began; {amount:?}", bench::machine::load());
    let mut table = Table::default();
    runs::start(&binary, amount, &mut table);
    runs::steps(&ambient, &binary, amount, &mut table);
    runs::memory(&binary, amount, &mut table);
    inside::encoded(&ambient, &mut table);
    restore::restore(&ambient, amount, &mut table);
    list::list(&ambient, &binary, amount, &mut table);
    inside::features(amount, &mut table);
    inside::door(amount, &mut table);
    inside::gates(amount, &mut table);
    inside::latency(amount, &mut table);
    let bytes = std::fs::metadata(&binary).unwrap().len() as f64 / 1e6;
    table.figure("release binary", bytes, "MB", Some(20.0));
    table.print();
    println!("load {:.2} when it ended", bench::machine::load());
}

/// The release binary, built now if it is not up to date.
fn release() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).args(["build", "--release", "--quiet", "-p", "yoi"]).status().unwrap();
    assert!(built.success());
    // This program is in target/release/deps.
    let here = std::env::current_exe().unwrap();
    let binary = here.parent().unwrap().parent().unwrap().join("yoi");
    assert!(binary.exists(), "{} is not there", binary.display());
    binary
}
