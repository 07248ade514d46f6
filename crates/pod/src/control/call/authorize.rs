//! Decides whether a call may run. The arguments are parsed once, here; permission judges what was parsed, and
//! exactly that parse runs later.

use super::landings::Landings;
use super::order::Claims;
use super::running::{given_up_on, taken_back};
use crate::control::commit::Journaled;
use crate::control::core::Core;
use crate::control::gates;
use crate::control::limits::MAX_ARGUMENTS;
use crate::control::turn::MAX_CALLS;
use crate::feature::{FeatureRegistry, ForeignContract, RegisteredTool, sanitize_lines};
use crate::foreign::Callbacks;
use crate::foreign::attribution;
use crate::hook::{HookPoint, PreToolCall, ToolArguments, ToolCallView};
use crate::permission::{
    CallFacts, JudgedResources, Person, Policy, Proposal, Rule, RuleRef, SandboxState,
    says_what_changes,
};
use crate::record::{
    ApprovalRequested, Decision, GateNote, ToolStarted, TransformNote, VerdictGiven,
};
use crate::session::approvals::AllowedRule;
use crate::session::fold::GoingOn;
use asked::{Asks, definition_digest, sandbox_text};
use authority::{Door, Redactor, SandboxMode, Shut, Workspace};
use llm_worker::CallId;
use llm_worker::ToolEffect;
use llm_worker::effect::{CallVerdict, CallView, Input};
use llm_worker::tool::{ArgumentError, Prepared, Touch};
use session_store::Clock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

/// The policy, the workspace and the sandbox that calls are judged with. The host supplies it when it opens a pod.
#[derive(Clone, Debug)]
pub struct Permission {
    pub policy: Policy,
    /// Resolves the paths of a call.
    pub workspace: Workspace,
    pub sandbox: SandboxState,
    /// Whether a person can answer what rules and gates ask.
    pub person: Person,
}

impl Permission {
    /// Whether a call may ask to go beyond the sandbox.
    pub(crate) fn may_escalate(&self) -> bool {
        let lifts = self.sandbox.mode == SandboxMode::WorkspaceWrite && self.sandbox.enforced;
        lifts && self.person == Person::Later
    }
}

mod asked;
mod enriched;
pub(crate) mod past_calls;
pub(crate) mod preview;
#[cfg(test)]
mod tests;

/// How long parsing and judging one call may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// Calls that may be judged at the same time; far fewer than there are threads.
const SLOTS: usize = 8;

/// Bytes of the reason why a call does not run; a part of it may be the text of a foreign tool.
const MAX_PROBLEM: usize = 4 * 1024;

/// The decision about a call, with the parts of its `verdict` records.
#[derive(Debug)]
pub(crate) struct Authorization {
    pub(crate) verdict: CallVerdict<Journaled>,
    rule: String,
    /// The gate that decided, if a gate did.
    gate: GateNote,
    /// The verdicts of the gates that allowed the call.
    allowed: Vec<VerdictGiven>,
    transforms: Vec<TransformNote>,
    /// What a person is asked before the call runs.
    asks: Asks,
}

/// An allowed call: the parse that was judged, what hooks see of it, and the tool's own deadline.
#[derive(Debug)]
pub(crate) struct Authorized {
    /// Durable before the call runs.
    pub(crate) record: ToolStarted,
    pub(crate) view: Arc<ToolCallView>,
    pub(crate) prepared: Prepared,
    pub(crate) deadline: Duration,
    /// The door of the tool's grant: each step of the call enters it.
    pub(crate) door: Arc<Door>,
    pub(crate) landings: Landings,
}

impl Authorization {
    fn by(rule: impl Into<String>, verdict: CallVerdict<Journaled>) -> Self {
        let (rule, gate, allowed, transforms) =
            (rule.into(), GateNote::default(), Vec::new(), Vec::new());
        Self {
            verdict,
            rule,
            gate,
            allowed,
            transforms,
            asks: Asks::default(),
        }
    }

