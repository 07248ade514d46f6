//! The approvals of a session: those that wait for a person, the newest answers, and the rules that were allowed for the
//! rest of the session. Pure: the fold changes it.

use crate::record::{
    ApprovalDecision, ApprovalId, ApprovalRequested, ApprovalResolved, ApprovalScope, ProposedRule,
    RulesForgotten,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Approvals that may wait at a time.
pub const MAX_OPEN_APPROVALS: usize = 32;

/// Answers that are remembered: another client that answers one of these gets the recorded answer.
pub const MAX_RESOLVED: usize = 256;

/// Rules that were allowed for the rest of the session.
pub const MAX_SESSION_RULES: usize = 256;

/// The approvals of a session; part of the state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    /// The highest number given.
    pub newest: ApprovalId,
    /// Those that wait, by number.
    pub open: BTreeMap<ApprovalId, Arc<ApprovalRequested>>,
    /// The newest answers, newest last.
    pub resolved: VecDeque<ApprovalResolved>,
    /// Rules that allow calls of this session, oldest first.
    pub rules: Vec<AllowedRule>,
    /// The highest number of such a rule.
    pub rule_numbers: u64,
}

/// A rule that a person allowed for the rest of the session; its scope is `Rule` if it was to be written into the user's
/// configuration.
pub type AllowedRule = protocol::method::PodRule<ProposedRule>;

impl Approvals {
    /// The recorded answer, if it is among the newest [`MAX_RESOLVED`].
    #[must_use]
    pub fn answer(&self, approval: ApprovalId) -> Option<&ApprovalResolved> {
        self.resolved
            .iter()
            .rev()
            .find(|resolved| resolved.approval == approval)
    }

    pub(super) fn ask(&mut self, requested: &ApprovalRequested) {
        self.newest = requested.approval;
        self.open
            .insert(requested.approval, Arc::new(requested.clone()));
    }

    /// Takes an answer; returns whether its approval waits and is about these arguments.
    pub(super) fn resolve(&mut self, resolved: &ApprovalResolved) -> bool {
        let fits =
            |open: &Arc<ApprovalRequested>| open.arguments_digest == resolved.arguments_digest;
        if !self.open.get(&resolved.approval).is_some_and(fits) {
            return false;
        }
        let rules = self
            .open
            .remove(&resolved.approval)
            .map(|open| open.rules.clone())
            .unwrap_or_default();
        if resolved.decision == ApprovalDecision::Allow && resolved.scope != ApprovalScope::Once {
            rules
                .into_iter()
                .for_each(|rule| self.allow(rule, resolved));
        }
        self.remember(resolved.clone());
        true
    }

    fn allow(
        &mut self,
        rule: ProposedRule,
        ApprovalResolved {
            approval, scope, ..
        }: &ApprovalResolved,
    ) {
        if let Some(known) = self.rules.iter_mut().find(|known| known.rule == rule) {
            if *scope == ApprovalScope::Rule {
                (known.approval, known.scope) = (*approval, *scope);
            }
            return;
        }
        self.rule_numbers += 1;
        self.rules.push(AllowedRule {
            number: self.rule_numbers,
            approval: *approval,
            scope: *scope,
            rule,
        });
        self.rules
            .drain(..self.rules.len().saturating_sub(MAX_SESSION_RULES));
    }

    /// Takes rules back; those that are not there change nothing.
    pub(super) fn forget(&mut self, forgotten: &RulesForgotten) {
        self.rules
            .retain(|known| !forgotten.rules.contains(&known.rule));
    }

    /// The call of an approval got its result without an answer.
    pub(super) fn withdraw(&mut self, approval: ApprovalId, reason: &str) {
        if let Some(open) = self.open.remove(&approval) {
            self.remember(ApprovalResolved {
                approval,
                decision: ApprovalDecision::Void,
                scope: ApprovalScope::Once,
                arguments_digest: open.arguments_digest.clone(),
                reason: Some(reason.to_owned()),
                by: None,
            });
        }
    }

    fn remember(&mut self, resolved: ApprovalResolved) {
        self.resolved.push_back(resolved);
        self.resolved
            .drain(..self.resolved.len().saturating_sub(MAX_RESOLVED));
    }
}
