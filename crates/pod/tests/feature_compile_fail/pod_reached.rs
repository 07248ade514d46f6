//! An install context leads to no pod.
use pod::feature::FeatureInstallContext;

fn reach(ctx: &mut FeatureInstallContext<'_>) {
    ctx.pod();
}

fn main() {}
