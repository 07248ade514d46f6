//! `builtin:loop-detect`: refuses the call that would go round in circles. Off until configured.
//!
//! Two rules. *Repeat*: the call is the `window`-th in a row of the same tool with the same arguments. *Cycle*: the
//! last calls are `window` rounds of the same two to four calls, and each round brought the same results. What it
//! remembers lives as long as the process.

use llm_worker::{CallId, ToolOutput};
use pod::feature::{FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule, HookKey};
use pod::hook::{Change, PreToolCall, ToolCallView, ToolOutcome, ToolOutcomeView, Verdict};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("loop-detect");

const GATE: HookKey<PreToolCall> = HookKey::new("loop-detect");
const RESULTS: HookKey<ToolOutcome> = HookKey::new("loop-detect-results");

/// The longest cycle that is looked for, in calls.
const PERIOD: usize = 4;

/// `[features."builtin:loop-detect"]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Rounds from which on the call is refused; 2 to 20.
    pub window: usize,
}

impl Default for Settings {
    /// Twice may be a second look; three times is a circle.
    fn default() -> Self {
        Self { window: 3 }
    }
}

/// Refusing calls that repeat without end.
#[derive(Debug)]
pub struct LoopDetect(Settings);

impl LoopDetect {
    /// With these settings.
    ///
    /// # Errors
    /// A value out of its bounds, by its key.
    pub fn new(settings: Settings) -> Result<Self, String> {
        match settings.window {
            2..=20 => Ok(Self(settings)),
            window => Err(format!("`window` is {window}; expected 2 to 20")),
        }
    }
}

/// What it declares, whatever its settings.
pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Loop detection")
        .version(env!("CARGO_PKG_VERSION"))
        .gate(&GATE)
        .transform(&RESULTS)
        .build()
}

impl FeatureModule for LoopDetect {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live { window: self.0.window, calls: Mutex::default() });
        ctx.hooks().gate(&GATE, &live, Live::judge)?;
        ctx.hooks().transform(&RESULTS, &live, Live::finished)?;
        Ok(())
    }
}

struct Live {
    window: usize,
    calls: Mutex<BTreeMap<CallId, Call>>,
}

/// What is remembered of a call.
struct Call {
    same: (String, Arc<str>),
    /// The result, once there is one; a refused call never has one.
    result: Option<String>,
}

impl Live {
    fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.insert(call.call, Call { same: (call.tool.clone(), call.arguments.clone()), result: None });
        while calls.len() > self.window * PERIOD {
            calls.pop_first();
        }
        let newest: Vec<&Call> = calls.values().rev().collect();
        let tool = &call.tool;
        if self.rounds(&newest, 1, false) {
            let times = self.window;
            return Verdict::deny(format!(
                "rule `repeat`: this is the {times}th {tool} in a row with the same arguments; \
                 use what it answered, change the arguments, or say what is missing"
            ));
        }
        match (2..=PERIOD).find(|&period| self.rounds(&newest, period, true)) {
            Some(period) => Verdict::deny(format!(
                "rule `cycle`: the same {period} calls went round {} times and nothing changed; \
                 try something else, or say what is missing",
                self.window
            )),
            None => Verdict::allow(),
        }
    }

    /// Whether the newest calls are `window` rounds of the same `period` calls, with the same results if asked.
    fn rounds(&self, newest: &[&Call], period: usize, results: bool) -> bool {
        let Some(span) = newest.get(..self.window * period) else { return false };
        let unchanged = |a: &Call, b: &Call| match (&a.result, &b.result) {
            (Some(a), Some(b)) => a == b,
            (None, _) | (_, None) => true,
        };
        let pairs = span.iter().zip(span.iter().skip(period));
        pairs.into_iter().all(|(a, b)| a.same == b.same && (!results || unchanged(a, b)))
    }

    fn finished(&self, view: &ToolOutcomeView) -> Change<ToolOutput> {
        let outcome = &view.outcome;
        // Summaries tell times; they count only where there is nothing else.
        let words = if outcome.content.is_empty() { &outcome.summary } else { &outcome.content };
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = calls.get_mut(&view.call.call) {
            call.result = Some(format!("{:?} {words}", outcome.status));
        }
        Change::Unchanged
    }
}
