//! Judges one call: one decision, with the rule that made it. Does not depend on the actor.

use super::place::{self, Target};
use super::program;
use super::remedy::{AlternativeRemedy, HostTerms, Remedy, RuleRemedy};
use super::rule::{Layer, Placed, Rule, RuleDecision};
use super::table::{self, DefaultRule, RowRemedy};
use crate::feature::{FeatureId, HostReport, HostRule};
use crate::record::Decision;
use authority::text::escape_line;
use authority::{SandboxMode, Workspace};
use llm_worker::ToolEffect;
use llm_worker::tool::{Escalation, Landing, Touch};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The name of the built-in table in decisions.
pub(super) const BUILT_IN: &str = "default";

/// The name of the rules in decisions that a person allowed for the session.
const SESSION: &str = "allowed for this pod";

/// Rules that are proposed for one call; for one that needs more, none is.
const MAX_PROPOSED: usize = 16;

/// Whether a person can answer a question about a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Person {
    /// Nobody: what needs approval is refused.
    #[default]
    Never,
    /// Now or later, through any client.
    Later,
}

/// The rules of a pod: the built-in table and the layers that override it. `yoi` builds it from configuration and
/// flags; the actor asks it about each call.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) layers: Vec<Layer>,
    pub terms: HostTerms,
}

/// A call as [`Policy::judge`] gets it: its tool, the tool's effect, the resources that its parsed arguments name, and
/// the tool's feature.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    pub tool: &'a str,
    pub effect: ToolEffect,
    pub touches: &'a [Touch],
    pub feature: &'a FeatureId,
}

/// The sandbox that applies to the call. Whether commands are confined decides some default rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxState {
    pub mode: SandboxMode,
    /// Whether this kernel enforces that mode.
    pub enforced: bool,
}

/// The decision about a call, and the rule that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision {
    /// The first line of a refusal names the call and the rule; the remedy is below it.
    pub decision: Decision,
    pub rule: RuleRef,
    pub resources: JudgedResources,
}

/// What a call would act on, as it was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgedResources {
    /// Where the paths that the call writes lead.
    pub landings: Vec<Landing>,
    /// A digest of the sandbox, of the files that the call names, with their links followed, and of the directories that
    /// it writes in.
    pub digest: String,
    /// The same without the directories: what `digest` is for those that do not exist yet.
    pub digest_by_name: String,
}

impl JudgedResources {
    fn of(targets: &[Target], now: SandboxState) -> Self {
        let mut landings = Vec::new();
        let mut by_name = format!("{:?}", (now.mode, now.enforced));
        let mut by_dir = by_name.clone();
        for target in targets {
            let text = match target {
                Target::Path {
                    way,
                    side,
                    resolved,
                    landing,
                    ..
                } => {
                    landings.extend(landing.clone());
                    // Devices have other numbers after the machine was started again.
                    let inode = landing
                        .as_ref()
                        .filter(|landing| !landing.missing)
                        .map(|landing| landing.dir.1);
                    by_dir += &inode.map(|inode| inode.to_string()).unwrap_or_default();
                    format!("{:?}", (way, side, resolved))
                }
                Target::Lost { shown, why } => format!("{:?}", (shown, why)),
                Target::Escalate(to, reason) => format!("{:?}", (to, reason)),
                Target::Connect(host, reason) => format!("{:?}", (host, reason)),
                // Their words are those of the arguments.
                Target::Host(_) | Target::Remote(_) | Target::Command | Target::Part(..) => {
                    continue;
                }
                Target::Session | Target::Nothing => continue,
            };
            by_name += &text;
            by_dir += &text;
        }
        let digest = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
        Self {
            landings,
            digest: digest(&by_dir),
            digest_by_name: digest(&by_name),
        }
    }
}

/// The rules that would allow such calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// None if no rules can.
    pub rules: Vec<Rule>,
    /// Whether they also do behind the rules of the user's configuration.
    pub configurable: bool,
}

