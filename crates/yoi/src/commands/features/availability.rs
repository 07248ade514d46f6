//! The steps of an explanation, and those about whether a tool or a background task is installed at the next start: the
//! switch of its feature, the grants with their sources, and what is left out.

use super::capability_text::{denied_words, words};
use super::page::Page;
use super::table::{diagnostics, refusal, source_text, why_off};
use host::compose::Composed;
use host::config::Config;
use llm_worker::ToolEffect;
use pod::feature::{
    Admission, FeatureDescriptor, FeatureId, HostCapability, InstallOutcome, Need, PlannedFeature,
};
use schemars::JsonSchema;
use serde::Serialize;

/// A decision about a tool or a background task.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Step {
    /// The question that it belongs to.
    pub(super) part: Part,
    pub(super) mark: Mark,
    /// What is decided, and why.
    pub(super) text: String,
    /// Where the rule is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
}

/// The questions that the decisions answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    /// Whether the model is offered the tool, or the background task is installed.
    Surface,
    /// Whether a call may run.
    Judgement,
    /// When a background task runs.
    Schedule,
    /// How the call or the task runs, and how its result is treated.
    Run,
}

/// The result of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark {
    Yes,
    No,
    /// The result depends on the call, or on the answer of a person.
    Depends,
    /// A remark that decides nothing.
    Note,
}

/// The steps, under the question that each belongs to.
pub(super) fn render(steps: &[Step], question: impl Fn(Part) -> &'static str) -> Page {
    let mut page = Page::default();
    page.line("(✓ allows it, ✗ prevents it, ? depends on the call or on your answer, - remark)");
    let mut part = None;
    for step in steps {
        if part != Some(step.part) {
            page.line(question(step.part));
            part = Some(step.part);
        }
        let mark = match step.mark {
            Mark::Yes => "✓",
            Mark::No => "✗",
            Mark::Depends => "?",
            Mark::Note => "-",
        };
        let source = step
            .source
            .as_ref()
            .map(|source| format!(" ({})", source_text(source)))
            .unwrap_or_default();
        page.wrapped(&format!("  {mark} "), &format!("{}{source}", step.text));
    }
    page
}

/// What a call of a tool, or a run of a background task, changes.
pub(super) fn effect_text(effect: ToolEffect, what: &str) -> String {
    match effect {
        ToolEffect::ReadOnly => format!("a {what} changes nothing"),
        ToolEffect::Idempotent => {
            format!(
                "a {what} can change something, but repeating the same {what} changes nothing further"
            )
        }
        ToolEffect::Effectful => format!("each {what} can change something"),
    }
}

pub(super) fn time(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{} s", ms / 1000)
    } else {
        format!("{ms} ms")
    }
}

/// A tool or a background task as its feature declares it.
pub(super) struct Contribution<'a> {
    pub(super) feature: &'a FeatureDescriptor,
    pub(super) name: &'a str,
    /// The request that its declaration implies.
    pub(super) own: HostCapability,
    /// The requests without which it is left out.
    pub(super) needs: &'a [HostCapability],
}

impl Contribution<'_> {
    /// Why it is installed or not. Returns also whether nothing outside of the plan prevents it: the feature is on, and
    /// commands can run if it starts them; `no_shell` says why they cannot.
    pub(super) fn availability(
        &self,
        planned: &PlannedFeature,
        config: &Config,
        composed: &Composed,
        no_shell: Option<String>,
    ) -> (Vec<Step>, bool) {
        let id = &self.feature.id;
        let mut steps = Vec::new();
        let mut say = |mark, text: String, source| {
            steps.push(Step {
                part: Part::Surface,
                mark,
                text,
                source,
            })
        };
        if planned.outcome == InstallOutcome::Disabled {
            let planned = serde_json::to_value(planned).unwrap_or_default();
            say(Mark::No, format!("{id} is {}", why_off(&planned)), None);
            return (steps, false);
        }
        let switch = config.features.get(&id.to_string());
        let source = switch
            .and_then(|switches| switches.enabled.as_ref())
            .map(|enabled| enabled.source.clone());
        let source = source.or_else(|| switch.filter(|s| s.on()).map(|s| s.at.clone()));
        say(
            Mark::Yes,
            format!("{id} is enabled"),
            Some(source.unwrap_or_else(|| "default".to_owned())),
        );
        let requests = self.feature.requested_capabilities.iter();
        let needed = requests
            .filter(|asked| asked.need == Need::Required || self.needs.contains(&asked.capability));
        for capability in
            std::iter::once(&self.own).chain(needed.map(|request| &request.capability))
        {
            let (mark, text, source) = grant(
                id,
                capability,
                planned,
                composed.capabilities.admission(id, capability),
            );
            say(mark, text, source);
        }
        // The steps above have the reason of a denial.
        let document = serde_json::to_value(planned).unwrap_or_default();
        let found = diagnostics(&document).filter(|_| !planned.outcome.is_live());
        for (message, denied) in found {
            let why = denied.map_or_else(
                || message.to_owned(),
                |denied| {
                    let asked = words(&denied.capability);
                    format!("the feature requires permission to {asked}")
                },
            );
            say(Mark::No, format!("{id} is skipped: {why}"), None);
        }
        let skipped = planned.skipped_contributions.iter();
        for skipped in skipped.filter(|skipped| skipped.name == self.name) {
            let why = skipped.denied.as_ref().map_or_else(
                || skipped.reason.clone(),
                |needed| {
                    let asked = words(&needed.capability);
                    format!("{} requires permission to {asked}", self.name)
                },
            );
            let why = format!("{} is not installed: {why}", self.name);
            say(Mark::No, why, None);
        }
        let starts = self
            .feature
            .requested_capabilities
            .iter()
            .any(|r| matches!(r.capability, HostCapability::Process { .. }));
        match no_shell.filter(|_| starts) {
            Some(why) => {
                say(Mark::No, format!("commands cannot run here: {why}"), None);
                (steps, false)
            }
            None => (steps, true),
        }
    }
}

fn grant(
    id: &FeatureId,
    asked: &HostCapability,
    planned: &PlannedFeature,
    admission: Admission,
) -> (Mark, String, Option<String>) {
    let held = planned.grants.granted();
    let part = held.iter().find(|held| asked.covers(held));
    let denied = || {
        let denied = denied_words(asked, part);
        format!("the feature has no permission to {denied}")
    };
    match admission {
        Admission::Granted(source) => {
            let may = format!("the feature may {}", words(asked));
            (Mark::Yes, may, Some(source))
        }
        Admission::Refused(source) => (Mark::No, denied(), Some(source)),
        Admission::Denied(denial) => {
            let mark = if part.is_some() { Mark::Note } else { Mark::No };
            let planned = serde_json::to_value(planned).unwrap_or_default();
            let why = refusal(&denial, id, &planned);
            (mark, format!("{}: {why}", denied()), None)
        }
    }
}
