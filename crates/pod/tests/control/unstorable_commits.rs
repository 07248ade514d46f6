//! A record that can never be stored ends the turn or costs its caller an error; the pod goes on.

use crate::fixtures::{pod, said, sound};
use llm_worker::effect::Outcome;
use llm_worker::tool::FileChange;
use llm_worker::{ErrorKind, ToolEffect, Usage};
use pod::control::{Fatal, Outbox, SubmitError};
use pod::record::Record;
use testkit::{FnTool, PodUnderTest, ScriptedAnswer};

/// As JSON it is over one mebibyte, the bound of a record.
fn too_long() -> String {
    "\u{1}".repeat(200_000)
}

/// The end of each turn in the log.
fn ends(pod: &PodUnderTest) -> Vec<Outcome> {
    let end = |(_, record): (u64, Record)| match record {
        Record::TurnFinished(end) => Some(end.outcome),
        _ => None,
    };
    pod.records().into_iter().filter_map(end).collect()
}

fn aborted(outcome: &Outcome) -> &str {
    let Outcome::Aborted { reason } = outcome else {
        panic!("{outcome:?}")
    };
    reason
}

/// Text that a model writes costs six bytes a character in the log when it has to be escaped.
#[test]
fn an_answer_ends_its_turn_and_is_paid_for() {
    let answers = vec![
        ScriptedAnswer::text(&too_long()),
        ScriptedAnswer::text("fine"),
    ];
    let pod = pod(answers, Vec::new());
    let (outbox, _events) = Outbox::watched();
    let ((one, two), end) = pod.serve(outbox, async |client| {
        let ends = (
            client.submit("one").await.unwrap(),
            client.submit("two").await.unwrap(),
        );
        client.close("done").await;
        ends
    });
    assert!(end.result.is_ok(), "{:?}", end.result);
    let reason = aborted(&one.outcome);
    assert!(
        reason.contains("the journal cannot store the model's answer: a record has "),
        "{reason}"
    );
    assert_eq!(
        (one.usage, one.answer),
        (
            Usage {
                input: 10,
                output: 1,
                cached: 0,
                cache_write: 0,
                reasoning: 0,
            },
            None
        )
    );
    assert_eq!(
        (two.outcome, two.answer.as_deref()),
        (Outcome::Done, Some("fine"))
    );
    assert_eq!(ends(&pod).len(), 2);
    sound(&pod, "an answer that is too long");
}

#[test]
fn a_note_of_the_host_ends_the_turn_and_its_input_stays_queued() {
    let pod = pod(
        ["one", "two"].map(ScriptedAnswer::text).to_vec(),
        Vec::new(),
    );
    let environment = std::sync::Arc::clone(&pod.environment);
    *environment.lock().unwrap() = too_long();
    let (outbox, _events) = Outbox::watched();
    let (one, end) = pod.serve(outbox, async |client| {
        let one = client.submit("one").await.unwrap();
        "here".clone_into(&mut environment.lock().unwrap());
        assert_eq!(client.submit("two").await.unwrap().outcome, Outcome::Done);
        client.close("done").await;
        one
    });
    assert!(end.result.is_ok(), "{:?}", end.result);
    aborted(&one.outcome);
    let consumed = |(_, record): &(u64, Record)| match record {
        Record::TurnStarted(started) => Some(format!("turn {}", started.turn)),
        Record::InputConsumed(consumed) => Some(format!("input {}", consumed.input)),
        _ => None,
    };
    let order: Vec<_> = pod.records().iter().filter_map(consumed).collect();
    assert_eq!(order, ["turn 1", "turn 2", "input 1", "turn 3", "input 2"]);
    sound(&pod, "a note that is too long");
}

#[test]
fn an_input_with_a_start_that_is_too_long_is_an_error_for_its_client() {
    let mut pod = pod(vec![ScriptedAnswer::text("never")], Vec::new());
    pod.project = too_long().into();
    let (outbox, _events) = Outbox::watched();
    let ((one, two), end) = pod.serve(outbox, async |client| {
        // The second one finds the records of the start waiting.
        let errors = (
            client.submit("one").await.unwrap_err(),
            client.submit("two").await.unwrap_err(),
        );
        client.close("done").await;
        errors
    });
    for error in [one, two] {
        assert!(
            matches!(&error, SubmitError::Unstorable(reason) if reason.contains("a record has ")),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::FixInput);
    }
    // The stop has to follow the start.
    assert!(
        matches!(end.result, Err(Fatal::Unstorable(_))),
        "{:?}",
        end.result
    );
    assert_eq!((ends(&pod).len(), pod.state().inputs), (0, 0));
}

#[test]
fn a_record_of_a_tool_is_an_error_for_it_alone() {
    let tool = FnTool::new("Change", ToolEffect::Effectful, |cx, _| async move {
        let change = FileChange {
            path: too_long().into(),
            before: None,
            mode: None,
            after: None,
            made: None,
        };
        let error = cx
            .host
            .file_changing(change)
            .await
            .expect_err("a path over the bound of a record");
        said(&error.to_string())
    });
    let pod = pod(
        vec![
            ScriptedAnswer::calls(&[("Change", "{}")]),
            ScriptedAnswer::text("fine"),
        ],
        vec![tool],
    );
    let ran = pod.run("go");
    assert_eq!(ran.end().outcome, Outcome::Done);
    assert!(pod.records().iter().any(|(_, record)| {
        matches!(record, Record::ToolFinished(end) if end.outcome.summary.contains("a record has "))
    }));
    sound(&pod, "a path that is too long");
}
