//! A notification that wakes an idle pod begins one turn, however often the process dies.

use crate::fixtures::{live, pod, sound};
use pod::control::{Event, HostMode, NewInput};
use pod::feature::*;
use pod::record::{Record, SystemItem};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{LivePod, ModelScript, Over, PodUnderTest, ScriptedAnswer};

const NOTIFY: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 40,
    per_turn: 9,
};

/// A feature; every install leaves its sink here.
#[derive(Clone)]
struct Waker(FeatureId, Arc<Mutex<Option<FeatureNotifySink>>>);

impl FeatureModule for Waker {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(self.0.clone()).version("1.0.0");
        builder
            .request(CapabilityRequest::required(NOTIFY, "to wake"))
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        *self.1.lock().unwrap() = Some(ctx.notifications()?);
        Ok(())
    }
}

impl Waker {
    fn new(name: &str) -> Self {
        Self(format!("builtin:{name}").parse().unwrap(), Arc::default())
    }

    fn sink(&self) -> FeatureNotifySink {
        self.1.lock().unwrap().clone().unwrap()
    }
}

fn scene() -> (PodUnderTest, Waker) {
    let waker = Waker::new("clock");
    (with(std::slice::from_ref(&waker), 9), waker)
}

/// A pod with these features, and a model that gives so many answers.
fn with(wakers: &[Waker], answers: u64) -> PodUnderTest {
    let mut pod = pod(
        (0..answers)
            .map(|n| ScriptedAnswer::text(&format!("answer {n}")))
            .collect(),
        Vec::new(),
    );
    pod.mode = HostMode::Stay { missing: None };
    pod.features = wakers
        .iter()
        .map(|waker| {
            (
                Arc::new(waker.clone()) as Arc<dyn FeatureModule>,
                vec![NOTIFY],
            )
        })
        .collect();
    pod
}

/// The turns of a log, and the notifications that they delivered.
fn turns(pod: &PodUnderTest) -> (u64, Vec<u64>) {
    let delivered = |(_, record): &(u64, Record)| match record {
        Record::SystemItem(SystemItem::Notification { number, .. }) => Some(*number),
        _ => None,
    };
    (
        pod.state().turns,
        pod.records().iter().filter_map(delivered).collect(),
    )
}

#[test]
fn a_waking_notification_begins_one_turn_and_another_none() {
    let (pod, waker) = scene();
    let live = live(pod);
    live.ask(waker.sink().notify_model("by the way")).unwrap();
    assert_eq!(live.settled().turns, 0);
    live.ask(waker.sink().wake_model("it is time")).unwrap();
    live.until(|status| status.turns == 1);
    let status = live.settled();
    assert_eq!((status.turns, status.requests, status.notices), (1, 1, 0));
    let over = live.close();
    assert_eq!(turns(&over.pod), (1, vec![1, 2]));
    sound(&over.pod, "a wake");
}

#[test]
fn a_pod_that_is_held_is_woken_once_it_is_resumed() {
    let (pod, waker) = scene();
    let live = live(pod);
    live.ask(live.client().pause(None)).unwrap();
    live.ask(waker.sink().wake_model("it is time")).unwrap();
    live.ask(waker.sink().wake_model("it is late")).unwrap();
    assert_eq!(live.settled().turns, 0);
    // Held across a restart, too.
    let live = crate::fixtures::live(live.close().pod);
    assert_eq!((live.settled().turns, live.settled().notices), (0, 2));
    live.ask(live.client().resume(None)).unwrap();
    assert_eq!(live.settled().turns, 1);
    assert_eq!(turns(&live.close().pod), (1, vec![1, 2]));
}

/// Sends the notification and waits for its turn. Returns whether it was told that the notification is durable.
fn woken(pod: PodUnderTest, waker: &Waker) -> (bool, Over) {
    let live = match LivePod::open(pod) {
        Ok(live) => live,
        Err(over) => return (false, *over),
    };
    if live
        .try_until(|status| live.folded(status.folded).hosted)
        .is_none()
    {
        return (false, live.wait());
    }
    let durable = live.ask(waker.sink().wake_model("it is time")).is_ok();
    match durable.then(|| live.try_settled()).flatten() {
        Some(_) => (durable, live.close()),
        None => (durable, live.wait()),
    }
}

