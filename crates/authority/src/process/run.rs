//! Running one child: reading its output, ending it at its deadline, and killing all of its descendants.

use super::confinement::Beyond;
use super::descendants::Leftovers;
use super::exit::{ChildExit, ExitWatch, KILL_WAIT};
use super::git_guard::GitGuard;
use super::processes;
use super::spawner::{Spawner, Streams};
use super::started::RunningChild;
use crate::{Door, Error, ErrorKind, HostProxy, Traffic};
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time between `SIGTERM` and `SIGKILL`.
pub const GRACE: Duration = Duration::from_secs(2);

/// After the main process has ended, its pipe is closed after this long without output.
pub const QUIET: Duration = Duration::from_millis(100);

/// After the main process has ended, its pipe is closed at the latest after this long, even if there is still output.
pub const DRAIN: Duration = Duration::from_secs(1);

/// How often the files that decide what git runs are compared while a child runs.
const GIT_CHECK: Duration = Duration::from_secs(60);

const CHUNK: usize = 64 * 1024;

/// The most reads after all processes have ended: a pipe holds less.
const LAST_READS: usize = 32;

/// A program to run, with its arguments and limits; for [`super::Spawner::run`] and [`super::Spawner::spawn`].
#[derive(Clone, Debug)]
pub struct Job {
    /// A name to look up in the child's `PATH`, or a path.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The id of the call that the child belongs to, or another name for what owns it: 1 to 64 of `[A-Za-z0-9_-]`.
    pub call: String,
    /// The time from the start until the child is ended.
    pub deadline: Duration,
    /// What it reads from its standard input, at most 1 MiB; not used by [`super::Spawner::talk`].
    pub input: Vec<u8>,
}

/// The result of a child's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildResult {
    pub how: ChildExit,
    /// Time from before its start until all of its processes had ended.
    pub took: Duration,
    /// How many of its descendants were killed after the main process had ended.
    pub leftovers: u32,
    /// A lower bound of descendants that may still run: they fork faster than they are killed, do not die, or may
    /// belong to another call. 0 means that none is left.
    pub remaining: u32,
    pub pid: u32,
    /// What it could do beyond the sandbox.
    pub beyond: Option<Beyond>,
    /// How many connections and packets found no way out of the network of its own, while it ran; calls that ran at the
    /// same time count, too. `None` where it had none of its own, and nothing counts.
    pub refused: Option<u32>,
    /// What the proxy passed on and refused meanwhile, of such calls as well; nothing without one.
    pub traffic: Traffic,
}

enum StopReason {
    Deadline,
    Cancelled,
    Revoked,
    Output(io::Error),
}

impl Spawner {
    /// Runs a child to its end: [`Spawner::spawn`], then [`SpawnedChild::run`].
    ///
    /// # Errors
    /// Those of both.
    pub async fn run(
        &self,
        job: Job,
        on_output: impl FnMut(&[u8]) -> io::Result<()> + Send,
        cancel: &CancellationToken,
    ) -> Result<ChildResult, Error> {
        self.spawn(job).await?.run(on_output, cancel).await
    }

    /// Starts a child. It belongs to no call: the end of a call neither ends it nor counts
    /// it. Needs a tokio runtime whose I/O and time drivers are polled, on this thread or another.
    ///
    /// # Errors
    /// `FixInput` when the program or the directory does not exist; `Denied` when the confinement or the system does
    /// not let it run; `Revoked`; `Unavailable` when it cannot be started.
    pub async fn spawn(&self, job: Job) -> Result<SpawnedChild, Error> {
        self.spawn_on(&job, Streams::Merged).await
    }

    pub(super) async fn spawn_on(
        &self,
        job: &Job,
        streams: Streams,
    ) -> Result<SpawnedChild, Error> {
        let begun = Instant::now();
        let before = self.traffic();
        let (child, exit, pipe, beyond) = self.start(job, streams).await?;
        let reader = Reader {
            pipe,
            buffer: vec![0; CHUNK],
            open: true,
            pace: None,
        };
        let program = crate::escape(job.program.as_ref());
        let limits = Limits {
            begun,
            until: begun + job.deadline,
            door: Arc::clone(self.door()),
            git: self.git(),
        };
        Ok(SpawnedChild {
            child,
            exit,
            reader,
            limits,
            program,
            beyond,
            proxy: self.proxy(),
            before,
        })
    }
}

