//! One pass over a chain: the one place where hooks run. Gates, transforms and observers differ only in the rule
//! that says what an answer means for the hooks behind it.
//!
//! The pass is one hop to a callback thread, which asks the hooks in order and reports each answer. An answer that
//! is late is void, also when the hook held its thread and then answered. A hook that holds it past its deadline
//! loses the thread; those behind it go on in a new one.

use super::chain::Slot;
use super::limits::CHAIN_BUDGET;
use super::point::HookClass;
use super::typed::Point;
use crate::foreign::{Callbacks, attribution, under, words};
use authority::{Door, Shut};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How much later than its deadline a hook's thread is given up: time to be woken and to report.
const SLACK: Duration = Duration::from_millis(100);

/// Why a hook whose grant was taken back says nothing.
const REVOKED: &str = "its grant was revoked";

/// What an answer means for the rest of the pass.
pub(super) enum Next<I> {
    /// The next hook sees the same.
    Same,
    /// The next hook sees this.
    With(Arc<I>),
    /// Nobody else is asked.
    Stop,
    /// The answer will not do: it counts as a failure.
    Reject(String),
}

/// Reads an answer.
pub(super) type Rule<P> =
    Arc<dyn Fn(&<P as Point>::Input, &<P as Point>::Answer) -> Next<<P as Point>::Input> + Send + Sync>;

/// What came of one hook.
pub(super) struct Ran<P: Point> {
    pub(super) slot: Arc<Slot<P>>,
    pub(super) took: Duration,
    pub(super) came: Result<P::Answer, String>,
    /// Whether it had a chance to answer.
    pub(super) asked: bool,
    /// The input it put in place of the one it saw.
    pub(super) replaced: Option<Arc<P::Input>>,
}

/// What the thread reports.
enum Said<P: Point> {
    Began,
    Ended { took: Duration, came: Result<P::Answer, String>, asked: bool, replaced: Option<Arc<P::Input>>, stop: bool },
}

/// How far a thread came.
enum Heard {
    Finished,
    /// The first hook left did not answer.
    Lost {
        problem: String,
        took: Duration,
        held: bool,
    },
}

/// Asks `slots` in order; answers what each said and the last input.
pub(super) async fn pass<P: Point>(
    callbacks: &Callbacks,
    slots: Vec<Arc<Slot<P>>>,
    mut input: Arc<P::Input>,
    rule: Rule<P>,
) -> (Vec<Ran<P>>, Arc<P::Input>) {
    let until = Instant::now() + CHAIN_BUDGET;
    let mut left = VecDeque::from(slots);
    let mut ran = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let (say, mut said) = mpsc::channel(2 * left.len());
        let cancel = CancellationToken::new();
        let work =
            ask(left.iter().cloned().collect(), Arc::clone(&input), Arc::clone(&rule), say, until, callbacks.clone());
        let hop = callbacks.run(CHAIN_BUDGET + SLACK, cancel.clone(), work);
        // Watched to its end, so that a thread that never comes back is counted.
        let watched = tokio::spawn(hop);
        match listen(&mut said, &mut left, &mut input, &mut ran, until).await {
            Heard::Finished => break,
            Heard::Lost { problem, took, held } => {
                cancel.cancel();
                drop(watched);
                let Some(slot) = left.pop_front() else { break };
                if held {
                    write_off(&slot, said, callbacks);
                }
                ran.push(Ran { slot, took, came: Err(problem), asked: true, replaced: None });
                if P::CLASS == HookClass::Gate {
                    break;
                }
            }
        }
    }
    (ran, input)
}

/// Remembers that a call of this hook is still out, unless its report came in the last moment.
fn write_off<P: Point>(slot: &Slot<P>, mut said: mpsc::Receiver<Said<P>>, callbacks: &Callbacks) {
    slot.gone();
    callbacks.late(&slot.feature);
    said.close();
    if said.try_recv().is_ok() {
        slot.returned();
        callbacks.back(&slot.feature);
    }
}

