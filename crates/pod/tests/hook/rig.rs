//! Features made of one hook, and a tool that is called under them.
use llm_worker::{ToolContext, ToolEffect, ToolOutput, ToolResult};
use pod::feature::*;
use pod::hook::*;
use pod::record::{Record, ToolFinished, VerdictGiven};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
pub(crate) use testkit::feature;
use testkit::{ModelScript, PodUnderTest, ScriptedAnswer};

/// A feature and what it is granted.
pub(crate) type Installed = (Arc<dyn FeatureModule>, Vec<HostCapability>);

pub(crate) fn builder(id: &str) -> FeatureDescriptorBuilder {
    FeatureDescriptor::builder(id.parse().unwrap()).version("1.0.0")
}

/// What every hook may be granted.
pub(crate) fn all<P: Point>() -> Vec<HostCapability> {
    vec![
        HostCapability::hook::<P>(),
        HostCapability::ANY_ARGUMENTS,
        HostCapability::ANY_RESULT,
        HostCapability::ANY_ANSWER,
        HostCapability::ANY_REPEAT,
    ]
}

/// A feature with one gate.
pub(crate) fn gate<P: Gate>(
    id: &str,
    key: HookKey<P>,
    says: impl Fn(&P::Input) -> P::Answer + Send + Sync + 'static,
) -> Installed {
    hook(id, builder(id).gate(&key).build(), key, Arc::new(says))
}

/// A feature with one transform.
pub(crate) fn transform<P: Transform>(
    id: &str,
    key: HookKey<P>,
    says: impl Fn(&P::Input) -> P::Answer + Send + Sync + 'static,
) -> Installed {
    hook(id, builder(id).transform(&key).build(), key, Arc::new(says))
}

/// A feature with one hook of any kind.
pub(crate) fn hook<P: Point>(
    id: &str,
    descriptor: FeatureDescriptor,
    key: HookKey<P>,
    hook: Arc<dyn Hook<P>>,
) -> Installed {
    let id: FeatureId = id.parse().unwrap();
    let install = move |ctx: &mut FeatureInstallContext<'_>| {
        ctx.hooks()
            .register(HookContribution::new(id.clone(), &key, Arc::clone(&hook)))
            .map(drop)
    };
    (feature(descriptor, install), all::<P>())
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct SayArgs {
    word: String,
}

/// The words that were said.
#[derive(Default)]
pub(crate) struct Said(pub(crate) Mutex<Vec<String>>, AtomicUsize);

impl Said {
    async fn say(self: Arc<Self>, args: SayArgs, _: ToolContext) -> ToolResult {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.lock().unwrap().push(args.word.clone());
        Ok(ToolOutput {
            summary: format!("said {}", args.word),
            content: String::new(),
            data: None,
        })
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

const SAY: ToolKey<SayArgs> = ToolKey::new("Say", ToolEffect::ReadOnly, "Say a word.");

/// A pod whose model says each word in an answer of its own and then stops.
pub(crate) fn pod(words: &[&str], features: Vec<Installed>) -> (PodUnderTest, Arc<Said>) {
    let calls = words
        .iter()
        .map(|word| ScriptedAnswer::calls(&[("Say", &format!("{{\"word\":\"{word}\"}}"))]));
    let script = ModelScript::new(calls.chain([ScriptedAnswer::text("done")]));
    let mut pod = PodUnderTest::new(&ambient::claim(), script, Vec::new());
    let said = Arc::new(Said::default());
    let live = Arc::clone(&said);
    let install = move |ctx: &mut FeatureInstallContext<'_>| {
        ctx.tools().implement(&SAY, &live, Said::say).map(drop)
    };
    let say = feature(builder("builtin:say").tool(&SAY).build(), install);
    pod.features = vec![(say, vec![HostCapability::tool("*")])];
    pod.features.extend(features);
    pod.paused = false;
    pod.grace = Duration::from_millis(200);
    (pod, said)
}

pub(crate) fn verdicts(pod: &PodUnderTest) -> Vec<VerdictGiven> {
    let verdict = |(_, record)| match record {
        Record::VerdictGiven(verdict) => Some(verdict),
        _ => None,
    };
    pod.records().into_iter().filter_map(verdict).collect()
}

pub(crate) fn results(pod: &PodUnderTest) -> Vec<ToolFinished> {
    let result = |(_, record)| match record {
        Record::ToolFinished(finished) => Some(finished),
        _ => None,
    };
    pod.records().into_iter().filter_map(result).collect()
}

pub(crate) fn decisions(pod: &PodUnderTest) -> Vec<&'static str> {
    verdicts(pod)
        .into_iter()
        .map(|verdict| verdict.decision.word())
        .collect()
}