/// A child that was started and is not waited for yet. Dropped, it is killed with all of its descendants.
#[derive(Debug)]
pub struct SpawnedChild {
    child: RunningChild,
    exit: ExitWatch,
    reader: Reader,
    limits: Limits,
    program: String,
    beyond: Option<Beyond>,
    proxy: Option<HostProxy>,
    before: Traffic,
}

/// What bounds a child besides its caller.
#[derive(Debug)]
struct Limits {
    begun: Instant,
    until: Instant,
    door: Arc<Door>,
    git: Option<Arc<GitGuard>>,
}

impl SpawnedChild {
    /// The number of its main process.
    pub fn pid(&self) -> u32 {
        self.child.pid().as_raw_nonzero().get().unsigned_abs()
    }

    pub(super) fn pid_of_main(&self) -> Pid {
        self.child.pid()
    }

    /// When its main process started, in ticks since boot; 0 if it is not known.
    pub fn started(&self) -> u64 {
        processes::look(self.child.pid()).map_or(0, |process| process.started)
    }

    /// Reads so many bytes of output in a time, and at most one piece more; a child that writes more waits.
    #[must_use]
    pub fn paced(mut self, bytes: usize, time: Duration) -> Self {
        self.reader.pace = Some(Pace {
            bytes,
            time,
            left: 0,
            until: Instant::now(),
        });
        self
    }

    /// Waits for its end. `on_output` gets its standard output and error, merged, in order, in pieces of at most
    /// 64 KiB; it may block for the time of a file write. No thread is held meanwhile.
    ///
    /// At the deadline, when `cancel` fires, when the grant is revoked or `on_output` fails, the child's group gets
    /// `SIGTERM`, and [`GRACE`] later `SIGKILL`. When the main process ended, descendants that still hold the pipe are
    /// listened to until they are quiet for [`QUIET`], at most [`DRAIN`]; then all of them are killed. Dropping the
    /// future kills at once.
    ///
    /// # Errors
    /// `Revoked`; the kind of what `on_output` failed with; `Unavailable` when the child does not die.
    pub async fn run(
        self,
        mut on_output: impl FnMut(&[u8]) -> io::Result<()> + Send,
        cancel: &CancellationToken,
    ) -> Result<ChildResult, Error> {
        let pid = self.pid();
        let Self {
            child,
            exit,
            mut reader,
            limits,
            program,
            beyond,
            proxy,
            before,
        } = self;
        let why = watch(&child, &exit, &mut reader, &mut on_output, cancel, &limits).await?;
        let trouble = match &why {
            None => reader.drain(&mut on_output).await.err(),
            Some(_) => None,
        };
        let (left, status) = tokio::task::spawn_blocking(move || child.finish())
            .await
            .map_err(|error| {
                Error::new(ErrorKind::Bug, format!("ending a child failed: {error}"))
            })?;
        // What was written before the last of them died.
        reader.rest(&mut on_output);
        let how = match why {
            Some(StopReason::Deadline) => ChildExit::Deadline,
            Some(StopReason::Cancelled) => ChildExit::Cancelled,
            Some(StopReason::Revoked) => return Err(Error::revoked(&format!("run {program}"))),
            Some(StopReason::Output(error)) => {
                return Err(Error::system("keep a child's output", error));
            }
            None => status.unwrap_or(ChildExit::Signal(0)),
        };
        if let Some(error) = trouble {
            return Err(Error::system("keep a child's output", error));
        }
        let took = limits.begun.elapsed();
        let Leftovers {
            ended: leftovers,
            remaining,
            refused,
        } = left;
        let traffic = proxy
            .map(|proxy| proxy.traffic().since(&before))
            .unwrap_or_default();
        Ok(ChildResult {
            how,
            took,
            leftovers,
            remaining,
            pid,
            beyond,
            refused,
            traffic,
        })
    }
}

