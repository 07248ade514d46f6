//! What the table and the rules decide about calls of a tool, before there is a call. Does not resolve paths.

use super::judge::{BUILT_IN, Policy, SandboxState};
use super::rule::{Placed, Rule, RuleDecision};
use super::table::{self, DefaultRule};
use authority::SandboxMode;
use llm_worker::ToolEffect;
use serde::Serialize;

/// A kind of action, as the default rules distinguish them. Part of an [`Expectation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    Reads,
    Writes,
    Hosts,
    /// Runs a command, or has effects that the call does not name.
    Runs,
    /// Changes something that no sandbox of this machine bounds.
    Remote,
    /// Changes the session's own state.
    Session,
    /// Names nothing and changes nothing.
    Nothing,
    /// Names a path that cannot be resolved.
    Lost,
}

/// The decision about one kind of action of a tool, with all rules that apply. Made by [`Policy::expect`] for `yoi
/// features explain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expectation {
    #[serde(rename = "matter")]
    pub action: ActionKind,
    pub what: &'static str,
    /// The rules that apply, outermost first. Of those without a path, host or program the last decides; the others
    /// decide about what they name.
    #[serde(rename = "said")]
    pub statements: Vec<RuleStatement>,
    /// The decision where no narrower rule matches.
    pub decision: RuleDecision,
}

/// A default rule or a written rule in an [`Expectation`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleStatement {
    /// `default`, or the rule's origin: a file and its line, a flag.
    pub source: String,
    pub text: String,
    pub decision: RuleDecision,
    /// The rule applies only to paths that match this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The rule applies only to hosts that match this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The rule applies only to commands that run this: `git status,diff`. With ask or deny also to opaque commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether the rule decides where no narrower one matches.
    pub decides: bool,
}

impl Policy {
    /// The decisions about calls of a tool, for each kind of action they may perform. For a call with several kinds the
    /// strictest decision applies.
    #[must_use]
    pub fn expect(&self, tool: &str, effect: ToolEffect, now: SandboxState) -> Vec<Expectation> {
        let read_only = now.mode == SandboxMode::ReadOnly;
        table::expected(effect, read_only)
            .into_iter()
            .map(|(action, row)| self.meet(tool, action, row, now))
            .collect()
    }

    fn meet(
        &self,
        tool: &str,
        action: ActionKind,
        row: &'static DefaultRule,
        now: SandboxState,
    ) -> Expectation {
        let by_row = row.stated(now.confined());
        let source = BUILT_IN.to_owned();
        let text = row.text.to_owned();
        let default_statement = RuleStatement {
            source,
            text,
            decision: by_row,
            path: None,
            host: None,
            program: None,
            decides: false,
        };
        let mut statements = vec![default_statement];
        let mut deciding = 0;
        let decision = self.in_order(by_row, |layer| {
            let meets = |placed: &&Placed| {
                placed.rule.is_about_tools(self.terms.ruled_as(tool))
                    && action.is_met_by(&placed.rule)
            };
            let rules: Vec<_> = layer.rules.iter().filter(meets).collect();
            // The last match decides: rules before one about everything have no effect.
            let last = rules
                .iter()
                .rposition(|placed| placed.rule.is_about_everything());
            if last.is_some() {
                deciding = statements.len();
            }
            statements.extend(
                rules
                    .iter()
                    .skip(last.unwrap_or(0))
                    .map(|placed| RuleStatement::by(placed)),
            );
            last.and_then(|last| rules.get(last))
                .map(|placed| placed.rule.decision)
        });
        if let Some(deciding) = statements.get_mut(deciding) {
            deciding.decides = true;
        }
        Expectation {
            action,
            what: row.text,
            statements,
            decision,
        }
    }
}

impl RuleStatement {
    fn by(Placed { rule, source, .. }: &Placed) -> Self {
        Self {
            source: source.clone(),
            text: rule.to_string(),
            decision: rule.decision,
            path: rule.path.clone(),
            host: rule.host.clone(),
            program: rule.command(),
            decides: false,
        }
    }
}

impl ActionKind {
    fn is_met_by(self, rule: &Rule) -> bool {
        match self {
            Self::Reads | Self::Writes => rule.host.is_none() && rule.program.is_none(),
            Self::Hosts => rule.path.is_none() && rule.program.is_none(),
            Self::Runs => rule.is_about_everything() || rule.program.is_some(),
            Self::Remote | Self::Session | Self::Nothing | Self::Lost => rule.is_about_everything(),
        }
    }
}
