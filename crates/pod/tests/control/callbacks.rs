//! Foreign code that panics, spins, or never comes back.

use crate::aggregate_bounds::{ENOUGH_TO_BEGIN, Of};
use crate::fixtures::{echo, pod, said, sound};
use llm_worker::{ResultStatus, ToolEffect};
use pod::control::{CallbackFailure, Callbacks, Fatal};
use pod::feature::HostCapability;
use pod::foreign::MAX_STUCK;
use pod::host::HostError;
use pod::record::Record;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use testkit::{FnTool, Latch, RunEnd, ScriptedAnswer, within};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

fn runtime() -> (Runtime, Callbacks) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let callbacks = Callbacks::with_grace(runtime.handle().clone(), SHORT);
    (runtime, callbacks)
}

#[test]
fn a_callback_ends_as_a_value_whatever_it_does() {
    let (runtime, callbacks) = runtime();
    let cancelled = || {
        let token = CancellationToken::new();
        token.cancel();
        token
    };
    let run = |deadline,
               token: CancellationToken,
               work: Box<dyn FnOnce(CancellationToken) -> u32 + Send>| {
        let callbacks = callbacks.clone();
        let inner = token.clone();
        runtime.block_on(async move {
            callbacks
                .run(deadline, token, async move { work(inner) })
                .await
        })
    };
    let forever = |token: CancellationToken| {
        while !token.is_cancelled() {
            std::thread::yield_now();
        }
        7
    };
    assert_eq!(run(LONG, CancellationToken::new(), Box::new(|_| 1)), Ok(1));
    let panicked = |text: &str| Err(CallbackFailure::Panicked(text.to_owned()));
    assert_eq!(
        run(
            LONG,
            CancellationToken::new(),
            Box::new(|_| panic!("static"))
        ),
        panicked("static")
    );
    assert_eq!(
        run(
            LONG,
            CancellationToken::new(),
            Box::new(|_| panic!("with {}", 1))
        ),
        panicked("with 1")
    );
    let odd = || std::panic::resume_unwind(Box::new(1));
    assert_eq!(
        run(LONG, CancellationToken::new(), Box::new(move |_| odd())),
        panicked("no message")
    );
    // Past its deadline, or cancelled before, it still has its grace.
    assert_eq!(
        run(SHORT, CancellationToken::new(), Box::new(forever)),
        Ok(7)
    );
    assert_eq!(run(LONG, cancelled(), Box::new(forever)), Ok(7));
    assert_eq!(callbacks.stuck(), 0);
}

#[test]
fn a_callback_that_ignores_cancel_is_stuck_until_it_returns() {
    let (runtime, callbacks) = runtime();
    let gate = Latch::new("stuck");
    for (at, cancel_first) in [(1, false), (2, true)] {
        let token = CancellationToken::new();
        if cancel_first {
            token.cancel();
        }
        let held = gate.clone();
        let lost = runtime.block_on(async {
            callbacks
                .run(
                    if cancel_first { LONG } else { SHORT },
                    token.clone(),
                    async move { held.pass_blocking() },
                )
                .await
        });
        assert_eq!(
            (lost, callbacks.stuck(), token.is_cancelled()),
            (Err(CallbackFailure::Stuck(SHORT)), at, true)
        );
    }
    gate.open();
    within("threads that come back count again", {
        let callbacks = callbacks.clone();
        move || {
            runtime.block_on(async {
                while callbacks.stuck() > 0 {
                    tokio::task::yield_now().await;
                }
            });
        }
    });
}

