//! The hooks of one point in install order, and how their answers combine. Does not depend on the registry of features
//! or on the actor.

use super::answer::HookFailure;
use super::arrange::{HookPlace, arranged};
use super::limits::{DEFAULT_DEADLINE, MAX_CONSECUTIVE_FAILURES};
use super::observe::ObserverQueue;
use super::run::{HookRun, Next, run};
use super::typed::{Chains, Gate, Observe, Point, ToolShapeView, Transform};
use super::verdict::{Change, MAX_AGAIN_WORDS, MAX_REASON};
use crate::feature::{FeatureId, clamp, escape_line, millis, sanitize, sanitize_lines};
use crate::foreign::Callbacks;
use crate::record::Decision;
use async_trait::async_trait;
use authority::{Door, Redactor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// The code of a hook at the point `P`. Features implement it, or pass a closure; the host calls it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a hook at `{P}`",
    note = "implement `Hook<{P}>`, or pass a closure that takes the view of the point and returns its answer"
)]
#[async_trait]
pub trait Hook<P: Point>: Send + Sync + 'static {
    /// Called once for each event of the point, on a callback thread.
    ///
    /// # Errors
    /// The hook has no answer; the class of its point fixes what that means.
    async fn call(&self, input: &P::Input) -> Result<P::Answer, HookFailure>;
}

#[async_trait]
impl<P: Point, F: Fn(&P::Input) -> P::Answer + Send + Sync + 'static> Hook<P> for F {
    async fn call(&self, input: &P::Input) -> Result<P::Answer, HookFailure> {
        Ok(self(input))
    }
}

/// Bytes of the recorded problem of a failed transform; a longer text is cut.
const MAX_PROBLEM: usize = 512;

/// Appended to the recorded problem of the failure that suspends a transform.
const SUSPENDED_SUFFIX: &str = "; after 3 failures in a row it is not asked again";
const _: () = assert!(
    MAX_CONSECUTIVE_FAILURES == 3,
    "the text above names the number"
);

/// An installed hook: the code of a feature with its limits. Install makes it from the hook's declaration.
pub struct InstalledHook<P: Point> {
    pub feature: FeatureId,
    pub name: String,
    pub deadline: Duration,
    /// The tools whose calls the hook gets; a name that ends with `*` stands for all that begin with it. Ignored at points without a tool.
    pub tools: Vec<String>,
    pub code: Arc<dyn Hook<P>>,
    /// Whether its failure withholds the result; see [`FailureRule::Withhold`](super::FailureRule::Withhold).
    pub(crate) withholds: bool,
    /// Whether it is asked only about inputs with a schema that the answer has to fit, and about the ends of their turns.
    pub(crate) with_output_schema: bool,
    /// Whether it only makes results shorter; see [`HookKey::shortens`](crate::feature::HookKey::shortens).
    pub(crate) shortens: bool,
    /// Features before whose hooks at this point it is asked.
    pub(crate) before: Vec<FeatureId>,
    /// Features after whose hooks at this point it is asked.
    pub(crate) after: Vec<FeatureId>,
    /// Revocation guards: shut when a grant that the hook depends on is revoked.
    pub(crate) doors: Vec<Arc<Door>>,
    /// The place of its feature among all that were installed.
    place: usize,
    consecutive_failures: AtomicU32,
    abandoned: AtomicUsize,
}

/// Whether a declared name is that of a tool; one that ends with `*` stands for all that begin with it.
fn stands_for(known: &str, tool: &str) -> bool {
    match known.strip_suffix('*') {
        Some(beginning) => tool.starts_with(beginning),
        None => known == tool,
    }
}

impl<P: Point> InstalledHook<P> {
    /// A hook for every tool, with [`DEFAULT_DEADLINE`].
    #[must_use]
    pub fn new(feature: FeatureId, name: impl Into<String>, code: Arc<dyn Hook<P>>) -> Self {
        let consecutive_failures = AtomicU32::new(0);
        let abandoned = AtomicUsize::new(0);
        Self {
            feature,
            name: name.into(),
            deadline: DEFAULT_DEADLINE,
            tools: vec!["*".to_owned()],
            code,
            withholds: false,
            with_output_schema: false,
            shortens: false,
            before: Vec::new(),
            after: Vec::new(),
            doors: Vec::new(),
            place: 0,
            consecutive_failures,
            abandoned,
        }
    }

