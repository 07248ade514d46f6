//! `builtin:circuit-breaker`: refuses calls of a failing tool for a while. Off until configured.
//!
//! ```text
//!   closed ── `errors` in a row ──> open ── after `rest_s`, one call ──> trial ── success ──> closed
//!                                    ▲                                     │
//!                                    ├───────────────── error ─────────────┤
//!                                    └── rested ── no result at all ───────┘
//! ```
//!
//! Each tool has a breaker of its own. While a trial runs, other calls of its tool are refused, however long it takes.
//! A trial that ends without a result (cancelled, refused by another gate, cut off) is over at the next request to the
//! model; then the next call is the trial.
//!
//! Breakers are state of the session and outlive the process, so a rest is measured by the wall clock: no other clock
//! advances while no process runs. A clock that is set back restarts the rest; one that jumps ahead ends it early,
//! which costs one trial.

use crate::clock::Now;
use llm_worker::{CallId, ResultStatus, ToolOutput};
use pod::feature::{
    DurableState, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HookKey, StateKey,
};
use pod::hook::{
    Change, PreRequest, PreToolCall, RequestView, ToolCallView, ToolOutcome, ToolOutcomeView,
    Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("circuit-breaker");

const GATE: HookKey<PreToolCall> = HookKey::new("circuit-breaker");
const RESULTS: HookKey<ToolOutcome> = HookKey::new("circuit-breaker-results");
const REQUESTS: HookKey<PreRequest> = HookKey::new("circuit-breaker-requests");
const BREAKERS: StateKey<Breakers> = StateKey::new("breakers", 1);

/// The most tools whose errors are remembered; there are seldom more than some dozens of tools.
const MAX_TOOLS: usize = 128;

const MICROS: u64 = 1_000_000;

/// `[features."builtin:circuit-breaker"]`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Errors in a row that open the breaker of a tool; 1 to 100.
    #[schemars(range(min = 1, max = 100))]
    pub errors: u32,
    /// Seconds until one call may try again; 1 to 3600.
    #[schemars(range(min = 1, max = 3600))]
    pub rest_s: u64,
}

impl Default for Settings {
    /// Four errors happen to a model that is learning a tool.
    fn default() -> Self {
        Self {
            errors: 5,
            rest_s: 30,
        }
    }
}

/// The feature that refuses calls of a tool after `errors` consecutive failures, until a trial call succeeds.
pub struct CircuitBreaker {
    settings: Settings,
    now: Now,
}

impl CircuitBreaker {
    /// Creates the feature with these settings and this clock.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings, now: Now) -> Result<Self, String> {
        match settings {
            Settings {
                errors: 1..=100,
                rest_s: 1..=3600,
            } => Ok(Self { settings, now }),
            Settings {
                errors: 1..=100,
                rest_s,
            } => Err(format!("`rest_s` must be 1 to 3600, not {rest_s}")),
            Settings { errors, .. } => Err(format!("`errors` must be 1 to 100, not {errors}")),
        }
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Circuit breaker")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .gate(&GATE)
        .transform(&RESULTS)
        .gate(&REQUESTS)
        .state(&BREAKERS)
        .build()
}

impl FeatureModule for CircuitBreaker {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Live {
            settings: self.settings,
            now: Arc::clone(&self.now),
            breakers: ctx.state(&BREAKERS)?,
        };
        let live = Arc::new(live);
        ctx.hooks().gate(&GATE, &live, Live::judge)?;
        ctx.hooks().transform(&RESULTS, &live, Live::finished)?;
        ctx.hooks().gate(&REQUESTS, &live, Live::requested)?;
        Ok(())
    }
}

struct Live {
    settings: Settings,
    now: Now,
    breakers: DurableState<Breakers>,
}

/// The breakers by tool, without those that are closed and have no error.
type Breakers = BTreeMap<String, Breaker>;

/// The breaker of one tool. Times are microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Breaker {
    Closed { errors: u32 },
    Open { since_us: u64 },
    Trial { call: CallId },
}

/// An open breaker whose rest is over.
const RESTED: Breaker = Breaker::Open { since_us: 0 };

/// A breaker's decision on a call.
enum Said {
    Go,
    Rests { left_us: u64 },
    Tries(CallId),
}

impl Breaker {
    fn ask(&mut self, call: CallId, now_us: u64, rest_us: u64) -> Said {
        match self {
            Self::Closed { .. } => Said::Go,
            Self::Trial { call } => Said::Tries(*call),
            Self::Open { since_us } => {
                *since_us = now_us.min(*since_us);
                let left_us = rest_us.saturating_sub(now_us - *since_us);
                if left_us > 0 {
                    return Said::Rests { left_us };
                }
                *self = Self::Trial { call };
                Said::Go
            }
        }
    }

