//! An install context cannot outlive `install`.
use pod::feature::FeatureInstallContext;

struct Keeper<'a>(Option<&'a mut FeatureInstallContext<'a>>);

fn install(keeper: &mut Keeper<'_>, ctx: &mut FeatureInstallContext<'_>) {
    keeper.0 = Some(ctx);
}

fn main() {}