/// Rules that may be added to the user's configuration.
#[derive(Debug)]
pub struct RuleTrial {
    rules: Layer,
    /// With these rules.
    policy: Policy,
}

impl RuleTrial {
    /// Whether the call is allowed with the rules, and one of them matches a part of it.
    #[must_use]
    pub fn matches(&self, call: &CallFacts<'_>, workspace: &Workspace, now: SandboxState) -> bool {
        let Self { rules, policy } = self;
        let ruled_as = policy.terms.ruled_as(call.tool);
        let read = policy.terms.read;
        policy
            .targets(call, workspace, now)
            .iter()
            .any(|target| rules.speaks(ruled_as, read, target).is_some())
            && policy.judge(call, workspace, now).decision.allows()
    }
}

/// The rule that made a decision, and its source; for the `verdict` record and for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleRef {
    /// `default`, or the rule's origin: a file and its line, a flag.
    pub source: String,
    pub text: String,
}

impl Policy {
    /// The built-in table, then `layers` from the outermost (the machine's file) to the innermost (flags).
    #[must_use]
    pub fn new(terms: HostTerms, layers: Vec<Layer>) -> Self {
        Self { layers, terms }
    }

    /// Judges a call where nobody can be asked. If it names several things, the strictest decision applies.
    #[must_use]
    pub fn judge(
        &self,
        call: &CallFacts<'_>,
        workspace: &Workspace,
        now: SandboxState,
    ) -> PolicyDecision {
        self.judge_with(call, workspace, now, Person::Never)
    }

    /// As [`Self::judge`]; where a person can come, a call that needs approval is a question.
    #[must_use]
    pub fn judge_with(
        &self,
        call: &CallFacts<'_>,
        workspace: &Workspace,
        now: SandboxState,
        person: Person,
    ) -> PolicyDecision {
        let targets = self.targets(call, workspace, now);
        let resources = JudgedResources::of(&targets, now);
        let answers: Vec<_> = targets
            .iter()
            .map(|target| self.answer(call, target, now))
            .collect();
        let lines: Vec<_> = match person {
            Person::Never => Vec::new(),
            Person::Later => answers
                .iter()
                .filter_map(|answer| answer.question(call))
                .collect(),
        };
        let nobody = TargetDecision::none();
        // A directory that is added for writing can be read, too.
        let rank = |answer: &TargetDecision<'_>| (answer.decision, !answer.origin.needs_dir());
        let strictest = answers
            .iter()
            .reduce(|a, b| if rank(b) > rank(a) { b } else { a })
            .unwrap_or(&nobody);
        if strictest.decision == RuleDecision::Ask && !lines.is_empty() {
            let (source, text) = strictest.origin();
            return PolicyDecision {
                decision: Decision::Ask {
                    question: lines.join("\n"),
                    expires_after_ms: None,
                },
                rule: RuleRef { source, text },
                resources,
            };
        }
        PolicyDecision {
            resources,
            ..strictest.decide(call, now, self.terms, &answers)
        }
    }

    fn targets(
        &self,
        call: &CallFacts<'_>,
        workspace: &Workspace,
        now: SandboxState,
    ) -> Vec<Target> {
        let parts = self
            .judges_parts(call, now)
            .then(|| self.guarded_programs(call));
        place::targets(call.effect, call.touches, workspace, parts)
    }

    /// The programs that rules refuse or ask about.
    pub(super) fn guarded_programs(&self, call: &CallFacts<'_>) -> BTreeSet<&str> {
        self.layers
            .iter()
            .flat_map(|layer| layer.guarded_programs(self.terms.ruled_as(call.tool)))
            .collect()
    }

    /// Whether the parts of a command line are judged, each for itself.
    pub(super) fn judges_parts(&self, call: &CallFacts<'_>, now: SandboxState) -> bool {
        let ruled = self
            .layers
            .iter()
            .any(|layer| layer.names_programs(self.terms.ruled_as(call.tool)));
        ruled || table::command(now.confined()) != RuleDecision::Allow
    }

