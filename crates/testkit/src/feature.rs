//! A feature made of a closure. Does not depend on a host.

use pod::feature::{FeatureDescriptor, FeatureInstallContext, FeatureInstallError, FeatureModule};
use std::sync::Arc;

struct FnFeature<F>(FeatureDescriptor, F);

impl<F> FeatureModule for FnFeature<F>
where
    F: Fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>
        + Send
        + Sync
        + 'static,
{
    fn descriptor(&self) -> FeatureDescriptor {
        self.0.clone()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        (self.1)(ctx)
    }
}

/// Creates a feature with this descriptor whose install runs the closure; for tests of the host.
pub fn feature(
    descriptor: FeatureDescriptor,
    install: impl Fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>
    + Send
    + Sync
    + 'static,
) -> Arc<dyn FeatureModule> {
    Arc::new(FnFeature(descriptor, install))
}
