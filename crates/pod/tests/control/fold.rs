//! A log folds to what its pod holds, at every record of it.

use crate::fixtures::{add_slow, echo, pod, printer, sound};
use crate::record_strategy::{self, WAYS, record};
use llm_worker::effect::Outcome;
use llm_worker::history::{Counters, History};
use llm_worker::projection::Neutral;
use llm_worker::{CallId, Item, ResultStatus, ToolEffect};
use pod::control::{Batch, Event, Outbox};
use pod::record::{Record, TaskRunState, ToolFinished};
use pod::session::checkpoint::{CheckpointBuilder, VERSION};
use pod::session::fold::SessionState;
use pod::session::restore::{RecoveryFacts, Restored, closing, decode};
use pod::session::resume::{ResumedSession, everything};
use proptest::prelude::*;
use session_store::{EncodeError, Frames, Options, Reader, Records, Session};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::{ManualClock, ScriptedAnswer};

/// The state behind each record of the log that is not the store's own, with the record's clock.
fn prefixes(dir: &Path) -> Vec<(SessionState, u64)> {
    let mut restored = Restored::default();
    let mut states = Vec::new();
    for frame in Reader::open(dir).unwrap().frames() {
        let frame = frame.unwrap();
        let record = decode(&frame).unwrap();
        restored.take(frame.seq, frame.time, &record).unwrap();
        if !matches!(record, Record::Other { .. }) {
            states.push((restored.state.clone(), frame.time));
        }
    }
    states
}

// covers: INV-03
#[test]
fn live_state_is_the_fold_of_the_log_at_every_record_of_a_run() {
    let calls = [
        ("Echo", "{\"a\":1}"),
        ("Print", "{}"),
        ("None", "{}"),
        ("Echo", "not json"),
        ("Slow", "{}"),
    ];
    let answers = vec![
        ScriptedAnswer::calls(&calls),
        ScriptedAnswer::text("one"),
        ScriptedAnswer::calls(&calls[..2]),
        ScriptedAnswer::text("two"),
    ];
    let tools = vec![echo("Echo", ToolEffect::Effectful), printer("Print", 4000)];
    let mut pod = pod(answers, tools);
    add_slow(&mut pod, 3);
    let (outbox, mut events) = Outbox::watched();
    let ((), end) = pod.serve(outbox, async |client| {
        let folded = client.folded();
        for input in ["one", "two"] {
            assert_eq!(client.submit(input).await.unwrap().outcome, Outcome::Done);
            // What the watch says can be read from the files.
            let seq = *folded.borrow();
            assert_eq!(
                Reader::open(&pod.dir)
                    .unwrap()
                    .upto(seq)
                    .frames()
                    .last()
                    .unwrap()
                    .unwrap()
                    .seq,
                seq
            );
            assert!(seq > prefixes(&pod.dir).len() as u64, "{input}");
        }
    });
    let live = end.state;
    let mut told = SessionState::default();
    let folded = prefixes(&pod.dir);
    let mut rest = folded.iter();
    while let Ok(event) = events.try_recv() {
        if let Event::Record { record, .. } = event {
            let (state, time) = rest.next().unwrap();
            told.apply_at(*time, &record).unwrap();
            assert_eq!(&told, state);
        }
    }
    assert!(
        folded.len() > 40 && live.outputs.len() == 2 && live.turns == 2,
        "{} records",
        folded.len()
    );
    assert_eq!((rest.next(), &told), (None, &live));
    assert_eq!(live.spent().wall(), Duration::from_secs(3));
    sound(&pod, "a run");
}

fn any_records(most: usize) -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec((0..WAYS, prop_oneof![0..9_u64, any::<u64>()]), 0..most)
}

/// A batch that may ask for a higher format of segments than its records do.
struct Asking {
    batch: Batch,
    format: u32,
}

impl Records for Asking {
    fn encode(&self, frames: &mut Frames<'_>) -> Result<(), EncodeError> {
        self.batch.encode(frames)
    }

    fn format(&self) -> u32 {
        self.format.max(self.batch.format())
    }
}

/// Writes the batches, each with the format that it asks for, into segments of this size.
fn write(dir: &Path, batches: &[(Vec<Record>, u32)], segment_bytes: u64) {
    let clock = ManualClock::at(1);
    let options = Options {
        segment_bytes,
        ..Options::new("s-1", clock.clock())
    };
    let journal = Session::create(
        dir,
        Options {
            disk: std::sync::Arc::new(testkit::FailingDisk::default()),
            ..options
        },
    );
    let journal = journal.unwrap().journal;
    for (batch, format) in batches {
        clock.advance(7);
        journal
            .append(Asking {
                batch: Batch::of(batch.clone()),
                format: *format,
            })
            .wait()
            .unwrap();
    }
    journal.close();
}

