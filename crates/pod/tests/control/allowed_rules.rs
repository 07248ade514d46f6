//! Rules that a person allowed for a pod: what they match, and that they count no more once they are taken back.

use crate::approval_scene::{again, allow, answer, asked, deny, idle, person, scene, waits};
use crate::fixtures::{echo, live, sound};
use llm_worker::ToolEffect;
use llm_worker::tool::Touch;
use pod::control::{ApprovalAnswer, NewInput, SubmitError};
use pod::permission::{Layer, Rule, RuleDecision};
use pod::record::{ApprovalRequested, ApprovalScope, Gap, Record};
use pod::session::fold::SessionState;
use protocol::method::ForgetRules;
use protocol::method::MatchedCalls;
use testkit::{FnTool, LivePod, PodUnderTest, ScriptedAnswer};

/// A pod that asks about `Fetch` (at one.net) and `Other` (at two.net).
fn fetching(calls: &[(&str, &str)]) -> (PodUnderTest, [FnTool; 2]) {
    fetching_in(
        calls
            .iter()
            .map(|call| ScriptedAnswer::calls(&[*call]))
            .collect(),
    )
}

/// The same, with these answers before the last one.
fn fetching_in(mut answers: Vec<ScriptedAnswer>) -> (PodUnderTest, [FnTool; 2]) {
    let tool = |name: &str, host: &str| {
        echo(name, ToolEffect::ReadOnly).touching(vec![Touch::Host(host.to_owned())])
    };
    answers.push(ScriptedAnswer::text("fetched"));
    let (mut pod, _) = scene(answers);
    let tools = [tool("Fetch", "one.net"), tool("Other", "two.net")];
    pod.tools = tools.to_vec();
    pod.judge_by(vec![Rule::new("*", RuleDecision::Ask)]);
    (pod, tools)
}

fn by_rule(asked: &ApprovalRequested) -> ApprovalAnswer {
    ApprovalAnswer {
        scope: ApprovalScope::Rule,
        ..allow(asked)
    }
}

/// The question that waits with this number.
fn question(live: &LivePod, approval: u64) -> ApprovalRequested {
    let status = live.until(|status| {
        status
            .approvals
            .iter()
            .any(|open| open.approval == approval)
    });
    (*status.approvals[0]).clone()
}

