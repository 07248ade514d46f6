//! Only a question to a person can expire.
use pod::hook::{PreRequest, Verdict};
use std::time::Duration;

fn main() {
    drop(Verdict::<PreRequest>::allow().expires_after(Duration::from_secs(1)));
}
