//! Talking to a child that answers requests one after the other: lines to its standard input, lines from its standard
//! output, and the end of what it wrote to its standard error. Does not depend on what the lines mean.

use super::env::TalkEnv;
use super::run::{ChildResult, Job};
use super::spawner::{Spawner, Streams};
use crate::{Error, ErrorKind};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The longest line in each direction, in bytes, without its end, where nothing else is said.
pub const MAX_LINE: usize = 1 << 20;

/// How much of the end of standard error is kept, in bytes.
const MAX_KEPT: usize = 16 << 10;

/// How much of standard error is read in [`PACE_TIME`]; a child that writes more waits.
const PACE: usize = 1 << 20;
const PACE_TIME: Duration = Duration::from_secs(1);

/// How much is read at once from standard output.
const CHUNK: usize = 16 << 10;

/// A child that is talked to. Dropped, it is killed with all that it started; a revoked grant and the deadline of its job end
/// it, also while nobody talks to it.
#[derive(Debug)]
pub struct Talk {
    /// `None` while a line is being written, and after one that was not written to its end.
    input: Option<Sender>,
    output: Receiver,
    /// What was read, and how much of its begin was given as lines.
    read: Vec<u8>,
    given: usize,
    kept: Arc<Mutex<Vec<u8>>>,
    cancel: CancellationToken,
    /// `None` once its end was waited for.
    child: Option<JoinHandle<Result<ChildResult, Error>>>,
    pid: u32,
    program: String,
    max_line: usize,
}

impl Spawner {
    /// Starts a child to talk to, confined as every child. Of the environment it gets `PATH` and `LANG`, with a temporary
    /// directory of its own.
    ///
    /// # Errors
    /// As for [`Spawner::spawn`].
    pub async fn talk(&self, job: Job) -> Result<Talk, Error> {
        self.talk_with(job, TalkEnv::default(), MAX_LINE).await
    }

    /// The same with more of the environment, and with lines of at most so many bytes.
    ///
    /// # Errors
    /// As for [`Spawner::spawn`].
    pub async fn talk_with(&self, job: Job, env: TalkEnv, max_line: usize) -> Result<Talk, Error> {
        let program = crate::escape(job.program.as_ref());
        let failed = |error: io::Error| Error::system(&format!("run {program}"), error);
        let (theirs, input) = io::pipe().map_err(failed)?;
        let (output, own) = io::pipe().map_err(failed)?;
        let input = Sender::from_owned_fd(OwnedFd::from(input)).map_err(failed)?;
        let output = Receiver::from_owned_fd(OwnedFd::from(output)).map_err(failed)?;
        let streams = Streams::Apart(theirs.into(), own.into(), env);
        let child = self.spawn_on(&job, streams).await?.paced(PACE, PACE_TIME);
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let cancel = CancellationToken::new();
        let pid = child.pid();
        let keep = {
            let kept = Arc::clone(&kept);
            move |bytes: &[u8]| {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let bytes = bytes.get(bytes.len().saturating_sub(MAX_KEPT)..);
                kept.extend_from_slice(bytes.unwrap_or_default());
                let more = kept.len().saturating_sub(MAX_KEPT);
                kept.drain(..more);
                Ok(())
            }
        };
        let stop = cancel.clone();
        let child = tokio::spawn(async move { child.run(keep, &stop).await });
        Ok(Talk {
            input: Some(input),
            output,
            read: Vec::new(),
            given: 0,
            kept,
            cancel,
            child: Some(child),
            pid,
            program,
            max_line,
        })
    }
}

impl Talk {
    /// The number of its main process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has ended, with all that it started.
    pub fn has_ended(&self) -> bool {
        self.child.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Writes one line. If this is dropped before it resolves, the child can only be ended.
    ///
    /// # Errors
    /// `FixInput` for more than one line or a longer one than agreed; `Unavailable` when the child does not read any more.
    pub async fn send(&mut self, line: &[u8]) -> Result<(), Error> {
        if line.len() > self.max_line || line.contains(&b'\n') {
            let text = format!(
                "a line to {} is over {} MiB or has an end in it",
                self.program,
                self.max_line >> 20
            );
            return Err(Error::new(ErrorKind::FixInput, text));
        }
        let gone = |why: &str| {
            let text = format!("write to {}: {why}", self.program);
            Error::new(ErrorKind::Unavailable, text)
        };
        let mut input = self
            .input
            .take()
            .ok_or_else(|| gone("an earlier line was not read to its end"))?;
        for part in [line, b"\n"] {
            let written = input.write_all(part).await;
            written.map_err(|error| gone(&error.to_string()))?;
        }
        self.input = Some(input);
        Ok(())
    }

    /// The next line, without its end; `None` when the child has closed its output, also within a line. Cancel-safe.
    ///
    /// # Errors
    /// `Exhausted` for a longer line than agreed; `Unavailable` where the system cannot read.
    pub async fn line(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut seen = 0;
        loop {
            let rest = self.read.get(self.given..).unwrap_or_default();
            let new = rest.get(seen..).unwrap_or_default();
            let end = new
                .iter()
                .position(|byte| *byte == b'\n')
                .map(|at| seen + at);
            if end.unwrap_or(rest.len()) > self.max_line {
                let text = format!(
                    "a line of {} is over {} MiB",
                    self.program,
                    self.max_line >> 20
                );
                return Err(Error::new(ErrorKind::Exhausted, text));
            }
            if let Some(end) = end {
                let line = rest.get(..end).unwrap_or_default().to_vec();
                self.given += end + 1;
                return Ok(Some(line));
            }
            seen = rest.len();
            self.read.drain(..self.given);
            self.given = 0;
            if seen == 0 {
                self.read.shrink_to(CHUNK);
            }
            self.read.reserve(CHUNK);
            let ready = match self.output.readable().await {
                Ok(()) => self.output.try_read_buf(&mut self.read),
                Err(error) => Err(error),
            };
            match ready {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    return Err(Error::system(&format!("read from {}", self.program), error));
                }
            }
        }
    }

    /// The end of what it wrote to its standard error since this was last asked.
    pub fn stderr(&self) -> String {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&kept).into_owned()
    }

    /// Closes its input, and waits for its end. After this time it gets `SIGTERM`, and [`super::GRACE`] later `SIGKILL`.
    ///
    /// # Errors
    /// As for [`super::SpawnedChild::run`]; `Bug` when its end was waited for before.
    pub async fn end(&mut self, wait: Duration) -> Result<ChildResult, Error> {
        self.input = None;
        let Some(child) = &mut self.child else {
            return Err(Error::new(ErrorKind::Bug, "it was ended before"));
        };
        let ended = match tokio::time::timeout(wait, &mut *child).await {
            Ok(ended) => ended,
            Err(_late) => {
                self.cancel.cancel();
                child.await
            }
        };
        self.child = None;
        ended.unwrap_or_else(|error| {
            let text = format!("ending {} failed: {error}", self.program);
            Err(Error::new(ErrorKind::Bug, text))
        })
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // What is dropped kills.
        if let Some(child) = &self.child {
            child.abort();
        }
    }
}
