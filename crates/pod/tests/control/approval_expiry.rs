//! A question with an end: when nobody answers in time the host denies the call, once and durably, also if the time ended
//! while no process lived. A timeout never allows.

use crate::approval_scene::{
    TEN_MINUTES, again, allow, answer, asked, deployments, deploys, expiring, idle, resolved, waits,
};
use crate::fixtures::{live, results, sound};
use crate::live_holds::spin;
use llm_worker::CallId;
use llm_worker::effect::Outcome;
use pod::control::{Activity, HostMode};
use pod::feature::author::*;
use pod::hook::MAX_EXPIRY;
use pod::permission::Person;
use pod::record::{ApprovalDecision, ApprovalResolved, Record};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use testkit::{ENOSPC, Fault, Latch, LivePod, PodUnderTest, ScriptedAnswer};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(60 * 60);

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap()
}

/// Lets time pass, and waits until something is recorded. Nobody asks the pod meanwhile: that would wake it.
fn recorded_after(live: &LivePod, time: Duration) {
    let mut folded = live.client().folded();
    folded.borrow_and_update();
    live.advance(time);
    live.ask(folded.changed()).unwrap();
}

/// Nothing is on its way: what is due by now has been done.
fn still_waits(live: &LivePod, many: usize) {
    let status = live.ask(live.client().status()).unwrap();
    assert!(
        matches!(status.activity, Activity::Waiting { .. }),
        "{:?}",
        status.activity
    );
    assert_eq!(status.approvals.len(), many);
}

/// The one denial of the host, and what the model is told.
fn denied(pod: &PodUnderTest, within: &str) -> ApprovalResolved {
    let [denial] = &resolved(pod)[..] else {
        panic!("{:?}", resolved(pod))
    };
    let reason = format!("nobody answered within {within}");
    assert_eq!(
        (denial.decision, &denial.by, denial.reason.as_ref()),
        (ApprovalDecision::Deny, &None, Some(&reason))
    );
    let told = results(&pod.restored().items)[&CallId::new(1).unwrap()].concat();
    assert_eq!(
        told,
        format!("this call needs a person's approval, and {reason}")
    );
    assert!(deployments(pod).is_empty());
    denial.clone()
}

#[test]
fn a_call_is_denied_when_nobody_answers_in_time() {
    let (pod, [deploy, echo]) = expiring(deploys(), None);
    let began = pod.clock.now() / 1000;
    let live = live(pod);
    let open = asked(&live);
    let expires = open[0].expires.unwrap();
    assert_eq!(
        (expires.at_ms, expires.after_ms),
        (began + 600_000, 600_000)
    );
    live.advance(SECOND);
    let reads = live.pod.clock.reads();
    live.advance(TEN_MINUTES - 2 * SECOND);
    assert_eq!(live.pod.clock.reads(), reads, "it woke before the end");
    still_waits(&live, 1);
    recorded_after(&live, SECOND);
    let status = live.until(|status| status.approvals.is_empty());
    assert_eq!(status.held, None);
    let late = answer(&live, allow(&open[0])).unwrap();
    let over = idle(live);
    assert_eq!(over.state().last_outcome, Some(Outcome::Done));
    assert_eq!(
        over.state().last_answer.as_deref(),
        Some("deployed"),
        "the turn goes on"
    );
    assert_eq!((deploy.ran().len(), echo.ran().len()), (0, 1));
    assert_eq!(
        denied(&over.pod, "10m"),
        late,
        "a late answer gets the recorded one"
    );
    sound(&over.pod, "expired");
}

#[test]
fn what_expired_while_no_process_lived_is_denied_before_anybody_can_answer() {
    for killed in [false, true] {
        let (pod, _) = expiring(deploys(), None);
        let mut live = live(pod);
        let open = asked(&live);
        let pod = if killed {
            live.pod.points.kill("commit:suspended", 0);
            drop(live.ask(live.client().pause(None)));
            live.wait().pod
        } else {
            live.close().pod
        };
        pod.clock.advance(micros(TEN_MINUTES));
        live = again(pod, vec![ScriptedAnswer::text("understood")]);
        let late = answer(&live, allow(&open[0])).unwrap();
        let over = idle(live);
        assert_eq!(denied(&over.pod, "10m"), late, "killed: {killed}");
        assert_eq!(over.state().last_answer.as_deref(), Some("understood"));
        sound(&over.pod, "expired while stopped");
    }
}

#[test]
fn a_run_that_goes_on_is_told_of_what_expired_before_it() {
    let (pod, _) = expiring(deploys(), None);
    let live = live(pod);
    asked(&live);
    let mut pod = live.close().pod;
    pod.clock.advance(micros(TEN_MINUTES));
    pod.mode = HostMode::Run;
    pod.asks(Person::Never);
    pod.script.add(ScriptedAnswer::text("and more"));
    let ran = pod.run("more");
    assert_eq!(
        (&ran.end().outcome, ran.end().answer.as_deref()),
        (&Outcome::Done, Some("and more"))
    );
    denied(&pod, "10m");
    sound(&pod, "a run that goes on");
}

