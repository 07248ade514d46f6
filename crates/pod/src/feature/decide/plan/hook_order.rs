//! The order in which planned hooks and enrichers are asked, and features whose transforms each have to be asked before the
//! other. Does not depend on what is installed.

use super::order;
use super::{Declared, InstallPlan, PlannedFeature, PlannedHook};
use crate::feature::decide::report::InstallOutcome;
use crate::feature::declare::contribution::Contribution;
use crate::feature::declare::diagnostic::{DiagnosticCode, FeatureDiagnostic};
use crate::feature::declare::enricher::EnricherDeclaration;
use crate::feature::declare::hook::HookDeclaration;
use crate::feature::declare::id::FeatureId;
use crate::feature::declare::tool::ToolDeclaration;
use crate::hook::{HookClass, HookPlace, HookPoint, arranged};
use std::collections::{BTreeMap, BTreeSet};

/// The features of cycles, each with its point and the cycle.
type HookCycles = BTreeMap<usize, (HookPoint, Vec<usize>)>;

impl InstallPlan {
    /// The features that are installed, in their order.
    fn in_order(&self) -> impl Iterator<Item = &PlannedFeature> {
        self.order.iter().filter_map(|id| {
            self.features
                .iter()
                .find(|planned| planned.feature_id == *id)
        })
    }

    /// The planned hooks of a point, in the order in which they are asked.
    #[must_use]
    pub fn hooks_at(&self, point: HookPoint) -> Vec<(&FeatureId, &PlannedHook)> {
        let hooks = self
            .in_order()
            .flat_map(|planned| planned.hooks.iter().map(|hook| (&planned.feature_id, hook)));
        let mut hooks: Vec<_> = hooks.filter(|(_, hook)| hook.point == point).collect();
        if point == HookPoint::ToolRun {
            hooks.reverse();
        }
        arranged(hooks, |(feature, hook)| HookPlace {
            feature,
            before: &hook.before,
            after: &hook.after,
        })
    }

    /// The planned enrichers of a tool, in the order in which they are asked.
    #[must_use]
    pub fn enrichers_of(&self, tool: &ToolDeclaration) -> Vec<(&FeatureId, &EnricherDeclaration)> {
        let enrichers = self.in_order().flat_map(|planned| {
            planned
                .enrichers
                .iter()
                .map(|enricher| (&planned.feature_id, enricher))
        });
        enrichers
            .filter(|(_, enricher)| enricher.means(&tool.name, tool.category.as_ref()))
            .collect()
    }
}

/// Skips every feature of a cycle.
pub(super) fn refuse_cycles(declared: &[&Declared], planned: &mut [PlannedFeature]) {
    for (at, (point, cycle)) in cycles(declared, planned) {
        let path = order::path(&cycle, |at| declared.get(at).map(|one| &one.descriptor.id));
        let Some(planned) = planned.get_mut(at) else {
            continue;
        };
        let id = &planned.feature_id;
        let message =
            format!("hooks of {id} at {point} are in a cycle, each asked after the next: {path}");
        let cycle = FeatureDiagnostic::new(DiagnosticCode::HookCycle, id, message);
        planned
            .diagnostics
            .push(cycle.remedied("change `before` or `after` of one", ""));
        planned.outcome = InstallOutcome::Skipped;
    }
}

/// The cycles among features that could be installed alone.
fn cycles(declared: &[&Declared], planned: &[PlannedFeature]) -> HookCycles {
    let live = declared
        .iter()
        .zip(planned)
        .enumerate()
        .filter(|(_, (_, planned))| planned.outcome.is_live());
    let hooks = live.flat_map(|(at, (one, planned))| {
        let possible = |hook: &&HookDeclaration| {
            hook.requests()
                .iter()
                .all(|needed| planned.grants.allows(needed))
        };
        one.descriptor
            .declared_hooks
            .iter()
            .filter(possible)
            .map(move |hook| (at, &one.descriptor.id, hook))
    });
    let transforms: Vec<_> = hooks
        .filter(|(_, _, hook)| hook.class == HookClass::Transform)
        .collect();
    let is_placed = |hook: &HookDeclaration| !(hook.before.is_empty() && hook.after.is_empty());
    let points: BTreeSet<HookPoint> = transforms
        .iter()
        .filter(|(_, _, hook)| is_placed(hook))
        .map(|(_, _, hook)| hook.point)
        .collect();
    let mut cycles = HookCycles::new();
    for point in points {
        let here: Vec<_> = transforms
            .iter()
            .filter(|(_, _, hook)| hook.point == point)
            .collect();
        let mut needs: order::Needs = vec![BTreeMap::new(); declared.len()];
        for (who, id, hook) in &here {
            for (whom, other_id, other) in &here {
                if other.place(other_id).precedes(&hook.place(id))
                    && let Some(needs) = needs.get_mut(*who)
                {
                    needs.insert(*whom, true);
                }
            }
        }
        for (at, cycle) in order::order(needs).cycles {
            cycles.entry(at).or_insert((point, cycle));
        }
    }
    cycles
}
