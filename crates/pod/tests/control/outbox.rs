//! Watchers that are slow, and watchers that are gone.

use crate::fixtures::{pod, sound, told_what_is_durable};
use llm_worker::effect::Delta;
use llm_worker::model::EVENT_QUEUE;
use pod::control::{Event, Outbox};
use pod::mailbox::events::{BACKLOG, CHANNEL};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::{Latch, ScriptedAnswer, within};
use tokio_util::sync::CancellationToken;

fn delta(number: usize) -> Event {
    Event::Delta {
        turn: 1,
        request: 1,
        delta: Delta::Text {
            text: number.to_string(),
        },
    }
}

fn number(event: &Event) -> usize {
    match event {
        Event::Delta {
            delta: Delta::Text { text },
            ..
        } => text.trim().parse().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Nothing is lost or reordered, however far behind the watcher is; past the bound the outbox says that it is full.
#[test]
fn events_wait_in_order_and_full_means_the_bound() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (mut outbox, mut events) = Outbox::watched();
    let all = CHANNEL + BACKLOG;
    for shown in 0..all {
        assert!(!outbox.is_full(), "full with {shown}");
        assert_eq!(outbox.is_empty(), shown <= CHANNEL, "{shown}");
        outbox.show(delta(shown));
    }
    assert!(outbox.is_full());
    // A record is taken all the same: commits are never held back.
    outbox.show(delta(all));
    for expected in 0..=all {
        assert_eq!(number(&events.try_recv().unwrap()), expected);
        if !outbox.is_empty() {
            runtime.block_on(outbox.progress());
        }
    }
    assert!(outbox.is_empty() && !outbox.is_full() && events.try_recv().is_err());
}

#[test]
fn a_watcher_that_is_gone_is_forgotten() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (mut outbox, events) = Outbox::watched();
    (0..CHANNEL + BACKLOG).for_each(|n| outbox.show(delta(n)));
    drop(events);
    runtime.block_on(outbox.progress());
    assert!(outbox.is_empty() && !outbox.is_full());
    outbox.show(delta(0));
    assert!(outbox.is_empty());
    let mut nobody = Outbox::unwatched();
    nobody.show(delta(0));
    runtime.block_on(nobody.progress());
    assert!(nobody.is_empty());
}

/// A model may run ahead of its watcher by the bounds and no further, and nothing is lost of it.
#[test]
fn a_watcher_that_does_not_read_holds_back_the_stream() {
    // The records of the start come before the first delta.
    let fits = CHANNEL + BACKLOG - 32;
    let more = EVENT_QUEUE + 64;
    let outside = Latch::new("outside");
    let reading = Latch::new("reading");
    let say = |from: usize, to: usize, answer: ScriptedAnswer| {
        (from..to).fold(answer, |a, n| a.say(&format!("{n} ")))
    };
    let answer = say(0, fits, ScriptedAnswer::new()).when_idle(&reading);
    let answer = say(fits, fits + more, answer)
        .wait_at(&outside)
        .stop(llm_worker::StopReason::EndTurn);
    let pod = pod(vec![answer], Vec::new());
    let ahead = Arc::new(AtomicUsize::new(0));
    let points = pod.points.clone();
    let seen = Arc::clone(&ahead);
    let watch = move |mut events: tokio::sync::mpsc::Receiver<Event>| {
        reading.pass_blocking();
        assert_eq!(outside.came(), 0, "the whole answer came while nobody read");
        seen.store(
            points
                .came()
                .iter()
                .filter(|name| *name == "stream")
                .count(),
            Ordering::SeqCst,
        );
        outside.open();
        std::iter::from_fn(|| events.blocking_recv()).collect()
    };
    let (ran, pod) = within("a watcher that does not read", move || {
        (
            pod.run_watched("first", &CancellationToken::new(), watch),
            pod,
        )
    });
    ran.end();
    let ahead = ahead.load(Ordering::SeqCst);
    assert!(
        (fits..fits + 64).contains(&ahead),
        "{ahead} events taken while nobody read"
    );
    let texts: Vec<usize> = ran
        .events
        .iter()
        .filter(|e| matches!(e, Event::Delta { .. }))
        .map(number)
        .collect();
    assert!(texts.into_iter().eq(0..fits + more));
    told_what_is_durable(&ran, &pod.records(), 0, "slow");
    sound(&pod, "slow");
}

#[test]
fn a_run_nobody_watches_any_more_goes_on() {
    let answer = (0..3000).fold(ScriptedAnswer::new(), |a, n| a.say(&format!("{n} ")));
    let pod = pod(
        vec![answer.stop(llm_worker::StopReason::EndTurn)],
        Vec::new(),
    );
    let ran = pod.run_watched("first", &CancellationToken::new(), |events| {
        drop(events);
        Vec::new()
    });
    assert!(ran.end().answer.is_some());
    sound(&pod, "unwatched");
}
