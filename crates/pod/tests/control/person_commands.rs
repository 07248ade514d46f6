//! A person's command: its turn runs it as a call of the model runs, and asks no model; the model reads of it later.

use crate::approval_scene::{allow, answer, deny, idle, person, requested, waits};
use crate::fixtures::{as_written_by, echo, live, pod, results, sound, verified};
use llm_worker::effect::Outcome;
use llm_worker::{CallId, Item, Projection, StopReason, ToolEffect};
use pod::control::{Activity, HostMode, NewInput, SubmitError, TurnEnd};
use pod::permission::{Person, Rule, RuleDecision};
use pod::record::{InputLimits, InputMode, Record};
use std::fs;
use std::sync::Arc;
use testkit::{FnTool, Latch, LivePod, ModelScript, Over, PodUnderTest, ScriptedAnswer, within};
use tokio::sync::Notify;

/// A pod that stays, with a tool for commands.
fn scene(answers: Vec<ScriptedAnswer>) -> (PodUnderTest, FnTool) {
    let bash = echo("Bash", ToolEffect::Effectful);
    let mut pod = pod(answers, vec![bash.clone()]);
    pod.mode = HostMode::Stay { missing: None };
    (pod, bash)
}

fn command(text: &str) -> NewInput {
    NewInput {
        text: text.to_owned(),
        run: true,
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

fn kinds(pod: &PodUnderTest) -> Vec<&'static str> {
    let kind = |(_, record)| match record {
        Record::TurnStarted(_) => Some("turn"),
        Record::InputConsumed(_) => Some("input"),
        Record::ItemAdded(_) => Some("item"),
        Record::VerdictGiven(_) => Some("verdict"),
        Record::ToolStarted(_) => Some("start"),
        Record::ToolFinished(_) => Some("result"),
        Record::Request(_) => Some("request"),
        Record::Response(_) => Some("response"),
        Record::TurnFinished(_) => Some("end"),
        _ => None,
    };
    pod.records().into_iter().filter_map(kind).collect()
}

fn result(pod: &PodUnderTest, call: u64) -> String {
    results(&pod.restored().items)[&CallId::new(call).unwrap()].concat()
}

#[test]
fn it_runs_without_a_request_and_the_next_one_has_what_it_printed() {
    let (pod, bash) = scene(vec![ScriptedAnswer::text("it passes")]);
    let live = live(pod);
    let end = done(&live, command(" cargo test\n"));
    assert_eq!(
        (&end.outcome, end.steps, end.answer.as_deref()),
        (&Outcome::Done, 0, None)
    );
    assert_eq!(bash.ran().len(), 1);
    let of_command = ["turn", "input", "item", "verdict", "start", "result", "end"];
    assert_eq!(kinds(&live.pod), of_command);
    let records = live.pod.records();
    let queued = records.iter().find_map(|(_, record)| match record {
        Record::InputQueued(queued) => Some((queued.text.clone(), queued.run)),
        _ => None,
    });
    assert_eq!(queued, Some(("! cargo test".to_owned(), true)));
    assert_eq!(
        done(&live, input("and?")).answer.as_deref(),
        Some("it passes")
    );
    let over = idle(live);
    let requests = over.pod.script.requests();
    let [
        Item::System { .. },
        Item::Command { text },
        call,
        result,
        Item::User { text: next, .. },
    ] = &requests[0].items[..]
    else {
        panic!("{:?}", requests[0].items)
    };
    assert_eq!(
        text,
        "I entered this command myself, so the call that follows is mine and not yours:\ncargo test"
    );
    assert_eq!((requests.len(), next.as_str()), (1, "and?"));
    assert!(
        matches!(call, Item::ToolCall { name, arguments, .. }
            if name == "Bash" && arguments == r#"{"command":"cargo test"}"#),
        "{call:?}"
    );
    assert!(
        matches!(result, Item::ToolResult { outcome, .. } if outcome.summary.contains("cargo test")),
        "{result:?}"
    );
    sound(&over.pod, "a command");
}

// Until version 2 of the projection the item of a command was one of the user: such requests are still rebuilt, and those
// that follow.
#[test]
fn requests_of_an_older_yoi_are_verified_with_their_commands() {
    let (pod, _) = scene(vec![ScriptedAnswer::text("it passes")]);
    let live = live(pod);
    done(&live, command("cargo test"));
    done(&live, input("and?"));
    let pod = idle(live).pod;
    let old = as_written_by(
        Projection::WITHOUT_COMMANDS,
        &pod,
        ScriptedAnswer::text("again"),
    );
    let digest = |pod: &PodUnderTest| {
        let record = pod.records().into_iter().rev();
        record
            .map(|(_, record)| record)
            .find_map(|record| match record {
                Record::Request(request) => Some(request.neutral_digest),
                _ => None,
            })
    };
    assert_ne!(digest(&old), digest(&pod));
    let before = verified(&old);
    assert_eq!((before.wrong, before.requests, before.bodies), (None, 1, 1));
    let old = within("the newer run", move || {
        old.run("second").end();
        old
    });
    let after = verified(&old);
    assert_eq!((after.wrong, after.requests, after.bodies), (None, 2, 2));
}

#[test]
fn a_rule_denies_it_as_a_call_of_the_model() {
    let (mut pod, bash) = scene(Vec::new());
    pod.judge_by(vec![Rule::new("Bash", RuleDecision::Deny)]);
    let live = live(pod);
    let end = done(&live, command("rm -r ."));
    assert!(
        end.outcome == Outcome::Done && end.refused.is_some_and(|refused| refused.tool == "Bash")
    );
    let over = idle(live);
    assert_eq!((bash.ran().len(), over.state().requests), (0, 0));
    assert!(
        result(&over.pod, 1).contains("refused"),
        "{}",
        result(&over.pod, 1)
    );
    sound(&over.pod, "denied");
}

/// A pod that asks about commands, once one waits for the person.
fn asking(answers: Vec<ScriptedAnswer>) -> (LivePod, FnTool) {
    let (mut pod, bash) = scene(answers);
    pod.judge_by(vec![Rule::new("Bash", RuleDecision::Ask)]);
    pod.asks(Person::Later);
    let live = live(pod);
    live.ask(live.client().send(command("make install")))
        .unwrap();
    waits(&live);
    (live, bash)
}

#[test]
fn an_approval_runs_it_once_also_after_a_restart_and_still_asks_no_model() {
    for restarts in [false, true] {
        let (mut live, bash) = asking(Vec::new());
        if restarts {
            let over = live.close();
            assert_eq!(over.state().last_outcome, Some(Outcome::Waiting));
            over.pod.revive();
            live = self::live(over.pod);
        }
        let open = waits(&live).approvals;
        assert_eq!(
            (bash.ran().len(), &*open[0].arguments),
            (0, r#"{"command":"make install"}"#)
        );
        answer(&live, allow(&open[0])).unwrap();
        let over = idle(live);
        assert_eq!(
            (bash.ran().len(), over.state().requests),
            (1, 0),
            "restarts: {restarts}"
        );
        assert_eq!(over.state().last_outcome, Some(Outcome::Done));
        assert_eq!(requested(&over.pod).len(), 1);
        sound(&over.pod, "approved");
    }
}

#[test]
fn what_comes_instead_of_an_answer_denies_it_and_has_the_next_turn() {
    let (live, bash) = asking(vec![
        ScriptedAnswer::text("instead"),
        ScriptedAnswer::text("unused"),
    ]);
    let mode = InputMode::DenyParked;
    live.ask(live.client().send(NewInput {
        mode,
        by: person("three"),
        ..input("do this")
    }))
    .unwrap();
    let over = idle(live);
    assert_eq!(
        (bash.ran().len(), over.state().turns, over.state().requests),
        (0, 2, 1)
    );
    sound(&over.pod, "instead");
}

#[test]
fn a_denial_ends_its_turn() {
    let (live, bash) = asking(Vec::new());
    let open = waits(&live).approvals;
    answer(&live, deny(&open[0], "not now")).unwrap();
    let over = idle(live);
    assert_eq!((bash.ran().len(), over.state().requests), (0, 0));
    assert_eq!(result(&over.pod, 1), "a person denied this call: not now");
    sound(&over.pod, "denied");
}

#[test]
fn it_waits_for_the_running_turn_and_shares_no_turn() {
    let gate = Latch::new("the first answer");
    let first = ScriptedAnswer::new()
        .wait_at(&gate)
        .say("one")
        .stop(StopReason::EndTurn);
    let (pod, bash) = scene(vec![first, ScriptedAnswer::text("three")]);
    let live = live(pod);
    let client = live.client();
    live.ask(client.send(input("one"))).unwrap();
    live.until(|status| status.requests == 1);
    live.ask(client.send(command("two"))).unwrap();
    live.ask(client.send(input("three"))).unwrap();
    gate.open();
    let over = idle(live);
    let of_model = ["turn", "input", "request", "item", "response", "end"];
    let of_command = ["turn", "input", "item", "verdict", "start", "result", "end"];
    assert_eq!(
        kinds(&over.pod),
        [&of_model[..], &of_command, &of_model].concat()
    );
    assert_eq!(bash.ran().len(), 1);
    sound(&over.pod, "in line");
}

#[test]
fn what_cannot_be_a_command_is_refused_and_nothing_is_queued() {
    let (pod, _) = scene(Vec::new());
    let live = live(pod);
    let client = live.client();
    let wrong = [
        command(" \n"),
        NewInput {
            mode: InputMode::Steer,
            ..command("ls")
        },
        NewInput {
            mode: InputMode::DenyParked,
            ..command("ls")
        },
        NewInput {
            limits: Some(InputLimits::default()),
            ..command("ls")
        },
        NewInput {
            output_schema: Some("{}".to_owned()),
            ..command("ls")
        },
    ];
    for new in wrong {
        let refused = live.ask(client.send(new.clone()));
        assert!(matches!(refused, Err(SubmitError::Arguments(_))), "{new:?}");
    }
    let long = live.ask(client.send(command(&"\"".repeat(100_000))));
    assert!(matches!(long, Err(SubmitError::TooLong(_))));
    let over = idle(live);
    assert_eq!((over.state().inputs, over.state().turns), (0, 0));
    let (mut pod, _) = scene(Vec::new());
    pod.tools.clear();
    let live = self::live(pod);
    let refused = live.ask(live.client().send(command("ls")));
    assert!(
        matches!(&refused, Err(SubmitError::NoShell(why)) if why.contains("Bash") && why.contains("HaveShell"))
    );
    assert_eq!(idle(live).state().inputs, 0);
}

#[test]
fn an_edit_keeps_it_a_command() {
    let (pod, bash) = scene(Vec::new());
    let live = live(pod);
    let client = live.client();
    live.ask(client.pause(None)).unwrap();
    let waiting = live.ask(client.send(command("ls"))).unwrap().input;
    for text in ["please list the files", "!", "! \n"] {
        let refused = live.ask(client.edit(waiting, text.to_owned(), None));
        assert!(matches!(refused, Err(SubmitError::Arguments(_))), "{text}");
    }
    live.ask(client.edit(waiting, "!ls -l".to_owned(), None))
        .unwrap();
    live.ask(client.resume(None)).unwrap();
    let over = idle(live);
    assert_eq!(
        (bash.ran().len(), result(&over.pod, 1)),
        (1, r#"{"command":"ls -l"}"#.to_owned())
    );
    sound(&over.pod, "edited");
}

#[test]
fn a_later_start_without_the_tool_says_so_in_its_turn() {
    let (pod, bash) = scene(Vec::new());
    let live = live(pod);
    live.ask(live.client().pause(None)).unwrap();
    live.ask(live.client().send(command("ls"))).unwrap();
    let mut pod = live.close().pod;
    pod.revive();
    pod.tools.clear();
    let live = self::live(pod);
    live.ask(live.client().resume(None)).unwrap();
    let over = idle(live);
    assert!(bash.ran().is_empty() && over.state().last_outcome == Some(Outcome::Done));
    assert!(
        result(&over.pod, 1).starts_with("there is no tool called `Bash`"),
        "{}",
        result(&over.pod, 1)
    );
    sound(&over.pod, "without the tool");
}

#[test]
fn it_does_not_run_in_a_project_that_was_replaced() {
    let (pod, bash) = scene(Vec::new());
    let live = live(pod);
    let aside = live.pod.root().join("aside");
    fs::rename(&live.pod.project, &aside).unwrap();
    let end = done(&live, command("ls"));
    let Outcome::Aborted { reason } = &end.outcome else {
        panic!("{end:?}")
    };
    assert!(reason.contains("replaced after it was opened"), "{reason}");
    fs::rename(&aside, &live.pod.project).unwrap();
    assert_eq!(done(&live, command("ls")).outcome, Outcome::Done);
    assert_eq!(bash.ran().len(), 1);
    sound(&idle(live).pod, "replaced");
}

/// A tool for commands that says when it runs, and ends when it is cancelled.
fn slow(runs: &Arc<Notify>) -> FnTool {
    let runs = Arc::clone(runs);
    FnTool::new("Bash", ToolEffect::Effectful, move |cx, _| {
        let runs = Arc::clone(&runs);
        async move {
            runs.notify_one();
            cx.cancel.cancelled().await;
            Err(llm_worker::ToolError::new(
                llm_worker::ErrorKind::Cancelled,
                "stopped",
            ))
        }
    })
}

#[test]
fn cancelled_or_left_it_ends_and_no_later_start_asks_a_model_about_it() {
    for leaves in [false, true] {
        let (mut pod, _) = scene(Vec::new());
        let runs = Arc::new(Notify::new());
        pod.tools = vec![slow(&runs)];
        let live = live(pod);
        live.ask(live.client().send(command("sleep 99"))).unwrap();
        live.ask(runs.notified());
        let over = if leaves {
            live.ask(live.client().leave("stopped by the test"));
            live.wait()
        } else {
            live.ask(live.client().cancel(None));
            idle(live)
        };
        let wanted = if leaves {
            Outcome::Interrupted
        } else {
            Outcome::Cancelled
        };
        assert_eq!(over.state().last_outcome, Some(wanted));
        let pod = over.pod;
        pod.revive();
        let live = self::live(pod);
        live.until(|status| status.activity == Activity::Idle);
        let over = live.close();
        assert_eq!(
            (over.state().turns, over.state().requests),
            (1, 0),
            "leaves: {leaves}"
        );
        sound(&over.pod, "ended early");
    }
}

fn played(pod: PodUnderTest, told: &mut bool) -> Over {
    let live = match LivePod::open(pod) {
        Ok(live) => live,
        Err(over) => return *over,
    };
    match live.ask(live.client().send(NewInput {
        key: Some("k".to_owned()),
        ..command("deploy")
    })) {
        Ok(_) => *told = true,
        Err(SubmitError::Closed | SubmitError::Disk(_)) => return live.wait(),
        Err(error) => panic!("{error}"),
    }
    match live.try_settled() {
        Some(_) => live.close(),
        None => live.wait(),
    }
}

#[test]
fn killed_anywhere_it_runs_at_most_once_and_is_never_lost() {
    let (pod, _) = scene(Vec::new());
    let points = played(pod, &mut false).pod.points.numbered();
    for expected in [
        "commit:input_queued",
        "commit:tool_started",
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
        let (pod, bash) = scene(Vec::new());
        pod.points.kill(&name, nth);
        let mut told = false;
        let mut pod = played(pod, &mut told).pod;
        let before = bash.ran().len();
        pod.revive();
        pod.script = ModelScript::new(Vec::new());
        let live = live(pod);
        // The client asks again, as one does that got no answer.
        live.ask(live.client().send(NewInput {
            key: Some("k".to_owned()),
            ..command("deploy")
        }))
        .unwrap();
        let status = live.settled();
        assert!(status.held.is_none(), "{what}: {:?}", status.held);
        let over = live.close();
        assert_eq!(
            (over.state().inputs, over.state().requests),
            (1, 0),
            "{what}: told: {told}"
        );
        assert!(over.state().queued.is_empty(), "{what}");
        let starts = over
            .pod
            .records()
            .iter()
            .filter(|(_, record)| matches!(record, Record::ToolStarted(_)))
            .count();
        assert_eq!(starts, 1, "{what}: it was never started, or twice");
        assert!(
            bash.ran().len() <= 1 && bash.ran().len() >= before,
            "{what}"
        );
        let result = result(&over.pod, 1);
        let in_doubt = result == "outcome unknown; verify before retrying";
        assert!(in_doubt || bash.ran().len() == 1, "{what}: {result}");
        sound(&over.pod, &what);
    }
}
