//! Scripts read, played and refused.

use super::*;
use llm_worker::{CallId, ResultStatus, ToolOutcome};
use tokio::sync::mpsc;

fn script(text: &str) -> Scripted {
    Scripted::parse("scripted:t", text).unwrap()
}

async fn play(script: &Scripted, items: &[Item]) -> (Result<(), ErrorKind>, Vec<ModelEvent>) {
    let (sender, mut receiver) = mpsc::channel(64);
    let result = script
        .play(items, &sender)
        .await
        .map_err(|error| error.kind);
    drop(sender);
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    (result, events)
}

fn user() -> Item {
    Item::user("go".to_owned())
}

fn text(text: &str) -> Item {
    Item::Assistant {
        text: text.to_owned(),
    }
}

fn call(number: u64) -> Item {
    Item::ToolCall {
        id: CallId::new(number).unwrap(),
        name: "Read".to_owned(),
        arguments: "{}".to_owned(),
    }
}

fn result(number: u64) -> Item {
    let outcome = ToolOutcome {
        status: ResultStatus::Ok,
        summary: "ok".to_owned(),
        content: String::new(),
        attachments: Vec::new(),
    };
    Item::ToolResult {
        id: CallId::new(number).unwrap(),
        outcome,
    }
}

/// What a command of a person says to a model.
const SENTENCE: &str =
    "I entered this command myself, so the call that follows is mine and not yours:\nls";

