//! Decides whether a call may run: enrichers and transforms change its arguments, permission judges what was parsed last, and
//! gates have the last word. Exactly that parse runs later.

use super::asked::{self, Asks, definition_digest, sandbox_text};
use super::authorized::{Authorized, Landings};
use super::enrich::enrich;
use super::named::named;
use super::order::Claims;
use super::parse::{DEADLINE, Unfit, facts, given_up_on, prepare, view};
use super::verdict::{Authorization, MAX_PROBLEM};
use crate::control::core::{Core, Permission};
use crate::control::gates;
use crate::feature::{FeatureRegistry, RegisteredTool, sanitize_lines};
use crate::foreign::Callbacks;
use crate::hook::{GateOutcome, HookPoint, PreToolCall, ToolArguments, ToolCallView};
use crate::permission::{
    CallFacts, JudgedResources, Person, PolicyDecision, Proposal, Rule, RuleRef,
};
use crate::record::{ApprovalRequested, Decision, ToolStarted, TransformNote};
use crate::session::approvals::AllowedRule;
use crate::session::fold::GoingOn;
use llm_worker::effect::{CallVerdict, CallView};
use llm_worker::tool::Prepared;
use session_store::Clock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

#[cfg(test)]
mod tests;

/// Calls that may be judged at the same time; far fewer than there are threads.
const SLOTS: usize = 8;

/// Judges the calls of one turn, under one generation of the surface. Clones share its slots.
#[derive(Clone)]
pub(crate) struct Authorizer {
    pub(super) registry: Arc<FeatureRegistry>,
    pub(super) permission: Arc<Permission>,
    pub(super) callbacks: Callbacks,
    generation: u64,
    /// What the turn goes on with.
    going_on: Option<GoingOn>,
    /// The number of the turn.
    turn: u64,
    /// `<session>/<epoch>`, the prefix of every idempotency key.
    key: Arc<str>,
    clock: Clock,
    /// A permit for each call that is being authorized: parsing runs code of tools, which may hang.
    slots: Arc<Semaphore>,
    /// Calls that pass hooks are judged one after another, in their order: a gate may count them.
    in_order: Arc<Mutex<()>>,
}

impl Authorizer {
    pub(crate) fn new(core: &Core, generation: u64) -> Self {
        Self {
            registry: core.registry.clone(),
            permission: core.permission.clone(),
            callbacks: core.callbacks.clone(),
            generation,
            going_on: core.state.going_on,
            turn: core.state.turns,
            key: core.store.key.clone(),
            clock: core.store.clock.clone(),
            slots: Arc::new(Semaphore::new(SLOTS)),
            in_order: Arc::default(),
        }
    }

    /// Judges one call: enrichers and transforms, then permission, then gates. Each sees the result of the one before, and a gate
    /// never sees a call that permission refuses.
    pub(crate) async fn judge(self, call: CallView) -> Authorization {
        // The semaphore is never closed.
        let _slot = self.slots.acquire().await.ok();
        let written = call.name.clone();
        let call = match named(&self.registry, call) {
            Ok(call) => call,
            Err(unfit) => return *unfit,
        };
        let named = (call.name != written).then(|| call.name.clone());
        let judged = self.judge_named(call).await;
        Authorization { named, ..judged }
    }

    async fn judge_named(&self, call: CallView) -> Authorization {
        let hooks = self.registry.hooks();
        let (call, mut transforms) = enrich(&self.registry, &self.callbacks, call).await;
        let rewritten = hooks.any::<ToolArguments>(&call.name);
        let gated = hooks.any::<PreToolCall>("");
        if !rewritten && !gated {
            let judged = self.permit(call).await;
            return self.question(Authorization {
                transforms,
                ..judged
            });
        }
        let order = self.in_order.lock().await;
        // Meanwhile an earlier call may have disabled the feature.
        if let Some(barred) = self.barred(&call) {
            return barred;
        }
        let call = if rewritten {
            let (call, notes) = self.rewrite(call).await;
            transforms.extend(notes);
            call
        } else {
            call
        };
        let judged = self.permit(call).await;
        let mut judged = Authorization {
            transforms,
            ..judged
        };
        if gated {
            judged = self.ask(judged).await;
        }
        drop(order);
        self.question(judged)
    }

    /// The refusal of a call whose feature is disabled or whose grant is revoked. Checked each time before code of the
    /// tool runs, which would block another thread.
    fn barred(&self, call: &CallView) -> Option<Authorization> {
        let tool = self.registry.tools().get(&call.name)?;
        if self.callbacks.is_disabled(&tool.feature) {
            let problem = given_up_on(&call.name, &tool.feature);
            return Some(Authorization::invalid(
                "host:stuck-feature",
                &problem,
                self.registry.redactor(),
            ));
        }
        tool.door.is_shut().then(|| Authorization::revoked(tool))
    }

