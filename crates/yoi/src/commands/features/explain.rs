//! `yoi features --explain TOOL`: every decision about calls of a tool, in order, each with its result and source.

use super::availability::{Contribution, Mark, Part, Step, effect_text, render, time};
use super::explain_task;
use super::page::Page;
use super::table::sandbox_text;
use host::compose::roots::Added;
use host::compose::{Composed, compose};
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::nearest::did_you_mean;
use host::words::READ_OUTPUT;
use llm_worker::ToolEffect;
use pod::feature::{
    FeatureDescriptor, HostCapability, InstallPlan, PlannedFeature, PlannedHook, ToolDeclaration,
    TouchKind,
};
use pod::hook::{FailureRule, HookPoint};
use pod::permission::{ActionKind, Expectation, RuleDecision};
use schemars::JsonSchema;
use serde::Serialize;

/// The decisions about calls of a tool.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Route {
    tool: String,
    /// The feature that contributes the tool.
    feature: String,
    /// Whether a call is safe to repeat.
    effect: ToolEffect,
    /// The result for a call.
    verdict: Verdict,
    /// The result as text.
    conclusion: String,
    /// All decisions, in their order.
    steps: Vec<Step>,
}

/// The result for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// Each call runs.
    Runs,
    /// The result depends on the arguments or on a gate.
    Depends,
    /// Each call is refused.
    Refused,
    /// The model is not offered the tool.
    Absent,
}

impl Route {
    /// Of a tool of this build, with what would start.
    pub(super) fn of(name: &str, config: &Config, env: &Env) -> Result<Self, Failure> {
        let ambient = ambient::claim();
        let mut composed = compose(&ambient, config, env, Added::default())?;
        let no_shell = composed.spawner(&ambient, env, "explain")?.err();
        let all = config.declared(env);
        let found = all.iter().find_map(|feature| {
            Some((
                feature,
                feature.declared_tools.iter().find(|t| t.name == name)?,
            ))
        });
        let (feature, tool) = found.ok_or_else(|| unknown(name, &all))?;
        let plan = composed.plan();
        let planned = plan
            .features
            .iter()
            .find(|planned| planned.feature_id == feature.id);
        let mut asking = RouteBuilder {
            feature,
            tool,
            plan: &plan,
            config,
            composed: &composed,
            no_shell,
            steps: Vec::new(),
        };
        let shown = planned.filter(|planned| asking.surface(planned));
        let expected = shown.map(|planned| asking.authorization(planned));
        if shown.is_some() {
            asking.run();
        }
        let gated = asking.hooks(HookPoint::PreToolCall).next().is_some();
        let steps = asking.steps;
        let verdict = expected
            .as_ref()
            .map_or(Verdict::Absent, |expected| judged(expected, gated));
        let expected = expected.unwrap_or_default();
        Ok(Self {
            tool: tool.name.clone(),
            feature: feature.id.to_string(),
            effect: tool.effect,
            verdict,
            conclusion: conclusion(&tool.name, verdict, &expected, gated),
            steps,
        })
    }

    pub(super) fn render(&self) -> Page {
        let mut page = Page::default();
        let effect = effect_text(self.effect, "call");
        page.wrapped(
            "",
            &format!("{} is a tool of {}; {effect}", self.tool, self.feature),
        );
        page.append(render(&self.steps, |part| match part {
            Part::Surface => "is the tool available?",
            Part::Judgement => "is a call allowed? checked in this order:",
            Part::Schedule | Part::Run => "how does it run?",
        }));
        page.wrapped("so ", &self.conclusion);
        page
    }
}

fn unknown(name: &str, all: &[FeatureDescriptor]) -> Failure {
    let names: Vec<&str> = all
        .iter()
        .flat_map(|feature| &feature.declared_tools)
        .map(|tool| tool.name.as_str())
        .collect();
    let tasks = explain_task::names(all);
    let known: Vec<&str> = names
        .iter()
        .copied()
        .chain(tasks.iter().map(String::as_str))
        .collect();
    let meant = did_you_mean(name, &known);
    let what = format!("no feature has a tool or a background task `{name}`");
    if !meant.is_empty() {
        return Failure::new(Exit::Usage, what).help(format!("{meant}`yoi features` lists all"));
    }
    let tasks = if tasks.is_empty() {
        String::new()
    } else {
        format!("; known tasks: {}", tasks.join(", "))
    };
    Failure::new(Exit::Usage, what).help(format!("known tools: {}{tasks}", names.join(", ")))
}

