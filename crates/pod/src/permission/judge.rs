//! One call, one decision, with the rule that made it.

use super::place::{self, Target};
use super::program;
use super::rule::{self, Layer, Placed, RuleDecision};
use super::table::{self, Row, Unlock};
use crate::feature::{FeatureId, HostReport, HostRule};
use authority::text::escape_line;
use authority::{SandboxMode, Workspace};
use llm_worker::ToolEffect;
use llm_worker::tool::Touch;
use serde::{Deserialize, Serialize};

/// Where the built-in table is named in decisions.
pub(super) const BUILT_IN: &str = "default";

/// The built-in table and the layers on top of it.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) layers: Vec<Layer>,
}

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// What repeating it does.
    pub effect: ToolEffect,
    /// What its arguments name.
    pub touches: &'a [Touch],
    /// Who contributed the tool.
    pub feature: &'a FeatureId,
}

/// What is in force while it is judged. In this build nobody can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// The sandbox mode.
    pub mode: SandboxMode,
    /// Whether this kernel enforces that mode.
    pub enforced: bool,
}

/// Whether a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It runs.
    Allow,
    /// It does not.
    Deny,
}

/// A verdict, who made it and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Whether the call runs.
    pub verdict: Verdict,
    /// The row or rule that decided.
    pub rule: RuleRef,
    /// For model and person: what was refused, why, and what would allow it.
    pub reason: String,
}

/// A rule and where it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRef {
    /// `default`, or where the rule stands: a file and its line, a flag.
    pub source: String,
    /// What it says.
    pub text: String,
}

impl Policy {
    /// The built-in table, then `layers` from the outermost (the machine's file) to the innermost (flags).
    #[must_use]
    pub fn new(layers: Vec<Layer>) -> Self {
        Self { layers }
    }

    /// Judges a call. It is as free as the least free thing it names.
    #[must_use]
    pub fn judge(&self, call: &CallFacts<'_>, workspace: &Workspace, now: Circumstances) -> Decision {
        let ruled = self.layers.iter().any(|layer| layer.names_programs(call.tool));
        let parts = ruled || table::command(now.confined()) != RuleDecision::Allow;
        let targets = place::targets(call.effect, call.touches, workspace, parts);
        let answers = targets.iter().map(|target| self.answer(call, target, now));
        let strictest = answers.reduce(|a, b| if b.decision > a.decision { b } else { a });
        strictest.map_or_else(|| Answer::none().decide(call, now), |answer| answer.decide(call, now))
    }

    /// Whether a person's own rule allows this call: not the built-in table alone.
    #[must_use]
    pub fn allows_by_rule(&self, call: &CallFacts<'_>, workspace: &Workspace, now: Circumstances) -> bool {
        let decision = self.judge(call, workspace, now);
        decision.verdict == Verdict::Allow && decision.rule.source != BUILT_IN
    }

    fn answer<'a>(&'a self, call: &CallFacts<'_>, target: &'a Target, now: Circumstances) -> Answer<'a> {
        let row = table::row(target, now.mode == SandboxMode::ReadOnly);
        let mut answer =
            Answer { decision: row.decision(now.confined()), origin: Origin::Row(row), target: Some(target) };
        for layer in &self.layers {
            if answer.decision == RuleDecision::Deny {
                break;
            }
            if let Some(Placed { rule, source, .. }) = layer.speaks(call.tool, target) {
                let origin = Origin::Rule { source, text: rule.to_string() };
                answer = Answer { decision: rule.decision, origin, target: Some(target) };
            }
        }
        answer
    }

    /// Every row and rule in the order they apply, for reports.
    #[must_use]
    pub fn describe(&self, now: Circumstances) -> HostReport {
        let row = |row: &&Row| HostRule {
            source: BUILT_IN.into(),
            text: format!("{}: {}", row.text, word(row.decision(now.confined()))),
        };
        let rules = table::ROWS.iter().map(row);
        let placed = self.layers.iter().flat_map(|layer| &layer.rules);
        let written =
            placed.map(|Placed { rule, source, .. }| HostRule { source: source.clone(), text: rule.to_string() });
        HostReport { rules: rules.chain(written).collect(), ..HostReport::default() }
    }
}

impl Circumstances {
    pub(super) fn confined(self) -> bool {
        match self.mode {
            SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => self.enforced,
            SandboxMode::Off => false,
        }
    }
}

fn word(decision: RuleDecision) -> &'static str {
    match decision {
        RuleDecision::Allow => "allow",
        RuleDecision::Ask => "ask",
        RuleDecision::Deny => "deny",
    }
}

/// What the table and the layers say of one target.
struct Answer<'a> {
    decision: RuleDecision,
    origin: Origin<'a>,
    target: Option<&'a Target>,
}

