//! Categories of tools: who serves which, and which tools are left out because nobody does. Does not depend on services.

use super::{Declared, PlannedFeature};
use crate::feature::decide::report::{InstallOutcome, SkippedContribution};
use crate::feature::declare::category::ToolCategory;
use crate::feature::declare::contribution::ContributionKind;
use crate::feature::declare::descriptor::FeatureDescriptor;
use crate::feature::declare::tool::ToolDeclaration;
use std::collections::{BTreeMap, BTreeSet};

/// A category of a feature's tools that no feature serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unserved {
    pub(crate) category: ToolCategory,
    /// Why nobody does.
    pub(crate) reason: String,
}

/// The features that declare to serve each category.
pub(super) fn servers<'a>(declared: &[&'a Declared]) -> BTreeMap<&'a ToolCategory, Vec<usize>> {
    let mut servers: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (at, one) in declared.iter().enumerate() {
        one.descriptor
            .serves
            .iter()
            .for_each(|category| servers.entry(category).or_default().push(at));
    }
    servers
}

/// The categories of a feature's tools that another feature has to serve.
pub(crate) fn needed_categories(descriptor: &FeatureDescriptor) -> BTreeSet<&ToolCategory> {
    let of_tools = descriptor
        .declared_tools
        .iter()
        .filter_map(|tool| tool.category.as_ref());
    of_tools
        .filter(|category| !descriptor.serves.contains(category))
        .collect()
}

/// Why a category is not served; `server` is the first feature that declares to serve it.
pub(super) fn absence(server: Option<&PlannedFeature>) -> String {
    let Some(PlannedFeature {
        feature_id: id,
        outcome,
        ..
    }) = server
    else {
        return "no feature of this build serves it".to_owned();
    };
    match outcome {
        InstallOutcome::Disabled => format!("{id}, which serves it, is disabled"),
        InstallOutcome::Skipped => format!("{id}, which serves it, is skipped"),
        InstallOutcome::Installed | InstallOutcome::Degraded => {
            format!("{id}, which serves it, also needs this feature")
        }
    }
}

/// The tools whose category is served; lists the others as skipped.
pub(super) fn served<'a>(
    tools: Vec<&'a ToolDeclaration>,
    unserved: &[Unserved],
    skipped: &mut Vec<SkippedContribution>,
) -> Vec<&'a ToolDeclaration> {
    let mut is_served = |tool: &&ToolDeclaration| {
        let lacks = unserved
            .iter()
            .find(|lacks| tool.category.as_ref() == Some(&lacks.category));
        skipped.extend(
            lacks.map(|Unserved { category, reason }| SkippedContribution {
                kind: ContributionKind::Tool,
                name: tool.name.clone(),
                reason: format!("no installed feature serves its category `{category}`: {reason}"),
                denied: None,
            }),
        );
        lacks.is_none()
    };
    tools.into_iter().filter(|tool| is_served(tool)).collect()
}