#[test]
fn an_answer_before_the_end_counts() {
    let (pod, [deploy, _]) = expiring(deploys(), None);
    let live = live(pod);
    let open = asked(&live);
    live.advance(TEN_MINUTES - SECOND);
    assert_eq!(
        answer(&live, allow(&open[0])).unwrap().decision,
        ApprovalDecision::Allow
    );
    live.until(|status| status.activity == Activity::Idle);
    live.advance(HOUR);
    let over = idle(live);
    assert_eq!((deploy.ran().len(), resolved(&over.pod).len()), (1, 1));
    sound(&over.pod, "just before");
}

/// Asks about each call; asked again about an allowed one, it waits.
struct Slow(Latch);

const SLOW: HookKey<PreToolCall> = HookKey::new("slow");

impl FeatureModule for Slow {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("slow"))
            .version("1.0.0")
            .gate(&SLOW)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.hooks()
            .gate(&SLOW, &Arc::new((self.0.clone(), AtomicU32::new(0))), slow)
            .map(drop)
    }
}

fn slow((again, asked): &(Latch, AtomicU32), call: &ToolCallView) -> Verdict<PreToolCall> {
    if call.tool != "Deploy" {
        return Verdict::allow();
    }
    if asked.fetch_add(1, Ordering::SeqCst) > 0 {
        again.pass_blocking();
    }
    Verdict::ask("may it?").expires_after(TEN_MINUTES)
}

#[test]
fn of_an_answer_and_the_end_at_once_the_first_counts() {
    // The answer is there, but the call is still made ready when the time ends.
    let (mut pod, [deploy, _]) = expiring(deploys(), None);
    let latch = Latch::new("again");
    pod.features = vec![(
        Arc::new(Slow(latch.clone())),
        vec![HostCapability::hook::<PreToolCall>()],
    )];
    let first = live(pod);
    let open = asked(&first);
    let client = first.client();
    let allowed = allow(&open[0]);
    let answering = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(client.approve(allowed))
    });
    latch.wait_for(1);
    first.pod.clock.advance(micros(TEN_MINUTES));
    still_deciding(&first);
    latch.open();
    assert_eq!(
        answering.join().unwrap().unwrap().decision,
        ApprovalDecision::Allow
    );
    let over = idle(first);
    assert_eq!((deploy.ran().len(), resolved(&over.pod).len()), (1, 1));
    sound(&over.pod, "the answer first");
    // The time has ended, and the answer is what the pod hears first.
    let (pod, [deploy, _]) = expiring(deploys(), None);
    let second = live(pod);
    let open = asked(&second);
    second.pod.clock.advance(micros(TEN_MINUTES));
    let told = answer(&second, allow(&open[0])).unwrap();
    let over = idle(second);
    assert_eq!((denied(&over.pod, "10m"), deploy.ran().len()), (told, 0));
    sound(&over.pod, "the end first");
}

/// The answer has no record yet, and the pod has looked at the clock.
fn still_deciding(live: &LivePod) {
    for _ in 0..2 {
        assert_eq!(live.ask(live.client().status()).unwrap().approvals.len(), 1);
    }
    assert!(resolved(&live.pod).is_empty());
}

#[test]
fn a_clock_that_is_set_neither_lengthens_nor_hides_the_wait() {
    // Set back: the time that passes counts.
    let (pod, _) = expiring(deploys(), None);
    let back = live(pod);
    asked(&back);
    back.pod.clock.set_back(micros(HOUR));
    back.advance(TEN_MINUTES - SECOND);
    still_waits(&back, 1);
    back.advance(SECOND);
    denied(&idle(back).pod, "10m");
    // Set back while the pod is stopped: at most the whole time from the start.
    let (pod, _) = expiring(deploys(), None);
    let stopped = live(pod);
    asked(&stopped);
    let pod = stopped.close().pod;
    pod.clock.set_back(micros(HOUR));
    let stopped = again(pod, vec![ScriptedAnswer::text("understood")]);
    waits(&stopped);
    stopped.advance(TEN_MINUTES - SECOND);
    still_waits(&stopped, 1);
    stopped.advance(SECOND);
    denied(&idle(stopped).pod, "10m");
    // Set forward: noticed within the hour, as by background tasks.
    let (pod, _) = expiring(
        vec![
            ScriptedAnswer::calls(&[("Echo", "{}")]),
            ScriptedAnswer::text("done"),
        ],
        Some(48 * HOUR),
    );
    let forward = live(pod);
    asked(&forward);
    // The pod rests again.
    forward.advance(SECOND);
    forward.pod.clock.advance(micros(48 * HOUR));
    recorded_after(&forward, HOUR);
    denied(&idle(forward).pod, "2days");
}

