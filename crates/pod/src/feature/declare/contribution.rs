//! What every kind of contribution has in common: a name, the capabilities that it requests, and those that it needs.
//! Planning and staging go by it, whatever the kind is.

use super::capability::HostCapability;
use super::id::FeatureId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The kind of a contribution.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ContributionKind {
    Tool,
    Hook,
    Task,
    State,
    Service,
    Enricher,
    Command,
}

impl ContributionKind {
    /// As messages name it.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Hook => "hook",
            Self::Task => "background task",
            Self::State => "state",
            Self::Service => "service",
            Self::Enricher => "enricher",
            Self::Command => "command",
        }
    }

    /// The message about one that is declared and not staged.
    pub(crate) fn missing(self, name: &str, of: &FeatureId) -> String {
        match self {
            Self::State => format!("state `{name}` of {of} is declared but was not opened"),
            Self::Service => format!("service {name} of {of} is declared but was not provided"),
            Self::Tool | Self::Hook | Self::Task | Self::Enricher | Self::Command => {
                format!(
                    "{} `{name}` of {of} is declared but was not staged",
                    self.noun()
                )
            }
        }
    }
}

/// Something that a feature declares and stages under a name.
pub(crate) trait Contribution {
    const KIND: ContributionKind;

    /// Unique within the feature and the kind, case aside.
    fn name(&self) -> String;

    /// The capabilities that its declaration requests by itself.
    fn requests(&self) -> Vec<HostCapability>;

    /// The requests of its feature without which it is left out.
    fn needs(&self) -> Vec<HostCapability>;

    /// The capabilities without which it is left out: all that it requests and needs.
    fn takes(&self) -> Vec<HostCapability> {
        [self.requests(), self.needs()].concat()
    }

    /// What is wrong with it, but for its own requests and needs. `requested` is all that its feature requests.
    fn problem(&self, requested: &[HostCapability]) -> Option<String>;
}

/// The problems of the declarations of one kind: at most one of each, and a name that two have. `requested` is all that
/// their feature requests.
pub(super) fn problems<C: Contribution>(
    declared: &[C],
    requested: &[HostCapability],
) -> Vec<String> {
    let problem = |one: &C| {
        let requests = || one.requests().iter().find_map(HostCapability::problem);
        let unrequested = || {
            let need = one
                .needs()
                .into_iter()
                .find(|need| !requested.contains(need))?;
            let kind = C::KIND.noun();
            let name = one.name();
            Some(format!(
                "{kind} `{name}` needs {need}, which the feature does not request"
            ))
        };
        one.problem(requested)
            .or_else(requests)
            .or_else(unrequested)
    };
    let twice = twice(C::KIND.noun(), declared.iter().map(C::name));
    declared.iter().filter_map(problem).chain(twice).collect()
}

/// The problem of names of which two are equal, case aside.
pub(super) fn twice(kind: &str, mut names: impl Iterator<Item = String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    names
        .find(|name| !seen.insert(name.to_ascii_lowercase()))
        .map(|name| format!("{kind} `{name}` is declared twice (case aside)"))
}
