//! Runs of background tasks in the journal: one end for each, whatever is killed, and recovery runs nothing.

use crate::fixtures::{pod, verified};
use crate::record_strategy;
use llm_worker::ToolEffect;
use pod::control::Batch;
use pod::record::{BackgroundTask, Record, SystemItem, TaskRunState, TriggerKind, TurnStarted};
use pod::session::fold::SessionState;
use pod::session::restore::{RecoveryFacts, Restored, closing};
use proptest::prelude::*;
use std::collections::BTreeMap;
use testkit::{ModelScript, PodUnderTest, RunEnd, ScriptedAnswer};

pub(crate) fn running(run: u64, task: &str, effect: ToolEffect) -> BackgroundTask {
    let feature = "builtin:f".to_owned();
    let task = task.to_owned();
    let trigger = TriggerKind::Cron;
    let attempt = 2;
    let due_ms = 5;
    let at_ms = 6;
    let state = TaskRunState::Running;
    let reason = None;
    let ms = None;
    BackgroundTask {
        run,
        feature,
        task,
        trigger,
        attempt,
        due_ms,
        at_ms,
        effect,
        state,
        reason,
        ms,
        jobs: Vec::new(),
    }
}

/// A log of a host that was killed while two runs were open, in a turn or idle, and a pod over it.
fn killed(turn: bool) -> PodUnderTest {
    let pod = pod(vec![ScriptedAnswer::text("went on")], Vec::new());
    let mut records: Vec<Record> = vec![record_strategy::surface(1).into()];
    records.extend(turn.then(|| TurnStarted { turn: 1 }.into()));
    let runs = [
        running(1, "post", ToolEffect::Effectful),
        running(2, "look", ToolEffect::ReadOnly),
    ];
    records.extend(runs.map(Record::from));
    let journal = pod.journal();
    journal.append(Batch::of(records)).wait().unwrap();
    journal.close();
    pod.clock.advance(90_000_000);
    pod
}

fn ends(pod: &PodUnderTest) -> Vec<BackgroundTask> {
    let end = |(_, record): (u64, Record)| match record {
        Record::BackgroundTask(run) if run.state != TaskRunState::Running => Some(run),
        _ => None,
    };
    pod.records().into_iter().filter_map(end).collect()
}

fn recoveries(pod: &PodUnderTest) -> Vec<(u64, bool)> {
    let recovery = |(_, record): (u64, Record)| match record {
        Record::Recovery(recovery) => Some((recovery.open_tasks, recovery.open_turn)),
        _ => None,
    };
    pod.records().into_iter().filter_map(recovery).collect()
}

#[test]
fn open_runs_of_a_killed_host_are_orphaned() {
    for turn in [false, true] {
        let pod = killed(turn);
        let ran = pod.run("go on");
        assert_eq!(ran.end().answer.as_deref(), Some("went on"));
        assert_eq!(
            ran.found
                .as_ref()
                .map(|found| (found.orphaned, found.crashed)),
            Some((2, turn))
        );
        assert_eq!(recoveries(&pod), [(2, turn)]);
        let [look, post] = &ends(&pod)[..] else {
            panic!("{:?}", ends(&pod))
        };
        let began = running(1, "post", ToolEffect::Effectful);
        let at_ms = post.at_ms;
        let reason = post.reason.clone();
        assert_eq!(
            *post,
            BackgroundTask {
                state: TaskRunState::Orphaned,
                at_ms,
                reason,
                ..began
            }
        );
        assert!(at_ms > 1_000_000_000_000, "{at_ms}");
        let why = |end: &BackgroundTask| end.reason.clone().unwrap();
        assert!(
            why(post)
                .ends_with("its effects may have happened, and it is not run again for this cause")
        );
        assert!(
            look.state == TaskRunState::Orphaned && why(look).ends_with("running it again is safe")
        );
        // A run that ended with its host is no turn that did.
        assert_eq!(
            (pod.state().crashes, pod.state().open_tasks().count()),
            (0, 0)
        );
        let note = |(_, record): (u64, Record)| match record {
            Record::SystemItem(SystemItem::Recovery { text, .. }) => Some(text),
            _ => None,
        };
        let notes: Vec<String> = pod.records().into_iter().filter_map(note).collect();
        let told = "may have had effects; verify before you rely on them: post of builtin:f";
        assert!(
            notes.len() == usize::from(turn) && notes.iter().all(|note| note.ends_with(told)),
            "{notes:?}"
        );
        // The next start has nothing to close.
        pod.script.add(ScriptedAnswer::text("again"));
        pod.run("again").end();
        assert_eq!((recoveries(&pod).len(), ends(&pod).len()), (1, 2));
    }
}

