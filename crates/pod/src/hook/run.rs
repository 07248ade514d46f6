//! Runs the hooks of a chain; no other code runs hooks. Gates, transforms and observers differ only in a function that
//! interprets an answer for the hooks that follow. Depends on no particular point.
//!
//! Each hook is called on a callback thread. An answer after the deadline is ignored, and the next hooks do not wait
//! for that thread.

use super::chain::InstalledHook;
use super::limits::CHAIN_BUDGET;
use super::point::HookClass;
use super::private;
use super::typed::Point;
use crate::foreign::{Broke, Callbacks, contained};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Time between a hook's deadline and the moment its thread is abandoned: the thread must wake up and report.
const SLACK: Duration = Duration::from_millis(100);

/// A hook that takes this long is logged in the log of the host: every turn that calls it waits for it.
const SLOW: Duration = Duration::from_millis(500);

/// The problem of a hook that is skipped because its grant was revoked.
const REVOKED: &str = "its grant was revoked";

/// The effect of an answer on the rest of the chain.
pub(super) enum Next<I> {
    Same,
    With(Arc<I>),
    /// The replacement is an answer: it ends the chain.
    Last(Arc<I>),
    Stop,
    /// The answer is not valid: it counts as a failure.
    Reject(String),
}

/// Interprets an answer for the hooks that follow.
pub(super) type Interpret<P> = Arc<
    dyn Fn(&<P as Point>::Input, &<P as Point>::Answer) -> Next<<P as Point>::Input> + Send + Sync,
>;

/// The result of one hook of a chain, or of skipping it.
pub(super) struct HookRun<P: Point> {
    pub(super) hook: Arc<InstalledHook<P>>,
    pub(super) took: Duration,
    pub(super) answer: Result<P::Answer, String>,
    /// Whether the hook was called; it may have been skipped.
    pub(super) asked: bool,
    /// The hook's replacement of its input.
    pub(super) replaced: Option<Arc<P::Input>>,
}

/// The report of a hook's thread: the time taken, and the answer with its effect on the hooks that follow.
type HookReport<P> = (
    Duration,
    Result<(<P as Point>::Answer, Next<<P as Point>::Input>), String>,
);

/// Calls `hooks` in order. Returns the result of each and the last input.
pub(super) async fn run<P: Point>(
    callbacks: &Callbacks,
    hooks: Vec<Arc<InstalledHook<P>>>,
    mut input: Arc<P::Input>,
    interpret: Interpret<P>,
) -> (Vec<HookRun<P>>, Arc<P::Input>) {
    let until = Instant::now() + CHAIN_BUDGET;
    let mut runs = Vec::with_capacity(hooks.len());
    for hook in hooks {
        let barred = barred(&hook, callbacks);
        let asked = barred.is_none();
        let (took, ended) = match barred {
            Some(why) => (Duration::ZERO, Err(why.to_owned())),
            None => ask(callbacks, &hook, &input, &interpret, until).await,
        };
        if asked && (ended.is_err() || took >= SLOW) {
            let feature = &hook.feature;
            let name = &*hook.name;
            let failed = ended.is_err();
            warn!(%feature, hook = name, ?took, failed, "a hook was slow or failed");
        }
        let mut replaced = None;
        let (answer, stop) = match ended {
            Err(problem) => (Err(problem), P::CLASS == HookClass::Gate || hook.withholds),
            Ok((_, Next::Reject(problem))) => (Err(problem), hook.withholds),
            Ok((answer, Next::Same)) => (Ok(answer), false),
            Ok((answer, Next::Stop)) => (Ok(answer), true),
            Ok((answer, Next::With(next))) => {
                input = Arc::clone(&next);
                replaced = Some(next);
                (Ok(answer), false)
            }
            Ok((answer, Next::Last(next))) => {
                input = Arc::clone(&next);
                replaced = Some(next);
                (Ok(answer), true)
            }
        };
        runs.push(HookRun {
            hook,
            took,
            answer,
            asked,
            replaced,
        });
        if stop {
            break;
        }
    }
    (runs, input)
}

/// The reason to skip a hook. A hook is skipped if an earlier call of the hook still blocks a thread. A transform or
/// observer is also skipped if another hook of the same feature blocks one. A late hook does not cause other gates to
/// be skipped.
fn barred<P: Point>(hook: &InstalledHook<P>, callbacks: &Callbacks) -> Option<&'static str> {
    if callbacks.is_disabled(&hook.feature) {
        return Some("its feature is disabled: its code did not return");
    }
    if hook.is_revoked() {
        return Some(REVOKED);
    }
    if hook.has_abandoned_call() {
        return Some(
            "an earlier call of it has not come back; it is not asked again until it does",
        );
    }
    let spared = P::CLASS != HookClass::Gate
        && !hook.withholds
        && callbacks.has_overdue_thread(&hook.feature);
    spared
        .then_some("another hook of its feature has not come back; it is not asked until that does")
}

