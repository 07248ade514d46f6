//! The named bounds, each met from both sides by what it does; and one writer at a time.

use crate::fixtures::{echo, pod, said, sound};
use llm_worker::effect::Outcome;
use llm_worker::tool::LineRange;
use llm_worker::{ErrorKind, Item, ResultStatus, ToolEffect};
use pod::control::MAX_INLINE_INPUT;
use pod::record::Record;
use session_store::OpenError;
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

/// Shows the last lines of an output by its handle: what the model may page with.
fn pager() -> FnTool {
    FnTool::new("Page", ToolEffect::ReadOnly, |cx, arguments| async move {
        let asked: serde_json::Value = serde_json::from_str(&arguments).unwrap();
        let excerpt = cx.host.read_output(
            asked["handle"].as_str().unwrap(),
            LineRange::Tail { lines: 1 },
        )?;
        said(&format!(
            "{}-{} of {}: {}",
            excerpt.first, excerpt.last, excerpt.total, excerpt.text
        ))
    })
}

fn user(pod: &PodUnderTest) -> String {
    let request = pod.script.requests().remove(0);
    let text = |item: Item| match item {
        Item::User { text, .. } => Some(text),
        _ => None,
    };
    request.items.into_iter().find_map(text).unwrap()
}

#[test]
fn a_large_input_becomes_a_blob_that_can_be_paged() {
    // Counted as JSON: a quote is two bytes, a control character six.
    let quotes = "\"".repeat(MAX_INLINE_INPUT / 2);
    let bells = "\u{7}".repeat(MAX_INLINE_INPUT / 6);
    let cases = [
        ("at the bound", "a".repeat(MAX_INLINE_INPUT), false),
        ("over it", "a".repeat(MAX_INLINE_INPUT + 1), true),
        ("quotes at the bound", quotes.clone(), false),
        ("quotes over it", format!("{quotes}a"), true),
        ("bells at the bound", bells.clone(), false),
        ("bells over it", format!("{bells}{}", "a".repeat(5)), true),
        (
            "é cut in the middle",
            format!("a{}", "é".repeat(MAX_INLINE_INPUT / 2)),
            true,
        ),
        (
            "many lines",
            (0..40_000).map(|n| format!("line {n}\n")).collect(),
            true,
        ),
    ];
    for (what, text, is_blob) in cases {
        let mut pod = pod(vec![ScriptedAnswer::text("read")], vec![pager()]);
        pod.run(&text).end();
        let outputs = pod.state().outputs;
        assert_eq!(outputs.len(), usize::from(is_blob), "{what}");
        let seen = user(&pod);
        let Some(output) = outputs.front() else {
            assert_eq!(seen, text, "{what}");
            continue;
        };
        assert!(
            seen.len() < 40_000 && seen.contains(&output.handle),
            "{what}: {} bytes",
            seen.len()
        );
        let head = seen.split("\n[…").next().unwrap();
        let tail = seen.rsplit("]\n").next().unwrap();
        assert!(
            text.starts_with(head)
                && text.ends_with(tail)
                && head.len() > 16_000
                && tail.len() > 16_000,
            "{what}"
        );
        let opened = pod.store().unwrap();
        assert_eq!(
            opened
                .blobs
                .view()
                .read(&output.stored.digest, 1 << 30)
                .unwrap(),
            text.as_bytes(),
            "{what}"
        );
        drop(opened);
        let page = serde_json::json!({ "handle": output.handle }).to_string();
        pod.script = ModelScript::new([
            ScriptedAnswer::calls(&[("Page", &page)]),
            ScriptedAnswer::text("paged"),
        ]);
        pod.run("page it").end();
        let paged = pod
            .records()
            .into_iter()
            .find_map(|(_, record)| match record {
                Record::ToolFinished(finished) => Some(finished.outcome),
                _ => None,
            });
        let paged = paged.unwrap();
        assert_eq!(paged.status, ResultStatus::Ok, "{what}: {}", paged.summary);
        if what == "many lines" {
            assert_eq!(paged.summary, "40000-40000 of 40000: line 39999");
        }
        sound(&pod, what);
    }
}

