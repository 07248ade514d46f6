//! Only the host makes an install context.
use pod::feature::FeatureInstallContext;

fn forge() -> FeatureInstallContext<'static> {
    FeatureInstallContext {}
}

fn main() {}
