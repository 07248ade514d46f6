//! What features need of the pod they are installed into: a line to its driver, and the state they left behind.

use crate::control::inbox::Line;
use crate::feature::FeatureId;
use crate::session::record::FeatureState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The way from features to one pod; [`crate::host::Opening::link`] gives it. Holding it is holding the state of every
/// feature: only the composition root does.
#[derive(Clone, Debug)]
pub struct PodLink {
    pub(in crate::feature) line: Line,
    left: Arc<BTreeMap<(String, String), FeatureState>>,
}

impl PodLink {
    pub(crate) fn new(line: Line, left: &BTreeMap<(String, String), FeatureState>) -> Self {
        Self { line, left: Arc::new(left.clone()) }
    }

    /// What a feature left in session scope.
    pub(super) fn left(&self, feature: &FeatureId, name: &str) -> Option<&FeatureState> {
        self.left.get(&(feature.to_string(), name.to_owned()))
    }
}
