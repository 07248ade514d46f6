//! What ends a program that hosts a pod from outside: signals and the time limit of a run.
//!
//! They are waited for on a thread of their own, so that a second signal ends the program whatever the others are
//! doing: opening a long session, or writing to a terminal that is held.

use crate::commands::ending;
use crate::report::Report;
use host::exit::{Exit, Failure};
use host::hosting::ChildTag;
use std::fs;
use std::future::poll_fn;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many files a run must be allowed to open: with fewer, a library below ends the program instead of failing.
const MIN_FILES: u64 = 32;

/// What ends a process that does not handle it, apart from its own faults and what nobody can handle:
/// `SIGHUP`, `SIGINT`, `SIGQUIT`, `SIGABRT`, `SIGUSR1`, `SIGUSR2`, `SIGALRM`, `SIGTERM`, `SIGSTKFLT`, `SIGXCPU`, `SIGVTALRM`,
/// `SIGPROF`, `SIGIO`, `SIGPWR`; and real-time signals, from the first that the C library does not keep for itself.
const ENDING: [u8; 14] = [1, 2, 3, 6, 10, 12, 14, 15, 16, 24, 26, 27, 29, 30];

const REAL_TIME: RangeInclusive<u8> = 34..=64;

/// How long a host may take to end in good order after the first signal.
const DRAIN: Duration = Duration::from_secs(20);

const HANGUP: u8 = 1;
const INTERRUPT: u8 = 2;

/// What signals mean to a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SignalPlan {
    /// Each ends the run.
    #[default]
    Run,
    /// A pod without a terminal: `SIGHUP` reloads the configuration, `SIGINT` is not for it.
    Detached,
    /// A pod under a service manager: `SIGHUP` reloads the configuration.
    Service,
    /// A pod in a terminal, which ends with it.
    Terminal,
}

/// The effect of one signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    End,
    Reload,
    Nothing,
}

impl SignalPlan {
    fn effect(self, signal: u8) -> Effect {
        match (self, signal) {
            (Self::Detached | Self::Service, HANGUP) => Effect::Reload,
            (Self::Detached, INTERRUPT) => Effect::Nothing,
            (Self::Run | Self::Detached | Self::Service | Self::Terminal, _) => Effect::End,
        }
    }
}

/// Why a run was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The time of `--timeout` is over.
    Timeout,
    Signal(u8),
}

impl Ending {
    /// The exit code it asks for.
    pub(crate) fn exit(self) -> Exit {
        match self {
            Self::Timeout => Exit::Limit,
            Self::Signal(number) => Exit::Signal(number),
        }
    }
}

/// How far the run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing was begun, so there is nothing to cancel: whatever comes ends the program.
    #[default]
    Preparing,
    /// The first thing that comes cancels the turn.
    Running,
    /// The turn has ended: there is nothing left to cancel.
    Over,
}

/// Where the run stands, as far as leaving it is concerned.
#[derive(Debug, Default)]
struct Standing {
    ending: Option<Ending>,
    phase: Phase,
    plan: SignalPlan,
    /// Failures are also a line of JSON.
    json: bool,
    /// What the run's children carry.
    tag: ChildTag,
    /// A directory that is not to be kept.
    scratch: Option<PathBuf>,
}

/// Remembers what came.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    /// Cancelled by the first signal, or when the time is over.
    pub(crate) cancel: CancellationToken,
    /// Told when the configuration is to be read again.
    pub(crate) reload: Arc<Notify>,
    standing: Arc<Mutex<Standing>>,
}

/// Nothing for one that the program was started with ignored.
fn listen(number: i32, ignored: u64) -> std::io::Result<Option<Signal>> {
    if ignored & (1 << (number - 1)) != 0 {
        return Ok(None);
    }
    signal(SignalKind::from_raw(number)).map(Some)
}

impl Signals {
    /// Ends the program at the first signal of [`ENDING`] or [`REAL_TIME`], or after `timeout`, while the run is prepared;
    /// from [`Self::begin`] on that cancels it, and the next signal leaves at once; what was committed is on disk. A
    /// signal that the program was started with ignored stays ignored (`nohup`).
    pub(crate) fn watch(timeout: Option<Duration>, json: bool) -> Result<Self, Failure> {
        Self::start(
            timeout,
            Standing {
                json,
                ..Standing::default()
            },
        )
    }

    /// The same for a host without a time limit: from [`Self::begin`] on the first signal asks it to end in good order,
    /// the next one or 20 seconds make it leave at once.
    pub(crate) fn of_host(plan: SignalPlan) -> Result<Self, Failure> {
        Self::start(
            None,
            Standing {
                plan,
                ..Standing::default()
            },
        )
    }

