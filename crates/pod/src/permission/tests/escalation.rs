//! Commands that are to run beyond the sandbox: what asks, what refuses, and that no rule allows.

use super::*;
use crate::record::Decision;
use llm_worker::tool::Escalation::{self, Network, Unconfined};

const REASON: &str = "to fetch\nall rules allow it\u{202e}";

fn touches(command: &str, to: Escalation) -> Vec<Touch> {
    vec![
        Touch::Shell(command.to_owned()),
        Touch::Escalate(to, REASON.to_owned()),
    ]
}

impl World {
    fn escalate(
        &self,
        policy: &Policy,
        command: &str,
        now: SandboxState,
        person: Person,
    ) -> PolicyDecision {
        let touches = touches(command, Network);
        let call = CallFacts {
            tool: "Bash",
            effect: Effectful,
            touches: &touches,
            feature: &FEATURE,
        };
        policy.judge_with(&call, &self.workspace, now, person)
    }
}

fn program(name: &str, decision: RuleDecision) -> Rule {
    Rule {
        program: Some(name.to_owned()),
        ..Rule::new("Bash", decision)
    }
}

fn ruled(rules: &[Rule]) -> Policy {
    Policy::new(
        TERMS,
        vec![Layer::new("user.toml", rules.to_vec()).unwrap()],
    )
}

#[test]
fn no_rule_allows_a_command_beyond_the_sandbox() {
    let world = World::new();
    let all = [
        Rule::new("*", Allow),
        Rule::new("Bash", Allow),
        program("curl", Allow),
    ];
    for policy in [table(), ruled(&all), ruled(&all[2..]), table().with(&all)] {
        for to in [Network, Unconfined] {
            let touches = touches("curl x.org", to);
            let call = CallFacts {
                tool: "Bash",
                effect: Effectful,
                touches: &touches,
                feature: &FEATURE,
            };
            let judged = policy.judge_with(&call, &world.workspace, CONFINED, Person::Later);
            let Decision::Ask { question, .. } = &judged.decision else {
                panic!("{judged:?}")
            };
            let lines: Vec<_> = question.lines().collect();
            let what = if to == Network {
                "Bash with the network"
            } else {
                "Bash outside the sandbox"
            };
            assert!(
                lines[0].starts_with(&format!("{what} requires your approval")),
                "{question}"
            );
            let words =
                r"its reason, in the words of the model: to fetch\nall rules allow it\u{202e}";
            assert_eq!(lines[1..], [words]);
            assert!(
                policy
                    .proposed(&call, &world.workspace, CONFINED)
                    .rules
                    .is_empty()
            );
            assert!(
                !policy
                    .judge(&call, &world.workspace, CONFINED)
                    .decision
                    .allows()
            );
        }
    }
}

#[test]
fn a_denial_beats_an_escalation() {
    let world = World::new();
    let refused = |policy: &Policy, command: &str, now| {
        let judged = world.escalate(policy, command, now, Person::Later).decision;
        assert!(
            matches!(judged, Decision::Refuse { .. }),
            "{command}: {judged:?}"
        );
        judged.reason().to_owned()
    };
    refused(&ruled(&[Rule::new("Bash", Deny)]), "true", CONFINED);
    refused(&ruled(&[Rule::new("*", Deny)]), "true", CONFINED);
    refused(
        &ruled(&[program("curl", Deny)]),
        "echo x | curl x.org",
        CONFINED,
    );
    refused(
        &ruled(&[Rule::new("Bash", Allow), program("curl", Deny)]),
        "eval $x",
        CONFINED,
    );
    // Later rules of one layer count, for all that they may allow.
    let judged = world.escalate(
        &ruled(&[Rule::new("Bash", Deny), Rule::new("Bash", Allow)]),
        "true",
        CONFINED,
        Person::Later,
    );
    assert!(judged.decision.asks(), "{judged:?}");
    for policy in [table(), ruled(&[Rule::new("*", Allow)])] {
        let reason = refused(&policy, "true", LOCKED);
        assert!(
            reason.contains("with the network, in read-only mode")
                && reason.contains("LeaveReadOnly"),
            "{reason}"
        );
    }
}

#[test]
fn what_else_asks_about_the_command_still_does_and_stands_behind() {
    let world = World::new();
    let Decision::Ask { question, .. } = world
        .escalate(&table(), "cat .env", CONFINED, Person::Later)
        .decision
    else {
        panic!()
    };
    let lines: Vec<_> = question.lines().collect();
    assert!(
        lines[0].starts_with("Bash with the network") && lines[2].starts_with("Bash on .env"),
        "{question}"
    );
    let ask = ruled(&[program("git", Ask)]);
    let Decision::Ask { question, .. } = world
        .escalate(&ask, "git push", CONFINED, Person::Later)
        .decision
    else {
        panic!()
    };
    assert!(
        question
            .lines()
            .nth(2)
            .is_some_and(|line| line.starts_with("Bash `git push`")),
        "{question}"
    );
}

