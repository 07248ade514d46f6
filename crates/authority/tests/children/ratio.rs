//! What confinement costs, measured against the same child without it.

use super::shared::{self, Place, confinable};
use authority::SandboxMode;
use std::time::{Duration, Instant};

/// Pairs of runs; a measurement, and no pass or fail: `cargo test -p authority --release ratio -- --ignored --nocapture`.
const ROUNDS: usize = 400;

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

#[tokio::test]
#[ignore = "a measurement"]
async fn ratio() {
    if !confinable() {
        return;
    }
    let mut place = Place::new();
    let home = std::env::var_os("HOME").unwrap_or_default();
    place.vars.push(("HOME".into(), home));
    let modes = [SandboxMode::Off, SandboxMode::WorkspaceWrite, SandboxMode::Off];
    let spawners = modes.map(|mode| place.spawner(mode).unwrap());
    let built = Instant::now();
    place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let built = built.elapsed();
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        for (spawner, times) in spawners.iter().zip(&mut times) {
            let begun = Instant::now();
            shared::run(spawner, place.job("/bin/true", &[])).await.unwrap();
            times.push(begun.elapsed());
        }
        let begun = Instant::now();
        std::process::Command::new("/bin/true").status().unwrap();
        times[3].push(begun.elapsed());
    }
    let [off, confined, again, plain] = times.map(median);
    println!("building a confinement {built:?}");
    println!("plain std {plain:.3} ms, off {off:.3} ms (again {:.2}), confined {confined:.3} ms", again / off);
    println!("confined/off {:.2}, confined/plain {:.2}", confined / off, confined / plain);
}
