//! Notifications: durable before they are answered, delivered once, at the next step, within the grant.

use crate::rig::{ID, calls, pod};
use llm_worker::Item;
use pod::control::Outbox;
use pod::record::{NotificationQueued, Record, SystemItem};
use std::time::Duration;
use testkit::{ModelScript, RunEnd, ScriptedAnswer};

fn told(items: &[Item]) -> Vec<(String, String)> {
    let said = |item: &Item| match item {
        Item::System { source, text } if source != "host" => Some((source.clone(), text.clone())),
        _ => None,
    };
    items.iter().filter_map(said).collect()
}

#[test]
fn it_is_durable_before_the_answer_and_the_next_step_brings_it() {
    let (pod, counter) = pod(&[&["tell look at the tests"]]);
    pod.run("go").end();
    assert_eq!(counter.heard(), ["tell look at the tests: 1"]);
    let requests = pod.script.requests();
    assert_eq!(told(&requests[0].items), []);
    assert_eq!(
        told(&requests[1].items),
        [(ID.to_string(), "look at the tests".to_owned())]
    );
    let kinds: Vec<String> = pod
        .records()
        .iter()
        .map(|(_, record)| record.kind().to_owned())
        .collect();
    let at = |kind: &str| kinds.iter().rposition(|k| k == kind).unwrap();
    assert!(
        at("notification_queued") < at("tool_finished") && at("tool_finished") < at("system_item"),
        "{kinds:?}"
    );
    let queued = pod
        .records()
        .into_iter()
        .find_map(|(_, record)| match record {
            Record::NotificationQueued(queued) => Some(queued),
            _ => None,
        });
    let feature = ID.to_string();
    let text = "look at the tests".to_owned();
    assert_eq!(
        queued,
        Some(NotificationQueued {
            number: 1,
            feature,
            registry_generation: 1,
            text,
            wake: false,
            key: None,
            by: None
        })
    );
}

#[test]
fn one_that_comes_after_the_last_step_waits_for_the_next_turn() {
    // The model stops with its answer, so nothing carries the words of its last call's turn but the next one.
    let (mut pod, _) = pod(&[&["tell later"]]);
    pod.limits.max_steps = 1;
    pod.run("go").end();
    assert_eq!(pod.state().notices.len(), 1);
    pod.limits.max_steps = 100;
    pod.run("again").end();
    assert_eq!(
        told(&pod.script.requests()[1].items),
        [(ID.to_string(), "later".to_owned())]
    );
    assert_eq!(pod.state().notices.len(), 0);
}

#[test]
fn bytes_and_number_are_those_of_the_grant() {
    let long = format!("tell {}", "x".repeat(41));
    let fits = format!("tell {}", "x".repeat(40));
    let (pod, counter) = pod(&[
        &[&long, "tell \u{7}", &fits],
        &["tell two"],
        &["tell three"],
    ]);
    pod.run("go").end();
    let heard: Vec<String> = counter
        .heard()
        .iter()
        .map(|line| line.rsplit(": ").next().unwrap().to_owned())
        .collect();
    let mut first = heard[..3].to_vec();
    first.sort();
    assert_eq!(
        (first, &heard[3..]),
        (
            ["1", "Exhausted", "FixInput"].map(str::to_owned).to_vec(),
            &["2".to_owned(), "Exhausted".to_owned()][..]
        )
    );
    // The next turn has an allowance of its own.
    pod.script.add(calls(&["tell four"]));
    pod.script.add(ScriptedAnswer::text("done"));
    pod.run("again").end();
    assert_eq!(counter.heard().last().unwrap(), "tell four: 3");
}

