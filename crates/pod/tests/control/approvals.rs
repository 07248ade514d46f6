//! A call that needs approval waits for a person, across restarts; one answer counts, and exactly what was shown runs.

use crate::approval_scene::{
    ARGUMENTS, Confirms, TEN_MINUTES, again, allow, answer, asked, asking, both, deny, deployments,
    deploys, idle, person, requested, resolved, scene, waits,
};
use crate::fixtures::{add_slow, echo, live, results, sound};
use authority::{Redactor, SandboxMode, Secret};
use llm_worker::effect::Outcome;
use llm_worker::tool::Touch;
use llm_worker::{CallId, ToolEffect};
use pod::control::{Activity, ApprovalAnswer, HostMode, NewInput, SubmitError};
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HookKey, HostCapability,
};
use pod::hook::{PreToolCall, ToolCallView, Verdict};
use pod::permission::{Person, Rule, RuleDecision, SandboxState};
use pod::record::{
    ApprovalDecision, ApprovalResolved, ApprovalScope, InputLimits, InputMode, Record,
};
use pod::session::approvals::MAX_OPEN_APPROVALS;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::{FnTool, Over, PodUnderTest, ScriptedAnswer};

fn input(text: &str) -> NewInput {
    NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    }
}

fn result(pod: &PodUnderTest, call: u64) -> String {
    let results = results(&pod.restored().items);
    results[&CallId::new(call).unwrap()].concat()
}

// covers: INV-15
#[test]
fn what_was_shown_runs_once_after_a_stop_and_an_answer_of_another_client() {
    let (pod, [deploy, echo]) = scene(deploys());
    let live = live(pod);
    let open = asked(&live);
    let [question] = &open[..] else {
        panic!("{open:?}")
    };
    assert_eq!(
        (
            question.approval,
            question.tool.as_str(),
            &*question.arguments
        ),
        (1, "Deploy", ARGUMENTS)
    );
    assert!(
        question
            .question
            .contains("Deploy requires your approval because of the rule `ask Deploy` (testkit)"),
        "{}",
        question.question
    );
    let status = live.ask(live.client().status()).unwrap();
    assert_eq!(
        (deploy.ran().len(), echo.ran().len(), status.requests),
        (0, 1, 1),
        "only the other call ran"
    );
    let over = live.close();
    assert_eq!(over.state().last_outcome, Some(Outcome::Waiting));
    assert_eq!(over.state(), &over.pod.state());
    let live = again(over.pod, vec![ScriptedAnswer::text("deployed")]);
    assert_eq!(waits(&live).approvals, open, "it waits as before");
    let recorded = answer(&live, allow(question)).unwrap();
    assert_eq!(
        (
            recorded.decision,
            recorded.by.as_ref().map(|by| by.client.as_str())
        ),
        (ApprovalDecision::Allow, Some("one"))
    );
    let over = idle(live);
    assert_eq!(over.state().last_answer.as_deref(), Some("deployed"));
    assert_eq!(deploy.ran(), [CallId::new(1).unwrap()]);
    let [started] = &deployments(&over.pod)[..] else {
        panic!()
    };
    assert_eq!(
        (&*started.arguments, &started.arguments_digest),
        (ARGUMENTS, &question.arguments_digest)
    );
    assert_eq!(result(&over.pod, 1), ARGUMENTS);
    assert_eq!(resolved(&over.pod), [recorded]);
    sound(&over.pod, "answered after a stop");
}

#[test]
fn two_answers_at_once_are_one_recorded_answer() {
    let (pod, [deploy, _]) = scene(deploys());
    let live = live(pod);
    let open = asked(&live);
    let [one, two] = both(&live, allow(&open[0]), deny(&open[0], "no"));
    let one = one.unwrap();
    let two = two.unwrap();
    // The allowance came first; it takes longer to be recorded, because the call is made ready again.
    assert_eq!((one.decision, &one), (ApprovalDecision::Allow, &two));
    let late = answer(&live, deny(&open[0], "late")).unwrap();
    assert_eq!(late, one, "a later answer gets the recorded one");
    let over = idle(live);
    assert_eq!(resolved(&over.pod), std::slice::from_ref(&one));
    assert_eq!(deploy.ran().len(), 1);
    sound(&over.pod, "two answers");
}