/// The format of the newest segment.
fn newest_format(dir: &Path) -> u64 {
    let frames = Reader::open(dir)
        .unwrap()
        .frames()
        .map(|frame| frame.unwrap());
    let line = frames
        .filter(|frame| frame.kind == "segment")
        .last()
        .unwrap()
        .line;
    serde_json::from_str::<serde_json::Value>(&line).unwrap()["format"]
        .as_u64()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever legal records a log has, reading it back comes to the same, items included, behind each of them, also
    /// where its segments are of several formats and sizes.
    #[test]
    fn any_legal_log_reads_back_to_the_same(
        ways in any_records(120),
        sizes in prop::collection::vec((1..6_usize, prop_oneof![9 => Just(1_u32), 1 => Just(2)]), 120),
        segment_bytes in prop_oneof![Just(16_u64 << 20), 600..6000_u64],
    ) {
        let mut fold = Restored::default();
        let mut records = Vec::new();
        let mut draft = CheckpointBuilder::of(&fold);
        for (way, n) in ways {
            let next = record(way, n, Some(&fold.state));
            if let Ok(items) = fold.state.clone().apply(&next) {
                let time = 1 + n % 7;
                let before = fold.state.shown.clone();
                fold.take(0, time, &next).unwrap();
                prop_assert!(fold.items.ends_with(&items));
                draft.take(&items, time, matches!(next, Record::ToolStarted(_)));
                draft.change_view(&next, &before, &fold.state);
                // A checkpoint at any place is the fold at that place.
                let kept = CheckpointBuilder::read(VERSION, &draft.bytes(&fold.state).unwrap());
                prop_assert_eq!(kept, Some((fold.clone(), draft.clone())));
                prop_assert_eq!(&CheckpointBuilder::of(&fold), &draft);
                records.push(next);
            }
        }
        let items = fold.items;
        let mut batches = Vec::new();
        let mut rest = records.as_slice();
        for (size, format) in sizes {
            let (batch, more) = rest.split_at(size.min(rest.len()));
            if !batch.is_empty() {
                batches.push((batch.to_vec(), format));
            }
            rest = more;
        }
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let dir = root.path().join("one");
        write(&dir, &batches, segment_bytes);
        if batches.is_empty() {
            return Ok(());
        }
        let ask = |(batch, format): &(Vec<Record>, u32)| Batch::of(batch.clone()).format().max(*format);
        let asked = batches.iter().map(ask).max().unwrap_or(1);
        prop_assert_eq!(newest_format(&dir), u64::from(asked));
        let folded = prefixes(&dir);
        let mut state = SessionState::default();
        for ((folded, time), record) in folded.iter().zip(&records) {
            state.apply_at(*time, record).unwrap();
            prop_assert_eq!(folded, &state);
        }
        let restored = Restored::from_frames(Reader::open(&dir).unwrap().frames()).unwrap();
        prop_assert_eq!(&restored.items, &items);
        // What is read at a glance comes to the same, and to the same checkpoint.
        let ResumedSession { restored: glanced, mut draft, .. } = everything(Reader::open(&dir).unwrap().frames()).unwrap();
        prop_assert_eq!(draft.bytes(&glanced.state), CheckpointBuilder::of(&glanced).bytes(&glanced.state));
        prop_assert_eq!(glanced, restored);
    }

    /// Whatever a log has lost, what closes it fits, and its items are a history.
    #[test]
    fn whatever_is_lost_the_rest_is_a_history(ways in any_records(120)) {
        let mut fold = Restored::default();
        for (way, n) in ways {
            let next = record(way, n, Some(&fold.state));
            // A refused record is one that no log has.
            drop(fold.take(0, 1, &next));
        }
        let open: Vec<u64> = fold.state.open_tasks().map(|(_, open)| open.run).collect();
        let class = "clean".to_owned();
        let found = RecoveryFacts { class, cut_bytes: 0, quarantine: None, ended_processes: 0, survivors: None, swept: 0, now: 2 };
        let batch = closing(&fold, &found);
        let orphans = batch.iter().filter_map(|record| match record {
            Record::BackgroundTask(end) if end.state == TaskRunState::Orphaned => Some(end.run),
            _ => None,
        });
        prop_assert!(orphans.eq(open));
        for record in &batch {
            prop_assert!(fold.take(0, 1, record).is_ok(), "{:?}", record);
        }
        prop_assert_eq!(fold.state.open_tasks().count(), 0);
        prop_assert_eq!(closing(&fold, &found), Vec::new(), "recovery leaves nothing to close");
        let parked: BTreeSet<_> = fold.state.parked().collect();
        prop_assert!(!fold.state.turn_open && fold.state.lost.is_none() && fold.state.open_calls.len() == parked.len());
        prop_assert_eq!(fold.state.shown.count(fold.state.items), fold.items.len() as u64);
        let counters = Counters { calls: fold.state.calls, requests: fold.state.requests };
        let surface = record_strategy::surface(1).surface;
        let restored = History::restore_parked(surface, Arc::new(Neutral), fold.items, counters, &parked);
        prop_assert!(restored.is_ok(), "{:?}", restored.err());
    }

    /// Records that cannot stand where they stand are refused one by one, and change nothing.
    #[test]
    fn an_illegal_record_is_an_error_and_changes_nothing(ways in any_records(80), legal in any::<u64>()) {
        let mut state = SessionState::default();
        for (at, (way, n)) in ways.into_iter().enumerate() {
            let before = state.clone();
            let given = record(way, n, (legal >> (at % 64) & 1 == 1).then_some(&before));
            if let Err(refused) = state.apply(&given) {
                prop_assert_eq!(refused.kind, given.kind());
                prop_assert_eq!(&state, &before);
            }
        }
    }
}

