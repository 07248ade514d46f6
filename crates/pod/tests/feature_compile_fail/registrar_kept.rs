//! A registrar cannot outlive its borrow of the context.
use pod::feature::{FeatureInstallContext, ToolRegistrar};

fn install(mut ctx: FeatureInstallContext<'_>) -> ToolRegistrar<'_> {
    ctx.tools()
}

fn main() {}
