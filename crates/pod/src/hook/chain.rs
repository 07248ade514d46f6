//! The hooks of one point in install order, and how their answers combine. It knows no registry of features and no
//! actor.

use super::limits::{DEFAULT_DEADLINE, MAX_CONSECUTIVE_FAILURES};
use super::observe::ObserverQueue;
use super::run::{HookRun, Next, run};
use super::typed::{Chains, Gate, Observe, Point, Transform};
use super::verdict::{Change, MAX_REASON};
use crate::feature::{FeatureId, clamp, escape_line, sanitize};
use crate::foreign::Callbacks;
use crate::record::Decision;
use async_trait::async_trait;
use authority::{Door, Redactor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// What is asked or told at a point.
#[async_trait]
pub trait Hook<P: Point>: Send + Sync + 'static {
    /// Called once for each event of the point, on a callback thread.
    async fn call(&self, input: &P::Input) -> P::Answer;
}

#[async_trait]
impl<P: Point, F: Fn(&P::Input) -> P::Answer + Send + Sync + 'static> Hook<P> for F {
    async fn call(&self, input: &P::Input) -> P::Answer {
        self(input)
    }
}

/// Longest problem with what a transform answered, in bytes; a longer one is cut.
const MAX_PROBLEM: usize = 512;

/// Appended to the recorded problem of the failure that suspends a transform.
const SUSPENDED_SUFFIX: &str = "; after 3 failures in a row it is not asked again";
const _: () = assert!(MAX_CONSECUTIVE_FAILURES == 3, "the text above names the number");

/// One installed hook.
pub struct InstalledHook<P: Point> {
    pub feature: FeatureId,
    pub name: String,
    pub deadline: Duration,
    /// The tools it is asked about; `*` is any. Means nothing where no tool is at hand.
    pub tools: Vec<String>,
    pub code: Arc<dyn Hook<P>>,
    /// Revocation guards: shut when a grant that it depends on is revoked.
    pub(crate) doors: Vec<Arc<Door>>,
    consecutive_failures: AtomicU32,
    abandoned: AtomicUsize,
}

impl<P: Point> InstalledHook<P> {
    /// A hook about every tool, with [`DEFAULT_DEADLINE`].
    #[must_use]
    pub fn new(feature: FeatureId, name: impl Into<String>, code: Arc<dyn Hook<P>>) -> Self {
        let (consecutive_failures, abandoned) = (AtomicU32::new(0), AtomicUsize::new(0));
        Self {
            feature,
            name: name.into(),
            deadline: DEFAULT_DEADLINE,
            tools: vec!["*".to_owned()],
            code,
            doors: Vec::new(),
            consecutive_failures,
            abandoned,
        }
    }

    fn asked(&self, tool: &str) -> bool {
        // Failures of a gate are not counted: a gate is never suspended.
        let suspended = self.consecutive_failures.load(Ordering::Relaxed) >= MAX_CONSECUTIVE_FAILURES;
        !suspended && (tool.is_empty() || self.tools.iter().any(|known| known == "*" || known == tool))
    }

    /// Counts a call of this hook whose thread was abandoned.
    pub(super) fn call_abandoned(&self) {
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }

    /// An abandoned call returned after all.
    pub(super) fn call_returned(&self) {
        // `Err`: the call had not been counted as abandoned.
        self.abandoned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |abandoned| abandoned.checked_sub(1)).ok();
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
            self.consecutive_failures.fetch_add(1, Ordering::Relaxed) + 1 == MAX_CONSECUTIVE_FAILURES
        } else {
            self.consecutive_failures.store(0, Ordering::Relaxed);
            false
        }
    }
}

/// The hooks of one point, in install order.
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
        Self { hooks: self.hooks.clone() }
    }
}

/// The result of asking a chain of gates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct GateOutcome {
    /// The first refusal, or `Allow` when there was none.
    pub decision: Decision,
    /// Every gate that was asked, in order; the last one made the decision when that is a refusal.
    pub runs: Vec<GateRun>,
}

/// One gate that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateRun {
    pub feature: FeatureId,
    pub hook: String,
    /// Milliseconds until it answered or was given up.
    pub ms: u64,
    /// What it decided, or what its failure counts as; a reason names feature and hook.
    pub decision: Decision,
    /// It panicked, or did not answer in time.
    pub failed: bool,
}

/// What one transform did, or failed to do. One that left the value alone is not mentioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformed {
    pub feature: FeatureId,
    pub hook: String,
    /// Milliseconds until it answered or was given up.
    pub ms: u64,
    /// BLAKE3 of the value before, hex.
    pub before: String,
    /// BLAKE3 of the value after, hex, or why the value before was kept.
    pub after: Result<String, String>,
}

impl<P: Point> HookChain<P> {
    pub(super) fn push(&mut self, hook: InstalledHook<P>) {
        self.hooks.push(Arc::new(hook));
    }

    /// Whether somebody is asked about this tool.
    fn any(&self, tool: &str) -> bool {
        self.hooks.iter().any(|hook| hook.asked(tool))
    }

    fn asked(&self, tool: &str) -> Vec<Arc<InstalledHook<P>>> {
        self.hooks.iter().filter(|hook| hook.asked(tool)).cloned().collect()
    }
}

