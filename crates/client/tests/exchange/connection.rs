//! One connection: requests, answers, events between, and what is no message.

use crate::scripted_pod::{ScriptedPod, Talk, attached, hello, line, scene, seq, status, welcome};
use client::ClientError;
use client::connection::{Connection, MAX_QUEUED, MAX_UNANSWERED};
use protocol::MAX_MESSAGE;
use protocol::error::{Error, ErrorKind};
use protocol::event::{AlertEvent, AlertLevel, DeltaEvent, DeltaPart, Event};
use protocol::message::{answer_line, record_line};
use protocol::method::{Attach, GetStatus, Page, SendInput};
use serde_json::json;
use std::future::ready;
use std::time::Duration;
use tokio::time::timeout;
use tokio::{join, select};

const SHORT: Duration = Duration::from_millis(30);

/// Connects, while the pod plays its part.
async fn with<T>(
    pod: impl AsyncFnOnce(Talk) -> Talk,
    client: impl AsyncFnOnce(Connection) -> T,
) -> T {
    let scripted = ScriptedPod::new();
    let played = async { pod(scripted.welcome().await).await };
    let used = async {
        let (connection, welcome) = Connection::connect(&scripted.dir, &hello()).await.unwrap();
        assert_eq!(welcome.session, "s-1");
        client(connection).await
    };
    // The pod's end stays open until the client has finished.
    let (_open, got) = join!(played, used);
    got
}

#[test]
fn events_before_an_answer_are_kept_in_order() {
    scene(with(
        async |mut talk| {
            let asked = talk.hear().await.unwrap();
            for seq in 1..=3 {
                talk.record(seq).await;
            }
            talk.answer(asked.id, &status(3)).await;
            talk.record(4).await;
            talk
        },
        async |mut connection| {
            assert_eq!(connection.ask(&GetStatus {}).await.unwrap().seq, 3);
            for wanted in 1..=4 {
                assert_eq!(seq(&connection.next().await.unwrap()), wanted);
            }
        },
    ));
}

#[test]
fn answers_in_any_order_reach_their_request_or_nobody() {
    for late_first in [true, false] {
        scene(with(
            async |mut talk| {
                let one = talk.hear().await.unwrap();
                let two = talk.hear().await.unwrap();
                let mut answers = [(one.id, 1), (two.id, 2)];
                if !late_first {
                    answers.reverse();
                }
                for (id, seq) in answers {
                    talk.answer(id, &status(seq)).await;
                }
                talk.record(9).await;
                talk
            },
            async |mut connection| {
                let _elapsed = timeout(SHORT, connection.ask(&GetStatus {}))
                    .await
                    .unwrap_err();
                assert_eq!(connection.ask(&GetStatus {}).await.unwrap().seq, 2);
                assert_eq!(seq(&connection.next().await.unwrap()), 9);
            },
        ));
    }
}

#[test]
fn several_requests_wait_and_each_takes_its_own_answer() {
    // Requests are finished in the order 1, 2, 3; their answers come in each order, an event before each.
    for order in [
        [1, 2, 3],
        [1, 3, 2],
        [2, 1, 3],
        [2, 3, 1],
        [3, 1, 2],
        [3, 2, 1],
    ] {
        scene(with(
            async |mut talk| {
                let mut ids = Vec::new();
                for _ in 0..3 {
                    ids.push(talk.hear().await.unwrap().id);
                }
                for (at, answered) in (1..).zip(order) {
                    talk.record(at).await;
                    talk.answer(ids[answered - 1], &status(answered as u64))
                        .await;
                }
                talk
            },
            async |mut connection| {
                let begun = [(); 3].map(|()| connection.begin(&GetStatus {}).unwrap());
                // Dropped before it has come, an answer is not lost.
                select! {
                    biased;
                    early = connection.finish(&begun[0]) => panic!("{early:?}"),
                    () = ready(()) => {}
                }
                // Some come while an event is awaited.
                assert_eq!(seq(&connection.next().await.unwrap()), 1);
                assert_eq!(seq(&connection.next().await.unwrap()), 2);
                for (wanted, begun) in (1..).zip(&begun) {
                    assert_eq!(
                        connection.finish(begun).await.unwrap().seq,
                        wanted,
                        "{order:?}"
                    );
                }
                assert_eq!(seq(&connection.next().await.unwrap()), 3);
            },
        ));
    }
}

