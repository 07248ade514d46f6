//! Lets tests observe and change each call of an install into the host. It knows no stage.

use crate::feature::declare::diagnostic::FeatureInstallError;
use crate::feature::declare::id::FeatureId;
use std::sync::Arc;

/// Whether a contribution will be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staging {
    /// It will, if the whole feature is.
    Staged,
    /// The plan left it out, because an optional capability was denied.
    Skipped,
}

/// One call into the host during an install, as a [`RegistrarProbe`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct RegistrarCall<'a> {
    pub feature: &'a FeatureId,
    /// Its number in this install, from 1.
    pub number: usize,
    pub registrar: &'static str,
    /// What it is about: a tool, an instruction, a root.
    pub name: &'a str,
}

/// Called before each call into the host takes effect; what it answers, panics or waits stands for the call. For
/// tests of features: a failure at every point of an install.
pub type RegistrarProbe = Arc<dyn Fn(RegistrarCall<'_>) -> Result<(), FeatureInstallError> + Send + Sync>;
