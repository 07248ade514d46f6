//! A long session in a small window: every request fits, and neither memory nor what a step writes grows.
//! `YOI_TEST_STEPS` says how long; `.ci/long` says 20,000.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: a run that fails is a failed test"
)]
use bench::pods::{Asks, BYTES_PER_TOKEN, Mark, PodPlace};

const VARIABLE: &str = "YOI_TEST_STEPS";
const STEPS: usize = 400;
const WINDOW: u64 = 32_000;
/// Bytes that the process may grow by from the middle to the end, beside what this test keeps of each step. An allocator that
/// begins another arena on a busy machine was seen to take 2.7 MB.
const GROWTH: u64 = 6_000_000;

#[test]
fn a_long_session_needs_no_more_memory_than_a_short_one() {
    let steps = std::env::var(VARIABLE).map_or(STEPS, |text| text.parse().unwrap());
    let asks = Asks {
        steps,
        calls: 1,
        lines: 30,
        window: Some(WINDOW),
    };
    let marks = PodPlace::new().run_of(&ambient::claim(), asks);
    let largest = marks.iter().map(|mark| mark.body).max().unwrap();
    assert!(
        largest / BYTES_PER_TOKEN <= WINDOW,
        "a request of {largest} bytes"
    );
    let changes = marks
        .windows(2)
        .filter(|pair| pair[1].body < pair[0].body)
        .count();
    assert!(changes >= steps / 40, "{changes} changes of the view");
    assert!(
        changes <= steps / 8,
        "{changes} changes of the view in {steps} steps"
    );
    let half = steps / 2;
    let highest = |marks: &[Mark]| marks.iter().map(|mark| mark.private).max().unwrap();
    let early = highest(&marks[..half]);
    let late = highest(&marks[half..]);
    let own = (half * size_of::<Mark>()) as u64;
    assert!(
        late <= early + own + GROWTH,
        "{late} bytes at the end, {early} until the middle"
    );
    let written = |marks: &[Mark]| marks[marks.len() - 1].written - marks[0].written;
    let quarter = steps / 4;
    let second = written(&marks[quarter..half]);
    let last = written(&marks[half + quarter..]);
    assert!(
        last <= second * 21 / 20,
        "{last} bytes written in the last quarter, {second} in the second"
    );
    println!(
        "{steps} steps, {changes} changes of the view, memory {early} and {late}, largest request {largest}"
    );
}
