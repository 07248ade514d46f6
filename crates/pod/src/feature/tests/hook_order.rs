//! The places of transforms: what a cycle does to a plan, and what is no cycle.

use super::rig::*;
use crate::feature::*;
use crate::hook::{HookPoint, ToolOutcome, ToolRun, ToolShape};

const FIRST: HookKey<ToolShape> = HookKey::new("first").before(&["user:b"]);
const LATER: HookKey<ToolShape> = HookKey::new("later").after(&["user:b"]);
const EARLIER: HookKey<ToolShape> = HookKey::new("earlier").before(&["user:a", "user:gone"]);
const ELSEWHERE: HookKey<ToolOutcome> = HookKey::new("elsewhere").before(&["user:a"]);

fn all(ids: &[&str]) -> CapabilityPolicy {
    let held = [
        HostCapability::hook::<ToolShape>(),
        HostCapability::hook::<ToolOutcome>(),
        HostCapability::ANY_RESULT,
    ];
    let grants = ids
        .iter()
        .flat_map(|text| held.iter().map(|held| (id(text), held.clone())));
    grants.fold(CapabilityPolicy::nothing(), |policy, (id, held)| {
        policy.grant(id, held, "default")
    })
}

/// The outcomes and the first message of each feature.
fn planned(
    policy: CapabilityPolicy,
    a: FeatureDescriptorBuilder,
    b: FeatureDescriptorBuilder,
) -> Vec<(bool, String)> {
    let modules = vec![with(a.build(), |_| Ok(())), with(b.build(), |_| Ok(()))];
    let plan = build(policy, modules).plan();
    let told = |feature: &PlannedFeature| {
        feature
            .diagnostics
            .first()
            .map(|d| d.message.clone())
            .unwrap_or_default()
    };
    plan.features
        .iter()
        .map(|feature| (feature.outcome.is_live(), told(feature)))
        .collect()
}

#[test]
fn a_cycle_of_transforms_is_an_error_of_the_plan() {
    let a = || declaring("user:a", &[]);
    let b = || declaring("user:b", &[]);
    let both = || all(&["user:a", "user:b"]);
    let cycle = planned(both(), a().transform(&FIRST), b().transform(&EARLIER));
    for (live, told) in &cycle {
        assert!(
            !live && told.contains("at ToolShape") && told.contains("user:a → user:b → user:a"),
            "{told}"
        );
    }
    let fine = [(true, String::new()), (true, String::new())];
    // Both say the same; at different points there is no order; without its grant a hook has no place.
    assert_eq!(
        planned(both(), a().transform(&LATER), b().transform(&EARLIER)),
        fine
    );
    assert_eq!(
        planned(both(), a().transform(&FIRST), b().transform(&ELSEWHERE)),
        fine
    );
    let half = planned(
        all(&["user:a"]),
        a().transform(&FIRST),
        b().transform(&EARLIER),
    );
    assert!(half.iter().all(|(live, _)| *live), "{half:?}");
}

// What a plan says is what a chain does: both sort by the same rule.
#[test]
fn a_plan_names_hooks_in_the_order_of_asking() {
    const RUN: HookKey<ToolRun> = HookKey::new("run");
    let run = |id: &str| declaring(id, &[]).transform(&RUN);
    let held = [
        HostCapability::hook::<ToolRun>(),
        HostCapability::ANY_ANSWER,
    ];
    let policy = ["user:a", "user:b"]
        .iter()
        .flat_map(|text| held.iter().map(|held| (id(text), held.clone())));
    let policy = policy.fold(all(&["user:a", "user:b"]), |policy, (id, held)| {
        policy.grant(id, held, "default")
    });
    let modules = vec![
        with(run("user:a").transform(&LATER).build(), |_| Ok(())),
        with(run("user:b").transform(&EARLIER).build(), |_| Ok(())),
    ];
    let plan = build(policy, modules).plan();
    let names = |point| {
        plan.hooks_at(point)
            .iter()
            .map(|(id, _)| id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(HookPoint::ToolShape),
        ["user:b", "user:a"],
        "as they say"
    );
    assert_eq!(
        names(HookPoint::ToolRun),
        ["user:b", "user:a"],
        "installed last, asked first"
    );
}

#[test]
fn a_place_is_for_transforms_and_bounded() {
    let problems = |edit: &dyn Fn(&mut HookDeclaration)| {
        let mut descriptor = declaring("user:a", &[]).transform(&FIRST).build();
        edit(&mut descriptor.declared_hooks[0]);
        descriptor.problems().join("; ")
    };
    assert_eq!(problems(&|_| {}), "");
    let gate = |hook: &mut HookDeclaration| {
        *hook = HookKey::<crate::hook::PreToolCall>::new("gate").declaration();
        hook.after = vec![id("user:b")];
    };
    assert!(
        problems(&gate).contains("has a place before or after"),
        "{}",
        problems(&gate)
    );
    let many = |hook: &mut HookDeclaration| hook.before = vec![id("user:b"); 17];
    assert!(
        problems(&many).contains("has a place before or after"),
        "{}",
        problems(&many)
    );
}
