//! A hook that returns something else is told what its point takes.
use pod::feature::author::*;

const KEY: HookKey<PreToolCall> = HookKey::new("gate");

struct Live;

impl Live {
    fn judge(&self, _: &ToolCallView) -> bool {
        true
    }
}

fn install(ctx: &mut FeatureInstallContext<'_>) {
    let _ = ctx.hooks().gate(&KEY, &Arc::new(Live), Live::judge);
}

fn main() {
    let _ = install;
}