#[test]
fn a_denial_and_its_words_are_the_result() {
    let (pod, [deploy, _]) = scene(deploys());
    let live = live(pod);
    let open = asked(&live);
    let stale = ApprovalAnswer {
        arguments_digest: "0".repeat(64),
        ..allow(&open[0])
    };
    assert!(matches!(
        answer(&live, stale),
        Err(SubmitError::OtherArguments(1))
    ));
    assert!(matches!(
        answer(
            &live,
            ApprovalAnswer {
                approval: 2,
                ..allow(&open[0])
            }
        ),
        Err(SubmitError::NoApproval(2))
    ));
    let long = ApprovalAnswer {
        words: Some("x".repeat(2049)),
        ..deny(&open[0], "")
    };
    assert!(matches!(answer(&live, long), Err(SubmitError::TooLong(_))));
    let recorded = answer(&live, deny(&open[0], "not on a Friday")).unwrap();
    assert_eq!(recorded.decision, ApprovalDecision::Deny);
    let over = idle(live);
    assert!(deploy.ran().is_empty() && deployments(&over.pod).is_empty());
    assert_eq!(
        result(&over.pod, 1),
        "a person denied this call: not on a Friday"
    );
    sound(&over.pod, "denied");
}

#[test]
fn input_is_accepted_while_a_call_waits_and_comes_after_its_result() {
    let (pod, _) = scene([deploys(), vec![ScriptedAnswer::text("next")]].concat());
    let live = live(pod);
    let open = asked(&live);
    let client = live.client();
    live.ask(client.send(NewInput {
        mode: InputMode::Steer,
        ..input("steered")
    }))
    .unwrap();
    let queued = live.ask(client.send(input("queued"))).unwrap();
    let told = live.ask(client.wait_until_asked(queued.input)).unwrap();
    assert_eq!(
        told.outcome,
        Outcome::Waiting,
        "who waits is told that a person is asked"
    );
    assert_eq!(live.ask(client.status()).unwrap().queued.len(), 2);
    answer(&live, deny(&open[0], "no")).unwrap();
    let over = idle(live);
    let order = over
        .pod
        .records()
        .into_iter()
        .filter_map(|(_, record)| match record {
            Record::ToolFinished(finished) => Some(finished.call.to_string()),
            Record::InputConsumed(consumed) => Some(consumed.input.to_string()),
            Record::TurnStarted(turn) => Some(format!("turn {}", turn.turn)),
            _ => None,
        });
    let order: Vec<_> = order.collect();
    assert_eq!(
        order,
        ["turn 1", "1", "c00000002", "c00000001", "2", "turn 2", "3"]
    );
    sound(&over.pod, "input while waiting");
}

