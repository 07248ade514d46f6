//! The name of a background task is checked where its key is written.
use pod::feature::author::*;

const KEY: TaskKey = TaskKey::new("", ToolEffect::ReadOnly);

fn main() {
    let _ = KEY.name();
}
