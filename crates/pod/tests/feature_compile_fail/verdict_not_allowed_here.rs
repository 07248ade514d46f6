//! A gate before a request refuses no single call.
use pod::hook::{PreRequest, Verdict};

fn main() {
    drop(Verdict::<PreRequest>::deny("not this one"));
}
