//! The log of the host: what the program does and how long it takes, for people who debug it. `YOI_LOG` switches it on;
//! a host without a terminal always has one, of warnings.
//!
//! It is a diagnostic log, not the journal: nothing acts on what is in it, a line that cannot be written is counted and dropped,
//! and no run waits for it or fails because of it. It holds names, numbers, sizes and durations; secrets are redacted.

mod filter;
mod subscriber;
mod writer;

use crate::env::Env;
use crate::exit::{Exit, Failure};
use authority::Redactor;
use filter::Filter;
use std::path::{Path, PathBuf};
use subscriber::Subscriber;
use tracing::level_filters::LevelFilter;
use writer::{Destination, Files, LogWriter};

/// The variable that switches the log on. It is no key of the configuration.
pub const VARIABLE: &str = "YOI_LOG";

/// The log's file in the directory of a pod. The previous one has `.1` behind its name.
pub(crate) const FILE: &str = "host.log";

/// Most bytes of one file; there are two of them.
const MAX_FILE: u64 = 4 << 20;

/// What a run asks of the log; nothing when the variable is not set.
#[derive(Clone)]
pub struct Wanted(Option<Filter>);

/// The log of a run that has begun.
pub struct HostLog(LogWriter);

impl Wanted {
    /// Whether anything is logged.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Reads the variable.
    ///
    /// # Errors
    /// `Config` for a value that is not a filter.
    pub fn of(env: &Env) -> Result<Self, Failure> {
        let Some(value) = env.var(VARIABLE) else {
            return Ok(Self(None));
        };
        if let Some(filter) = value.to_str().and_then(Filter::parse) {
            return Ok(Self((filter.most() > LevelFilter::OFF).then_some(filter)));
        }
        let value = value.to_string_lossy();
        Err(Failure::new(
            Exit::Config,
            format!("{VARIABLE}={value}: the value must be error, warn, info, debug, trace or off"),
        )
        .help(format!(
            "use such a level, or unset {VARIABLE} to write no log"
        )))
    }

    /// Warnings and errors, if nothing else was asked for.
    pub fn or_warnings(self) -> Self {
        Self(self.0.or_else(|| Filter::parse("warn")))
    }

    /// Begins the log of this process: in the directory of a pod, or on standard error without one. Nothing happens when
    /// no log is wanted. Call it at most once in a process.
    ///
    /// # Errors
    /// Why there is none: its file or its thread could not be created. The run can go on without it.
    pub fn begin(&self, pod: Option<&Path>, redactor: Redactor) -> Result<Option<HostLog>, String> {
        let Some(filter) = self.0.clone() else {
            return Ok(None);
        };
        let to = match pod {
            Some(dir) => Destination::Files(
                Files::open(dir.join(FILE), MAX_FILE).map_err(|why| told(dir, &why))?,
            ),
            None => Destination::Other(Box::new(std::io::stderr())),
        };
        let writer = LogWriter::start(to)
            .map_err(|why| format!("no thread: {}", authority::explain(&why)))?;
        let subscriber = Subscriber::new(filter, redactor, writer.clone());
        tracing::subscriber::set_global_default(subscriber).map_err(|why| why.to_string())?;
        Ok(Some(HostLog(writer)))
    }
}

fn told(dir: &Path, why: &std::io::Error) -> String {
    let file: PathBuf = dir.join(FILE);
    format!("{}: {}", authority::escape(&file), authority::explain(why))
}

impl HostLog {
    /// From now on standard error goes into the log's file, too: a host without a terminal has no reader for it.
    pub fn take_stderr(&self) -> std::io::Result<()> {
        self.0.take_stderr()
    }

    /// Waits a short time until everything so far is written.
    pub fn flush(&self) {
        self.0.flush();
    }
}
