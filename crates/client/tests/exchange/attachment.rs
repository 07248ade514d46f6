//! An attachment: its cursor, what it refuses, and how long it tries.

use crate::scripted_pod::{ScriptedPod, attached, hello, page, scene, seq, status, welcome};
use client::ClientError;
use client::attachment::Attachment;
use client::cmd_id::cmd_id;
use client::connection::{MAX_QUEUED, Next, SOCKET};
use protocol::error::{Error, ErrorKind};
use protocol::event::Event;
use protocol::message::answer_line;
use protocol::method::{AcceptedInput, Attach, GetStatus, SendInput};
use std::time::{Duration, Instant};
use tokio::join;

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(50);

async fn begin(pod: &ScriptedPod) -> Attachment {
    Attachment::begin(&pod.dir, hello(), Attach::default())
        .await
        .unwrap()
        .0
}

/// A pod with records up to the first number; the client attaches with a page and gets the rest over new connections.
#[test]
fn the_cursor_is_the_newest_record_that_was_handed_out() {
    scene(async {
        let pod = ScriptedPod::new();
        let played = async {
            let mut talk = pod.welcome().await;
            let asked = talk.hear().await.unwrap();
            assert_eq!(asked.params, serde_json::json!({}));
            // Records 6 and 7 are states of features.
            talk.answer(asked.id, &attached(7, Some(page(4..6)))).await;
            talk.record(8).await;
            // This one is received and not handed out.
            talk.record(9).await;
            let asked = talk.hear().await.unwrap();
            talk.answer(asked.id, &status(9)).await;
            drop(talk);
            let (mut talk, after) = pod.attached(9).await;
            assert_eq!(after, Some(8));
            talk.record(9).await;
            talk
        };
        let used = async {
            let mut attachment = begin(&pod).await;
            assert_eq!(attachment.cursor(), 5);
            assert_eq!(seq(&attachment.next().await.unwrap()), 8);
            attachment.ask(&GetStatus {}).await.unwrap();
            assert_eq!(attachment.resume(LONG).await.unwrap().status.seq, 9);
            assert_eq!(
                (seq(&attachment.next().await.unwrap()), attachment.cursor()),
                (9, 9)
            );
        };
        join!(played, used)
    });
}

#[test]
fn events_are_handed_out_while_an_answer_is_awaited() {
    scene(async {
        let pod = ScriptedPod::new();
        let played = async {
            let (mut talk, _) = pod.attached(3).await;
            let asked = talk.hear().await.unwrap();
            talk.record(4).await;
            talk.record(5).await;
            talk.answer(asked.id, &status(5)).await;
            talk.record(6).await;
            // The number of a record that was handed out.
            let asked = talk.hear().await.unwrap();
            talk.record(6).await;
            talk.answer(asked.id, &status(6)).await;
            talk
        };
        let used = async {
            let mut attachment = begin(&pod).await;
            let begun = attachment.begin_request(&GetStatus {}).unwrap();
            for wanted in [4, 5] {
                let next = attachment.next_or(&begun).await.unwrap();
                assert!(
                    matches!(&next, Next::Event(event) if seq(event) == wanted),
                    "{next:?}"
                );
                assert_eq!(attachment.cursor(), wanted);
            }
            let answer = attachment.next_or(&begun).await.unwrap();
            assert!(
                matches!(&answer, Next::Answer(status) if status.seq == 5),
                "{answer:?}"
            );
            assert_eq!(seq(&attachment.next().await.unwrap()), 6);
            let begun = attachment.begin_request(&GetStatus {}).unwrap();
            let wrong = attachment.next_or(&begun).await;
            assert!(
                matches!(wrong, Err(ClientError::OutOfOrder { cursor: 6, seq: 6 })),
                "{wrong:?}"
            );
        };
        join!(played, used)
    });
}

