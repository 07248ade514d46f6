//! The name of a state is checked where its key is written.
use pod::feature::author::*;

const KEY: StateKey<u64> = StateKey::new("Seen", 1);

fn main() {
    let _ = KEY.name();
}
