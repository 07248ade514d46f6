//! What the model makes of events. That its status is the pod's own is proved in the pod's tests.

use crate::scripted_pod::{attached, page, status};
use client::model::{
    MAX_ALERTS, MAX_ENTRIES, MAX_ENTRY_BYTES, MAX_OUTPUT, MAX_OUTPUTS, PodModel, digest,
};
use protocol::event::{AlertEvent, AlertLevel, DeltaEvent, DeltaPart, Event, Lagged};
use protocol::method::{Attached, Draft, RecordPage};
use protocol::record::RecordLine;
use protocol::status::{HoldStatus, State, Status};
use serde_json::{Value, json};

fn record(seq: u64, kind: &str, body: Value) -> Event {
    let mut line = json!({ "q": seq, "t": 100 + seq, "k": kind, "v": 1 });
    line.as_object_mut()
        .unwrap()
        .extend(body.as_object().unwrap().clone());
    Event::Record(RecordLine::new(line.to_string()).unwrap())
}

fn delta(turn: u64, request: u64, part: DeltaPart) -> Event {
    Event::Delta(DeltaEvent {
        turn,
        request,
        part,
    })
}

fn text(text: &str) -> DeltaPart {
    DeltaPart::Text {
        text: text.to_owned(),
    }
}

fn request(seq: u64, number: u64) -> Event {
    record(
        seq,
        "request",
        json!({ "number": number, "generation": 1, "items": 1, "bytes": 1 }),
    )
}

fn answer(seq: u64, text: &str) -> Event {
    record(
        seq,
        "item",
        json!({ "item": { "type": "assistant", "text": text } }),
    )
}

fn response(seq: u64, stop: &str) -> Event {
    record(
        seq,
        "response",
        json!({ "stop": stop, "usage": { "input": 1, "output": 1, "cached": 0 } }),
    )
}

fn folded(events: impl IntoIterator<Item = Event>) -> PodModel {
    let mut model = PodModel::before_any_record("p");
    events.into_iter().for_each(|event| model.apply(&event));
    model
}

fn turn() -> Vec<Event> {
    vec![
        record(1, "turn_started", json!({ "turn": 1 })),
        request(2, 1),
    ]
}

fn live(model: &PodModel) -> Option<(u64, &str)> {
    model.live().map(|live| (live.request, live.text.as_str()))
}

#[test]
fn deltas_show_the_newest_answer_until_its_records_arrive() {
    let mut model = folded(turn());
    for part in [
        text("one "),
        text("two"),
        DeltaPart::CallStarted {
            index: 0,
            name: "T".to_owned(),
        },
    ] {
        model.apply(&delta(1, 1, part));
    }
    model.apply(&delta(
        1,
        1,
        DeltaPart::Reasoning {
            text: "because".to_owned(),
        },
    ));
    let answer_so_far = model.live().unwrap();
    assert_eq!(
        (
            answer_so_far.text.as_str(),
            answer_so_far.reasoning.as_str()
        ),
        ("one two", "because")
    );
    assert_eq!(
        (
            answer_so_far.calls.join(" ").as_str(),
            answer_so_far.incomplete
        ),
        ("T", false)
    );
    // Deltas may overtake records: those of the next request are not of the answer that is recorded now.
    model.apply(&delta(1, 2, text("next")));
    model.apply(&delta(1, 1, text("late")));
    for event in [
        answer(3, "one two"),
        response(4, "end_turn"),
        delta(1, 1, text("later")),
    ] {
        model.apply(&event);
        assert_eq!(live(&model), Some((2, "next")));
    }
    for event in [request(5, 2), answer(6, "next")] {
        model.apply(&event);
    }
    assert_eq!(live(&model), None);
    model.apply(&delta(1, 2, text("late")));
    assert_eq!(live(&model), None);
    // A turn that ends without an answer ends what was under way, and what is late of it.
    model.apply(&request(7, 3));
    model.apply(&delta(1, 3, text("cut")));
    assert_eq!(live(&model), Some((3, "cut")));
    model.apply(&record(
        8,
        "turn_finished",
        json!({ "turn": 1, "outcome": { "outcome": "cancelled" } }),
    ));
    model.apply(&delta(1, 3, text("late")));
    assert_eq!(live(&model), None);
}

fn output(call: &str, text: &str, anew: bool) -> Event {
    delta(
        1,
        1,
        DeltaPart::Output {
            call: call.to_owned(),
            text: text.to_owned(),
            anew,
        },
    )
}