    /// The decision of permission, on a callback thread.
    async fn permit(&self, call: CallView) -> Authorization {
        if let Some(barred) = self.barred(&call) {
            return barred;
        }
        let judge = self.clone();
        let work = async move { judge.by_the_host(&call) };
        self.callbacks
            .run(DEADLINE, CancellationToken::new(), work)
            .await
            .unwrap_or_else(|lost| {
                let problem = format!("its arguments could not be judged: {lost}");
                Authorization::invalid("host:judge", &problem, self.registry.redactor())
            })
    }

    /// Calls the transforms of arguments that parse; the model must correct those that do not.
    async fn rewrite(&self, call: CallView) -> (CallView, Vec<TransformNote>) {
        let Some(registered) = self.registry.tools().get(&call.name).cloned() else {
            return (call, Vec::new());
        };
        let first = call.clone();
        let tool = registered.clone();
        let on = self.going_on;
        let turn = self.turn;
        let work = async move {
            prepare(&tool, &first.arguments)
                .ok()
                .map(|parsed| view(first.id, &tool, &parsed, on, turn))
        };
        let Ok(Some(input)) = self
            .callbacks
            .run(DEADLINE, CancellationToken::new(), work)
            .await
        else {
            return (call, Vec::new());
        };
        let recheck = Arc::new(move |changed: ToolCallView| {
            let prepared = prepare(&registered, &changed.arguments)
                .map_err(|unfit| unfit.said(&registered))?;
            Ok(ToolCallView {
                arguments: prepared.canonical,
                touches: prepared.touches,
                ..changed
            })
        });
        let hooks = self.registry.hooks();
        let (last, done) = hooks
            .transform::<ToolArguments>(&self.callbacks, &call.name, input, recheck)
            .await;
        let replaced = done.iter().any(|note| note.after.is_ok());
        let call = if replaced {
            CallView {
                arguments: last.arguments.to_string(),
                ..call
            }
        } else {
            call
        };
        (call, gates::notes(done))
    }

    /// Calls the gates for a call that permission allows.
    async fn ask(&self, judged: Authorization) -> Authorization {
        let CallVerdict::Allow(call) = &judged.verdict else {
            return judged;
        };
        let view = call.view.clone();
        let outcome = self.gates(&view).await;
        let (outcome, by_gates) = asked::of_gates(outcome, self.permission.person);
        let mut said = gates::verdicts(HookPoint::PreToolCall, Some(view.call), &outcome);
        let verdict = match outcome.decision {
            Decision::Allow | Decision::Ask { .. } => {
                let asks = Asks {
                    by_gates,
                    ..judged.asks
                };
                return Authorization {
                    allowed: said,
                    asks,
                    ..judged
                };
            }
            Decision::Refuse { reason } | Decision::Invalid { reason } => {
                CallVerdict::Refuse { reason }
            }
            Decision::Abort { reason } | Decision::Pause { reason } => {
                CallVerdict::Abort { reason }
            }
            // No gate of this point can say so.
            Decision::Retry { .. } | Decision::Again { .. } => CallVerdict::Refuse {
                reason: "a gate gave an answer that this point does not allow".to_owned(),
            },
        };
        let (rule, gate) = said
            .pop()
            .map(|last| (last.rule, last.gate))
            .unwrap_or_default();
        Authorization {
            verdict,
            rule,
            gate,
            allowed: said,
            transforms: judged.transforms,
            asks: Asks::default(),
            named: None,
        }
    }

    /// What the gates of calls decide. Who asks them holds the order.
    async fn gates(&self, view: &ToolCallView) -> GateOutcome {
        let hooks = self.registry.hooks();
        hooks
            .decide::<PreToolCall>(&self.callbacks, || view.clone())
            .await
    }

