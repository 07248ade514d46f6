//! Checks of calls: accepted arguments, endings and leftovers.

use super::hooked::{STRANGE, stranger};
use super::installed::words;
use super::proxy::{CallEnd, PATIENT, proxied};
use super::site::{Site, surface, unless_it_panics};
use super::{CheckOutcome, Conformance, all, sample};
use crate::Shared;
use crate::feature_host::FeatureUnderTest;
use authority::text::{Lines, find};
use llm_worker::{ToolOutcome, ToolResult};
use pod::feature::{FeatureDescriptor, InstallOutcome};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most bytes a tool may return in memory; longer output goes through `ToolContext::host`.
const MAX_ANSWER: usize = 1024 * 1024;

pub(super) struct Called {
    pub(super) arguments: CheckOutcome,
    pub(super) cancellation: CheckOutcome,
    pub(super) outputs: CheckOutcome,
    pub(super) text: CheckOutcome,
    /// Calls that end by themselves within a short time.
    pub(super) quick: Vec<SampleCall>,
}

pub(super) type SampleCall = (String, Value);

/// The sample calls of all tools: the author's examples, or arguments made from the schema.
fn calls(conformance: &Conformance, descriptor: &FeatureDescriptor) -> Vec<SampleCall> {
    let mut calls = Vec::new();
    for tool in &descriptor.declared_tools {
        let schema: Value = serde_json::from_str(&tool.schema).unwrap_or_default();
        let given = conformance
            .examples
            .get(&tool.name)
            .cloned()
            .unwrap_or_else(|| vec![sample::of(&schema)]);
        calls.extend(
            given
                .into_iter()
                .map(|arguments| (tool.name.clone(), arguments)),
        );
    }
    calls
}

pub(super) fn called(conformance: &Conformance) -> Called {
    let descriptor = conformance.descriptor();
    let calls = calls(conformance, &descriptor);
    let arguments = arguments(conformance, &descriptor);
    let mut quick = Vec::new();
    let mut untried = (Untried::default(), Untried::default());
    let mut cancelled = Vec::new();
    let mut ended = Vec::new();
    let mut texts = Vec::new();
    for call in &calls {
        let (tool, arguments) = call;
        let refused = format!("{tool} takes no {arguments}; give an example");
        match proxied(conformance, call, Some(conformance.grace)) {
            CallEnd::Late => {
                let grace = conformance.grace;
                let late = format!(
                    "{tool} with {arguments} did not end within {grace:?} of its cancellation"
                );
                untried.1.note(tool, late.clone());
                cancelled.push(Err(late));
                continue;
            }
            CallEnd::NotBegun => {
                untried.0.note(tool, refused.clone());
                untried.1.note(tool, refused);
                continue;
            }
            CallEnd::Answered(_) | CallEnd::Panicked(_) => untried.0.tried(tool),
        }
        match proxied(conformance, call, None) {
            CallEnd::Answered(result) => {
                ended.push(bounded(call, &result));
                texts.push(plain(call, &result));
                quick.push(call.clone());
                untried.1.tried(tool);
            }
            CallEnd::Panicked(words) => {
                ended.push(Err(format!("{tool} with {arguments} panicked: {words}")));
                untried.1.tried(tool);
            }
            CallEnd::Late => {
                untried.1.note(
                    tool,
                    format!("no call of {tool} ended within {PATIENT:?}; give an example"),
                );
            }
            CallEnd::NotBegun => untried.1.note(tool, refused),
        }
    }
    let cancellation = untried.0.unless(all(cancelled));
    let outputs = untried.1.unless(all(ended));
    let text = untried.1.unless(all(texts));
    Called {
        arguments,
        cancellation,
        outputs,
        text,
        quick,
    }
}

/// Tools without a completed call, each with the reason.
#[derive(Default)]
struct Untried {
    why: BTreeMap<String, String>,
    tried: BTreeSet<String>,
}

impl Untried {
    fn note(&mut self, tool: &str, why: String) {
        self.why.entry(tool.to_owned()).or_insert(why);
    }

    fn tried(&mut self, tool: &str) {
        self.tried.insert(tool.to_owned());
    }

    /// Keeps a failure. A success stays one only if every tool was tried.
    fn unless(&self, held: CheckOutcome) -> CheckOutcome {
        let not = self
            .why
            .iter()
            .find(|(tool, _)| !self.tried.contains(*tool));
        match (held, not) {
            (CheckOutcome::Yes, Some((_, why))) => CheckOutcome::NotTried(why.clone()),
            (held, _) => held,
        }
    }
}

/// Argument text that no tool takes.
const NEVER: [&str; 6] = ["", "{", "null", "[]", "\"x\"", "{}{}"];

