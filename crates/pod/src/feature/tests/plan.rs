//! Planning: pure, total, and blind to the order of registration.

use super::rig::*;
use crate::feature::*;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn planned(plan: &InstallPlan, text: &str) -> PlannedFeature {
    plan.features
        .iter()
        .find(|f| f.feature_id == id(text))
        .unwrap_or_else(|| panic!("{text} in {plan:#?}"))
        .clone()
}

fn plan(policy: CapabilityPolicy, modules: Vec<Arc<dyn FeatureModule>>) -> InstallPlan {
    build(policy, modules).plan()
}

/// A small generator, so that orders are random and repeatable.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

#[test]
fn the_order_of_registration_means_nothing() {
    let policy = || {
        tools_for(&[
            "builtin:a",
            "builtin:b",
            "builtin:c",
            "user:a",
            "project:p",
            "plugin:x/y",
        ])
        .disable(id("builtin:c"), "user.toml")
        .require(id("builtin:gone"), "user.toml")
        .require(id("builtin:c"), "user.toml")
    };
    let mut bad = declaring("project:bad", &["X"]).build();
    bad.declared_tools[0].name = "x y".to_owned();
    let mut modules = vec![
        feature("builtin:b", &["Beta", "Both"]),
        feature("builtin:a", &["Alpha", "Both"]),
        feature("builtin:c", &["Off"]),
        feature("user:a", &["Beta"]),
        feature("user:same", &["One"]),
        with(
            declaring("user:same", &["One"]).version("2.0.0").build(),
            |_| Ok(()),
        ),
        feature("user:same", &["Two"]),
        feature("user:same", &["Two"]),
        feature("plugin:x/y", &["Free"]),
        feature("project:p", &["Off"]),
        with(bad, |_| Ok(())),
        Arc::new(Fake {
            descriptor: Box::new(|| panic!("no")),
            install: Box::new(|_| Ok(())),
        }),
        Arc::new(Fake {
            descriptor: Box::new(|| panic!("never")),
            install: Box::new(|_| Ok(())),
        }),
    ];
    let reference = serde_json::to_string(&plan(policy(), modules.clone())).unwrap();
    let installed = build(policy(), modules.clone())
        .install(&HostServices::none())
        .report()
        .to_json()
        .unwrap();
    let mut dice = Dice(7);
    for round in 0..60 {
        dice.shuffle(&mut modules);
        assert_eq!(
            serde_json::to_string(&plan(policy(), modules.clone())).unwrap(),
            reference,
            "round {round}"
        );
        let again = build(policy(), modules.clone())
            .install(&HostServices::none())
            .report()
            .to_json()
            .unwrap();
        assert_eq!(again, installed, "round {round}");
    }
}

/// Many features with services: chains, diamonds, cycles, absences, two providers, versions that do not fit.
fn web_of_services(count: usize, dice: &mut Dice) -> Vec<Arc<dyn FeatureModule>> {
    let service = |n: usize| ServiceId::whole(format!("test.s{n}.v1"));
    let module = |n: usize| {
        let mut builder = declaring(&format!("user:f{n:04}"), &[]);
        if dice.below(3) > 0 {
            let n = if dice.below(20) == 0 {
                dice.below(count)
            } else {
                n
            };
            let version = format!("1.{}.0", dice.below(3));
            builder = builder.provides(ServiceDeclaration {
                service: service(n),
                version,
                events: Vec::new(),
            });
        }
        for asked in 0..dice.below(4) {
            // Mostly backwards, so that many stay; sometimes anywhere, so that some go round in a circle.
            let whom = if dice.below(8) == 0 {
                dice.below(count)
            } else {
                n.saturating_sub(1 + dice.below(9) * (asked + 1))
            };
            let (need, version) = match dice.below(6) {
                0 => (Need::Required, "^1.1"),
                1 => (Need::Required, "*"),
                _ => (Need::Optional, "^1"),
            };
            builder = builder.requires(ServiceRequirement::declared(service(whom), version, need));
        }
        // Two that need each other, in every hundred.
        let partner = [(40, n + 1), (41, n.saturating_sub(1))]
            .into_iter()
            .find(|(at, _)| n % 100 == *at);
        if let Some((_, partner)) = partner {
            builder = declaring(&format!("user:f{n:04}"), &[])
                .provides(ServiceDeclaration {
                    service: service(n),
                    version: "1.0.0".into(),
                    events: Vec::new(),
                })
                .requires(ServiceRequirement::declared(
                    service(partner),
                    "*",
                    Need::Required,
                ));
        }
        with(builder.build(), |_| Ok(()))
    };
    (0..count).map(module).collect()
}