/// Takes the reports of one thread until it is done or one is late.
async fn listen<P: Point>(
    said: &mut mpsc::Receiver<Said<P>>,
    left: &mut VecDeque<Arc<Slot<P>>>,
    input: &mut Arc<P::Input>,
    ran: &mut Vec<Ran<P>>,
    until: Instant,
) -> Heard {
    let mut began = None;
    loop {
        let Some(slot) = left.front() else { return Heard::Finished };
        let rest = until.saturating_duration_since(Instant::now());
        let limit = if began.is_some() { slot.deadline.min(rest) } else { rest };
        let report = tokio::time::timeout(limit + SLACK, said.recv()).await;
        let took = began.map_or(Duration::ZERO, |began: Instant| began.elapsed());
        match report {
            Ok(Some(Said::Began)) => began = Some(Instant::now()),
            Ok(Some(Said::Ended { took, came, asked, replaced, stop })) => {
                began = None;
                if let Some(next) = &replaced {
                    *input = Arc::clone(next);
                }
                let Some(slot) = left.pop_front() else { return Heard::Finished };
                ran.push(Ran { slot, took, came, asked, replaced });
                if stop {
                    return Heard::Finished;
                }
            }
            Ok(None) => {
                return Heard::Lost { problem: "its thread ended without an answer".to_owned(), took, held: false };
            }
            Err(_elapsed) if began.is_some() => {
                let problem = format!("it did not answer within {limit:?} and was given up after {took:.1?}");
                return Heard::Lost { problem, took, held: true };
            }
            Err(_elapsed) => {
                let problem = format!("no thread was free for it within the {CHAIN_BUDGET:?} of its chain");
                return Heard::Lost { problem, took, held: false };
            }
        }
    }
}

/// The thread's part.
async fn ask<P: Point>(
    slots: Vec<Arc<Slot<P>>>,
    mut input: Arc<P::Input>,
    rule: Rule<P>,
    say: mpsc::Sender<Said<P>>,
    until: Instant,
    callbacks: Callbacks,
) {
    for slot in slots {
        if say.send(Said::Began).await.is_err() {
            return;
        }
        let barred = barred(&slot, &callbacks);
        let asked = barred.is_none();
        let (took, came) = match barred {
            Some(why) => (Duration::ZERO, Err(why.to_owned())),
            None => ask_one(&slot, &input, until).await,
        };
        let (came, replaced, stop) = match came {
            Err(problem) => (Err(problem), None, P::CLASS == HookClass::Gate),
            Ok(answer) => match rule(&input, &answer) {
                Next::Same => (Ok(answer), None, false),
                Next::With(next) => (Ok(answer), Some(next), false),
                Next::Stop => (Ok(answer), None, true),
                Next::Reject(problem) => (Err(problem), None, false),
            },
        };
        if let Some(next) = &replaced {
            input = Arc::clone(next);
        }
        if say.send(Said::Ended { took, came, asked, replaced, stop }).await.is_err() {
            slot.returned();
            callbacks.back(&slot.feature);
            let name = &slot.name;
            let text = format!("hook `{name}` answered after {took:.1?}, when it had been given up; nobody heard it");
            callbacks.note(slot.feature.clone(), text);
            return;
        }
        if stop {
            return;
        }
    }
}

/// Why a hook is not asked: it, or another of its feature, would only lose one more thread. A gate has a say whatever
/// becomes of the others.
fn barred<P: Point>(slot: &Slot<P>, callbacks: &Callbacks) -> Option<&'static str> {
    if callbacks.is_off(&slot.feature.to_string()) {
        return Some("its feature is off: code of it never came back");
    }
    if slot.is_revoked() {
        return Some(REVOKED);
    }
    if slot.is_lost() {
        return Some("an earlier call of it has not come back; it is not asked again until it does");
    }
    let spared = P::CLASS != HookClass::Gate && callbacks.is_late(&slot.feature);
    spared.then_some("another hook of its feature has not come back; it is not asked until that does")
}

