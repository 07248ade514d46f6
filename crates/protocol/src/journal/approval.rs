//! Records of approvals: the question about a call, and its one answer. Do not depend on who may answer.

use super::Who;
use crate::declare::ForClients;
use crate::item::CallId;
use crate::tool::ToolEffect;
use schemars::JsonSchema;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// An approval's number, dense within a session from 1.
pub type ApprovalId = u64;

bodies! {
    /// A call waits for a person.
    ///
    /// Body of `approval_requested`. Committed with the answer that proposed the call, before
    /// anybody is asked.
    ApprovalRequested {
        /// Its number.
        approval: ApprovalId,
        call: CallId,
        tool: String,
        feature: String,
        effect: ToolEffect,
        /// As they will run: JSON, as text.
        // Sorted keys, defaults filled in.
        arguments: Arc<str>,
        /// An answer repeats it.
        arguments_digest: String,
        /// BLAKE3 of the tool's definition, hex: an answer about another definition counts for nothing.
        - definition_digest: String,
        /// BLAKE3 of the sandbox and of the files that the call names, with their links followed, hex: an answer about others
        /// counts for nothing.
        - resources_digest: String,
        /// What is asked, a line for each rule and gate that asks.
        question: String,
        // The rule that decided, and where it is written.
        rule: String,
        // The gates that ask.
        gates =: Vec<AskingGate>,
        /// What its command line runs.
        // For people; none if it has no command line.
        command ?: AskedCommand,
        // The sandbox of the call: `read-only`, `workspace-write`, `workspace-write, with the network` or `off`.
        sandbox: String,
        /// The rules that would allow such calls without a question.
        rules =: Vec<ProposedRule>,
        /// Whether these rules also do in the user's configuration.
        configurable =: bool,
        /// When the call is denied, if nobody has answered.
        // By the host; none: it waits without an end.
        expires ?: ApprovalExpiry,
    }
    /// The parts of a command line, as they were judged; part of [`ApprovalRequested`].
    AskedCommand: Default Eq {
        /// The argument that has the command line.
        field: String,
        // Those because of which a rule asks are always among them.
        parts: Vec<CommandPart>,
        /// How many more there are.
        more =: u64,
    }
    /// A simple command; part of [`AskedCommand`].
    CommandPart: Eq {
        /// In one line, cut if it is long.
        text: String,
        /// Where its program stands in the argument, if that is certain: its first byte, and the byte behind it.
        at ?: [u64; 2],
        /// Whether a rule asks because of it.
        asks =: bool,
    }
    /// An approval has its answer.
    ///
    /// Body of `approval_resolved`: the answer that counts. An allowed call has its `tool_started` in the same batch, another
    /// one its `tool_finished`.
    ApprovalResolved {
        approval: ApprovalId,
        /// `allow`, `deny` or `void`.
        decision: ApprovalDecision,
        /// `pod` or `rule`; `once` if absent.
        scope =: ApprovalScope,
        // As in the question.
        arguments_digest: String,
        // The words of a person who denied, that nobody answered in time, or why the approval is void.
        reason ?: String,
        // Who answered; none if the host did.
        by ?: Who,
    }
    /// Rules that were allowed for the pod were taken back.
    ///
    /// Body of `rules_forgotten`: they count no more.
    RulesForgotten {
        // Those that were allowed before; others change nothing.
        rules: Vec<ProposedRule>,
        // Who took them back.
        by ?: Who,
    }
}

plain_bodies! {
    /// The end of the time for an answer; part of [`ApprovalRequested`].
    ApprovalExpiry: Copy {
        /// Milliseconds since 1970, by the wall clock.
        at_ms: u64,
        /// The whole time, in milliseconds.
        // The call never waits longer in one process, whatever the clock shows.
        after_ms: u64,
    }
    /// A gate that asks; part of [`ApprovalRequested`].
    AskingGate {
        hook: String,
        feature: String,
    }
}

host_parts! {
    /// A rule that would allow such calls, with the fields of a rule in the configuration. One with a field or a decision that
    /// this program does not know is not read: without it, the rule would allow more.
    #[serde(deny_unknown_fields)]
    ProposedRule: Eq {
        tool: String,
        path ?: String,
        host ?: String,
        program ?: String,
        subcommand ?: Vec<String>,
        decision: ProposedDecision,
    }
}

words! {
    /// What a proposed rule decides.
    ProposedDecision {
        Allow = "allow",
    }
    /// The decision about an approval.
    ApprovalDecision {
        Allow = "allow",
        Deny = "deny",
        /// The call did not run, whatever a person answered: it changed, a rule refuses it now, or its turn was cancelled.
        Void = "void",
    }
    /// What an allowance is about.
    #[schemars(rename = "AllowScope")]
    ApprovalScope: Default JsonSchema {
        /// This call.
        #[default]
        Once = "once",
        /// Also later calls of this pod that the rules of the question match.
        Pod = "pod",
        /// As `pod`; the client also writes the rules into the configuration of its user. Offered if the question says
        /// `configurable`.
        Rule = "rule",
    }
}

/// The tool, and the commands, the path or the host that the rule is about: `Bash git status,diff`.
impl fmt::Display for ProposedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        match (&self.program, &self.path, &self.host) {
            (Some(program), _, _) => write!(f, " {program}")?,
            (None, Some(path), _) => write!(f, " {path}")?,
            (None, None, Some(host)) => write!(f, " on {host}")?,
            (None, None, None) => {}
        }
        match (&self.program, &self.subcommand) {
            (Some(_), Some(listed)) => write!(f, " {}", listed.join(",")),
            (_, _) => Ok(()),
        }
    }
}

impl ForClients for ProposedRule {
    type Type = Value;
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