#[test]
fn answers_that_are_not_taken_are_bounded() {
    scene(with(
        async |mut talk| {
            for _ in 0..MAX_UNANSWERED {
                let asked = talk.hear().await.unwrap();
                talk.answer(asked.id, &status(1)).await;
            }
            talk.record(1).await;
            let asked = talk.hear().await.unwrap();
            talk.answer(asked.id, &status(2)).await;
            talk
        },
        async |mut connection| {
            let begun: Vec<_> = (0..MAX_UNANSWERED)
                .map(|_| connection.begin(&GetStatus {}).unwrap())
                .collect();
            assert_eq!(seq(&connection.next().await.unwrap()), 1);
            let refused = connection.begin(&GetStatus {});
            assert!(
                matches!(refused, Err(ClientError::Unanswered(MAX_UNANSWERED))),
                "{refused:?}"
            );
            assert_eq!(connection.finish(&begun[0]).await.unwrap().seq, 1);
            assert_eq!(connection.ask(&GetStatus {}).await.unwrap().seq, 2);
        },
    ));
    // Eleven answers of a megabyte each.
    let big = || json!({ "records": [line(1)], "first": 1, "more": "x".repeat(1 << 20) });
    scene(with(
        async |mut talk| {
            for _ in 0..11 {
                let asked = talk.hear().await.unwrap();
                talk.answer(asked.id, &big()).await;
            }
            talk.record(1).await;
            talk
        },
        async |mut connection| {
            let page = Page {
                before: 9,
                limit: 1,
            };
            let begun: Vec<_> = (0..11).map(|_| connection.begin(&page).unwrap()).collect();
            assert_eq!(seq(&connection.next().await.unwrap()), 1);
            assert!(matches!(connection.next().await, Err(ClientError::Overrun)));
            assert!(connection.finish(&begun[0]).await.is_ok());
            assert!(matches!(
                connection.finish(&begun[10]).await,
                Err(ClientError::Overrun)
            ));
        },
    ));
}

#[test]
fn a_pod_that_never_answers_gets_few_requests_and_costs_a_bounded_wait() {
    scene(with(
        async |talk| talk,
        async |mut connection| {
            let silent = connection.ask(&GetStatus {}).await;
            assert!(matches!(silent, Err(ClientError::Silent(_))), "{silent:?}");
            for _ in 1..MAX_UNANSWERED {
                let _elapsed = timeout(Duration::from_millis(1), connection.ask(&GetStatus {}))
                    .await
                    .unwrap_err();
            }
            let refused = connection.ask(&GetStatus {}).await;
            assert!(
                matches!(refused, Err(ClientError::Unanswered(MAX_UNANSWERED))),
                "{refused:?}"
            );
        },
    ));
}

#[test]
fn an_answer_that_is_an_error_leaves_the_connection() {
    scene(with(
        async |mut talk| {
            let asked = talk.hear().await.unwrap();
            let busy = Error::new(ErrorKind::Busy, "64 inputs wait");
            talk.send(
                answer_line::<()>(Some(asked.id), Err(&busy))
                    .unwrap()
                    .as_bytes(),
            )
            .await;
            let asked = talk.hear().await.unwrap();
            talk.answer(asked.id, &status(1)).await;
            let closing = Error::new(ErrorKind::Closing, "the pod is stopping");
            talk.send(answer_line::<()>(None, Err(&closing)).unwrap().as_bytes())
                .await;
            talk
        },
        async |mut connection| {
            let refused = connection.ask(&GetStatus {}).await;
            assert!(
                matches!(&refused, Err(ClientError::Refused(e)) if e.kind == ErrorKind::Busy),
                "{refused:?}"
            );
            assert_eq!(connection.ask(&GetStatus {}).await.unwrap().seq, 1);
            let over = connection.next().await;
            assert!(
                matches!(&over, Err(ClientError::Dismissed(e)) if e.kind == ErrorKind::Closing),
                "{over:?}"
            );
            assert!(matches!(connection.next().await, Err(ClientError::Closed)));
        },
    ));
}

