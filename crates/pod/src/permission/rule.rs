//! Rules as a person writes them, checked when they are read.

use super::glob::PathGlob;
use super::place::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// What it says.
    pub decision: RuleDecision,
}

/// What a rule or row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    /// Run it.
    Allow,
    /// Let a person decide.
    Ask,
    /// Refuse it.
    Deny,
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: permissions.rules[{index}]: {problem}")]
pub struct RuleError {
    /// The layer.
    pub source_name: String,
    /// Which rule, from 0.
    pub index: usize,
    /// What is wrong and what was expected.
    pub problem: String,
}

impl RuleError {
    /// What the caller does next: change the file.
    #[must_use]
    pub const fn kind(&self) -> llm_worker::ErrorKind {
        llm_worker::ErrorKind::FixInput
    }
}

/// The rules of one file, or of the flags.
#[derive(Clone, Debug)]
pub struct Layer {
    pub(super) source: String,
    pub(super) rules: Vec<(Rule, Option<PathGlob>)>,
}

impl Layer {
    /// Reads a layer's rules. `source` is the file, `flags` or `environment`: what a refusal names.
    ///
    /// # Errors
    /// An empty tool name, a glob that does not compile, or more than 1,024 rules; the first one.
    pub fn new(source: impl Into<String>, rules: Vec<Rule>) -> Result<Self, RuleError> {
        let source = source.into();
        let error = |index, problem| RuleError { source_name: source.clone(), index, problem };
        if rules.len() > MAX_RULES {
            return Err(error(MAX_RULES, format!("{} rules; at most {MAX_RULES} are read", rules.len())));
        }
        let mut checked = Vec::with_capacity(rules.len());
        for (index, rule) in rules.into_iter().enumerate() {
            if rule.tool.trim().is_empty() {
                return Err(error(index, "`tool` is empty; name a tool, or `*` for any".into()));
            }
            let glob = rule.path.as_deref().map(PathGlob::new).transpose().map_err(|problem| error(index, problem))?;
            checked.push((rule, glob));
        }
        Ok(Self { source, rules: checked })
    }

    /// The last rule that matches.
    pub(super) fn speaks(&self, tool: &str, target: &Target) -> Option<&Rule> {
        let matches = |(rule, glob): &&(Rule, Option<PathGlob>)| {
            (rule.tool == "*" || rule.tool == tool) && glob.as_ref().is_none_or(|glob| glob.hits(rule.decision, target))
        };
        self.rules.iter().rev().find(matches).map(|(rule, _)| rule)
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decision = match self.decision {
            RuleDecision::Allow => "allow",
            RuleDecision::Ask => "ask",
            RuleDecision::Deny => "deny",
        };
        write!(f, "{decision} {}", self.tool)?;
        self.path.as_ref().map_or(Ok(()), |path| write!(f, " on {path}"))
    }
}