    /// A call that is not valid; `rule` names the check that failed.
    fn invalid(rule: &str, problem: &str, redactor: &Redactor) -> Self {
        Self::by(
            rule,
            CallVerdict::Invalid {
                problem: sanitize_lines(problem, MAX_PROBLEM, redactor),
            },
        )
    }

    /// Why the call does not run.
    fn reason(&self) -> String {
        match &self.verdict {
            CallVerdict::Refuse { reason }
            | CallVerdict::Invalid { problem: reason }
            | CallVerdict::Abort { reason } => reason.clone(),
            CallVerdict::Allow(_) | CallVerdict::Ask(_) => String::new(),
        }
    }

    /// The project is another one: the turn of the call ends before anything runs.
    pub(crate) fn project_replaced(reason: String) -> Self {
        Self::by("host:project", CallVerdict::Abort { reason })
    }

    fn revoked(tool: &RegisteredTool) -> Self {
        Self::by(
            "host:revoked",
            CallVerdict::Refuse {
                reason: taken_back(&tool.definition.name, &tool.feature),
            },
        )
    }

    /// Refuses an allowed call if the calls of this answer have too many bytes of arguments together: defaults can make
    /// short arguments long.
    pub(crate) fn within(self, bytes: &mut usize, redactor: &Redactor) -> Self {
        let new = match &self.verdict {
            CallVerdict::Allow(call) => call.record.arguments.len(),
            CallVerdict::Ask(question) => question.arguments.len(),
            CallVerdict::Refuse { .. }
            | CallVerdict::Invalid { .. }
            | CallVerdict::Abort { .. } => return self,
        };
        *bytes += new;
        if *bytes <= MAX_CALLS {
            return self;
        }
        *bytes -= new;
        let problem = format!(
            "the calls of this answer have over {MAX_CALLS} bytes of arguments together, defaults included; make this \
             one again by itself"
        );
        let Self { verdict, rule, .. } = Self::invalid("host:arguments", &problem, redactor);
        Self {
            verdict,
            rule,
            ..self
        }
    }

    /// What the call touches, if it may run now or once a person has allowed it.
    pub(crate) fn claims(&self) -> Option<&Claims> {
        let may_run = matches!(self.verdict, CallVerdict::Allow(_) | CallVerdict::Ask(_));
        self.asks.claims.as_ref().filter(|_| may_run)
    }

    /// The input for the turn machine.
    pub(crate) fn into_input(self, id: CallId) -> Input<Journaled> {
        let Self {
            verdict,
            rule,
            gate,
            allowed: mut authorization,
            transforms,
            asks,
        } = self;
        let decision = match &verdict {
            CallVerdict::Allow(_) => Decision::Allow,
            // The gates that ask have records of their own.
            CallVerdict::Ask(_) => asks
                .by_rule
                .map_or(Decision::Allow, |question| Decision::Ask {
                    question,
                    expires_after_ms: None,
                }),
            CallVerdict::Refuse { reason } => Decision::Refuse {
                reason: reason.clone(),
            },
            CallVerdict::Invalid { problem } => Decision::Invalid {
                reason: problem.clone(),
            },
            CallVerdict::Abort { reason } => Decision::Abort {
                reason: reason.clone(),
            },
        };
        authorization.push(VerdictGiven {
            call: Some(id),
            turn: None,
            decision,
            rule,
            gate,
            transforms,
        });
        Input::Judged {
            id,
            verdict,
            authorization,
        }
    }
}

