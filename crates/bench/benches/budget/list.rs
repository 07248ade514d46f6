//! Listing a thousand pods.

use crate::Amount;
use crate::table::Table;
use authority::Ambient;
use bench::pods::PodPlace;
use bench::ratio::{median, ms};
use session_store::Reader;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Pods whose log is read whole, and the fewest records of each.
const SMALL: (usize, u64) = (990, 50);
/// Pods with a checkpoint near the end, and the fewest records of each.
const LARGE: (usize, u64) = (10, 20_000);
/// Milliseconds, with checkpoints and without.
const BUDGETS: (f64, f64) = (150.0, 3000.0);

/// Lists them with checkpoints, then without.
pub(crate) fn list(ambient: &Ambient, binary: &Path, amount: Amount, table: &mut Table) {
    let home = bench::machine::scratch();
    let pods = home.path().join("state/yoi/pods");
    fs::create_dir_all(&pods).unwrap();
    for ((count, records), kind) in [(SMALL, "small"), (LARGE, "large")] {
        let place = PodPlace::new();
        while Reader::open(&place.session()).map_or(0, |reader| reader.durable()) < records {
            drop(place.run(ambient, if kind == "small" { 3 } else { 500 }, 1));
        }
        (0..count).for_each(|n| copy(&place.session(), &pods.join(format!("{kind}-{n}"))));
    }
    let listed = |rounds| -> Vec<f64> { (0..rounds).map(|_| listed(binary, home.path())).collect() };
    drop(listed(1));
    let with = median(&listed(amount.rounds));
    table.figure("ls of 990 pods of 50 records, 10 of 20,000", with, "ms", Some(BUDGETS.0));
    for pod in fs::read_dir(&pods).unwrap() {
        drop(fs::remove_dir_all(pod.unwrap().path().join("idx")));
    }
    table.figure("  without checkpoints", median(&listed(3)), "ms", Some(BUDGETS.1));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() { copy(&entry.path(), &to) } else { drop(fs::copy(entry.path(), to)) }
    }
}

/// Milliseconds of one `yoi ls`.
fn listed(binary: &Path, home: &Path) -> f64 {
    let mut command = Command::new(binary);
    command.env_clear().env("HOME", home).env("XDG_STATE_HOME", home.join("state")).args(["ls", "--all"]);
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output().unwrap();
    let took = ms(began.elapsed());
    let rows = String::from_utf8_lossy(&output.stdout).matches("stopped").count();
    assert_eq!((output.status.success(), rows), (true, SMALL.0 + LARGE.0));
    took
}
