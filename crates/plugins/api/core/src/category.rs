//! The six categories of tools, and the services that answer the tools of each.

use crate::provider::{
    EPICS, ISSUES, MEETING_NOTES, MERGE_REQUESTS, MESSENGER, PIPELINES, RELEASES, VERSION,
};
use pod::feature::{FeatureDescriptorBuilder, ServiceDeclaration, ServiceId, ToolCategory};

/// Merge requests, their discussions and pipelines.
pub const GIT_REPOSITORY: &str = "git-repository";
/// Issues and their comments.
pub const ISSUE_TRACKER: &str = "issue-tracker";
/// Work that is larger than an issue.
pub const EPIC_TRACKER: &str = "epics";
/// Releases.
pub const RELEASE_LIST: &str = "releases";
/// Notes and transcripts of meetings.
pub const MEETINGS: &str = "meeting-notes";
/// Chats and their messages.
pub const CHATS: &str = "messenger";

/// A category, and the names of its services: a provider of the category provides each of them.
#[derive(Clone, Copy, Debug)]
pub struct Category {
    pub name: &'static str,
    pub services: &'static [&'static str],
}

/// All categories.
pub const CATEGORIES: [Category; 6] = [
    of(GIT_REPOSITORY, &[MERGE_REQUESTS.name(), PIPELINES.name()]),
    of(ISSUE_TRACKER, &[ISSUES.name()]),
    of(EPIC_TRACKER, &[EPICS.name()]),
    of(RELEASE_LIST, &[RELEASES.name()]),
    of(MEETINGS, &[MEETING_NOTES.name()]),
    of(CHATS, &[MESSENGER.name()]),
];

const fn of(name: &'static str, services: &'static [&'static str]) -> Category {
    Category { name, services }
}

/// The services of a category; none of a name that is no category.
#[must_use]
pub fn services(category: &str) -> &'static [&'static str] {
    let found = CATEGORIES.iter().find(|of| of.name == category);
    found.map_or(&[], |of| of.services)
}

/// Declares what a provider serves: the categories, and under `instance` (1 to 64 of `[a-z0-9-]`, such as `github`) each of
/// their services. Its `install` stages each with `ctx.services().provide_instance(ISSUES, instance, …)`.
pub fn declare(
    builder: FeatureDescriptorBuilder,
    instance: &str,
    categories: &[&'static str],
) -> FeatureDescriptorBuilder {
    categories.iter().fold(builder, |builder, name| {
        let builder = builder.serves(ToolCategory::new(name));
        services(name).iter().fold(builder, |builder, service| {
            let id = ServiceId::whole(*service).of_instance(instance);
            builder.provides(ServiceDeclaration::declared(id, VERSION))
        })
    })
}