/// Judges the calls of one turn, under one generation of the surface. Clones share its slots.
#[derive(Clone)]
pub(crate) struct Authorizer {
    registry: Arc<FeatureRegistry>,
    permission: Arc<Permission>,
    callbacks: Callbacks,
    generation: u64,
    /// What the turn goes on with.
    going_on: Option<GoingOn>,
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
        let hooks = self.registry.hooks();
        let (call, mut enriched) = self.enriched(call).await;
        let (rewritten, gated) = (
            hooks.any::<ToolArguments>(&call.name),
            hooks.any::<PreToolCall>(""),
        );
        if !rewritten && !gated {
            let judged = Authorization {
                transforms: enriched,
                ..self.permit(call).await
            };
            return judged.asked(&self);
        }
        let order = self.in_order.lock().await;
        // Meanwhile an earlier call may have disabled the feature.
        if let Some(barred) = self.barred(&call) {
            return barred;
        }
        let (call, transforms) = if rewritten {
            self.rewrite(call).await
        } else {
            (call, Vec::new())
        };
        let mut judged = self.permit(call).await;
        enriched.extend(transforms);
        judged.transforms = enriched;
        let judged = if gated {
            self.ask(judged).await
        } else {
            judged
        };
        drop(order);
        judged.asked(&self)
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
        let (first, tool, on) = (call.clone(), registered.clone(), self.going_on);
        let work = async move {
            prepare(&tool, &first.arguments)
                .ok()
                .map(|p| view(&first, &tool, &p, on))
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
        let outcome = self
            .registry
            .hooks()
            .decide::<PreToolCall>(&self.callbacks, || (*view).clone())
            .await;
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
        let (transforms, asks) = (judged.transforms, Asks::default());
        Authorization {
            verdict,
            rule,
            gate,
            allowed: said,
            transforms,
            asks,
        }
    }
}

/// The reason why arguments cannot be run.
#[derive(Debug)]
pub(crate) enum Unfit {
    Revoked,
    Problem(String),
}

impl Unfit {
    pub(crate) fn said(self, tool: &RegisteredTool) -> String {
        match self {
            Self::Revoked => taken_back(&tool.definition.name, &tool.feature),
            Self::Problem(problem) => problem,
        }
    }
}

/// Parses arguments of the model or of a transform. Their canonical form is recorded, so it has the bound of the raw
/// one. Arguments of a foreign tool fit its schema before code of its feature runs.
///
/// Parsing counts as a use of the tool's grant. A revocation waits until parsing ends.
pub(crate) fn prepare(registered: &RegisteredTool, arguments: &str) -> Result<Prepared, Unfit> {
    let bounded = |what: &str, bytes: usize| match bytes > MAX_ARGUMENTS {
        true => Err(Unfit::Problem(format!(
            "{what} have {bytes} bytes; at most {MAX_ARGUMENTS} are allowed; split the work"
        ))),
        false => Ok(()),
    };
    let _pass = registered.door.enter().map_err(|Shut| Unfit::Revoked)?;
    bounded("the arguments", arguments.len())?;
    if let Some(enrichment) = &registered.enrichment {
        enrichment.check(arguments).map_err(unfit)?;
    }
    let _inside = attribution::inside(&registered.feature);
    if let Some(contract) = &registered.foreign {
        contract.check(arguments).map_err(unfit)?;
    }
    let mut prepared = registered.tool.prepare(arguments).map_err(unfit)?;
    if let Some(enrichment) = &registered.enrichment
        && *prepared.canonical != *arguments
    {
        enrichment.check(&prepared.canonical).map_err(unfit)?;
    }
    bounded(
        "the arguments with their defaults",
        prepared.canonical.len(),
    )?;
    if let Some(contract) = &registered.foreign {
        add_touches(registered, contract, &mut prepared, arguments)?;
    }
    Ok(prepared)
}

fn unfit(error: ArgumentError) -> Unfit {
    Unfit::Problem(error.to_string())
}

/// Adds what the arguments of a foreign tool touch. The arguments that its own parse returned are judged and run, so they
/// fit the schema, too.
fn add_touches(
    registered: &RegisteredTool,
    contract: &ForeignContract,
    prepared: &mut Prepared,
    arguments: &str,
) -> Result<(), Unfit> {
    if *prepared.canonical != *arguments {
        contract.check(&prepared.canonical).map_err(unfit)?;
    }
    prepared
        .touches
        .extend(contract.touches(&prepared.canonical).map_err(unfit)?);
    if registered.definition.effect != ToolEffect::ReadOnly && !says_what_changes(&prepared.touches)
    {
        // No sandbox of this machine bounds what it changes.
        prepared
            .touches
            .push(Touch::RemoteWrite(registered.feature.to_string()));
    }
    Ok(())
}

