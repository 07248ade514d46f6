//! Hooks as declared: one `const` key both declares and stages a hook, so the two cannot differ. Does not depend on
//! chains.

use super::capability::{HostCapability, MAX_NAMED_TOOLS};
use super::contribution::{Contribution, ContributionKind};
use super::id::{FeatureId, feature_id_fits};
use super::text::{self, Lines, MAX_NAME, millis};
use crate::hook::{
    DEFAULT_DEADLINE, FailureRule, HookClass, HookPlace, HookPoint, MAX_DEADLINE, Point,
    SeesOutputSchema, ToolRepeat, ToolRun, ToolShape, Transform,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::marker::PhantomData;
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
    pub(crate) deadline: Duration,
    tools: &'static [&'static str],
    needs: &'static [HostCapability],
    pub(crate) withholds: bool,
    with_output_schema: bool,
    shortens: bool,
    before: &'static [&'static str],
    after: &'static [&'static str],
    point: PhantomData<fn(P)>,
}

impl<P: Point> HookKey<P> {
    /// A hook with [`DEFAULT_DEADLINE`]; a transform gets the calls of every tool. Meant for a `const`, where a bad name
    /// does not compile.
    ///
    /// # Panics
    /// On a name that is not 1 to 64 bytes of printable ASCII.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        assert!(
            text::name_fits(name, MAX_NAME),
            "a hook's name is 1 to 64 bytes of printable ASCII"
        );
        Self {
            name,
            deadline: DEFAULT_DEADLINE,
            tools: &["*"],
            needs: &[],
            withholds: false,
            with_output_schema: false,
            shortens: false,
            before: &[],
            after: &[],
            point: PhantomData,
        }
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
        let tools: &[&str] = if matches!(P::CLASS, HookClass::Transform) {
            self.tools
        } else {
            &[]
        };
        HookDeclaration {
            name: self.name.to_owned(),
            point: P::POINT,
            class: P::CLASS,
            deadline_ms: millis(self.deadline),
            tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            needs: self.needs.to_vec(),
            withholds: self.withholds,
            with_output_schema: self.with_output_schema,
            shortens: self.shortens,
            before: ids(self.before),
            after: ids(self.after),
        }
    }
}

/// Names of features that a key has checked.
fn ids(names: &[&str]) -> Vec<FeatureId> {
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

const fn are_ids(names: &[&str]) -> bool {
    let mut rest = names;
    while let [name, tail @ ..] = rest {
        if !feature_id_fits(name) {
            return false;
        }
        rest = tail;
    }
    names.len() <= MAX_PLACED
}

impl<P: Transform> HookKey<P> {
    /// This hook is asked before those of these features at the same point, such as `["builtin:redact"]`. A feature that
    /// is not installed is ignored; a cycle is an error of the plan.
    ///
    /// # Panics
    /// On a name that is not an id of a feature, and on more than 16 of them.
    #[must_use]
    pub const fn before(mut self, features: &'static [&'static str]) -> Self {
        assert!(
            are_ids(features),
            "`before` names at most 16 features by id, such as user:mine"
        );
        self.before = features;
        self
    }

    /// This hook is asked after those of these features at the same point, as [`Self::before`] says.
    ///
    /// # Panics
    /// As for [`Self::before`].
    #[must_use]
    pub const fn after(mut self, features: &'static [&'static str]) -> Self {
        assert!(
            are_ids(features),
            "`after` names at most 16 features by id, such as user:mine"
        );
        self.after = features;
        self
    }

    /// The tools whose calls this transform gets, and requests to change. A name that ends with `*` stands for all that
    /// begin with it.
    #[must_use]
    pub const fn tools(mut self, tools: &'static [&'static str]) -> Self {
        self.tools = tools;
        self
    }
}

impl HookKey<ToolShape> {
    /// If this hook fails, the result is withheld: the model is told so, and nothing of it is kept or shown. Until it
    /// answered, the output is held in memory. It is asked each time, also after failures.
    #[must_use]
    pub const fn withhold_on_failure(mut self) -> Self {
        self.withholds = true;
        self
    }

