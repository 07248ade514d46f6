//! `builtin:command-blocklist`: refuses shell commands that destroy a machine, or warns of them. Off until configured.
//!
//! Each part of a command is checked, in any position, and so is code that it passes literally to a shell. Nothing is
//! guessed that the text does not show: this feature catches mistakes; the sandbox limits intentional damage. Rules:
//! `root` (removing the system or a home), `privilege`, `fork-bomb`, `download` (run as it comes), `file-system`
//! (making one), `device` (writing one), `power`, `pattern`, the person's own, and `unreadable`: the text does not show
//! which program runs. Other code that the text does not show, such as `python3 -c …`, runs, and its result says `unchecked`.

mod rules;
#[cfg(test)]
mod tests;

use authority::text::{Lines, escape_within};
use llm_worker::ToolOutput;
use llm_worker::tool::Touch;
use pod::feature::author::AlertLevel;
use pod::feature::{
    CapabilityRequest, FeatureAlertSink, FeatureDescriptor, FeatureId, FeatureInstallContext,
    FeatureInstallError, FeatureModule, HookKey, HostCapability,
};
use pod::hook::{Change, PreToolCall, ToolCallView, ToolOutcome, ToolOutcomeView, Verdict};
use rules::{BlockedCommand, UNCHECKED};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("command-blocklist");

const GATE: HookKey<PreToolCall> = HookKey::new("command-blocklist");
const WARNING: HookKey<ToolOutcome> = HookKey::new("command-blocklist-warning");

/// Most patterns, words of one, and bytes of one.
const MAX_PATTERNS: usize = 64;
const MAX_WORDS: usize = 16;
const MAX_BYTES: usize = 256;

/// The most bytes of an invalid pattern that an error shows.
const MAX_SHOWN: usize = 40;

/// `[features."builtin:command-blocklist"]`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Lets such commands run with a warning each time: in the result, and as an alert.
    pub warn_only: bool,
    /// More commands, each as a program and words that its arguments must contain: `git push --force`. At most 64.
    #[schemars(length(max = MAX_PATTERNS))]
    pub patterns: Vec<String>,
}

/// The feature that refuses, or warns of, destructive shell commands.
#[derive(Debug)]
pub struct CommandBlocklist(Settings);

impl CommandBlocklist {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings) -> Result<Self, String> {
        if settings.patterns.len() > MAX_PATTERNS {
            return Err(format!(
                "`patterns` has {}; expected at most {MAX_PATTERNS}",
                settings.patterns.len()
            ));
        }
        let fits = |pattern: &&String| {
            let words = pattern.split_whitespace().count();
            (1..=MAX_WORDS).contains(&words) && pattern.len() <= MAX_BYTES
        };
        match settings.patterns.iter().find(|pattern| !fits(pattern)) {
            Some(bad) => Err(format!(
                "`patterns` has `{}`; expected a program and words, {MAX_WORDS} and {MAX_BYTES} bytes at most",
                escape_within(bad, Lines::One, MAX_SHOWN)
            )),
            None => Ok(Self(settings)),
        }
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Command blocklist")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .request(CapabilityRequest::required(
            HostCapability::EmitUserAlert,
            "tell people of what it lets pass",
        ))
        .gate(&GATE)
        .transform(&WARNING)
        .build()
}

impl FeatureModule for CommandBlocklist {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            settings: self.0.clone(),
            alerts: ctx.alerts()?,
        });
        ctx.hooks().gate(&GATE, &live, Live::judge)?;
        ctx.hooks().transform(&WARNING, &live, Live::finished)?;
        Ok(())
    }
}

struct Live {
    settings: Settings,
    alerts: FeatureAlertSink,
}

impl Live {
    fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        let found = self.found(call).filter(|found| found.rule != UNCHECKED);
        let Some(BlockedCommand { rule, text, why }) = found else {
            return Verdict::allow();
        };
        if !self.settings.warn_only {
            return Verdict::deny(format!(
                "rule `{rule}`: `{text}` {why}; avoid it, or ask the user to run it"
            ));
        }
        // A failed alert is ignored: the result has the warning, too.
        drop(self.alerts.alert(
            AlertLevel::Warning,
            &format!("rule `{rule}`: `{text}` {why}; warn_only lets it run"),
        ));
        Verdict::allow()
    }

    fn finished(&self, view: &ToolOutcomeView) -> Change<ToolOutput> {
        let runs = |found: &BlockedCommand| self.settings.warn_only || found.rule == UNCHECKED;
        let found = self.found(&view.call).filter(runs);
        let Some(BlockedCommand { rule, text, why }) = found else {
            return Change::Unchanged;
        };
        let outcome = &view.outcome;
        let warning = format!("warning of {ID}: rule `{rule}`: `{text}` {why}");
        let content = match outcome.content.is_empty() {
            true => warning,
            false => format!("{warning}\n{}", outcome.content),
        };
        Change::Replaced(ToolOutput {
            summary: outcome.summary.clone(),
            content,
            data: None,
        })
    }

    fn found(&self, call: &ToolCallView) -> Option<BlockedCommand> {
        call.touches.iter().find_map(|touch| match touch {
            Touch::Shell(text) => rules::check(text, &self.settings.patterns),
            Touch::Read(_) | Touch::Write(_) | Touch::Host(_) | Touch::Session => None,
            Touch::RemoteWrite(_) | Touch::Escalate(..) | Touch::Connect(..) => None,
        })
    }
}
