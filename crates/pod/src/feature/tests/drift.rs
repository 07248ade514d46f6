//! Drift between two starts: what is compared, and what each difference means.

use super::rig::*;
use crate::feature::*;
use crate::hook::{Change, PreToolCall, ToolCallView, ToolShape, ToolShapeView, Verdict};
use crate::permission::{Rule, RuleDecision};
use llm_worker::ToolOutput;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const GATE: HookKey<PreToolCall> = HookKey::new("guard");
const HIDE: HookKey<ToolShape> = HookKey::new("hide").withhold_on_failure();
const SCHEMA: &str = r#"{"type":"object","properties":{"window":{"default":3},"words":{}}}"#;

struct Guard;

impl Guard {
    fn judge(&self, _: &ToolCallView) -> Verdict<PreToolCall> {
        Verdict::allow()
    }

    fn hide(&self, _: &ToolShapeView) -> Change<ToolOutput> {
        Change::Unchanged
    }
}

/// One start of a pod with `user:gate`, `user:hide`, `user:tools` and `user:plain`.
struct Start {
    policy: CapabilityPolicy,
    settings: Value,
    body: Option<String>,
    gate: fn() -> HookKey<PreToolCall>,
    note: &'static str,
    without: &'static str,
}

fn start() -> Start {
    let ids = ["user:tools", "user:plain"];
    let fs = HostCapability::WRITE_WORKSPACE;
    let policy = tools_for(&ids)
        .grant(
            id("user:gate"),
            HostCapability::hook::<PreToolCall>(),
            "test",
        )
        .grant(id("user:hide"), HostCapability::hook::<ToolShape>(), "test")
        .grant(id("user:hide"), HostCapability::ANY_RESULT, "test")
        .grant(id("user:tools"), fs, "test");
    Start {
        policy,
        settings: json!({}),
        body: None,
        gate: || GATE,
        note: "a",
        without: "",
    }
}

struct Bodied(Arc<dyn FeatureModule>, Option<String>);

impl FeatureModule for Bodied {
    fn descriptor(&self) -> FeatureDescriptor {
        self.0.descriptor()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        self.0.install(ctx)
    }

    fn body(&self) -> Option<String> {
        self.1.clone()
    }
}

impl Start {
    fn report(self) -> RegistryReport {
        let Self {
            policy,
            settings,
            body,
            gate,
            note,
            without,
        } = self;
        let guard = declaring("user:gate", &[])
            .foreign_settings(SCHEMA)
            .gate(&gate())
            .build();
        let guard = with(guard, move |ctx| {
            ctx.hooks()
                .gate(&gate(), &Arc::new(Guard), Guard::judge)
                .map(drop)
        });
        let hide = with(
            declaring("user:hide", &[])
                .foreign_settings(SCHEMA)
                .transform(&HIDE)
                .build(),
            |ctx| {
                ctx.hooks()
                    .transform(&HIDE, &Arc::new(Guard), Guard::hide)
                    .map(drop)
            },
        );
        let fs = CapabilityRequest::optional(HostCapability::WRITE_WORKSPACE, "to write");
        let tools = with(
            declaring("user:tools", &["Say", "Tell"])
                .request(fs)
                .build(),
            |ctx| {
                for name in ["Say", "Tell"] {
                    ctx.tools()
                        .implement(&super::rig::key(name), &Arc::new(Live), Live::say)?;
                }
                Ok(())
            },
        );
        let plain = with(
            declaring("user:plain", &[])
                .foreign_settings(SCHEMA)
                .instruction("note", note)
                .build(),
            |_| Ok(()),
        );
        let modules: Vec<(&str, Arc<dyn FeatureModule>)> = vec![
            ("user:gate", Arc::new(Bodied(guard, body.clone()))),
            ("user:hide", hide),
            ("user:tools", tools),
            ("user:plain", Arc::new(Bodied(plain, body))),
        ];
        let settings = settings.as_object().unwrap().iter();
        let policy = settings.fold(policy, |policy, (feature, own)| {
            policy.settings(id(feature), own.as_object().unwrap().clone())
        });
        let modules = modules
            .into_iter()
            .filter(|(name, _)| *name != without)
            .map(|(_, module)| module)
            .collect();
        build(policy, modules)
            .install(&HostServices::none())
            .report()
            .clone()
    }
}

fn recorded(report: &RegistryReport) -> RecordedRegistry {
    RecordedRegistry::of(&serde_json::to_value(report).unwrap()).unwrap()
}

fn set(feature: &str, settings: Value) -> Start {
    Start {
        settings: json!({ feature: settings }),
        ..start()
    }
}

fn off(feature: &str) -> Start {
    Start {
        policy: start().policy.disable(id(feature), "user.toml:3"),
        ..start()
    }
}

