//! A pod that stays, on a control thread of its own: clients ask it from the test's thread, and it ends when it is closed
//! or killed.
//!
//! Time stands still on its control thread, so that no retry and no deadline comes unless the test advances it. Nothing
//! sleeps: the test waits for records and for latches.

use crate::clock::ManualClock;
use crate::latch::PATIENCE;
use crate::points::Killed;
use crate::rig::PodUnderTest;
use pod::control::{Activity, ActorEnd, Callbacks, Client, Event, Outbox, PodStatus};
use pod::foreign::MAX_THREADS;
use pod::host::{self, HostError};
use pod::record::Record;
use pod::session::fold::SessionState;
use pod::session::restore::{Restored, decode};
use session_store::{Journal, OpenError, Reader};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A live pod. The pod under test comes back from [`close`](Self::close) or [`wait`](Self::wait).
pub struct LivePod {
    /// Its parts: points, disk, script and files. Changes of its fields have no effect before the next start.
    pub pod: Arc<PodUnderTest>,
    client: Client,
    /// Runs the futures of clients on the test's thread.
    asks: Runtime,
    time: UnboundedSender<(Duration, oneshot::Sender<()>)>,
    control: JoinHandle<LiveEnd>,
    watcher: JoinHandle<Vec<Event>>,
}

/// How a live pod ended.
pub enum LiveEnd {
    Ended(Box<ActorEnd>),
    NotOpened(OpenError),
    Failed(HostError),
    Killed,
}

/// A pod that is not live any more.
pub struct Over {
    /// Ready for the next start.
    pub pod: PodUnderTest,
    pub end: LiveEnd,
    /// Everything that the watcher got.
    pub events: Vec<Event>,
}

impl Over {
    /// The reason why the pod ended, unless it stopped in good order.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        match &self.end {
            LiveEnd::Ended(end) => end.result.as_ref().err().map(ToString::to_string),
            LiveEnd::NotOpened(error) => Some(format!("not opened: {error}")),
            LiveEnd::Failed(error) => Some(format!("failed: {error}")),
            LiveEnd::Killed => Some("killed".to_owned()),
        }
    }

    /// The last live state; panics if the pod was killed or failed.
    #[must_use]
    pub fn state(&self) -> &SessionState {
        match (&self.end, self.failure()) {
            (LiveEnd::Ended(end), None) => &end.state,
            (_, failure) => panic!("{failure:?}"),
        }
    }
}

/// What the control thread hands to the test once the pod is open.
type Opened = (Client, UnboundedSender<(Duration, oneshot::Sender<()>)>);

impl LivePod {
    /// Opens the pod. Returns the pod under test if it did not open, or was killed before.
    ///
    /// # Errors
    /// A planned fault or kill came first.
    pub fn open(pod: PodUnderTest) -> Result<Self, Box<Over>> {
        Self::begin(pod, true)
    }