#[test]
fn a_page_without_records_has_a_cursor_too() {
    for (first, seq, cursor) in [(1, 0, 0), (6, 7, 5)] {
        scene(async {
            let pod = ScriptedPod::new();
            let played = async {
                let mut talk = pod.welcome().await;
                let asked = talk.hear().await.unwrap();
                let page = protocol::method::RecordPage {
                    records: Vec::new(),
                    first,
                };
                talk.answer(asked.id, &attached(seq, Some(page))).await;
                talk
            };
            let (_open, attachment) = join!(played, begin(&pod));
            assert_eq!(attachment.cursor(), cursor);
        });
    }
}

#[test]
fn a_record_that_does_not_follow_ends_the_connection() {
    for wrong in [5, 3] {
        scene(async {
            let pod = ScriptedPod::new();
            let played = async {
                let (mut talk, _) = pod.attached(4).await;
                for seq in [5, wrong, 6] {
                    talk.record(seq).await;
                }
                let (mut again, after) = pod.attached(6).await;
                assert_eq!(after, Some(5));
                again.record(6).await;
                (talk, again)
            };
            let used = async {
                let (mut attachment, _) = Attachment::begin(
                    &pod.dir,
                    hello(),
                    Attach {
                        after: Some(4),
                        ..Attach::default()
                    },
                )
                .await
                .unwrap();
                assert_eq!(seq(&attachment.next().await.unwrap()), 5);
                let refused = attachment.next().await;
                assert!(
                    matches!(refused, Err(ClientError::OutOfOrder { cursor: 5, seq }) if seq == wrong),
                    "{refused:?}"
                );
                assert!(matches!(attachment.next().await, Err(ClientError::Closed)));
                attachment.resume(LONG).await.unwrap();
                assert_eq!(seq(&attachment.next().await.unwrap()), 6);
            };
            join!(played, used)
        });
    }
}

#[test]
fn a_repeated_request_has_its_cmd_id() {
    scene(async {
        let pod = ScriptedPod::new();
        let played = async {
            let (mut talk, _) = pod.attached(0).await;
            let first = talk.hear().await.unwrap();
            drop(talk);
            let (mut talk, _) = pod.attached(1).await;
            let again = talk.hear().await.unwrap();
            assert_eq!((first.method, first.params), (again.method, again.params));
            talk.answer(again.id, &AcceptedInput { input: 1 }).await;
            talk
        };
        let used = async {
            let mut attachment = begin(&pod).await;
            let input = SendInput {
                text: "go".to_owned(),
                cmd_id: cmd_id(),
                ..SendInput::default()
            };
            let lost = attachment.ask(&input).await.unwrap_err();
            assert!(
                matches!(lost, ClientError::Closed) && lost.may_pass(),
                "{lost:?}"
            );
            attachment.resume(LONG).await.unwrap();
            assert_eq!(attachment.ask(&input).await.unwrap().input, 1);
        };
        join!(played, used)
    });
}

#[test]
fn another_session_and_lost_records_are_no_place_to_go_on() {
    for other in [true, false] {
        scene(async {
            let pod = ScriptedPod::new();
            let played = async {
                let (mut talk, _) = pod.attached(4).await;
                talk.record(9).await;
                drop(talk);
                let mut talk = pod.accept().await;
                let asked = talk.hear().await.unwrap();
                talk.answer(asked.id, &welcome(if other { "s-2" } else { "s-1" }))
                    .await;
                if let Some(asked) = talk.hear().await {
                    talk.answer(asked.id, &attached(8, None)).await;
                }
                talk
            };
            let used = async {
                let mut attachment = begin(&pod).await;
                attachment.next().await.unwrap();
                match attachment.resume(LONG).await {
                    Err(ClientError::AnotherSession) => assert!(other),
                    Err(ClientError::Behind { cursor: 9, seq: 8 }) => assert!(!other),
                    resumed => panic!("{resumed:?}"),
                }
            };
            join!(played, used)
        });
    }
}