/// Calls one hook on a callback thread, and waits for it until its deadline.
async fn ask<P: Point>(
    callbacks: &Callbacks,
    hook: &Arc<InstalledHook<P>>,
    input: &Arc<P::Input>,
    interpret: &Interpret<P>,
    until: Instant,
) -> HookReport<P> {
    let (begin, begun) = oneshot::channel();
    let (reply, mut report) = oneshot::channel();
    let work = {
        let callbacks = callbacks.clone();
        let hook = Arc::clone(hook);
        let input = Arc::clone(input);
        let interpret = Arc::clone(interpret);
        async move {
            if begin.send(Instant::now()).is_err() {
                return;
            }
            let (took, answer) = answer(&hook, &input, until).await;
            let answer = answer.map(|answer| {
                let next = interpret(&input, &answer);
                (answer, next)
            });
            if reply.send((took, answer)).is_err() {
                hook.call_returned();
                callbacks.remove_overdue_thread(&hook.feature);
                let name = &hook.name;
                let text = format!(
                    "hook `{name}` answered after {took:.1?}, after it had been abandoned; the answer was dropped"
                );
                callbacks.note(hook.feature.clone(), text);
            }
        }
    };
    let cancel = CancellationToken::new();
    // Awaited in a task, so that a thread that never returns is counted.
    drop(tokio::spawn(callbacks.run_with(
        CHAIN_BUDGET + SLACK,
        cancel.clone(),
        work,
        false,
    )));
    let rest = || until.saturating_duration_since(Instant::now());
    let ended = || "its thread ended without a result".to_owned();
    let began: Instant = match timeout(rest() + SLACK, begun).await {
        Ok(Ok(began)) => began,
        Ok(Err(_gone)) => return (Duration::ZERO, Err(ended())),
        Err(_elapsed) => {
            cancel.cancel();
            return (
                Duration::ZERO,
                Err(format!("no thread was free for it within {CHAIN_BUDGET:?}")),
            );
        }
    };
    let limit = hook.deadline.min(rest());
    if let Ok(report) = timeout(limit + SLACK, &mut report).await {
        return report.unwrap_or_else(|_gone| (began.elapsed(), Err(ended())));
    }
    let took = began.elapsed();
    cancel.cancel();
    hook.call_abandoned();
    callbacks.add_overdue_thread(&hook.feature);
    report.close();
    // The answer may have arrived just before the close.
    if report.try_recv().is_ok() {
        hook.call_returned();
        callbacks.remove_overdue_thread(&hook.feature);
    }
    (
        took,
        Err(format!(
            "it did not return within {limit:?} and was abandoned after {took:.1?}"
        )),
    )
}

/// The answer of a hook or its failure, and the time taken.
async fn answer<P: Point>(
    hook: &InstalledHook<P>,
    input: &P::Input,
    until: Instant,
) -> (Duration, Result<P::Answer, String>) {
    let limit = hook
        .deadline
        .min(until.saturating_duration_since(Instant::now()));
    if limit.is_zero() {
        return (
            Duration::ZERO,
            Err(format!(
                "the earlier hooks at this point used up the {CHAIN_BUDGET:?} for all of them"
            )),
        );
    }
    let began = Instant::now();
    let answer = {
        let _private = P::PRIVATE.then(private::begin);
        timeout(
            limit,
            contained(&hook.feature, &hook.doors, hook.code.call(input)),
        )
        .await
    };
    let took = began.elapsed();
    let answer = match answer {
        Err(_elapsed) => Err(format!(
            "it did not return within {limit:?} and was abandoned after {took:.1?}"
        )),
        // Its words may quote the value.
        Ok(Err(Broke::Panicked(_))) if P::PRIVATE => Err(format!("it panicked after {took:.1?}")),
        Ok(Err(Broke::Panicked(words))) => Err(format!("it panicked after {took:.1?}: {words}")),
        Ok(Err(Broke::Revoked)) => Err(REVOKED.to_owned()),
        // `timeout` polls the work first: a hook that blocked its thread past the deadline is detected only here.
        Ok(Ok(_)) if took > limit => Err(format!(
            "it returned after {took:.1?}, later than its deadline of {limit:?}"
        )),
        Ok(Ok(Err(failure))) => Err(format!("it failed: {failure}")),
        Ok(Ok(Ok(answer))) => Ok(answer),
    };
    (took, answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::FeatureId;
    use crate::hook::{HookRegistryBuilder, PreRequest, RequestView, Verdict};
    use crate::mailbox::requests::{DriverRequest, Wakeup, mailbox};
    use crate::record::Decision;
    use std::sync::mpsc;

    // A gate blocks its thread far past its deadline and then allows: the call was denied at the deadline, the late
    // answer is ignored, and the pod notes it.
    #[test]
    fn a_late_answer_of_a_hook_is_noted_and_void() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (mut events, sender) = mailbox();
        let callbacks = Callbacks::with_grace(runtime.handle().clone(), Duration::from_millis(10));
        let callbacks = callbacks.serving(sender, |_| ());
        let (open, gate) = mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let hook = move |_: &RequestView| {
            gate.lock().unwrap().recv().unwrap();
            Verdict::<PreRequest>::allow()
        };
        let feature = FeatureId::builtin("sleeper");
        let mut slot = InstalledHook::<PreRequest>::new(feature.clone(), "sleepy", Arc::new(hook));
        slot.deadline = Duration::from_millis(20);
        let mut hooks = HookRegistryBuilder::new();
        hooks.add(slot);
        let hooks = hooks.build();
        runtime.block_on(async {
            let view = || RequestView {
                turn: 1,
                number: 1,
                items: 0,
            };
            let passed = hooks.decide::<PreRequest>(&callbacks, view).await;
            assert!(
                matches!(passed.decision, Decision::Abort { .. }),
                "{passed:?}"
            );
            let Wakeup::Request(DriverRequest::FeatureDisabled { feature: whose }) =
                events.next().await
            else {
                panic!("still on")
            };
            assert_eq!(whose, feature);
            open.send(()).unwrap();
            let Wakeup::Request(DriverRequest::Note {
                feature: whose,
                text,
            }) = events.next().await
            else {
                panic!("no note")
            };
            assert_eq!(whose, feature);
            assert!(
                text.contains("`sleepy` answered after") && text.contains("the answer was dropped"),
                "{text}"
            );
        });
    }
}