fn so_far<'a>(model: &'a PodModel, call: &str) -> Option<&'a str> {
    model.outputs().of(call).map(|output| output.text.as_str())
}

#[test]
fn the_output_of_a_call_is_there_until_its_result() {
    let mut model = folded(turn());
    let before = (digest(model.status()), model.live().cloned());
    for (call, text, anew) in [
        ("c1", "one\n", true),
        ("c2", "x", true),
        ("c1", "two\n", false),
    ] {
        model.apply(&output(call, text, anew));
    }
    assert_eq!(
        (so_far(&model, "c1"), so_far(&model, "c2")),
        (Some("one\ntwo\n"), Some("x"))
    );
    model.apply(&output("c1", "three", true));
    let c1 = model.outputs().of("c1").unwrap();
    assert_eq!(
        (c1.text.as_str(), c1.rows),
        ("three", 2),
        "a view does not become lower"
    );
    assert_eq!(
        (digest(model.status()), model.live().cloned()),
        before,
        "it is no part of what clients share"
    );
    let done = json!({ "call": "c1", "outcome": { "status": "ok", "summary": "s" }, "ms": 1 });
    model.apply(&record(3, "tool_finished", done));
    assert_eq!(
        (so_far(&model, "c1"), so_far(&model, "c2")),
        (None, Some("x"))
    );
    let mut again = model.clone();
    model.apply(&record(
        4,
        "turn_finished",
        json!({ "turn": 1, "outcome": { "outcome": "cancelled" } }),
    ));
    assert_eq!(model.outputs().count(), 0);
    // A new connection tells what is kept from its beginning.
    again.resume(&attached(3, None));
    assert_eq!(again.outputs().count(), 0);
}

#[test]
fn outputs_are_bounded_each_and_together() {
    let mut model = folded(turn());
    for n in 0..1000 {
        model.apply(&output(
            "flood",
            &format!("{n} {}", "\u{e9}".repeat(300)),
            false,
        ));
        assert!(so_far(&model, "flood").unwrap().len() <= 2 * MAX_OUTPUT);
    }
    assert!(so_far(&model, "flood").unwrap().ends_with('\u{e9}'));
    (0..200).for_each(|n| model.apply(&output(&format!("c{n}"), "x", true)));
    model.apply(&output(&"c".repeat(1000), "x", true));
    assert_eq!(
        (
            model.outputs().count(),
            so_far(&model, "flood"),
            so_far(&model, "c199")
        ),
        (MAX_OUTPUTS, None, Some("x"))
    );
}

#[test]
fn a_retry_voids_an_answer_and_lost_deltas_show() {
    let mut model = folded(turn());
    model.apply(&delta(1, 1, text("half")));
    model.apply(&Event::Lagged(Lagged { deltas: 3 }));
    assert!(model.live().unwrap().incomplete);
    let retrying = DeltaPart::Retrying {
        attempt: 1,
        delay_ms: 50,
        why: "cut".to_owned(),
    };
    model.apply(&delta(1, 1, retrying));
    let retry = model.live().unwrap();
    assert_eq!(
        (
            retry.text.as_str(),
            retry.retry.as_ref().unwrap().attempt,
            retry.incomplete
        ),
        ("", 1, false)
    );
    let mut overtaken = model.clone();
    overtaken.apply(&delta(1, 2, text("next")));
    assert!(!overtaken.live().unwrap().incomplete);
    model.apply(&delta(1, 1, text("anew")));
    assert!(live(&model) == Some((1, "anew")) && model.live().unwrap().retry.is_none());
    // Deltas that were lost before the first one that arrived belong to the answer, too.
    for event in [
        answer(3, "anew"),
        request(4, 2),
        Event::Lagged(Lagged { deltas: 1 }),
        delta(1, 2, text("x")),
    ] {
        model.apply(&event);
    }
    assert!(model.live().unwrap().incomplete);
    model.resume(&attached(4, None));
    assert_eq!(live(&model), None);
    model.apply(&delta(1, 2, text("y")));
    assert!(model.live().unwrap().incomplete);
    for event in [answer(5, "xy"), request(6, 3), delta(1, 3, text("z"))] {
        model.apply(&event);
    }
    assert!(!model.live().unwrap().incomplete);
    // A long answer keeps its end.
    for _ in 0..40 {
        model.apply(&delta(1, 3, text(&"é".repeat(32 << 10))));
    }
    let long = model.live().unwrap();
    assert!(long.incomplete && long.text.len() <= 1 << 20 && long.text.len() >= 512 << 10);
}

