//! May this call run? Its arguments are parsed once, here, and permission judges what was parsed; exactly that
//! parse is what runs later.

use super::calls::{given_up_on, taken_back};
use super::gates;
use super::turn::MAX_ARGUMENTS;
use crate::feature::{FeatureRegistry, RegisteredTool, sanitize_lines};
use crate::foreign::Callbacks;
use crate::foreign::attribution;
use crate::hook::{HookPoint, PreToolCall, Ruling, ToolArguments, ToolCallView};
use crate::permission::{CallFacts, Circumstances, Policy, RuleRef, Verdict as Allowed};
use crate::session::commit::Judgement;
use crate::session::record::{ToolStarted, TransformNote};
use authority::{Door, Redactor, Shut, Workspace};
use llm_worker::effect::{CallView, Verdict};
use llm_worker::tool::Prepared;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

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

#[cfg(test)]
mod tests;

/// How long parsing and judging one call may take.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// Calls that are judged at once; far fewer than there are threads.
pub(super) const PLACES: usize = 8;

/// Most bytes of why a call does not run; foreign tools word some of that themselves.
const MAX_PROBLEM: usize = 4 * 1024;

/// A judged call; `ready` holds what runs if it is allowed.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) judgement: Judgement,
    pub(crate) ready: Option<Ready>,
}

/// An allowed call: the parse that was judged, what hooks see of it, and the tool's own deadline.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) view: Arc<ToolCallView>,
    pub(crate) prepared: Prepared,
    pub(crate) deadline: Duration,
    /// What it passes while it runs.
    pub(crate) door: Arc<Door>,
}

impl Judged {
    /// A call that cannot run as it stands; `rule` names the check that found out.
    pub(crate) fn invalid(rule: &str, problem: &str, redactor: &Redactor) -> Self {
        Self::not_run(rule, Verdict::Invalid { problem: sanitize_lines(problem, MAX_PROBLEM, redactor) })
    }

    fn revoked(tool: &RegisteredTool) -> Self {
        Self::not_run("host:revoked", Verdict::Refuse { reason: taken_back(&tool.definition.name, &tool.feature) })
    }

    fn not_run(rule: &str, verdict: Verdict) -> Self {
        Self { verdict, judgement: Judgement { rule: rule.to_owned(), ..Judgement::default() }, ready: None }
    }
}

/// Everything that judges calls of one generation.
#[derive(Clone)]
pub(crate) struct Court {
    pub(crate) registry: Arc<FeatureRegistry>,
    pub(crate) permission: Arc<Permission>,
    pub(crate) about: About,
    pub(crate) callbacks: Callbacks,
    /// One for each call that is being judged: tools parse there, and may hang.
    pub(crate) places: Arc<Semaphore>,
    /// Calls that hooks have a say in are judged one after another, in their order: a gate may count them.
    pub(crate) turnstile: Arc<Mutex<()>>,
}

impl Court {
    /// Transforms, then the host's own permission, then gates: each sees what the one before left, and a gate
    /// never sees a call that the host refuses.
    pub(crate) async fn judge(self, call: CallView) -> Judged {
        // Nobody closes it.
        let _place = self.places.acquire().await.ok();
        let hooks = self.registry.hooks();
        let (rewritten, gated) = (hooks.any::<ToolArguments>(&call.name), hooks.any::<PreToolCall>(""));
        if !rewritten && !gated {
            return self.permit(call).await;
        }
        let order = self.turnstile.lock().await;
        // While it waited, a call before it may have lost the feature its thread.
        if let Some(barred) = self.barred(&call) {
            return barred;
        }
        let (call, transforms) = if rewritten { self.rewrite(call).await } else { (call, Vec::new()) };
        let mut judged = self.permit(call).await;
        judged.judgement.transforms = transforms;
        let judged = if gated { self.ask(judged).await } else { judged };
        drop(order);
        judged
    }

    /// What becomes of a call of a tool that is not there any more. Asked before each time that its code would run: it
    /// would only lose one more thread.
    fn barred(&self, call: &CallView) -> Option<Judged> {
        let tool = self.registry.tools().get(&call.name)?;
        if self.callbacks.is_off(&tool.feature.to_string()) {
            let problem = given_up_on(&call.name, &tool.feature);
            return Some(Judged::invalid("host:stuck-feature", &problem, self.registry.redactor()));
        }
        tool.door.is_shut().then(|| Judged::revoked(tool))
    }

    /// The host's own judgement, on a callback thread.
    async fn permit(&self, call: CallView) -> Judged {
        if let Some(barred) = self.barred(&call) {
            return barred;
        }
        let (registry, permission, about) = (self.registry.clone(), self.permission.clone(), self.about.clone());
        let work = async move { judge(&call, &registry, &permission, &about) };
        let judged = self.callbacks.run(DEADLINE, CancellationToken::new(), work);
        judged.await.unwrap_or_else(|lost| {
            let problem = format!("its arguments could not be judged: {lost}");
            Judged::invalid("host:judge", &problem, self.registry.redactor())
        })
    }

