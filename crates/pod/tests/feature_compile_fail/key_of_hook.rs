//! The name of a hook is checked where its key is written.
use pod::feature::author::*;

const KEY: HookKey<PreToolCall> = HookKey::new("a\u{202e}b");

fn main() {
    let _ = KEY.name();
}
