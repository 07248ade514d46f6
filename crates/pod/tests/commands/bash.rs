//! The rows are given to bash itself: it parses what they say it parses, and what it starts is among the parts.

use super::differential::compare;
use super::rows;
use std::process::{Command, Stdio};

#[test]
fn bash_parses_the_rows_that_are_said_to_be_commands() {
    for row in rows() {
        let status = Command::new("bash")
            .args(["-n", "-c", &row.text])
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.success(), row.allowed != ".", "{}", row.text);
    }
}

#[test]
fn what_bash_starts_is_among_the_parts() {
    let mut rows = rows().into_iter().map(|row| row.text);
    let seen = compare(|| rows.next());
    seen.check();
    assert!(
        seen.started > 100,
        "nothing was compared: {}",
        seen.summary()
    );
}