/// A tool, everything that has a say, and what was said so far.
struct RouteBuilder<'a> {
    feature: &'a FeatureDescriptor,
    tool: &'a ToolDeclaration,
    plan: &'a InstallPlan,
    config: &'a Config,
    composed: &'a Composed,
    /// Why no command can be confined here, where that is so.
    no_shell: Option<String>,
    steps: Vec<Step>,
}

impl<'a> RouteBuilder<'a> {
    fn say(&mut self, part: Part, mark: Mark, text: impl Into<String>, source: Option<String>) {
        self.steps.push(Step {
            part,
            mark,
            text: text.into(),
            source,
        });
    }

    /// The hooks that a call meets at a point, in the order of asking.
    fn hooks(&self, point: HookPoint) -> impl Iterator<Item = (String, &'a PlannedHook)> + use<'a> {
        let name = &self.tool.name;
        let all = self
            .plan
            .hooks_at(point)
            .into_iter()
            .map(|(feature, hook)| (feature.to_string(), hook));
        all.filter(move |(_, hook)| {
            hook.tools.is_empty() || hook.tools.iter().any(|of| of == "*" || of == name)
        })
    }

    /// Whether the model is shown the tool, and by whose leave.
    fn surface(&mut self, planned: &PlannedFeature) -> bool {
        let tool = self.tool;
        let own = HostCapability::ContributeTool {
            name: tool.name.clone().into(),
        };
        let contribution = Contribution {
            feature: self.feature,
            name: &tool.name,
            own,
            needs: &tool.needs,
        };
        let (steps, is_possible) =
            contribution.availability(planned, self.config, self.composed, self.no_shell.take());
        self.steps.extend(steps);
        is_possible
            && planned.outcome.is_live()
            && planned
                .tools
                .iter()
                .any(|planned| planned.name == tool.name)
    }

    /// Whether a call may run: the host's gates in their order, with the hooks of features where they stand.
    fn authorization(&mut self, planned: &PlannedFeature) -> Vec<Expectation> {
        for (feature, enricher) in self.plan.enrichers_of(self.tool) {
            let text = format!(
                "`{}` of {feature} may narrow its schema at the start of the pod, and change the arguments of a call; \
                 if it fails, both stay as they are",
                enricher.name
            );
            self.say(Part::Judgement, Mark::Note, text, None);
        }
        for (feature, hook) in self.hooks(HookPoint::ToolArguments) {
            let text = format!(
                "`{}` of {feature} may rewrite its arguments; {}",
                hook.name,
                failing(hook)
            );
            self.say(Part::Judgement, Mark::Note, text, None);
        }
        let fit = "arguments: they must match the tool's schema; otherwise yoi tells the model what the schema expects";
        self.say(Part::Judgement, Mark::Depends, fit, None);
        let permission = &self.composed.permission;
        let all = permission
            .policy
            .expect(&self.tool.name, self.tool.effect, permission.sandbox);
        let mut expected: Vec<Expectation> = all
            .into_iter()
            .filter(|met| self.comes_up(met.action, planned))
            .collect();
        if !expected
            .iter()
            .any(|met| matches!(met.action, ActionKind::Reads | ActionKind::Writes))
        {
            expected.retain(|met| met.action != ActionKind::Lost);
        }
        for met in &expected {
            self.permission(met);
        }
        for (feature, hook) in self.hooks(HookPoint::PreToolCall) {
            let text = format!(
                "gate `{}` of {feature} runs at each call; {}",
                hook.name,
                failing(hook)
            );
            self.say(Part::Judgement, Mark::Depends, text, None);
        }
        expected
    }

    fn comes_up(&self, matter: ActionKind, planned: &PlannedFeature) -> bool {
        if self.tool.foreign {
            declared(matter, self.tool)
        } else {
            held(matter, planned)
        }
    }

    /// One kind of thing a call may do: what decides, and what about paths or hosts decides otherwise.
    fn permission(&mut self, met: &Expectation) {
        let word = |decision| match decision {
            RuleDecision::Allow => "allow",
            RuleDecision::Ask => {
                "ask (the call needs your approval; where nobody can give it, yoi refuses the call)"
            }
            RuleDecision::Deny => "deny",
        };
        for said in &met.statements {
            let place = said
                .path
                .as_ref()
                .or(said.host.as_ref())
                .or(said.program.as_ref());
            let mark = match (place, said.decision) {
                // What a later layer overrules decides nothing.
                (None, _) if !said.decides => continue,
                (None, RuleDecision::Allow) => Mark::Yes,
                (None, RuleDecision::Deny) => Mark::No,
                (None, RuleDecision::Ask) | (Some(_), _) => Mark::Depends,
            };
            let on = place
                .map(|place| format!(", on {place}"))
                .unwrap_or_default();
            let opaque = said.program.is_some() && said.decision != RuleDecision::Allow;
            let opaque = if opaque {
                ", and where a command cannot be analyzed"
            } else {
                ""
            };
            let by = if said.text == met.what {
                String::new()
            } else {
                format!(" by `{}`", said.text)
            };
            let text = format!(
                "permission rule: {}{on}{opaque}: {}{by}",
                met.what,
                word(said.decision)
            );
            self.say(Part::Judgement, mark, text, Some(said.source.clone()));
        }
    }

    fn run(&mut self) {
        let mut notes = Vec::new();
        let starts = self
            .feature
            .requested_capabilities
            .iter()
            .any(|r| matches!(r.capability, HostCapability::Process { .. }));
        if let Some(sandbox) = self.plan.host.sandbox.as_ref().filter(|_| starts) {
            let text = format!(
                "sandbox of commands: {}",
                sandbox_text(&sandbox.mode, sandbox.enforced)
            );
            notes.push((text, Some(sandbox.source.clone())));
        }
        let calls = &self.config.tool_concurrency;
        notes.push((
            format!("at most {} calls run at once", calls.value),
            Some(calls.source.clone()),
        ));
        let limit = time(self.tool.deadline_ms);
        notes.push((
            format!("yoi records the start of a call before the call runs, and cancels the call after {limit}"),
            None,
        ));
        notes.extend(self.hooks(HookPoint::ToolShape).map(|(feature, hook)| {
            (
                format!(
                    "`{}` of {feature} sees the whole result before it is kept; {}",
                    hook.name,
                    failing(hook)
                ),
                None,
            )
        }));
        notes.extend(self.hooks(HookPoint::ToolOutcome).map(|(feature, hook)| {
            (
                format!(
                    "`{}` of {feature} sees its result and may change it; {}",
                    hook.name,
                    failing(hook)
                ),
                None,
            )
        }));
        let inline = self
            .plan
            .host
            .limits
            .iter()
            .find(|limit| limit.name == "tool.result_inline");
        let rest = if self.reads_outputs() {
            "the model reads the rest with ReadOutput"
        } else {
            "the model cannot read the rest"
        };
        notes.extend(inline.map(|inline| {
            (
                format!("a result over {} bytes is truncated; {rest}", inline.value),
                None,
            )
        }));
        for (text, source) in notes {
            self.say(Part::Run, Mark::Note, text, source);
        }
    }
}

impl RouteBuilder<'_> {
    /// Whether the next start has the tool for the parts that results leave out.
    fn reads_outputs(&self) -> bool {
        let live = self
            .plan
            .features
            .iter()
            .filter(|feature| feature.outcome.is_live());
        live.flat_map(|feature| &feature.tools)
            .any(|tool| tool.name == READ_OUTPUT)
    }
}