    /// Lets transforms change arguments that parse; those that do not are the model's to correct.
    async fn rewrite(&self, call: CallView) -> (CallView, Vec<TransformNote>) {
        let Some(registered) = self.registry.tools().get(&call.name).cloned() else { return (call, Vec::new()) };
        let (first, tool) = (call.clone(), registered.clone());
        let work = async move { prepare(&tool, &first.arguments).ok().map(|p| view(&first, &tool, &p)) };
        let Ok(Some(input)) = self.callbacks.run(DEADLINE, CancellationToken::new(), work).await else {
            return (call, Vec::new());
        };
        let settle = Arc::new(move |changed: ToolCallView| {
            let prepared = prepare(&registered, &changed.arguments).map_err(|unfit| unfit.said(&registered))?;
            Ok(ToolCallView { arguments: prepared.canonical, touches: prepared.touches, ..changed })
        });
        let hooks = self.registry.hooks();
        let (last, done) = hooks.transform::<ToolArguments>(&self.callbacks, &call.name, input, settle).await;
        let replaced = done.iter().any(|note| note.after.is_ok());
        let call = if replaced { CallView { arguments: last.arguments.to_string(), ..call } } else { call };
        (call, gates::notes(done))
    }

    /// Asks the gates about a call that the host permits.
    async fn ask(&self, judged: Judged) -> Judged {
        let Some(view) = judged.ready.as_ref().map(|ready| ready.view.clone()) else { return judged };
        let (id, hooks) = (view.call, self.registry.hooks());
        let passed = hooks.decide::<PreToolCall>(&self.callbacks, || (*view).clone()).await;
        let mut said = gates::verdicts(HookPoint::PreToolCall, Some(id), &passed);
        let verdict = match passed.ruling {
            Ruling::Allow => {
                let judgement = Judgement { allowed: said, ..judged.judgement };
                return Judged { judgement, ..judged };
            }
            Ruling::Deny { reason } => Verdict::Refuse { reason },
            Ruling::Abort { reason } | Ruling::Pause { reason } => Verdict::Abort { reason },
        };
        let last = said.pop();
        let (rule, gate) = last.map(|last| (last.rule, last.gate)).unwrap_or_default();
        let transforms = judged.judgement.transforms;
        let judgement = Judgement { rule, gate, allowed: said, transforms, start: None };
        Judged { verdict, judgement, ready: None }
    }
}

/// Why arguments brought nothing that could run.
#[derive(Debug)]
enum Unfit {
    /// The tool was taken back.
    Revoked,
    Problem(String),
}

impl Unfit {
    fn said(self, tool: &RegisteredTool) -> String {
        match self {
            Self::Revoked => taken_back(&tool.definition.name, &tool.feature),
            Self::Problem(problem) => problem,
        }
    }
}

/// Parses arguments, whoever wrote them. Their canonical form is what is recorded, so it has the bound of the raw one.
///
/// Parsing is a use of the tool: whoever takes it back waits for it.
fn prepare(registered: &RegisteredTool, arguments: &str) -> Result<Prepared, Unfit> {
    let bounded = |what: &str, bytes: usize| match bytes > MAX_ARGUMENTS {
        true => Err(Unfit::Problem(format!(
            "{what} have {bytes} bytes, at most {MAX_ARGUMENTS} are allowed; split the work"
        ))),
        false => Ok(()),
    };
    let _pass = registered.door.enter().map_err(|Shut| Unfit::Revoked)?;
    bounded("the arguments", arguments.len())?;
    let _inside = attribution::inside(&registered.feature);
    let prepared = registered.tool.prepare(arguments).map_err(|error| Unfit::Problem(error.to_string()))?;
    bounded("the arguments with their defaults", prepared.canonical.len())?;
    Ok(prepared)
}

fn view(call: &CallView, registered: &RegisteredTool, prepared: &Prepared) -> ToolCallView {
    ToolCallView {
        call: call.id,
        tool: call.name.clone(),
        feature: registered.feature.clone(),
        effect: registered.definition.effect,
        arguments: prepared.canonical.clone(),
        touches: prepared.touches.clone(),
    }
}

/// Judges one call. Reads directory entries to resolve paths, so it runs on a callback thread.
fn judge(call: &CallView, registry: &FeatureRegistry, permission: &Permission, about: &About) -> Judged {
    let (tools, redactor) = (registry.tools(), registry.redactor());
    let Some(registered) = tools.get(&call.name) else {
        let names: Vec<&str> = tools.iter().map(|known| known.definition.name.as_str()).collect();
        let problem = format!("there is no tool called `{}`; there are: {}", call.name, names.join(", "));
        return Judged::invalid("host:known-tool", &problem, redactor);
    };
    let prepared = match prepare(registered, &call.arguments) {
        Ok(prepared) => prepared,
        Err(Unfit::Revoked) => return Judged::revoked(registered),
        Err(Unfit::Problem(problem)) => return Judged::invalid("host:arguments", &problem, redactor),
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
            judgement: Judgement {
                rule,
                start: Some(start_record(call, registered, &prepared, about)),
                ..Judgement::default()
            },
            ready: Some(Ready {
                view: Arc::new(view(call, registered, &prepared)),
                deadline: registered.deadline,
                door: registered.door.clone(),
                prepared,
            }),
        },
        Allowed::Deny => {
            let reason = sanitize_lines(&decision.reason, MAX_PROBLEM, redactor);
            Judged::not_run(&rule, Verdict::Refuse { reason })
        }
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
