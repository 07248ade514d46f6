//! `yoi features NAME --unused`: what was granted in a start and never used.

use super::capability_text::{granted, list, means, text, words};
use super::journal::{PodStart, Starts};
use super::page::Page;
use host::exit::{Exit, Failure};
use pod::feature::HostCapability;
use schemars::JsonSchema;
use serde::Serialize;
use tui::count;

/// The grants that a start did not use.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Unused {
    pod: String,
    /// The start, from 1.
    start: u64,
    /// Grants that were not used, by feature.
    unused: Vec<Idle>,
    /// The number of grants whose use is not counted: those of hooks, transforms, background tasks and provided services.
    uncounted: u64,
}

/// A grant that was not used.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Idle {
    feature: String,
    /// The grant, in words.
    grant: String,
    /// What the grant allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<String>,
    #[serde(skip)]
    held: HostCapability,
    /// A wider grant of the feature, which was not used either, includes this one.
    #[serde(skip)]
    included: bool,
    /// How often a use was refused.
    refused: u64,
}

impl Unused {
    pub(super) fn of(starts: &Starts) -> Result<Self, Failure> {
        let newest = starts.newest()?;
        let Some(used) = &newest.used else {
            let what = format!(
                "{}: start {} has no list of used grants: it is running, or did not end normally",
                starts.pod, newest.start
            );
            return Err(
                Failure::new(Exit::Unavailable, what).help("let a run of this pod finish first")
            );
        };
        let mut unused = Vec::new();
        let mut uncounted = 0;
        for feature in list(&newest.report, "features") {
            if !["installed", "degraded"].contains(&text(feature, "outcome")) {
                continue;
            }
            let id = text(feature, "feature_id");
            let tools = list(feature, "installed_tools");
            let is_there = |held: &HostCapability| match held {
                HostCapability::ContributeTool { name } => tools
                    .iter()
                    .any(|tool| tool.as_str() == Some(name.as_ref())),
                _ => true,
            };
            let granted: Vec<_> = granted(feature).into_iter().filter(is_there).collect();
            for held in &granted {
                let grant = held.to_string();
                // What a wider grant is used for is done under that one's door.
                let doors: Vec<_> = granted
                    .iter()
                    .filter(|wide| wide.covers(held))
                    .map(ToString::to_string)
                    .collect();
                let mine = used
                    .iter()
                    .filter(|row| row.feature == id && doors.contains(&row.grant));
                let (uses, refused) =
                    mine.fold((0, 0), |sum, row| (sum.0 + row.uses, sum.1 + row.refused));
                match counted(held, uses, newest) {
                    Some(0) => {
                        let feature = id.to_owned();
                        let means = means(held);
                        let included = granted.iter().any(|wide| wide != held && wide.covers(held));
                        unused.push(Idle {
                            feature,
                            grant,
                            means,
                            held: held.clone(),
                            included,
                            refused,
                        });
                    }
                    Some(_) => {}
                    None => uncounted += 1,
                }
            }
        }
        Ok(Self {
            pod: starts.pod.clone(),
            start: newest.start,
            unused,
            uncounted,
        })
    }

    pub(super) fn render(&self) -> Page {
        let mut page = Page::default();
        let granted = format!(
            "at start {}, the features of {} got these permissions",
            self.start, self.pod
        );
        page.wrapped(
            "",
            &format!("{granted} and have not used them (a tool is used when the model calls it):"),
        );
        if self.unused.is_empty() {
            page.line("  none");
        }
        for idle in self
            .unused
            .chunk_by(|one, next| one.feature == next.feature)
        {
            let feature = idle.first().map_or("", |idle| &idle.feature);
            page.wrapped("  ", &format!("{feature} may {}", idle_words(idle)));
        }
        page
    }
}

/// The unused grants of one feature, without those that a wider one includes; its tools in one list.
fn idle_words(idle: &[Idle]) -> String {
    let shown = |idle: &Idle, text: &str| match idle.refused {
        0 => text.to_owned(),
        refused => format!("{text} (refused {})", count(refused, "time")),
    };
    let mut parts = Vec::new();
    let mut tools = Vec::new();
    for idle in idle.iter().filter(|idle| !idle.included) {
        match &idle.held {
            HostCapability::ContributeTool { name } => tools.push(shown(idle, name)),
            held => parts.push(shown(idle, &words(held))),
        }
    }
    if !tools.is_empty() {
        let noun = if tools.len() == 1 { "tool" } else { "tools" };
        parts.push(format!("offer the {noun} {}", tools.join(", ")));
    }
    parts.join("; ")
}

/// How often something was done under a grant; none for those under which nothing is counted.
fn counted(held: &HostCapability, uses: u64, start: &PodStart) -> Option<u64> {
    match held {
        HostCapability::ContributeTool { name } => {
            Some(start.calls.get(name.as_ref()).copied().unwrap_or_default())
        }
        HostCapability::ContributeHook { .. }
        | HostCapability::ContributeBackgroundTask { .. }
        | HostCapability::ContributeCommand { .. }
        | HostCapability::AnswerCalls { .. }
        | HostCapability::RepeatCalls { .. }
        | HostCapability::TransformResults { .. }
        | HostCapability::RewriteArguments { .. }
        | HostCapability::EnrichTools { .. }
        | HostCapability::ProvideService { .. } => None,
        HostCapability::ScopedFs { .. }
        | HostCapability::Process { .. }
        | HostCapability::StateStore { .. }
        | HostCapability::EmitModelNotification { .. }
        | HostCapability::EmitUserAlert
        | HostCapability::UseService { .. }
        | HostCapability::Network { .. }
        | HostCapability::Endpoint { .. }
        | HostCapability::SecretRef { .. }
        | HostCapability::WorkItemStore { .. }
        | HostCapability::MemoryStore { .. } => Some(uses),
    }
}
