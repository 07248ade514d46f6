//! Alerts and notes: bounded, and told apart from the log and from the model.

use crate::rig::{ID, pod};
use pod::control::{Event, Outbox};
use pod::record::Record;
use std::time::Duration;

#[test]
fn alerts_reach_only_the_watcher_and_are_bounded() {
    let (pod, _) = pod(&[&["alert 20"], &["alert 1"]]);
    let ran = pod.run("go");
    let alerts: Vec<String> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Alert(alert) if alert.from.as_ref() == Some(&ID) => Some(alert.text.clone()),
            _ => None,
        })
        .collect();
    let mut expected: Vec<String> = (0..8).map(|n| format!("alert {n}")).collect();
    expected.push("further alerts of this turn are dropped".to_owned());
    assert_eq!(alerts, expected);
    assert!(!format!("{:?}", pod.script.requests()).contains("alert 1\""));
}

#[test]
fn notes_are_journaled_without_a_flush_and_stop_at_their_bound() {
    let (pod, _) = pod(&[&["note 40"]]);
    let ran = pod.run("go");
    let notes: Vec<String> = pod
        .records()
        .into_iter()
        .filter_map(|(_, record)| match record {
            Record::FeatureNote(note) => Some(note.text),
            _ => None,
        })
        .collect();
    assert_eq!(
        (notes.len(), notes[0].as_str()),
        (pod::feature::MAX_NOTES, "note 0")
    );
    assert_eq!(
        notes.last().unwrap(),
        "further notes are dropped for 24 hours"
    );
    let (plain, _) = crate::rig::pod(&[&["read"]]);
    assert_eq!(ran.flushes, plain.run("go").flushes);
}

#[test]
fn a_day_later_notes_are_taken_again() {
    let (pod, counter) = pod(&[]);
    let ((), end) = pod.serve(Outbox::unwatched(), async |client| {
        client.submit("go").await.unwrap();
        let live = counter.live.lock().unwrap().clone().unwrap();
        for day in ["first", "second"] {
            for n in 0..40 {
                live.notes.note(&format!("{day} {n}")).unwrap();
            }
            client.submit(day).await.unwrap();
            tokio::time::advance(Duration::from_secs(24 * 60 * 60)).await;
        }
    });
    end.result.unwrap();
    let of = |day: &str| {
        let is_of = |record: &(u64, Record)| matches!(&record.1, Record::FeatureNote(note) if note.text.starts_with(day));
        pod.records().iter().filter(|record| is_of(record)).count()
    };
    assert_eq!((of("first"), of("second"), of("further")), (31, 31, 2));
}