fn arguments(conformance: &Conformance, descriptor: &FeatureDescriptor) -> CheckOutcome {
    let site = Site::of(conformance);
    let registry = site.install_plainly();
    all(descriptor.declared_tools.iter().map(|declared| {
        let Some(tool) = registry.tools().get(&declared.name) else {
            return Ok(());
        };
        let schema: Value = serde_json::from_str(&declared.schema).unwrap_or_default();
        let mut never: Vec<String> = NEVER.iter().map(|text| (*text).to_owned()).collect();
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            let mut more = sample::of(&schema);
            if let Some(fields) = more.as_object_mut() {
                fields.insert("no-such-field".to_owned(), Value::Bool(true));
            }
            never.push(more.to_string());
        }
        for text in &never {
            let taken = unless_it_panics(|| tool.tool.prepare(text).is_ok());
            let taken = taken
                .map_err(|words| format!("{} panicked on `{text}`: {words}", declared.name))?;
            if taken {
                return Err(format!(
                    "{} takes `{text}` for its arguments",
                    declared.name
                ));
            }
        }
        let fits = sample::of(&schema).to_string();
        let canonical =
            unless_it_panics(|| tool.tool.prepare(&fits).map(|prepared| prepared.canonical));
        let canonical = canonical
            .map_err(|words| format!("{} panicked on `{fits}`: {words}", declared.name))?;
        let object = |text: Arc<str>| {
            serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object())
        };
        if canonical.is_ok_and(|canonical| !object(canonical)) {
            return Err(format!("{} makes no object of `{fits}`", declared.name));
        }
        Ok(())
    }))
}

/// Whether the output is within what the host accepts at once.
fn bounded((tool, arguments): &SampleCall, result: &ToolResult) -> Result<(), String> {
    let (summary, content) = match result {
        Ok(output) => (&output.summary, &output.content),
        // The host cuts the message of an error itself.
        Err(error) => (&String::new(), &error.content),
    };
    let most = ToolOutcome::SUMMARY_MAX;
    if summary.len() > most || summary.contains('\n') {
        return Err(format!(
            "the summary of {tool} with {arguments} is not one line of at most {most} bytes"
        ));
    }
    if content.len() > MAX_ANSWER {
        let have = content.len();
        return Err(format!(
            "{tool} with {arguments} answered {have} bytes at once, at most {MAX_ANSWER}; hand them to `cx.host`"
        ));
    }
    Ok(())
}

/// Whether the summary is free of characters that mislead a reader.
fn plain((tool, arguments): &SampleCall, result: &ToolResult) -> Result<(), String> {
    let words = match result {
        Ok(output) => &output.summary,
        Err(error) => &error.message,
    };
    match find(words, Lines::Many) {
        Some(c) => Err(format!(
            "the words of {tool} with {arguments} hold {}",
            c.escape_unicode()
        )),
        None => Ok(()),
    }
}

/// Kills the pod around each update of a state and checks that the state is unchanged after the restart, and that the
/// feature installs again.
pub(super) fn state(conformance: &Conformance, quick: &[SampleCall]) -> CheckOutcome {
    if conformance.descriptor().states.is_empty() {
        return CheckOutcome::Yes;
    }
    let open = || {
        conformance
            .host()
            .tool(stranger())
            .install(Shared(conformance.instance()))
    };
    let act = |host: &mut FeatureUnderTest| {
        for (tool, arguments) in quick {
            host.calls(&[(tool, &arguments.to_string())]);
        }
        for call in STRANGE {
            host.calls(&[call]);
        }
    };
    let mut whole = open();
    act(&mut whole);
    let is_update =
        |(name, _): &(String, usize)| name == "feature_state" || name == "commit:feature_state";
    let points: Vec<_> = whole.points().into_iter().filter(is_update).collect();
    if points.is_empty() && whole.values().is_empty() {
        return CheckOutcome::NotTried("no call changed a state; give an example".to_owned());
    }
    let again = |mut host: FeatureUnderTest, place: &str| {
        let left = host.values();
        let report = host.report();
        if !report.outcome.is_live() {
            return Err(format!("{place} it does not install: {}", words(report)));
        }
        host.kill();
        let after = host.values();
        if after == left {
            Ok(())
        } else {
            Err(format!(
                "{place} its state changed by itself: {left:?}, then {after:?}"
            ))
        }
    };
    let killed = points.into_iter().map(|(name, nth)| {
        let mut host = open();
        host.kill_at(&name, nth);
        host.dies(act);
        again(host, &format!("killed at {name} {nth}"))
    });
    let killed: Vec<_> = killed.collect();
    whole.restart();
    all(killed.into_iter().chain([again(whole, "after a restart")]))
}

/// Checks that nothing of a feature outlives its pod, and that a disabled feature leaves nothing.
pub(super) fn leftovers(conformance: &Conformance, quick: &[SampleCall]) -> CheckOutcome {
    let mut host = conformance.host().install(Shared(conformance.instance()));
    for (tool, arguments) in quick {
        host.calls(&[(tool, &arguments.to_string())]);
    }
    for task in conformance.descriptor().declared_background_tasks {
        // What it answers is checked elsewhere.
        drop(host.run_task_within(&task.name, PATIENT, None));
    }
    let tasks = host.close();
    // The host's own task that calls observers.
    let own = usize::from(host.registry().hooks().any::<pod::hook::Event>(""));
    if tasks > own {
        return CheckOutcome::No(format!(
            "{} tasks that it started live on after the pod was closed",
            tasks - own
        ));
    }
    host.disable();
    host.reopen();
    let site = Site::of(conformance);
    let without = surface(&site.install(&site.setting, false, None));
    if host.report().outcome != InstallOutcome::Disabled || surface(host.registry()) != without {
        return CheckOutcome::No("disabled, something of it is in the registry".to_owned());
    }
    for (tool, arguments) in quick {
        for outcome in host.calls(&[(tool, &arguments.to_string())]) {
            if outcome.status == llm_worker::ResultStatus::Ok {
                return CheckOutcome::No(format!("disabled, {tool} still answers"));
            }
        }
    }
    CheckOutcome::Yes
}