/// One illegal record for each rule, behind the same legal beginning.
#[test]
fn what_cannot_follow_is_refused() {
    let id = |number| CallId::new(number).unwrap();
    let begin = |open: bool| {
        let mut records = vec![
            record_strategy::surface(1).into(),
            record_strategy::queued(1, None),
        ];
        if open {
            records.push(pod::record::TurnStarted { turn: 1 }.into());
            records.push(record_strategy::asked(id(1)));
        }
        let mut state = SessionState::default();
        records
            .iter()
            .for_each(|record| drop(state.apply(record).unwrap()));
        state
    };
    let of_feature = |status| {
        move |finished: &mut ToolFinished| {
            (finished.feature, finished.outcome.status) = (Some("builtin:f".to_owned()), status);
        }
    };
    let unstarted = |change: &dyn Fn(&mut ToolFinished)| {
        let Record::ToolFinished(mut finished) = record_strategy::denied(id(1)) else {
            panic!("another kind")
        };
        change(&mut finished);
        Record::from(finished)
    };
    let consumed = |input| Record::from(pod::record::InputConsumed { input });
    let turn = |turn| Record::from(pod::record::TurnStarted { turn });
    let cases: Vec<(bool, Record, &str)> = vec![
        (false, record_strategy::surface(1).into(), "generation"),
        (false, record_strategy::surface(3).into(), "generation"),
        (
            false,
            record_strategy::queued(1, None),
            "does not follow the last one",
        ),
        (
            false,
            record_strategy::queued(3, None),
            "does not follow the last one",
        ),
        (false, consumed(1), "no turn is open"),
        (true, consumed(2), "its input was not queued"),
        (true, turn(2), "another turn is open"),
        (false, turn(2), "does not follow the last one"),
        (false, record_strategy::note("x"), "no turn is open"),
        (false, record_strategy::asked(id(1)), "no turn is open"),
        (true, record_strategy::asked(id(1)), "not the next call"),
        (true, record_strategy::asked(id(3)), "not the next call"),
        (
            true,
            record_strategy::item(Item::user(String::new())),
            "a record kind of its own",
        ),
        (false, record_strategy::request(1, 1, 0), "no turn is open"),
        (
            true,
            record_strategy::request(1, 1, 1),
            "a call has no result",
        ),
        (
            true,
            record_strategy::started(id(2), ToolEffect::ReadOnly),
            "its call is not open",
        ),
        (true, record_strategy::finished(id(2), None), "not open"),
        (
            true,
            unstarted(&|finished| finished.outcome.status = ResultStatus::Ok),
            "was not started",
        ),
        (
            true,
            unstarted(&of_feature(ResultStatus::Error)),
            "was not started",
        ),
        (
            true,
            unstarted(&|finished| finished.output = record_strategy::output(2)),
            "was not started",
        ),
        (
            true,
            unstarted(&|finished| finished.ms = 1),
            "was not started",
        ),
        (
            true,
            record_strategy::turn_finished(1),
            "a call has no result",
        ),
        (true, record_strategy::turn_finished(2), "not open"),
        (false, record_strategy::turn_finished(1), "not open"),
    ];
    for (open, record, why) in cases {
        let refused = begin(open).apply(&record).unwrap_err();
        assert!(
            refused.why.contains(why) && refused.kind == record.kind(),
            "{record:?}: {refused}"
        );
    }
    // As older programs wrote of a call that was allowed and withdrawn.
    begin(true)
        .apply(&unstarted(&of_feature(ResultStatus::Cancelled)))
        .unwrap();
    let mut settled = begin(true);
    settled
        .apply(&record_strategy::started(id(1), ToolEffect::ReadOnly))
        .unwrap();
    assert!(
        settled
            .apply(&record_strategy::started(id(1), ToolEffect::ReadOnly))
            .unwrap_err()
            .why
            .contains("already started")
    );
    settled
        .apply(&record_strategy::finished(id(1), None))
        .unwrap();
    assert!(
        settled
            .apply(&record_strategy::finished(id(1), None))
            .unwrap_err()
            .why
            .contains("not open")
    );
    for (number, generation, items, why) in [
        (2, 1, 2, "number"),
        (1, 2, 2, "generation"),
        (1, 1, 1, "all items"),
    ] {
        let refused = settled
            .clone()
            .apply(&record_strategy::request(number, generation, items))
            .unwrap_err();
        assert!(refused.why.contains(why), "{refused}");
    }
    settled.apply(&record_strategy::request(1, 1, 2)).unwrap();
    let counters = Counters {
        calls: settled.calls,
        requests: settled.requests,
    };
    assert_eq!(
        counters,
        Counters {
            calls: 1,
            requests: 1
        }
    );
}