    /// What is decided about one target of a call.
    pub(super) fn decides(
        &self,
        call: &CallFacts<'_>,
        target: &Target,
        now: SandboxState,
    ) -> RuleDecision {
        self.answer(call, target, now).decision
    }

    /// The narrowest rules that would allow a call which needs approval; none if no rules can.
    #[must_use]
    pub fn proposed(
        &self,
        call: &CallFacts<'_>,
        workspace: &Workspace,
        now: SandboxState,
    ) -> Proposal {
        let targets = self.targets(call, workspace, now);
        let asking = targets
            .iter()
            .filter(|target| self.answer(call, target, now).decision == RuleDecision::Ask);
        let rules = asking
            .map(|target| proposed(target, call.tool, self.terms.read))
            .collect::<Option<Vec<_>>>();
        let mut rules = rules.unwrap_or_default();
        rules.dedup();
        if rules.len() > MAX_PROPOSED
            || !self
                .clone()
                .with(&rules)
                .judge(call, workspace, now)
                .decision
                .allows()
        {
            return Proposal::default();
        }
        // In another project, a program at a relative path is another program.
        let elsewhere = |rule: &Rule| {
            rule.program
                .as_deref()
                .is_some_and(|name| name.contains('/') && !name.starts_with('/'))
        };
        let configurable = !rules.iter().any(elsewhere)
            && self
                .clone()
                .configured(&rules)
                .judge(call, workspace, now)
                .decision
                .allows();
        Proposal {
            rules,
            configurable,
        }
    }

    /// This policy with the rules that a person allowed for a session, as the innermost layer.
    #[must_use]
    pub fn with(mut self, rules: &[Rule]) -> Self {
        // Each of them was valid when it was proposed.
        self.layers.extend(Layer::new(SESSION, rules.to_vec()));
        self
    }

    /// This policy with more rules behind those of the user's configuration.
    fn configured(mut self, rules: &[Rule]) -> Self {
        let at = self
            .layers
            .iter()
            .position(|layer| layer.tightens)
            .unwrap_or(self.layers.len());
        self.layers
            .splice(at..at, Layer::new(SESSION, rules.to_vec()));
        self
    }

    /// These rules, in the user's configuration, for finding out what they match; none if one of them is not valid.
    #[must_use]
    pub fn trial(&self, rules: &[Rule]) -> Option<RuleTrial> {
        Some(RuleTrial {
            rules: Layer::new(SESSION, rules.to_vec()).ok()?,
            policy: self.clone().configured(rules),
        })
    }

    /// Whether a rule of a person allows this call. False if only the built-in table allows it.
    #[must_use]
    pub fn allows_by_rule(
        &self,
        call: &CallFacts<'_>,
        workspace: &Workspace,
        now: SandboxState,
    ) -> bool {
        let judged = self.judge(call, workspace, now);
        judged.decision.allows() && judged.rule.source != BUILT_IN
    }