#[test]
fn each_question_has_its_own_end() {
    let (pod, [deploy, echo]) = expiring(deploys(), Some(2 * TEN_MINUTES));
    let live = live(pod);
    let open = asked(&live);
    assert_eq!(open.len(), 2);
    live.advance(TEN_MINUTES);
    let status = live.until(|status| status.approvals.len() == 1);
    assert_eq!(
        (status.approvals[0].tool.as_str(), status.requests),
        ("Echo", 1)
    );
    live.advance(TEN_MINUTES - SECOND);
    still_waits(&live, 1);
    answer(&live, allow(&open[1])).unwrap();
    let over = idle(live);
    assert_eq!((deploy.ran().len(), echo.ran().len()), (0, 1));
    let decisions: Vec<_> = resolved(&over.pod)
        .iter()
        .map(|resolved| resolved.decision)
        .collect();
    assert_eq!(decisions, [ApprovalDecision::Deny, ApprovalDecision::Allow]);
    sound(&over.pod, "two ends");
}

#[test]
fn a_cancel_before_the_end_leaves_nothing_to_deny() {
    let (pod, _) = expiring(deploys(), None);
    let live = live(pod);
    asked(&live);
    live.ask(live.client().cancel(None));
    live.until(|status| status.held.is_some());
    live.advance(HOUR);
    let over = live.close();
    assert_eq!(over.state().last_outcome, Some(Outcome::Cancelled));
    assert!(resolved(&over.pod).is_empty());
    sound(&over.pod, "cancelled");
}

#[test]
fn a_full_disk_leaves_one_denial_and_none_of_a_cancelled_call() {
    for cancelled in [false, true] {
        let (pod, _) = expiring(deploys(), None);
        let live = live(pod);
        asked(&live);
        live.pod.disk.fail_at(0, Fault::Ever(ENOSPC));
        if cancelled {
            live.ask(live.client().cancel(None));
            spin(&live, |status| status.disk.is_some());
        }
        live.advance(TEN_MINUTES);
        spin(&live, |status| status.disk.is_some());
        live.pod.disk.repair();
        spin(&live, |status| {
            // An attempt from before the repair may have been refused.
            live.advance(Duration::from_secs(30));
            status.approvals.is_empty() && status.disk.is_none()
        });
        if cancelled {
            let over = live.close();
            assert_eq!((over.failure(), resolved(&over.pod).len()), (None, 0));
        } else {
            denied(&idle(live).pod, "10m");
        }
    }
}

#[test]
fn a_stop_and_a_start_before_the_end_keep_it() {
    let (pod, _) = expiring(deploys(), None);
    let first = live(pod);
    let open = asked(&first);
    first.advance(Duration::from_secs(240));
    let pod = first.close().pod;
    pod.clock.advance(micros(Duration::from_secs(60)));
    let live = again(pod, vec![ScriptedAnswer::text("understood")]);
    assert_eq!(waits(&live).approvals, open);
    live.advance(Duration::from_secs(299));
    still_waits(&live, 1);
    live.advance(SECOND);
    let over = idle(live);
    denied(&over.pod, "10m");
    sound(&over.pod, "kept");
}

#[test]
fn a_kill_around_the_denial_leaves_one() {
    for point in [
        "commit:approval_resolved",
        "approval_resolved",
        "tool_finished",
        "commit:turn_finished",
    ] {
        let (pod, _) = expiring(deploys(), None);
        let live = live(pod);
        asked(&live);
        let nth = live
            .pod
            .points
            .came()
            .iter()
            .filter(|name| *name == point)
            .count();
        live.pod.points.kill(point, nth);
        live.try_advance(TEN_MINUTES);
        let live = again(live.wait().pod, vec![ScriptedAnswer::text("understood")]);
        let over = idle(live);
        denied(&over.pod, "10m");
        sound(&over.pod, point);
    }
}

#[test]
fn a_time_is_at_least_a_second_and_at_most_its_bound() {
    for (time, after_ms) in [
        (Duration::ZERO, 1000),
        (Duration::MAX, MAX_EXPIRY.as_millis() as u64),
    ] {
        let calls = ScriptedAnswer::calls(&[("Echo", "{}")]);
        let (pod, _) = expiring(vec![calls, ScriptedAnswer::text("done")], Some(time));
        let live = live(pod);
        assert_eq!(asked(&live)[0].expires.unwrap().after_ms, after_ms);
        let verdict = |(_, record): (u64, Record)| match record {
            Record::VerdictGiven(given) => given.decision.after_ms(),
            _ => None,
        };
        assert_eq!(
            live.pod.records().into_iter().find_map(verdict),
            Some(after_ms),
            "the verdict has it, too"
        );
        drop(live.close());
    }
}