    /// The breaker after this call ended; `None` is closed without an error.
    fn after(&self, call: CallId, failed: bool, limit: u32, now_us: u64) -> Option<Self> {
        let opened = Self::Open { since_us: now_us };
        match self {
            Self::Closed { errors } if failed && errors + 1 >= limit => Some(opened),
            Self::Closed { errors } if failed => Some(Self::Closed { errors: errors + 1 }),
            Self::Closed { .. } => None,
            Self::Trial { call: trial } if *trial == call => failed.then_some(opened),
            // Calls that started before it opened do not count.
            Self::Open { .. } | Self::Trial { .. } => Some(self.clone()),
        }
    }
}

impl Live {
    fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        let breaker = self.breakers.newest().get(&call.tool).cloned();
        if call.by_person || matches!(breaker, None | Some(Breaker::Closed { .. })) {
            return Verdict::allow();
        }
        let now_us = self.now_us();
        let rest_us = self.settings.rest_s * MICROS;
        let mut said = None;
        // Not awaited: it is written with the call's verdict.
        let counted = self.breakers.update(|breakers| {
            let breaker = breakers.get_mut(&call.tool);
            said =
                Some(breaker.map_or(Said::Go, |breaker| breaker.ask(call.call, now_us, rest_us)));
        });
        let forgotten = counted.refused().is_some();
        drop(counted);
        let tool = &call.tool;
        let errors = self.settings.errors;
        match said {
            Some(Said::Go) if forgotten => Verdict::deny(
                "rule `memory`: its state cannot be updated now, so calls cannot be counted; try this call again",
            ),
            Some(Said::Go) => Verdict::allow(),
            Some(Said::Rests { left_us }) => Verdict::deny(format!(
                "rule `open`: {tool} failed {errors} times in a row and rests for another {} s; use another tool, or \
                 find out why it fails",
                left_us.div_ceil(MICROS)
            )),
            Some(Said::Tries(trial)) => Verdict::deny(format!(
                "rule `trial`: {tool} failed {errors} times in a row, and {trial} is the one call that tries whether it \
                 works again; wait for its result"
            )),
            None => Verdict::deny(
                "rule `memory`: its state is closed, so calls cannot be counted; continue in a new session",
            ),
        }
    }

    fn finished(&self, view: &ToolOutcomeView) -> Change<ToolOutput> {
        let failed = match view.outcome.status {
            // A person's own command says nothing of a model's.
            _ if view.call.by_person => return Change::Unchanged,
            ResultStatus::Ok => false,
            ResultStatus::Error => true,
            ResultStatus::Refused | ResultStatus::Cancelled | ResultStatus::Interrupted => {
                return Change::Unchanged;
            }
        };
        let tool = &view.call.tool;
        let call = view.call.call;
        if failed || self.breakers.newest().contains_key(tool) {
            let limit = self.settings.errors;
            let now_us = self.now_us();
            drop(self.breakers.update(|breakers| {
                let before = breakers
                    .remove(tool)
                    .unwrap_or(Breaker::Closed { errors: 0 });
                if let Some(after) = before.after(call, failed, limit, now_us) {
                    make_room(breakers);
                    breakers.insert(tool.clone(), after);
                }
            }));
        }
        Change::Unchanged
    }

    /// No call is open when the model is asked: a trial that is not over by now brought no result.
    fn requested(&self, _: &RequestView) -> Verdict<PreRequest> {
        let trial = |breaker: &Breaker| matches!(breaker, Breaker::Trial { .. });
        if self.breakers.newest().values().any(trial) {
            drop(self.breakers.update(|breakers| {
                breakers
                    .values_mut()
                    .filter(|breaker| trial(breaker))
                    .for_each(|breaker| *breaker = RESTED);
            }));
        }
        Verdict::allow()
    }

    fn now_us(&self) -> u64 {
        let since = (self.now)().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

/// Drops the least important breakers while there are too many: closed before open, few and old errors first.
fn make_room(breakers: &mut Breakers) {
    while breakers.len() >= MAX_TOOLS {
        let least = breakers.iter().min_by_key(|(_, breaker)| match breaker {
            Breaker::Closed { errors } => (0, u64::from(*errors)),
            Breaker::Open { since_us } => (1, *since_us),
            Breaker::Trial { .. } => (2, 0),
        });
        let Some(tool) = least.map(|(tool, _)| tool.clone()) else {
            return;
        };
        breakers.remove(&tool);
    }
}