    fn asked(&self, tool: &str) -> bool {
        // Failures of a gate are not counted: a gate is never suspended. Nor is a hook that withholds.
        let failures = self.consecutive_failures.load(Ordering::Relaxed);
        let suspended = !self.withholds && failures >= MAX_CONSECUTIVE_FAILURES;
        !suspended && (tool.is_empty() || self.tools.iter().any(|known| stands_for(known, tool)))
    }

    /// Counts a call of this hook whose thread was abandoned.
    pub(super) fn call_abandoned(&self) {
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }

    /// An abandoned call returned after all.
    pub(super) fn call_returned(&self) {
        // `Err`: the call had not been counted as abandoned.
        self.abandoned
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |abandoned| {
                abandoned.checked_sub(1)
            })
            .ok();
    }

    pub(super) fn is_revoked(&self) -> bool {
        self.doors.iter().any(|door| door.is_shut())
    }

    /// Whether an abandoned call of this hook has not returned. Another call would block another thread.
    pub(super) fn has_abandoned_call(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) > 0
    }

    /// Counts a failure, or resets the count after a success. Returns whether this failure suspends the hook.
    fn record_result(&self, failed: bool) -> bool {
        if failed {
            self.consecutive_failures.fetch_add(1, Ordering::Relaxed) + 1
                == MAX_CONSECUTIVE_FAILURES
        } else {
            self.consecutive_failures.store(0, Ordering::Relaxed);
            false
        }
    }
}

/// The hooks of one point, in the order in which they are asked.
pub struct HookChain<P: Point> {
    hooks: Vec<Arc<InstalledHook<P>>>,
}

impl<P: Point> Default for HookChain<P> {
    fn default() -> Self {
        Self { hooks: Vec::new() }
    }
}

impl<P: Point> Clone for HookChain<P> {
    fn clone(&self) -> Self {
        Self {
            hooks: self.hooks.clone(),
        }
    }
}

/// The decision of a chain of gates, with the run of each. The actor acts on the decision and journals the runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct GateOutcome {
    /// The first refusal; without one the first question; otherwise `Allow`.
    pub decision: Decision,
    /// Every gate that was called, in order; if the decision is a refusal, the last one made it.
    pub runs: Vec<GateRun>,
}

/// One call of a gate, for the `verdict` record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateRun {
    pub feature: FeatureId,
    pub hook: String,
    /// Milliseconds until the gate answered or its deadline passed.
    pub ms: u64,
    /// The gate's decision, or the refusal that its failure counts as; a reason names feature and hook.
    pub decision: Decision,
    /// Whether the gate panicked or did not answer in time.
    pub failed: bool,
}

/// A value that a transform replaced, or failed to replace; recorded as a `TransformNote`. A transform that returns
/// `Unchanged` has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformed {
    pub feature: FeatureId,
    pub hook: String,
    /// Milliseconds until the transform answered or its deadline passed.
    pub ms: u64,
    /// BLAKE3 of the value before, hex.
    pub before: String,
    /// BLAKE3 of the value after, hex, or why the value before was kept.
    pub after: Result<String, String>,
    /// Whether the failure withholds the value.
    pub withheld: bool,
}

/// What the hooks at [`ToolShape`](super::ToolShape) need of a call's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shaping {
    /// There are none for this tool.
    None,
    /// The whole output, where it can be held.
    Whole,
    /// The whole output, and nothing of it may be kept or shown before.
    MayWithhold,
}

impl<P: Point> HookChain<P> {
    pub(super) fn push(&mut self, hook: InstalledHook<P>) {
        self.hooks.push(Arc::new(hook));
    }

    /// Whether any hook is called for this tool.
    fn any(&self, tool: &str) -> bool {
        self.hooks.iter().any(|hook| hook.asked(tool))
    }

    fn asked(&self, tool: &str) -> Vec<Arc<InstalledHook<P>>> {
        self.hooks
            .iter()
            .filter(|hook| hook.asked(tool))
            .cloned()
            .collect()
    }