/// The control thread's own work goes on beside a callback that spins: it is what ends the spinning.
#[test]
fn a_callback_that_spins_does_not_hold_the_control_thread() {
    let (runtime, callbacks) = runtime();
    let beats = within("a spinning callback", move || {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let beats = Arc::new(AtomicUsize::new(0));
        let spin = async move {
            while !seen.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
        };
        let counted = Arc::clone(&beats);
        runtime.block_on(async {
            let spinning = callbacks.run(LONG, CancellationToken::new(), spin);
            let heart = async {
                for _ in 0..1000 {
                    tokio::task::yield_now().await;
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                stop.store(true, Ordering::SeqCst);
            };
            let (done, ()) = tokio::join!(spinning, heart);
            done.unwrap();
        });
        beats.load(Ordering::SeqCst)
    });
    assert_eq!(beats, 1000);
}

/// Results of a pod's calls as status and text.
fn outcomes(log: &[(u64, Record)]) -> Vec<(ResultStatus, String)> {
    let finished = |(_, record): &(u64, Record)| match record {
        Record::ToolFinished(finished) => Some((finished.outcome.status, finished.outcome.text())),
        _ => None,
    };
    log.iter().filter_map(finished).collect()
}

#[test]
fn a_tool_that_misbehaves_has_a_result_and_the_turn_goes_on() {
    let gate = Latch::new("never");
    let held = gate.clone();
    let panics = FnTool::new("Panics", ToolEffect::ReadOnly, |_, _| async {
        panic!("boom")
    });
    let sleeps = FnTool::new("Sleeps", ToolEffect::ReadOnly, move |_, _| {
        let held = held.clone();
        async move {
            held.pass().await;
            said("woke")
        }
    });
    let late = FnTool::new("Late", ToolEffect::ReadOnly, |cx, _| async move {
        cx.cancel.cancelled().await;
        said("just in time")
    });
    let spins = {
        let gate = gate.clone();
        FnTool::new("Spins", ToolEffect::ReadOnly, move |_, _| {
            let gate = gate.clone();
            async move {
                gate.pass_blocking();
                said("dizzy")
            }
        })
    };
    let stuck = format!(
        "the tool failed: it did not stop within {SHORT:?} of being cancelled and was abandoned"
    );
    let cases = [
        (
            panics,
            ResultStatus::Error,
            "the tool failed: it panicked: boom".to_owned(),
        ),
        (sleeps.deadline(SHORT), ResultStatus::Error, stuck.clone()),
        (spins.deadline(SHORT), ResultStatus::Error, stuck),
        (
            late.deadline(SHORT),
            ResultStatus::Ok,
            "just in time".to_owned(),
        ),
    ];
    for (tool, status, text) in cases {
        let name = llm_worker::Tool::definition(&tool).name.clone();
        let mut pod = pod(
            vec![
                ScriptedAnswer::calls(&[(&name, "{}")]),
                ScriptedAnswer::text("went on"),
            ],
            vec![tool],
        );
        (pod.grace, pod.paused) = (SHORT, false);
        let pod = within(&name.clone(), move || {
            assert_eq!(pod.run("first").end().answer.as_deref(), Some("went on"));
            pod
        });
        assert_eq!(outcomes(&pod.records()), [(status, text)], "{name}");
        sound(&pod, &name);
    }
    gate.open();
}

/// Who only waits can be dropped where it stands: that costs no thread, and what it holds is let go.
#[test]
fn one_that_ignores_its_cancel_and_waits_gives_its_thread_back() {
    let (runtime, callbacks) = runtime();
    let held = Arc::new(());
    for _ in 0..3 {
        let holds = Arc::clone(&held);
        let forever = async move {
            std::future::pending::<()>().await;
            drop(holds);
        };
        let lost = runtime.block_on(async {
            callbacks
                .run(SHORT, CancellationToken::new(), forever)
                .await
        });
        assert_eq!(
            (lost, callbacks.stuck(), Arc::strong_count(&held)),
            (Err(CallbackFailure::Stuck(SHORT)), 0, 1)
        );
    }
}

#[test]
fn too_many_stuck_threads_end_the_pod() {
    let gate = Latch::new("stuck");
    let stuck = |name: &str| {
        let held = gate.clone();
        FnTool::new(name, ToolEffect::Effectful, move |_, _| {
            let held = held.clone();
            async move {
                held.pass_blocking();
                said("never said")
            }
        })
    };
    // Each of a feature of its own: one that hangs is not called again.
    let names: Vec<String> = (0..MAX_STUCK).map(|n| format!("Stuck{n}")).collect();
    let calls: Vec<_> = names.iter().map(|name| (name.as_str(), "{}")).collect();
    for (many, ends) in [(MAX_STUCK - 1, false), (MAX_STUCK, true)] {
        let answers = vec![
            ScriptedAnswer::calls(&calls[..many]),
            ScriptedAnswer::text("went on"),
        ];
        let mut pod = pod(answers, vec![echo("Echo", ToolEffect::ReadOnly)]);
        for (n, name) in names.iter().enumerate() {
            let feature = Of(
                format!("user:stuck-{n}").parse().unwrap(),
                vec![Arc::new(stuck(name))],
                ENOUGH_TO_BEGIN,
            );
            pod.features
                .push((Arc::new(feature), vec![HostCapability::tool("*")]));
        }
        (pod.grace, pod.paused, pod.limits.tool_concurrency) = (SHORT, false, MAX_STUCK);
        let (pod, ran) = within("stuck", move || {
            let ran = pod.run("first");
            (pod, ran)
        });
        assert_eq!(
            matches!(ran.how, RunEnd::Failed(HostError::Fatal(Fatal::Stuck))),
            ends,
            "{many}: {:?}",
            ran.how
        );
        assert_eq!(matches!(ran.how, RunEnd::Ended(_)), !ends, "{many}");
        crate::fixtures::told_what_is_durable(&ran, &pod.records(), 0, "stuck");
        pod.script.add(ScriptedAnswer::text("again"));
        pod.script.add(ScriptedAnswer::text("again"));
        pod.run("second").end();
        sound(&pod, "stuck");
    }
    gate.open();
}

/// Opens its gate when it goes, however that comes about.
struct Opens(Latch);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A call that was written off has its result; it gets no leave to change a file any more, and ends where it waits.
#[test]
fn a_call_that_was_written_off_changes_nothing_any_more() {
    let gate = Latch::new("written off");
    let asked = Latch::new("asked");
    let changed = crate::fixtures::Changed::default();
    let late = {
        let gate = gate.clone();
        let asked = asked.clone();
        let changed = Arc::clone(&changed);
        FnTool::new("Late", ToolEffect::Effectful, move |cx, arguments| {
            let gate = gate.clone();
            let asked = asked.clone();
            let inner = crate::fixtures::changer("Inner", &changed);
            async move {
                let _asked = Opens(asked);
                gate.pass_blocking();
                llm_worker::Tool::prepare(&inner, &arguments)
                    .unwrap()
                    .run(cx)
                    .await
            }
        })
        .deadline(SHORT)
    };
    // The answer behind it waits until the late one has asked.
    let done = ScriptedAnswer::new()
        .wait_at(&asked)
        .say("done")
        .stop(llm_worker::StopReason::EndTurn);
    let mut pod = pod(
        vec![ScriptedAnswer::calls(&[("Late", "{}")]), done],
        vec![late],
    );
    (pod.grace, pod.paused) = (SHORT, false);
    pod.points.at("tool:ended", 0, move || gate.open());
    let pod = within("a late change", move || {
        pod.run("first").end();
        pod
    });
    assert!(changed.lock().unwrap().is_empty());
    assert!(
        !pod.records()
            .iter()
            .any(|(_, record)| matches!(record, Record::FileChanged(_)))
    );
}
