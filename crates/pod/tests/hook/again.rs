//! Gates at the end of a turn that have the model go on: it ends, the limits are shared, a pause wins, and no kill adds a
//! turn.

use crate::rig::*;
use llm_worker::effect::Outcome;
use llm_worker::{ErrorKind, ModelError};
use pod::control::{HostMode, RunLimits};
use pod::feature::HookKey;
use pod::hook::{PreRequest, TurnEnd, TurnEndView, Verdict};
use pod::record::{HoldCause, InputQueued, Record};
use testkit::{LivePod, PodUnderTest, ScriptedAnswer};

fn ends(says: impl Fn(&TurnEndView) -> Verdict<TurnEnd> + Send + Sync + 'static) -> Installed {
    gate("builtin:v", HookKey::<TurnEnd>::new("v"), says)
}

/// Goes on until the answer is `good`.
fn until_good(end: &TurnEndView) -> Verdict<TurnEnd> {
    match end.answer.as_deref() {
        Some("good") => Verdict::finish(),
        other => Verdict::again(format!("not {}", other.unwrap_or("an answer"))),
    }
}

fn answering(features: Vec<Installed>, answers: &[&str]) -> PodUnderTest {
    let (pod, _) = pod(&[], features);
    pod.script.clear();
    answers
        .iter()
        .for_each(|answer| pod.script.add(ScriptedAnswer::text(answer)));
    pod
}

fn inputs(pod: &PodUnderTest) -> Vec<InputQueued> {
    let queued = |(_, record)| match record {
        Record::InputQueued(queued) => Some(queued),
        _ => None,
    };
    pod.records().into_iter().filter_map(queued).collect()
}

#[test]
fn the_model_goes_on_until_the_gate_is_content() {
    let pod = answering(vec![ends(until_good)], &["bad", "worse", "good", "never"]);
    let ran = pod.run("go");
    let end = ran.end();
    assert_eq!(
        (&end.outcome, end.answer.as_deref(), end.steps),
        (&Outcome::Done, Some("good"), 3),
        "one end for all"
    );
    let inputs = inputs(&pod);
    let texts: Vec<_> = inputs.iter().map(|input| input.text.as_str()).collect();
    assert_eq!(texts, ["go", "not bad", "not worse"]);
    let again = inputs[2].again.as_ref().unwrap();
    assert_eq!(
        (
            again.feature.as_str(),
            again.hook.as_str(),
            again.of,
            again.nth
        ),
        ("builtin:v", "v", 1, 2)
    );
    assert_eq!(decisions(&pod), ["again", "again", "allow"]);
    let records = pod.records();
    let at = |kind: &str, nth: usize| {
        records
            .iter()
            .filter(|(_, record)| record.kind() == kind)
            .nth(nth)
            .map(|(seq, _)| *seq)
            .unwrap()
    };
    assert_eq!(
        at("verdict", 0) + 1,
        at("input_queued", 1),
        "the verdict and the input are one commit"
    );
}

#[test]
fn it_ends_after_three_times_for_one_input() {
    let pod = answering(
        vec![ends(until_good)],
        &["a", "b", "c", "d", "e", "f", "g", "h", "i"],
    );
    assert_eq!((pod.run("one").end().steps, inputs(&pod).len()), (4, 4));
    assert_eq!(pod.run("two").end().steps, 4, "another input begins anew");
    assert_eq!(inputs(&pod).len(), 8);
}

#[test]
fn the_turns_share_the_limits_of_the_input() {
    let mut pod = answering(vec![ends(until_good)], &["a", "b", "c", "d"]);
    pod.limits = RunLimits {
        max_steps: 2,
        ..pod.limits
    };
    let ran = pod.run("go");
    assert_eq!(
        (&ran.end().outcome, ran.end().steps),
        (&Outcome::StepLimit, 2)
    );
    assert_eq!(inputs(&pod)[1].limits.unwrap().max_steps, Some(1));
}

#[test]
fn a_pause_wins() {
    let pauses = gate("builtin:w", HookKey::<TurnEnd>::new("w"), |_| {
        Verdict::pause("look")
    });
    let pod = answering(vec![ends(until_good), pauses], &["bad", "good"]);
    let ran = pod.run("go");
    assert!(
        ran.end()
            .paused
            .as_deref()
            .is_some_and(|why| why.contains("look"))
    );
    assert_eq!(
        (inputs(&pod).len(), decisions(&pod)),
        (1, vec!["again", "pause"])
    );
}

