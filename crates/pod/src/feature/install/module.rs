//! The trait that every feature implements.

use super::context::FeatureInstallContext;
use crate::feature::declare::descriptor::FeatureDescriptor;
use crate::feature::declare::diagnostic::FeatureInstallError;
use std::borrow::Cow;

/// A feature: the entry point of its code. Its author implements it; the registry builder calls it at each start.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a feature",
    note = "implement `FeatureModule` for it: `descriptor()` declares, `install()` stages; `yoi feature new` writes an example"
)]
pub trait FeatureModule: Send + Sync + 'static {
    /// Returns the feature's identity, contributions and requests. Pure and cheap: no I/O, the same answer every time.
    /// The only call made when a plan is shown. Runs on its own thread; a panic or more than
    /// [`crate::feature::CALLBACK_LIMIT`] skips the feature.
    fn descriptor(&self) -> FeatureDescriptor;

    /// Stages what the descriptor declared. Nothing is live until this returned `Ok` and the host committed the whole
    /// feature. Called at most once per start, after planning, under the same limits.
    ///
    /// # Errors
    /// Any problem that keeps the feature from working; it is then skipped whole.
    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>;

    /// The source location of this feature: names it if its descriptor is not available, or if two features claim one
    /// id.
    fn source(&self) -> Cow<'static, str> {
        std::any::type_name::<Self>().into()
    }

    /// BLAKE3 of the code that runs, in lower-case hex, if that code is not part of this program: a package, a component,
    /// pinned definitions. Called with `descriptor()`, under the same limits.
    fn body(&self) -> Option<String> {
        None
    }
}
