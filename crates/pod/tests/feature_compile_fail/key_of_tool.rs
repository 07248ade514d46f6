//! The name of a tool is checked where its key is written.
use pod::feature::author::*;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Args {}

const KEY: ToolKey<Args> = ToolKey::new("press it", ToolEffect::ReadOnly, "Press it.");

fn main() {
    let _ = KEY.name();
}
