//! The note that tells a model what recovery found.
#![allow(
    clippy::unwrap_used,
    reason = "a log that does not fold is a failed test"
)]

use pod::record::{Record, TurnStarted};
use pod::session::restore::{RecoveryFacts, Restored, closing};

#[test]
fn bytes_that_were_cut_are_in_the_note() {
    let mut restored = Restored::default();
    restored
        .take(1, 1, &TurnStarted { turn: 1 }.into())
        .unwrap();
    let note = |cut_bytes| {
        let class = if cut_bytes > 0 { "torn_tail" } else { "clean" }.to_owned();
        let found = RecoveryFacts {
            class,
            cut_bytes,
            quarantine: None,
            ended_processes: 0,
            survivors: None,
            swept: 0,
            now: 2,
        };
        let records = closing(&restored, &found);
        let text = |record: &Record| {
            if let Record::SystemItem(said) = record {
                Some(said.text().to_owned())
            } else {
                None
            }
        };
        records.iter().find_map(text).unwrap()
    };
    assert!(
        note(37).contains("37 incomplete bytes at the end of the log were moved aside"),
        "{}",
        note(37)
    );
    assert!(!note(0).contains("set aside"), "{}", note(0));
}