#[test]
fn what_is_no_message_ends_the_connection() {
    let long = vec![b'x'; MAX_MESSAGE + 1];
    let status = |id: u64| answer_line(Some(id), Ok(&status(1))).unwrap();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (long, "more than"),
        (b"{\"x\":\"\xff\"}\n".to_vec(), "not UTF-8"),
        (b"{\"jsonrpc\"\n".to_vec(), "EOF"),
        (b"7\n".to_vec(), "invalid type"),
        (b"\n".to_vec(), "EOF"),
        (
            b"{\"method\":\"status\",\"params\":{}}\n".to_vec(),
            "missing field",
        ),
        (status(99).into_bytes(), "request 99"),
        (status(1).into_bytes(), "request 1,"),
        (
            b"{\"jsonrpc\":\"2.0\",\"result\":{}}\n".to_vec(),
            "no request",
        ),
    ];
    for (bytes, says) in cases {
        scene(with(
            async |mut talk| {
                talk.send(&bytes).await;
                talk
            },
            async |mut connection| {
                let Err(ClientError::Garbled(what)) = connection.next().await else {
                    panic!("{says}")
                };
                assert!(what.contains(says), "{what}");
                assert!(matches!(
                    connection.ask(&GetStatus {}).await,
                    Err(ClientError::Closed)
                ));
            },
        ));
    }
}

#[test]
fn an_end_within_a_message_is_told_from_one_between() {
    let whole = format!("{{\"method\":\"record\",\"params\":{}}}\n", line(1));
    for (sent, cut) in [(whole.len(), false), (whole.len() - 1, true), (1, true)] {
        scene(with(
            async |mut talk| {
                talk.room = sent;
                talk.send(whole.as_bytes()).await;
                talk.room = 0;
                talk.send(b"x").await;
                talk
            },
            async |mut connection| {
                if !cut {
                    assert_eq!(seq(&connection.next().await.unwrap()), 1);
                }
                match connection.next().await {
                    Err(ClientError::Cut) => assert!(cut),
                    Err(ClientError::Closed) => assert!(!cut),
                    other => panic!("{other:?}"),
                }
            },
        ));
    }
}

#[test]
fn what_a_later_pod_adds_is_passed_on_or_over() {
    scene(async {
        let scripted = ScriptedPod::new();
        let played = async {
            let mut talk = scripted.accept().await;
            let asked = talk.hear().await.unwrap();
            let mut later = serde_json::to_value(welcome("s-1")).unwrap();
            (later["colour"], later["methods"]) = (json!("red"), json!(["dance"]));
            talk.answer(asked.id, &later).await;
            talk.send(b"{\"jsonrpc\":\"2.0\",\"trace\":1,\"method\":\"weather\",\"params\":{\"rain\":true}}\n").await;
            let alert = AlertEvent {
                level: AlertLevel::Info,
                from: None,
                text: "t".to_owned(),
            };
            talk.event(&Event::Alert(alert)).await;
            talk
        };
        let used = async {
            let (mut connection, welcome) =
                Connection::connect(&scripted.dir, &hello()).await.unwrap();
            assert_eq!(welcome.methods, ["dance"]);
            let Event::Other { event, params } = connection.next().await.unwrap() else {
                panic!()
            };
            assert_eq!((event.as_str(), &params["rain"]), ("weather", &json!(true)));
            assert!(matches!(connection.next().await, Ok(Event::Alert(_))));
        };
        join!(played, used)
    });
}

#[test]
fn a_pod_of_another_version_is_named() {
    for answers in [true, false] {
        scene(async {
            let scripted = ScriptedPod::new();
            let played = async {
                let mut talk = scripted.accept().await;
                let asked = talk.hear().await.unwrap();
                assert_eq!(asked.params["versions"], json!([1]));
                if answers {
                    let welcome = protocol::method::Welcome {
                        version: 2,
                        ..welcome("s-1")
                    };
                    talk.answer(asked.id, &welcome).await;
                } else {
                    let error = Error::new(ErrorKind::Version, "this pod speaks version 2");
                    talk.send(
                        answer_line::<()>(Some(asked.id), Err(&error))
                            .unwrap()
                            .as_bytes(),
                    )
                    .await;
                }
                talk
            };
            let hello = hello();
            let (_open, connected) = join!(played, Connection::connect(&scripted.dir, &hello));
            let Err(ClientError::Version(what)) = connected else {
                panic!()
            };
            assert!(what.contains("version 2"), "{what}");
        });
    }
}

