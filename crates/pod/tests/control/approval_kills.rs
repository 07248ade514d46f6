//! A pod that is killed at every one of its points between a question, its answer, the start and the end of the call: at
//! most one start for each approval, with the arguments that were shown.

use crate::approval_scene::{
    ARGUMENTS, again, allow, both, deny, deployments, deploys, requested, resolved, scene,
};
use crate::fixtures::{ran_once, sound};
use pod::control::{Activity, NewInput, SubmitError};
use pod::record::{ApprovalDecision, ApprovalResolved};
use testkit::{FnTool, LivePod, Over, PodUnderTest, ScriptedAnswer};

/// `None` once the pod is dead.
fn alive<T>(answer: Result<T, SubmitError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(SubmitError::Closed | SubmitError::Disk(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// What clients were told.
#[derive(Default)]
struct Told {
    answers: Vec<ApprovalResolved>,
}

/// An input, and two people who answer at once what is asked: the one allows and the other denies.
fn story(live: &LivePod, first: bool, told: &mut Told) -> Option<()> {
    if first {
        alive(live.ask(live.client().send(NewInput {
            text: "go".to_owned(),
            ..NewInput::default()
        })))?;
    }
    let rests = |activity: &Activity| matches!(activity, Activity::Idle | Activity::Waiting { .. });
    let status =
        live.try_until(|status| rests(&status.activity) && (!first || status.requests > 0))?;
    for question in &status.approvals {
        let [one, two] = both(live, allow(question), deny(question, "no"));
        told.answers.extend(one.ok());
        told.answers.extend(two.ok());
    }
    live.try_until(|status| status.activity == Activity::Idle && status.approvals.is_empty())
        .map(drop)
}

fn played(pod: PodUnderTest, told: &mut Told) -> Over {
    match LivePod::open(pod) {
        Err(over) => *over,
        Ok(live) => match story(&live, true, told) {
            Some(()) => live.close(),
            None => live.wait(),
        },
    }
}

fn check(pod: &PodUnderTest, tools: &[FnTool; 2], told: &Told, what: &str) {
    let asked = requested(pod);
    let answers = resolved(pod);
    let starts = deployments(pod);
    assert!(
        asked.len() <= 1 && answers.len() <= 1 && starts.len() <= 1,
        "{what}: {asked:?} {answers:?} {starts:?}"
    );
    for answer in &told.answers {
        assert_eq!(
            answers.first(),
            Some(answer),
            "{what}: told and lost, or another one counts"
        );
    }
    let allowed = answers
        .iter()
        .any(|answer| answer.decision == ApprovalDecision::Allow);
    assert_eq!(starts.len(), usize::from(allowed), "{what}");
    for start in &starts {
        assert_eq!(&*start.arguments, ARGUMENTS, "{what}");
        assert_eq!(start.arguments_digest, asked[0].arguments_digest, "{what}");
    }
    assert!(
        tools[0].ran().len() <= starts.len(),
        "{what}: run without an allowed start"
    );
    ran_once(tools, what);
    sound(pod, what);
}

fn killed_at(name: &str, nth: usize) {
    let what = format!("killed at {name} {nth}");
    let (pod, tools) = scene(deploys());
    pod.points.kill(name, nth);
    let mut told = Told::default();
    let over = played(pod, &mut told);
    let before = tools[0].ran();
    let open =
        over.pod.dir.join("log").exists() && over.pod.restored().state.approvals.open.len() == 1;
    let live = again(
        over.pod,
        (0..4).map(|_| ScriptedAnswer::text("went on")).collect(),
    );
    let status =
        live.until(|status| matches!(status.activity, Activity::Idle | Activity::Waiting { .. }));
    // A batch that was on its way may be found whole: then the question or its answer is there.
    let found = status.approvals.len() + resolved(&live.pod).len();
    assert!(
        found >= usize::from(open),
        "{what}: a question that was recorded is lost"
    );
    assert_eq!(
        tools[0].ran(),
        before,
        "{what}: something ran without an answer"
    );
    assert!(
        story(&live, false, &mut told).is_some(),
        "{what}: it died again"
    );
    let over = live.close();
    assert_eq!(over.state(), &over.pod.state(), "{what}");
    check(&over.pod, &tools, &told, &what);
}

#[test]
fn at_most_one_start_for_each_approval_wherever_it_is_killed() {
    let (pod, tools) = scene(deploys());
    let mut told = Told::default();
    let over = played(pod, &mut told);
    check(&over.pod, &tools, &told, "without a kill");
    let points = over.pod.points.numbered();
    for expected in [
        "commit:approval_requested",
        "approval_requested",
        "commit:approval_resolved",
        "approval_resolved",
    ] {
        assert!(
            points.iter().any(|(name, _)| name == expected),
            "no {expected} in {points:?}"
        );
    }
    for (name, nth) in points {
        killed_at(&name, nth);
    }
}