#[test]
fn a_thousand_features_with_services_plan_alike_in_every_order() {
    const COUNT: usize = 1_000;
    for seed in [1, 22, 333] {
        let policy = || {
            (0..COUNT).map(|n| id(&format!("user:f{n:04}"))).fold(
                CapabilityPolicy::nothing(),
                |policy, id| {
                    policy
                        .grant(
                            id.clone(),
                            HostCapability::ProvideService { key: "*".into() },
                            "test",
                        )
                        .grant(id, HostCapability::UseService { key: "*".into() }, "test")
                },
            )
        };
        let mut dice = Dice(seed);
        let mut modules = web_of_services(COUNT, &mut dice);
        let reference = plan(policy(), modules.clone());
        let mut place = std::collections::BTreeMap::new();
        for (at, id) in reference.order.iter().enumerate() {
            place.insert(id, at);
        }
        let live: Vec<_> = reference
            .features
            .iter()
            .filter(|f| f.outcome.is_live())
            .collect();
        assert!(
            live.len() > COUNT / 10 && live.len() < COUNT && live.len() == reference.order.len(),
            "{}",
            live.len()
        );
        for feature in &live {
            for found in &feature.services.resolved {
                assert!(
                    place[&found.provider] < place[&feature.feature_id],
                    "seed {seed}: {feature:#?}"
                );
            }
        }
        let told = |code| {
            reference
                .features
                .iter()
                .any(|f| f.diagnostics.iter().any(|d| d.code == code))
        };
        use DiagnosticCode as D;
        for code in [
            D::ServiceCycle,
            D::ServiceTaken,
            D::ServiceVersionUnmet,
            D::RequiredServiceMissing,
        ] {
            assert!(told(code), "seed {seed}: nothing comes to {code:?}");
        }
        let reference = serde_json::to_string(&reference).unwrap();
        for round in 0..2 {
            dice.shuffle(&mut modules);
            let again = serde_json::to_string(&plan(policy(), modules.clone())).unwrap();
            assert!(again == reference, "seed {seed}, round {round}");
        }
    }
}

#[test]
fn tiers_come_in_their_order() {
    let ids = ["project:a", "plugin:a/a", "user:b", "user:a", "builtin:z"];
    let modules = ids.iter().map(|text| feature(text, &[])).collect();
    let plan = plan(CapabilityPolicy::nothing(), modules);
    let order: Vec<_> = plan
        .features
        .iter()
        .map(|f| f.feature_id.to_string())
        .collect();
    assert_eq!(
        order,
        ["builtin:z", "user:a", "user:b", "plugin:a/a", "project:a"]
    );
}