#[test]
fn no_pod_is_unreachable() {
    let dir = tempfile::tempdir().unwrap();
    let connect = |name: &str| scene(Connection::connect(&dir.path().join(name), &hello()));
    assert!(matches!(connect("."), Err(ClientError::Unreachable(_))));
    assert!(matches!(connect("missing"), Err(ClientError::Removed)));
}

#[test]
fn a_pod_that_speaks_before_it_reads_is_read() {
    // Each side has more to say than the socket takes.
    let text = "x".repeat(1 << 20);
    let part = DeltaPart::Text { text: text.clone() };
    let delta = Event::Delta(DeltaEvent {
        turn: 1,
        request: 1,
        part,
    });
    scene(with(
        async |mut talk| {
            for _ in 0..4 {
                talk.event(&delta).await;
            }
            let asked = talk.hear().await.unwrap();
            talk.answer(
                asked.id,
                &json!({ "input": asked.params["text"].as_str().unwrap().len() }),
            )
            .await;
            talk
        },
        async |mut connection| {
            let ask = SendInput {
                text: text.clone(),
                cmd_id: "c".to_owned(),
                ..SendInput::default()
            };
            assert_eq!(connection.ask(&ask).await.unwrap().input, 1 << 20);
            for _ in 0..4 {
                assert_eq!(connection.next().await.unwrap(), delta);
            }
            let ask = SendInput {
                text: text.repeat(2),
                ..ask
            };
            assert!(matches!(
                connection.ask(&ask).await,
                Err(ClientError::TooLong(_))
            ));
        },
    ));
}

#[test]
fn waiting_can_be_given_up_at_any_byte_and_taken_up_again() {
    let text = "é".repeat(300 << 10);
    scene(with(
        async |mut talk| {
            for byte in record_line(&line(1)).as_bytes() {
                talk.send(&[*byte]).await;
                tokio::task::yield_now().await;
            }
            // The client gives up while the socket has taken a part of its request.
            tokio::time::sleep(SHORT * 2).await;
            let first = talk.hear().await.unwrap();
            let second = talk.hear().await.unwrap();
            assert_eq!(first.params["text"].as_str(), Some(text.as_str()));
            talk.answer(second.id, &status(2)).await;
            talk
        },
        async |mut connection| {
            let mut given_up = 0;
            let event = loop {
                let next = connection.next();
                tokio::select! {
                    biased;
                    event = next => break event.unwrap(),
                    () = tokio::task::yield_now() => given_up += 1,
                }
            };
            assert!(seq(&event) == 1 && given_up > 50, "{given_up}");
            let ask = SendInput {
                text: text.clone(),
                cmd_id: "c".to_owned(),
                ..SendInput::default()
            };
            let _elapsed = timeout(SHORT, connection.ask(&ask)).await.unwrap_err();
            assert_eq!(connection.ask(&GetStatus {}).await.unwrap().seq, 2);
        },
    ));
}

#[test]
fn too_many_events_before_an_answer_end_the_connection_behind_those_that_were_kept() {
    scene(with(
        async |mut talk| {
            let asked = talk.hear().await.unwrap();
            for seq in 1..=MAX_QUEUED as u64 + 9 {
                talk.record(seq).await;
            }
            talk.answer(asked.id, &attached(9, None)).await;
            talk
        },
        async |mut connection| {
            assert_eq!(
                connection.ask(&Attach::default()).await.unwrap().status.seq,
                9
            );
            for wanted in 1..=MAX_QUEUED as u64 {
                assert_eq!(seq(&connection.next().await.unwrap()), wanted);
            }
            assert!(matches!(connection.next().await, Err(ClientError::Overrun)));
            assert!(matches!(
                connection.ask(&GetStatus {}).await,
                Err(ClientError::Overrun)
            ));
        },
    ));
}
