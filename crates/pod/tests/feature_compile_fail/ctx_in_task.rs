//! Nor can it move to a thread that outlives `install`.
use pod::feature::FeatureInstallContext;

fn install(ctx: &mut FeatureInstallContext<'_>) {
    std::thread::spawn(move || drop(ctx.tools()));
}

fn main() {}