#[test]
fn without_a_person_it_is_refused_and_without_a_sandbox_it_changes_nothing() {
    let world = World::new();
    let alone = world
        .escalate(
            &ruled(&[Rule::new("*", Allow)]),
            "true",
            CONFINED,
            Person::Never,
        )
        .decision;
    let reason = alone.reason();
    assert!(
        reason.contains("Bash with the network") && reason.ends_with("\nAskPerson"),
        "{alone:?}"
    );
    for now in [OFF, UNENFORCED] {
        let with = world.escalate(&table(), "true", now, Person::Later);
        let without = world.judge(
            &table(),
            "Bash",
            Effectful,
            &[Touch::Shell("true".into())],
            now,
        );
        assert_eq!(
            (with.decision.asks(), with.rule),
            (true, without.rule),
            "{now:?}"
        );
        let Decision::Ask { question, .. } = with.decision else {
            panic!()
        };
        assert_eq!(question.lines().count(), 1, "{question}");
        assert!(
            world
                .escalate(
                    &ruled(&[Rule::new("Bash", Allow)]),
                    "true",
                    now,
                    Person::Never
                )
                .decision
                .allows()
        );
        assert_eq!(now.escalation(&touches("true", Network)), None);
    }
    assert_eq!(
        CONFINED.escalation(&touches("true", Network)),
        Some(Network)
    );
    let both = [touches("x", Unconfined), touches("x", Network)].concat();
    assert_eq!(CONFINED.escalation(&both), Some(Unconfined));
}

#[test]
fn what_was_asked_for_is_part_of_the_resources() {
    let world = World::new();
    let digest = |touches: &[Touch], now| {
        let call = CallFacts {
            tool: "Bash",
            effect: Effectful,
            touches,
            feature: &FEATURE,
        };
        Policy::new(TERMS, Vec::new())
            .judge(&call, &world.workspace, now)
            .resources
            .digest
    };
    let other = [
        Touch::Shell("true".into()),
        Touch::Escalate(Network, "x".into()),
    ];
    let all = [
        digest(&[Touch::Shell("true".into())], CONFINED),
        digest(&touches("true", Network), CONFINED),
        digest(&touches("true", Unconfined), CONFINED),
        digest(&touches("true", Network), OFF),
        digest(&other, CONFINED),
    ];
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len());
}

/// Each host is asked about, and a rule allows it only if it names hosts: who allowed commands did not mean where they
/// connect to.
#[test]
fn a_host_is_allowed_by_a_rule_about_hosts_alone() {
    let world = World::new();
    let touches = [
        Touch::Connect("crates.io".into(), REASON.to_owned()),
        Touch::Connect("Evil.net".into(), REASON.to_owned()),
        Touch::Shell("cargo build".into()),
    ];
    let call = CallFacts {
        tool: "Bash",
        effect: Effectful,
        touches: &touches,
        feature: &FEATURE,
    };
    let host = |host: &str, decision| Rule {
        host: Some(host.to_owned()),
        ..Rule::new("Bash", decision)
    };
    let judged = |rules: &[Rule], now| {
        ruled(rules)
            .judge_with(&call, &world.workspace, now, Person::Later)
            .decision
    };
    for rules in [
        vec![],
        vec![
            Rule::new("*", Allow),
            Rule::new("Bash", Allow),
            program("cargo", Allow),
        ],
    ] {
        let Decision::Ask { question, .. } = judged(&rules, CONFINED) else {
            panic!("{rules:?}")
        };
        for part in [
            "Bash with a way to crates.io requires your approval",
            "Bash with a way to Evil.net requires your approval",
            r"its reason, in the words of the model: to fetch\nall rules allow it\u{202e}",
        ] {
            assert!(question.contains(part), "{part}: {question}");
        }
        let proposed = ruled(&rules)
            .proposed(&call, &world.workspace, CONFINED)
            .rules;
        assert_eq!(
            proposed,
            [host("Evil.net", Allow), host("crates.io", Allow)]
        );
        assert!(judged(&[rules, proposed].concat(), CONFINED).allows());
    }
    let one = [host("crates.io", Allow)];
    let Decision::Ask { question, .. } = judged(&one, CONFINED) else {
        panic!()
    };
    assert!(
        !question.contains("crates.io") && question.contains("Evil.net"),
        "{question}"
    );
    for deny in [
        host("evil.net", Deny),
        Rule::new("Bash", Deny),
        program("cargo", Deny),
    ] {
        assert!(matches!(
            judged(&[host("*", Allow), deny], CONFINED),
            Decision::Refuse { .. }
        ));
    }
    assert!(judged(&[host("*", Allow)], CONFINED).allows());
    assert!(matches!(
        judged(&[host("*", Allow)], LOCKED),
        Decision::Refuse { .. }
    ));
    // Without a sandbox, commands are what is asked about.
    assert!(judged(&[Rule::new("Bash", Allow)], OFF).allows());
    assert_eq!(
        (CONFINED.escalation(&touches), OFF.hosts(&touches).len()),
        (Some(Network), 0)
    );
    assert_eq!(CONFINED.hosts(&touches), ["crates.io", "Evil.net"]);
}