#[tokio::test]
async fn an_answer_with_everything() {
    let line = r#"{"reasoning":"hm","text":"On it.","calls":[{"name":"Read","arguments":{"path": "a", "n":[1, 2]}},{"name":"Bash","arguments":"{broken \"x"},{"name":"List","arguments":""}],"usage":{"input":3,"output":2}}"#;
    let (result, events) = play(&script(line), &[user()]).await;
    assert_eq!(result, Ok(()));
    let started = |index, name: &str| ModelEvent::CallStarted {
        index,
        name: name.to_owned(),
    };
    let arguments = |index, fragment: &str| ModelEvent::CallArguments {
        index,
        fragment: fragment.to_owned(),
    };
    let want = [
        ModelEvent::Reasoning("hm".to_owned()),
        ModelEvent::Text("On it.".to_owned()),
        started(0, "Read"),
        arguments(0, r#"{"path": "a", "n":[1, 2]}"#),
        started(1, "Bash"),
        arguments(1, "{broken \"x"),
        started(2, "List"),
        ModelEvent::Usage(Usage {
            input: 3,
            output: 2,
            cached: 0,
            cache_write: 0,
            reasoning: 0,
        }),
        ModelEvent::Stop(StopReason::ToolUse),
    ];
    assert_eq!(events, want);
}

#[tokio::test]
async fn stops_cuts_errors_and_retries() {
    let stop = |reason| vec![ModelEvent::Text("x".to_owned()), ModelEvent::Stop(reason)];
    let table = [
        (r#"{"text":"x"}"#, Ok(()), stop(StopReason::EndTurn)),
        (
            r#"{"text":"x","stop":"max_tokens"}"#,
            Ok(()),
            stop(StopReason::MaxTokens),
        ),
        (
            r#"{"text":"x","stop":"refusal"}"#,
            Ok(()),
            stop(StopReason::Refusal),
        ),
        (
            r#"{"text":"x","stop":"odd"}"#,
            Ok(()),
            stop(StopReason::Other("odd".to_owned())),
        ),
        (r#"{}"#, Ok(()), vec![ModelEvent::Stop(StopReason::EndTurn)]),
        (
            r#"{"text":"x","cut":true}"#,
            Err(ErrorKind::Unavailable),
            vec![ModelEvent::Text("x".to_owned())],
        ),
        (
            r#"{"error":{"message":"no"}}"#,
            Err(ErrorKind::Unavailable),
            vec![],
        ),
        (
            r#"{"error":{"message":"no","kind":"denied"}}"#,
            Err(ErrorKind::Denied),
            vec![],
        ),
    ];
    for (line, ended, want) in table {
        assert_eq!(play(&script(line), &[]).await, (ended, want), "{line}");
    }
    let (result, events) = play(&script(r#"{"text":"x","retries":2}"#), &[]).await;
    let retried = events
        .iter()
        .filter(|event| matches!(event, ModelEvent::Retrying { .. }))
        .count();
    assert_eq!((result, retried, events.len()), (Ok(()), 2, 6));
}

#[tokio::test]
async fn the_place_is_the_number_of_answers_in_history() {
    let reasoning = || Item::Reasoning {
        text: "hm".to_owned(),
        seal: None,
    };
    let table: Vec<(Vec<Item>, usize)> = vec![
        (vec![], 0),
        (vec![user(), user()], 0),
        (vec![user(), call(1), result(1)], 1),
        (
            vec![
                user(),
                reasoning(),
                text("a"),
                call(1),
                call(2),
                result(1),
                result(2),
            ],
            1,
        ),
        (vec![user(), call(1), result(1), text("b"), user()], 2),
        (
            vec![
                user(),
                call(1),
                result(1),
                call(2),
                result(2),
                text("c"),
                user(),
                text("d"),
            ],
            4,
        ),
        (vec![user(), text("a"), text("b"), reasoning(), call(1)], 3),
        (
            vec![
                user(),
                text("a"),
                Item::System {
                    source: "host".to_owned(),
                    text: "n".to_owned(),
                },
                text("b"),
            ],
            2,
        ),
    ];
    let command = || Item::Command {
        text: SENTENCE.to_owned(),
    };
    let typed = || Item::user(SENTENCE.to_owned());
    let of_person = vec![
        // Whoever types the sentence has no command: the call is the model's.
        (vec![typed(), call(1), result(1)], 1),
        (vec![command(), call(1), result(1)], 0),
        (
            vec![
                user(),
                text("a"),
                command(),
                call(1),
                result(1),
                command(),
                call(2),
                result(2),
                user(),
            ],
            1,
        ),
        (
            vec![
                command(),
                call(1),
                result(1),
                user(),
                call(2),
                result(2),
                text("b"),
            ],
            2,
        ),
    ];
    let table: Vec<_> = table.into_iter().chain(of_person).collect();
    let five = script(
        "{\"text\":\"0\"}\n\n# a remark\n{\"text\":\"1\"}\n{\"text\":\"2\"}\n{\"text\":\"3\"}\n{\"text\":\"4\"}\n",
    );
    for (items, want) in table {
        let (_, events) = play(&five, &items).await;
        assert_eq!(
            events.first(),
            Some(&ModelEvent::Text(want.to_string())),
            "{items:?}"
        );
    }
    let error = script("{}")
        .play(&[user(), text("a"), user()], &mpsc::channel(1).0)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::FixInput);
    assert!(
        error
            .message
            .contains("no answer left (answers in the script: 1")
            && error.help.is_some(),
        "{error:?}"
    );
}

#[test]
fn a_bad_line_is_named() {
    let table = [
        ("{\"text\":\"a\"}\n\n{\"txt\":\"b\"}\n", 3, "txt"),
        ("{\"text\":\"a\"\n", 1, "EOF"),
        ("[]\n", 1, ""),
        (
            "# x\n{\"calls\":[{\"name\":\"A\",\"arguments\":{}},{\"name\":\"B\",\"arguments\":7}]}\n",
            2,
            "calls[1].arguments",
        ),
        ("{\"calls\":[{\"name\":\"A\"}]}\n", 1, "arguments"),
        (
            "{\"error\":{\"message\":\"m\",\"kind\":\"odd\"}}\n",
            1,
            "odd",
        ),
    ];
    for (text, line, problem) in table {
        let error = Scripted::parse("f.jsonl", text).unwrap_err();
        assert_eq!(
            (error.line, error.kind()),
            (line, ErrorKind::FixInput),
            "{text}"
        );
        assert!(
            error.problem.contains(problem) && error.to_string().starts_with("f.jsonl, line"),
            "{error}"
        );
    }
}
