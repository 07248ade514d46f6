//! Prints the budget table: each figure beside its floor, measured in turns in the same run.
//!
//! `cargo bench -p bench` measures everything in about six minutes; `cargo bench -p bench -- quick` takes fewer rounds,
//! and `-- restore list` measures these parts.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a measurement that cannot be made ends the program"
)]

mod context;
mod guests;
mod inside;
mod list;
mod restore;
mod runs;
mod screen;
mod table;

use authority::Ambient;
use std::path::{Path, PathBuf};
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

/// One part of the table.
type Part = fn(&Ambient, &Path, Amount, &mut Table);

const PARTS: [(&str, Part); 13] = [
    ("start", |_, binary, amount, table| {
        runs::start(binary, amount, table)
    }),
    ("steps", runs::steps),
    ("clients", |_, binary, amount, table| {
        runs::clients(binary, amount, table)
    }),
    ("memory", |_, binary, amount, table| {
        runs::memory(binary, amount, table)
    }),
    ("restore", |ambient, binary, amount, table| {
        inside::encoded(ambient, table);
        restore::restore(ambient, binary, amount, table);
    }),
    ("context", context::context),
    ("list", list::list),
    ("screen", screen::screen),
    ("guests", |_, binary, amount, table| {
        guests::guests(binary, amount, table)
    }),
    ("features", |_, _, amount, table| {
        inside::features(amount, table)
    }),
    ("gates", |_, _, amount, table| {
        inside::door(amount, table);
        inside::gates(amount, table);
    }),
    ("latency", |_, _, amount, table| {
        inside::latency(amount, table)
    }),
    ("binary", |_, binary, _, table| {
        let bytes = std::fs::metadata(binary).unwrap().len() as f64 / 1e6;
        table.figure("binary of profile dist", bytes, "MB", Some(22.0));
    }),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let quick = args.iter().any(|arg| arg == "quick");
    let named = |name: &str| args.iter().any(|arg| arg == name);
    let all = !PARTS.iter().any(|(name, _)| named(name));
    let amount = if quick {
        Amount {
            rounds: 5,
            steps: 300,
            idle: Duration::from_secs(5),
        }
    } else {
        Amount {
            rounds: 21,
            steps: 1000,
            idle: Duration::from_secs(60),
        }
    };
    let ambient = ambient::claim();
    authority::become_subreaper(&ambient).unwrap();
    let binary = dist();
    println!(
        "load {:.2} when it began; {amount:?}",
        bench::machine::load()
    );
    let mut table = Table::default();
    for (_, part) in PARTS.iter().filter(|(name, _)| all || named(name)) {
        part(&ambient, &binary, amount, &mut table);
    }
    table.print();
    println!("load {:.2} when it ended", bench::machine::load());
}

/// The program of profile `dist`, built now if it is not up to date.
fn dist() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--profile", "dist", "--quiet", "-p", "yoi"])
        .status()
        .unwrap();
    assert!(built.success());
    // This program is in target/release/deps.
    let here = std::env::current_exe().unwrap();
    let binary = here.ancestors().nth(3).unwrap().join("dist/yoi");
    assert!(binary.exists(), "{} is not there", binary.display());
    binary
}