#[test]
fn a_turn_that_was_ended_does_not_go_on() {
    let refuses = gate("builtin:r", HookKey::<PreRequest>::new("r"), |_| {
        Verdict::abort("not now")
    });
    let failure = ModelError {
        kind: ErrorKind::FixInput,
        message: "400".to_owned(),
        help: None,
    };
    let failed = ScriptedAnswer::new().say("half").fail(failure);
    for (gates, answer) in [
        (vec![refuses], ScriptedAnswer::text("unused")),
        (Vec::new(), failed),
    ] {
        let pod = answering(
            [vec![ends(|_| Verdict::again("more"))], gates].concat(),
            &[],
        );
        pod.script.add(answer);
        let ran = pod.run("go");
        assert!(
            matches!(
                ran.end().outcome,
                Outcome::Aborted { .. } | Outcome::ModelFailed { .. }
            ),
            "{:?}",
            ran.end()
        );
        assert_eq!(
            (inputs(&pod).len(), decisions(&pod).last()),
            (1, Some(&"again")),
            "{:?}",
            ran.end()
        );
    }
}

fn ending_verdicts(pod: &PodUnderTest) -> Vec<(Option<u64>, &'static str)> {
    let verdict = |(_, record)| match record {
        Record::VerdictGiven(given) => Some((given.turn, given.decision.word())),
        _ => None,
    };
    pod.records().into_iter().filter_map(verdict).collect()
}

// Nobody asked them again: the answer stood as it was.
#[test]
fn gates_are_asked_about_a_turn_that_ended_just_before_a_crash() {
    let mut pod = answering(vec![ends(until_good)], &["bad", "good", "good"]);
    pod.limits = RunLimits {
        max_steps: 2,
        ..pod.limits
    };
    pod.points.kill("turn_finished", 0);
    let _killed = pod.run("go");
    pod.revive();
    let ran = pod.run("on");
    assert_eq!(
        (&ran.end().outcome, ran.end().steps),
        (&Outcome::Done, 1),
        "the end of its own turn"
    );
    let inputs = inputs(&pod);
    let texts: Vec<_> = inputs.iter().map(|input| input.text.as_str()).collect();
    assert_eq!(texts, ["go", "on", "not bad"]);
    assert_eq!(
        inputs[2].again.as_ref().map(|again| (again.of, again.nth)),
        Some((1, 1))
    );
    assert_eq!(
        inputs[2].limits.unwrap().max_steps,
        Some(1),
        "what the first input has left"
    );
    assert_eq!(
        ending_verdicts(&pod),
        [(Some(1), "again"), (Some(2), "allow"), (Some(3), "allow")]
    );
    // Once is enough.
    pod.revive();
    pod.script.add(ScriptedAnswer::text("good"));
    pod.run("more").end();
    assert_eq!(ending_verdicts(&pod).len(), 4);
}

#[test]
fn a_pause_that_a_crash_cut_off_holds_a_pod_that_stays_and_not_the_next_run() {
    let paused = |staying: bool| {
        let pauses = ends(|end| {
            if end.turn == 1 {
                Verdict::pause("look")
            } else {
                Verdict::finish()
            }
        });
        let mut pod = answering(vec![pauses], &["one", "two"]);
        pod.points.kill("turn_finished", 0);
        let _killed = pod.run("go");
        pod.revive();
        if !staying {
            assert_eq!(pod.run("on").end().answer.as_deref(), Some("two"));
        } else {
            pod.mode = HostMode::Stay { missing: None };
            let Ok(live) = LivePod::open(pod) else {
                panic!("it does not open")
            };
            let status = live.until(|status| status.held.is_some());
            assert_eq!(status.held.map(|hold| hold.cause), Some(HoldCause::Gate));
            pod = live.close().pod;
        }
        assert_eq!(ending_verdicts(&pod)[0], (Some(1), "pause"));
    };
    paused(false);
    paused(true);
}

/// Killed at every point: what was decided is in the log or not, and never more than three times.
#[test]
fn no_kill_adds_a_turn() {
    let all = answering(vec![ends(until_good)], &["a"; 12]);
    all.run("go").end();
    let points = all.points.numbered();
    let wanted = [
        "input_queued",
        "commit:input_queued",
        "turn_finished",
        "turn_started",
        "verdict",
    ];
    let tried: Vec<_> = points
        .into_iter()
        .filter(|(name, _)| wanted.contains(&name.as_str()))
        .collect();
    assert!(tried.len() > 12, "{tried:?}");
    for (point, nth) in tried {
        let pod = answering(vec![ends(until_good)], &["a"; 24]);
        pod.points.kill(&point, nth);
        let _killed = pod.run("go");
        pod.revive();
        let ran = pod.run("on");
        ran.end();
        let inputs = inputs(&pod);
        for of in inputs.iter().filter(|input| input.again.is_none()) {
            let added = inputs.iter().filter_map(|input| input.again.clone());
            let nths: Vec<_> = added
                .filter(|again| again.of == of.input)
                .map(|again| again.nth)
                .collect();
            assert!(
                nths.len() <= 3 && nths.windows(2).all(|two| two[0] < two[1]),
                "{point} {nth}: {nths:?}"
            );
        }
    }
}
