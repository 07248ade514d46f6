//! May this call run? Its arguments are parsed once, here, and permission judges what was parsed; exactly that
//! parse is what runs later.

use super::blame;
use super::callbacks::Callbacks;
use super::calls::{given_up_on, taken_back};
use super::driver::MAX_ARGUMENTS;
use super::gates;
use crate::feature::{FeatureRegistry, RegisteredTool, said_in_lines};
use crate::hook::{HookPoint, PreToolCall, Ruling, ToolArguments, ToolCallView};
use crate::permission::{CallFacts, Circumstances, Policy, RuleRef, Verdict as Allowed};
use crate::session::commit::Judgement;
use crate::session::record::{ToolStarted, TransformNote};
use authority::{Door, Redactor, Workspace};
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
        Self::not_run(rule, Verdict::Invalid { problem: said_in_lines(problem, MAX_PROBLEM, redactor) })
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
        let owner = self.registry.tools().get(&call.name).map(|registered| &registered.feature);
        if let Some(owner) = owner.filter(|owner| self.callbacks.is_off(&owner.to_string())) {
            let problem = given_up_on(&call.name, owner);
            return Judged::invalid("host:stuck-feature", &problem, self.registry.redactor());
        }
        if let Some(tool) = self.registry.tools().get(&call.name).filter(|tool| tool.door.is_shut()) {
            let reason = taken_back(&call.name, &tool.feature);
            return Judged::not_run("host:revoked", Verdict::Refuse { reason });
        }
        let hooks = self.registry.hooks();
        let (rewritten, gated) = (hooks.any::<ToolArguments>(&call.name), hooks.any::<PreToolCall>(""));
        if !rewritten && !gated {
            return self.permit(call).await;
        }
        let order = self.turnstile.lock().await;
        let (call, transforms) = if rewritten { self.rewrite(call).await } else { (call, Vec::new()) };
        let mut judged = self.permit(call).await;
        judged.judgement.transforms = transforms;
        let judged = if gated { self.ask(judged).await } else { judged };
        drop(order);
        judged
    }

    /// The host's own judgement, on a callback thread.
    async fn permit(&self, call: CallView) -> Judged {
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
            let prepared = prepare(&registered, &changed.arguments)?;
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

/// Parses arguments, whoever wrote them. Their canonical form is what is recorded, so it has the bound of the raw one.
fn prepare(registered: &RegisteredTool, arguments: &str) -> Result<Prepared, String> {
    let bounded = |what: &str, bytes: usize| match bytes > MAX_ARGUMENTS {
        true => Err(format!("{what} have {bytes} bytes, at most {MAX_ARGUMENTS} are allowed; split the work")),
        false => Ok(()),
    };
    bounded("the arguments", arguments.len())?;
    let _inside = blame::inside(&registered.feature);
    let prepared = registered.tool.prepare(arguments).map_err(|error| error.to_string())?;
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
        Err(problem) => return Judged::invalid("host:arguments", &problem, redactor),
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
            let reason = said_in_lines(&decision.reason, MAX_PROBLEM, redactor);
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

#[cfg(test)]
mod tests {
    use super::*;
    use llm_worker::tool::ArgumentError;
    use llm_worker::{Tool, ToolDefinition, ToolEffect};
    use std::sync::mpsc;

    /// Parses until it is let go.
    struct Parses(ToolDefinition, std::sync::Mutex<mpsc::Receiver<()>>);

    impl Tool for Parses {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }

        fn prepare(&self, raw: &str) -> Result<Prepared, ArgumentError> {
            self.1.lock().unwrap().recv().unwrap_or_default();
            Ok(Prepared::new(raw.into(), Vec::new(), |_| Box::pin(async { Ok(Default::default()) })))
        }
    }

    // The host judges, but the thread is in the tool's code.
    #[test]
    fn a_tool_that_never_has_parsed_its_arguments_is_written_off() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let callbacks = Callbacks::with_grace(runtime.handle().clone(), Duration::from_millis(10));
        let (open, gate) = mpsc::channel::<()>();
        let (name, description, schema) = ("Parses".to_owned(), "Parses.".to_owned(), "{}".into());
        let definition = ToolDefinition { name, description, schema, effect: ToolEffect::ReadOnly };
        let tool = Arc::new(Parses(definition.clone(), std::sync::Mutex::new(gate)));
        let feature = crate::feature::FeatureId::builtin("parses");
        let deadline = Duration::from_secs(1);
        let door = Door::new();
        let registered = RegisteredTool { feature: feature.clone(), definition, tool, deadline, door };
        let work = async move { prepare(&registered, "{}").map(drop) };
        let lost = runtime.block_on(async {
            callbacks.run(Duration::from_millis(10), CancellationToken::new(), work).await.is_err()
        });
        assert!(lost && callbacks.is_off(&feature.to_string()));
        drop(open);
    }
}