    fn answer<'a>(
        &'a self,
        call: &CallFacts<'_>,
        target: &'a Target,
        now: SandboxState,
    ) -> TargetDecision<'a> {
        let row = table::answering(target, now.mode == SandboxMode::ReadOnly);
        let mut origin = Origin::DefaultRule(row);
        let decision = self.in_order(row.decision(now.confined()), |layer| {
            let Placed { rule, source, .. } =
                layer.speaks(self.terms.ruled_as(call.tool), self.terms.read, target)?;
            // Only a person allows an escalation, each time; and a rule about commands is not about where they connect to.
            let is_unmeant = matches!(target, Target::Escalate(..))
                || matches!(target, Target::Connect(..)) && rule.host.is_none();
            if rule.decision == RuleDecision::Allow && is_unmeant {
                return None;
            }
            origin = Origin::Rule {
                source,
                text: rule.to_string(),
            };
            Some(rule.decision)
        });
        // A person who answers a question about a call adds no directory.
        let is_command = matches!(target, Target::Path { command: true, .. });
        let decision = if origin.needs_dir() && (now.confined() || !is_command) {
            RuleDecision::Deny
        } else {
            decision
        };
        TargetDecision {
            decision,
            origin,
            target: Some(target),
        }
    }

    /// Applies the layers after the default rule, from the outermost inwards, until one denies. The last layer with a
    /// matching rule decides.
    pub(super) fn in_order<'a>(
        &'a self,
        row: RuleDecision,
        mut speaks: impl FnMut(&'a Layer) -> Option<RuleDecision>,
    ) -> RuleDecision {
        let mut decision = row;
        for layer in &self.layers {
            if decision == RuleDecision::Deny {
                break;
            }
            decision = speaks(layer).unwrap_or(decision);
        }
        decision
    }

    /// Every default rule and written rule in the order they apply, for reports.
    #[must_use]
    pub fn describe(&self, now: SandboxState) -> HostReport {
        let row = |row: &&DefaultRule| HostRule {
            source: BUILT_IN.into(),
            text: format!("{}: {}", row.text, row.stated(now.confined()).word()),
        };
        let rules = table::ROWS.iter().map(row);
        let placed = self.layers.iter().flat_map(|layer| &layer.rules);
        let written = placed.map(|Placed { rule, source, .. }| HostRule {
            source: source.clone(),
            text: rule.to_string(),
        });
        HostReport {
            rules: rules.chain(written).collect(),
            ..HostReport::default()
        }
    }
}

impl SandboxState {
    /// How far a call with these touches goes beyond the sandbox, if commands are confined.
    pub(crate) fn escalation(self, touches: &[Touch]) -> Option<Escalation> {
        let to = |touch: &Touch| match touch {
            Touch::Escalate(to, _) => Some(*to),
            Touch::Connect(..) => Some(Escalation::Network),
            Touch::Read(_) | Touch::Write(_) | Touch::Shell(_) => None,
            Touch::Host(_) | Touch::Session | Touch::RemoteWrite(_) => None,
        };
        touches
            .iter()
            .filter_map(to)
            .max()
            .filter(|_| self.confined())
    }

    /// The hosts that its command is let connect to, if commands are confined.
    pub(crate) fn hosts(self, touches: &[Touch]) -> Vec<String> {
        let host = |touch: &Touch| {
            if let Touch::Connect(host, _) = touch {
                Some(host.clone())
            } else {
                None
            }
        };
        touches
            .iter()
            .filter_map(host)
            .filter(|_| self.confined())
            .collect()
    }

    pub(super) fn confined(self) -> bool {
        match self.mode {
            SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => self.enforced,
            SandboxMode::Off => false,
        }
    }
}

/// The decision of the table and the layers about one target.
struct TargetDecision<'a> {
    decision: RuleDecision,
    origin: Origin<'a>,
    target: Option<&'a Target>,
}

enum Origin<'a> {
    DefaultRule(&'static DefaultRule),
    Rule { source: &'a str, text: String },
    Nobody,
}

impl Origin<'_> {
    fn needs_dir(&self) -> bool {
        matches!(self, Self::DefaultRule(row) if row.needs_dir())
    }
}