#[test]
fn each_difference_has_its_grade_and_is_named() {
    use DriftGrade::{Breaking, Compatible, Degraded};
    let working = |start: Start| Start {
        policy: start.policy.require(id("user:tools"), "user.toml:9"),
        ..start
    };
    let other = || Start {
        note: "b",
        ..start()
    };
    let renamed = Start {
        gate: || HookKey::new("other"),
        ..start()
    };
    let required = |start: Start| Start {
        policy: start.policy.require(id("user:plain"), "user.toml:9"),
        ..start
    };
    let body = |digit: &str| Start {
        body: Some(digit.repeat(64)),
        ..start()
    };
    let only = |start: Start| Start {
        policy: start.policy.only_tools(["Say".to_owned()], "agent a"),
        ..start
    };
    let read = HostCapability::READ_WORKSPACE;
    let fewer = || {
        let policy =
            tools_for(&["user:tools", "user:plain"]).grant(id("user:tools"), read.clone(), "test");
        let policy = policy.grant(
            id("user:gate"),
            HostCapability::hook::<PreToolCall>(),
            "test",
        );
        let hide = policy.grant(id("user:hide"), HostCapability::hook::<ToolShape>(), "test");
        Start {
            policy: hide.grant(id("user:hide"), HostCapability::ANY_RESULT, "test"),
            ..start()
        }
    };
    let slower = Start {
        gate: || GATE.deadline(Duration::from_secs(9)),
        ..start()
    };
    let set_window = |feature: &str| set(feature, json!({"window": 9}));
    let table: Vec<(Start, Start, DriftGrade, &str)> = vec![
        (
            start(),
            set_window("user:gate"),
            Breaking,
            "user:gate has its setting `window` changed from 3 to 9",
        ),
        (
            start(),
            set_window("user:hide"),
            Breaking,
            "user:hide has its setting `window` changed from 3 to 9",
        ),
        (
            start(),
            set_window("user:plain"),
            Compatible,
            "user:plain has its setting `window` changed from 3 to 9",
        ),
        (
            start(),
            set("user:gate", json!({"words": ["x"]})),
            Breaking,
            "user:gate has its setting `words` changed",
        ),
        (
            required(start()),
            required(set_window("user:plain")),
            Breaking,
            "`window` changed from 3 to 9",
        ),
        (
            start(),
            off("user:gate"),
            Breaking,
            "user:gate was switched off by user.toml:3 (guard guard)",
        ),
        (
            start(),
            off("user:hide"),
            Breaking,
            "user:hide was switched off by user.toml:3 (guard hide)",
        ),
        (
            required(start()),
            off("user:plain"),
            Breaking,
            "user:plain was switched off by user.toml:3",
        ),
        (
            start(),
            off("user:plain"),
            Compatible,
            "user:plain was switched off by user.toml:3",
        ),
        (off("user:plain"), start(), Compatible, "user:plain is new"),
        (off("user:gate"), start(), Compatible, "user:gate is new"),
        (
            start(),
            off("user:tools"),
            Degraded,
            "user:tools no longer offers Say, Tell",
        ),
        (
            start(),
            only(start()),
            Degraded,
            "user:tools no longer offers Tell",
        ),
        (
            start(),
            fewer(),
            Degraded,
            "user:tools is no longer granted ScopedFs",
        ),
        (
            fewer(),
            start(),
            Compatible,
            "user:tools is now granted ScopedFs",
        ),
        (
            working(start()),
            working(only(start())),
            Breaking,
            "user:tools no longer offers Tell",
        ),
        (
            working(start()),
            working(fewer()),
            Breaking,
            "user:tools is no longer granted ScopedFs",
        ),
        (
            start(),
            other(),
            Compatible,
            "user:plain has other tools, hooks or texts than before",
        ),
        (
            required(start()),
            required(other()),
            Breaking,
            "user:plain has other tools, hooks or texts than before",
        ),
        (
            start(),
            renamed,
            Breaking,
            "user:gate no longer has its guard guard",
        ),
        (
            start(),
            slower,
            Breaking,
            "user:gate has another form of its guard guard",
        ),
        (
            body("a"),
            body("b"),
            Breaking,
            "user:gate has other code than before",
        ),
        (
            body("a"),
            body("b"),
            Breaking,
            "user:plain has other code than before",
        ),
        (
            start(),
            Start {
                without: "user:gate",
                ..start()
            },
            Breaking,
            "user:gate is not part of this program any more",
        ),
    ];
    for (from, to, grade, says) in table {
        let drift = to.report().since(&recorded(&from.report()));
        let worst = drift
            .differences()
            .iter()
            .map(|difference| difference.grade)
            .max();
        assert_eq!(worst, Some(grade), "{says}: {drift:#?}");
        assert!(
            drift
                .differences()
                .iter()
                .any(|found| found.to_string().contains(says)),
            "{says}: {drift:#?}"
        );
    }
}

#[test]
fn the_same_start_is_the_same() {
    let first = set("user:gate", json!({"window": 9})).report();
    // A default that is written out is no change, and neither is where something is written.
    let written = set("user:gate", json!({"window": 3})).report();
    assert_eq!(written.since(&recorded(&start().report())), Drift::Same);
    let attached = Start {
        policy: start().policy.attach(id("user:gate"), "user.toml:7"),
        ..start()
    };
    assert_eq!(
        attached.report().since(&recorded(&start().report())),
        Drift::Same
    );
    assert_eq!(first.since(&recorded(&first)), Drift::Same);
}