fn failing(hook: &PlannedHook) -> String {
    let means = match hook.on_failure {
        FailureRule::Refuse => "refuses",
        FailureRule::KeepOriginal => "changes nothing",
        FailureRule::Withhold => "has the result withheld",
        FailureRule::Count => "is counted",
    };
    format!(
        "if it fails or takes longer than {}, it {means}",
        time(hook.deadline_ms)
    )
}

/// Whether calls of a feature's tools do such things, going by what it holds.
fn held(matter: ActionKind, planned: &PlannedFeature) -> bool {
    let fs = |write_too: bool| {
        let fits = |held: &HostCapability| matches!(held, HostCapability::ScopedFs { write, .. } if *write || !write_too);
        planned.grants.granted().iter().any(fits)
    };
    match matter {
        ActionKind::Reads => fs(false),
        ActionKind::Writes => fs(true),
        ActionKind::Hosts => planned
            .grants
            .granted()
            .iter()
            .any(|held| matches!(held, HostCapability::Network { .. })),
        ActionKind::Session => !planned.states.is_empty(),
        ActionKind::Remote => false,
        ActionKind::Runs | ActionKind::Nothing | ActionKind::Lost => true,
    }
}

/// The same for a foreign tool, which declares what its calls touch. What changes something and does not say what, counts as a
/// change elsewhere.
fn declared(matter: ActionKind, tool: &ToolDeclaration) -> bool {
    let touches = |kinds: &[TouchKind]| tool.touches.iter().any(|rule| kinds.contains(&rule.is));
    let says_what_changes = || {
        touches(&[
            TouchKind::Write,
            TouchKind::Shell,
            TouchKind::Session,
            TouchKind::RemoteWrite,
        ])
    };
    match matter {
        ActionKind::Reads => touches(&[TouchKind::Read]),
        ActionKind::Writes => touches(&[TouchKind::Write]),
        ActionKind::Hosts => touches(&[TouchKind::Host]),
        ActionKind::Runs => touches(&[TouchKind::Shell]),
        ActionKind::Remote => {
            touches(&[TouchKind::RemoteWrite])
                || tool.effect != ToolEffect::ReadOnly && !says_what_changes()
        }
        ActionKind::Session => touches(&[TouchKind::Session]),
        ActionKind::Nothing => tool.touches.is_empty(),
        ActionKind::Lost => true,
    }
}