#[test]
fn the_last_answer_goes_on_within_a_request_and_after_a_pause() {
    let mut model = folded(turn());
    for (event, wanted) in [
        (answer(3, "a"), "a"),
        (answer(4, "b"), "a\n\nb"),
        (response(5, "paused"), "a\n\nb"),
        (request(6, 2), "a\n\nb"),
        (answer(7, "c"), "a\n\nb\n\nc"),
        (response(8, "tool_use"), "a\n\nb\n\nc"),
        (request(9, 3), "a\n\nb\n\nc"),
        (answer(10, "d"), "d"),
    ] {
        model.apply(&event);
        assert_eq!(model.last_answer(), Some(wanted));
    }
    model.apply(&record(11, "turn_started", json!({ "turn": 2 })));
    assert_eq!(model.last_answer(), None);
}

#[test]
fn calls_are_open_from_their_item_to_their_result() {
    let call = |seq, id| {
        record(
            seq,
            "item",
            json!({ "item": { "type": "tool_call", "id": id, "name": "T" } }),
        )
    };
    let mut model = folded(turn().into_iter().chain([call(3, "c1"), call(4, "c2")]));
    let started = json!({ "call": "c2", "name": "T", "feature": "f", "arguments": "{}", "effect": "effectful" });
    model.apply(&record(5, "tool_started", started));
    let open: Vec<_> = model
        .unfinished_calls()
        .map(|call| (call.id.as_str(), call.started_us))
        .collect();
    assert_eq!(open, [("c1", None), ("c2", Some(105))]);
    let result = json!({ "call": "c1", "outcome": { "status": "ok", "summary": "s" }, "ms": 1 });
    model.apply(&record(6, "tool_finished", result));
    assert_eq!(model.unfinished_calls().count(), 1);
    let call = model.unfinished_calls().next().unwrap();
    assert_eq!((call.id.as_str(), call.name.as_str()), ("c2", "T"));
}

#[test]
fn the_first_page_tells_of_the_turn_and_counts_nothing_again() {
    let call = record(
        3,
        "item",
        json!({ "item": { "type": "tool_call", "id": "c1", "name": "T" } }),
    );
    let events = [turn(), vec![call, answer(4, "a"), response(5, "tool_use")]].concat();
    let records = events.iter().map(|event| match event {
        Event::Record(line) => line.clone(),
        _ => panic!(),
    });
    let sent = Status {
        turn: Some(1),
        step: Some(1),
        turns: 1,
        requests: 1,
        state: State::Working,
        ..status(5)
    };
    let page = RecordPage {
        records: records.collect(),
        first: 1,
    };
    let mut model = PodModel::new(&Attached {
        status: sent.clone(),
        ..attached(5, Some(page))
    });
    assert_eq!(
        (
            model.status(),
            model.last_answer(),
            model.unfinished_calls().count()
        ),
        (&sent, Some("a"), 1)
    );
    // A delta of an answer that the page has is late.
    model.apply(&delta(1, 1, text("a")));
    assert_eq!(
        (live(&model), model.seen(), model.before()),
        (None, 5, None)
    );
}

#[test]
fn the_newest_records_are_kept_and_the_others_can_be_paged() {
    let note =
        |seq, text: &str| record(seq, "feature_note", json!({ "feature": "f", "text": text }));
    let mut model = PodModel::new(&attached(4, Some(page(3..5))));
    assert_eq!((model.seen(), model.before()), (4, Some(3)));
    let all = MAX_ENTRIES as u64 + 3;
    (5..=all).for_each(|seq| model.apply(&note(seq, "n")));
    assert_eq!(
        (model.entries().count(), model.before(), model.seen()),
        (MAX_ENTRIES, Some(4), all)
    );
    // A repeat changes nothing.
    let before = model.clone();
    model.apply(&note(all, "other"));
    assert_eq!(model, before);
    model.apply(&note(all + 1, &"x".repeat(MAX_ENTRY_BYTES)));
    assert_eq!(
        (model.entries().count(), model.before()),
        (1, Some(all + 1))
    );
    // What a program cannot read is shown to one that can.
    model.apply(&record(all + 2, "turn_started", json!({ "turn": "first" })));
    model.apply(&record(all + 3, "approval", json!({ "id": 1 })));
    let kept: Vec<_> = model.entries().map(|entry| entry.seq).collect();
    assert_eq!(
        (kept, model.status().seq),
        (vec![all + 2, all + 3], all + 3)
    );
    assert_eq!(PodModel::new(&attached(2, Some(page(1..3)))).before(), None);
    assert_eq!(PodModel::new(&attached(7, None)).before(), Some(8));
}