enum Origin<'a> {
    Row(&'static Row),
    Rule { source: &'a str, text: String },
    Nobody,
}

impl Answer<'_> {
    /// Nothing said anything: refused.
    fn none() -> Self {
        Self { decision: RuleDecision::Deny, origin: Origin::Nobody, target: None }
    }

    fn decide(self, call: &CallFacts<'_>, now: Circumstances) -> Decision {
        let what = self.what(call);
        let (source, text, unlock) = match self.origin {
            Origin::Row(row) => (BUILT_IN.to_owned(), format!("{}: {}", row.text, word(self.decision)), row.unlock),
            Origin::Rule { source, text } => (source.to_owned(), text, Unlock::Rule),
            Origin::Nobody => (BUILT_IN.to_owned(), "what no rule answers: deny".to_owned(), Unlock::Rule),
        };
        let (verdict, reason) = match self.decision {
            RuleDecision::Allow => (Verdict::Allow, format!("{what}: allowed by `{text}` ({source})")),
            RuleDecision::Ask => {
                let rule = allowing(call.tool, self.target);
                let help = help(unlock, &rule, now, source == BUILT_IN);
                let reason = format!(
                    "{what} needs a person's consent (`{text}`, {source}), and nobody can be asked here. {help}"
                );
                (Verdict::Deny, reason)
            }
            RuleDecision::Deny => {
                let help = match source == BUILT_IN {
                    true => help(unlock, &allowing(call.tool, self.target), now, true),
                    false => "To allow it, change that rule: no rule inside of it can.".to_owned(),
                };
                (Verdict::Deny, format!("{what} is refused (`{text}`, {source}). {help}"))
            }
        };
        Decision { verdict, rule: RuleRef { source, text }, reason }
    }

    fn what(&self, call: &CallFacts<'_>) -> String {
        match self.target {
            Some(Target::Path { shown, command: true, .. }) => format!("{} on {shown}", call.tool),
            Some(Target::Path { shown, .. }) => format!("{} {shown}", call.tool),
            Some(Target::Lost { shown, why }) => format!("{} {shown} ({why})", call.tool),
            Some(Target::Host(host)) => format!("{} from {}", call.tool, escape_line(host)),
            Some(Target::Part(part, whole)) => {
                let whole = whole.as_ref().map(|whole| format!(" in `{}`", escape_line(whole))).unwrap_or_default();
                let opaque =
                    part.opaque.as_ref().map(|opaque| format!(" (opaque: {})", escape_line(&opaque.to_string())));
                format!("{} `{}`{whole}{}", call.tool, escape_line(&part.text), opaque.unwrap_or_default())
            }
            Some(Target::Command | Target::Session | Target::Nothing) | None => call.tool.to_owned(),
        }
    }
}

/// The narrowest rule that would allow it, as `--allow` takes it, quoted for a shell.
fn allowing(tool: &str, target: Option<&Target>) -> String {
    let tool = if matches!(target, Some(Target::Path { command: true, .. })) { rule::READ } else { tool };
    let about = match target {
        Some(Target::Part(part, _)) => program::allowing(part),
        Some(Target::Path { resolved, .. }) => resolved.first().and_then(|path| path.to_str()).map(str::to_owned),
        Some(Target::Host(host)) => Some(host.clone()),
        Some(Target::Lost { .. } | Target::Command | Target::Session | Target::Nothing) | None => None,
    };
    // What a glob or a shell would read in its own way is not offered.
    let plain =
        |text: &String| text.chars().all(|c| c.is_alphanumeric() || "/._-+, @:".contains(c)) && !text.contains(' ');
    let plain_command = |text: &String| text.split(' ').all(|word| plain(&word.to_owned()));
    match about.filter(plain_command) {
        Some(about) => format!("--allow '{tool} {about}'"),
        None => format!("--allow {tool}"),
    }
}

/// The next step.
fn help(unlock: Unlock, rule: &str, now: Circumstances, built_in: bool) -> String {
    match unlock {
        Unlock::AddDir => "To allow it, start with --add-dir DIR.".into(),
        Unlock::AddWriteDir => "To allow it, start with --add-write-dir DIR.".into(),
        Unlock::Writable => {
            "To allow it, start without --read-only, in a project directory, with --sandbox workspace-write.".into()
        }
        Unlock::Secret => format!(
            "To allow it, start with {rule}, or write that as [[permissions.rules]] in your configuration. \
             (No lock: a command that does not name such a file can still read it.)"
        ),
        Unlock::Path => "Name a path that exists or can be created.".into(),
        Unlock::Rule if !built_in => format!("To allow it, start with {rule}, or change that rule."),
        Unlock::Rule => match now.mode {
            SandboxMode::Off => {
                format!("To allow it, use the sandbox (--sandbox workspace-write), or start with {rule}.")
            }
            SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite if !now.enforced => {
                format!("This kernel cannot confine it (see yoi doctor). To allow it, start with {rule}.")
            }
            SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => {
                format!("To allow it, start with {rule}, or write that as [[permissions.rules]] in your configuration.")
            }
        },
    }
}
