//! Runs the hooks of a chain; no other code runs hooks. Gates, transforms and observers differ only in a function
//! that says what an answer means for the hooks behind it. It knows no point.
//!
//! Each hook is called on a callback thread. An answer after the deadline is void, and the next hooks do not wait
//! for that thread.

use super::chain::InstalledHook;
use super::limits::CHAIN_BUDGET;
use super::point::HookClass;
use super::typed::Point;
use crate::foreign::{Broke, Callbacks, contained};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// How much later than its deadline a hook's thread is given up: time to be woken and to report.
const SLACK: Duration = Duration::from_millis(100);

/// A hook that takes so long stands in the log of the host: every turn that meets it waits for it.
const SLOW: Duration = Duration::from_millis(500);

/// Why a hook whose grant was taken back says nothing.
const REVOKED: &str = "its grant was revoked";

/// What an answer means for the rest of the pass.
pub(super) enum Next<I> {
    Same,
    With(Arc<I>),
    Stop,
    /// The answer will not do: it counts as a failure.
    Reject(String),
}

/// Says what an answer means for the hooks behind it.
pub(super) type Interpret<P> =
    Arc<dyn Fn(&<P as Point>::Input, &<P as Point>::Answer) -> Next<<P as Point>::Input> + Send + Sync>;

/// One hook that was run.
pub(super) struct HookRun<P: Point> {
    pub(super) hook: Arc<InstalledHook<P>>,
    pub(super) took: Duration,
    pub(super) answer: Result<P::Answer, String>,
    /// Whether it had a chance to answer.
    pub(super) asked: bool,
    /// The input it put in place of the one it saw.
    pub(super) replaced: Option<Arc<P::Input>>,
}

/// What a hook's thread reports: the time it took, and the answer with its meaning for the hooks behind it.
type HookReport<P> = (Duration, Result<(<P as Point>::Answer, Next<<P as Point>::Input>), String>);

/// Asks `hooks` in order; answers what each said and the last input.
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
            let (feature, name, failed) = (&hook.feature, &*hook.name, ended.is_err());
            warn!(%feature, hook = name, ?took, failed, "a hook was slow or failed");
        }
        let mut replaced = None;
        let (answer, stop) = match ended {
            Err(problem) => (Err(problem), P::CLASS == HookClass::Gate),
            Ok((_, Next::Reject(problem))) => (Err(problem), false),
            Ok((answer, Next::Same)) => (Ok(answer), false),
            Ok((answer, Next::Stop)) => (Ok(answer), true),
            Ok((answer, Next::With(next))) => {
                input = Arc::clone(&next);
                replaced = Some(next);
                (Ok(answer), false)
            }
        };
        runs.push(HookRun { hook, took, answer, asked, replaced });
        if stop {
            break;
        }
    }
    (runs, input)
}

/// Why a hook is not asked: it, or another of its feature, would only lose one more thread. A gate has a say whatever
/// becomes of the others.
fn barred<P: Point>(hook: &InstalledHook<P>, callbacks: &Callbacks) -> Option<&'static str> {
    if callbacks.is_disabled(&hook.feature) {
        return Some("its feature is disabled: its code did not return");
    }
    if hook.is_revoked() {
        return Some(REVOKED);
    }
    if hook.has_abandoned_call() {
        return Some("an earlier call of it has not come back; it is not asked again until it does");
    }
    let spared = P::CLASS != HookClass::Gate && callbacks.has_overdue_thread(&hook.feature);
    spared.then_some("another hook of its feature has not come back; it is not asked until that does")
}

/// Has one hook asked on a thread, and waits no longer than its deadline.
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
        let (callbacks, hook, input, interpret) =
            (callbacks.clone(), Arc::clone(hook), Arc::clone(input), Arc::clone(interpret));
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
                let text =
                    format!("hook `{name}` answered after {took:.1?}, when it had been given up; nobody heard it");
                callbacks.note(hook.feature.clone(), text);
            }
        }
    };
    let cancel = CancellationToken::new();
    // Watched to its end, so that a thread that never comes back is counted.
    drop(tokio::spawn(callbacks.run(CHAIN_BUDGET + SLACK, cancel.clone(), work)));
    let rest = || until.saturating_duration_since(Instant::now());
    let ended = || "its thread ended without an answer".to_owned();
    let began: Instant = match timeout(rest() + SLACK, begun).await {
        Ok(Ok(began)) => began,
        Ok(Err(_gone)) => return (Duration::ZERO, Err(ended())),
        Err(_elapsed) => {
            cancel.cancel();
            return (
                Duration::ZERO,
                Err(format!("no thread was free for it within the {CHAIN_BUDGET:?} of its chain")),
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
    // It may have come in the last moment.
    if report.try_recv().is_ok() {
        hook.call_returned();
        callbacks.remove_overdue_thread(&hook.feature);
    }
    (took, Err(format!("it did not answer within {limit:?} and was given up after {took:.1?}")))
}

/// What a hook says, or why it says nothing; and how long that took.
async fn answer<P: Point>(
    hook: &InstalledHook<P>,
    input: &P::Input,
    until: Instant,
) -> (Duration, Result<P::Answer, String>) {
    let limit = hook.deadline.min(until.saturating_duration_since(Instant::now()));
    if limit.is_zero() {
        return (Duration::ZERO, Err(format!("the {CHAIN_BUDGET:?} of its chain were used up before it was asked")));
    }
    let began = Instant::now();
    let answer = timeout(limit, contained(&hook.feature, &hook.doors, hook.code.call(input))).await;
    let took = began.elapsed();
    let answer = match answer {
        Err(_elapsed) => Err(format!("it did not answer within {limit:?} and was given up after {took:.1?}")),
        Ok(Err(Broke::Panicked(words))) => Err(format!("it panicked after {took:.1?}: {words}")),
        Ok(Err(Broke::Revoked)) => Err(REVOKED.to_owned()),
        // The timer polls the work first: a hook that held its thread is seen to be late only here.
        Ok(Ok(_)) if took > limit => Err(format!("it answered after {took:.1?}, past its deadline of {limit:?}")),
        Ok(Ok(answer)) => Ok(answer),
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

    // A gate holds its thread far past its deadline and then allows: it was denied long ago, nobody hears it, and the
    // pod notes that it came.
    #[test]
    fn a_late_answer_of_a_hook_is_noted_and_void() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
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
            let view = || RequestView { turn: 1, number: 1, items: 0 };
            let passed = hooks.decide::<PreRequest>(&callbacks, view).await;
            assert!(matches!(passed.decision, Decision::Abort { .. }), "{passed:?}");
            let Wakeup::Request(DriverRequest::FeatureDisabled { feature: whose }) = events.next().await else {
                panic!("still on")
            };
            assert_eq!(whose, feature);
            open.send(()).unwrap();
            let Wakeup::Request(DriverRequest::Note { feature: whose, text }) = events.next().await else {
                panic!("no note")
            };
            assert_eq!(whose, feature);
            assert!(text.contains("`sleepy` answered after") && text.contains("nobody heard it"), "{text}");
        });
    }
}