#[test]
fn resuming_tries_again_with_pauses_and_ends_in_time() {
    scene(async {
        let pod = ScriptedPod::new();
        let played = async {
            drop(pod.attached(4).await);
            // Busy and closing pass; each attempt is a connection.
            for kind in [ErrorKind::Busy, ErrorKind::Closing] {
                let mut talk = pod.accept().await;
                let asked = talk.hear().await.unwrap();
                let error = Error::new(kind, "later");
                talk.send(
                    answer_line::<()>(Some(asked.id), Err(&error))
                        .unwrap()
                        .as_bytes(),
                )
                .await;
            }
            drop(pod.attached(4).await);
            // From here on it accepts and says nothing.
            let mut silent = Vec::new();
            loop {
                silent.push(pod.accept().await);
            }
        };
        let used = async {
            let mut attachment = begin(&pod).await;
            let began = Instant::now();
            assert!(attachment.resume(LONG).await.is_ok());
            assert!(
                began.elapsed() >= Duration::from_millis(150),
                "two pauses, the second one longer"
            );
            let began = Instant::now();
            let given_up = attachment.resume(SHORT).await;
            assert!(
                matches!(given_up, Err(ClientError::Silent(_))),
                "{given_up:?}"
            );
            assert!(began.elapsed() < Duration::from_secs(4));
        };
        tokio::select! {
            () = played => {}
            () = used => {}
        }
    });
}

#[test]
fn a_pod_that_is_gone_is_given_up_and_one_that_refuses_at_once() {
    scene(async {
        let pod = ScriptedPod::new();
        let played = async {
            drop(pod.attached(4).await);
            let mut talk = pod.welcome().await;
            let asked = talk.hear().await.unwrap();
            let error = Error::new(ErrorKind::NotAllowed, "no");
            talk.send(
                answer_line::<()>(Some(asked.id), Err(&error))
                    .unwrap()
                    .as_bytes(),
            )
            .await;
        };
        let used = async {
            let mut attachment = begin(&pod).await;
            let refused = attachment.resume(LONG).await;
            assert!(
                matches!(refused, Err(ClientError::Refused(_))),
                "{refused:?}"
            );
            attachment
        };
        let ((), mut attachment) = join!(played, used);
        std::fs::remove_file(pod.dir.join(SOCKET)).unwrap();
        let began = Instant::now();
        assert!(matches!(
            attachment.resume(SHORT).await,
            Err(ClientError::Unreachable(_))
        ));
        assert!(
            began.elapsed() < SHORT * 10 && began.elapsed() > SHORT / 4,
            "{:?}",
            began.elapsed()
        );
        // With its directory gone it does not come back.
        drop(pod);
        assert!(matches!(
            attachment.resume(LONG).await,
            Err(ClientError::Removed)
        ));
    });
}

#[test]
fn an_overrun_loses_no_record() {
    scene(async {
        let pod = ScriptedPod::new();
        let all = MAX_QUEUED as u64 + 20;
        let played = async {
            let (mut talk, _) = pod.attached(0).await;
            let asked = talk.hear().await.unwrap();
            for seq in 1..=all {
                talk.record(seq).await;
            }
            talk.answer(asked.id, &status(all)).await;
            let (mut again, after) = pod.attached(all).await;
            for seq in after.unwrap() + 1..=all {
                again.record(seq).await;
            }
            (talk, again)
        };
        let used = async {
            let attach = Attach {
                after: Some(0),
                ..Attach::default()
            };
            let (mut attachment, _) = Attachment::begin(&pod.dir, hello(), attach).await.unwrap();
            attachment.ask(&GetStatus {}).await.unwrap();
            let mut wanted = 1;
            let mut resumed = 0;
            while wanted <= all {
                match attachment.next().await {
                    Ok(Event::Record(line)) => {
                        assert_eq!(line.seq().unwrap(), wanted);
                        wanted += 1;
                    }
                    Err(ClientError::Overrun) => {
                        attachment.resume(LONG).await.unwrap();
                        resumed += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(resumed, 1);
        };
        join!(played, used)
    });
}
