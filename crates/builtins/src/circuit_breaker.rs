//! `builtin:circuit-breaker`: gives a failing tool a rest. Off until configured.
//!
//! ```text
//!   closed ── `errors` in a row ──> open ── after `rest_s`, one call ──> trial ── success ──> closed
//!                                    ▲                                     │
//!                                    └───────────────── error ─────────────┘
//! ```
//!
//! Each tool has a breaker of its own. What it remembers lives as long as the process.

use llm_worker::{CallId, ResultStatus, ToolOutput};
use pod::feature::{FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule, HookKey};
use pod::hook::{Change, PreToolCall, ToolCallView, ToolOutcome, ToolOutcomeView, Verdict};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("circuit-breaker");

const GATE: HookKey<PreToolCall> = HookKey::new("circuit-breaker");
const RESULTS: HookKey<ToolOutcome> = HookKey::new("circuit-breaker-results");

/// Time since some fixed moment; it never goes back.
pub type Elapsed = Arc<dyn Fn() -> Duration + Send + Sync>;

/// `[features."builtin:circuit-breaker"]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Errors in a row that open the breaker of a tool; 1 to 100.
    pub errors: u32,
    /// Seconds until one call may try again; 1 to 3600.
    pub rest_s: u64,
}

impl Default for Settings {
    /// Four errors happen to a model that is learning a tool.
    fn default() -> Self {
        Self { errors: 5, rest_s: 30 }
    }
}

/// Refusing calls of a tool that fails again and again.
pub struct CircuitBreaker {
    settings: Settings,
    clock: Elapsed,
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl CircuitBreaker {
    /// With these settings and this clock.
    ///
    /// # Errors
    /// A value out of its bounds, by its key.
    pub fn new(settings: Settings, clock: Elapsed) -> Result<Self, String> {
        match settings {
            Settings { errors: 1..=100, rest_s: 1..=3600 } => Ok(Self { settings, clock }),
            Settings { errors: 1..=100, rest_s } => Err(format!("`rest_s` is {rest_s}; expected 1 to 3600")),
            Settings { errors, .. } => Err(format!("`errors` is {errors}; expected 1 to 100")),
        }
    }
}

/// What it declares, whatever its settings.
pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Circuit breaker")
        .version(env!("CARGO_PKG_VERSION"))
        .gate(&GATE)
        .transform(&RESULTS)
        .build()
}

impl FeatureModule for CircuitBreaker {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Live { settings: self.settings, clock: Arc::clone(&self.clock), breakers: Mutex::default() };
        let live = Arc::new(live);
        ctx.hooks().gate(&GATE, &live, Live::judge)?;
        ctx.hooks().transform(&RESULTS, &live, Live::finished)?;
        Ok(())
    }
}

struct Live {
    settings: Settings,
    clock: Elapsed,
    breakers: Mutex<BTreeMap<String, Breaker>>,
}

/// The breaker of one tool.
enum Breaker {
    Closed { errors: u32 },
    Open { since: Duration },
    Trial { call: CallId, since: Duration },
}

impl Live {
    fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        let now = (self.clock)();
        let rest = Duration::from_secs(self.settings.rest_s);
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(breaker) = breakers.get_mut(&call.tool) else { return Verdict::allow() };
        let since = match breaker {
            Breaker::Closed { .. } => return Verdict::allow(),
            // A trial that was refused by somebody else, or cancelled, never ends; then the next one tries.
            Breaker::Open { since } | Breaker::Trial { since, .. } => *since,
        };
        let left = rest.saturating_sub(now.saturating_sub(since));
        if left.is_zero() {
            *breaker = Breaker::Trial { call: call.call, since: now };
            return Verdict::allow();
        }
        let (tool, errors, seconds) = (&call.tool, self.settings.errors, left.as_secs_f64().ceil());
        Verdict::deny(format!(
            "rule `open`: {tool} failed {errors} times in a row and rests for another {seconds} s; \
             use another tool, or find out why it fails"
        ))
    }

    fn finished(&self, view: &ToolOutcomeView) -> Change<ToolOutput> {
        let now = (self.clock)();
        let failed = match view.outcome.status {
            ResultStatus::Ok => false,
            ResultStatus::Error => true,
            ResultStatus::Refused | ResultStatus::Cancelled | ResultStatus::Interrupted => return Change::Unchanged,
        };
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let breaker = breakers.entry(view.call.tool.clone()).or_insert(Breaker::Closed { errors: 0 });
        let next = match breaker {
            Breaker::Closed { .. } if !failed => Breaker::Closed { errors: 0 },
            Breaker::Closed { errors } if *errors + 1 < self.settings.errors => Breaker::Closed { errors: *errors + 1 },
            Breaker::Closed { .. } => Breaker::Open { since: now },
            Breaker::Trial { call, .. } if *call == view.call.call && failed => Breaker::Open { since: now },
            Breaker::Trial { call, .. } if *call == view.call.call => Breaker::Closed { errors: 0 },
            // Calls that began before it opened say nothing new.
            Breaker::Open { .. } | Breaker::Trial { .. } => return Change::Unchanged,
        };
        *breaker = next;
        Change::Unchanged
    }
}
