//! Rules as a person writes them, checked when they are read. Independent of the format of files.

use super::glob::PathGlob;
use super::place::Target;
use super::program::Programs;
use crate::record::{ProposedDecision, ProposedRule};
use authority::HostPattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shell::{base_name, starts_another};

/// Most rules in one layer.
const MAX_RULES: usize = 1_024;

/// One `[[permissions.rules]]` entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A tool's exact name, or `*`.
    pub tool: String,
    /// Only calls that name a path matching this glob: relative to the project, or absolute. `*` stays within one
    /// component, `**` crosses them; `dir/**` includes `dir`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Only calls that name such a host: `docs.example.org`, `*.example.org` (what is below it) or `*`, without a port.
    /// It is about names: an address that a name stands for is another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Only commands that run this program: its name, or its path if that is how it is called. An allowance needs every
    /// part of a command to be allowed and to be plain: no assignments, no output to files, nothing opaque. A refusal
    /// takes each part that may run it, and what is opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Only with one of these as the first argument that is not an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subcommand: Option<Vec<String>>,
    pub decision: RuleDecision,
}

/// The decision of a rule.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    /// The call runs.
    Allow,
    /// The call needs approval.
    Ask,
    /// The call is refused.
    Deny,
}

impl RuleDecision {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A rule that is not valid, reported to the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: permissions.rules[{index}]: {problem}")]
pub struct RuleError {
    pub source_name: String,
    /// The index of the rule, from 0.
    pub index: usize,
    pub problem: String,
}

impl RuleError {
    /// Always `FixInput`: the person must change the file.
    #[must_use]
    pub const fn kind(&self) -> llm_worker::ErrorKind {
        llm_worker::ErrorKind::FixInput
    }
}

/// The checked rules of one source: a file, the flags or the environment. Part of a [`Policy`](super::Policy).
#[derive(Clone, Debug)]
pub struct Layer {
    pub(super) rules: Vec<Placed>,
    /// It comes after the rules of the user's configuration, and can tighten them.
    pub(super) tightens: bool,
}

/// A checked rule with its origin.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) rule: Rule,
    /// The file and line, or the flag.
    pub(super) source: String,
    scope: Scope,
}

/// The calls that a rule applies to.
#[derive(Clone, Debug)]
enum Scope {
    Everything,
    Paths(PathGlob),
    Hosts(HostPattern),
    Programs(Programs),
}

impl Scope {
    fn of(rule: &Rule) -> Result<Self, String> {
        match (&rule.path, &rule.host, &rule.program) {
            (None, None, None) if rule.subcommand.is_some() => Err("`subcommand` needs `program`".into()),
            (None, None, None) => Ok(Self::Everything),
            (None, None, Some(program)) => Programs::new(program, rule.subcommand.as_deref()).map(Self::Programs),
            (Some(path), None, None) if rule.subcommand.is_none() => PathGlob::new(path).map(Self::Paths),
            (None, Some(host), None) if rule.subcommand.is_none() => {
                let pattern: HostPattern =
                    host.parse().map_err(|error: authority::Error| format!("`host`: {error}"))?;
                if pattern.names_port() {
                    return Err("`host` is written without a port".into());
                }
                Ok(Self::Hosts(pattern))
            }
            (Some(_), _, _) | (_, Some(_), _) => {
                Err("a rule with more than one of `path`, `host` and `program` never matches; write several rules"
                    .into())
            }
        }
    }

    fn hits(&self, decision: RuleDecision, target: &Target) -> bool {
        match self {
            Self::Everything => true,
            Self::Paths(glob) => glob.hits(decision, target),
            Self::Hosts(pattern) => {
                matches!(target, Target::Host(host) | Target::Connect(host, _) if pattern.matches_name(host))
            }
            Self::Programs(programs) => {
                matches!(target, Target::Part(part, _) if programs.hits(decision, part))
            }
        }
    }
}

impl Layer {
    /// Checks a layer's rules. `source` is the file, `flags` or `environment`; refusals name it.
    ///
    /// # Errors
    /// An empty tool name, a glob that does not compile, a host or a program that is none, or more than 1,024
    /// rules; the first one.
    pub fn new(source: impl Into<String>, rules: Vec<Rule>) -> Result<Self, RuleError> {
        let source = source.into();
        let placed = rules
            .into_iter()
            .map(|rule| (rule, source.clone()))
            .collect();
        Self::placed(source, placed)
    }

    /// Checks rules that each have an origin, as in `user.toml:12`; refusals name it.
    ///
    /// # Errors
    /// Like [`Layer::new`].
    pub fn placed(
        source: impl Into<String>,
        rules: Vec<(Rule, String)>,
    ) -> Result<Self, RuleError> {
        let source = source.into();
        let error = |index, problem| RuleError {
            source_name: source.clone(),
            index,
            problem,
        };
        if rules.len() > MAX_RULES {
            return Err(error(
                MAX_RULES,
                format!("there are {} rules; the limit is {MAX_RULES}", rules.len()),
            ));
        }
        let mut checked = Vec::with_capacity(rules.len());
        for (index, (rule, source)) in rules.into_iter().enumerate() {
            if rule.tool.trim().is_empty() {
                return Err(error(
                    index,
                    "`tool` is empty; name a tool, or `*` for any".into(),
                ));
            }
            let scope = Scope::of(&rule).map_err(|problem| error(index, problem))?;
            checked.push(Placed {
                rule,
                source,
                scope,
            });
        }
        Ok(Self {
            rules: checked,
            tightens: false,
        })
    }

