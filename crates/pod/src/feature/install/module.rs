//! The trait that every feature implements. It knows no host: only what a feature is handed.

use super::context::FeatureInstallContext;
use crate::feature::declare::descriptor::FeatureDescriptor;
use crate::feature::declare::diagnostic::FeatureInstallError;

/// Something that can be added to a pod.
pub trait FeatureModule: Send + Sync + 'static {
    /// What this feature is and wants. Pure and cheap: no I/O, the same answer every time. The only call made when a
    /// plan is shown. Runs on its own thread; a panic or more than [`crate::feature::CALLBACK_LIMIT`] skips the
    /// feature.
    fn descriptor(&self) -> FeatureDescriptor;

    /// Stages what the descriptor declared. Nothing is live until this returned `Ok` and the host committed the
    /// whole feature. Called at most once per start, never before its plan stands, under the same limits.
    ///
    /// # Errors
    /// Whatever keeps the feature from working; it is then skipped whole.
    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>;

    /// Where this feature is written: names it when its descriptor cannot be had, or when two claim one id.
    fn source(&self) -> &'static str {
        std::any::type_name::<Self>()
    }
}