#[test]
fn a_status_stands_for_the_records_up_to_its_number() {
    let queued = |seq, input: u64| {
        record(
            seq,
            "input_queued",
            json!({ "input": input, "text": "é".repeat(300) }),
        )
    };
    let numbers = |model: &PodModel| {
        model
            .status()
            .queued
            .iter()
            .map(|waiting| waiting.input)
            .collect::<Vec<_>>()
    };
    let mut model = PodModel::new(&attached(2, None));
    // It knows records 1 and 2, so they are in the transcript only.
    (1..=3).for_each(|seq| model.apply(&queued(seq, seq)));
    assert_eq!((numbers(&model), model.entries().count()), (vec![3], 3));
    assert_eq!(model.status().queued[0].text.chars().count(), 200);
    let held = Some(HoldStatus {
        cause: "person".to_owned(),
        reason: "r".to_owned(),
        budget: None,
    });
    let sent = Status {
        turn: Some(1),
        step: Some(4),
        state: State::Working,
        ..status(5)
    };
    model.apply(&Event::Status(Box::new(sent.clone())));
    model.apply(&queued(5, 5));
    assert_eq!((model.status(), numbers(&model)), (&sent, vec![]));
    // A turn that waits has no step in its status; the newest one that is known stays.
    let waits = Status {
        step: None,
        state: State::Held,
        held: held.clone(),
        ..sent.clone()
    };
    model.apply(&Event::Status(Box::new(waits.clone())));
    assert_eq!(
        model.status(),
        &Status {
            step: Some(4),
            ..waits.clone()
        }
    );
    model.apply(&queued(6, 6));
    assert_eq!(model.status().state, State::Held);
    model.apply(&request(7, 9));
    assert_eq!(
        (model.status().state, model.status().step),
        (State::Working, Some(5))
    );
    // An older one tells only what no record does.
    let old = Status {
        disk: Some("full".to_owned()),
        stuck: 2,
        turns: 70,
        ..status(6)
    };
    model.apply(&Event::Status(Box::new(old)));
    let now = model.status();
    assert_eq!(
        (now.disk.as_deref(), now.stuck, now.turns, now.turn, now.seq),
        (Some("full"), 2, 0, Some(1), 7)
    );
}

#[test]
fn alerts_and_drafts_are_the_newest_and_bounded() {
    let alert = |text: String| {
        Event::Alert(AlertEvent {
            level: AlertLevel::Warning,
            from: None,
            text,
        })
    };
    let mut model = folded((0..=MAX_ALERTS).map(|n| alert(format!("{n}"))));
    assert_eq!(
        (
            model.alerts().count(),
            model.alerts().next().unwrap().text.as_str()
        ),
        (MAX_ALERTS, "1")
    );
    model.apply(&alert("é".repeat(9000)));
    assert_eq!(model.alerts().last().unwrap().text.chars().count(), 1000);
    let draft = |text: &str, revision| Draft {
        text: text.to_owned(),
        revision,
        by: None,
    };
    for (text, revision, now) in [("a", 3, "a"), ("old", 2, "a"), ("b", 4, "b")] {
        model.apply(&Event::Draft(draft(text, revision)));
        assert_eq!(model.draft().text, now);
    }
    // The next process counts from 1.
    model.resume(&Attached {
        draft: draft("c", 1),
        ..attached(0, None)
    });
    assert_eq!(model.draft(), &draft("c", 1));
    let before = model.clone();
    model.apply(&Event::Other {
        event: "weather".to_owned(),
        params: json!({ "rain": true }),
    });
    model.apply(&delta(1, 1, DeltaPart::Unknown));
    model.apply(&Event::Record(RecordLine::new("{}".to_owned()).unwrap()));
    assert_eq!(
        (model.entries().count(), model.status()),
        (0, before.status())
    );
}

#[test]
fn a_digest_is_of_what_records_tell() {
    let one = status(5);
    let elsewhere = Status {
        pod: "q".to_owned(),
        seq: 6,
        stuck: 1,
        disk: Some("full".to_owned()),
        ..one.clone()
    };
    assert_eq!(digest(&one), digest(&elsewhere));
    for other in [
        Status {
            notices: 1,
            ..one.clone()
        },
        Status {
            requests: 1,
            ..one.clone()
        },
        Status {
            cost: Some(0),
            ..one.clone()
        },
        Status {
            state: State::Held,
            ..one.clone()
        },
        Status {
            model: "n".to_owned(),
            ..one.clone()
        },
    ] {
        assert_ne!(digest(&one), digest(&other));
    }
}
