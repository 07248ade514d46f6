//! Services between features: planned, installed, lost.

use super::rig::*;
use crate::feature::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) trait Greeter: Send + Sync {
    fn greet(&self, name: String) -> String;
}

pub(crate) struct Plain;

impl Greeter for Plain {
    fn greet(&self, name: String) -> String {
        format!("hello {name}")
    }
}

trait Other: Send + Sync {}

const A: ServiceKey<dyn Greeter> = ServiceKey::new("test.a.v1");
const B: ServiceKey<dyn Greeter> = ServiceKey::new("test.b.v1");
const C: ServiceKey<dyn Greeter> = ServiceKey::new("test.c.v1");
const WHOLE: ServiceKey<dyn Greeter> = ServiceKey::new("test.store.v1");
const READ: ServiceKey<dyn Greeter> =
    ServiceKey::new("test.store.v1").access(ServiceAccess::WorkItemRead);
const WRITE: ServiceKey<dyn Greeter> =
    ServiceKey::new("test.store.v1").access(ServiceAccess::WorkItemWrite);

type Keys = &'static [ServiceKey<dyn Greeter>];

/// What a test feature does with services.
#[derive(Clone, Copy)]
struct Part {
    id: &'static str,
    gives: Keys,
    takes: &'static [(ServiceKey<dyn Greeter>, Need, &'static str)],
}

const REQUIRED: Need = Need::Required;
const OPTIONAL: Need = Need::Optional;

fn part(
    id: &'static str,
    gives: Keys,
    takes: &'static [(ServiceKey<dyn Greeter>, Need, &'static str)],
) -> Part {
    Part { id, gives, takes }
}

fn describe(part: Part) -> FeatureDescriptorBuilder {
    let given = |b: FeatureDescriptorBuilder, key: &ServiceKey<dyn Greeter>| {
        b.provides(ServiceDeclaration::of(*key, "1.2.0"))
    };
    let start = part.gives.iter().fold(declaring(part.id, &[]), given);
    part.takes.iter().fold(start, |b, (key, need, range)| {
        b.requires(match need {
            Need::Required => ServiceRequirement::required(*key, *range),
            Need::Optional => ServiceRequirement::optional(*key, *range),
        })
    })
}