#[test]
fn a_rule_that_was_taken_back_asks_again() {
    let fetch = |n| {
        [
            ("Fetch", r#"{"n":1}"#),
            ("Fetch", r#"{"n":2}"#),
            ("Fetch", r#"{"n":3}"#),
        ][n]
    };
    let (pod, [tool, _]) = fetching(&[fetch(0), fetch(1)]);
    let live = live(pod);
    let open = asked(&live);
    assert!(open[0].configurable);
    let recorded = answer(&live, by_rule(&open[0])).unwrap();
    assert_eq!(recorded.scope, ApprovalScope::Rule);
    let pod = idle(live).pod;
    assert_eq!(tool.ran().len(), 2, "the second call was not asked about");
    let live = again(
        pod,
        vec![
            ScriptedAnswer::calls(&[fetch(2)]),
            ScriptedAnswer::text("done"),
        ],
    );
    let rules = live.until(|status| status.turns == 1).rules;
    let [rule] = &rules[..] else {
        panic!("{rules:?}")
    };
    assert_eq!(
        (rule.number, rule.approval, rule.scope),
        (1, 1, ApprovalScope::Rule)
    );
    assert_eq!(Rule::from(&rule.rule).to_string(), "allow Fetch on one.net");
    let client = live.client();
    assert!(matches!(
        live.ask(client.tell(
            ForgetRules {
                rules: vec![1, 2],
                cmd_id: String::new()
            },
            None
        )),
        Err(SubmitError::NoRuleNumber(2))
    ));
    live.ask(client.tell(
        ForgetRules {
            rules: vec![1, 1, 1],
            cmd_id: String::new(),
        },
        person("three"),
    ))
    .unwrap();
    assert!(matches!(
        live.ask(client.tell(
            ForgetRules {
                rules: vec![1],
                cmd_id: String::new()
            },
            None
        )),
        Err(SubmitError::NoRuleNumber(1))
    ));
    live.ask(client.send(NewInput {
        text: "more".to_owned(),
        ..NewInput::default()
    }))
    .unwrap();
    let open = waits(&live).approvals;
    assert_eq!(
        (open[0].approval, tool.ran().len()),
        (2, 2),
        "it is asked about again"
    );
    answer(&live, by_rule(&open[0])).unwrap();
    let over = idle(live);
    assert_eq!(
        over.state()
            .approvals
            .rules
            .iter()
            .map(|rule| rule.number)
            .collect::<Vec<_>>(),
        [2],
        "numbers stay"
    );
    let forgotten = over
        .pod
        .records()
        .into_iter()
        .find_map(|(_, record)| match record {
            Record::RulesForgotten(forgotten) => Some(forgotten),
            _ => None,
        });
    let forgotten = forgotten.unwrap();
    assert_eq!(
        (forgotten.rules, forgotten.by),
        (vec![rule.rule.clone()], person("three"))
    );
    sound(&over.pod, "taken back");
}

#[test]
fn a_rule_that_is_known_is_of_the_newest_answer_with_the_scope_rule() {
    let calls = [("Fetch", r#"{"n":1}"#), ("Fetch", r#"{"n":2}"#)];
    let (mut pod, _) = scene(vec![
        ScriptedAnswer::calls(&calls),
        ScriptedAnswer::text("fetched"),
    ]);
    pod.tools =
        vec![echo("Fetch", ToolEffect::ReadOnly).touching(vec![Touch::Host("one.net".to_owned())])];
    pod.judge_by(vec![Rule::new("*", RuleDecision::Ask)]);
    let live = live(pod);
    let open = asked(&live);
    answer(
        &live,
        ApprovalAnswer {
            scope: ApprovalScope::Pod,
            ..allow(&open[0])
        },
    )
    .unwrap();
    answer(&live, by_rule(&open[1])).unwrap();
    let over = idle(live);
    let rules: Vec<_> = over
        .state()
        .approvals
        .rules
        .iter()
        .map(|rule| (rule.approval, rule.scope))
        .collect();
    assert_eq!(rules, [(2, ApprovalScope::Rule)]);
}

#[test]
fn past_calls_are_those_that_the_rules_match() {
    let calls = [
        ("Fetch", r#"{"n":1}"#),
        ("Other", "{}"),
        ("Fetch", r#"{"n":2}"#),
        ("Fetch", r#"{"n":3}"#),
    ];
    let (pod, [tool, _]) = fetching(&calls);
    let live = live(pod);
    asked(&live);
    answer(&live, allow(&question(&live, 1))).unwrap();
    answer(&live, allow(&question(&live, 2))).unwrap();
    answer(&live, deny(&question(&live, 3), "no")).unwrap();
    let open = question(&live, 4);
    waits(&live);
    let client = live.client();
    let dir = live.pod.dir.clone();
    let past = live.ask(client.past_calls(4, &dir)).unwrap();
    let shown: Vec<_> = past
        .calls
        .iter()
        .map(|call| (call.tool.as_str(), &*call.arguments))
        .collect();
    assert_eq!(
        shown,
        [("Fetch", r#"{"n":2}"#), ("Fetch", r#"{"n":1}"#)],
        "newest first, also one that was denied"
    );
    assert_eq!((past.matched, past.searched, past.complete), (2, 3, true));
    assert!(matches!(
        live.ask(client.past_calls(1, &dir)),
        Err(SubmitError::NoApproval(1))
    ));
    answer(&live, deny(&open, "no")).unwrap();
    let over = idle(live);
    assert_eq!(tool.ran().len(), 1, "a search runs nothing");
    sound(&over.pod, "past calls");
}

/// The calls that the rules match of a question about `Fetch`, behind these answers, all of whose calls ran.
fn past_behind(answers: Vec<ScriptedAnswer>) -> MatchedCalls {
    let (mut pod, _) = fetching_in(answers);
    pod.judge_by(vec![Rule::new("*", RuleDecision::Allow)]);
    let live = live(pod);
    live.ask(live.client().send(NewInput {
        text: "go".to_owned(),
        ..NewInput::default()
    }))
    .unwrap();
    let mut pod = idle(live).pod;
    pod.judge_by(vec![Rule::new("*", RuleDecision::Ask)]);
    let live = again(
        pod,
        vec![
            ScriptedAnswer::calls(&[("Fetch", "{}")]),
            ScriptedAnswer::text("done"),
        ],
    );
    let open = asked(&live);
    let past = live
        .ask(live.client().past_calls(1, &live.pod.dir))
        .unwrap();
    answer(&live, deny(&open[0], "no")).unwrap();
    drop(idle(live));
    past
}

#[test]
fn at_most_ten_past_calls_are_shown() {
    let past = past_behind(vec![ScriptedAnswer::calls(&[("Fetch", "{}")]); 13]);
    assert_eq!(
        (past.calls.len(), past.matched, past.complete),
        (10, 13, true)
    );
}

#[test]
fn a_search_ends_behind_the_newest_500_calls() {
    let past = past_behind(vec![ScriptedAnswer::calls(&[("Fetch", "{}"); 60]); 9]);
    assert_eq!(
        (past.searched, past.matched, past.complete),
        (500, 500, false)
    );
}

#[test]
fn a_rule_that_a_later_layer_overrides_is_not_offered() {
    let (mut pod, [tool, _]) = fetching(&[("Fetch", "{}")]);
    let project = Layer::new("yoi.toml", vec![Rule::new("*", RuleDecision::Ask)])
        .unwrap()
        .tightening();
    pod.judge_by_layers(vec![project]);
    let live = live(pod);
    let open = asked(&live);
    assert!(!open[0].configurable && !open[0].rules.is_empty());
    assert!(matches!(
        answer(&live, by_rule(&open[0])),
        Err(SubmitError::NoConfigurableRule(1))
    ));
    answer(
        &live,
        ApprovalAnswer {
            scope: ApprovalScope::Pod,
            ..allow(&open[0])
        },
    )
    .unwrap();
    let over = idle(live);
    assert_eq!(tool.ran().len(), 1);
    sound(&over.pod, "for the pod only");
}

// A lost record may be the one that took a rule back: the call would run without a question.
#[test]
fn no_rule_counts_behind_lost_records() {
    let (pod, _) = fetching(&[("Fetch", "{}")]);
    let live = live(pod);
    let open = asked(&live);
    answer(&live, by_rule(&open[0])).unwrap();
    let over = idle(live);
    let mut state = SessionState::default();
    over.pod
        .records()
        .iter()
        .for_each(|(_, record)| drop(state.apply(record).unwrap()));
    assert_eq!(state.approvals.rules.len(), 1);
    state
        .apply(
            &Gap {
                first: 90,
                last: 91,
                reason: None,
            }
            .into(),
        )
        .unwrap();
    assert_eq!(state.approvals.rules, []);
}
