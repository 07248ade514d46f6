//! Only a hook that sees the whole result, before any of it is kept, can withhold it.

use pod::feature::HookKey;
use pod::hook::ToolOutcome;

const LATE: HookKey<ToolOutcome> = HookKey::<ToolOutcome>::new("late").withhold_on_failure();

fn main() {}
