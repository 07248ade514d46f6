//! The pod is killed at every point it comes by: the state is the fold, and a notification is delivered exactly once.

use crate::rig::{calls, pod};
use pod::record::{Record, SystemItem};
use std::collections::BTreeMap;
use testkit::{RunEnd, ScriptedAnswer};

const STEPS: &[&[&str]] = &[&["add", "tell one"], &["piggyback", "tell two"], &["both"]];

#[test]
fn killed_anywhere_nothing_is_lost_and_nothing_comes_twice() {
    let (whole, _) = pod(STEPS);
    whole.run("go").end();
    let points = whole.points.numbered();
    assert!(
        points
            .iter()
            .any(|(name, _)| name == "commit:feature_state"),
        "{points:?}"
    );
    assert!(
        points.iter().any(|(name, _)| name == "notification_queued"),
        "{points:?}"
    );
    for (name, nth) in points {
        let (pod, counter) = pod(STEPS);
        pod.points.kill(&name, nth);
        let ran = pod.run("go");
        let heard = counter.heard();
        pod.revive();
        for _ in 0..8 {
            pod.script.add(ScriptedAnswer::text("done"));
        }
        pod.script.add(calls(&["read"]));
        let again = pod.run("again");
        assert!(
            matches!(again.how, RunEnd::Ended(_)),
            "{name} {nth}: {again:?}"
        );
        let mut queued = BTreeMap::new();
        let mut delivered = BTreeMap::new();
        let mut n = 0;
        for (_, record) in pod.records() {
            match record {
                Record::NotificationQueued(notice) => {
                    *queued.entry(notice.number).or_insert(0) += 1
                }
                Record::SystemItem(SystemItem::Notification { number, .. }) => {
                    *delivered.entry(number).or_insert(0) += 1
                }
                Record::FeatureState(state) => n = state.value["n"].as_u64().unwrap(),
                _ => {}
            }
        }
        // What the feature was told is done is there.
        let promised = heard
            .iter()
            .filter(|line| line.starts_with("tell") && !line.ends_with("Unavailable"))
            .count();
        assert!(
            queued.len() >= promised,
            "{name} {nth}: {heard:?} {queued:?}"
        );
        let added = heard.iter().filter(|line| *line == "add: 1").count() as u64;
        assert!(n >= added, "{name} {nth}: {heard:?}");
        assert_eq!(counter.state().read().n, n, "{name} {nth}");
        assert!(
            delivered.values().all(|times| *times == 1),
            "{name} {nth}: {delivered:?}"
        );
        let waiting = pod.state().notices;
        assert_eq!(
            queued.len(),
            delivered.len() + waiting.len(),
            "{name} {nth} {ran:?}"
        );
        assert!(waiting.is_empty(), "{name} {nth}: {waiting:?}");
    }
}