    /// Says that the layer comes after the rules of the user's configuration, and can tighten them.
    #[must_use]
    pub fn tightening(self) -> Self {
        Self {
            tightens: true,
            ..self
        }
    }

    /// Whether a rule of the layer is about the programs that commands of these tools run.
    pub(super) fn names_programs(&self, tools: [&str; 2]) -> bool {
        self.rules
            .iter()
            .any(|placed| placed.rule.is_about_tools(tools) && placed.rule.program.is_some())
    }

    /// The programs that the layer does not just allow these tools to run.
    pub(super) fn guarded_programs(&self, tools: [&str; 2]) -> impl Iterator<Item = &str> {
        let guards = move |placed: &&Placed| {
            placed.rule.is_about_tools(tools) && placed.rule.decision != RuleDecision::Allow
        };
        self.rules
            .iter()
            .filter(guards)
            .filter_map(|placed| placed.rule.program.as_deref())
    }

    /// The last rule that matches. For a file that a command names, rules about the tool `read` apply, too.
    pub(super) fn speaks(&self, tools: [&str; 2], read: &str, target: &Target) -> Option<&Placed> {
        let command = matches!(target, Target::Path { command: true, .. });
        let about =
            |rule: &Rule| rule.is_about_tools(tools) || (command && rule.is_about_tool(read));
        let matches =
            |Placed { rule, scope, .. }: &&Placed| about(rule) && scope.hits(rule.decision, target);
        self.rules.iter().rev().find(matches)
    }
}

impl Rule {
    /// Whether this rule, behind `other` in one file, may allow what `other` denies: of the rules of one file that match, the
    /// last one decides. Whether the patterns of two paths or hosts meet is not looked at: they may.
    #[must_use]
    pub fn may_override(&self, other: &Self) -> bool {
        let everything = other.path.is_none() && other.host.is_none() && other.program.is_none();
        let programs = self.program.as_deref().zip(other.program.as_deref());
        let same = |(new, old): (&str, &str)| {
            let old = base_name(old);
            base_name(new) == old || (other.subcommand.is_none() && starts_another(old))
        };
        let meet = everything
            || programs.is_some_and(same)
            || (self.path.is_some() && other.path.is_some())
            || (self.host.is_some() && other.host.is_some());
        other.decision == RuleDecision::Deny && meet
    }

    /// A rule about every call of a tool; set other fields to narrow it.
    #[must_use]
    pub fn new(tool: impl Into<String>, decision: RuleDecision) -> Self {
        Self {
            tool: tool.into(),
            path: None,
            host: None,
            program: None,
            subcommand: None,
            decision,
        }
    }

    pub(super) fn is_about_tool(&self, tool: &str) -> bool {
        self.tool == "*" || self.tool == tool
    }

    pub(super) fn is_about_tools(&self, tools: [&str; 2]) -> bool {
        tools.iter().any(|tool| self.is_about_tool(tool))
    }

    pub(super) fn is_about_everything(&self) -> bool {
        self.path.is_none() && self.host.is_none() && self.program.is_none()
    }

    /// The rule for the records of an approval; none if it does not allow.
    #[must_use]
    pub fn proposed(&self) -> Option<ProposedRule> {
        let Self {
            tool,
            path,
            host,
            program,
            subcommand,
            decision,
        } = self.clone();
        let decision = (decision == RuleDecision::Allow).then_some(ProposedDecision::Allow)?;
        Some(ProposedRule {
            tool,
            path,
            host,
            program,
            subcommand,
            decision,
        })
    }

    /// The command, path or host that the rule is about.
    #[must_use]
    pub fn about(&self) -> Option<String> {
        self.command()
            .or_else(|| self.path.clone())
            .or_else(|| self.host.as_ref().map(|host| format!("on {host}")))
    }

    /// The commands that the rule is about, in the short form: `git status,diff`.
    pub(super) fn command(&self) -> Option<String> {
        let subcommands = self
            .subcommand
            .as_ref()
            .map(|listed| format!(" {}", listed.join(",")))
            .unwrap_or_default();
        self.program
            .as_ref()
            .map(|program| format!("{program}{subcommands}"))
    }
}

impl From<&ProposedRule> for Rule {
    fn from(proposed: &ProposedRule) -> Self {
        let ProposedRule {
            tool,
            path,
            host,
            program,
            subcommand,
            decision: ProposedDecision::Allow,
        } = proposed.clone();
        Self {
            tool,
            path,
            host,
            program,
            subcommand,
            decision: RuleDecision::Allow,
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.decision.word(), self.tool)?;
        if let Some(command) = self.command() {
            return write!(f, " {command}");
        }
        let place = self.path.as_ref().or(self.host.as_ref());
        place.map_or(Ok(()), |place| write!(f, " on {place}"))
    }
}