    /// Those that see an answer of the feature installed at `place` in place of a tool: its own and what comes behind. Those
    /// before it have seen the result that it answers with. A hook that may withhold sees every result.
    fn behind(&self, tool: &str, place: usize) -> Vec<Arc<InstalledHook<P>>> {
        let own = self.hooks.iter().position(|hook| hook.place == place);
        let first = own.or_else(|| self.hooks.iter().position(|hook| hook.place > place));
        let stands = |(at, hook): &(usize, &Arc<InstalledHook<P>>)| {
            hook.withholds || first.is_some_and(|first| *at >= first)
        };
        let behind = self
            .hooks
            .iter()
            .enumerate()
            .filter(stands)
            .map(|(_, hook)| hook);
        behind.filter(|hook| hook.asked(tool)).cloned().collect()
    }
}

impl<P: Gate> HookChain<P> {
    async fn decide(
        &self,
        callbacks: &Callbacks,
        input: P::Input,
        redactor: &Redactor,
    ) -> GateOutcome {
        let interpret = |_: &P::Input, verdict: &P::Answer| {
            if verdict.goes_on() {
                Next::Same
            } else {
                Next::Stop
            }
        };
        let mut asked = self.asked("");
        asked.retain(|hook| !hook.with_output_schema || P::has_output_schema(&input));
        let (done, _) = run(callbacks, asked, Arc::new(input), Arc::new(interpret)).await;
        let mut outcome = GateOutcome {
            decision: Decision::Allow,
            runs: Vec::new(),
        };
        for HookRun {
            hook,
            took,
            answer,
            asked: _,
            replaced: _,
        } in done
        {
            let feature = hook.feature.clone();
            let hook = hook.name.clone();
            let failed = answer.is_err();
            let decision = match answer {
                Ok(verdict) => signed(verdict.decision(), &feature, &hook, redactor),
                Err(problem) => signed(P::refusal(problem), &feature, &hook, redactor),
            };
            // A refusal is the last, and wins against an earlier question or wish to go on.
            if outcome.decision.allows() || decision.refuses() {
                outcome.decision = decision.clone();
            }
            outcome.runs.push(GateRun {
                feature,
                hook,
                ms: millis(took),
                decision,
                failed,
            });
        }
        outcome
    }
}

/// Prefixes the reason with feature and hook; cuts it to its bound and removes secrets and control characters.
fn signed(decision: Decision, feature: &FeatureId, hook: &str, redactor: &Redactor) -> Decision {
    let sign = |reason: String| {
        let reason = escape_line(
            &redactor.text(clamp(&reason)).replace('\n', " "),
            MAX_REASON,
        );
        format!("{feature} (gate `{hook}`): {reason}")
    };
    match decision {
        Decision::Allow | Decision::Retry { .. } => decision,
        Decision::Ask {
            question,
            expires_after_ms,
        } => Decision::Ask {
            question: sign(question),
            expires_after_ms,
        },
        Decision::Again { words } => {
            let words = sanitize_lines(&words, MAX_AGAIN_WORDS, redactor);
            // Without words there is nothing to go on with.
            if words.trim().is_empty() {
                Decision::Allow
            } else {
                Decision::Again { words }
            }
        }
        Decision::Refuse { reason } => Decision::Refuse {
            reason: sign(reason),
        },
        Decision::Invalid { reason } => Decision::Invalid {
            reason: sign(reason),
        },
        Decision::Abort { reason } => Decision::Abort {
            reason: sign(reason),
        },
        Decision::Pause { reason } => Decision::Pause {
            reason: sign(reason),
        },
    }
}

/// Checks the value that a transform returned, and returns it in canonical form.
pub(crate) type Recheck<I> = Arc<dyn Fn(I) -> Result<I, String> + Send + Sync>;

impl<P: Transform> HookChain<P> {
    /// Sorts the hooks into the order in which they are asked.
    fn arrange(&mut self) {
        let mut hooks = std::mem::take(&mut self.hooks);
        if P::OUTSIDE_IN {
            hooks.reverse();
        }
        self.hooks = arranged(hooks, |hook| HookPlace {
            feature: &hook.feature,
            before: &hook.before,
            after: &hook.after,
        });
    }

