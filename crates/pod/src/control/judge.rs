//! May this call run? Its arguments are parsed once, here, and permission judges what was parsed; exactly that
//! parse is what runs later.

use crate::feature::{RegisteredTool, ToolRegistry};
use crate::permission::{CallFacts, Circumstances, Policy, RuleRef, Verdict as Allowed};
use crate::session::commit::Judgement;
use crate::session::record::ToolStarted;
use authority::Workspace;
use llm_worker::effect::{CallView, Verdict};
use llm_worker::tool::Prepared;
use std::sync::Arc;
use std::time::Duration;

/// What calls are judged by.
#[derive(Clone, Debug)]
pub struct Permission {
    /// The table and the rules.
    pub policy: Policy,
    /// Where paths lead.
    pub workspace: Workspace,
    /// The sandbox in force.
    pub now: Circumstances,
}

/// How long parsing and judging one call may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// A judged call; `ready` holds what runs if it is allowed.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) judgement: Judgement,
    pub(crate) ready: Option<Ready>,
}

/// An allowed call: the parse that was judged, and the tool's own deadline.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    pub(crate) deadline: Duration,
}

impl Judged {
    /// A call that cannot run as it stands; `rule` names the check that found out.
    pub(crate) fn invalid(rule: &str, problem: String) -> Self {
        Self::not_run(rule, Verdict::Invalid { problem })
    }

    fn not_run(rule: &str, verdict: Verdict) -> Self {
        Self { verdict, judgement: Judgement { rule: rule.to_owned(), start: None }, ready: None }
    }
}

/// Judges one call. Reads directory entries to resolve paths, so it runs on a callback thread.
pub(crate) fn judge(call: &CallView, tools: &ToolRegistry, permission: &Permission, about: &About) -> Judged {
    let Some(registered) = tools.get(&call.name) else {
        let names: Vec<&str> = tools.iter().map(|known| known.definition.name.as_str()).collect();
        return Judged::invalid(
            "host:known-tool",
            format!("there is no tool called `{}`; there are: {}", call.name, names.join(", ")),
        );
    };
    let prepared = match registered.tool.prepare(&call.arguments) {
        Ok(prepared) => prepared,
        Err(error) => return Judged::invalid("host:arguments", error.to_string()),
    };
    let facts = CallFacts {
        tool: &call.name,
        effect: registered.definition.effect,
        touches: &prepared.touches,
        feature: &registered.feature,
    };
    let decision = permission.policy.judge(&facts, &permission.workspace, permission.now);
    let rule = rule_text(&decision.rule);
    match decision.verdict {
        Allowed::Allow => Judged {
            verdict: Verdict::Allow,
            judgement: Judgement { rule, start: Some(start_record(call, registered, &prepared, about)) },
            ready: Some(Ready { deadline: registered.deadline, prepared }),
        },
        Allowed::Deny => Judged::not_run(&rule, Verdict::Refuse { reason: decision.reason }),
    }
}

fn rule_text(rule: &RuleRef) -> String {
    format!("{} ({})", rule.text, rule.source)
}

/// What a start record says besides the call itself.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The generation in force.
    pub(crate) generation: u64,
    /// `<session>/<epoch>`, the front of every idempotency key.
    pub(crate) key: Arc<str>,
}

fn start_record(call: &CallView, registered: &RegisteredTool, prepared: &Prepared, about: &About) -> ToolStarted {
    ToolStarted {
        call: call.id,
        name: call.name.clone(),
        feature: registered.feature.to_string(),
        generation: about.generation,
        arguments_digest: blake3::hash(prepared.canonical.as_bytes()).to_hex().to_string(),
        arguments: prepared.canonical.clone(),
        effect: registered.definition.effect,
        idempotency_key: format!("{}/{}", about.key, call.id),
    }
}
