//! Hooks at the door: granted one by one, staged as declared, reported with their class.

use crate::rig::*;
use pod::feature::*;
use pod::hook::*;
use std::sync::Arc;

const GATE: HookKey<PreToolCall> = HookKey::new("gate");
const SAME_NAME: HookKey<TurnEnd> = HookKey::new("gate");
const RESULTS: HookKey<ToolOutcome> = HookKey::new("results").tools(&["Read", "Grep"]);

struct Live;

impl Live {
    fn gate(&self, _: &ToolCallView) -> PublicPreToolCallDecision {
        Verdict::allow()
    }

    fn end(&self, _: &TurnEndView) -> Verdict<TurnEnd> {
        Verdict::finish()
    }

    fn results(&self, _: &ToolOutcomeView) -> Change<llm_worker::ToolOutput> {
        Change::Unchanged
    }
}

fn both(ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
    let live = Arc::new(Live);
    ctx.hooks().gate(&GATE, &live, Live::gate)?;
    ctx.hooks().transform(&RESULTS, &live, Live::results)?;
    Ok(())
}

fn install(
    descriptor: FeatureDescriptor,
    grants: &[HostCapability],
    act: impl Fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>
    + Send
    + Sync
    + 'static,
) -> FeatureInstallReport {
    let id = descriptor.id.clone();
    let policy = grants.iter().fold(CapabilityPolicy::nothing(), |p, g| {
        p.grant(id.clone(), g.clone(), "test")
    });
    let registry = FeatureRegistryBuilder::new(policy)
        .with(feature(descriptor, act))
        .install(&HostServices::none());
    registry.report().feature(&id).unwrap().clone()
}

fn declared() -> FeatureDescriptor {
    builder("builtin:h").gate(&GATE).transform(&RESULTS).build()
}

fn results_of(tools: &[&str]) -> HostCapability {
    HostCapability::TransformResults {
        tools: tools
            .iter()
            .map(|t| (*t).to_owned().into())
            .collect::<Vec<_>>()
            .into(),
    }
}

#[test]
fn hooks_are_granted_one_by_one_and_reported() {
    let gate = HostCapability::hook::<PreToolCall>();
    let results = HostCapability::hook::<ToolOutcome>();
    let whole = install(
        declared(),
        &[gate.clone(), results.clone(), results_of(&["Grep", "Read"])],
        both,
    );
    assert_eq!(whole.outcome, InstallOutcome::Installed, "{whole:?}");
    let told: Vec<_> = whole
        .installed_hooks
        .iter()
        .map(|h| (h.name.as_str(), h.class, h.on_failure))
        .collect();
    let expected = [
        ("gate", HookClass::Gate, FailureRule::Refuse),
        ("results", HookClass::Transform, FailureRule::KeepOriginal),
    ];
    assert_eq!(told, expected);
    for grants in [
        vec![gate.clone()],
        vec![gate.clone(), results.clone(), results_of(&["Read"])],
    ] {
        let part = install(declared(), &grants, both);
        assert_eq!(part.outcome, InstallOutcome::Degraded, "{part:?}");
        assert_eq!(part.installed_hooks.len(), 1);
        assert_eq!(part.skipped_contributions[0].kind, ContributionKind::Hook);
    }
}

#[test]
fn what_is_staged_is_what_was_declared() {
    let gate = [
        HostCapability::hook::<PreToolCall>(),
        HostCapability::hook::<TurnEnd>(),
    ];
    let only = || builder("builtin:h").gate(&GATE).build();
    type Act = fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>;
    let cases: [(&str, Act, DiagnosticCode); 5] = [
        ("not staged", |_| Ok(()), DiagnosticCode::PlannedNotStaged),
        ("not declared", both, DiagnosticCode::InstallFailed),
        (
            "twice",
            |ctx| {
                ctx.hooks().gate(&GATE, &Arc::new(Live), Live::gate)?;
                ctx.hooks()
                    .gate(&GATE, &Arc::new(Live), Live::gate)
                    .map(drop)
            },
            DiagnosticCode::InstallFailed,
        ),
        (
            "another point",
            |ctx| {
                ctx.hooks()
                    .gate(&SAME_NAME, &Arc::new(Live), Live::end)
                    .map(drop)
            },
            DiagnosticCode::InstallFailed,
        ),
        (
            "another deadline",
            |ctx| {
                let key =
                    HookKey::<PreToolCall>::new("gate").deadline(std::time::Duration::from_secs(9));
                ctx.hooks()
                    .gate(&key, &Arc::new(Live), Live::gate)
                    .map(drop)
            },
            DiagnosticCode::InstallFailed,
        ),
    ];
    for (what, act, code) in cases {
        let report = install(only(), &gate, act);
        assert_eq!(
            (report.outcome, report.installed_hooks.len()),
            (InstallOutcome::Skipped, 0),
            "{what}"
        );
        assert!(
            report.diagnostics.iter().any(|d| d.code == code),
            "{what}: {report:?}"
        );
    }
}

#[test]
fn out_of_bounds_hooks_are_refused_in_the_plan() {
    let long: HookKey<PreToolCall> =
        HookKey::new("gate").deadline(std::time::Duration::from_secs(11));
    let none: HookKey<PreToolCall> = HookKey::new("gate").deadline(std::time::Duration::ZERO);
    let cases = [
        ("too long", builder("builtin:h").gate(&long).build()),
        ("no time", builder("builtin:h").gate(&none).build()),
        (
            "twice",
            builder("builtin:h").gate(&GATE).gate(&SAME_NAME).build(),
        ),
        (
            "no tools",
            builder("builtin:h")
                .transform(&HookKey::<ToolOutcome>::new("t").tools(&[]))
                .build(),
        ),
    ];
    for (what, descriptor) in cases {
        assert!(!descriptor.problems().is_empty(), "{what}");
    }
    assert!(declared().problems().is_empty());
}
