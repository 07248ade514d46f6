//! What ends a run from outside: signals and the time limit.

use crate::exit::{Exit, Failure};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Why a run was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// `--timeout`.
    Timeout,
    /// This signal.
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

/// Remembers what came.
pub(crate) struct Signals(Arc<Mutex<Option<Ending>>>);

impl Signals {
    /// The first thing that ended the run, if anything did.
    pub(crate) fn ending(&self) -> Option<Ending> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels the token at the first `SIGINT`, `SIGTERM`, `SIGHUP` or after `timeout`. A second signal leaves at once;
/// what was committed is on disk.
pub(crate) fn watch(timeout: Option<Duration>) -> Result<(CancellationToken, Signals), Failure> {
    let listen = |kind: SignalKind| {
        signal(kind).map_err(|e| Failure::new(Exit::Unavailable, format!("signals cannot be handled: {e}")))
    };
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let cancel = CancellationToken::new();
    let seen = Arc::new(Mutex::new(None));
    let (token, first) = (cancel.clone(), seen.clone());
    tokio::spawn(async move {
        let mut timeout = std::pin::pin!(tokio::time::sleep(timeout.unwrap_or(Duration::MAX)));
        loop {
            let came = tokio::select! {
                _ = interrupt.recv() => Ending::Signal(2),
                _ = terminate.recv() => Ending::Signal(15),
                _ = hangup.recv() => Ending::Signal(1),
                () = &mut timeout, if !token.is_cancelled() => Ending::Timeout,
            };
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_some() && came != Ending::Timeout {
                std::process::exit(i32::from(came.exit().number()));
            }
            first.get_or_insert(came);
            token.cancel();
        }
    });
    Ok((cancel, Signals(seen)))
}