#[test]
fn the_same_words_twice_are_two_notifications() {
    let (pod, _) = pod(&[&["tell same", "tell same"]]);
    pod.run("go").end();
    let numbers: Vec<u64> = pod
        .records()
        .iter()
        .filter_map(|(_, record)| match record {
            Record::SystemItem(SystemItem::Notification { number, .. }) => Some(*number),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn every_turn_of_one_start_has_its_own_allowance() {
    let (pod, counter) = pod(&[&["tell one"], &["tell two"], &["tell three"]]);
    pod.script.add(calls(&["tell four"]));
    pod.script.add(ScriptedAnswer::text("done"));
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        for prompt in ["go", "again"] {
            client.submit(prompt).await.unwrap();
        }
    });
    end.result.unwrap();
    assert_eq!(
        counter.heard(),
        [
            "tell one: 1",
            "tell two: 2",
            "tell three: Exhausted",
            "tell four: 3"
        ]
    );
}

/// Between turns an allowance lasts an hour, so that a pod of weeks is not silenced by a busy day.
#[test]
fn an_idle_pod_has_its_allowance_again_after_an_hour() {
    let (pod, counter) = pod(&[]);
    let (told, end) = pod.serve(Outbox::unwatched(), async |client| {
        client.submit("go").await.unwrap();
        let live = counter.live.lock().unwrap().clone().unwrap();
        let mut told = Vec::new();
        for text in ["one", "two", "three"] {
            told.push(live.notify.notify_model(text).await.is_ok());
        }
        tokio::time::advance(Duration::from_secs(60 * 60)).await;
        told.push(live.notify.notify_model("four").await.is_ok());
        told
    });
    end.result.unwrap();
    assert_eq!(told, [true, true, false, true]);
    assert_eq!(end.state.notices.len(), 3);
}

/// A feature that is killed between its notification and its own note of it sends the notification again.
#[test]
fn one_with_a_key_is_delivered_once_wherever_the_pod_is_killed() {
    let step: &[&str] = &["once day-1 words"];
    let (whole, counter) = pod(&[step]);
    whole.run("go").end();
    assert_eq!(counter.heard(), ["once day-1 words: 1"], "it counts once");
    let points = whole.points.numbered();
    for name in ["notification_queued", "commit:feature_state"] {
        assert!(points.iter().any(|(point, _)| point == name), "{points:?}");
    }
    for (name, nth) in points {
        let (mut pod, counter) = pod(&[step]);
        pod.points.kill(&name, nth);
        let how = pod.run("go").how;
        assert!(
            matches!(how, RunEnd::Killed | RunEnd::Ended(_)),
            "{name} {nth}: {how:?}"
        );
        pod.revive();
        pod.script = ModelScript::new([calls(step), ScriptedAnswer::text("done")]);
        pod.run("again").end();
        let mut queued = Vec::new();
        let mut delivered = Vec::new();
        for (_, record) in pod.records() {
            match record {
                Record::NotificationQueued(notice) => queued.push((notice.number, notice.key)),
                Record::SystemItem(SystemItem::Notification { number, text, .. }) => {
                    delivered.push((number, text))
                }
                _ => {}
            }
        }
        let [(number, Some(key))] = &queued[..] else {
            panic!("{name} {nth}: {queued:?}")
        };
        assert_eq!(
            (key.as_str(), delivered),
            ("day-1", vec![(*number, "words".to_owned())]),
            "{name} {nth}"
        );
        assert_eq!(
            counter.heard().last(),
            Some(&format!("once day-1 words: {number}")),
            "{name} {nth}"
        );
    }
}

#[test]
fn another_key_is_another_notification() {
    let (pod, counter) = pod(&[
        &["once a words"],
        &["once b words"],
        &["once a words"],
        &["once c words"],
    ]);
    pod.run("go").end();
    let heard: Vec<String> = counter
        .heard()
        .iter()
        .map(|line| line.rsplit(": ").next().unwrap().to_owned())
        .collect();
    assert_eq!(&heard[..3], ["1", "2", "1"]);
    assert!(counter.heard()[3].contains("Exhausted"), "{heard:?}");
    assert_eq!(pod.state().notified, 2);
}
