//! A commit that can never be stored takes the records of features beside it along: their callers are told, and the
//! turn's own part is tried alone.

use crate::rig::pod;
use llm_worker::effect::Outcome;
use pod::control::Outbox;
use pod::record::Record;
use std::sync::{Arc, Mutex};
use testkit::ScriptedAnswer;

#[test]
fn a_state_beside_an_answer_that_is_too_long_is_refused() {
    let (pod, counter) = pod(&[]);
    pod.script.clear();
    // As JSON it is over one mebibyte, the bound of a record.
    let answers = [
        ScriptedAnswer::text(&"\u{1}".repeat(200_000)),
        ScriptedAnswer::text("fine"),
    ];
    answers
        .into_iter()
        .for_each(|answer| pod.script.add(answer));
    let update = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&update);
    let live = counter.clone();
    // It waits for the next commit, which is the one of the answer.
    pod.points.at("stream", 0, move || {
        *kept.lock().unwrap() = Some(live.state().update(|count| count.n += 1));
    });
    let (outbox, _events) = Outbox::watched();
    let ((one, refused), end) = pod.serve(outbox, async |client| {
        let one = client.submit("one").await.unwrap();
        let update = update.lock().unwrap().take().unwrap();
        let refused = update.await.unwrap_err().to_string();
        counter.state().update(|count| count.n += 10).await.unwrap();
        assert_eq!(client.submit("two").await.unwrap().outcome, Outcome::Done);
        client.close("done").await;
        (one, refused)
    });
    assert!(end.result.is_ok(), "{:?}", end.result);
    assert!(
        matches!(one.outcome, Outcome::Aborted { .. }),
        "{:?}",
        one.outcome
    );
    assert!(refused.contains("a record has "), "{refused}");
    let states = |(_, record): &(u64, Record)| match record {
        Record::FeatureState(state) => state.value["n"].as_u64(),
        _ => None,
    };
    assert_eq!(
        pod.records().iter().filter_map(states).collect::<Vec<_>>(),
        [10]
    );
}