#[test]
fn killed_anywhere_it_begins_one_turn_and_is_delivered_once() {
    let (pod, waker) = scene();
    let points = woken(pod, &waker).1.pod.points.numbered();
    for expected in [
        "commit:notification",
        "commit:turn_started",
        "commit:request",
        "turn_finished",
    ] {
        assert!(
            points.iter().any(|(name, _)| name.starts_with(expected)),
            "no {expected} in {points:?}"
        );
    }
    for (name, nth) in points {
        let what = format!("killed at {name} {nth}");
        let (pod, waker) = scene();
        pod.points.kill(&name, nth);
        let (durable, Over { mut pod, .. }) = woken(pod, &waker);
        pod.revive();
        pod.script = ModelScript::new([
            ScriptedAnswer::text("woke"),
            ScriptedAnswer::text("went on"),
        ]);
        let live = live(pod);
        live.settled();
        let over = live.close();
        let log = over.pod.records();
        let logged = log
            .iter()
            .any(|(_, record)| matches!(record, Record::NotificationQueued(_)));
        assert!(logged || !durable, "{what}: told and lost");
        let begun = log
            .iter()
            .any(|(_, record)| matches!(record, Record::Recovery(recovery) if recovery.open_turn));
        // A turn that the kill interrupted goes on in a second one, without the notification.
        let expected = if logged {
            (1 + u64::from(begun), vec![1])
        } else {
            (0, Vec::new())
        };
        assert_eq!(turns(&over.pod), expected, "{what}");
        sound(&over.pod, &what);
    }
}

const MINUTE: Duration = Duration::from_secs(60);

fn wake(live: &LivePod, waker: &Waker) -> u64 {
    live.ask(waker.sink().wake_model("it is time")).unwrap();
    live.settled().turns
}

fn alerts(over: &Over) -> usize {
    over.events
        .iter()
        .filter(|event| matches!(event, Event::Alert(alert) if alert.text.contains("turns within an hour")))
        .count()
}

#[test]
fn a_feature_that_wakes_too_often_waits_for_another_turn_or_the_next_hour() {
    let waker = Waker::new("clock");
    let live = live(with(std::slice::from_ref(&waker), 15));
    for turns in 1..=12 {
        assert_eq!(wake(&live, &waker), turns);
    }
    live.advance(59 * MINUTE);
    assert_eq!((wake(&live, &waker), wake(&live, &waker)), (12, 12));
    assert_eq!(live.settled().notices, 2);
    // A turn that begins for another reason delivers them.
    live.ask(live.client().send(NewInput {
        text: "go on".to_owned(),
        ..NewInput::default()
    }))
    .unwrap();
    assert_eq!((live.settled().turns, live.settled().notices), (13, 0));
    live.advance(MINUTE);
    assert_eq!(wake(&live, &waker), 14);
    let over = live.close();
    assert_eq!(turns(&over.pod), (14, (1..=15).collect()));
    assert_eq!(alerts(&over), 1, "people are told once");
    sound(&over.pod, "too many wakes");
}

#[test]
fn all_features_together_wake_the_pod_sixty_times_an_hour() {
    let wakers: Vec<_> = (0..6).map(|n| Waker::new(&format!("clock-{n}"))).collect();
    let live = live(with(&wakers, 62));
    for n in 0..60 {
        assert_eq!(wake(&live, &wakers[n % 6]), n as u64 + 1);
    }
    assert_eq!((wake(&live, &wakers[0]), wake(&live, &wakers[1])), (60, 60));
    live.advance(60 * MINUTE);
    assert_eq!(wake(&live, &wakers[2]), 61);
    let over = live.close();
    assert_eq!(turns(&over.pod), (61, (1..=63).collect()));
    assert_eq!(alerts(&over), 1, "people are told once");
}
