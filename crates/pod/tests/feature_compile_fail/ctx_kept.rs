//! Nothing of an install context outlives `install`.
use pod::feature::{FeatureId, FeatureInstallContext};

fn install<'a>(ctx: &'a mut FeatureInstallContext<'a>) -> &'static FeatureId {
    ctx.feature_id()
}

fn main() {}