    async fn transform(
        asked: Vec<Arc<InstalledHook<P>>>,
        callbacks: &Callbacks,
        input: P::Input,
        recheck: Recheck<P::Input>,
        redactor: &Redactor,
    ) -> (Arc<P::Input>, Vec<Transformed>) {
        let mut at = P::digest(&input);
        let interpret = move |input: &P::Input, change: &P::Answer| match change {
            Change::Unchanged => Next::Same,
            Change::Replaced(value) => match recheck(P::with(input, value)) {
                Ok(input) if P::ANSWERS => Next::Last(Arc::new(input)),
                Ok(input) => Next::With(Arc::new(input)),
                Err(problem) => Next::Reject(format!("it returned an invalid value: {problem}")),
            },
        };
        let (done, last) = run(callbacks, asked, Arc::new(input), Arc::new(interpret)).await;
        let mut notes = Vec::new();
        for HookRun {
            hook,
            took,
            answer,
            asked,
            replaced,
        } in done
        {
            let withheld = hook.withholds && answer.is_err();
            let suspended_now = asked && hook.record_result(answer.is_err()) && !hook.withholds;
            let after = match (answer, replaced) {
                (Ok(_), None) => continue,
                (Ok(_), Some(input)) => Ok(P::digest(&input)),
                (Err(problem), _) => {
                    let problem = sanitize(&problem, MAX_PROBLEM, redactor);
                    let suffix = if suspended_now { SUSPENDED_SUFFIX } else { "" };
                    Err(format!("{problem}{suffix}"))
                }
            };
            let before = at.clone();
            if let Ok(after) = &after {
                at.clone_from(after);
            }
            let feature = hook.feature.clone();
            let hook = hook.name.clone();
            notes.push(Transformed {
                feature,
                hook,
                ms: millis(took),
                before,
                after,
                withheld,
            });
        }
        (last, notes)
    }
}

impl<P: Observe> HookChain<P> {
    pub(super) async fn tell(&self, callbacks: &Callbacks, input: P::Input) {
        let interpret = |_: &P::Input, (): &()| Next::Same;
        let (done, _) = run(
            callbacks,
            self.asked(""),
            Arc::new(input),
            Arc::new(interpret),
        )
        .await;
        for run in done {
            // A hook that was skipped did not fail.
            let _suspended_now = run.asked && run.hook.record_result(run.answer.is_err());
        }
    }
}

/// All hooks of one generation of the feature registry, with the queue of its observers. Built by install; the actor
/// calls it at each point.
#[derive(Default)]
pub struct HookRegistry {
    pub(super) chains: Chains,
    pub(super) observer_queue: ObserverQueue,
    redactor: Redactor,
}

/// Collects hooks in install order into a [`HookRegistry`]. Used by install, and by tests of hooks alone.
#[derive(Default)]
#[must_use]
pub struct HookRegistryBuilder {
    pub(super) chains: Chains,
    features: Vec<FeatureId>,
    redactor: Redactor,
}

impl HookRegistryBuilder {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a hook to the chain of its point.
    pub fn add<P: Point>(&mut self, mut hook: InstalledHook<P>) {
        hook.place = self
            .features
            .iter()
            .position(|known| *known == hook.feature)
            .unwrap_or(self.features.len());
        if hook.place == self.features.len() {
            self.features.push(hook.feature.clone());
        }
        P::chain_mut(self).push(hook);
    }

    /// Redacts secrets in the reasons and problems of hooks with `redactor`.
    pub fn redact(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }

    /// The registry with all hooks added so far.
    #[must_use]
    pub fn build(self) -> HookRegistry {
        let mut chains = self.chains;
        chains.tool_arguments.arrange();
        chains.tool_run.arrange();
        chains.tool_repeat.arrange();
        chains.tool_shape.arrange();
        chains.tool_outcome.arrange();
        HookRegistry {
            chains,
            observer_queue: ObserverQueue::default(),
            redactor: self.redactor,
        }
    }
}

impl HookRegistry {
    /// Whether this point has a hook that is called for `tool`; `tool` is empty at points without a tool.
    #[must_use]
    pub fn any<P: Point>(&self, tool: &str) -> bool {
        P::chain(self).any(tool)
    }