/// A model that does not stop, at each thing it could do without end.
// covers: INV-12
#[test]
fn whatever_a_model_does_without_end_is_ended_at_a_named_bound() {
    let many = |n: usize| ScriptedAnswer::calls(&vec![("Echo", "{}"); n]);
    let calls = llm_worker::turn::TurnLimits::CALLS;
    let arguments =
        |bytes: usize| ScriptedAnswer::calls(&[("Echo", &"x".repeat(bytes - "Echo".len()))]);
    let words = |bytes: usize| ScriptedAnswer::text(&"x".repeat(bytes));
    let exhausted = |outcome: &Outcome| {
        matches!(
            outcome,
            Outcome::ModelFailed {
                kind: ErrorKind::Exhausted,
                ..
            }
        )
    };
    let done = |outcome: &Outcome| *outcome == Outcome::Done;
    type Holds = fn(&Outcome) -> bool;
    let cases: Vec<(&str, Vec<ScriptedAnswer>, Holds)> = vec![
        (
            "as many steps as there may be",
            vec![many(1), many(1), ScriptedAnswer::text("done")],
            done,
        ),
        (
            "one more step",
            vec![many(1), many(1), many(1)],
            |outcome| *outcome == Outcome::StepLimit,
        ),
        (
            "as many calls as there may be",
            vec![many(calls), ScriptedAnswer::text("done")],
            done,
        ),
        (
            "one more call, three times",
            vec![many(calls + 1), many(calls + 1), many(calls + 1)],
            exhausted,
        ),
        (
            "one more call, and fewer",
            vec![many(calls + 1), many(1), ScriptedAnswer::text("done")],
            done,
        ),
        (
            "arguments at the bound",
            vec![arguments(160 * 1024), ScriptedAnswer::text("done")],
            done,
        ),
        (
            "arguments over it",
            vec![arguments(160 * 1024 + 1), ScriptedAnswer::text("done")],
            done,
        ),
        ("an answer at the bound", vec![words(768 * 1024)], done),
        (
            "an answer over it",
            vec![words(768 * 1024 + 1), ScriptedAnswer::text("done")],
            done,
        ),
    ];
    for (what, answers, holds) in cases {
        let mut pod = pod(answers, vec![echo("Echo", ToolEffect::ReadOnly)]);
        pod.limits.max_steps = 3;
        let ran = pod.run("first");
        assert!(holds(&ran.end().outcome), "{what}: {:?}", ran.end().outcome);
        sound(&pod, what);
    }
}

// covers: INV-09
#[test]
fn one_process_writes_and_every_record_says_which() {
    let pod = pod(
        vec![ScriptedAnswer::text("one"), ScriptedAnswer::text("two")],
        Vec::new(),
    );
    pod.run("first").end();
    let held = pod.store().unwrap();
    match pod.store() {
        Err(OpenError::Busy { owner, .. }) => assert_eq!(owner.unwrap().pid, std::process::id()),
        other => panic!("{other:?}"),
    }
    // Reading takes no lock, and the writer is not disturbed by it.
    assert!(!pod.records().is_empty());
    assert_eq!(held.journal.epoch(), 2);
    drop(held);
    pod.run("second").end();
    let epochs: Vec<u32> = session_store::Reader::open(&pod.dir)
        .unwrap()
        .frames()
        .map(|frame| frame.unwrap().epoch)
        .collect();
    assert!(
        epochs.is_sorted() && epochs.first() == Some(&1) && epochs.last() == Some(&3),
        "{epochs:?}"
    );
    let keys = |record: &Record| match record {
        Record::HostStarted(_) => Some(()),
        _ => None,
    };
    assert_eq!(
        pod.records()
            .iter()
            .filter_map(|(_, record)| keys(record))
            .count(),
        2
    );
}