/// A path that leads nowhere is refused everywhere, and says nothing about the tool.
fn resolved(expected: &[Expectation]) -> impl Iterator<Item = &Expectation> {
    expected.iter().filter(|met| met.action != ActionKind::Lost)
}

fn judged(expected: &[Expectation], gated: bool) -> Verdict {
    let allowed = resolved(expected)
        .filter(|met| met.decision == RuleDecision::Allow)
        .count();
    let paths = resolved(expected).any(|met| {
        met.statements
            .iter()
            .any(|said| said.path.is_some() || said.host.is_some() || said.program.is_some())
    });
    match allowed {
        0 if !paths => Verdict::Refused,
        all if all == resolved(expected).count() && !paths && !gated => Verdict::Runs,
        _ => Verdict::Depends,
    }
}

fn conclusion(tool: &str, verdict: Verdict, expected: &[Expectation], gated: bool) -> String {
    let gates = if gated {
        ", unless a gate refuses it"
    } else {
        ""
    };
    match verdict {
        Verdict::Absent => format!("the model is not offered {tool}; calls to {tool} fail"),
        Verdict::Refused if resolved(expected).any(|met| met.decision == RuleDecision::Ask) => {
            format!("a call to {tool} needs your approval or is refused")
        }
        Verdict::Refused => format!("a call to {tool} is refused"),
        Verdict::Runs => format!("a call to {tool} runs"),
        Verdict::Depends => {
            let kinds = |decision| -> Vec<&str> {
                expected
                    .iter()
                    .filter(|met| met.decision == decision)
                    .map(|met| met.what)
                    .collect()
            };
            let runs = kinds(RuleDecision::Allow).join("; ");
            let first = format!(
                "a call to {tool} runs without approval if no rules apply except these: {runs}{gates}"
            );
            let others = [
                (RuleDecision::Ask, "needs your approval"),
                (RuleDecision::Deny, "is refused"),
            ];
            let rest = others
                .into_iter()
                .map(|(decision, result)| (kinds(decision), result));
            let rest = rest.filter(|(kinds, _)| !kinds.is_empty());
            let rest = rest.map(|(kinds, result)| format!("It {result} for: {}", kinds.join("; ")));
            std::iter::once(first)
                .chain(rest)
                .collect::<Vec<_>>()
                .join(". ")
        }
    }
}
