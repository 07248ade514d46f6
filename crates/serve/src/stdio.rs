//! A server on two streams of lines: a message in each line. Requests are answered side by side, in any order; at the
//! end of the input those that were accepted are finished and answered.

use crate::mcp::{Exchange, McpServer};
use crate::rpc::{self, INTERNAL, Incoming, Request, RpcError};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The longest message of a client, in bytes.
pub(crate) const MAX_MESSAGE: usize = 1 << 20;

/// Requests that are answered at the same time; behind them the input is read on for cancellations alone.
const MAX_OPEN: usize = 32;

/// Lines that wait to be written, or were read and wait.
const MAX_LINES: usize = 64;

/// How long accepted requests may take once the input has ended.
const FINISH: Duration = Duration::from_secs(60);

/// How long cancelled requests may take, and then the last answer to be read.
const CANCEL: Duration = Duration::from_secs(20);

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeEnd {
    /// The input is over, and what was accepted is answered.
    Input,
    /// Nobody takes answers any more.
    Output,
    /// It was told to stop.
    Stopped,
}

/// A line of the input.
enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// What can be cancelled, by the id of its request.
type Open = Arc<Mutex<BTreeMap<String, CancellationToken>>>;

/// Serves until the input ends, the output is closed or `stop` fires.
///
/// # Errors
/// A thread for one of the streams cannot be started.
pub async fn serve(
    server: Arc<McpServer>,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    stop: &CancellationToken,
) -> io::Result<ServeEnd> {
    let (lines, mut read) = mpsc::channel(MAX_LINES);
    let (answers, written) = mpsc::channel(MAX_LINES);
    let closed = CancellationToken::new();
    // They wait in system calls that nothing ends: a process ends with its last answer, not with them.
    thread::Builder::new()
        .name("mcp-input".to_owned())
        .spawn(move || read_lines(input, &lines))?;
    let writer = {
        let closed = closed.clone();
        thread::Builder::new()
            .name("mcp-output".to_owned())
            .spawn(move || {
                write_lines(output, written);
                closed.cancel();
            })?
    };
    let mut open = Requests {
        server,
        answers,
        open: Open::default(),
        tasks: JoinSet::new(),
    };
    let ended = loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break ServeEnd::Stopped,
            () = closed.cancelled() => break ServeEnd::Output,
            Some(_) = open.tasks.join_next(), if !open.tasks.is_empty() => {}
            line = read.recv() => match line {
                Some(line) => tokio::select! {
                    () = open.take(line) => {}
                    // Nobody may read what it says.
                    () = stop.cancelled() => break ServeEnd::Stopped,
                    () = closed.cancelled() => break ServeEnd::Output,
                },
                None => break ServeEnd::Input,
            },
        }
    };
    if ended == ServeEnd::Input {
        tokio::select! {
            () = stop.cancelled() => {}
            () = closed.cancelled() => {}
            _ = timeout(FINISH, open.finished()) => {}
        }
    }
    // Those that are left would be answered to nobody.
    open.cancel_all();
    drop(timeout(CANCEL, open.finished()).await);
    drop(open);
    // The last answer is written, unless nobody reads.
    if timeout(CANCEL, closed.cancelled()).await.is_ok() {
        drop(writer.join());
    }
    Ok(ended)
}

struct Requests {
    server: Arc<McpServer>,
    answers: Sender<String>,
    open: Open,
    tasks: JoinSet<()>,
}

