//! Records of approvals: the question about a call, and its one answer. Do not depend on who may answer.

use super::Who;
use llm_worker::{CallId, ToolEffect};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An approval's number, dense within a session from 1.
pub type ApprovalId = u64;

/// Body of `approval_requested`: a call waits for a person. Committed with the answer that proposed the call, before
/// anybody is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    pub approval: ApprovalId,
    pub call: CallId,
    pub tool: String,
    pub feature: String,
    pub effect: ToolEffect,
    /// The arguments as they will run: sorted keys, defaults filled in.
    pub arguments: Arc<str>,
    /// BLAKE3 of `arguments`, hex. An answer repeats it.
    pub arguments_digest: String,
    /// BLAKE3 of the tool's definition, hex: an answer about another definition counts for nothing.
    pub definition_digest: String,
    /// BLAKE3 of the sandbox and of the files that the call names, with their links followed, hex: an answer about others
    /// counts for nothing.
    pub resources_digest: String,
    /// What is asked, for people: a line for each rule and gate that asks.
    pub question: String,
    /// The rule that decided, and where it is written.
    pub rule: String,
    /// The gates that ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<AskingGate>,
    /// What its command line runs, for people; none if it has no command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<AskedCommand>,
    /// The sandbox of the call: `read-only`, `workspace-write`, `workspace-write, with the network` or `off`.
    pub sandbox: String,
    /// The rules that would allow such calls without a question; none if no rule can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ProposedRule>,
    /// Whether these rules would also allow the call behind the rules of the user's configuration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub configurable: bool,
    /// When the host denies the call, if nobody has answered; none: it waits without an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<ApprovalExpiry>,
}

/// The parts of a command line, as they were judged; a part of [`ApprovalRequested`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedCommand {
    /// The argument that has the command line.
    pub field: String,
    /// Those because of which a rule asks are always among them.
    pub parts: Vec<CommandPart>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// A simple command; a part of [`AskedCommand`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPart {
    /// In one line, cut if it is long.
    pub text: String,
    /// Where its program stands in the argument, if that is certain: its first byte, and the byte behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<[u64; 2]>,
    /// Whether a rule asks because of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
}

fn is_zero(more: &u64) -> bool {
    *more == 0
}

/// The end of the time for an answer; a part of [`ApprovalRequested`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalExpiry {
    /// By the wall clock, in milliseconds since 1970.
    pub at_ms: u64,
    /// The whole time, in milliseconds: the call never waits longer in one process, whatever the clock shows.
    pub after_ms: u64,
}

/// A rule that would allow such calls, with the fields of a rule in the configuration. One with a field or a decision that
/// this program does not know is not read: without it, the rule would allow more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposedRule {
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subcommand: Option<Vec<String>>,
    pub decision: ProposedDecision,
}

/// What a proposed rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposedDecision {
    Allow,
}

/// A gate that asks a person about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskingGate {
    pub hook: String,
    pub feature: String,
}

/// The decision about an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    Allow,
    Deny,
    /// The call did not run, whatever a person answered: it changed, a rule refuses it now, or its turn was cancelled.
    Void,
}

/// What an allowance is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    #[default]
    Once,
    /// Also later calls of this pod that the approval's rules match.
    Pod,
    /// As `Pod`; the client also writes the rules into the user's configuration.
    Rule,
}

impl ApprovalScope {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde asks for a reference"
    )]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Body of `approval_resolved`: the answer that counts. An allowed call has its `tool_started` in the same batch, another
/// one its `tool_finished`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalResolved {
    pub approval: ApprovalId,
    pub decision: ApprovalDecision,
    #[serde(default, skip_serializing_if = "ApprovalScope::is_default")]
    pub scope: ApprovalScope,
    /// As in the question.
    pub arguments_digest: String,
    /// The words of a person who denied, that nobody answered in time, or why the approval is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who answered; none if the host did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

/// Body of `rules_forgotten`: rules that were allowed for this pod count no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RulesForgotten {
    /// Those that were allowed before; others change nothing.
    pub rules: Vec<ProposedRule>,
    /// Who took them back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposed_rule_that_is_not_understood_whole_is_refused() {
        let read = |text: &str| serde_json::from_str::<ProposedRule>(text);
        let rule = read(r#"{"tool":"Bash","program":"git","decision":"allow"}"#).unwrap();
        assert_eq!(
            serde_json::to_string(&rule).unwrap(),
            r#"{"tool":"Bash","program":"git","decision":"allow"}"#
        );
        assert!(read(r#"{"tool":"Bash","program":"git","decision":"deny"}"#).is_err());
        assert!(
            read(r#"{"tool":"Bash","program":"git","decision":"allow","only_on":"monday"}"#)
                .is_err()
        );
    }
}
