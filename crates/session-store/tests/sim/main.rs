//! The store on a simulated machine: processes die and the power goes at any operation, and of what was not flushed any
//! part survives. Thousands of lives from numbered seeds; the same seed lives the same life.
//!
//! A seed that ever failed stays in `FAILED`; since it lives another life once the dice are thrown in another order, what
//! it found also has a test of its own in `tests/store`. More of them: `YOI_SEEDS=20000..60000 cargo test -p session-store --test sim`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::let_underscore_must_use,
    reason = "a test that cannot be set up has failed"
)]

mod bit_rot;
mod dice;
mod lying_store;
mod machine;
mod mutants;
mod oracle;
mod world;

use std::ops::Range;

use lying_store::Lie;
use world::World;

/// Seeds that found something once.
///
/// 70: HEAD was torn, and a reader beside the writer was shown a batch whose flush had failed.
const FAILED: &[u64] = &[70];
/// A few seconds on one core.
const SEEDS: Range<u64> = 0..2000;

fn seeds() -> Range<u64> {
    let given = std::env::var("YOI_SEEDS").ok();
    let range = given.as_deref().and_then(|text| text.split_once(".."));
    range.map_or(SEEDS, |(from, to)| {
        from.parse().unwrap()..to.parse().unwrap()
    })
}

/// Every property that `oracle` and `world` ask for, at every seed.
#[test]
fn whatever_happens_to_the_machine() {
    let run = |part: u64| {
        let mine = FAILED
            .iter()
            .copied()
            .filter(move |_| part == 0)
            .chain(seeds().filter(move |n| n % 2 == part));
        let mut sums = world::Sums::default();
        for seed in mine {
            let lived = World::new(seed, Lie::None).live();
            sums.add(&lived.unwrap_or_else(|what| panic!("seed {seed}: {what}")));
        }
        sums
    };
    let sums = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        let mut sums = run(0);
        sums.add(&other.join().unwrap());
        sums
    });
    println!("seeds {:?}: {sums:?}", seeds());
    if seeds() == SEEDS {
        sums.worth();
    }
}