    /// Judges one call by the default table and the rules. Reads directory entries to resolve paths, so it runs on a
    /// callback thread.
    fn by_the_host(&self, call: &CallView) -> Authorization {
        let tools = self.registry.tools();
        let redactor = self.registry.redactor();
        let Some(registered) = tools.get(&call.name) else {
            let names: Vec<&str> = tools
                .offered()
                .map(|known| known.definition.name.as_str())
                .collect();
            let problem = format!(
                "there is no tool called `{}`; the tools are: {}",
                call.name,
                names.join(", ")
            );
            return Authorization::invalid("host:known-tool", &problem, redactor);
        };
        let prepared = match prepare(registered, &call.arguments) {
            Ok(prepared) => prepared,
            Err(Unfit::Revoked) => return Authorization::revoked(registered),
            Err(Unfit::Problem(problem)) => {
                return Authorization::invalid("host:arguments", &problem, redactor);
            }
        };
        let facts = facts(registered, &prepared);
        let Permission {
            policy,
            workspace,
            sandbox,
            person,
        } = &*self.permission;
        let (judged, landings) = self.judged(&facts, *person);
        let RuleRef { text, source, .. } = &judged.rule;
        let said = || sanitize_lines(judged.decision.reason(), MAX_PROBLEM, redactor);
        let mut asks = Asks::default();
        if judged.decision.asks() {
            asks.by_rule = Some(said());
            asks.proposal = policy.proposed(&facts, workspace, *sandbox);
        }
        let may_run = judged.decision.allows() || judged.decision.asks();
        let gate_may_ask = *person == Person::Later && self.registry.hooks().any::<PreToolCall>("");
        if judged.decision.asks() || may_run && gate_may_ask {
            asks.resources_digest.clone_from(&judged.resources.digest);
            asks.command = policy.asked_command(&facts, &prepared.canonical, workspace, *sandbox);
        }
        let verdict = if may_run {
            asks.claims = Some(Claims::of(facts.effect, facts.touches, workspace));
            CallVerdict::Allow(self.allowed(call, registered, prepared, landings))
        } else {
            CallVerdict::Refuse { reason: said() }
        };
        Authorization {
            asks,
            ..Authorization::by(format!("{text} ({source})"), verdict)
        }
    }

    /// What permission decides about a call, and where it may write, as the files are now.
    fn judged(&self, facts: &CallFacts<'_>, person: Person) -> (PolicyDecision, Landings) {
        let since = Duration::from_micros((self.clock)());
        let Permission {
            policy,
            workspace,
            sandbox,
            ..
        } = &*self.permission;
        let mut judged = policy.judge_with(facts, workspace, *sandbox, person);
        let landings = std::mem::take(&mut judged.resources.landings);
        (judged, Landings::new(landings, since))
    }

    fn allowed(
        &self,
        call: &CallView,
        tool: &RegisteredTool,
        prepared: Prepared,
        landings: Landings,
    ) -> Box<Authorized> {
        let record = ToolStarted {
            call: call.id,
            name: call.name.clone(),
            feature: tool.feature.to_string(),
            generation: self.generation,
            arguments_digest: blake3::hash(prepared.canonical.as_bytes())
                .to_hex()
                .to_string(),
            arguments: prepared.canonical.clone(),
            effect: tool.definition.effect,
            idempotency_key: format!("{}/{}", self.key, call.id),
            escalation: self.permission.sandbox.escalation(&prepared.touches),
            hosts: self.permission.sandbox.hosts(&prepared.touches),
        };
        Box::new(Authorized {
            record,
            view: Arc::new(view(call.id, tool, &prepared, self.going_on, self.turn)),
            prepared,
            deadline: tool.deadline,
            door: tool.door.clone(),
            landings,
        })
    }

    /// A call that may run waits, if a person is to be asked about it.
    fn question(&self, judged: Authorization) -> Authorization {
        if judged.asks.by_rule.is_none() && judged.asks.by_gates.is_empty() {
            return judged;
        }
        let CallVerdict::Allow(call) = &judged.verdict else {
            return judged;
        };
        let asks = &judged.asks;
        let Some(tool) = self.registry.tools().get(&call.record.name) else {
            return judged;
        };
        let redactor = self.registry.redactor();
        let question = sanitize_lines(&asks.question(), MAX_PROBLEM, redactor);
        // A rule never overrides a gate.
        let proposal = if asks.by_gates.is_empty() {
            asks.proposal.clone()
        } else {
            Proposal::default()
        };
        let requested = ApprovalRequested {
            // Given with its batch.
            approval: 0,
            call: call.record.call,
            tool: call.record.name.clone(),
            feature: call.record.feature.clone(),
            effect: call.record.effect,
            arguments: call.record.arguments.clone(),
            arguments_digest: call.record.arguments_digest.clone(),
            definition_digest: definition_digest(tool),
            resources_digest: asks.resources_digest.clone(),
            question,
            rule: judged.rule.clone(),
            gates: asks
                .by_gates
                .iter()
                .map(|asked| asked.gate.clone())
                .collect(),
            command: asks.command.clone(),
            sandbox: sandbox_text(self.permission.sandbox.mode, &call.record).to_owned(),
            rules: proposal.rules.iter().filter_map(Rule::proposed).collect(),
            configurable: proposal.configurable,
            expires: asks.expires(&self.clock),
        };
        Authorization {
            verdict: CallVerdict::Ask(Box::new(requested)),
            ..judged
        }
    }

