//! Calls that only read: those that wait for the server at the same time are one round, which those join that come meanwhile.
//! Each is answered as its answer comes. One that came behind another call waits for that.

use crate::exchange::{About, Called, Fault};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// Most bytes of parameters that are sent and have no answer, if there is more than one call: less than a pipe holds, so that a
/// server that does not read yet blocks nobody.
const MAX_TOGETHER: usize = 32 << 10;

/// Most calls of one round.
const MAX_CALLS: usize = 32;

/// Where the answer of a call comes.
pub(crate) type Answered = oneshot::Receiver<Result<Called, Fault>>;

/// A call that waits for its answer.
pub(crate) struct ReadCall {
    pub(crate) method: &'static str,
    pub(crate) params: Box<RawValue>,
    /// What it names, and the arguments that go into headers.
    name: Option<String>,
    mirrored: Vec<(String, String)>,
    pub(crate) until: Instant,
    /// The number of its request, once it was sent.
    pub(crate) id: u64,
    /// How many other calls came before it.
    behind: u64,
    reply: oneshot::Sender<Result<Called, Fault>>,
}

impl ReadCall {
    /// A call, and where its answer comes.
    ///
    /// # Errors
    /// Its parameters are none.
    pub(crate) fn new(
        (method, about): (&'static str, Option<About<'_>>),
        params: &impl Serialize,
        until: Instant,
    ) -> Result<(Self, Answered), String> {
        let params = to_raw_value(params).map_err(|error| error.to_string())?;
        let (name, mirrored) = about.map_or((None, Vec::new()), |about| {
            (Some(about.name.to_owned()), about.mirrored)
        });
        let (reply, answered) = oneshot::channel();
        let call = Self {
            method,
            params,
            name,
            mirrored,
            until,
            id: 0,
            behind: 0,
            reply,
        };
        Ok((call, answered))
    }

    /// What it names, and what resolves when nobody waits for its answer.
    pub(crate) fn parts(&mut self) -> (Option<About<'_>>, impl Future<Output = ()>) {
        let mirrored = self.mirrored.clone();
        let about = self.name.as_deref().map(|name| About { name, mirrored });
        (about, self.reply.closed())
    }

    /// Answers it; nobody may wait any more.
    pub(crate) fn answer(self, answer: Result<Called, Fault>) {
        self.reply.send(answer).ok();
    }
}

/// Those that wait for their turn.
#[derive(Default)]
pub(crate) struct Reads {
    waiting: Mutex<VecDeque<ReadCall>>,
    /// Other calls so far.
    others: AtomicU64,
    added: Notify,
}

impl Reads {
    /// Another call came: what is added from now on waits for it.
    pub(crate) fn other(&self) {
        self.others.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn add(&self, mut call: ReadCall) {
        call.behind = self.others.load(Ordering::SeqCst);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(call);
        self.added.notify_one();
    }

    /// Resolves when one was added since this was last asked.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    /// The next one of a round, of which these have no answer yet. `behind` is what all of a round came behind.
    pub(crate) fn next(&self, behind: &mut Option<u64>, open: &[ReadCall]) -> Option<ReadCall> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|call| !call.reply.is_closed());
        let next = waiting.front()?;
        let size = |call: &ReadCall| call.params.get().len();
        let bytes = open.iter().map(size).sum::<usize>() + size(next);
        let has_room = open.is_empty() || bytes <= MAX_TOGETHER && open.len() < MAX_CALLS;
        let belongs = behind.is_none_or(|behind| behind == next.behind);
        if !(has_room && belongs) {
            return None;
        }
        *behind = Some(next.behind);
        waiting.pop_front()
    }
}

/// Resolves when nobody waits for any of these calls.
pub(crate) async fn nobody_waits(calls: &mut [ReadCall]) {
    poll_fn(|cx| {
        let mut waits = false;
        for call in calls.iter_mut() {
            waits |= call.reply.poll_closed(cx).is_pending();
        }
        match waits {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    })
    .await;
}