    fn start(timeout: Option<Duration>, standing: Standing) -> Result<Self, Failure> {
        let cancel = CancellationToken::new();
        let reload = Arc::default();
        let signals = Self {
            cancel,
            reload,
            standing: Arc::new(Mutex::new(standing)),
        };
        let fail = |what: std::io::Error| {
            Failure::new(
                Exit::Unavailable,
                format!("signals cannot be handled: {}", authority::explain(&what)),
            )
        };
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        if files.is_some_and(|files| files < MIN_FILES) {
            return Err(Failure::new(
                Exit::Unavailable,
                format!("the limit on open files is below {MIN_FILES}"),
            )
            .help(format!("raise `ulimit -n` to {MIN_FILES} or more")));
        }
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(fail)?;
        let entered = runtime.enter();
        let ignored = ignored();
        // A file over the limit of `ulimit -f` then is an error of the write, not the program's end.
        listen(rustix::process::Signal::XFSZ.as_raw(), ignored).map_err(fail)?;
        let mut listened = Vec::new();
        for number in ENDING {
            let signal = listen(number.into(), ignored).map_err(fail)?;
            listened.extend(signal.map(|signal| (number, signal)));
        }
        drop(entered);
        let watcher = signals.clone();
        let wait = move || {
            let entered = runtime.enter();
            // There are many, each takes time, and until there is a child to end, what they do by default is right.
            for number in REAL_TIME {
                let signal = listen(number.into(), ignored).ok().flatten();
                listened.extend(signal.map(|signal| (number, signal)));
            }
            drop(entered);
            runtime.block_on(watcher.wait(timeout, listened));
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(wait)
            .map_err(fail)?;
        Ok(signals)
    }

    async fn wait(self, timeout: Option<Duration>, mut listened: Vec<(u8, Signal)>) {
        let plan = self.standing().plan;
        let mut limit = std::pin::pin!(tokio::time::sleep(timeout.unwrap_or(Duration::MAX)));
        let mut waits = timeout.is_some();
        loop {
            let came = tokio::select! {
                number = next(&mut listened) => match plan.effect(number) {
                    Effect::End => Ending::Signal(number),
                    Effect::Reload => {
                        self.reload.notify_one();
                        continue;
                    }
                    Effect::Nothing => continue,
                },
                () = &mut limit, if waits => Ending::Timeout,
            };
            let mut standing = self.standing();
            let leaves = match (standing.phase, came) {
                (Phase::Preparing, _) | (Phase::Over, Ending::Signal(_)) => Some(came),
                // A second signal leaves with its own code, a host that does not end with that of the first.
                (Phase::Running, Ending::Signal(_)) => standing.ending.map(|_| came),
                (Phase::Running, Ending::Timeout) => standing.ending,
                (Phase::Over, Ending::Timeout) => None,
            };
            if let Some(with) = leaves {
                standing.leave(with);
            }
            standing.ending.get_or_insert(came);
            waits = plan != SignalPlan::Run;
            if waits {
                limit.as_mut().reset(Instant::now() + DRAIN);
            }
            drop(standing);
            self.cancel.cancel();
        }
    }

    /// From now on there is a run to be cancelled.
    pub(crate) fn begin(&self) {
        self.standing().phase = Phase::Running;
    }

    /// What the run's children carry, once there can be any.
    pub(crate) fn tag(&self) -> ChildTag {
        self.standing().tag.clone()
    }

    /// This directory is not to be kept.
    pub(crate) fn scratch(&self, scratch: Option<PathBuf>) {
        self.standing().scratch = scratch;
    }

    /// Whether Ctrl-C ended the run.
    pub(crate) fn interrupted(&self) -> bool {
        self.standing().ending == Some(Ending::Signal(INTERRUPT))
    }

    /// The first thing that ended the run, if anything did. From now on a signal leaves at once.
    pub(crate) fn over(&self) -> Option<Ending> {
        let mut standing = self.standing();
        standing.phase = Phase::Over;
        standing.ending
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standing {
    /// Ends the run's children and the program. Nobody is there any more to be told what could not be removed.
    fn leave(&self, with: Ending) -> ! {
        if self.phase == Phase::Preparing {
            let what = match with {
                Ending::Timeout => "the time limit was reached before the run started",
                Ending::Signal(_) => "cancelled before the run started",
            };
            let failure = Failure::new(with.exit(), what);
            if self.json {
                ending::failed(&failure);
            }
            failure.say();
        }
        // Also those that shed everything that tells whose they are.
        drop(authority::end_descendants(&ambient::claim()));
        if let Some(tag) = self.tag.get() {
            drop(authority::end_survivors(&ambient::claim(), tag));
        }
        if let Some(scratch) = &self.scratch {
            drop(authority::remove_dir(&ambient::claim(), scratch));
        }
        std::process::exit(i32::from(with.exit().number()))
    }
}

/// The next of these signals.
async fn next(listened: &mut [(u8, Signal)]) -> u8 {
    poll_fn(|cx| {
        let mut came = listened
            .iter_mut()
            .filter_map(|(number, signal)| signal.poll_recv(cx).is_ready().then_some(*number));
        came.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// The signals that are ignored from the start, a bit each from 1. Unreadable means none.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_its_own_meaning_of_a_signal() {
        let effects = |plan: SignalPlan| [1, 2, 3, 15].map(|signal| plan.effect(signal));
        assert_eq!(effects(SignalPlan::Run), [Effect::End; 4]);
        assert_eq!(effects(SignalPlan::Terminal), [Effect::End; 4]);
        assert_eq!(
            effects(SignalPlan::Service),
            [Effect::Reload, Effect::End, Effect::End, Effect::End]
        );
        assert_eq!(
            effects(SignalPlan::Detached),
            [Effect::Reload, Effect::Nothing, Effect::End, Effect::End]
        );
    }
}