#[test]
fn another_version_of_the_program_is_told_once() {
    let report = start().report();
    let mut earlier = serde_json::to_value(&report).unwrap();
    earlier["digest"] = Value::from("0".repeat(64));
    let earlier = earlier.to_string().replace("\"build:", "\"build:old-");
    let drift =
        report.since(&RecordedRegistry::of(&serde_json::from_str(&earlier).unwrap()).unwrap());
    let told: Vec<String> = drift
        .differences()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        matches!(drift, Drift::Compatible(_)) && told.len() == 1,
        "{told:?}"
    );
    assert!(
        told[0].starts_with("the program changed from version old-"),
        "{told:?}"
    );
}

/// What an older program recorded says nothing about settings.
#[test]
fn a_report_without_digests_is_no_earlier_start() {
    let mut report = serde_json::to_value(start().report()).unwrap();
    report.as_object_mut().unwrap().remove("digest");
    assert_eq!(RecordedRegistry::of(&report), None);
}

#[test]
fn the_model_is_told_what_it_no_longer_has() {
    let before = recorded(&start().report());
    let told = off("user:tools").report().since(&before).for_model();
    assert_eq!(
        told.as_deref(),
        Some("[since this session last ran: user:tools no longer offers Say, Tell]")
    );
    assert_eq!(off("user:gate").report().since(&before).for_model(), None);
    assert_eq!(start().report().since(&before).for_model(), None);
}

#[test]
fn a_body_that_is_no_digest_is_refused() {
    for (body, is_live) in [
        ("a".repeat(64), true),
        ("build:9".to_owned(), false),
        ("A".repeat(64), false),
    ] {
        let report = Start {
            body: Some(body.clone()),
            ..start()
        }
        .report();
        assert_eq!(
            report.feature(&id("user:plain")).unwrap().outcome.is_live(),
            is_live,
            "{body}"
        );
    }
}

/// A feature without code that has these rules, and what the report says of rules that do not hold.
fn ruled(decisions: &[RuleDecision], lost: Option<&str>) -> RegistryReport {
    let builder = declaring("plugin:calm/main", &[]).runtime(FeatureRuntimeKind::Declarative);
    let rules = decisions
        .iter()
        .map(|decision| Rule::new("Bash", *decision));
    let descriptor = rules.fold(builder, FeatureDescriptorBuilder::rule).build();
    let module = Bodied(with(descriptor, |_| Ok(())), Some("a".repeat(64)));
    let registry =
        FeatureRegistryBuilder::new(tools_for(&[])).runtime(FeatureRuntimeKind::Declarative);
    let registry =
        registry.with_all((lost.is_none()).then_some(Arc::new(module) as Arc<dyn FeatureModule>));
    let registry = lost.into_iter().fold(registry, |registry, what| {
        registry.lost_rules(Some(id("plugin:calm/main")), what)
    });
    registry.install(&HostServices::none()).report().clone()
}

/// Rules of a plugin refuse as gates do. They left with one changed byte of it, and the pod went on.
#[test]
fn a_rule_that_is_gone_is_breaking_once() {
    use RuleDecision::{Ask, Deny};
    let before = ruled(&[Deny, Ask], None);
    let none = ruled(&[], Some("plugin:calm/main lacks its rules"));
    assert_eq!(before.since(&recorded(&before)), Drift::Same);
    assert_eq!(before.features[0].rules.len(), 2);
    let cases = [
        (
            &before,
            ruled(&[Deny], None),
            "plugin:calm/main no longer has its rule `ask Bash`",
        ),
        (
            &before,
            ruled(&[Ask, Ask], None),
            "plugin:calm/main no longer has its rule `deny Bash`",
        ),
        (
            &before,
            none.clone(),
            "was removed (rule `deny Bash`, rule `ask Bash`)",
        ),
        (
            &ruled(&[], None),
            none.clone(),
            "plugin:calm/main lacks its rules",
        ),
    ];
    for (from, to, says) in cases {
        let drift = to.since(&recorded(from));
        assert!(matches!(drift, Drift::Breaking(_)), "{says}: {drift:?}");
        let of_rules = drift
            .differences()
            .iter()
            .filter(|found| found.to_string().contains(says));
        assert_eq!(of_rules.count(), 1, "{says}: {drift:?}");
    }
    assert_eq!(none.since(&recorded(&none)), Drift::Same, "it was accepted");
    assert!(matches!(
        ruled(&[Deny, Ask, Ask], None).since(&recorded(&before)),
        Drift::Compatible(_)
    ));
    let coded = declaring("user:plain", &[])
        .rule(Rule::new("Bash", Deny))
        .build();
    assert!(
        coded
            .problems()
            .concat()
            .contains("rules: a feature with code has hooks instead")
    );
}
