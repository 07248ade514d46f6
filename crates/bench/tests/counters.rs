//! The budgets that are counters: the same on every machine.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: a run that fails is a failed test"
)]
use bench::features::{self, Called};
use bench::pods::{Mark, PodPlace};
use pod::feature::HostServices;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Flushes before the first request: three for the session's directory, one for the start and the input, one for the
/// request.
#[test]
fn flushes_of_a_start() {
    let place = PodPlace::new();
    let new = place.run(&ambient::claim(), 0, 1);
    assert_eq!(new[0].flushes, 5, "a new pod; the budget is 6");
    let known = place.run(&ambient::claim(), 0, 1);
    assert_eq!(known[0].flushes, 2, "a known pod; the budget is 3");
}

#[test]
fn flushes_of_a_step() {
    for (calls, most) in [(1, 2), (2, 3), (8, 9)] {
        let marks = PodPlace::new().run(&ambient::claim(), 12, calls);
        for pair in marks.windows(2) {
            let flushes = pair[1].flushes - pair[0].flushes;
            assert!(
                (2..=most).contains(&flushes),
                "{flushes} flushes for {calls} calls"
            );
        }
    }
}

/// Between two requests, what is encoded is what is new in them, and that does not grow with the session.
#[test]
fn bytes_of_a_step_are_flat() {
    const STEPS: usize = 120;
    let marks = PodPlace::new().run(&ambient::claim(), STEPS, 1);
    for pair in marks.windows(2) {
        let encoded = pair[1].encoded - pair[0].encoded;
        let new = pair[1].body - pair[0].body;
        assert!(
            encoded <= new + 1024,
            "{encoded} bytes encoded for {new} new ones"
        );
    }
    let step = |field: fn(&Mark) -> u64, at: usize| field(&marks[at]) - field(&marks[at - 1]);
    // Numbers get a digit longer on the way.
    let flat = |what: &str, field: fn(&Mark) -> u64| {
        let early = step(field, 10);
        let late = step(field, STEPS);
        assert!(
            late.abs_diff(early) <= 64,
            "{what} of a step: {early} bytes at 10, {late} at {STEPS}"
        );
    };
    flat("encoded", |mark| mark.encoded);
    flat("written", |mark| mark.written);
}

#[test]
fn each_feature_is_asked_once() {
    const COUNT: usize = 300;
    let called = Arc::new(Called::default());
    let mut builder = features::builder(COUNT, &called);
    assert_eq!(builder.plan().features.len(), COUNT);
    let registry = builder.install(&HostServices::none());
    assert_eq!(registry.tools().iter().count(), COUNT);
    assert_eq!(called.descriptors.load(Ordering::Relaxed), COUNT as u64);
    assert_eq!(called.installs.load(Ordering::Relaxed), COUNT as u64);
}
