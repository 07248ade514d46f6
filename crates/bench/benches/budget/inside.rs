//! What is measured in this process.

use crate::Amount;
use crate::table::Table;
use authority::{Ambient, Door};
use bench::features::{self, Called};
use bench::pods::PodPlace;
use bench::ratio::{median, ms};
use pod::control::Callbacks;
use pod::feature::{FeatureId, HostServices};
use pod::hook::{HookRegistryBuilder, InstalledHook, PreRequest, RequestView, Verdict};
use std::future::Future;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Uses of a door that are timed at once.
const USES: u32 = 1_000_000;

/// Flushes and bytes of starts and steps.
pub(crate) fn encoded(ambient: &Ambient, table: &mut Table) {
    let place = PodPlace::new();
    let marks = place.run(ambient, 300, 1);
    let pair = |at: usize| (marks[at - 1], marks[at]);
    table.figure(
        "flushes before the first request, new pod",
        marks[0].flushes as f64,
        "",
        Some(6.0),
    );
    let known = place.run(ambient, 0, 1)[0].flushes;
    table.figure("  a known pod", known as f64, "", Some(3.0));
    let ((early_from, early), (late_from, late)) = (pair(10), pair(300));
    table.figure(
        "flushes per step of one call",
        (late.flushes - late_from.flushes) as f64,
        "",
        Some(2.0),
    );
    let over = (late.encoded - late_from.encoded) as f64 - (late.body - late_from.body) as f64;
    table.figure(
        "bytes encoded per step beyond what is new, step 300",
        over,
        "B",
        Some(1024.0),
    );
    let written =
        |from: bench::pods::Mark, to: bench::pods::Mark| (to.written - from.written) as f64;
    let pair = (written(late_from, late), written(early_from, early));
    table.ratio(
        "bytes journaled by step 300, floor step 10",
        pair,
        "B",
        Some(1.05),
    );
}

/// Planning and installing many features.
pub(crate) fn features(amount: Amount, table: &mut Table) {
    let time = |count: usize| {
        let builder = features::builder(count, &Arc::new(Called::default()));
        let began = Instant::now();
        let registry = builder.install(&HostServices::none());
        let took = ms(began.elapsed());
        assert_eq!(registry.tools().iter().count(), count);
        took
    };
    let mut one = Vec::new();
    let mut two = Vec::new();
    for _ in 0..amount.rounds.min(11) {
        one.push(time(1000));
        two.push(time(2000));
    }
    let pair = (median(&two), median(&one));
    table.ratio(
        "plan and install 2,000 features, floor 1,000",
        pair,
        "ms",
        Some(2.5),
    );
}

/// How long the control thread takes to come round, at rest and beside a gate that spins on its thread.
pub(crate) fn latency(amount: Amount, table: &mut Table) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let callbacks = Callbacks::new(runtime.handle().clone());
    let spin = Arc::new(|_: &RequestView| {
        let began = Instant::now();
        while began.elapsed() < SPIN {
            std::hint::spin_loop();
        }
        Verdict::<PreRequest>::allow()
    });
    let mut builder = HookRegistryBuilder::new();
    let mut slot = InstalledHook::<PreRequest>::new(FeatureId::builtin("spin"), "spin", spin);
    slot.deadline = SPIN / 2;
    builder.add(slot);
    let hooks = builder.build();
    let mut idle = Vec::new();
    let mut beside = Vec::new();
    for _ in 0..amount.rounds {
        idle.extend(runtime.block_on(ticks(std::future::pending())));
        let view = || RequestView {
            turn: 1,
            number: 1,
            items: 0,
        };
        let gate = async { drop(hooks.decide::<PreRequest>(&callbacks, view).await) };
        beside.extend(runtime.block_on(ticks(gate)));
        // The thread that was given up comes back before the next round.
        runtime.block_on(async { tokio::time::sleep(SPIN).await });
    }
    table.ratio(
        "control thread beside a hanging gate, p99, floor at rest",
        (p99(&mut beside), p99(&mut idle)),
        "ms",
        Some(2.0),
    );
}

/// How late each of a round's ticks came, in milliseconds, while `work` goes on.
async fn ticks(work: impl Future<Output = ()>) -> Vec<f64> {
    let ticking = async {
        let mut late = Vec::new();
        let began = Instant::now();
        while began.elapsed() < SPIN {
            let asked = Instant::now();
            tokio::time::sleep(TICK).await;
            late.push(ms(asked.elapsed().saturating_sub(TICK)));
        }
        late
    };
    let work = async {
        work.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        late = ticking => late,
        () = work => Vec::new(),
    }
}

fn p99(late: &mut [f64]) -> f64 {
    late.sort_by(f64::total_cmp);
    late[late.len() * 99 / 100]
}

/// How long the gate holds its thread, and how often the control thread should come round meanwhile.
const SPIN: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(1);

/// Checking a grant.
pub(crate) fn door(amount: Amount, table: &mut Table) {
    let door = Door::new();
    let atomic = AtomicU64::new(0);
    let each = |use_it: &dyn Fn()| {
        let began = Instant::now();
        use_it();
        began.elapsed().as_secs_f64() * 1e9 / f64::from(USES)
    };
    let mut enter = Vec::new();
    let mut check = Vec::new();
    let mut load = Vec::new();
    for _ in 0..amount.rounds {
        load.push(each(&|| {
            (0..USES).for_each(|_| {
                black_box(black_box(&atomic).load(Ordering::SeqCst));
            })
        }));
        check.push(each(&|| {
            (0..USES).for_each(|_| {
                black_box(black_box(&door).is_shut());
            })
        }));
        enter.push(each(&|| {
            (0..USES).for_each(|_| drop(black_box(&door).enter()))
        }));
    }
    let load = median(&load);
    table.ratio(
        "capability check: is it shut, floor an atomic load",
        (median(&check), load),
        "ns",
        Some(10.0),
    );
    table.figure(
        "  a whole use: entered, counted, dated, left",
        median(&enter),
        "ns",
        Some(100.0),
    );
}

/// A gate point where nobody stands.
pub(crate) fn gates(amount: Amount, table: &mut Table) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let callbacks = Callbacks::new(runtime.handle().clone());
    let hooks = HookRegistryBuilder::new().build();
    let view = || RequestView {
        turn: 1,
        number: 1,
        items: 0,
    };
    let mut asked = Vec::new();
    let mut nothing = Vec::new();
    for _ in 0..amount.rounds {
        let began = Instant::now();
        runtime.block_on(async {
            for _ in 0..USES {
                drop(black_box(
                    hooks.decide::<PreRequest>(&callbacks, view).await,
                ));
            }
        });
        asked.push(began.elapsed().as_secs_f64() * 1e9 / f64::from(USES));
        let began = Instant::now();
        runtime.block_on(async {
            for _ in 0..USES {
                black_box(std::future::ready(())).await;
            }
        });
        nothing.push(began.elapsed().as_secs_f64() * 1e9 / f64::from(USES));
    }
    let pair = (median(&asked), median(&nothing));
    table.ratio(
        "gate point without hooks, floor a ready future",
        pair,
        "ns",
        None,
    );
}