#[test]
fn each_obstacle_has_its_code_and_names_both_sides() {
    use DiagnosticCode as C;
    let all = &["builtin:a", "builtin:b", "user:u"];
    let runtime = |kind| with(declaring("user:u", &[]).runtime(kind).build(), |_| Ok(()));
    let wants = |need: fn(HostCapability, &'static str) -> CapabilityRequest| {
        with(
            declaring("user:u", &[])
                .request(need(HostCapability::ANY_PROGRAM, "why"))
                .build(),
            |_| Ok(()),
        )
    };
    type Case = (
        &'static str,
        Vec<Arc<dyn FeatureModule>>,
        Vec<DiagnosticCode>,
        InstallOutcome,
        &'static [&'static str],
    );
    let cases: Vec<Case> = vec![
        (
            "user:u",
            vec![feature("user:u", &["X"])],
            vec![],
            InstallOutcome::Installed,
            &[],
        ),
        (
            "user:u",
            vec![feature("user:u", &["X"]), feature("user:u", &["Y"])],
            vec![C::DuplicateId],
            InstallOutcome::Skipped,
            &["user:u", "rig::Fake and", "neither"],
        ),
        (
            "builtin:b",
            vec![feature("builtin:a", &["X"]), feature("builtin:b", &["X"])],
            vec![C::ToolNameTaken],
            InstallOutcome::Skipped,
            &["`X` of builtin:b", "the same name as a tool of builtin:a"],
        ),
        (
            "builtin:b",
            vec![
                feature("builtin:a", &["Bash"]),
                feature("builtin:b", &["bash"]),
            ],
            vec![C::ToolNameTaken],
            InstallOutcome::Skipped,
            &["`bash` of builtin:b", "builtin:a"],
        ),
        (
            "user:u",
            vec![feature("builtin:c", &["X"]), feature("user:u", &["X"])],
            vec![C::ToolNameReserved],
            InstallOutcome::Skipped,
            &["`X` of user:u", "reserved for builtin:c"],
        ),
        (
            "user:u",
            vec![runtime(FeatureRuntimeKind::Guest)],
            vec![C::NoAdapter],
            InstallOutcome::Skipped,
            &["does not support"],
        ),
        (
            "user:u",
            vec![runtime(FeatureRuntimeKind::McpBridge)],
            vec![C::NoAdapter],
            InstallOutcome::Skipped,
            &["McpBridge"],
        ),
        (
            "user:u",
            vec![runtime(FeatureRuntimeKind::Declarative)],
            vec![C::NoAdapter],
            InstallOutcome::Skipped,
            &[],
        ),
        (
            "user:u",
            vec![wants(CapabilityRequest::required)],
            vec![C::RequiredCapabilityDenied],
            InstallOutcome::Skipped,
            &["user:u was denied Process(*)", "no rule grants it"],
        ),
        (
            "user:u",
            vec![wants(CapabilityRequest::optional)],
            vec![C::OptionalCapabilityDenied],
            InstallOutcome::Degraded,
            &[],
        ),
        (
            "user:off",
            vec![feature("user:off", &["X"])],
            vec![],
            InstallOutcome::Disabled,
            &[],
        ),
    ];
    for (n, (subject, modules, expected, outcome, words)) in cases.into_iter().enumerate() {
        let policy = tools_for(all)
            .disable(id("builtin:c"), "user.toml")
            .disable(id("user:off"), "user.toml");
        let found = planned(&plan(policy, modules), subject);
        assert_eq!(
            (codes(&found.diagnostics), found.outcome),
            (expected, outcome),
            "case {n}: {found:#?}"
        );
        for word in words {
            assert!(
                found.diagnostics[0].message.contains(word),
                "case {n}: {word} in {}",
                found.diagnostics[0].message
            );
        }
    }
}

#[test]
fn a_name_that_was_refused_is_free_for_the_next() {
    let policy = tools_for(&["user:a", "user:b"]);
    let broken = with(declaring("user:a", &["X"]).version("one").build(), |_| {
        Ok(())
    });
    let plan = plan(policy, vec![broken, feature("user:b", &["X"])]);
    assert_eq!(planned(&plan, "user:a").outcome, InstallOutcome::Skipped);
    assert_eq!(planned(&plan, "user:b").outcome, InstallOutcome::Installed);
}