/// Two calls that wait, and the answer behind them.
fn two_deploys() -> Vec<ScriptedAnswer> {
    vec![
        ScriptedAnswer::calls(&[("Deploy", ARGUMENTS), ("Deploy", r#"{"path":"b"}"#)]),
        ScriptedAnswer::text("instead"),
    ]
}

fn instead() -> NewInput {
    NewInput {
        mode: InputMode::DenyParked,
        by: person("three"),
        ..input("do this instead")
    }
}

/// Both calls were denied for the input that came instead, and the turn took it.
fn denied_instead(over: &Over, deploy: &FnTool) {
    assert!(deploy.ran().is_empty() && deployments(&over.pod).is_empty());
    let by = |answer: &ApprovalResolved| (answer.decision, answer.by.clone());
    let answers: Vec<_> = resolved(&over.pod).iter().map(by).collect();
    assert_eq!(
        answers,
        [
            (ApprovalDecision::Deny, person("three")),
            (ApprovalDecision::Deny, person("three"))
        ]
    );
    assert_eq!(
        result(&over.pod, 2),
        "a person denied this call: another input came instead"
    );
    assert_eq!(over.state().last_answer.as_deref(), Some("instead"));
    assert!(over.state().queued.is_empty());
    sound(&over.pod, "instead");
}

#[test]
fn an_input_instead_denies_all_that_waits() {
    let (pod, [deploy, _]) = scene(two_deploys());
    let live = live(pod);
    assert_eq!(asked(&live).len(), 2);
    live.ask(live.client().send(instead())).unwrap();
    let over = idle(live);
    assert_eq!(over.state().turns, 1, "it joins the turn");
    denied_instead(&over, &deploy);
}

#[test]
fn an_input_instead_denies_also_after_a_crash_behind_its_record() {
    let (pod, [deploy, _]) = scene(two_deploys());
    let live = live(pod);
    asked(&live);
    let nth = live
        .pod
        .points
        .came()
        .iter()
        .filter(|point| *point == "input_queued")
        .count();
    live.pod.points.kill("input_queued", nth);
    assert!(live.ask(live.client().send(instead())).is_err());
    let pod = live.wait().pod;
    assert_eq!(pod.restored().state.queued.len(), 1, "it was recorded");
    let over = idle(again(pod, vec![ScriptedAnswer::text("instead")]));
    denied_instead(&over, &deploy);
}

#[test]
fn a_secret_in_the_words_of_a_denial_is_in_no_record() {
    let (mut pod, _) = scene(deploys());
    pod.redactor = Redactor::new(&[Secret::new(
        &ambient::claim(),
        "KEY",
        "hunter2hunter2".to_owned(),
    )])
    .unwrap();
    let live = live(pod);
    let open = asked(&live);
    let recorded = answer(&live, deny(&open[0], "not with hunter2hunter2")).unwrap();
    assert!(!format!("{recorded:?}").contains("hunter2"), "{recorded:?}");
    let over = idle(live);
    let records = format!("{:?}", over.pod.records());
    assert!(records.contains("not with ") && !records.contains("hunter2"));
}

#[test]
fn a_cancel_ends_what_waits_and_a_later_answer_is_void() {
    let (pod, [deploy, _]) = scene(deploys());
    let live = live(pod);
    let open = asked(&live);
    live.ask(live.client().cancel(None));
    live.until(|status| status.held.is_some());
    let late = answer(&live, allow(&open[0])).unwrap();
    assert_eq!((late.decision, late.by), (ApprovalDecision::Void, None));
    let over = live.close();
    assert_eq!(over.state().last_outcome, Some(Outcome::Cancelled));
    assert!(deploy.ran().is_empty() && resolved(&over.pod).is_empty());
    sound(&over.pod, "cancelled");
}

#[test]
fn a_note_of_a_start_comes_behind_a_turn_that_was_cancelled_while_it_waited() {
    let (pod, _) = scene(deploys());
    let live = live(pod);
    asked(&live);
    live.pod.points.kill("commit:host_stopped", 0);
    let pod = live.close().pod;
    *pod.survivors.lock().unwrap() = Err("they do not end".to_owned());
    let live = again(
        pod,
        vec![ScriptedAnswer::text("one"), ScriptedAnswer::text("two")],
    );
    waits(&live);
    live.ask(live.client().cancel(None));
    live.until(|status| status.held.is_some());
    for text in ["next", "further"] {
        live.ask(live.client().send(input(text))).unwrap();
        live.until(|status| status.activity == Activity::Idle && status.queued.is_empty());
    }
    let over = live.close();
    let told = |(_, record): &(u64, Record)| match record {
        Record::SystemItem(item) => item.text().contains("they do not end"),
        _ => false,
    };
    assert_eq!(
        over.pod
            .records()
            .iter()
            .filter(|record| told(record))
            .count(),
        1,
        "the model is told once"
    );
    sound(&over.pod, "a note");
}

/// Stops a pod that waits, changes it, and allows the call: nothing runs, and the model is told why.
fn void(change: impl FnOnce(&mut PodUnderTest), why: &str) {
    let (pod, [deploy, _]) = scene(deploys());
    void_for(pod, &deploy, change, why);
}

fn void_for(pod: PodUnderTest, deploy: &FnTool, change: impl FnOnce(&mut PodUnderTest), why: &str) {
    let live = live(pod);
    let open = asked(&live);
    let mut pod = live.close().pod;
    change(&mut pod);
    let live = again(pod, vec![ScriptedAnswer::text("understood")]);
    waits(&live);
    let recorded = answer(&live, allow(&open[0])).unwrap();
    assert_eq!(recorded.decision, ApprovalDecision::Void, "{why}");
    let over = idle(live);
    assert!(
        deploy.ran().is_empty() && deployments(&over.pod).is_empty(),
        "{why}"
    );
    let told = result(&over.pod, 1);
    assert!(
        told.starts_with("a person allowed this call, but it was not run: ") && told.contains(why),
        "{told}"
    );
    sound(&over.pod, why);
}

#[test]
fn an_allowance_counts_only_for_what_was_shown() {
    let other = echo("Deploy", ToolEffect::Effectful).described("Deploys everything.");
    void(
        |pod| pod.tools = vec![other],
        "the definition of Deploy has changed",
    );
    void(
        |pod| pod.tools = vec![echo("Echo", ToolEffect::Effectful)],
        "there is no tool called `Deploy` any more",
    );
    let canonical = echo("Deploy", ToolEffect::Effectful).canonical(r#"{"path":"/"}"#);
    void(
        |pod| pod.tools = vec![canonical],
        "reads its arguments in another way",
    );
    let denies = [asking(), vec![Rule::new("Deploy", RuleDecision::Deny)]].concat();
    void(|pod| pod.judge_by(denies), "`deny Deploy`");
    void(
        |pod| {
            pod.features.push((
                Arc::new(Freeze),
                vec![HostCapability::hook::<PreToolCall>()],
            ))
        },
        "all is frozen",
    );
    // A question that came since.
    let confirms = Confirms(vec![("Deploy", TEN_MINUTES)]);
    void(
        |pod| {
            pod.features.push((
                Arc::new(confirms),
                vec![HostCapability::hook::<PreToolCall>()],
            ))
        },
        "what is asked about it has changed since: user:confirms (gate `confirm`): may it?",
    );
    let read_only = SandboxState {
        mode: SandboxMode::ReadOnly,
        enforced: true,
    };
    let sandboxed = move |pod: &mut PodUnderTest| {
        pod.sandboxed(read_only);
        pod.judge_by(asking());
    };
    void(
        sandboxed,
        "the sandbox, or where a path of the call leads, has changed",
    );
}

#[test]
fn an_allowance_is_for_the_file_to_which_the_path_led() {
    let relink = |root: &Path| {
        std::fs::remove_file(root.join("there")).unwrap();
        symlink("two", root.join("there")).unwrap();
    };
    let exchange = |root: &Path| {
        std::fs::rename(root.join("one"), root.join("three")).unwrap();
        std::fs::rename(root.join("two"), root.join("one")).unwrap();
    };
    for elsewhere in [relink as fn(&Path), exchange] {
        let (mut pod, _) = scene(deploys());
        let deploy =
            echo("Deploy", ToolEffect::Effectful).touching(vec![Touch::Write("there/a".into())]);
        pod.tools[0] = deploy.clone();
        std::fs::create_dir(pod.project.join("one")).unwrap();
        std::fs::create_dir(pod.project.join("two")).unwrap();
        symlink("one", pod.project.join("there")).unwrap();
        let changed = |pod: &mut PodUnderTest| elsewhere(&pod.project);
        void_for(
            pod,
            &deploy,
            changed,
            "where a path of the call leads, has changed",
        );
    }
}

// Its tool reads only directories that were added, so the call failed after the person had allowed it.
#[test]
fn what_no_answer_could_allow_is_refused_at_once() {
    let (mut pod, _) = scene(vec![
        ScriptedAnswer::calls(&[("Deploy", ARGUMENTS)]),
        ScriptedAnswer::text("refused"),
    ]);
    let reads =
        echo("Deploy", ToolEffect::ReadOnly).touching(vec![Touch::Read("/etc/hosts".into())]);
    pod.tools[0] = reads.clone();
    pod.sandboxed(SandboxState {
        mode: SandboxMode::WorkspaceWrite,
        enforced: true,
    });
    let live = live(pod);
    live.ask(live.client().send(input("go"))).unwrap();
    let over = idle(live);
    assert!(reads.ran().is_empty() && requested(&over.pod).is_empty());
    assert!(
        result(&over.pod, 1).contains("`reading outside the project: deny`"),
        "{}",
        result(&over.pod, 1)
    );
    sound(&over.pod, "refused");
}

/// A feature that refuses every call.
struct Freeze;

const FREEZE: HookKey<PreToolCall> = HookKey::new("freeze");

impl FeatureModule for Freeze {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("freeze"))
            .version("1.0.0")
            .gate(&FREEZE)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let frozen = |_: &(), _: &ToolCallView| Verdict::<PreToolCall>::deny("all is frozen");
        ctx.hooks().gate(&FREEZE, &Arc::new(()), frozen).map(drop)
    }
}

// Each crash counted, although nothing ran; the third one held the pod, and no answer was accepted.
#[test]
fn crashes_of_a_pod_that_only_waits_do_not_hold_it() {
    let (pod, [deploy, _]) = scene(deploys());
    let mut live = live(pod);
    let open = asked(&live);
    for _ in 0..4 {
        let nth = live
            .pod
            .points
            .came()
            .iter()
            .filter(|point| *point == "commit:input_queued")
            .count();
        live.pod.points.kill("commit:input_queued", nth);
        assert!(live.ask(live.client().send(input("lost"))).is_err());
        live = again(live.wait().pod, vec![ScriptedAnswer::text("deployed")]);
        assert_eq!(waits(&live).held, None);
    }
    answer(&live, allow(&open[0])).unwrap();
    let over = idle(live);
    assert_eq!(deploy.ran().len(), 1);
    sound(&over.pod, "four crashes");
}

#[test]
fn a_turn_that_goes_on_has_its_input_and_the_limits_of_it() {
    // An answer of the script has eleven tokens.
    for (max_steps, max_tokens, outcome) in [
        (Some(2), None, Outcome::StepLimit),
        (None, Some(22), Outcome::TokenLimit),
    ] {
        let (pod, _) = scene(deploys());
        let live = live(pod);
        let limits = Some(InputLimits {
            max_steps,
            max_tokens,
            ..InputLimits::default()
        });
        live.ask(live.client().send(NewInput {
            limits,
            ..input("go")
        }))
        .unwrap();
        let open = waits(&live).approvals;
        let more = vec![
            ScriptedAnswer::calls(&[("Echo", "{}")]),
            ScriptedAnswer::text("too far"),
        ];
        let live = again(live.close().pod, more);
        waits(&live);
        let client = live.client();
        let other = live.client();
        let (end, answered) =
            live.ask(async { tokio::join!(client.wait(1), other.approve(allow(&open[0]))) });
        assert_eq!(answered.unwrap().decision, ApprovalDecision::Allow);
        assert_eq!(end.unwrap().outcome, outcome);
        let over = live.close();
        assert_eq!(over.state().requests, 2, "the one before the stop counts");
        sound(&over.pod, "a limit");
    }
}

#[test]
fn the_time_in_which_a_turn_waits_for_a_person_is_not_charged_to_it() {
    let slow = || ScriptedAnswer::calls(&[("Slow", "{}")]);
    for (max_wall_s, outcome) in [(40, Outcome::TimeLimit), (41, Outcome::Done)] {
        let (mut pod, _) = scene(vec![
            slow(),
            ScriptedAnswer::calls(&[("Deploy", ARGUMENTS)]),
        ]);
        add_slow(&mut pod, 20);
        let live = live(pod);
        let limits = Some(InputLimits {
            max_wall_s: Some(max_wall_s),
            ..InputLimits::default()
        });
        live.ask(live.client().send(NewInput {
            limits,
            ..input("go")
        }))
        .unwrap();
        let open = waits(&live).approvals;
        live.advance(Duration::from_secs(1000));
        let stopped = live.close().pod;
        stopped.clock.advance(1_000_000_000);
        let live = again(stopped, vec![slow(), ScriptedAnswer::text("deployed")]);
        waits(&live);
        live.advance(Duration::from_secs(1000));
        assert_eq!(
            answer(&live, allow(&open[0])).unwrap().decision,
            ApprovalDecision::Allow
        );
        let over = idle(live);
        assert_eq!(over.state().last_outcome, Some(outcome));
        assert_eq!(over.state().spent().wall(), Duration::from_secs(40));
        sound(&over.pod, "a limit on time");
    }
}

#[test]
fn the_time_in_which_no_process_ran_is_not_charged() {
    let (mut pod, _) = scene(vec![ScriptedAnswer::calls(&[("Slow", "{}")])]);
    add_slow(&mut pod, 20);
    pod.points.kill("commit:tool_finished", 0);
    let live = live(pod);
    live.ask(live.client().send(input("go"))).ok();
    let killed = live.wait().pod;
    killed.clock.advance(1_000_000_000);
    let over = idle(again(killed, Vec::new()));
    assert!(
        over.state().spent().wall() <= Duration::from_secs(20),
        "{:?}",
        over.state().spent()
    );
    sound(&over.pod, "a crash");
}

#[test]
fn an_allowance_for_the_pod_is_for_what_its_rules_match() {
    let hosts = |host: &str| vec![Touch::Host(host.to_owned())];
    let fetch = |name: &str, host: &str| echo(name, ToolEffect::ReadOnly).touching(hosts(host));
    let calls = |calls: &[(&str, &str)]| ScriptedAnswer::calls(calls);
    let answers = vec![
        calls(&[("Fetch", r#"{"n":1}"#)]),
        calls(&[("Fetch", r#"{"n":2}"#)]),
        calls(&[("Other", "{}")]),
        ScriptedAnswer::text("fetched"),
    ];
    let (mut pod, _) = scene(answers);
    let tools = [fetch("Fetch", "one.net"), fetch("Other", "two.net")];
    pod.tools = tools.to_vec();
    pod.judge_by(vec![Rule::new("*", RuleDecision::Ask)]);
    let live = live(pod);
    let open = asked(&live);
    let [rule] = &open[0].rules[..] else {
        panic!("{:?}", open[0].rules)
    };
    assert_eq!(Rule::from(rule).to_string(), "allow Fetch on one.net");
    answer(
        &live,
        ApprovalAnswer {
            scope: ApprovalScope::Pod,
            ..allow(&open[0])
        },
    )
    .unwrap();
    let status = live.until(|status| {
        status
            .approvals
            .first()
            .is_some_and(|open| open.tool == "Other")
    });
    assert_eq!(
        (tools[0].ran().len(), status.approvals.len()),
        (2, 1),
        "the second call was not asked about"
    );
    // Also after a restart.
    let pod = live.close().pod;
    let live = again(
        pod,
        vec![
            calls(&[("Fetch", r#"{"n":3}"#)]),
            ScriptedAnswer::text("done"),
        ],
    );
    let open = waits(&live).approvals;
    answer(&live, deny(&open[0], "no")).unwrap();
    let over = idle(live);
    assert_eq!((tools[0].ran().len(), tools[1].ran().len()), (3, 0));
    sound(&over.pod, "for the pod");
}

#[test]
fn a_rule_cannot_be_had_where_none_would_allow() {
    let (pod, _) = scene(deploys());
    let live = live(pod);
    let open = asked(&live);
    assert!(open[0].rules.is_empty(), "a call that names nothing");
    let wide = ApprovalAnswer {
        scope: ApprovalScope::Pod,
        ..allow(&open[0])
    };
    assert!(matches!(answer(&live, wide), Err(SubmitError::NoRule(1))));
    answer(&live, allow(&open[0])).unwrap();
    drop(idle(live));
}

#[test]
fn the_number_of_waiting_calls_is_bounded() {
    let calls: Vec<_> = (0..MAX_OPEN_APPROVALS + 3)
        .map(|n| ("Deploy", format!(r#"{{"n":{n}}}"#)))
        .collect();
    let calls: Vec<_> = calls
        .iter()
        .map(|(name, arguments)| (*name, arguments.as_str()))
        .collect();
    let (pod, [deploy, _]) = scene(vec![
        ScriptedAnswer::calls(&calls),
        ScriptedAnswer::text("done"),
    ]);
    let live = live(pod);
    let open = asked(&live);
    assert_eq!(open.len(), MAX_OPEN_APPROVALS);
    for question in &open {
        answer(&live, allow(question)).unwrap();
    }
    let over = idle(live);
    assert_eq!(deploy.ran().len(), MAX_OPEN_APPROVALS);
    let refused = results(&over.pod.restored().items);
    let refused = refused
        .values()
        .filter(|result| result.concat().contains("already wait for approval"))
        .count();
    assert_eq!(refused, 3);
    sound(&over.pod, "bounded");
}

#[test]
fn a_held_pod_runs_an_allowed_call_and_sends_no_request() {
    let (pod, [deploy, _]) = scene(deploys());
    let live = live(pod);
    let open = asked(&live);
    live.ask(live.client().pause(None)).unwrap();
    let pod = live.close().pod;
    let live = again(pod, vec![ScriptedAnswer::text("deployed")]);
    answer(&live, allow(&open[0])).unwrap();
    let status = live.until(|status| matches!(status.activity, Activity::Paused { .. }));
    assert_eq!((deploy.ran().len(), status.requests), (1, 1));
    live.ask(live.client().resume(None)).unwrap();
    let over = idle(live);
    assert_eq!(over.state().last_answer.as_deref(), Some("deployed"));
    sound(&over.pod, "held");
}

#[test]
fn where_nobody_can_come_a_call_is_refused() {
    let (mut pod, [deploy, _]) = scene(deploys());
    (pod.mode, pod.paused) = (HostMode::Run, true);
    pod.asks(Person::Never);
    let ran = pod.run("go");
    assert_eq!(ran.end().outcome, Outcome::Done);
    assert!(deploy.ran().is_empty() && requested(&pod).is_empty());
    let told = result(&pod, 1);
    assert_eq!(
        told,
        "Deploy requires approval because of the rule `ask Deploy` (testkit), and this run cannot ask for approval"
    );
}

#[test]
fn a_run_in_a_pod_that_waits_leaves_its_input_and_the_question() {
    let (pod, [deploy, _]) = scene(deploys());
    let live = live(pod);
    asked(&live);
    let mut pod = live.close().pod;
    pod.mode = HostMode::Run;
    let ran = pod.run("more");
    assert_eq!(ran.end().outcome, Outcome::Waiting);
    let state = pod.state();
    assert_eq!(
        (
            state.approvals.open.len(),
            state.queued.len(),
            state.turn_open
        ),
        (1, 1, false)
    );
    assert!(deploy.ran().is_empty());
}

// A command behind one that a person was asked about ran first, on what that one was to make.
#[test]
fn a_command_waits_for_an_earlier_one_that_waits_for_a_person() {
    for allowed in [true, false] {
        let (mut pod, _) = scene(deploys());
        let tools = [
            echo("Deploy", ToolEffect::Effectful),
            echo("Echo", ToolEffect::Effectful),
        ];
        pod.tools = tools.to_vec();
        let live = live(pod);
        let open = asked(&live);
        assert!(tools[1].ran().is_empty(), "it waits");
        answer(
            &live,
            if allowed {
                allow(&open[0])
            } else {
                deny(&open[0], "no")
            },
        )
        .unwrap();
        let over = idle(live);
        assert_eq!(
            (tools[0].ran().len(), tools[1].ran().len()),
            (usize::from(allowed), 1)
        );
        assert_eq!(over.state().last_answer.as_deref(), Some("deployed"));
        sound(&over.pod, "in order");
    }
}

#[test]
fn calls_that_waited_across_a_restart_run_in_their_order() {
    let calls =
        ScriptedAnswer::new()
            .call(0, "Deploy", r#"{"n":1}"#)
            .call(1, "Deploy", r#"{"n":2}"#);
    let (pod, [deploy, _]) = scene(vec![calls.stop(llm_worker::StopReason::ToolUse)]);
    let live = live(pod);
    let open = asked(&live);
    assert_eq!(open.len(), 2);
    let live = again(live.close().pod, vec![ScriptedAnswer::text("deployed")]);
    waits(&live);
    answer(&live, allow(&open[1])).unwrap();
    waits(&live);
    assert!(deploy.ran().is_empty(), "the second waits for the first");
    answer(&live, allow(&open[0])).unwrap();
    let over = idle(live);
    assert_eq!(deploy.ran(), [1, 2].map(|n| CallId::new(n).unwrap()));
    sound(&over.pod, "in order after a restart");
}
