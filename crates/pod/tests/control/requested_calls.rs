//! A call that a client asks for: its turn makes it as a call of the model is made, and asks no model.

use crate::approval_scene::{allow, answer, deny, idle, person, waits};
use crate::fixtures::{echo, live, pod, results, said, sound, verified};
use llm_worker::effect::Outcome;
use llm_worker::{CallId, Item, ResultStatus, ToolEffect, ToolOutput};
use pod::control::{HostMode, NewInput, SubmitError, TurnEnd};
use pod::permission::{Person, Rule, RuleDecision};
use pod::record::{InputLimits, InputMode, Record, RequestedCall};
use serde_json::json;
use std::sync::Arc;
use testkit::{FnTool, LivePod, Over, PodUnderTest, ScriptedAnswer};
use tokio::sync::Notify;

/// A pod that stays, with a tool that changes something.
fn scene(answers: Vec<ScriptedAnswer>) -> (PodUnderTest, FnTool) {
    let tool = echo("Deploy", ToolEffect::Effectful);
    let mut pod = pod(answers, vec![tool.clone()]);
    pod.mode = HostMode::Stay { missing: None };
    (pod, tool)
}

fn call(tool: &str, arguments: &str) -> NewInput {
    NewInput {
        call: Some(Box::new(RequestedCall {
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
        })),
        by: person("a program"),
        ..NewInput::default()
    }
}

fn input(text: &str) -> NewInput {
    NewInput {
        text: text.to_owned(),
        ..NewInput::default()
    }
}

/// Sends an input and waits for the end of its turn.
fn done(live: &LivePod, new: NewInput) -> TurnEnd {
    let accepted = live.ask(live.client().send(new)).unwrap();
    live.ask(accepted.end()).unwrap()
}

/// The status and the summary of the result that the end of a turn has.
fn told(end: &TurnEnd) -> (ResultStatus, &str) {
    let outcome = &end.result.as_ref().unwrap().outcome;
    (outcome.status, outcome.summary.as_str())
}