#[test]
fn a_recovery_that_is_killed_orphans_each_run_once() {
    let points = |pod: &PodUnderTest| {
        let all = pod.points.numbered();
        let end = all
            .iter()
            .position(|(name, _)| name == "commit:input_queued")
            .unwrap();
        all[..end].to_vec()
    };
    let reference = killed(false);
    reference.run("go on").end();
    let points = points(&reference);
    assert!(points.len() > 4, "{points:?}");
    for (name, nth) in points {
        let mut pod = killed(false);
        pod.points.kill(&name, nth);
        let how = pod.run("go on").how;
        assert!(
            matches!(how, RunEnd::Killed),
            "killed at {name} {nth}: {how:?}"
        );
        pod.revive();
        pod.script = ModelScript::new([ScriptedAnswer::text("went on")]);
        pod.run("go on").end();
        let runs: Vec<u64> = ends(&pod).iter().map(|end| end.run).collect();
        assert_eq!(runs, [2, 1], "killed at {name} {nth}");
    }
}

#[test]
fn verify_names_a_second_end() {
    let run = |state| BackgroundTask {
        state,
        ..running(1, "post", ToolEffect::Effectful)
    };
    for (ends, wrong) in [(1, None), (2, Some(4))] {
        let pod = pod(Vec::new(), Vec::new());
        let mut records = vec![Record::from(run(TaskRunState::Running))];
        records.extend((0..ends).map(|_| run(TaskRunState::Completed).into()));
        let journal = pod.journal();
        journal.append(Batch::of(records)).wait().unwrap();
        journal.close();
        let found = verified(&pod).wrong;
        assert_eq!(found.as_ref().map(|wrong| wrong.seq), wrong, "{found:?}");
    }
}

/// What a run has in the log: a beginning or not, and how many ends.
#[derive(Default, Debug)]
struct Seen {
    began: u32,
    ended: u32,
}

fn see(seen: &mut BTreeMap<(String, u64), Seen>, record: &Record) {
    let Record::BackgroundTask(run) = record else {
        return;
    };
    let run_seen = seen.entry((run.task.clone(), run.run)).or_default();
    match run.state {
        TaskRunState::Running => run_seen.began += 1,
        _ => run_seen.ended += 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Of whatever is proposed, the fold takes a log in which a run begins once at most and ends once, one run of a task at
    /// a time, with hosts that are killed anywhere.
    #[test]
    fn every_run_ends_exactly_once(steps in prop::collection::vec((any::<bool>(), 0..20_u8, 0..4000_u64), 0..200)) {
        let mut fold = Restored::default();
        let mut seen = BTreeMap::new();
        let class = "clean".to_owned();
        let found = RecoveryFacts { class, cut_bytes: 0, quarantine: None, ended_processes: 0, survivors: None, swept: 0, now: 2 };
        let end = || (true, 0, 0);
        for (fits, kill, n) in steps.into_iter().chain([end()]) {
            let batch = match kill {
                0 => closing(&fold, &found),
                _ => vec![record_strategy::record(21, n, Some(&fold.state).filter(|_| fits))],
            };
            for record in batch {
                let before = fold.state.clone();
                if fold.take(0, 1, &record).is_err() {
                    prop_assert!(kill > 0, "recovery wrote {:?}", record);
                    prop_assert_eq!(&fold.state, &before);
                    continue;
                }
                see(&mut seen, &record);
            }
            prop_assert_eq!(fold.state.crashes, 0, "no turn was interrupted");
            let open: Vec<(String, u64)> = open_runs(&fold.state);
            for (run, seen) in &seen {
                prop_assert!(seen.began <= 1 && seen.ended + u32::from(open.contains(run)) == 1, "{:?}: {:?}", run, seen);
            }
        }
        prop_assert_eq!(open_runs(&fold.state), Vec::new());
    }
}

fn open_runs(state: &SessionState) -> Vec<(String, u64)> {
    state
        .open_tasks()
        .map(|((_, task), open)| (task.clone(), open.run))
        .collect()
}
