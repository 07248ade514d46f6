//! The name of a wrap is checked where its key is written: its hooks have longer ones.
use pod::feature::author::*;

const KEY: WrapKey = WrapKey::new("a-name-of-58-bytes-that-leaves-no-room-for-the-hooks-names");

fn main() {
    let _ = KEY.name();
}