    /// As [`Self::open`], but time passes on its control thread: [`Self::advance`] cannot be used.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_in_real_time(pod: PodUnderTest) -> Result<Self, Box<Over>> {
        Self::begin(pod, false)
    }

    fn begin(pod: PodUnderTest, paused: bool) -> Result<Self, Box<Over>> {
        let pod = Arc::new(pod);
        let (outbox, mut events) = Outbox::watched();
        let watcher = thread::spawn(move || {
            let mut told = Vec::new();
            while let Some(event) = events.blocking_recv() {
                told.push(event);
            }
            told
        });
        let (opened, opening) = mpsc::channel();
        let served = Arc::clone(&pod);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("live-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let control = thread::Builder::new()
            .name(name.clone())
            .spawn(move || serve(&served, outbox, &opened, paused, &name))
            .expect("a thread");
        let asks = Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        match opening.recv() {
            Ok((client, time)) => Ok(Self {
                pod,
                client,
                asks,
                time,
                control,
                watcher,
            }),
            Err(_ended) => Err(Box::new(over(pod, control, watcher))),
        }
    }

    /// A client of the pod.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Waits for the answer of clients.
    ///
    /// # Panics
    /// It takes longer than [`PATIENCE`].
    pub fn ask<T>(&self, question: impl Future<Output = T>) -> T {
        let answer = async { tokio::time::timeout(PATIENCE, question).await };
        self.asks.block_on(answer).expect("an answer in time")
    }

    /// Waits until this holds of the pod, looking again at each record that is folded.
    ///
    /// # Panics
    /// The pod has ended, or it takes longer than [`PATIENCE`].
    pub fn until(&self, wanted: impl Fn(&PodStatus) -> bool) -> PodStatus {
        self.try_until(wanted).expect("a pod that lives")
    }

    /// As [`Self::until`]; none if the pod has ended.
    ///
    /// # Panics
    /// It takes longer than [`PATIENCE`].
    pub fn try_until(&self, wanted: impl Fn(&PodStatus) -> bool) -> Option<PodStatus> {
        let mut last = None;
        let found = async {
            let mut folded = self.client.folded();
            loop {
                folded.borrow_and_update();
                let status = self.client.status().await?;
                if wanted(&status) {
                    return Some(status);
                }
                last = Some(status);
                folded.changed().await.ok()?;
            }
        };
        let found = self
            .asks
            .block_on(async { tokio::time::timeout(PATIENCE, found).await });
        found.unwrap_or_else(|_| {
            panic!(
                "not in time: {last:?}, points: {:?}",
                self.pod.points.came()
            )
        })
    }

    /// Waits until nothing is outstanding: no turn runs or only one that is held, and nothing that waits will begin one.
    ///
    /// # Panics
    /// As [`Self::until`].
    pub fn settled(&self) -> PodStatus {
        self.until(|status| self.is_settled(status))
    }

    /// As [`Self::settled`]; none if the pod has ended.
    ///
    /// # Panics
    /// It takes longer than [`PATIENCE`].
    pub fn try_settled(&self) -> Option<PodStatus> {
        self.try_until(|status| self.is_settled(status))
    }

    /// Runs the background tasks that are due by the pod's clock, and waits until each run since the start has ended and
    /// its end is in the log.
    ///
    /// # Panics
    /// As [`Self::until`]; a run that does not end by itself, or whose end the disk refuses, takes longer.
    pub fn run_due(&self) -> PodStatus {
        self.try_run_due().expect("a pod that lives")
    }

    /// As [`Self::run_due`]; none if the pod has ended.
    ///
    /// # Panics
    /// As [`Self::run_due`], but for the end of the pod.
    pub fn try_run_due(&self) -> Option<PodStatus> {
        // What features have requested is taken before the answer.
        drop(self.ask(self.client.status()));
        self.try_until(|status| {
            let now_ms = self.pod.clock.now() / 1000;
            let ended = self
                .pod
                .points
                .came()
                .iter()
                .filter(|point| *point == "task:ended")
                .count();
            let mut tasks = status.tasks.iter();
            let rest = tasks
                .all(|task| task.run.is_none() && task.next_due_ms.is_none_or(|due| due > now_ms));
            rest && self.recorded_ends(status.folded) == ended
        })
    }

    /// The ends of this start's runs in the log up to this record.
    fn recorded_ends(&self, upto: u64) -> usize {
        self.pod
            .records()
            .into_iter()
            .filter(|(seq, _)| *seq <= upto)
            .fold(0, |ends, (_, record)| match record {
                Record::HostStarted(_) => 0,
                // Nothing ran of a run without a duration.
                Record::BackgroundTask(run) => ends + usize::from(run.ms.is_some()),
                _ => ends,
            })
    }

    fn is_settled(&self, status: &PodStatus) -> bool {
        match status.activity {
            Activity::Paused { .. } | Activity::Waiting { .. } => true,
            Activity::Idle if status.held.is_some() => true,
            Activity::Idle => {
                let state = self.folded(status.folded);
                let owed = state.is_interrupted()
                    || state.is_resumed_at_limit()
                    || state.notices.values().any(|n| n.wake);
                status.queued.is_empty() && !owed
            }
            Activity::Working { .. } | Activity::Closing => false,
        }
    }

    /// The state folded from the files up to this record.
    ///
    /// # Panics
    /// The files do not fold.
    #[must_use]
    pub fn folded(&self, upto: u64) -> SessionState {
        let mut restored = Restored::default();
        for frame in Reader::open(&self.pod.dir)
            .expect("a session")
            .upto(upto)
            .frames()
        {
            let frame = frame.expect("a whole frame");
            restored
                .take(frame.seq, frame.time, &decode(&frame).expect("a body"))
                .expect("a log that folds");
        }
        restored.state
    }

    /// Lets this much time pass for the pod: for retries and deadlines, and on its clock.
    ///
    /// # Panics
    /// The pod has ended.
    pub fn advance(&self, time: Duration) {
        self.try_advance(time).expect("a pod that lives");
    }

    /// As [`Self::advance`]; none if the pod has ended.
    pub fn try_advance(&self, time: Duration) -> Option<()> {
        let (passed, passes) = oneshot::channel();
        self.time.send((time, passed)).ok()?;
        // It may be what ends the pod.
        drop(self.ask(passes));
        Some(())
    }

    /// Closes the pod, and waits for its end.
    ///
    /// # Panics
    /// The control thread panics.
    #[must_use]
    pub fn close(self) -> Over {
        self.ask(self.client.close("closed by the test"));
        self.wait()
    }

    /// Waits for the end of a pod that was closed or killed.
    ///
    /// # Panics
    /// The control thread panics.
    #[must_use]
    pub fn wait(self) -> Over {
        let Self {
            pod,
            client,
            control,
            watcher,
            ..
        } = self;
        drop(client);
        over(pod, control, watcher)
    }
}

