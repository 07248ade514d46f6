//! The first record of format 2 starts a segment; a kill on the way there leaves the log before it or with it.

use crate::fixtures::moved;
use crate::fixtures::{add_slow, pod, said, sound};
use crate::views::{full, prunes};
use llm_worker::effect::Outcome;
use llm_worker::{Item, ToolEffect};
use pod::control::{Client, NewInput, Outbox};
use pod::record::Record;
use pod::session::restore::Restored;
use session_store::{Options, Reader, Session};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::{FnTool, PodUnderTest, ScriptedAnswer};
use tokio::sync::Notify;

/// The formats of the segments.
fn formats(dir: &Path) -> Vec<u64> {
    let frames = Reader::open(dir)
        .unwrap()
        .frames()
        .map(|frame| frame.unwrap());
    let format = |line: String| {
        serde_json::from_str::<serde_json::Value>(&line).unwrap()["format"]
            .as_u64()
            .unwrap()
    };
    frames
        .filter(|frame| frame.kind == "segment")
        .map(|frame| format(frame.line))
        .collect()
}

fn users(pod: &PodUnderTest) -> Vec<String> {
    let text = |item| match item {
        Item::User { text, .. } => Some(text),
        _ => None,
    };
    pod.restored().items.into_iter().filter_map(text).collect()
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Withdraw,
    Edit,
    Move,
}

impl Change {
    /// Changes input 2 of those that wait, 2 and 3. Whether that was acknowledged.
    async fn apply(self, client: &Client) -> bool {
        match self {
            Self::Withdraw => client.withdraw(2, None).await.is_ok(),
            Self::Edit => client.edit(2, "edited".to_owned(), None).await.is_ok(),
            Self::Move => client.tell(moved(3, Some(2)), None).await.is_ok(),
        }
    }

    /// What a model is told by people after the change.
    fn told(self) -> &'static [&'static str] {
        match self {
            Self::Withdraw => &["one", "three"],
            Self::Edit => &["one", "edited", "three"],
            Self::Move => &["one", "three", "two"],
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            fs::copy(entry.path(), &target).map(drop).unwrap()
        }
    }
}

/// A run whose first turn waits for a tool while two more inputs wait, one of which is changed. At these points of that
/// the pod is copied.
fn changed(change: Change, kill: Option<(&[&str], &Path)>) -> (PodUnderTest, bool) {
    let runs = Arc::new(Notify::new());
    let ends = Arc::new(Notify::new());
    let wait = {
        let runs = Arc::clone(&runs);
        let ends = Arc::clone(&ends);
        FnTool::new("Wait", ToolEffect::ReadOnly, move |_, _| {
            let runs = Arc::clone(&runs);
            let ends = Arc::clone(&ends);
            async move {
                runs.notify_one();
                ends.notified().await;
                said("waited")
            }
        })
    };
    let mut answers = vec![ScriptedAnswer::calls(&[("Wait", "{}")])];
    answers.extend(["one", "two", "three"].map(ScriptedAnswer::text));
    let pod = pod(answers, vec![wait]);
    let (acked, end) = pod.serve(Outbox::unwatched(), async |client| {
        let input = |text: &str| NewInput {
            text: text.to_owned(),
            ..NewInput::default()
        };
        let mut sent = vec![client.send(input("one")).await.unwrap()];
        runs.notified().await;
        for text in ["two", "three"] {
            sent.push(client.send(input(text)).await.unwrap());
        }
        assert_eq!(formats(&pod.dir), [1]);
        for (name, into) in kill
            .iter()
            .flat_map(|(names, into)| names.iter().map(move |name| (*name, into.join(name))))
        {
            // The next time that it is reached.
            let reached = pod
                .points
                .numbered()
                .iter()
                .filter(|(reached, _)| reached == name)
                .count();
            let dir = pod.dir.clone();
            pod.points.at(name, reached, move || copy(&dir, &into));
        }
        let acked = change.apply(&client).await;
        ends.notify_one();
        for sent in sent {
            drop(sent.end().await);
        }
        acked
    });
    end.result.unwrap();
    (pod, acked)
}