#[test]
fn it_runs_without_a_request_and_its_result_is_the_answer() {
    let (pod, tool) = scene(vec![ScriptedAnswer::text("it is up")]);
    let live = live(pod);
    let end = done(&live, call("Deploy", r#"{"to":"here"}"#));
    assert_eq!((&end.outcome, end.steps), (&Outcome::Done, 0));
    assert_eq!(told(&end), (ResultStatus::Ok, r#"{"to":"here"}"#));
    assert_eq!(tool.ran().len(), 1);
    let records = live.pod.records();
    let queued = records.iter().find_map(|(_, record)| match record {
        Record::InputQueued(queued) => Some(queued.clone()),
        _ => None,
    });
    let queued = queued.unwrap();
    assert_eq!(queued.text, r#"Deploy {"to":"here"}"#);
    assert_eq!(
        queued.call.map(Box::new),
        call("Deploy", r#"{"to":"here"}"#).call
    );
    assert_eq!(queued.by, person("a program"));
    assert!(
        records
            .iter()
            .any(|(_, record)| matches!(record, Record::VerdictGiven(_)))
    );
    assert_eq!(
        done(&live, input("and?")).answer.as_deref(),
        Some("it is up")
    );
    let over = idle(live);
    let requests = over.pod.script.requests();
    let [
        Item::System { .. },
        Item::Command { text },
        Item::ToolCall { name, .. },
        Item::ToolResult { .. },
        Item::User { .. },
    ] = &requests[0].items[..]
    else {
        panic!("{:?}", requests[0].items)
    };
    assert_eq!(
        text,
        "A program that I use made the call that follows, so it is mine and not yours:\nDeploy"
    );
    assert_eq!((requests.len(), name.as_str()), (1, "Deploy"));
    let verified = verified(&over.pod);
    assert_eq!((verified.wrong, verified.requests), (None, 1));
    sound(&over.pod, "a call");
}

#[test]
fn the_answer_has_the_data_of_the_result() {
    let (mut pod, _) = scene(Vec::new());
    pod.tools.push(FnTool::new(
        "Count",
        ToolEffect::ReadOnly,
        |_, _| async move {
            Ok(ToolOutput {
                data: Some(json!({ "n": 3 })),
                ..said("three").unwrap()
            })
        },
    ));
    let live = live(pod);
    let end = done(&live, call("Count", "{}"));
    let data = end.result.as_ref().unwrap().data.clone().unwrap();
    assert_eq!(data.value, Some(json!({ "n": 3 })));
    sound(&idle(live).pod, "data");
}

#[test]
fn what_cannot_be_a_call_is_refused_and_nothing_is_queued() {
    let (pod, tool) = scene(Vec::new());
    let live = live(pod);
    let client = live.client();
    let unknown = live.ask(client.send(call("Deplpy", "{}")));
    assert!(matches!(&unknown, Err(SubmitError::NoTool(why)) if why.contains("`Deplpy`")));
    for new in [
        NewInput {
            mode: InputMode::Steer,
            ..call("Deploy", "{}")
        },
        NewInput {
            limits: Some(InputLimits::default()),
            ..call("Deploy", "{}")
        },
        NewInput {
            output_schema: Some("{}".to_owned()),
            ..call("Deploy", "{}")
        },
        NewInput {
            run: true,
            ..call("Deploy", "{}")
        },
    ] {
        let refused = live.ask(client.send(new.clone()));
        assert!(matches!(refused, Err(SubmitError::Arguments(_))), "{new:?}");
    }
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(200_000));
    let long = live.ask(client.send(call("Deploy", &long)));
    assert!(matches!(long, Err(SubmitError::TooLong(_))));
    let over = idle(live);
    assert_eq!((over.state().inputs, tool.ran().len()), (0, 0));
}

#[test]
fn arguments_that_do_not_fit_fail_in_the_turn_and_nothing_runs() {
    let (pod, tool) = scene(Vec::new());
    let live = live(pod);
    for arguments in ["[1]", "{\"a\":", ""] {
        let end = done(&live, call("Deploy", arguments));
        let (status, why) = told(&end);
        assert_eq!(status, ResultStatus::Error, "{arguments}: {why}");
    }
    assert_eq!(tool.ran().len(), 0);
    sound(&idle(live).pod, "unfit");
}

#[test]
fn a_rule_denies_it_as_a_call_of_the_model() {
    let (mut pod, tool) = scene(Vec::new());
    pod.judge_by(vec![Rule::new("Deploy", RuleDecision::Deny)]);
    let live = live(pod);
    let end = done(&live, call("Deploy", "{}"));
    assert_eq!(told(&end).0, ResultStatus::Refused);
    assert_eq!(
        (end.refused.unwrap().tool, tool.ran().len()),
        ("Deploy".to_owned(), 0)
    );
    sound(&idle(live).pod, "denied");
}

#[test]
fn a_person_is_asked_about_it_and_the_answer_counts() {
    for allows in [true, false] {
        let (mut pod, tool) = scene(Vec::new());
        pod.judge_by(vec![Rule::new("Deploy", RuleDecision::Ask)]);
        pod.asks(Person::Later);
        let live = live(pod);
        let accepted = live.ask(live.client().send(call("Deploy", "{}"))).unwrap();
        let open = waits(&live).approvals;
        assert_eq!(tool.ran().len(), 0);
        let given = if allows {
            allow(&open[0])
        } else {
            deny(&open[0], "not now")
        };
        answer(&live, given).unwrap();
        let end = live.ask(accepted.end()).unwrap();
        let wanted = if allows {
            (ResultStatus::Ok, "{}")
        } else {
            (ResultStatus::Refused, "a person denied this call: not now")
        };
        assert_eq!(told(&end), wanted);
        assert_eq!(tool.ran().len(), usize::from(allows));
        sound(&idle(live).pod, "asked");
    }
}

#[test]
fn a_cancelled_one_says_so() {
    let (mut pod, _) = scene(Vec::new());
    let runs = Arc::new(Notify::new());
    pod.tools = vec![crate::fixtures::waits(&runs, &Arc::new(Notify::new()))];
    let live = live(pod);
    let accepted = live.ask(live.client().send(call("Wait", "{}"))).unwrap();
    live.ask(runs.notified());
    live.ask(live.client().cancel(None));
    let end = live.ask(accepted.end()).unwrap();
    assert_eq!(end.outcome, Outcome::Cancelled);
    assert_eq!(told(&end).0, ResultStatus::Cancelled);
    sound(&idle(live).pod, "cancelled");
}

#[test]
fn it_has_no_text_to_edit() {
    let (pod, tool) = scene(Vec::new());
    let live = live(pod);
    let client = live.client();
    live.ask(client.pause(None)).unwrap();
    let waiting = live.ask(client.send(call("Deploy", "{}"))).unwrap().input;
    let edited = live.ask(client.edit(waiting, "do something else".to_owned(), None));
    assert!(matches!(edited, Err(SubmitError::Arguments(_))));
    live.ask(client.resume(None)).unwrap();
    let over = idle(live);
    assert_eq!((tool.ran().len(), over.state().requests), (1, 0));
    sound(&over.pod, "not edited");
}

fn played(pod: PodUnderTest) -> Over {
    let live = match LivePod::open(pod) {
        Ok(live) => live,
        Err(over) => return *over,
    };
    let keyed = NewInput {
        key: Some("k".to_owned()),
        ..call("Deploy", "{}")
    };
    match live.ask(live.client().send(keyed)) {
        Ok(_) => {}
        Err(SubmitError::Closed | SubmitError::Disk(_)) => return live.wait(),
        Err(error) => panic!("{error}"),
    }
    match live.try_settled() {
        Some(_) => live.close(),
        None => live.wait(),
    }
}

#[test]
fn killed_anywhere_it_runs_at_most_once_and_the_same_key_is_the_same_call() {
    let points = played(scene(Vec::new()).0).pod.points.numbered();
    for expected in [
        "commit:input_queued",
        "tool:running",
        "commit:tool_finished",
    ] {
        assert!(
            points.iter().any(|(name, _)| name == expected),
            "no {expected} in {points:?}"
        );
    }
    for (name, nth) in points {
        let what = format!("killed at {name} {nth}");
        let (pod, tool) = scene(Vec::new());
        pod.points.kill(&name, nth);
        let pod = played(pod).pod;
        pod.revive();
        let live = live(pod);
        live.ask(live.client().send(NewInput {
            key: Some("k".to_owned()),
            ..call("Deploy", "{}")
        }))
        .unwrap();
        live.settled();
        let over = live.close();
        assert_eq!(
            (over.state().inputs, over.state().requests),
            (1, 0),
            "{what}"
        );
        assert!(tool.ran().len() <= 1, "{what}");
        let result = results(&over.pod.restored().items)[&CallId::new(1).unwrap()].concat();
        let in_doubt = result == "outcome unknown; verify before retrying";
        assert!(in_doubt || tool.ran().len() == 1, "{what}: {result}");
        sound(&over.pod, &what);
    }
}