impl TargetDecision<'_> {
    /// No rule applies: refused.
    fn none() -> Self {
        Self {
            decision: RuleDecision::Deny,
            origin: Origin::Nobody,
            target: None,
        }
    }

    /// The rule that decided: where it is written, and its text.
    fn origin(&self) -> (String, String) {
        match &self.origin {
            Origin::DefaultRule(row) => (
                BUILT_IN.to_owned(),
                format!("{}: {}", row.text, self.decision.word()),
            ),
            Origin::Rule { source, text } => ((*source).to_owned(), text.clone()),
            Origin::Nobody => (BUILT_IN.to_owned(), "no rule matches: deny".to_owned()),
        }
    }

    /// The rule that decided, in words.
    fn rule(&self) -> String {
        let (source, text) = self.origin();
        match &self.origin {
            Origin::DefaultRule(_) => format!("the default rule `{text}`"),
            Origin::Rule { .. } => format!("the rule `{text}` ({source})"),
            Origin::Nobody => "default: no rule allows it".to_owned(),
        }
    }

    /// What a person is asked about the target.
    fn question(&self, call: &CallFacts<'_>) -> Option<String> {
        let reason = match self.target {
            Some(Target::Escalate(_, reason) | Target::Connect(_, reason)) => {
                format!(
                    "\nits reason, in the words of the model: {}",
                    escape_line(reason)
                )
            }
            _ => String::new(),
        };
        (self.decision == RuleDecision::Ask).then(|| {
            format!(
                "{} requires your approval because of {}{reason}",
                self.what(call),
                self.rule()
            )
        })
    }

    /// The decision about the call, which is this one; `all` are those about everything that the call names.
    fn decide(
        &self,
        call: &CallFacts<'_>,
        now: SandboxState,
        terms: HostTerms,
        all: &[Self],
    ) -> PolicyDecision {
        let ((source, text), rule) = (self.origin(), self.rule());
        let help = || {
            let mut remedy = self.remedy(call.tool, now, terms);
            if let Remedy::Rule { rules, .. } = &mut remedy {
                let asking = all
                    .iter()
                    .filter(|other| other.decision == RuleDecision::Ask);
                for rule in asking
                    .map(|other| other.allowing(call.tool, terms))
                    .take(MAX_PROPOSED)
                {
                    if !rules.contains(&rule) {
                        rules.push(rule);
                    }
                }
            }
            (terms.remedy)(&remedy)
        };
        let decision = match self.decision {
            RuleDecision::Allow => Decision::Allow,
            RuleDecision::Ask => {
                let why = format!(
                    "requires approval because of {rule}, and this run cannot ask for approval"
                );
                Decision::Refuse {
                    reason: format!("{} {why}\n{}", self.what(call), help()),
                }
            }
            RuleDecision::Deny => {
                let why = match self.target {
                    Some(Target::Lost { why, .. }) => format!(": {why}"),
                    _ => String::new(),
                };
                let reason = format!("{} is refused by {rule}{why}\n{}", self.what(call), help());
                Decision::Refuse { reason }
            }
        };
        PolicyDecision {
            decision,
            rule: RuleRef { source, text },
            resources: JudgedResources::default(),
        }
    }

    fn remedy(&self, tool: &str, now: SandboxState, terms: HostTerms) -> Remedy {
        let alternative = match &self.origin {
            Origin::DefaultRule(DefaultRule {
                remedy: RowRemedy::By(remedy),
                ..
            }) => return remedy.clone(),
            Origin::DefaultRule(DefaultRule {
                remedy: RowRemedy::AddDir,
                ..
            }) => return Remedy::AddDir(self.dir()),
            Origin::DefaultRule(DefaultRule {
                remedy: RowRemedy::AddWriteDir,
                ..
            }) => {
                return Remedy::AddWriteDir(self.dir());
            }
            Origin::Rule { .. } if self.decision == RuleDecision::Deny => {
                return Remedy::ChangeRule;
            }
            Origin::DefaultRule(DefaultRule {
                remedy: RowRemedy::Secret,
                ..
            }) => AlternativeRemedy::Secret,
            Origin::Rule { .. } => AlternativeRemedy::AskingRule,
            Origin::DefaultRule(DefaultRule {
                remedy: RowRemedy::Rule,
                ..
            })
            | Origin::Nobody => match now.mode {
                SandboxMode::Off => AlternativeRemedy::Sandbox,
                SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite if !now.enforced => {
                    AlternativeRemedy::Kernel
                }
                SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => AlternativeRemedy::Nothing,
            },
        };
        Remedy::Rule {
            rules: vec![self.allowing(tool, terms)],
            alternative,
        }
    }

    /// The rule that allows the target.
    fn allowing(&self, tool: &str, terms: HostTerms) -> RuleRemedy {
        let tool = if matches!(self.target, Some(Target::Path { command: true, .. })) {
            terms.read
        } else {
            tool
        };
        let on = if matches!(self.target, Some(Target::Connect(..))) {
            "on "
        } else {
            ""
        };
        let about = self
            .target
            .and_then(allowing)
            .map(|about| format!("{on}{about}"));
        RuleRemedy {
            tool: tool.to_owned(),
            about,
        }
    }

    /// The directory of the target's path.
    fn dir(&self) -> PathBuf {
        match self.target {
            Some(Target::Path { dir, .. }) => dir.clone(),
            _ => PathBuf::new(),
        }
    }

    fn what(&self, call: &CallFacts<'_>) -> String {
        match self.target {
            Some(Target::Path {
                shown,
                command: true,
                ..
            }) => format!("{} on {shown}", call.tool),
            Some(Target::Path { shown, .. }) => format!("{} {shown}", call.tool),
            Some(Target::Lost { shown, .. }) => format!("{} {shown}", call.tool),
            Some(Target::Host(host)) => format!("{} from {}", call.tool, escape_line(host)),
            Some(Target::Connect(host, _)) => {
                format!("{} with a way to {}", call.tool, escape_line(host))
            }
            Some(Target::Remote(name)) => format!("{} at {}", call.tool, escape_line(name)),
            Some(Target::Escalate(Escalation::Network, _)) => {
                format!("{} with the network", call.tool)
            }
            Some(Target::Escalate(Escalation::Unconfined, _)) => {
                format!("{} outside the sandbox", call.tool)
            }
            Some(Target::Part(part, whole)) => {
                let whole = whole
                    .as_ref()
                    .map(|whole| format!(" in `{}`", escape_line(whole)))
                    .unwrap_or_default();
                let opaque = part
                    .opaque
                    .as_ref()
                    .map(|opaque| format!(" (opaque: {})", escape_line(&opaque.to_string())));
                format!(
                    "{} `{}`{whole}{}",
                    call.tool,
                    escape_line(&part.text),
                    opaque.unwrap_or_default()
                )
            }
            Some(Target::Command | Target::Session | Target::Nothing) | None => {
                call.tool.to_owned()
            }
        }
    }
}

