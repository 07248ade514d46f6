//! Lets tests observe and change each call of an install into the host. Does not depend on the stage.

use crate::feature::declare::diagnostic::FeatureInstallError;
use crate::feature::declare::id::FeatureId;
use std::sync::Arc;

/// Whether a staged contribution will be installed. A registrar returns it, so that a feature can adapt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staging {
    /// It will be installed, if the whole feature is.
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
    /// The object of the call: a tool, an instruction, a root.
    pub name: &'a str,
}

/// Called before each call into the host takes effect; its error, panic or delay replaces the call's. For tests of
/// features: a failure at every point of an install.
pub type RegistrarProbe =
    Arc<dyn Fn(RegistrarCall<'_>) -> Result<(), FeatureInstallError> + Send + Sync>;
