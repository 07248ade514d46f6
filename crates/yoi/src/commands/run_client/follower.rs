//! Shows what a pod of another process records, as it becomes durable.

use crate::commands::log::follow::{Site, wait_beside};
use crate::report::messages;
use crate::show::progress::{OutputStyle, RunOutput};
use host::exit::{Exit, Failure, no_thread};
use host::pods::read_failure;
use pod::record::{InputConsumed, InputId, InputQueued, Record};
use pod::session::restore::decode;
use session_store::Reader;
use std::io::{PipeReader, PipeWriter, Stderr, Stdout, Write, pipe};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// A thread that reads the files and shows. It sleeps until the kernel tells that the pod wrote.
pub(super) struct Follower {
    reading: JoinHandle<bool>,
    progress: Arc<Progress>,
    waker: PipeWriter,
}

#[derive(Default)]
struct Progress {
    /// The input from which on records are shown; 0 while it has no number.
    input: AtomicU64,
    /// The last record to be shown; 0 while the turn runs.
    last: AtomicU64,
}

impl Follower {
    /// Reads from record `from` on.
    pub(super) fn start(
        dir: &Path,
        name: &str,
        style: OutputStyle,
        from: u64,
    ) -> Result<Self, Failure> {
        let (woken, waker) = pipe().map_err(|e| no_thread(&e))?;
        let progress = Arc::new(Progress::default());
        let site = Site::of(dir)?;
        let shared = progress.clone();
        let name = name.to_owned();
        let read = move || {
            let mut screen = RunOutput::of_process(style);
            let reading = Reading {
                site,
                name,
                from,
                json: style.json,
                progress: shared,
                woken,
            };
            // The end of the turn comes from the socket, and the log has what is not shown.
            if let Err(failure) = reading.run(&mut screen) {
                messages(false).warn(&format!(
                    "warning: progress is not shown: {}",
                    failure.message
                ));
            }
            screen.finish()
        };
        let reading = thread::Builder::new()
            .name("follow".to_owned())
            .spawn(read)
            .map_err(|e| no_thread(&e))?;
        Ok(Self {
            reading,
            progress,
            waker,
        })
    }

    /// Shows the turn of this input and what follows; called again, it changes nothing.
    pub(super) fn show(&self, input: InputId) {
        self.progress
            .input
            .compare_exchange(0, input, Ordering::Relaxed, Ordering::Relaxed)
            .ok();
        // The pipe is empty, and its reader lives as long as there is something to show.
        drop((&self.waker).write_all(&[0]));
    }

    /// Shows what is left up to a record; all that is durable without one. Answers whether words of the model were
    /// streamed.
    pub(super) fn finish(self, last: Option<u64>) -> bool {
        let Self {
            reading,
            progress,
            waker,
        } = self;
        progress
            .last
            .store(last.unwrap_or(u64::MAX), Ordering::Relaxed);
        drop(waker);
        reading.join().unwrap_or(false)
    }
}

struct Reading {
    site: Site,
    name: String,
    from: u64,
    json: bool,
    progress: Arc<Progress>,
    woken: PipeReader,
}

impl Reading {
    fn run(&self, screen: &mut RunOutput<Stdout, Stderr>) -> Result<(), Failure> {
        let watch = self.site.watch();
        let fail = |e| self.site.failure(read_failure(&self.name, &e));
        let mut following = Reader::open(self.site.held())
            .and_then(|reader| reader.from(self.from))
            .map_err(fail)?;
        let mut begun = false;
        loop {
            // Read before the log: what was durable by then is shown.
            let last = self.progress.last.load(Ordering::Relaxed);
            let input = self.progress.input.load(Ordering::Relaxed);
            while input > 0 && following.look().map_err(fail)? {
                for frame in &mut following {
                    let frame = frame.map_err(fail)?;
                    if last > 0 && frame.seq > last {
                        return Ok(());
                    }
                    let record = decode(&frame)
                        .map_err(|e| Failure::new(Exit::Data, format!("{}: {e}", self.name)))?;
                    begun |= self.begins(&record, input);
                    if begun {
                        screen.record_of_line(&record, &frame.line);
                    }
                }
            }
            if last > 0 {
                return Ok(());
            }
            wait_beside(watch.as_ref(), &self.woken, screen.tick(Instant::now()));
        }
    }

    /// Scripts get everything since the input was accepted, people the turn that took it.
    fn begins(&self, record: &Record, shown: InputId) -> bool {
        match record {
            Record::InputQueued(InputQueued { input, .. }) => self.json && *input == shown,
            Record::InputConsumed(InputConsumed { input }) => *input == shown,
            _ => false,
        }
    }
}