    /// This hook only makes the result shorter for the model. It is asked after all others at this point. What they left is
    /// stored, and `ReadOutput` gives it back; what this hook returns is shown, with a line that names the stored result.
    /// Programs get the data that the others left.
    #[must_use]
    pub const fn shortens(mut self) -> Self {
        self.shortens = true;
        self
    }
}

impl<P: SeesOutputSchema> HookKey<P> {
    /// Ask this gate only where the input has a schema that the answer has to fit.
    #[must_use]
    pub const fn with_output_schema(mut self) -> Self {
        self.with_output_schema = true;
        self
    }
}

/// The name of the hooks around a call, as a `const`; see [`crate::hook::ToolWrap`].
///
/// ```
/// use pod::feature::WrapKey;
/// const CACHE: WrapKey = WrapKey::new("cache").tools(&["Fetch"]);
/// assert_eq!(CACHE.name(), "cache");
/// ```
pub struct WrapKey {
    name: &'static str,
    deadline: Duration,
    tools: &'static [&'static str],
    needs: &'static [HostCapability],
}

impl WrapKey {
    /// Hooks around the calls of every tool, each with [`DEFAULT_DEADLINE`]. Meant for a `const`, where a bad name does
    /// not compile.
    ///
    /// # Panics
    /// On a name that is not 1 to 57 bytes of printable ASCII.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        assert!(
            text::name_fits(name, MAX_NAME - "-before".len()),
            "a wrap's name is 1 to 57 bytes of printable ASCII"
        );
        Self {
            name,
            deadline: DEFAULT_DEADLINE,
            tools: &["*"],
            needs: &[],
        }
    }

    /// The tools whose calls they stand around; `*` is any.
    #[must_use]
    pub const fn tools(mut self, tools: &'static [&'static str]) -> Self {
        self.tools = tools;
        self
    }

    /// How long the host waits for one answer; at most [`MAX_DEADLINE`].
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Requests of the feature without which these hooks are left out.
    #[must_use]
    pub const fn needs(mut self, needs: &'static [HostCapability]) -> Self {
        self.needs = needs;
        self
    }

    /// The first part of the hooks' names.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The hook at this point, named after the method that it calls.
    pub(crate) fn declaration<P: Transform>(&self, method: &str) -> HookDeclaration {
        HookDeclaration {
            name: format!("{}-{method}", self.name),
            point: P::POINT,
            class: P::CLASS,
            deadline_ms: millis(self.deadline),
            tools: self.tools.iter().map(|&tool| tool.to_owned()).collect(),
            needs: self.needs.to_vec(),
            withholds: false,
            with_output_schema: false,
            shortens: false,
            before: Vec::new(),
            after: Vec::new(),
        }
    }

    /// The hooks `before`, `again` and `after`.
    pub(crate) fn declarations(&self) -> [HookDeclaration; 3] {
        [
            self.declaration::<ToolRun>("before"),
            self.declaration::<ToolRepeat>("again"),
            self.declaration::<ToolShape>("after"),
        ]
    }
}

impl HostCapability {
    /// The request to add a hook at this point.
    #[must_use]
    pub const fn hook<P: Point>() -> Self {
        Self::ContributeHook {
            point: P::POINT,
            class: P::CLASS,
        }
    }
}

/// A hook as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookDeclaration {
    /// Unique within the feature; at most 64 bytes.
    pub name: String,
    pub point: HookPoint,
    /// What it may do; fixed by the point.
    pub class: HookClass,
    /// How long the host waits for one answer.
    pub deadline_ms: u64,
    /// The tools a transform is asked about; a name that ends with `*` stands for all that begin with it. Empty for other
    /// classes.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Requests of this feature without which this hook is left out.
    #[serde(default)]
    pub needs: Vec<HostCapability>,
    /// Whether its failure withholds the result; only at `tool_shape`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withholds: bool,
    /// Whether it is asked only where an input has a schema that the answer has to fit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_output_schema: bool,
    /// Whether it only makes results shorter for the model; only at `tool_shape`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shortens: bool,
    /// Features before whose hooks at the same point it is asked; only for transforms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<FeatureId>,
    /// Features after whose hooks at the same point it is asked; only for transforms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<FeatureId>,
}