async fn ask_one<P: Point>(slot: &Slot<P>, input: &P::Input, until: Instant) -> (Duration, Result<P::Answer, String>) {
    let limit = slot.deadline.min(until.saturating_duration_since(Instant::now()));
    if limit.is_zero() {
        return (Duration::ZERO, Err(format!("the {CHAIN_BUDGET:?} of its chain were used up before it was asked")));
    }
    attribution::own(&slot.feature);
    let began = Instant::now();
    let answer = tokio::time::timeout(limit, behind(&slot.doors, contained(slot.hook.call(input)))).await;
    let took = began.elapsed();
    let came = match answer {
        Err(_elapsed) => Err(format!("it did not answer within {limit:?} and was given up after {took:.1?}")),
        Ok(Err(Broke::Panicked(words))) => Err(format!("it panicked after {took:.1?}: {words}")),
        Ok(Err(Broke::Revoked)) => Err(REVOKED.to_owned()),
        // The timer polls the work first: a hook that held its thread is seen to be late only here.
        Ok(Ok(_)) if took > limit => Err(format!("it answered after {took:.1?}, past its deadline of {limit:?}")),
        Ok(Ok(answer)) => Ok(answer),
    };
    (took, came)
}

/// Why a hook that was asked has no answer.
enum Broke {
    Panicked(String),
    /// A grant that it stands under was taken back.
    Revoked,
}

/// Asks behind all of these doors. There are few: one for the point, and where tools are named one for them.
fn behind<'a, T: Send + 'a>(
    doors: &'a [Arc<Door>],
    work: impl Future<Output = Result<T, Broke>> + Send + 'a,
) -> Pin<Box<dyn Future<Output = Result<T, Broke>> + Send + 'a>> {
    doors.iter().fold(Box::pin(work), |work, door| {
        Box::pin(async move { under(door, work).await.unwrap_or_else(|Shut| Err(Broke::Revoked)) })
    })
}

/// Turns a panic at any poll into its message.
async fn contained<T>(work: impl Future<Output = T>) -> Result<T, Broke> {
    let mut work = pin!(work);
    std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Err(panic) => Poll::Ready(Err(Broke::Panicked(words(&*panic)))),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::FeatureId;
    use crate::hook::{HookRegistryBuilder, PreRequest, RequestView, Ruling, Verdict};
    use crate::mailbox::requests::{Mail, Method, inbox};
    use std::sync::mpsc;

    // A gate holds its thread far past its deadline and then allows: it was denied long ago, nobody hears it, and the
    // pod notes that it came.
    #[test]
    fn an_answer_that_comes_after_its_hook_was_given_up_is_noted_and_void() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (mut mail, line) = inbox();
        let callbacks = Callbacks::with_grace(runtime.handle().clone(), Duration::from_millis(10));
        let callbacks = callbacks.serving(line, |_| ());
        let (open, gate) = mpsc::channel::<()>();
        let gate = std::sync::Mutex::new(gate);
        let hook = move |_: &RequestView| {
            gate.lock().unwrap().recv().unwrap();
            Verdict::<PreRequest>::allow()
        };
        let feature = FeatureId::builtin("sleeper");
        let mut slot = Slot::<PreRequest>::new(feature.clone(), "sleepy", Arc::new(hook));
        slot.deadline = Duration::from_millis(20);
        let mut hooks = HookRegistryBuilder::new();
        hooks.add(slot);
        let hooks = hooks.build();
        runtime.block_on(async {
            let view = || RequestView { turn: 1, number: 1, items: 0 };
            let passed = hooks.decide::<PreRequest>(&callbacks, view).await;
            assert!(matches!(passed.ruling, Ruling::Abort { .. }), "{passed:?}");
            let Mail::Asked(Method::Off { feature: whose }) = mail.next().await else { panic!("still on") };
            assert_eq!(whose, feature);
            open.send(()).unwrap();
            let Mail::Asked(Method::Note { feature: whose, text }) = mail.next().await else { panic!("no note") };
            assert_eq!(whose, feature);
            assert!(text.contains("`sleepy` answered after") && text.contains("nobody heard it"), "{text}");
        });
    }
}