/// The narrowest rule that allows a target of a call of this tool.
fn proposed(target: &Target, tool: &str, read: &str) -> Option<Rule> {
    let about = allowing(target)?;
    let tool = if matches!(target, Target::Path { command: true, .. }) {
        read
    } else {
        tool
    };
    let mut rule = Rule::new(tool, RuleDecision::Allow);
    match target {
        Target::Part(..) => {
            let mut words = about.split(' ').map(str::to_owned);
            rule.program = words.next();
            rule.subcommand = words.next().map(|word| vec![word]);
        }
        // The absolute path: in the user's configuration a relative one would be about the same name in every project.
        Target::Path { resolved, .. } => {
            rule.path = Some(
                resolved
                    .last()?
                    .to_str()
                    .filter(|path| is_plain(path))?
                    .to_owned(),
            );
        }
        Target::Host(_) | Target::Connect(..) => rule.host = Some(about),
        Target::Lost { .. } | Target::Remote(_) | Target::Escalate(..) => return None,
        Target::Command | Target::Session | Target::Nothing => return None,
    }
    Some(rule)
}

/// The narrowest text for a rule that allows the target. None if a glob or a shell would interpret the text.
fn allowing(target: &Target) -> Option<String> {
    let about = match target {
        Target::Part(part, _) => program::allowing(part),
        Target::Path { resolved, .. } => resolved
            .first()
            .and_then(|path| path.to_str())
            .map(str::to_owned),
        Target::Host(host) | Target::Connect(host, _) => Some(host.clone()),
        Target::Lost { .. } | Target::Remote(_) | Target::Escalate(..) => None,
        Target::Command | Target::Session | Target::Nothing => None,
    };
    about.filter(|text| is_plain(text))
}

fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_alphanumeric() || "/._-+, @:".contains(c))
}
