//! The link from an install to the pod: the mailbox of its actor, and the recorded states of features. Does not depend
//! on the registry.

use super::files::Keeper;
use crate::feature::FeatureId;
use crate::feature::declare::state::StateScope;
use crate::feature::live::job::JobBoard;
use crate::mailbox::requests::MailboxSender;
use crate::record::FeatureState;
use authority::Workspace;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The link from features to one pod; [`crate::host::Opening::link`] creates it. It gives access to the state of every
/// feature, so only the composition root has it.
#[derive(Clone)]
pub struct PodLink {
    pub(crate) mailbox: MailboxSender,
    pub(crate) jobs: JobBoard,
    pub(super) keeper: Keeper,
    left: Arc<BTreeMap<(String, String), FeatureState>>,
    dirs: BTreeMap<StateScope, Workspace>,
    name: Arc<str>,
}

impl PodLink {
    pub(crate) fn new(
        mailbox: MailboxSender,
        keeper: Keeper,
        left: &BTreeMap<(String, String), FeatureState>,
    ) -> Self {
        Self {
            mailbox,
            jobs: JobBoard::default(),
            keeper,
            left: Arc::new(left.clone()),
            dirs: BTreeMap::new(),
            name: "".into(),
        }
    }

    /// Sets the name of the pod.
    #[must_use]
    pub(crate) fn named(self, name: &str) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// Sets the jobs of the pod.
    pub(crate) fn with_jobs(self, jobs: JobBoard) -> Self {
        Self { jobs, ..self }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Keeps state of this scope in files below a directory.
    #[must_use]
    pub fn files(mut self, scope: StateScope, dir: Workspace) -> Self {
        self.dirs.insert(scope, dir);
        self
    }

    /// The directory for state of a scope other than the session's.
    pub(super) fn dir(&self, scope: StateScope) -> Option<&Workspace> {
        self.dirs.get(&scope)
    }

    pub(super) fn left(&self, feature: &FeatureId, name: &str) -> Option<&FeatureState> {
        self.left.get(&(feature.to_string(), name.to_owned()))
    }
}