#[test]
fn a_denied_option_takes_what_needs_it_along() {
    const NEEDS: &[HostCapability] = &[HostCapability::WRITE_WORKSPACE];
    const WRITES: ToolKey<Args> = key("Change").needs(NEEDS);
    let descriptor = declaring("builtin:a", &["Look"])
        .tool(&WRITES)
        .request(CapabilityRequest::required(
            HostCapability::READ_WORKSPACE,
            "look",
        ))
        .request(CapabilityRequest::optional(
            HostCapability::WRITE_WORKSPACE,
            "change",
        ))
        .build();
    let module = with(descriptor, |ctx| {
        let live = Arc::new(Live);
        assert_eq!(
            ctx.tools().implement(&key("Look"), &live, Live::say),
            Ok(Staging::Staged)
        );
        assert_eq!(
            ctx.tools().implement(&WRITES, &live, Live::say),
            Ok(Staging::Skipped)
        );
        Ok(())
    });
    let a = || id("builtin:a");
    let policy = || tools_for(&["builtin:a"]).grant(a(), HostCapability::READ_WORKSPACE, "default");
    let registry = build(policy(), vec![Arc::clone(&module)]).install(&HostServices::none());
    let report = registry.report().feature(&a()).unwrap();
    assert_eq!(
        (report.outcome, report.installed_tools.as_slice()),
        (InstallOutcome::Degraded, &["Look".to_owned()][..])
    );
    let [skipped] = report.skipped_contributions.as_slice() else {
        panic!("{report:#?}")
    };
    assert_eq!(skipped.name, "Change");
    assert!(
        skipped.reason.contains("ScopedFs(workspace:rw)"),
        "{skipped:?}"
    );
    assert!(registry.tools().get("Change").is_none());

    let full = policy().grant(a(), HostCapability::WRITE_WORKSPACE, "default");
    let refused = full
        .clone()
        .refuse(a(), HostCapability::tool("Look"), "user.toml");
    let found = planned(&plan(refused, vec![Arc::clone(&module)]), "builtin:a");
    assert_eq!(found.outcome, InstallOutcome::Degraded);
    assert!(
        found.skipped_contributions[0].reason.contains("user.toml"),
        "{found:#?}"
    );
    assert_eq!(
        planned(&plan(full, vec![module]), "builtin:a").outcome,
        InstallOutcome::Installed
    );
}

#[test]
fn grants_cover_and_refusals_hit() {
    let fs = |root: &'static str, read, write, execute| HostCapability::ScopedFs {
        root: root.into(),
        read,
        write,
        execute,
    };
    let run = |names: &[&'static str]| HostCapability::Process {
        programs: names.iter().map(|n| (*n).into()).collect::<Vec<_>>().into(),
        network: false,
    };
    let grant = true;
    let refuse = false;
    // rules, request, granted?
    type Case = (Vec<(bool, HostCapability)>, HostCapability, bool);
    let cases: Vec<Case> = vec![
        (vec![], fs("w", true, false, false), false),
        (
            vec![(grant, fs("w", true, true, false))],
            fs("w", true, false, false),
            true,
        ),
        (
            vec![(grant, fs("w", true, false, false))],
            fs("w", true, true, false),
            false,
        ),
        (
            vec![(grant, fs("w", true, true, false))],
            fs("w", true, true, true),
            false,
        ),
        (
            vec![(grant, fs("v", true, true, true))],
            fs("w", true, false, false),
            false,
        ),
        (vec![(grant, run(&["git", "cargo"]))], run(&["git"]), true),
        (vec![(grant, run(&["git"]))], run(&["git", "cargo"]), false),
        (vec![(grant, run(&["git"]))], run(&["*"]), false),
        (vec![(grant, run(&["*"]))], run(&["anything"]), true),
        (
            vec![(grant, run(&["*"]))],
            fs("w", true, false, false),
            false,
        ),
        (
            vec![
                (grant, fs("w", true, true, false)),
                (refuse, fs("w", true, true, false)),
            ],
            fs("w", true, false, false),
            true,
        ),
        (
            vec![
                (grant, fs("w", true, true, false)),
                (refuse, fs("w", true, true, false)),
            ],
            fs("w", true, true, false),
            false,
        ),
        (
            vec![
                (grant, fs("w", true, true, false)),
                (refuse, fs("w", true, false, false)),
            ],
            fs("w", true, true, false),
            false,
        ),
        (
            vec![(refuse, run(&["rm"])), (grant, run(&["*"]))],
            run(&["*"]),
            false,
        ),
        (
            vec![(refuse, run(&["rm"])), (grant, run(&["*"]))],
            run(&["git"]),
            true,
        ),
        (
            vec![(grant, run(&["*"])), (refuse, run(&["*"]))],
            run(&["git"]),
            false,
        ),
    ];
    for (n, (rules, request, granted)) in cases.into_iter().enumerate() {
        let policy =
            rules
                .into_iter()
                .fold(
                    CapabilityPolicy::nothing(),
                    |policy, (rule, capability)| match rule {
                        true => policy.grant(id("user:u"), capability, "test"),
                        false => policy.refuse(id("user:u"), capability, "test"),
                    },
                );
        let descriptor = declaring("user:u", &[])
            .request(CapabilityRequest::required(request, "why"))
            .build();
        let found = planned(&plan(policy, vec![with(descriptor, |_| Ok(()))]), "user:u");
        assert_eq!(
            found.outcome == InstallOutcome::Installed,
            granted,
            "case {n}: {found:#?}"
        );
    }
}

