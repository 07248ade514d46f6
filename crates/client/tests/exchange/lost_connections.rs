//! The connection is cut at every byte of an exchange: a reader that goes on has every record once, in order, and the same
//! model as without a cut.

use crate::scripted_pod::{ScriptedPod, Talk, attached, hello, scene, status};
use client::ClientError;
use client::attachment::Attachment;
use client::model::PodModel;
use protocol::event::{DeltaEvent, DeltaPart, Event};
use protocol::message::record_line;
use protocol::method::{Attach, Attached, Draft, GetStatus};
use protocol::record::RecordLine;
use protocol::status::Status;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::join;

/// The journal: a turn with a call, without the states of features, which are records 3 and 9.
fn journal() -> Vec<(u64, String)> {
    let bodies = [
        (1, "input_queued", json!({ "input": 1, "text": "go é" })),
        (2, "turn_started", json!({ "turn": 1 })),
        (4, "input_consumed", json!({ "input": 1 })),
        (
            5,
            "request",
            json!({ "number": 1, "generation": 1, "items": 1, "bytes": 1 }),
        ),
        (
            6,
            "item",
            json!({ "item": { "type": "tool_call", "id": "c00000001", "name": "T", "arguments": "{}" } }),
        ),
        (
            7,
            "response",
            json!({ "stop": "tool_use", "usage": { "input": 5, "output": 2, "cached": 0 }, "cost": 7 }),
        ),
        (
            8,
            "notification_queued",
            json!({ "number": 1, "feature": "f", "text": "n" }),
        ),
        (
            10,
            "input_queued",
            json!({ "input": 2, "text": "on", "mode": "steer" }),
        ),
    ];
    let line = |(seq, kind, body): (u64, &str, Value)| {
        let mut line = json!({ "q": seq, "t": seq, "k": kind, "v": 1 });
        line.as_object_mut()
            .unwrap()
            .extend(body.as_object().unwrap().clone());
        (seq, line.to_string())
    };
    bodies.map(line).to_vec()
}

/// Serves one connection: the records after the cursor, with what the pod sends besides. `None` if the client has left
/// before.
async fn serve(talk: &mut Talk, journal: &[(u64, String)]) -> Option<()> {
    let asked = talk.hear().await?;
    talk.answer(asked.id, &crate::scripted_pod::welcome("s-1"))
        .await;
    let asked = talk.hear().await?;
    assert_eq!(asked.method, "attach");
    let after = asked.params["after"].as_u64().unwrap();
    // The pod may be ahead of the cursor.
    let upto = if after % 2 == 0 { u64::MAX } else { after };
    let now = Status {
        model: "m".to_owned(),
        ..folded(journal, upto).status().clone()
    };
    talk.answer(
        asked.id,
        &Attached {
            status: now,
            ..attached(0, None)
        },
    )
    .await;
    for (seq, line) in journal.iter().filter(|(seq, _)| *seq > after) {
        talk.send(record_line(line).as_bytes()).await;
        let part = DeltaPart::Text {
            text: "é".to_owned(),
        };
        talk.event(&Event::Delta(DeltaEvent {
            turn: 1,
            request: *seq,
            part,
        }))
        .await;
    }
    talk.event(&Event::Draft(Draft {
        text: "d".to_owned(),
        revision: 1,
        by: None,
    }))
    .await;
    let asked = talk.hear().await?;
    assert_eq!(asked.method, "status");
    talk.answer(asked.id, &status(10)).await;
    Some(())
}

/// What a client makes of it: the lines that it got, and its model.
async fn follow(pod: &ScriptedPod, last: u64) -> (Vec<String>, PodModel) {
    let attach = || Attach {
        after: Some(0),
        ..Attach::default()
    };
    let (mut attachment, first) = loop {
        match Attachment::begin(&pod.dir, hello(), attach()).await {
            Ok(begun) => break begun,
            Err(error) => assert!(error.may_pass(), "{error:?}"),
        }
    };
    let mut lines = Vec::new();
    let mut model = PodModel::new(&first);
    loop {
        let lost: ClientError = match attachment.next().await {
            Ok(event) => {
                model.apply(&event);
                if let Event::Record(line) = event {
                    lines.push(line.as_str().to_owned());
                }
                if attachment.cursor() < last || model.draft().revision == 0 {
                    continue;
                }
                match attachment.ask(&GetStatus {}).await {
                    Ok(_) => return (lines, model),
                    Err(lost) => lost,
                }
            }
            Err(lost) => lost,
        };
        assert!(
            matches!(lost, ClientError::Cut | ClientError::Closed),
            "{lost:?}"
        );
        attachment.resume(Duration::from_secs(50)).await.unwrap();
    }
}

#[test]
fn a_connection_that_is_cut_at_any_byte_is_resumed_without_gap_or_repeat() {
    let journal = journal();
    let whole = folded(&journal, u64::MAX);
    let (wanted, last): (Vec<_>, _) = (journal.iter().map(|(_, line)| line.clone()).collect(), 10);
    scene(async {
        let pod = ScriptedPod::new();
        let mut cut = 0;
        loop {
            let served = async {
                let mut talk = pod.accept().await;
                talk.room = cut;
                serve(&mut talk, &journal).await;
                let complete = !talk.cut;
                drop(talk);
                if !complete {
                    // The client may not have got its hello's answer, and then begins anew.
                    serve(&mut pod.accept().await, &journal).await;
                }
                complete
            };
            let (complete, (lines, model)) = join!(served, follow(&pod, last));
            assert_eq!(lines, wanted, "cut at {cut}");
            assert_eq!(
                client::model::digest(model.status()),
                digest_of(&whole),
                "cut at {cut}"
            );
            assert!(
                model.entries().eq(whole.entries())
                    && model.unfinished_calls().eq(whole.unfinished_calls())
            );
            if complete {
                break;
            }
            cut += 1;
        }
        assert!(cut > 1500, "{cut} bytes");
    });
}

/// The scripted pod has another model's name than a log without a surface.
fn digest_of(whole: &PodModel) -> u64 {
    client::model::digest(&Status {
        model: "m".to_owned(),
        ..whole.status().clone()
    })
}

/// The model of the records up to one of them.
fn folded(journal: &[(u64, String)], upto: u64) -> PodModel {
    let mut model = PodModel::before_any_record("p");
    for (_, line) in journal.iter().filter(|(seq, _)| *seq <= upto) {
        model.apply(&Event::Record(RecordLine::new(line.clone()).unwrap()));
    }
    model
}