    /// Whether this point has a gate that is asked about an input with an output schema, or about one without.
    pub(crate) fn any_gate<P: Gate>(&self, has_output_schema: bool) -> bool {
        P::chain(self)
            .hooks
            .iter()
            .any(|hook| has_output_schema || !hook.with_output_schema)
    }

    /// Calls the gates of a point, in install order, until one refuses. Without gates nothing is allocated and `input`
    /// is not called.
    pub async fn decide<P: Gate>(
        &self,
        callbacks: &Callbacks,
        input: impl FnOnce() -> P::Input,
    ) -> GateOutcome {
        let chain = P::chain(self);
        if chain.hooks.is_empty() {
            return GateOutcome {
                decision: Decision::Allow,
                runs: Vec::new(),
            };
        }
        chain.decide(callbacks, input(), &self.redactor).await
    }

    /// What the [`ToolShape`](super::ToolShape) hooks for `tool` need.
    pub(crate) fn shaping(&self, tool: &str) -> Shaping {
        let asked = self.chains.tool_shape.asked(tool);
        match asked.iter().any(|hook| hook.withholds) {
            true => Shaping::MayWithhold,
            false if asked.is_empty() => Shaping::None,
            false => Shaping::Whole,
        }
    }

    /// Calls the transforms of a point, in install order; each gets the value that the one before left. `recheck`
    /// checks each replacement; one that it refuses counts as a failure of that transform, and the earlier value stays.
    pub(crate) async fn transform<P: Transform>(
        &self,
        callbacks: &Callbacks,
        tool: &str,
        input: P::Input,
        recheck: Recheck<P::Input>,
    ) -> (Arc<P::Input>, Vec<Transformed>) {
        self.transform_by(P::chain(self).asked(tool), callbacks, input, recheck)
            .await
    }

    /// As [`Self::transform`] at [`ToolShape`](super::ToolShape), without the hooks that only shorten. `answered_by` is the feature that answered in place of the
    /// tool, if one did.
    pub(crate) async fn shape(
        &self,
        callbacks: &Callbacks,
        input: ToolShapeView,
        recheck: Recheck<ToolShapeView>,
        answered_by: Option<&str>,
    ) -> (Arc<ToolShapeView>, Vec<Transformed>) {
        let Chains {
            tool_run,
            tool_shape,
            ..
        } = &self.chains;
        let by = tool_run
            .hooks
            .iter()
            .find(|hook| answered_by == Some(hook.feature.to_string().as_str()));
        let tool = &input.call.tool;
        let mut asked = by.map_or_else(
            || tool_shape.asked(tool),
            |hook| tool_shape.behind(tool, hook.place),
        );
        asked.retain(|hook| !hook.shortens);
        self.transform_by(asked, callbacks, input, recheck).await
    }

    /// Whether a hook would make results of this tool shorter.
    pub(crate) fn shortens(&self, tool: &str) -> bool {
        let hooks = &self.chains.tool_shape.hooks;
        hooks.iter().any(|hook| hook.shortens && hook.asked(tool))
    }

    /// Calls the hooks that [`Self::shape`] leaves out: those that only make the result shorter.
    pub(crate) async fn shorten(
        &self,
        callbacks: &Callbacks,
        input: ToolShapeView,
        recheck: Recheck<ToolShapeView>,
    ) -> (Arc<ToolShapeView>, Vec<Transformed>) {
        let mut asked = self.chains.tool_shape.asked(&input.call.tool);
        asked.retain(|hook| hook.shortens);
        self.transform_by(asked, callbacks, input, recheck).await
    }

    async fn transform_by<P: Transform>(
        &self,
        asked: Vec<Arc<InstalledHook<P>>>,
        callbacks: &Callbacks,
        input: P::Input,
        recheck: Recheck<P::Input>,
    ) -> (Arc<P::Input>, Vec<Transformed>) {
        let redactor = self.redactor.clone();
        let recheck: Recheck<P::Input> = Arc::new(move |input| {
            let input = recheck(input)?;
            let secret = P::secret(&input, &redactor);
            secret.map_or(Ok(()), |secret| Err(format!("it contains {secret}")))?;
            Ok(input)
        });
        HookChain::transform(asked, callbacks, input, recheck, &self.redactor).await
    }
}

impl std::fmt::Debug for HookRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookRegistry").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