    /// An authorizer that also goes by these rules, which a person allowed for the session.
    pub(crate) fn with_rules(&self, rules: &[AllowedRule]) -> Self {
        if rules.is_empty() {
            return self.clone();
        }
        let rules: Vec<_> = rules
            .iter()
            .map(|allowed| Rule::from(&allowed.rule))
            .collect();
        let mut permission = (*self.permission).clone();
        permission.policy = permission.policy.with(&rules);
        self.under(Arc::new(permission))
    }

    /// This authorizer for calls of this turn, which this input leads to.
    pub(crate) fn on(self, going_on: Option<GoingOn>, turn: u64) -> Self {
        Self {
            going_on,
            turn,
            ..self
        }
    }

    /// This authorizer with the rules of the pod as they are now.
    pub(crate) fn under(&self, permission: Arc<Permission>) -> Self {
        Self {
            permission,
            ..self.clone()
        }
    }

    /// Makes a call ready that a person has allowed: exactly the arguments that were shown, by the tool, on the files and in
    /// the sandbox that were shown, and only if no rule and no gate refuses them by now.
    ///
    /// # Errors
    /// Why the answer counts for nothing.
    pub(crate) async fn again(
        self,
        approval: Arc<ApprovalRequested>,
    ) -> Result<Box<Authorized>, String> {
        // The semaphore is never closed.
        let _slot = self.slots.acquire().await.ok();
        let judge = self.clone();
        let asked = approval.clone();
        let work = async move { judge.as_shown(&asked) };
        let lost = |lost| Err(format!("its arguments could not be judged: {lost}"));
        let ready = self
            .callbacks
            .run(DEADLINE, CancellationToken::new(), work)
            .await
            .unwrap_or_else(lost)?;
        let hooks = self.registry.hooks();
        if !hooks.any::<PreToolCall>("") {
            return Ok(ready);
        }
        let _order = self.in_order.lock().await;
        let outcome = self.gates(&ready.view).await;
        if !outcome.decision.allows() && !outcome.decision.asks() {
            return Err(outcome.decision.reason().to_owned());
        }
        // A person has answered what was asked then, and nothing that is asked since.
        let was_shown = |asked: &str| approval.question.lines().any(|line| line == asked);
        let asked = outcome.runs.iter().filter(|run| run.decision.asks());
        match asked
            .map(|run| run.decision.reason())
            .find(|asked| !was_shown(asked))
        {
            None => Ok(ready),
            Some(asked) => Err(format!("what is asked about it has changed since: {asked}")),
        }
    }

    pub(super) fn as_shown(&self, approval: &ApprovalRequested) -> Result<Box<Authorized>, String> {
        let ApprovalRequested {
            call,
            tool,
            arguments,
            definition_digest: shown,
            ..
        } = approval;
        let view = CallView {
            id: *call,
            name: tool.clone(),
            arguments: arguments.to_string(),
        };
        if let Some(barred) = self.barred(&view) {
            return Err(barred.reason());
        }
        let registered = self
            .registry
            .tools()
            .get(tool)
            .ok_or_else(|| format!("there is no tool called `{tool}` any more"))?;
        if definition_digest(registered) != *shown {
            return Err(format!("the definition of {tool} has changed since"));
        }
        let redactor = self.registry.redactor();
        let prepared = prepare(registered, arguments).map_err(|unfit: Unfit| {
            sanitize_lines(&unfit.said(registered), MAX_PROBLEM, redactor)
        })?;
        if prepared.canonical != *arguments {
            return Err(format!(
                "{tool} reads its arguments in another way than when they were shown"
            ));
        }
        self.permission
            .workspace
            .check_roots()
            .map_err(|replaced| replaced.to_string())?;
        let (judged, landings) = self.judged(&facts(registered, &prepared), Person::Later);
        let JudgedResources {
            digest,
            digest_by_name,
            ..
        } = judged.resources;
        if ![digest, digest_by_name].contains(&approval.resources_digest) {
            return Err(
                "the sandbox, or where a path of the call leads, has changed since".to_owned(),
            );
        }
        if judged.decision.allows() || judged.decision.asks() {
            return Ok(self.allowed(&view, registered, prepared, landings));
        }
        Err(sanitize_lines(
            judged.decision.reason(),
            MAX_PROBLEM,
            redactor,
        ))
    }
}