fn view(
    call: &CallView,
    registered: &RegisteredTool,
    prepared: &Prepared,
    on: Option<GoingOn>,
) -> ToolCallView {
    ToolCallView {
        call: call.id,
        tool: call.name.clone(),
        feature: registered.feature.clone(),
        effect: registered.definition.effect,
        arguments: prepared.canonical.clone(),
        touches: prepared.touches.clone(),
        input: on.map(|on| on.input),
        by_person: on.is_some_and(|on| on.run),
    }
}

impl Authorizer {
    /// Judges one call by the default table and the rules. Reads directory entries to resolve paths, so it runs on a
    /// callback thread.
    fn by_the_host(&self, call: &CallView) -> Authorization {
        let (tools, redactor) = (self.registry.tools(), self.registry.redactor());
        let Some(registered) = tools.get(&call.name) else {
            let names: Vec<&str> = tools
                .iter()
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
        let facts = CallFacts {
            tool: &call.name,
            effect: registered.definition.effect,
            touches: &prepared.touches,
            feature: &registered.feature,
        };
        let Permission {
            policy,
            workspace,
            sandbox,
            person,
        } = &*self.permission;
        let since = self.now();
        let judged = policy.judge_with(&facts, workspace, *sandbox, *person);
        let RuleRef { text, source, .. } = &judged.rule;
        let said = || sanitize_lines(judged.decision.reason(), MAX_PROBLEM, redactor);
        let (mut by_rule, mut proposal) = (None, Proposal::default());
        if judged.decision.asks() {
            (by_rule, proposal) = (Some(said()), policy.proposed(&facts, workspace, *sandbox));
        }
        let may_run = judged.decision.allows() || judged.decision.asks();
        let gate_may_ask = *person == Person::Later && self.registry.hooks().any::<PreToolCall>("");
        let (mut resources_digest, mut command) = (String::new(), None);
        if judged.decision.asks() || may_run && gate_may_ask {
            resources_digest = judged.resources.digest.clone();
            command = policy.asked_command(&facts, &prepared.canonical, workspace, *sandbox);
        }
        let claims = may_run.then(|| Claims::of(facts.effect, facts.touches, workspace));
        let verdict = if may_run {
            let landings = Landings {
                judged: judged.resources.landings,
                since,
            };
            CallVerdict::Allow(Box::new(self.allowed(call, registered, prepared, landings)))
        } else {
            CallVerdict::Refuse { reason: said() }
        };
        let asks = Asks {
            by_rule,
            resources_digest,
            proposal,
            command,
            claims,
            by_gates: Vec::new(),
        };
        Authorization {
            asks,
            ..Authorization::by(format!("{text} ({source})"), verdict)
        }
    }

    fn now(&self) -> Duration {
        Duration::from_micros((self.clock)())
    }

    fn allowed(
        &self,
        call: &CallView,
        tool: &RegisteredTool,
        prepared: Prepared,
        landings: Landings,
    ) -> Authorized {
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
        let view = Arc::new(view(call, tool, &prepared, self.going_on));
        Authorized {
            record,
            view,
            prepared,
            deadline: tool.deadline,
            door: tool.door.clone(),
            landings,
        }
    }
}

impl Authorization {
    /// A call that may run waits, if a person is to be asked about it.
    fn asked(self, authorizer: &Authorizer) -> Self {
        if self.asks.by_rule.is_none() && self.asks.by_gates.is_empty() {
            return self;
        }
        let CallVerdict::Allow(call) = &self.verdict else {
            return self;
        };
        let Asks {
            by_rule: _,
            resources_digest,
            proposal,
            command,
            claims: _,
            by_gates,
        } = &self.asks;
        let Some(tool) = authorizer.registry.tools().get(&call.record.name) else {
            return self;
        };
        let question = sanitize_lines(
            &self.asks.question(),
            MAX_PROBLEM,
            authorizer.registry.redactor(),
        );
        // A rule never overrides a gate.
        let proposal = if by_gates.is_empty() {
            proposal.clone()
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
            resources_digest: resources_digest.clone(),
            question,
            rule: self.rule.clone(),
            gates: by_gates.iter().map(|asked| asked.gate.clone()).collect(),
            command: command.clone(),
            sandbox: sandbox_text(authorizer.permission.sandbox.mode, &call.record).to_owned(),
            rules: proposal.rules.iter().filter_map(Rule::proposed).collect(),
            configurable: proposal.configurable,
            expires: self.asks.expires(&authorizer.clock),
        };
        Self {
            verdict: CallVerdict::Ask(Box::new(requested)),
            ..self
        }
    }

