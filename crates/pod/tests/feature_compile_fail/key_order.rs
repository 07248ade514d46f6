//! The features before whose hooks a hook is asked are named by their ids.
use pod::feature::author::*;

const KEY: HookKey<ToolShape> = HookKey::new("hide").before(&["redact"]);

fn main() {
    let _ = KEY.name();
}
