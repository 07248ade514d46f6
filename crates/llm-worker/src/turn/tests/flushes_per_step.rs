//! What a step costs in flushes: two for one call, at most k + 1 for k.

use super::rig::{Owed, Rig};

#[test]
fn a_step_of_k_calls_is_at_most_k_plus_one_commits() {
    for calls in 1..=8_usize {
        for steps in 1..=4_usize {
            let mut step = vec!["c:ok"; calls];
            step.push("tools");
            let mut answers: Vec<&[&str]> = vec![&step; steps];
            answers.push(&["t:fine", "end"]);
            let mut rig = Rig::new(&answers);
            rig.drain();
            while !rig.owed.is_empty() {
                let commit = rig
                    .owed
                    .iter()
                    .position(|owed| matches!(owed, Owed::Commit(_)));
                rig.pay(commit.unwrap_or(0)).unwrap();
                rig.drain();
            }
            assert_eq!(
                rig.commits.len(),
                1 + steps * (calls + 1) + 1,
                "{calls} calls, {steps} steps"
            );
        }
    }
}

#[test]
fn calls_that_end_together_share_a_flush() {
    let mut rig = Rig::new(&[
        &["c:ok", "c:ok", "c:ok", "c:ok", "tools"],
        &["t:fine", "end"],
    ]);
    rig.go(2 + 13 + 4 + 1); // gate, request; the stream; the verdicts; the starts
    rig.drain();
    for _ in 0..4 {
        rig.pay(0).unwrap(); // not polled in between
    }
    let rig = rig.run();
    assert!(
        rig.transcript()
            .contains("start4 | result1:Ok result2:Ok result3:Ok result4:Ok request2 |")
    );
    assert_eq!(rig.commits.len(), 4);
}
