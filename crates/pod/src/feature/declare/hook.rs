//! Hooks as contributions: one `const` key both declares and stages, so the two cannot drift.

use super::capability::{HostCapability, MAX_NAMED_TOOLS};
use super::descriptor::{MAX_NAME, millis};
use super::id::FeatureId;
use super::text::{self, Lines};
use crate::feature::decide::plan::PlannedHook;
use crate::hook::{
    DEFAULT_DEADLINE, Hook, HookClass, HookPoint, HookRegistryBuilder, MAX_DEADLINE, Point, Slot, Transform,
};
use authority::Door;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// A hook's name and point, as a `const`.
///
/// ```
/// use pod::feature::HookKey;
/// use pod::hook::PreToolCall;
/// const AUDIT: HookKey<PreToolCall> = HookKey::new("audit");
/// assert_eq!(AUDIT.name(), "audit");
/// ```
pub struct HookKey<P> {
    name: &'static str,
    deadline: Duration,
    tools: &'static [&'static str],
    needs: &'static [HostCapability],
    point: PhantomData<fn(P)>,
}

impl<P: Point> HookKey<P> {
    /// A hook with [`DEFAULT_DEADLINE`]; a transform is asked about every tool.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name, deadline: DEFAULT_DEADLINE, tools: &["*"], needs: &[], point: PhantomData }
    }

    /// How long the host waits for one answer; at most [`MAX_DEADLINE`].
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Requests of the feature without which this hook is left out.
    #[must_use]
    pub const fn needs(mut self, needs: &'static [HostCapability]) -> Self {
        self.needs = needs;
        self
    }

    /// The hook's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn declaration(&self) -> HookDeclaration {
        let tools: &[&str] = if matches!(P::CLASS, HookClass::Transform) { self.tools } else { &[] };
        HookDeclaration {
            name: self.name.to_owned(),
            point: P::POINT,
            class: P::CLASS,
            deadline_ms: millis(self.deadline),
            tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            needs: self.needs.to_vec(),
        }
    }
}

impl<P: Transform> HookKey<P> {
    /// The tools this transform is asked about, and asks to be granted; `*` is any.
    #[must_use]
    pub const fn tools(mut self, tools: &'static [&'static str]) -> Self {
        self.tools = tools;
        self
    }
}

/// A hook as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookDeclaration {
    /// Unique within the feature; at most 64 bytes.
    pub name: String,
    /// Where it stands.
    pub point: HookPoint,
    /// What it may do; fixed by the point.
    pub class: HookClass,
    /// How long the host waits for one answer.
    pub deadline_ms: u64,
    /// The tools a transform is asked about; `*` is any. Empty for other classes.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Requests of this feature without which this hook is left out.
    #[serde(default)]
    pub needs: Vec<HostCapability>,
}

impl HookDeclaration {
    /// What it asks for by being declared.
    pub(crate) fn implied(&self) -> Vec<HostCapability> {
        let stands = HostCapability::ContributeHook { point: self.point, class: self.class };
        let tools = || self.tools.iter().map(|tool| Cow::Owned(tool.clone())).collect::<Vec<_>>().into();
        match self.point {
            HookPoint::ToolArguments => vec![stands, HostCapability::RewriteArguments { tools: tools() }],
            HookPoint::ToolOutcome => vec![stands, HostCapability::TransformResults { tools: tools() }],
            HookPoint::PromptSubmit
            | HookPoint::PreRequest
            | HookPoint::PreToolCall
            | HookPoint::TurnEnd
            | HookPoint::Event => vec![stands],
        }
    }

    pub(crate) fn planned(&self) -> PlannedHook {
        let Self { name, point, class, deadline_ms, tools, needs: _ } = self.clone();
        PlannedHook { name, point, class, deadline_ms, tools, on_failure: class.on_failure() }
    }

    pub(crate) fn problem(&self, requested: &[HostCapability]) -> Option<String> {
        let Self { name, class, deadline_ms, tools, needs, .. } = self;
        if let Err(problem) = text::check("a hook's name", name, MAX_NAME, Lines::One) {
            return Some(problem);
        }
        if *deadline_ms == 0 || *deadline_ms > millis(MAX_DEADLINE) {
            let most = millis(MAX_DEADLINE);
            return Some(format!("the deadline of hook `{name}` is {deadline_ms} ms; expected 1 to {most}"));
        }
        if *class == HookClass::Transform && (tools.is_empty() || tools.len() > MAX_NAMED_TOOLS) {
            return Some(format!("hook `{name}` names {} tools, not 1 to {MAX_NAMED_TOOLS}", tools.len()));
        }
        let implied = self.implied().iter().find_map(HostCapability::problem);
        let unrequested = needs.iter().find(|need| !requested.contains(need));
        implied.or_else(|| unrequested.map(|n| format!("hook `{name}` needs {n}, which the feature does not request")))
    }
}

/// Adds a hook behind these doors.
type Adding = dyn FnOnce(Vec<Arc<Door>>, &mut HookRegistryBuilder) + Send;

/// A hook as staged.
#[non_exhaustive]
pub struct HookContribution {
    /// Who contributes it.
    pub feature_id: FeatureId,
    /// Its name, as declared.
    pub name: String,
    /// Where it stands, as declared.
    pub point: HookPoint,
    /// What it may do, as declared.
    pub class: HookClass,
    /// Requests without which it is left out, as declared.
    pub required_capabilities: Vec<HostCapability>,
    deadline_ms: u64,
    tools: Vec<String>,
    /// What it takes to stand there.
    pub(crate) implied: Vec<HostCapability>,
    add: Box<Adding>,
}

impl HookContribution {
    /// A hook under its key.
    #[must_use]
    pub fn new<P: Point>(feature_id: FeatureId, key: &HookKey<P>, hook: Arc<dyn Hook<P>>) -> Self {
        let declaration = key.declaration();
        let implied = declaration.implied();
        let HookDeclaration { name, point, class, deadline_ms, tools, needs } = declaration;
        let mut slot = Slot::new(feature_id.clone(), name.clone(), hook);
        slot.deadline = key.deadline;
        if P::CLASS == HookClass::Transform {
            slot.tools.clone_from(&tools);
        }
        let add = Box::new(move |doors: Vec<Arc<Door>>, hooks: &mut HookRegistryBuilder| {
            slot.doors = doors;
            hooks.add(slot);
        });
        Self { feature_id, name, point, class, required_capabilities: needs, deadline_ms, tools, implied, add }
    }

    /// The first difference from what was planned.
    pub(crate) fn differs(&self, planned: &PlannedHook) -> Option<&'static str> {
        let pairs = [
            ("its point", self.point == planned.point),
            ("its deadline", self.deadline_ms == planned.deadline_ms),
            ("its tools", self.tools == planned.tools),
        ];
        pairs.into_iter().find_map(|(what, same)| (!same).then_some(what))
    }

    pub(crate) fn merge(self, doors: Vec<Arc<Door>>, hooks: &mut HookRegistryBuilder) {
        (self.add)(doors, hooks);
    }
}