#[test]
fn what_is_required_and_not_there_is_said_with_the_reason() {
    let policy = tools_for(&["user:ok"])
        .require(id("user:ok"), "a.toml")
        .require(id("user:gone"), "b.toml")
        .require(id("user:off"), "c.toml")
        .disable(id("user:off"), "d.toml")
        .require(id("user:poor"), "e.toml")
        .require(id("user:broken"), "f.toml")
        .require(id("user:empty"), "g.toml");
    let poor = declaring("user:poor", &[])
        .request(CapabilityRequest::required(
            HostCapability::ANY_PROGRAM,
            "run",
        ))
        .build();
    let modules = vec![
        feature("user:ok", &["X"]),
        feature("user:off", &[]),
        with(poor, |_| Ok(())),
        with(declaring("user:broken", &[]).build(), |_| {
            Err(FeatureInstallError::failed("no disk; or no cable"))
        }),
        with(declaring("user:empty", &[]).build(), |_| {
            let remedy = Some("create it");
            Err(FeatureInstallError::Failed("no file".to_owned(), remedy))
        }),
    ];
    let mut builder = build(policy, modules);
    let lines = |unmet: &[Unmet]| -> Vec<String> {
        unmet
            .iter()
            .map(|u| format!("{} ({}): {}", u.feature_id, u.required_by, u.reason))
            .collect()
    };
    let expected = [
        "user:gone (b.toml): it does not exist",
        "user:off (c.toml): it is disabled",
        "user:poor (e.toml): user:poor was denied Process(*): no rule grants it; set grant = { process = [\"*\"] } under [features.\"user:poor\"]",
    ];
    assert_eq!(lines(&builder.plan().unmet), expected);
    let unmet = &builder
        .install(&HostServices::none())
        .report()
        .unmet
        .clone();
    let after = lines(unmet);
    assert_eq!(after.len(), 5);
    assert_eq!(
        after[..2],
        [
            "user:broken (f.toml): user:broken was not installed: no disk; or no cable",
            "user:empty (g.toml): user:empty was not installed: no file; create it, or disable the feature",
        ]
    );
    // The remedy was what stood behind the first semicolon: a feature's own words became a help text.
    let parts: Vec<_> = unmet
        .iter()
        .map(|u| (u.problem.as_str(), u.remedy.as_deref()))
        .collect();
    let parts_expected = [
        ("user:broken was not installed: no disk; or no cable", None),
        ("user:empty was not installed: no file", Some("create it")),
        ("does not exist", None),
        ("is disabled", None),
        (
            "user:poor was denied Process(*): no rule grants it",
            Some("set grant = { process = [\"*\"] } under [features.\"user:poor\"]"),
        ),
    ];
    assert_eq!(parts, parts_expected);
}