fn stage(part: Part, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
    for key in part.gives {
        ctx.services().provide(*key, Arc::new(Plain))?;
    }
    for (key, need, _) in part.takes {
        match ctx.services().require(*key) {
            Ok(handle) => assert_eq!(handle.with(|s| s.greet("you".into())).unwrap(), "hello you"),
            Err(FeatureInstallError::Unavailable { .. } | FeatureInstallError::Denied { .. })
                if *need == OPTIONAL => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn module(part: Part) -> Arc<dyn FeatureModule> {
    with(describe(part).build(), move |ctx| stage(part, ctx))
}

pub(crate) fn anything(ids: &[&str]) -> CapabilityPolicy {
    let any = || std::borrow::Cow::Borrowed("*");
    ids.iter().fold(tools_for(ids), |policy, text| {
        policy
            .grant(
                id(text),
                HostCapability::ProvideService { key: any() },
                "test",
            )
            .grant(id(text), HostCapability::UseService { key: any() }, "test")
    })
}

const IDS: &[&str] = &[
    "builtin:a",
    "builtin:b",
    "builtin:c",
    "builtin:d",
    "user:a",
    "user:b",
];

fn planned(parts: &[Part]) -> InstallPlan {
    build(anything(IDS), parts.iter().copied().map(module).collect()).plan()
}

fn find<'a>(plan: &'a InstallPlan, text: &str) -> &'a PlannedFeature {
    plan.features
        .iter()
        .find(|f| f.feature_id == id(text))
        .unwrap()
}

fn order(ids: &[FeatureId]) -> Vec<String> {
    ids.iter().map(FeatureId::to_string).collect()
}

#[test]
fn providers_come_first_and_ties_go_by_tier_and_id() {
    let parts = [
        part("builtin:a", &[], &[(A, REQUIRED, "^1")]),
        part("builtin:b", &[B], &[]),
        part(
            "builtin:c",
            &[],
            &[(B, OPTIONAL, ">=1.2, <2"), (C, REQUIRED, "1")],
        ),
        part("user:a", &[A], &[(C, REQUIRED, "^1.1")]),
        part("user:b", &[C], &[]),
    ];
    let plan = planned(&parts);
    let expected = ["builtin:b", "user:b", "builtin:c", "user:a", "builtin:a"];
    assert_eq!(order(&plan.order), expected, "{plan:#?}");
    let ids: Vec<_> = plan.features.iter().map(|f| f.feature_id.clone()).collect();
    assert!(ids.is_sorted(), "the list itself stays by tier and id");
    let registry = build(anything(IDS), parts.into_iter().map(module).collect())
        .install(&HostServices::none());
    assert_eq!(
        order(&registry.report().order),
        expected,
        "{:#?}",
        registry.report()
    );
    let services = &registry
        .report()
        .feature(&id("builtin:c"))
        .unwrap()
        .services;
    let resolved: Vec<_> = services
        .resolved
        .iter()
        .map(|r| format!("{} {} {}", r.service, r.version, r.provider))
        .collect();
    assert_eq!(
        resolved,
        ["test.b.v1 1.2.0 builtin:b", "test.c.v1 1.2.0 user:b"]
    );
}

#[test]
fn a_missing_service_is_reported_with_code_and_cause() {
    use DiagnosticCode as D;
    type Case = (
        &'static [Part],
        &'static str,
        InstallOutcome,
        &'static [DiagnosticCode],
        Option<&'static str>,
        &'static str,
    );
    const NEEDS_A: Part = Part {
        id: "builtin:c",
        gives: &[],
        takes: &[(A, REQUIRED, "^1")],
    };
    const LIKES_A: Part = Part {
        id: "builtin:c",
        gives: &[],
        takes: &[(A, OPTIONAL, "^1")],
    };
    let cases: &[Case] = &[
        (
            &[NEEDS_A],
            "builtin:c",
            InstallOutcome::Skipped,
            &[D::RequiredServiceMissing],
            None,
            "no feature provides it",
        ),
        (
            &[LIKES_A],
            "builtin:c",
            InstallOutcome::Degraded,
            &[D::OptionalServiceMissing],
            None,
            "no feature provides it",
        ),
        (
            &[
                Part {
                    takes: &[(A, REQUIRED, "^2")],
                    ..NEEDS_A
                },
                Part {
                    id: "builtin:a",
                    gives: &[A],
                    takes: &[],
                },
            ],
            "builtin:c",
            InstallOutcome::Skipped,
            &[D::ServiceVersionUnmet],
            Some("builtin:a"),
            "builtin:c needs service test.a.v1 ^2: builtin:a provides 1.2.0",
        ),
        (
            &[
                Part {
                    takes: &[(A, OPTIONAL, "=1.0.0")],
                    ..NEEDS_A
                },
                Part {
                    id: "builtin:a",
                    gives: &[A],
                    takes: &[],
                },
            ],
            "builtin:c",
            InstallOutcome::Degraded,
            &[D::OptionalServiceMissing],
            Some("builtin:a"),
            "provides 1.2.0",
        ),
        (
            &[
                NEEDS_A,
                Part {
                    id: "user:b",
                    gives: &[A],
                    takes: &[(B, REQUIRED, "^1")],
                },
            ],
            "builtin:c",
            InstallOutcome::Skipped,
            &[D::RequiredServiceMissing],
            Some("user:b"),
            "its provider user:b is skipped",
        ),
        (
            &[
                Part {
                    id: "builtin:a",
                    gives: &[A],
                    takes: &[],
                },
                Part {
                    id: "user:a",
                    gives: &[A],
                    takes: &[],
                },
            ],
            "user:a",
            InstallOutcome::Skipped,
            &[D::ServiceTaken],
            None,
            "service test.a.v1 of user:a is provided by builtin:a; disable one of them",
        ),
        (
            &[Part {
                id: "builtin:a",
                gives: &[A],
                takes: &[(A, REQUIRED, "^1")],
            }],
            "builtin:a",
            InstallOutcome::Skipped,
            &[D::ServiceCycle],
            None,
            "builtin:a → builtin:a",
        ),
        (
            &[
                Part {
                    id: "builtin:a",
                    gives: &[A],
                    takes: &[(B, OPTIONAL, "^1")],
                },
                Part {
                    id: "builtin:b",
                    gives: &[B],
                    takes: &[(A, REQUIRED, "^1")],
                },
            ],
            "builtin:a",
            InstallOutcome::Degraded,
            &[D::OptionalServiceMissing],
            Some("builtin:b"),
            "builtin:b also needs this feature",
        ),
    ];
    for (n, (parts, subject, outcome, codes_, cause, words)) in cases.iter().enumerate() {
        let plan = planned(parts);
        let found = find(&plan, subject);
        assert_eq!(
            (found.outcome, codes(&found.diagnostics).as_slice()),
            (*outcome, *codes_),
            "case {n}: {found:#?}"
        );
        let diagnostic = &found.diagnostics[0];
        assert_eq!(
            diagnostic
                .cause
                .as_ref()
                .map(FeatureId::to_string)
                .as_deref(),
            *cause,
            "case {n}"
        );
        assert!(
            diagnostic.message.contains(words),
            "case {n}: {}",
            diagnostic.message
        );
        let live: Vec<_> = plan
            .features
            .iter()
            .filter(|f| f.outcome.is_live())
            .map(|f| &f.feature_id)
            .collect();
        assert!(
            plan.order.iter().all(|id| live.contains(&id)) && live.len() == plan.order.len(),
            "case {n}"
        );
    }
}

#[test]
fn a_cycle_is_reported_and_skips_its_dependents() {
    let plan = planned(&[
        part("builtin:a", &[], &[(A, REQUIRED, "^1")]),
        part("builtin:b", &[A], &[(B, REQUIRED, "^1")]),
        part("builtin:c", &[B], &[(C, REQUIRED, "^1")]),
        part("builtin:d", &[C], &[(A, REQUIRED, "^1")]),
    ]);
    for text in ["builtin:b", "builtin:c", "builtin:d"] {
        let found = find(&plan, text);
        assert_eq!(
            (found.outcome, codes(&found.diagnostics)),
            (InstallOutcome::Skipped, vec![DiagnosticCode::ServiceCycle])
        );
        let path = "builtin:b → builtin:c → builtin:d → builtin:b";
        assert!(found.diagnostics[0].message.ends_with(path), "{found:#?}");
    }
    let behind = find(&plan, "builtin:a");
    assert_eq!(behind.diagnostics[0].cause, Some(id("builtin:b")));
    assert!(plan.order.is_empty());
}

#[test]
fn who_provides_and_who_uses_is_the_policys_to_say() {
    let parts = [
        part("builtin:a", &[A], &[]),
        part("builtin:b", &[], &[(A, OPTIONAL, "^1")]),
    ];
    let modules = || parts.into_iter().map(module).collect::<Vec<_>>();
    let refuse =
        |policy: CapabilityPolicy, who: &str, what| policy.refuse(id(who), what, "user.toml");
    let provide = HostCapability::ProvideService {
        key: "test.a.v1".into(),
    };
    let mut builder = build(refuse(anything(IDS), "builtin:a", provide), modules());
    let plan = builder.plan();
    let a = find(&plan, "builtin:a");
    let b = find(&plan, "builtin:b");
    assert_eq!(
        (a.outcome, b.outcome),
        (InstallOutcome::Degraded, InstallOutcome::Degraded)
    );
    assert_eq!(a.skipped_contributions[0].kind, ContributionKind::Service);
    assert!(
        a.skipped_contributions[0].reason.contains("user.toml"),
        "{a:#?}"
    );
    assert_eq!(
        b.services.missing[0].reason,
        "builtin:a is not allowed to provide it"
    );
    let live = order(&builder.install(&HostServices::none()).report().order);
    assert_eq!(
        live,
        ["builtin:a", "builtin:b"],
        "providing was answered with Skipped, using with Unavailable"
    );

    let plan = build(refuse(anything(IDS), "builtin:b", A.admission()), modules()).plan();
    let b = find(&plan, "builtin:b");
    assert_eq!(
        codes(&b.diagnostics),
        [DiagnosticCode::OptionalCapabilityDenied]
    );
    assert!(b.services.missing[0].reason.contains("user.toml"), "{b:#?}");
}

#[test]
fn a_store_is_used_by_the_side_that_was_granted() {
    let store = part("builtin:a", &[READ, WRITE], &[]);
    let user = part(
        "builtin:b",
        &[],
        &[(READ, REQUIRED, "^1"), (WRITE, OPTIONAL, "^1")],
    );
    let reads = HostCapability::WorkItemStore {
        read: true,
        write: false,
    };
    let policy = anything(&["builtin:a"]).grant(id("builtin:b"), reads.clone(), "test");
    let registry = build(policy, vec![module(store), module(user)]).install(&HostServices::none());
    let report = registry.report().feature(&id("builtin:b")).unwrap();
    assert_eq!(
        (report.outcome, &report.granted),
        (InstallOutcome::Degraded, &vec![reads]),
        "{report:#?}"
    );
    assert_eq!(
        report.services.resolved[0].service.access,
        ServiceAccess::WorkItemRead
    );
    assert_eq!(
        report.services.missing[0].service.to_string(),
        "test.store.v1 (write)"
    );

    let whole = part("builtin:c", &[], &[(WHOLE, REQUIRED, "^1")]);
    let plan = planned(&[store, whole]);
    let found = find(&plan, "builtin:c");
    assert!(
        found.diagnostics[0]
            .message
            .contains("builtin:a provides only another access to it"),
        "{found:#?}"
    );
}

#[test]
fn what_needs_a_missing_service_is_left_out() {
    const NEEDS: &[HostCapability] = &[A.admission()];
    const SAYS: ToolKey<Args> = key("Say").needs(NEEDS);
    let consumer = |fails: bool| {
        let likes = describe(part("builtin:b", &[], &[(A, OPTIONAL, "^1")]))
            .tool(&SAYS)
            .tool(&key("Stay"))
            .build();
        let user = with(likes, move |ctx| {
            let live = Arc::new(Live);
            let expected = if fails {
                Staging::Skipped
            } else {
                Staging::Staged
            };
            assert_eq!(ctx.tools().implement(&SAYS, &live, Live::say), Ok(expected));
            ctx.tools().implement(&key("Stay"), &live, Live::say)?;
            assert_eq!(ctx.services().require(A).is_err(), fails);
            Ok(())
        });
        let giver = describe(part("user:a", &[A], &[])).build();
        let giver = with(giver, move |ctx| {
            ctx.services().provide(A, Arc::new(Plain))?;
            if fails {
                Err(FeatureInstallError::failed("no disk"))
            } else {
                Ok(())
            }
        });
        let registry = build(anything(IDS), vec![user, giver]).install(&HostServices::none());
        registry.report().clone()
    };
    let tools = |report: &RegistryReport| {
        report
            .feature(&id("builtin:b"))
            .unwrap()
            .installed_tools
            .clone()
    };
    assert_eq!(tools(&consumer(false)), ["Say", "Stay"]);
    let report = consumer(true);
    assert_eq!(tools(&report), ["Stay"]);
    let b = report.feature(&id("builtin:b")).unwrap();
    assert_eq!(
        (b.outcome, codes(&b.diagnostics)),
        (
            InstallOutcome::Degraded,
            vec![DiagnosticCode::OptionalServiceMissing]
        )
    );
    assert_eq!(b.diagnostics[0].cause, Some(id("user:a")));
    assert!(
        b.skipped_contributions[0]
            .reason
            .contains("its provider user:a failed to install"),
        "{b:#?}"
    );
}

#[test]
fn a_failed_provider_skips_its_dependents_only() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    for way in [
        "error",
        "panic",
        "hang",
        "not provided",
        "provided twice",
        "not declared",
    ] {
        let wait = Arc::clone(&wait);
        let kept = Arc::new(Mutex::new(None));
        let keep = Arc::clone(&kept);
        let provider = with(
            describe(part("builtin:b", &[B], &[(A, REQUIRED, "^1")])).build(),
            move |ctx| {
                *keep.lock().unwrap() = Some(ctx.services().require(A)?);
                if way != "not provided" {
                    ctx.services().provide(B, Arc::new(Plain))?;
                }
                match way {
                    "error" => return Err(FeatureInstallError::failed("no disk")),
                    "panic" => panic!("no disk"),
                    "hang" => assert!(wait.lock().unwrap().recv().is_err()),
                    "provided twice" => {
                        assert!(ctx.services().provide(B, Arc::new(Plain)).is_err())
                    }
                    "not declared" => assert!(ctx.services().provide(C, Arc::new(Plain)).is_err()),
                    _ => {}
                }
                Ok(())
            },
        );
        let modules = vec![
            module(part("builtin:a", &[A], &[])),
            provider,
            module(part("builtin:c", &[C], &[(B, REQUIRED, "^1")])),
            module(part("builtin:d", &[], &[(C, REQUIRED, "^1")])),
            module(part("user:a", &[], &[(A, REQUIRED, "^1")])),
        ];
        let builder = build(anything(IDS), modules).callback_limit(Duration::from_millis(500));
        let registry = builder.install(&HostServices::none());
        let report = registry.report();
        assert_eq!(
            order(&report.order),
            ["builtin:a", "user:a"],
            "{way}: {report:#?}"
        );
        let why = |text: &str| report.feature(&id(text)).unwrap().diagnostics[0].clone();
        assert_eq!(
            why("builtin:c").code,
            DiagnosticCode::RequiredServiceMissing,
            "{way}"
        );
        assert_eq!(why("builtin:c").cause, Some(id("builtin:b")), "{way}");
        assert_eq!(why("builtin:d").cause, Some(id("builtin:c")), "{way}");
        let kept = kept.lock().unwrap().clone().unwrap();
        assert_eq!(
            kept.with(|_| ()).unwrap_err().kind(),
            llm_worker::ErrorKind::Denied,
            "{way}: what it kept is dead"
        );
        let rows = registry.grants();
        assert!(
            rows.iter()
                .all(|row| row.feature_id != id("builtin:b") && !row.revoked),
            "{way}: {rows:#?}"
        );
    }
    drop(release);
}

