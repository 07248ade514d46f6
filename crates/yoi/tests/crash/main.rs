//! kill -9 at every named point and at random moments of a run of 50 calls, and during the recovery from that; and of
//! the host of a pod that stays, while clients work with it.
//!
//! This program is the driver and, started by itself with [`victim::ROLE`] set, the `yoi` that is killed. After each
//! kill the next `yoi run` on the pod must restore it, and [`checks`] says what must hold then.
//!
//! `YOI_TEST_CRASH=all` kills at every selected point instead of an even sample; `YOI_TEST_SEED` repeats the random
//! moments of a run that printed it. `YOI_TEST_EDIT_KILLS=200` is how many runs that only edit files are killed;
//! `YOI_TEST_CRASH=edits` does nothing else, and `YOI_TEST_CRASH=live` only kills pods that stay and their
//! clients, at every selected point.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::let_underscore_must_use,
    reason = "tests: a scratch directory or a child that fails is a failed test"
)]

mod checks;
mod drivers;
mod edits;
mod live;
mod moments;
mod scene;
mod script;
mod victim;

use drivers::{Plan, Tally};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    if victim::is_one() {
        return victim::main();
    }
    if std::env::args().any(|arg| arg == "--list") {
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    let seed = moments::seed();
    let mut tally = Tally::default();
    if std::env::var("YOI_TEST_CRASH").is_ok_and(|text| text == "edits") {
        println!("seed {seed}");
        edits::kills(seed, &mut tally);
        return tally.end(began.elapsed());
    }
    if std::env::var("YOI_TEST_CRASH").is_ok_and(|text| text == "live") {
        println!("seed {seed}");
        live::kills(seed, &mut tally);
        return tally.end(began.elapsed());
    }
    let plan = Plan::choose(seed);
    println!(
        "{} points reached, {} names; killing at {} of them, at {} random ones, {} times by the clock; seed {seed}",
        plan.reached,
        plan.names,
        plan.named.len(),
        plan.random.len(),
        plan.clock.len()
    );
    drivers::matrix(&plan, &mut tally);
    drivers::survivors(&mut tally);
    drivers::recoveries(&plan, &mut tally);
    edits::kills(seed, &mut tally);
    live::kills(seed, &mut tally);
    tally.end(began.elapsed())
}
