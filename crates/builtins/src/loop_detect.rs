//! `builtin:loop-detect`: refuses a call that repeats earlier calls without progress. Off until configured.
//!
//! Two rules. *Repeat*: the call is the `window`-th in a row of the same tool with the same arguments, whatever they
//! answered. *Cycle*: with this call, the last calls are `window` rounds of the same two to four, and the results of
//! the rounds before did not change. A call that the host refused before it reached this feature counts as a different
//! call. An input of a person ends a row, and a person's own commands are in none. A model that goes on all the same has
//! its turn ended. So has one that makes the same calls again and again, one of which the host refuses each time.
//!
//! Its memory is state of the session: digests of the last calls and of their results. A restored pod continues to
//! count, calls that were cut off included.

use llm_worker::{CallId, ToolOutput};
use pod::feature::{
    DurableState, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HookKey, StateKey,
};
use pod::hook::{
    AnswerView, Change, PostAssistant, PreToolCall, ToolCallView, ToolOutcome, ToolOutcomeView,
    Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("loop-detect");

const GATE: HookKey<PreToolCall> = HookKey::new("loop-detect");
const ANSWERS: HookKey<PostAssistant> = HookKey::new("loop-detect-answers");
const RESULTS: HookKey<ToolOutcome> = HookKey::new("loop-detect-results");
const PAST: StateKey<Past> = StateKey::new("past", 1);

/// The longest cycle that is detected, in calls.
const PERIOD: usize = 4;

/// Hexadecimal digits of a digest that are kept: a collision has no security effect.
const DIGITS: usize = 16;

/// The refusal that ends the turn: the tenth, with less than the remembered calls between two of them.
const MAX_REFUSALS: u32 = 10;

/// `[features."builtin:loop-detect"]`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Rounds from which on the call is refused; 2 to 20.
    #[schemars(range(min = 2, max = 20))]
    pub window: usize,
}

impl Default for Settings {
    /// Two rounds may be a deliberate repetition; three are a loop.
    fn default() -> Self {
        Self { window: 3 }
    }
}

/// The feature that refuses a call that repeats or cycles.
#[derive(Debug)]
pub struct LoopDetect(Settings);

impl LoopDetect {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings) -> Result<Self, String> {
        match settings.window {
            2..=20 => Ok(Self(settings)),
            window => Err(format!("`window` must be 2 to 20, not {window}")),
        }
    }
}

pub(crate) fn declared() -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Loop detection")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .gate(&GATE)
        .gate(&ANSWERS)
        .transform(&RESULTS)
        .state(&PAST)
        .build()
}

impl FeatureModule for LoopDetect {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            window: self.0.window,
            past: ctx.state(&PAST)?,
            answers: Mutex::default(),
        });
        ctx.hooks().gate(&GATE, &live, Live::judge)?;
        ctx.hooks().gate(&ANSWERS, &live, Live::review)?;
        ctx.hooks().transform(&RESULTS, &live, Live::finished)?;
        Ok(())
    }
}

struct Live {
    window: usize,
    past: DurableState<Past>,
    answers: Mutex<Answers>,
}

/// The last answers with calls of one turn, newest first.
#[derive(Default)]
struct Answers {
    turn: u64,
    last: VecDeque<Proposed>,
}

struct Proposed {
    /// Digest of its calls as the model wrote them.
    same: String,
    /// Those of its calls that have not reached the gate.
    unheard: usize,
}

/// The last calls.
type Past = BTreeMap<CallId, Seen>;

/// The digests that are remembered of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seen {
    /// Digest of its tool and arguments.
    same: String,
    /// Absent while it runs, and for a call that was cut off or refused by another gate.
    #[serde(rename = "came", default, skip_serializing_if = "Option::is_none")]
    ending: Option<CallEnding>,
    /// The newest input of a person before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<u64>,
    /// How many calls were refused so far, if one of the remembered ones was.
    #[serde(default, skip_serializing_if = "is_zero")]
    refused: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallEnding {
    /// Digest of the result.
    Answered(String),
    /// Refused here.
    Refused,
}