/// The control thread: it opens the pod, and runs it until it ends.
fn serve(
    pod: &PodUnderTest,
    outbox: Outbox,
    opened: &mpsc::Sender<Opened>,
    paused: bool,
    name: &str,
) -> LiveEnd {
    pod.points.start();
    let gone = pod.points.gone();
    let mut builder = Builder::new_current_thread();
    let runtime = builder
        .enable_all()
        .thread_name(name)
        .max_blocking_threads(MAX_THREADS + 1)
        .start_paused(paused)
        .build();
    let runtime = runtime.expect("a runtime");
    // Paused time advances by itself when nothing can run, but not beside a blocking task.
    let (live, stopped) = mpsc::channel::<()>();
    runtime.spawn_blocking(move || stopped.recv().ok());
    let mut journal = None;
    let done = catch_unwind(AssertUnwindSafe(|| {
        let resumed = match pod.resume() {
            Ok(resumed) => resumed,
            Err(error) => return LiveEnd::NotOpened(error),
        };
        journal = Some(resumed.0.journal.clone());
        runtime.block_on(async {
            let callbacks = Callbacks::with_grace(runtime.handle().clone(), pod.grace);
            let ready = match pod.opening(resumed) {
                Ok(opening) => {
                    let start = pod.start(&opening, outbox, callbacks);
                    tokio::select! {
                        biased;
                        () = gone.cancelled() => return LiveEnd::Killed,
                        ready = host::open(opening, start) => ready,
                    }
                }
                Err(error) => return LiveEnd::Failed(error),
            };
            let (actor, client, _) = match ready {
                Ok(ready) => ready,
                Err(error) => return LiveEnd::Failed(error),
            };
            let (time, passes) = unbounded_channel();
            tokio::spawn(advanced(pod.clock.clone(), passes, name.to_owned()));
            drop(opened.send((client, time)));
            tokio::select! {
                biased;
                () = gone.cancelled() => LiveEnd::Killed,
                end = actor.run(CancellationToken::new()) => LiveEnd::Ended(Box::new(end)),
            }
        })
    }));
    drop(live);
    let end = match done {
        Ok(end) => end,
        Err(panic) if panic.is::<Killed>() => LiveEnd::Killed,
        Err(panic) => resume_unwind(panic),
    };
    match end {
        // The threads of a killed process end, too.
        LiveEnd::Killed => runtime.shutdown_timeout(PATIENCE),
        _ => runtime.shutdown_background(),
    }
    // Ends its thread, which would write to the next start's files.
    journal.iter().for_each(Journal::close);
    if pod.points.killed() {
        LiveEnd::Killed
    } else {
        end
    }
}

/// Advances the time of the control thread when the test says so, once what the pod does comes to rest: the deadline of a
/// hook that has answered, and whose thread is still to end, is not to pass.
async fn advanced(
    clock: ManualClock,
    mut passes: UnboundedReceiver<(Duration, oneshot::Sender<()>)>,
    name: String,
) {
    while let Some((time, passed)) = passes.recv().await {
        let began = Instant::now();
        let mut quiet = 0;
        while quiet < 2 {
            for _ in 0..16 {
                tokio::task::yield_now().await;
            }
            quiet = if works(&name) { 0 } else { quiet + 1 };
            assert!(began.elapsed() < PATIENCE, "{name} does not come to rest");
        }
        clock.advance(u64::try_from(time.as_micros()).expect("a time of the test"));
        tokio::time::advance(time).await;
        passed.send(()).ok();
    }
}

/// Whether a thread of this name, other than the calling one, runs or could. One that waits, for a lock or a latch, does
/// not. A new thread has the name of the one that made it from the beginning.
fn works(name: &str) -> bool {
    let own = std::fs::read_link("/proc/thread-self").expect("a thread");
    let threads = std::fs::read_dir("/proc/self/task").expect("threads");
    threads.flatten().any(|thread| {
        // One that has ended meanwhile has no state.
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat
            .split_once(&format!("({name}) "))
            .and_then(|(_, state)| state.chars().next());
        matches!(state, Some('R' | 'D')) && own.file_name() != Some(&thread.file_name())
    })
}

fn over(
    pod: Arc<PodUnderTest>,
    control: JoinHandle<LiveEnd>,
    watcher: JoinHandle<Vec<Event>>,
) -> Over {
    let end = control.join().unwrap_or_else(|panic| resume_unwind(panic));
    let events = watcher.join().expect("a watcher that does not panic");
    let pod = Arc::into_inner(pod).expect("there is one owner of the pod");
    Over { pod, end, events }
}
