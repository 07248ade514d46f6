//! Which row of the policy answers, and what the table and rules will say before there is a call.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use authority::SandboxMode;
use llm_worker::ToolEffect;
use pod::feature::{Admission, CapabilityPolicy, FeatureId, HostCapability};
use pod::permission::{ActionKind, Layer, Policy, Rule, RuleDecision, SandboxState};
use testkit::TERMS;

fn id(text: &str) -> FeatureId {
    text.parse().unwrap()
}

#[test]
fn a_row_admits_or_refuses_and_says_where_it_is_written() {
    let a = id("builtin:a");
    let policy = CapabilityPolicy::nothing()
        .grant(a.clone(), HostCapability::tool("*"), "default")
        .grant(a.clone(), HostCapability::WRITE_WORKSPACE, "default")
        .refuse(a.clone(), HostCapability::tool("Say"), "user.toml:3")
        .grant(a.clone(), HostCapability::READ_WORKSPACE, "user.toml:4");
    let granted = |source: &str| Admission::Granted(source.to_owned());
    let cases = [
        (HostCapability::tool("Tell"), granted("default")),
        (
            HostCapability::tool("Say"),
            Admission::Refused("user.toml:3".to_owned()),
        ),
        (HostCapability::WRITE_WORKSPACE, granted("default")),
        (HostCapability::READ_WORKSPACE, granted("user.toml:4")),
    ];
    for (asked, told) in cases {
        assert_eq!(policy.admission(&a, &asked), told, "{asked}");
    }
    for (feature, asked) in [
        (a, HostCapability::EmitUserAlert),
        (id("builtin:b"), HostCapability::tool("Say")),
    ] {
        let Admission::Denied(denied) = policy.admission(&feature, &asked) else {
            panic!("{feature} has {asked}");
        };
        assert_eq!(denied.capability, asked);
        assert!(denied.denial.remedy.is_some(), "{denied:?}");
    }
}

fn rule(tool: &str, path: Option<&str>, decision: RuleDecision) -> Rule {
    Rule {
        path: path.map(str::to_owned),
        ..Rule::new(tool, decision)
    }
}

#[test]
fn what_rules_will_say_is_what_they_say_when_they_judge() {
    use RuleDecision::{Allow, Ask, Deny};
    let layer = |source: &str, rules: Vec<Rule>| Layer::new(source, rules).unwrap();
    let confined = SandboxState {
        mode: SandboxMode::WorkspaceWrite,
        enforced: true,
    };
    let off = SandboxState {
        mode: SandboxMode::Off,
        enforced: true,
    };
    let locked = SandboxState {
        mode: SandboxMode::ReadOnly,
        enforced: true,
    };
    let decided = |layers: Vec<Layer>, tool: &str, effect, now, matter: ActionKind| {
        let met = Policy::new(TERMS, layers)
            .expect(tool, effect, now)
            .into_iter()
            .find(|met| met.action == matter)
            .unwrap();
        let deciding: Vec<_> = met
            .statements
            .iter()
            .filter(|said| said.decides)
            .map(|said| said.source.clone())
            .collect();
        (
            met.decision,
            deciding.concat(),
            met.statements
                .iter()
                .filter(|said| said.path.is_some())
                .count(),
        )
    };
    let run = |layers, now| decided(layers, "Bash", ToolEffect::Effectful, now, ActionKind::Runs);
    assert_eq!(run(vec![], confined), (Allow, "default".to_owned(), 0));
    assert_eq!(run(vec![], off), (Ask, "default".to_owned(), 0));
    let other = || layer("a.toml", vec![rule("Write", None, Deny)]);
    assert_eq!(
        run(vec![other()], confined),
        (Allow, "default".to_owned(), 0)
    );
    let allow = || {
        layer(
            "a.toml",
            vec![
                rule("Bash", Some("x"), Deny),
                rule("*", None, Deny),
                rule("Bash", None, Allow),
            ],
        )
    };
    assert_eq!(run(vec![allow()], off), (Allow, "a.toml".to_owned(), 0));
    let deny = || layer("b.toml", vec![rule("*", None, Deny)]);
    assert_eq!(
        run(vec![allow(), deny()], off),
        (Deny, "b.toml".to_owned(), 0)
    );
    // A refusal of an outer layer stands: nobody inside is asked.
    assert_eq!(
        run(vec![deny(), allow()], off),
        (Deny, "b.toml".to_owned(), 0)
    );
    let write = |layers, now| {
        decided(
            layers,
            "Write",
            ToolEffect::Idempotent,
            now,
            ActionKind::Writes,
        )
    };
    let locks = || layer("a.toml", vec![rule("Write", Some("**/*.lock"), Deny)]);
    assert_eq!(
        write(vec![locks()], confined),
        (Allow, "default".to_owned(), 1)
    );
    assert_eq!(
        write(vec![locks()], locked),
        (Deny, "default".to_owned(), 0)
    );
}