impl Live {
    fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        if call.by_person {
            return Verdict::allow();
        }
        if let Some(newest) = self
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .last
            .front_mut()
        {
            newest.unheard = newest.unheard.saturating_sub(1);
        }
        let same = digest([&call.tool, &meant(call)]);
        let mut circle = None;
        let mut is_last = false;
        // Not awaited: it is written with the call's verdict.
        let counted = self.past.update(|past| {
            let last = past
                .values()
                .next_back()
                .map(|last| (last.input, last.refused));
            let (input, refused) = last.unwrap_or_default();
            if call.input.is_some() && call.input != input {
                past.clear();
            }
            let is_refused = past
                .values()
                .any(|seen| seen.ending == Some(CallEnding::Refused));
            let refused = if is_refused { refused } else { 0 };
            past.insert(
                call.call,
                Seen {
                    same,
                    ending: None,
                    input: call.input.or(input),
                    refused,
                },
            );
            while past.len() > self.window * PERIOD {
                past.pop_first();
            }
            let found = closes(past, self.window);
            if let (Some(_), Some(seen)) = (found, past.get_mut(&call.call)) {
                seen.ending = Some(CallEnding::Refused);
                seen.refused += 1;
                is_last = seen.refused >= MAX_REFUSALS;
            }
            circle = Some(found);
        });
        let forgotten = counted.refused().is_some();
        drop(counted);
        let tool = &call.tool;
        let times = self.window;
        match circle {
            Some(None) if forgotten => Verdict::deny(
                "rule `memory`: its state cannot be updated now, so calls cannot be counted; try this call again",
            ),
            Some(None) => Verdict::allow(),
            Some(Some(_)) if is_last => Verdict::abort(format!(
                "rule `repeat`: {MAX_REFUSALS} repeated calls were refused, the last one of {tool}, and the model made more of them"
            )),
            Some(Some(1)) => Verdict::deny(format!(
                "rule `repeat`: this is call {times} of {tool} in a row with the same arguments; use what it answered, \
                 change the arguments, or say what is missing"
            )),
            Some(Some(period)) => Verdict::deny(format!(
                "rule `cycle`: the same {period} calls went round {times} times and nothing changed; try something else, \
                 or say what is missing"
            )),
            None => Verdict::deny(
                "rule `memory`: its state is closed, so calls cannot be counted; continue in a new session",
            ),
        }
    }

    /// Ends the turn of a model that repeats calls which never come to the gate.
    fn review(&self, view: &AnswerView) -> Verdict<PostAssistant> {
        if view.calls.is_empty() {
            return Verdict::allow();
        }
        let calls: Vec<_> = view
            .calls
            .iter()
            .map(|call| (&call.tool, without_description(&call.arguments)))
            .collect();
        let newest = Proposed {
            same: digest([&format!("{calls:?}"), ""]),
            unheard: calls.len(),
        };
        let rounds = self.window + MAX_REFUSALS as usize - 1;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.turn != view.turn {
            *answers = Answers {
                turn: view.turn,
                ..Answers::default()
            };
        }
        let last = &mut answers.last;
        last.push_front(newest);
        last.truncate(rounds * PERIOD);
        let repeats = |period: usize| {
            let mut pairs = last
                .iter()
                .zip(last.iter().skip(period))
                .take((rounds - 1) * period);
            // Nobody knows yet what becomes of the newest.
            last.len() >= rounds * period
                && last
                    .iter()
                    .skip(1)
                    .take(period)
                    .any(|answer| answer.unheard > 0)
                && pairs.all(|(later, earlier)| later.same == earlier.same)
        };
        match (1..=PERIOD).any(repeats) {
            true => Verdict::abort(format!(
                "rule `repeat`: the model made the same calls {rounds} times, and one of them was refused each time"
            )),
            false => Verdict::allow(),
        }
    }

    fn finished(&self, view: &ToolOutcomeView) -> Change<ToolOutput> {
        let outcome = &view.outcome;
        // Summaries may contain durations; they count only if the content is empty.
        let words = if outcome.content.is_empty() {
            &outcome.summary
        } else {
            &outcome.content
        };
        let ending = CallEnding::Answered(digest([&format!("{:?}", outcome.status), words]));
        drop(self.past.update(|past| {
            if let Some(seen) = past.get_mut(&view.call.call) {
                seen.ending = Some(ending);
            }
        }));
        Change::Unchanged
    }
}

/// The arguments without the words about a command, which differ each time.
fn meant(call: &ToolCallView) -> Cow<'_, str> {
    match call.touches.iter().any(|touch| touch.command().is_some()) {
        true => without_description(&call.arguments),
        false => Cow::Borrowed(&call.arguments),
    }
}

fn without_description(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(mut fields)) => {
            fields.remove("description");
            Value::Object(fields).to_string().into()
        }
        _ => Cow::Borrowed(arguments),
    }
}

/// The period of the circle that the newest call closes, if it closes one.
fn closes(past: &Past, window: usize) -> Option<usize> {
    let newest: Vec<(u64, &Seen)> = past
        .iter()
        .rev()
        .map(|(call, seen)| (call.number(), seen))
        .collect();
    (1..=PERIOD).find(|&period| goes_round(&newest, window, period))
}

/// Whether the newest calls are `window` rounds of the same `period` calls, nothing in between.
fn goes_round(newest: &[(u64, &Seen)], window: usize, period: usize) -> bool {
    let Some(span @ [(last, _), .., (first, _)]) = newest.get(..window * period) else {
        return false;
    };
    let dense = last - first + 1 == span.len() as u64;
    let pairs = span.iter().zip(span.iter().skip(period)).enumerate();
    dense
        && pairs.into_iter().all(|(at, ((_, later), (_, earlier)))| {
            later.same == earlier.same && (period == 1 || unchanged(at < period, later, earlier))
        })
}

/// Whether two calls are known to have the same result; a call of the newest round may still run.
fn unchanged(newest: bool, later: &Seen, earlier: &Seen) -> bool {
    match (&later.ending, &earlier.ending) {
        (None, Some(_)) => newest,
        (Some(CallEnding::Answered(later)), Some(CallEnding::Answered(earlier))) => {
            later == earlier
        }
        (Some(CallEnding::Refused), Some(_)) | (Some(_), Some(CallEnding::Refused)) => true,
        (_, None) => false,
    }
}

fn digest(parts: [&str; 2]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher
            .update(&(part.len() as u64).to_le_bytes())
            .update(part.as_bytes());
    }
    hasher.finalize().to_hex().chars().take(DIGITS).collect()
}