#[test]
fn a_service_is_used_as_declared_or_not_at_all() {
    let giver = || module(part("builtin:a", &[A], &[]));
    type Misuse = fn(&mut FeatureInstallContext<'_>) -> FeatureInstallError;
    const LIES: ServiceKey<dyn Other> = ServiceKey::new("test.a.v1");
    let cases: [(Misuse, &str); 3] = [
        (
            |ctx| ctx.services().require(B).unwrap_err(),
            "test.b.v1` was staged by builtin:b but is not declared",
        ),
        (
            |ctx| ctx.services().require(LIES).unwrap_err(),
            "service `test.a.v1` of builtin:b differs",
        ),
        (
            |ctx| ctx.services().provide(A, Arc::new(Plain)).unwrap_err(),
            "test.a.v1` was staged by builtin:b",
        ),
    ];
    for (misuse, words) in cases {
        let user = with(
            describe(part("builtin:b", &[], &[(A, REQUIRED, "^1")])).build(),
            move |ctx| {
                assert_eq!(misuse(ctx).kind(), llm_worker::ErrorKind::Bug);
                Ok(())
            },
        );
        let registry = build(anything(IDS), vec![giver(), user]).install(&HostServices::none());
        let report = registry.report().feature(&id("builtin:b")).unwrap();
        assert_eq!(
            codes(&report.diagnostics),
            [DiagnosticCode::InstallFailed],
            "{words}"
        );
        assert!(
            report.diagnostics[0].message.contains(words),
            "{}",
            report.diagnostics[0].message
        );
    }
}

#[test]
fn names_and_versions_are_bounded() {
    let valid = |name: &str| {
        let service = ServiceId::whole(name);
        let version = "1.0.0".to_owned();
        let descriptor = declaring("user:a", &[])
            .provides(ServiceDeclaration {
                service,
                version,
                events: Vec::new(),
            })
            .build();
        descriptor.problems().is_empty()
    };
    for name in [
        "yoi.memory.v1",
        "a.b.v12",
        "a-b.c-d.e.v9",
        &format!("a.{}.v1", "b".repeat(59)),
    ] {
        assert!(valid(name), "{name}");
    }
    let bad = [
        "", "v1", "a.v1", "a.b.c", "a.b.v", "a.b.v0", "a.b.v01", "a.b.v1x", "A.b.v1", "a..v1",
        ".a.v1", "a.b.v1.",
    ];
    let long = format!("a.{}.v1", "b".repeat(60));
    for name in bad
        .into_iter()
        .chain([long.as_str(), "a b.c.v1", "a.b.1", "a.b.w1"])
    {
        assert!(!valid(name), "{name}");
    }
    let version = |version: &str| {
        declaring("user:a", &[])
            .provides(ServiceDeclaration::of(A, version))
            .build()
    };
    let range = |range: &str| {
        declaring("user:a", &[])
            .requires(ServiceRequirement::required(A, range))
            .build()
    };
    let long = format!("1.0.0-{}", "a".repeat(64));
    for text in ["", "1", "1.0", "one", "^1", &long] {
        assert_eq!(version(text).problems().len(), 1, "{text}");
    }
    for text in ["", "^", "one", "1.0.0.0", &format!("^{long}")] {
        assert_eq!(range(text).problems().len(), 1, "{text}");
    }
    assert!(range("*").problems().is_empty() && range(">=1, <3").problems().is_empty());
    let many = (0..17).fold(declaring("user:a", &[]), |b, n| {
        b.requires(ServiceRequirement {
            each: false,
            service: ServiceId::whole(format!("a.b.v{}", n + 1)),
            version: "1".into(),
            need: REQUIRED,
        })
    });
    assert_eq!(
        many.build().problems(),
        ["17 required services; at most 16 are allowed"]
    );
    let twice = declaring("user:a", &[]).provides(ServiceDeclaration::of(A, "1.0.0"));
    let twice = twice.provides(ServiceDeclaration::of(A, "1.1.0")).build();
    assert_eq!(
        twice.problems(),
        ["service `test.a.v1` is declared twice (case aside)"]
    );
}