    /// Refuses a call about which a person is to be asked, if too many wait already.
    pub(crate) fn within_open(self, open: &mut usize, most: usize) -> Self {
        if !matches!(self.verdict, CallVerdict::Ask(_)) {
            return self;
        }
        if *open < most {
            *open += 1;
            return self;
        }
        let reason =
            format!("{most} calls already wait for approval; call again once they are answered");
        let Self { verdict, rule, .. } = Self::by("host:approvals", CallVerdict::Refuse { reason });
        Self {
            verdict,
            rule,
            ..self
        }
    }
}

impl Authorizer {
    /// An authorizer that also goes by these rules, which a person allowed for the session.
    pub(crate) fn with_rules(&self, rules: &[AllowedRule]) -> Self {
        if rules.is_empty() {
            return self.clone();
        }
        let Permission {
            policy,
            workspace,
            sandbox,
            person,
        } = (*self.permission).clone();
        let rules: Vec<_> = rules
            .iter()
            .map(|allowed| Rule::from(&allowed.rule))
            .collect();
        let permission = Permission {
            policy: policy.with(&rules),
            workspace,
            sandbox,
            person,
        };
        Self {
            permission: Arc::new(permission),
            ..self.clone()
        }
    }

    /// This authorizer for calls that this input leads to.
    pub(crate) fn on(self, going_on: Option<GoingOn>) -> Self {
        Self { going_on, ..self }
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
        let (judge, asked) = (self.clone(), approval.clone());
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
        let outcome = hooks
            .decide::<PreToolCall>(&self.callbacks, || (*ready.view).clone())
            .await;
        // A person has answered what they ask.
        let stands = outcome.decision.allows() || outcome.decision.asks();
        if stands {
            Ok(ready)
        } else {
            Err(outcome.decision.reason().to_owned())
        }
    }

    fn as_shown(&self, approval: &ApprovalRequested) -> Result<Box<Authorized>, String> {
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
        let facts = CallFacts {
            tool,
            effect: registered.definition.effect,
            touches: &prepared.touches,
            feature: &registered.feature,
        };
        let Permission {
            policy,
            workspace,
            sandbox,
            ..
        } = &*self.permission;
        workspace
            .check_roots()
            .map_err(|replaced| replaced.to_string())?;
        let since = self.now();
        let judged = policy.judge_with(&facts, workspace, *sandbox, Person::Later);
        let JudgedResources {
            landings,
            digest,
            digest_by_name,
        } = judged.resources;
        if ![digest, digest_by_name].contains(&approval.resources_digest) {
            return Err(
                "the sandbox, or where a path of the call leads, has changed since".to_owned(),
            );
        }
        if judged.decision.allows() || judged.decision.asks() {
            let landings = Landings {
                judged: landings,
                since,
            };
            return Ok(Box::new(
                self.allowed(&view, registered, prepared, landings),
            ));
        }
        Err(sanitize_lines(
            judged.decision.reason(),
            MAX_PROBLEM,
            redactor,
        ))
    }
}
