//! State in session scope: there again, in order, bounded, and nobody else's.

use crate::rig::{COUNT, Count, Counter, ID, calls, grants, pod};
use pod::control::Outbox;
use pod::feature::*;
use pod::hook::{Event, EventView, HookPoint, Point};
use pod::record::{FeatureState, Record};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{EIO, ENOSPC, Fault, RunEnd, ScriptedAnswer};

fn states(records: &[(u64, Record)]) -> Vec<u64> {
    let n = |(_, record): &(u64, Record)| match record {
        Record::FeatureState(state) => state.value["n"].as_u64(),
        _ => None,
    };
    records.iter().filter_map(n).collect()
}

#[test]
fn a_state_is_there_again_and_program_order_is_journal_order() {
    let (pod, counter) = pod(&[&["add"], &["both"], &["piggyback"], &["read"]]);
    pod.run("go").end();
    // `read` shows what is committed: the piggybacked update went with the commit before the next request.
    assert_eq!(
        counter.heard(),
        [
            "add: 1",
            "both: Ok(()) Ok(())",
            "piggyback: done",
            "read: 13"
        ]
    );
    assert_eq!(states(&pod.records()), [1, 2, 12, 13]);
    pod.script.add(calls(&["add"]));
    pod.script.add(ScriptedAnswer::text("done"));
    pod.run("again").end();
    assert_eq!(counter.heard().last().unwrap(), "add: 14");
    assert_eq!(counter.state().read().n, 14);
}

// An update nobody waits for costs no flush; one that is waited for costs one.
#[test]
fn an_update_rides_or_costs_one_flush() {
    let flushes = |what: &str| {
        let (pod, _) = pod(&[&[what], &[what]]);
        let ran = pod.run("go");
        ran.end();
        ran.flushes
    };
    let plain = flushes("read");
    assert_eq!((flushes("piggyback"), flushes("add")), (plain, plain + 2));
}

#[test]
fn what_does_not_fit_or_panics_changes_nothing() {
    let (pod, counter) = pod(&[&["add"], &["grow 70000"], &["panic"], &["add"]]);
    pod.run("go").end();
    let heard = counter.heard();
    assert!(
        heard[1].contains("JSON") && heard[1].contains("65536"),
        "{heard:?}"
    );
    assert!(heard[2].contains("on purpose"), "{heard:?}");
    assert_eq!(
        (heard[3].as_str(), states(&pod.records())),
        ("add: 2", vec![1, 2])
    );
}

// The disk refuses at every operation in turn: memory never says more than the log, and what was built on a refused
// update goes with it.
#[test]
fn a_refused_update_leaves_memory_as_it_was() {
    let operations = {
        let (pod, _) = pod(&[&["add"], &["both"]]);
        pod.run("go").end();
        pod.disk.operations()
    };
    for at in 0..operations {
        for fault in [Fault::Once(ENOSPC), Fault::Ever(ENOSPC)] {
            let (pod, counter) = pod(&[&["add"], &["both"]]);
            pod.disk.fail_at(at, fault);
            let ran = pod.run("go");
            if matches!(ran.how, RunEnd::NotOpened(_)) || counter.live.lock().unwrap().is_none() {
                continue;
            }
            pod.disk.repair();
            // Opening it says again how far it is durable.
            pod.journal().close();
            let logged = states(&pod.records());
            let memory = counter.state().read().n;
            // None stands on one that was refused.
            let steps = logged
                .iter()
                .scan(0, |last, n| Some(n - std::mem::replace(last, *n)));
            assert!(
                steps.clone().all(|step| step == 1 || step == 10),
                "operation {at} {fault:?}: {logged:?}"
            );
            let newest = logged.last().copied().unwrap_or(0);
            // On a disk that takes nothing back, what was refused may be there after all.
            let refused =
                matches!(fault, Fault::Ever(_)) && (memory == 0 || logged.contains(&memory));
            assert!(
                memory == newest || refused,
                "operation {at} {fault:?}: {memory} and {logged:?}"
            );
        }
    }
}

#[test]
fn observers_see_no_state() {
    const WATCH: HookKey<Event> = HookKey::new("watch");
    struct Watch(Arc<Mutex<Vec<String>>>);
    impl Watch {
        fn seen(&self, event: &EventView) {
            self.0.lock().unwrap().push(event.record.kind().to_owned());
        }
    }
    impl FeatureModule for Watch {
        fn descriptor(&self) -> FeatureDescriptor {
            FeatureDescriptor::builder(FeatureId::builtin("watch"))
                .version("1.0.0")
                .observe(&WATCH)
                .build()
        }
        fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
            ctx.hooks()
                .observe(&WATCH, &Arc::new(Self(Arc::clone(&self.0))), Self::seen)
                .map(drop)
        }
    }
    let (mut pod, _) = pod(&[&["add"]]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    pod.features.push((
        Arc::new(Watch(Arc::clone(&seen))),
        vec![HostCapability::hook::<Event>()],
    ));
    pod.paused = false;
    pod.run("go").end();
    assert_eq!(Event::POINT, HookPoint::Event);
    let seen = seen.lock().unwrap();
    assert!(
        seen.iter().any(|kind| kind == "tool_finished")
            && !seen.iter().any(|kind| kind == "feature_state")
    );
}

