//! What the table and the rules decide about calls of a tool, before there is a call. It knows no path.

use super::judge::{BUILT_IN, Policy, SandboxState};
use super::rule::{Placed, Rule, RuleDecision};
use super::table::{self, DefaultRule};
use authority::SandboxMode;
use llm_worker::ToolEffect;
use serde::Serialize;

/// A kind of thing that a call may do, as rows part them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    Reads,
    Writes,
    Hosts,
    /// Runs a command, or does what it does not name.
    Runs,
    /// Changes what the session keeps of itself.
    Session,
    /// Names nothing and changes nothing.
    Nothing,
    /// Names a path that leads nowhere.
    Lost,
}

/// What is said of calls that do one kind of thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expectation {
    #[serde(rename = "matter")]
    pub action: ActionKind,
    pub what: &'static str,
    /// Who says what, outermost first. The last that is about everything decides; the others decide about what they name.
    #[serde(rename = "said")]
    pub statements: Vec<RuleStatement>,
    /// What is decided where no rule about less matches.
    pub decision: RuleDecision,
}

/// A row or rule that speaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleStatement {
    /// `default`, or where the rule stands: a file and its line, a flag.
    pub source: String,
    pub text: String,
    pub decision: RuleDecision,
    /// Only about paths that match this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Only about hosts that match this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Only about commands that run this: `git status,diff`. With ask or deny also about what is opaque.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether it decides where no rule about less matches.
    pub decides: bool,
}

impl Policy {
    /// What calls of a tool meet, for each kind of thing they may do. A call that does several is as free as the
    /// least free of them.
    #[must_use]
    pub fn expect(&self, tool: &str, effect: ToolEffect, now: SandboxState) -> Vec<Expectation> {
        let read_only = now.mode == SandboxMode::ReadOnly;
        table::expected(effect, read_only).into_iter().map(|(action, row)| self.meet(tool, action, row, now)).collect()
    }

    fn meet(&self, tool: &str, action: ActionKind, row: &'static DefaultRule, now: SandboxState) -> Expectation {
        let by_row = row.decision(now.confined());
        let (source, text) = (BUILT_IN.to_owned(), row.text.to_owned());
        let default_statement =
            RuleStatement { source, text, decision: by_row, path: None, host: None, program: None, decides: false };
        let (mut statements, mut deciding) = (vec![default_statement], 0);
        let decision = self.in_order(by_row, |layer| {
            let meets = |placed: &&Placed| placed.rule.is_about_tool(tool) && action.is_met_by(&placed.rule);
            let rules: Vec<_> = layer.rules.iter().filter(meets).collect();
            // The last that matches speaks: what stands before one about everything never does.
            let last = rules.iter().rposition(|placed| placed.rule.is_about_everything());
            if last.is_some() {
                deciding = statements.len();
            }
            statements.extend(rules.iter().skip(last.unwrap_or(0)).map(|placed| RuleStatement::by(placed)));
            last.and_then(|last| rules.get(last)).map(|placed| placed.rule.decision)
        });
        if let Some(deciding) = statements.get_mut(deciding) {
            deciding.decides = true;
        }
        Expectation { action, what: row.text, statements, decision }
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
            Self::Session | Self::Nothing | Self::Lost => rule.is_about_everything(),
        }
    }
}