#[test]
fn what_changes_the_queue_is_of_format_2_and_nothing_else_is() {
    for change in [Change::Withdraw, Change::Edit, Change::Move] {
        let (pod, acked) = changed(change, None);
        assert!(acked, "{change:?}");
        assert_eq!(
            (formats(&pod.dir).as_slice(), users(&pod).as_slice()),
            (
                [1, 2].as_slice(),
                change
                    .told()
                    .iter()
                    .map(|text| (*text).to_owned())
                    .collect::<Vec<_>>()
                    .as_slice()
            )
        );
        let first = pod
            .records()
            .into_iter()
            .find(|(_, record)| {
                matches!(
                    record,
                    Record::InputWithdrawn(_) | Record::InputEdited(_) | Record::InputMoved(_)
                )
            })
            .unwrap()
            .0;
        let opened = Reader::open(&pod.dir)
            .unwrap()
            .frames()
            .map(Result::unwrap)
            .filter(|frame| frame.kind == "segment");
        assert_eq!(
            opened.last().unwrap().seq + 1,
            first,
            "the change is in the first batch of its segment"
        );
        sound(&pod, "a changed queue");
    }
}

/// What a process that is killed there leaves is the queue before the change, or the one after it.
#[test]
fn a_kill_at_each_point_of_the_switch_loses_nothing() {
    const POINTS: [&str; 5] = [
        "journal:encoded",
        "journal:written",
        "journal:renamed",
        "journal:synced",
        "journal:head",
    ];
    for change in [Change::Withdraw, Change::Edit, Change::Move] {
        let copies = tempfile::tempdir().unwrap();
        let (_pod, acked) = changed(change, Some((&POINTS, copies.path())));
        assert!(acked, "{change:?}");
        let mut states = Vec::new();
        for point in POINTS {
            let dir = copies.path().join(point);
            drop(Session::open(&dir, Options::new("s-1", Arc::new(|| 1))).unwrap());
            let restored = Restored::from_frames(Reader::open(&dir).unwrap().frames()).unwrap();
            let done = formats(&dir) == [1, 2];
            assert!(
                done || formats(&dir) == [1],
                "{change:?}, killed at {point}"
            );
            states.push((done, restored.state));
        }
        let done: Vec<bool> = states.iter().map(|(done, _)| *done).collect();
        assert_eq!(done, [false, false, true, true, true], "{change:?}");
        assert!(
            states[0] == states[1] && states[2] == states[4] && states[1].1 != states[2].1,
            "{change:?}"
        );
    }
}

#[test]
fn an_end_that_older_programs_do_not_know_is_of_format_2() {
    for wanted in [Outcome::TokenLimit, Outcome::TimeLimit] {
        let mut pod = pod(vec![ScriptedAnswer::calls(&[("Slow", "{}")])], Vec::new());
        add_slow(&mut pod, 1);
        match wanted {
            Outcome::TokenLimit => pod.limits.max_tokens = Some(11),
            _ => pod.limits.max_wall = Some(Duration::from_secs(1)),
        }
        let (outcome, end) = pod.serve(Outbox::unwatched(), async |client| {
            let input = NewInput {
                text: "one".to_owned(),
                ..NewInput::default()
            };
            client
                .send(input)
                .await
                .unwrap()
                .end()
                .await
                .unwrap()
                .outcome
        });
        end.result.unwrap();
        assert_eq!(
            (&outcome, formats(&pod.dir).as_slice()),
            (&wanted, [1, 2].as_slice())
        );
        sound(&pod, "an outcome of format 2");
    }
}

#[test]
fn an_end_by_a_full_context_is_of_format_2() {
    let pod = full();
    assert_eq!(pod.run("one").end().outcome, Outcome::ContextLimit);
    assert!(prunes(&pod).is_empty());
    assert_eq!(formats(&pod.dir), [1, 2]);
    sound(&pod, "a full context");
}