impl<P: Gate> HookChain<P> {
    async fn decide(&self, callbacks: &Callbacks, input: P::Input, redactor: &Redactor) -> GateOutcome {
        let interpret = |_: &P::Input, verdict: &P::Answer| if verdict.allows() { Next::Same } else { Next::Stop };
        let (done, _) = run(callbacks, self.asked(""), Arc::new(input), Arc::new(interpret)).await;
        let mut outcome = GateOutcome { decision: Decision::Allow, runs: Vec::new() };
        for HookRun { hook, took, answer, asked: _, replaced: _ } in done {
            let (feature, hook) = (hook.feature.clone(), hook.name.clone());
            let failed = answer.is_err();
            let decision = match answer {
                Ok(verdict) => signed(verdict.decision(), &feature, &hook, redactor),
                Err(problem) => signed(P::refusal(problem), &feature, &hook, redactor),
            };
            if outcome.decision.allows() {
                outcome.decision = decision.clone();
            }
            outcome.runs.push(GateRun { feature, hook, ms: millis(took), decision, failed });
        }
        outcome
    }
}

/// Puts feature and hook in front of the reason, which is bounded, without secrets and without control characters.
fn signed(decision: Decision, feature: &FeatureId, hook: &str, redactor: &Redactor) -> Decision {
    let sign = |reason: String| {
        let reason = escape_line(&redactor.text(clamp(&reason)).replace('\n', " "), MAX_REASON);
        format!("{feature} (gate `{hook}`): {reason}")
    };
    match decision {
        Decision::Allow => Decision::Allow,
        Decision::Refuse { reason } => Decision::Refuse { reason: sign(reason) },
        Decision::Invalid { reason } => Decision::Invalid { reason: sign(reason) },
        Decision::Abort { reason } => Decision::Abort { reason: sign(reason) },
        Decision::Pause { reason } => Decision::Pause { reason: sign(reason) },
    }
}

/// Checks the value that a transform returned, and returns it in canonical form.
pub(crate) type Recheck<I> = Arc<dyn Fn(I) -> Result<I, String> + Send + Sync>;

impl<P: Transform> HookChain<P> {
    async fn transform(
        &self,
        callbacks: &Callbacks,
        tool: &str,
        input: P::Input,
        recheck: Recheck<P::Input>,
        redactor: &Redactor,
    ) -> (Arc<P::Input>, Vec<Transformed>) {
        let mut at = P::digest(&input);
        let interpret = move |input: &P::Input, change: &P::Answer| match change {
            Change::Unchanged => Next::Same,
            Change::Replaced(value) => match recheck(P::with(input, value)) {
                Ok(input) => Next::With(Arc::new(input)),
                Err(problem) => Next::Reject(format!("it answered a value that does not fit: {problem}")),
            },
        };
        let (done, last) = run(callbacks, self.asked(tool), Arc::new(input), Arc::new(interpret)).await;
        let mut notes = Vec::new();
        for HookRun { hook, took, answer, asked, replaced } in done {
            let suspended_now = asked && hook.record_result(answer.is_err());
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
            let (feature, hook) = (hook.feature.clone(), hook.name.clone());
            notes.push(Transformed { feature, hook, ms: millis(took), before, after });
        }
        (last, notes)
    }
}

impl<P: Observe> HookChain<P> {
    pub(super) async fn tell(&self, callbacks: &Callbacks, input: P::Input) {
        let interpret = |_: &P::Input, (): &()| Next::Same;
        let (done, _) = run(callbacks, self.asked(""), Arc::new(input), Arc::new(interpret)).await;
        for run in done {
            // A hook that was not asked did not fail.
            let _suspended_now = run.asked && run.hook.record_result(run.answer.is_err());
        }
    }
}

/// Every hook of one generation.
#[derive(Default)]
pub struct HookRegistry {
    pub(super) chains: Chains,
    pub(super) observer_queue: ObserverQueue,
    redactor: Redactor,
}

/// Collects hooks in install order.
#[derive(Default)]
#[must_use]
pub struct HookRegistryBuilder {
    pub(super) chains: Chains,
    redactor: Redactor,
}

impl HookRegistryBuilder {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook behind those of its point.
    pub fn add<P: Point>(&mut self, hook: InstalledHook<P>) {
        P::chain_mut(self).push(hook);
    }

    /// Keeps secrets out of what hooks say.
    pub fn redact(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }

    /// The hooks as they are.
    #[must_use]
    pub fn build(self) -> HookRegistry {
        HookRegistry { chains: self.chains, observer_queue: ObserverQueue::default(), redactor: self.redactor }
    }
}

impl HookRegistry {
    /// Whether anybody stands at this point and is asked about this tool; the tool is empty where none is at hand.
    #[must_use]
    pub fn any<P: Point>(&self, tool: &str) -> bool {
        P::chain(self).any(tool)
    }

    /// Asks the gates of a point, in install order, until one refuses. Without gates nothing is allocated and
    /// `input` is not called.
    pub async fn decide<P: Gate>(&self, callbacks: &Callbacks, input: impl FnOnce() -> P::Input) -> GateOutcome {
        let chain = P::chain(self);
        if chain.hooks.is_empty() {
            return GateOutcome { decision: Decision::Allow, runs: Vec::new() };
        }
        chain.decide(callbacks, input(), &self.redactor).await
    }

    /// Lets the transforms of a point change a value, in install order. `recheck` checks each replacement; what it
    /// refuses counts as a failure of that transform, and the value before stays.
    pub(crate) async fn transform<P: Transform>(
        &self,
        callbacks: &Callbacks,
        tool: &str,
        input: P::Input,
        recheck: Recheck<P::Input>,
    ) -> (Arc<P::Input>, Vec<Transformed>) {
        let redactor = self.redactor.clone();
        let recheck: Recheck<P::Input> = Arc::new(move |input| {
            let input = recheck(input)?;
            let secret = P::secret(&input, &redactor);
            secret.map_or(Ok(()), |secret| Err(format!("it holds {secret}")))?;
            Ok(input)
        });
        P::chain(self).transform(callbacks, tool, input, recheck, &self.redactor).await
    }
}

impl std::fmt::Debug for HookRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookRegistry").finish_non_exhaustive()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
