//! The reminder of unfinished tasks that were not changed for a while.
//!
//! It is a `PreRequest` hook because the same request contains the reminder. It never refuses: if the reminder is not
//! durable within [`PATIENCE`], a later request contains it.

use super::Live;
use super::list::Tasks;
use pod::feature::FeatureNotifySink;
use pod::hook::{PreRequest, RequestView, Verdict};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The number of requests without a change after which the list is stale. Work on one task often takes that many.
pub const QUIET: u64 = 12;
/// Requests from one reminder to the next, at least.
pub const AGAIN: u64 = 24;

/// The longest wait of a request for its reminder; far within the deadline of the hook.
const PATIENCE: Duration = Duration::from_secs(1);

/// Most bytes of a reminder.
pub(super) const MAX_WORDS: u32 = 1024;
/// Most reminders in a turn; [`AGAIN`] allows more only in turns of hundreds of requests.
pub(super) const PER_TURN: u32 = 8;
/// Most tasks that it names. With their titles, they fit [`MAX_WORDS`].
const MAX_NAMED: usize = 6;

pub(super) struct Reminder {
    pub(super) live: Arc<Live>,
    pub(super) notify: FeatureNotifySink,
}

impl Reminder {
    pub(super) async fn before_request(self: Arc<Self>, view: RequestView) -> Verdict<PreRequest> {
        self.live.request.store(view.number, Ordering::Relaxed);
        if self.live.tasks.newest().is_stale(view.number, QUIET, AGAIN) {
            self.remind(view.number).await;
        }
        Verdict::allow()
    }

    /// The mark is queued before the text, and awaiting the text writes both at once: a pod that is killed meanwhile
    /// has both or neither. A refused reminder is not retried before [`AGAIN`].
    async fn remind(&self, request: u64) {
        let mut told = None;
        drop(self.live.tasks.update(|tasks| {
            tasks.reminded(request);
            told = Some(words(tasks, request));
        }));
        if let Some(words) = told {
            drop(tokio::time::timeout(PATIENCE, self.notify.notify_model(words)).await);
        }
    }
}

fn words(tasks: &Tasks, request: u64) -> String {
    let unfinished: Vec<String> = tasks.unfinished().map(|(id, task)| task.line(id)).collect();
    let named = unfinished
        .iter()
        .take(MAX_NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    let rest = unfinished.len().saturating_sub(MAX_NAMED);
    let more = if rest > 0 {
        format!("\nand {rest} more")
    } else {
        String::new()
    };
    let quiet = tasks.quiet(request);
    format!(
        "Unfinished tasks, untouched for {quiet} requests; TaskUpdate what is done or dropped:\n{named}{more}"
    )
}