/// Waits until the main process has ended; returns why it was stopped, if it was.
async fn watch(
    child: &RunningChild,
    exit: &ExitWatch,
    reader: &mut Reader,
    on_output: &mut (impl FnMut(&[u8]) -> io::Result<()> + Send),
    cancel: &CancellationToken,
    limits: &Limits,
) -> Result<Option<StopReason>, Error> {
    let mut why = None;
    let mut killed = false;
    let mut next = limits.until;
    let mut check = Instant::now() + GIT_CHECK;
    loop {
        // In this order, so that endless output delays nothing.
        let reason = tokio::select! {
            biased;
            () = exit.ended() => return Ok(why),
            () = cancel.cancelled(), if why.is_none() => Some(StopReason::Cancelled),
            () = limits.door.closed(), if why.is_none() => Some(StopReason::Revoked),
            () = tokio::time::sleep_until(next) => None,
            () = tokio::time::sleep_until(check), if limits.git.is_some() => {
                // A child may run for days, and the person uses git meanwhile.
                limits.git.clone().map(|git| tokio::task::spawn_blocking(move || git.check()));
                check = Instant::now() + GIT_CHECK;
                continue;
            }
            done = reader.next(on_output), if reader.open => match done {
                Ok(()) => continue,
                Err(error) if why.is_none() => Some(StopReason::Output(error)),
                Err(_again) => { reader.open = false; continue }
            },
        };
        if why.is_none() {
            why = Some(reason.unwrap_or(StopReason::Deadline));
            child.signal(Signal::TERM);
            // A stopped process would never see it.
            child.signal(Signal::CONT);
            next = Instant::now() + GRACE;
        } else if killed {
            let text = format!(
                "process {} cannot be killed; look for a hung disk or device",
                child.pid()
            );
            return Err(Error::new(ErrorKind::Unavailable, text));
        } else {
            killed = true;
            child.signal(Signal::KILL);
            next = Instant::now() + KILL_WAIT;
        }
    }
}

#[derive(Debug)]
struct Reader {
    pipe: Receiver,
    buffer: Vec<u8>,
    open: bool,
    pace: Option<Pace>,
}

/// A bound on output in a time.
#[derive(Debug)]
struct Pace {
    bytes: usize,
    time: Duration,
    /// What may be read before `until`.
    left: usize,
    until: Instant,
}

impl Pace {
    /// Waits until something may be read. Cancel-safe.
    async fn wait(&mut self) {
        if self.left == 0 {
            tokio::time::sleep_until(self.until).await;
            (self.left, self.until) = (self.bytes, Instant::now() + self.time);
        }
    }
}

impl Reader {
    /// Waits for output and passes it on.
    async fn next(
        &mut self,
        on_output: &mut (impl FnMut(&[u8]) -> io::Result<()> + Send),
    ) -> io::Result<()> {
        if let Some(pace) = &mut self.pace {
            pace.wait().await;
        }
        self.pipe.readable().await?;
        match self.pipe.try_read(&mut self.buffer) {
            Ok(0) => {
                self.open = false;
                Ok(())
            }
            Ok(read) => {
                if let Some(pace) = &mut self.pace {
                    pace.left = pace.left.saturating_sub(read);
                }
                on_output(self.buffer.get(..read).unwrap_or_default())
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Until the pipe is closed or quiet.
    async fn drain(
        &mut self,
        on_output: &mut (impl FnMut(&[u8]) -> io::Result<()> + Send),
    ) -> io::Result<()> {
        let until = Instant::now() + DRAIN;
        while self.open && Instant::now() < until {
            let quiet = (Instant::now() + QUIET).min(until);
            match tokio::time::timeout_at(quiet, self.next(on_output)).await {
                Ok(done) => done?,
                Err(_quiet) => break,
            }
        }
        Ok(())
    }

    /// Reads the rest of the output. Errors are ignored.
    fn rest(&mut self, on_output: &mut (impl FnMut(&[u8]) -> io::Result<()> + Send)) {
        for _ in 0..LAST_READS {
            match self.pipe.try_read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(read) => {
                    if on_output(self.buffer.get(..read).unwrap_or_default()).is_err() {
                        return;
                    }
                }
            }
        }
    }
}
