//! `[limits.pod]`: what a pod may use in all its turns together. A project's file can only lower it.

use super::file::PodLimitsConfig;
use super::{Source, Sourced, set};
use llm_worker::Cost;
use pod::control::PodLimits;
use std::time::Duration;

/// The limits, as far as there are any.
#[derive(Clone, Debug, Default)]
pub struct PodLimitSettings {
    pub max_steps: Option<Sourced<u64>>,
    /// Dollars.
    pub max_cost: Option<Sourced<f64>>,
    pub max_tokens: Option<Sourced<u64>>,
    pub max_wall_s: Option<Sourced<u64>>,
}

impl PodLimitSettings {
    /// Takes the keys of a file.
    pub(super) fn layer(&mut self, file: &PodLimitsConfig, at: &dyn Fn(&str) -> Source) {
        let PodLimitsConfig {
            max_steps,
            max_cost_usd,
            max_tokens,
            max_wall_s,
        } = *file;
        set(&mut self.max_steps, max_steps, || at("max_steps"));
        set(&mut self.max_cost, max_cost_usd, || at("max_cost_usd"));
        set(&mut self.max_tokens, max_tokens, || at("max_tokens"));
        set(&mut self.max_wall_s, max_wall_s, || at("max_wall_s"));
    }

    /// Takes the keys of a file that lower a limit, or set one where there is none.
    pub fn narrow(&mut self, file: &PodLimitsConfig, at: &dyn Fn(&str) -> Source) {
        let PodLimitsConfig {
            max_steps,
            max_cost_usd,
            max_tokens,
            max_wall_s,
        } = *file;
        let lower = PodLimitsConfig {
            max_steps: lower(self.max_steps.as_ref(), max_steps),
            // What is no amount is taken, too, and then refused where everything in force is checked.
            max_cost_usd: lower(self.max_cost.as_ref(), max_cost_usd),
            max_tokens: lower(self.max_tokens.as_ref(), max_tokens),
            max_wall_s: lower(self.max_wall_s.as_ref(), max_wall_s),
        };
        self.layer(&lower, at);
    }

    /// As the pod counts them.
    pub fn limits(&self) -> PodLimits {
        let Self {
            max_steps,
            max_cost,
            max_tokens,
            max_wall_s,
        } = self;
        PodLimits {
            max_steps: max_steps.as_ref().map(|steps| steps.value),
            max_cost: max_cost
                .as_ref()
                .and_then(|dollars| Cost::of_dollars(dollars.value)),
            max_tokens: max_tokens.as_ref().map(|tokens| tokens.value),
            max_wall: max_wall_s
                .as_ref()
                .map(|seconds| Duration::from_secs(seconds.value)),
        }
    }
}

/// The value of a file, unless it is as high as what is set.
fn lower<T: PartialOrd>(known: Option<&Sourced<T>>, value: Option<T>) -> Option<T> {
    value.filter(|value| !known.is_some_and(|known| *value >= known.value))
}