impl Requests {
    async fn take(&mut self, line: Line) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong => {
                let why = format!("a message has at most {MAX_MESSAGE} bytes");
                let line = rpc::error_line(None, &RpcError::new(rpc::INVALID, why));
                return self.say(line).await;
            }
        };
        match rpc::read(&line) {
            Incoming::Request(request) => self.begin(request).await,
            Incoming::Notification { method, params } => {
                if method == "notifications/cancelled" {
                    self.cancel(params.as_deref());
                }
            }
            Incoming::Answer => {}
            Incoming::Wrong(line) => self.say(line).await,
        }
    }

    async fn say(&self, line: String) {
        // One that nobody takes any more ends the server elsewhere.
        drop(self.answers.send(line).await);
    }

    async fn begin(&mut self, request: Request) {
        let id = request.id.get().to_owned();
        let refused = if self.tasks.len() >= MAX_OPEN {
            let why = format!("{MAX_OPEN} requests are being answered; try again later");
            Some(RpcError::new(INTERNAL, why))
        } else if lock(&self.open).contains_key(&id) {
            let why = "a request with this id is being answered";
            Some(RpcError::new(rpc::INVALID, why))
        } else {
            None
        };
        if let Some(refused) = refused {
            return self.say(rpc::error_line(Some(&request.id), &refused)).await;
        }
        let cancel = CancellationToken::new();
        lock(&self.open).insert(id.clone(), cancel.clone());
        let server = Arc::clone(&self.server);
        let answers = self.answers.clone();
        let open = Arc::clone(&self.open);
        self.tasks.spawn(async move {
            let told = answers.clone();
            let tell = move |line: String| drop(told.try_send(line));
            let exchange = Exchange {
                cancel: &cancel,
                tell: &tell,
            };
            let line = server.answer(&request, &exchange).await;
            // One that its client cancelled has no answer.
            let is_awaited = lock(&open).remove(&id).is_some();
            if is_awaited {
                drop(answers.send(line).await);
            }
        });
    }

    fn cancel(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: Box<RawValue>,
        }
        let params = params.map_or("{}", RawValue::get);
        if let Ok(Cancelled { request_id }) = serde_json::from_str(params)
            && let Some(cancel) = lock(&self.open).remove(request_id.get())
        {
            cancel.cancel();
        }
    }

    fn cancel_all(&self) {
        lock(&self.open)
            .values()
            .for_each(CancellationToken::cancel);
    }

    async fn finished(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

fn lock(open: &Open) -> std::sync::MutexGuard<'_, BTreeMap<String, CancellationToken>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands on the lines of the input, without those that are empty, until it ends.
fn read_lines(mut input: impl BufRead, lines: &Sender<Line>) {
    loop {
        let mut line = Vec::new();
        let within = input.by_ref().take(MAX_MESSAGE as u64 + 1);
        let read = { within }.read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let is_whole = line.last() == Some(&b'\n');
        let line = if !is_whole && line.len() > MAX_MESSAGE {
            if skip_line(&mut input).is_err() {
                return;
            }
            Line::TooLong
        } else {
            Line::Whole(line.trim_ascii().to_vec())
        };
        let is_empty = matches!(&line, Line::Whole(line) if line.is_empty());
        if !is_empty && lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Reads to the end of a line and keeps nothing.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let piece = input.fill_buf()?;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(piece.len(), |at| at + 1);
        input.consume(used);
        if end.is_some() || used == 0 {
            return Ok(());
        }
    }
}

/// Writes lines until there are no more, or the output takes none.
fn write_lines(mut output: impl Write, mut lines: Receiver<String>) {
    while let Some(mut line) = lines.blocking_recv() {
        line.push('\n');
        if output.write_all(line.as_bytes()).is_err() || output.flush().is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_the_last_one_needs_no_end() {
        let long = "x".repeat(3 * MAX_MESSAGE);
        let fits = "y".repeat(MAX_MESSAGE);
        let input = format!("a\r\n\n  \n{long}\n{fits}\nb");
        let (lines, mut read) = mpsc::channel(MAX_LINES);
        read_lines(input.as_bytes(), &lines);
        drop(lines);
        let mut found = Vec::new();
        while let Some(line) = read.blocking_recv() {
            found.push(match line {
                Line::Whole(line) => line.len().to_string(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        assert_eq!(found, ["1", "too long", "1048576", "1"]);
    }
}
