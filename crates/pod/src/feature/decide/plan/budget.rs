//! Limits on all features together: what they add to the surface and to one hook point. Each feature has limits of its
//! own, but the sum goes into one record of the log. Does not depend on the policy.

use crate::feature::declare::diagnostic::{DiagnosticCode, FeatureDiagnostic};
use crate::feature::declare::id::FeatureId;
use crate::hook::{HookClass, HookPoint};
use std::collections::BTreeMap;

/// Limit on the JSON bytes of all tools and instructions. The rest of a system prompt must fit into the same record.
pub(crate) const MAX_SURFACE: usize = 768 * 1024;

/// Limit on transforms at one point: the record of a call has the effect of each.
pub(crate) const MAX_TRANSFORMS: usize = 128;

/// Limit on gates at one point: one batch of the log has their verdicts on each call of an answer.
pub(crate) const MAX_GATES: usize = 32;

/// Bytes around one tool in its record.
const AROUND: usize = 64;

/// The unused part of the budget.
pub(crate) struct PlanBudget {
    bytes: usize,
    hooks: BTreeMap<HookPoint, usize>,
}

/// The share of one feature.
#[derive(Default)]
pub(crate) struct FeatureDemand {
    bytes: usize,
    hooks: BTreeMap<HookPoint, usize>,
}

impl FeatureDemand {
    pub(crate) fn tool(&mut self, name: &str, description: &str, schema: &str) {
        self.bytes += AROUND
            + [name, description, schema]
                .into_iter()
                .map(written)
                .sum::<usize>();
    }

    /// The bytes that a tool has more than before.
    pub(crate) fn grown(&mut self, (description, schema): (&str, &str), before: (&str, &str)) {
        let after = written(description) + written(schema);
        let before = written(before.0) + written(before.1);
        self.bytes += after.saturating_sub(before);
    }

    pub(crate) fn instruction(&mut self, text: &str) {
        self.bytes += AROUND + written(text);
    }

    pub(crate) fn hook(&mut self, point: HookPoint) {
        *self.hooks.entry(point).or_default() += 1;
    }
}

impl PlanBudget {
    pub(crate) fn new() -> Self {
        Self {
            bytes: MAX_SURFACE,
            hooks: BTreeMap::new(),
        }
    }

    /// Reserves all that a feature needs, or nothing.
    pub(crate) fn take(
        &mut self,
        id: &FeatureId,
        demand: FeatureDemand,
    ) -> Result<(), Box<FeatureDiagnostic>> {
        let FeatureDemand { bytes, hooks } = demand;
        let full = |message| {
            let full = FeatureDiagnostic::new(DiagnosticCode::TooManyFeatures, id, message);
            Err(Box::new(
                full.remedied("disable a feature that is not needed", ""),
            ))
        };
        let Some(left) = self.bytes.checked_sub(bytes) else {
            let left = self.bytes;
            return full(format!(
                "the tools and instructions of {id} have {bytes} bytes, but only {left} of {MAX_SURFACE} bytes are left \
                 after the features before it"
            ));
        };
        let have = |point: &HookPoint| self.hooks.get(point).copied().unwrap_or_default();
        let over = |(point, more): (&HookPoint, &usize)| {
            let (class, most) = most(*point)?;
            (have(point) + more > most)
                .then(|| format!("{id} has {class} at {point}, where the limit is {most}"))
        };
        if let Some(over) = hooks.iter().find_map(over) {
            return full(format!("{over} for all features together"));
        }
        self.bytes = left;
        for (point, more) in hooks {
            *self.hooks.entry(point).or_default() += more;
        }
        Ok(())
    }
}

/// Limit on hooks at a point; none for observers.
fn most(point: HookPoint) -> Option<(&'static str, usize)> {
    match point.class() {
        HookClass::Gate => Some(("gates", MAX_GATES)),
        HookClass::Transform => Some(("transforms", MAX_TRANSFORMS)),
        HookClass::Observe => None,
    }
}

/// Bytes of a text as a JSON string.
fn written(text: &str) -> usize {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(byte).sum()
}