/// Most features that one hook names in `before` or in `after`.
const MAX_PLACED: usize = 16;

impl HookDeclaration {
    /// What happens when it panics, hangs or is late.
    pub(crate) fn on_failure(&self) -> FailureRule {
        if self.withholds {
            FailureRule::Withhold
        } else {
            self.class.on_failure()
        }
    }

    /// Its place among the hooks of its point.
    pub(crate) fn place<'a>(&'a self, feature: &'a FeatureId) -> HookPlace<'a> {
        HookPlace {
            feature,
            before: &self.before,
            after: &self.after,
        }
    }
}

impl Contribution for HookDeclaration {
    const KIND: ContributionKind = ContributionKind::Hook;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn needs(&self) -> Vec<HostCapability> {
        self.needs.clone()
    }

    fn requests(&self) -> Vec<HostCapability> {
        let stands = HostCapability::ContributeHook {
            point: self.point,
            class: self.class,
        };
        let tools = || {
            self.tools
                .iter()
                .map(|tool| Cow::Owned(tool.clone()))
                .collect::<Vec<_>>()
                .into()
        };
        match self.point {
            HookPoint::ToolArguments => {
                vec![stands, HostCapability::RewriteArguments { tools: tools() }]
            }
            HookPoint::ToolRun => vec![stands, HostCapability::AnswerCalls { tools: tools() }],
            HookPoint::ToolRepeat => vec![stands, HostCapability::RepeatCalls { tools: tools() }],
            HookPoint::ToolShape | HookPoint::ToolOutcome => {
                vec![stands, HostCapability::TransformResults { tools: tools() }]
            }
            HookPoint::PromptSubmit
            | HookPoint::PreRequest
            | HookPoint::PreCompaction
            | HookPoint::Compaction
            | HookPoint::PostAssistant
            | HookPoint::TurnError
            | HookPoint::PreToolCall
            | HookPoint::TurnEnd
            | HookPoint::Event => vec![stands],
        }
    }

    fn problem(&self, _requested: &[HostCapability]) -> Option<String> {
        let Self {
            name,
            class,
            deadline_ms,
            tools,
            ..
        } = self;
        if let Err(problem) = text::check("a hook's name", name, MAX_NAME, Lines::One) {
            return Some(problem);
        }
        if self.withholds && self.point != HookPoint::ToolShape {
            return Some(format!(
                "hook `{name}` withholds results, which is possible only at {}",
                HookPoint::ToolShape
            ));
        }
        if self.shortens && (self.withholds || self.point != HookPoint::ToolShape) {
            return Some(format!(
                "hook `{name}` shortens results, which is possible only at {}, and not for a hook that withholds them",
                HookPoint::ToolShape
            ));
        }
        if self.with_output_schema
            && !matches!(self.point, HookPoint::PromptSubmit | HookPoint::TurnEnd)
        {
            return Some(format!(
                "hook `{name}` is asked only with an output schema, which {} does not see",
                self.point
            ));
        }
        if *class != HookClass::Transform && !tools.is_empty() {
            return Some(format!(
                "hook `{name}` names tools, which only a transform may"
            ));
        }
        let placed = self.before.len().max(self.after.len());
        if (placed > 0 && *class != HookClass::Transform) || placed > MAX_PLACED {
            return Some(format!(
                "hook `{name}` has a place before or after more than {MAX_PLACED} features, or is not a transform"
            ));
        }
        if *deadline_ms == 0 || *deadline_ms > millis(MAX_DEADLINE) {
            let most = millis(MAX_DEADLINE);
            return Some(format!(
                "the deadline of hook `{name}` is {deadline_ms} ms; expected 1 to {most}"
            ));
        }
        if *class == HookClass::Transform && (tools.is_empty() || tools.len() > MAX_NAMED_TOOLS) {
            return Some(format!(
                "hook `{name}` names {} tools, not 1 to {MAX_NAMED_TOOLS}",
                tools.len()
            ));
        }
        None
    }
}