fn install_beside(
    limit: Duration,
    descriptor: impl Fn() -> FeatureDescriptor + Send + Sync + 'static,
) -> RegistryReport {
    let lost = Arc::new(Fake {
        descriptor: Box::new(descriptor),
        install: Box::new(|_| Ok(())),
    });
    let modules = vec![feature("user:a", &["X"]), lost, feature("user:b", &["Y"])];
    let builder = build(tools_for(&["user:a", "user:b"]), modules).callback_limit(limit);
    builder.install(&HostServices::none()).report().clone()
}

#[test]
fn a_descriptor_that_panics_costs_only_itself() {
    let report = install_beside(CALLBACK_LIMIT, || panic!("oh\nno"));
    assert_eq!(
        codes(&report.diagnostics),
        [DiagnosticCode::DescriptorPanicked]
    );
    assert!(
        report.diagnostics[0]
            .message
            .ends_with("rig::Fake panicked: oh\\nno"),
        "{report:#?}"
    );
    assert_eq!(report.order, [id("user:a"), id("user:b")]);
}

#[test]
fn a_descriptor_that_hangs_costs_only_itself() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let report = install_beside(Duration::from_millis(500), move || {
        assert!(wait.lock().unwrap().recv().is_err(), "nothing is ever sent");
        declaring("user:late", &[]).build()
    });
    drop(release);
    assert_eq!(
        codes(&report.diagnostics),
        [DiagnosticCode::DescriptorTimedOut]
    );
    assert_eq!(report.order, [id("user:a"), id("user:b")]);
}

#[test]
fn planning_grows_with_its_input() {
    let time = |count: usize| {
        let module = |n: usize| feature(Box::leak(format!("user:f{n:05}").into_boxed_str()), &[]);
        let modules: Vec<_> = (0..count).rev().map(module).collect();
        let began = Instant::now();
        let plan = plan(CapabilityPolicy::nothing(), modules);
        assert_eq!(
            plan.features.iter().filter(|f| f.outcome.is_live()).count(),
            count.min(MAX_FEATURES)
        );
        began.elapsed()
    };
    // Eight times the features: eight times the work, give or take a busy machine; a square would be sixty-four.
    let mut few = Duration::MAX;
    let mut many = Duration::MAX;
    for _ in 0..40 {
        few = few.min(time(500));
        many = many.min(time(4_000));
        if many < few * 24 {
            break;
        }
    }
    assert!(
        many < few * 24,
        "{many:?} for 4,000 against {few:?} for 500"
    );
    time(MAX_FEATURES + 1);
}

#[test]
fn a_kind_of_code_needs_an_adapter() {
    let module = || {
        with(
            declaring("user:u", &[])
                .runtime(FeatureRuntimeKind::Declarative)
                .build(),
            |_| Ok(()),
        )
    };
    let planned = |builder: FeatureRegistryBuilder| {
        let mut builder = builder.with(module());
        builder.plan().features[0].outcome
    };
    let builder = || FeatureRegistryBuilder::new(CapabilityPolicy::nothing());
    assert_eq!(planned(builder()), InstallOutcome::Skipped);
    assert_eq!(
        planned(builder().runtime(FeatureRuntimeKind::McpBridge)),
        InstallOutcome::Skipped
    );
    assert_eq!(
        planned(builder().runtime(FeatureRuntimeKind::Declarative)),
        InstallOutcome::Installed
    );
}

// Journals name kinds that a feature had when they were written.
#[test]
fn old_names_of_kinds_of_code_are_read() {
    for (old, now) in [
        ("external_process", FeatureRuntimeKind::Guest),
        ("wasm_placeholder", FeatureRuntimeKind::Guest),
        ("declarative_placeholder", FeatureRuntimeKind::Declarative),
    ] {
        let kind: FeatureRuntimeKind = serde_json::from_str(&format!("\"{old}\"")).unwrap();
        assert_eq!(kind, now, "{old}");
    }
}