#[test]
fn what_an_observer_makes_of_the_last_records_is_kept() {
    const WATCH: HookKey<Event> = HookKey::new("watch");
    const TURNS: StateKey<u64> = StateKey::new("turns", 1);
    struct Watch;
    struct Live(DurableState<u64>);
    impl FeatureModule for Watch {
        fn descriptor(&self) -> FeatureDescriptor {
            let builder = FeatureDescriptor::builder(FeatureId::builtin("watch")).version("1.0.0");
            builder.observe(&WATCH).state(&TURNS).build()
        }
        fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
            let live = Arc::new(Live(ctx.state(&TURNS)?));
            let seen = |live: &Live, event: &EventView| {
                if matches!(*event.record, Record::TurnFinished(_)) {
                    drop(live.0.update(|turns| *turns += 1));
                }
            };
            ctx.hooks().observe(&WATCH, &live, seen).map(drop)
        }
    }
    let (mut pod, _) = pod(&[]);
    pod.features.push((
        Arc::new(Watch),
        vec![
            HostCapability::hook::<Event>(),
            HostCapability::SESSION_STATE,
        ],
    ));
    pod.paused = false;
    pod.run("go").end();
    let kept = pod
        .state()
        .features
        .into_values()
        .find(|state| state.name == "turns");
    assert_eq!(kept.map(|state| (*state.value).clone()), Some(1.into()));
}

/// What a feature comes to when this was left under its name.
fn left(version: u16, value: serde_json::Value) -> (FeatureInstallReport, Counter) {
    let (pod, counter) = pod(&[]);
    let opened = pod.store().unwrap();
    let feature = ID.to_string();
    let name = COUNT.name().to_owned();
    let state = FeatureState {
        feature,
        name,
        version,
        value: Arc::new(value),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let batch = pod::control::Batch::of(vec![state.into()]);
    runtime.block_on(async { opened.journal.append(batch).await.map(drop).unwrap() });
    opened.journal.close();
    let opening = pod.opening(pod.resume().unwrap()).unwrap();
    let policy = grants()
        .into_iter()
        .fold(CapabilityPolicy::nothing(), |p, grant| {
            p.grant(ID, grant, "test")
        });
    let services = HostServices::none().link(opening.link());
    let registry = FeatureRegistryBuilder::new(policy)
        .with(Arc::new(counter.clone()))
        .install(&services);
    (registry.report().feature(&ID).unwrap().clone(), counter)
}

#[test]
fn old_values_are_migrated_and_unreadable_ones_skip_the_feature() {
    let (report, counter) = left(1, 7.into());
    assert_eq!(
        (report.outcome, counter.state().read().n),
        (InstallOutcome::Installed, 7)
    );
    let (report, counter) = left(2, serde_json::json!({ "n": 8, "words": [] }));
    assert_eq!(
        (report.outcome, &*counter.state().read()),
        (
            InstallOutcome::Installed,
            &Count {
                n: 8,
                words: Vec::new()
            }
        )
    );
    for (version, value, why) in [
        (1, "x".into(), "not a number"),
        (2, 7.into(), "count"),
        (3, 7.into(), "use a newer one"),
    ] {
        let (report, _) = left(version, value);
        assert_eq!(report.outcome, InstallOutcome::Skipped, "{version}");
        assert!(
            report.diagnostics[0].message.contains(why),
            "{:?}",
            report.diagnostics
        );
    }
}

#[test]
fn an_ungranted_or_unstaged_state_skips_the_feature() {
    struct Lazy;
    impl FeatureModule for Lazy {
        fn descriptor(&self) -> FeatureDescriptor {
            FeatureDescriptor::builder(ID)
                .version("1.0.0")
                .state(&COUNT)
                .build()
        }
        fn install(&self, _: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
            Ok(())
        }
    }
    let outcome = |policy| {
        let registry = FeatureRegistryBuilder::new(policy)
            .with(Arc::new(Lazy))
            .install(&HostServices::none());
        let report = registry.report().feature(&ID).unwrap().clone();
        (report.outcome, report.diagnostics[0].code)
    };
    let granted = CapabilityPolicy::nothing().grant(ID, HostCapability::SESSION_STATE, "test");
    assert_eq!(
        outcome(granted),
        (InstallOutcome::Skipped, DiagnosticCode::PlannedNotStaged)
    );
    assert_eq!(
        outcome(CapabilityPolicy::nothing()),
        (
            InstallOutcome::Skipped,
            DiagnosticCode::RequiredCapabilityDenied
        )
    );
}

/// What a feature handed in while a commit was held by the disk is not overtaken by what was piggybacked on that commit.
#[test]
fn a_value_of_before_never_lands_behind_a_newer_one() {
    let (mut pod, counter) = pod(&[]);
    pod.paused = false;
    let ((first, second), end) = pod.serve(Outbox::unwatched(), async |client| {
        client.submit("go").await.unwrap();
        let live = counter.live.lock().unwrap().clone().unwrap();
        let first = live.state.update(|count| count.n += 1);
        // It waits to be piggybacked on a commit.
        tokio::time::sleep(Duration::from_millis(50)).await;
        pod.disk.fail_at(0, Fault::Once(EIO));
        let updates = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            live.state
                .update(|count| count.n += 10)
                .await
                .map_err(|e| e.to_string())
        };
        let (_, second) = tokio::join!(client.submit("again"), updates);
        (first.await.map_err(|e| e.to_string()), second)
    });
    end.result.unwrap();
    // What was refused is in no later value, and what was accepted is the last.
    assert!(first.is_err() && second.is_ok(), "{first:?} {second:?}");
    assert_eq!(states(&pod.records()), [10]);
    assert_eq!(counter.state().read().n, 10);
}
