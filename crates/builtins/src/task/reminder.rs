//! The reminder of unfinished tasks that were not changed for a while.
//!
//! It is a `PreRequest` hook because that request brings what the hook says. It never refuses: when the words are not
//! durable within [`PATIENCE`], a later request brings them.

use super::Live;
use super::list::Tasks;
use async_trait::async_trait;
use pod::feature::FeatureNotifySink;
use pod::hook::{Hook, PreRequest, RequestView, Verdict};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Requests without a change of the list from which on its tasks are stale. Work on one task is often that many.
pub const QUIET: u64 = 12;
/// Requests from one reminder to the next, at least.
pub const AGAIN: u64 = 24;

/// How long a request waits for the reminder that it is to bring; far within the deadline of the hook.
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

#[async_trait]
impl Hook<PreRequest> for Reminder {
    async fn call(&self, view: &RequestView) -> Verdict<PreRequest> {
        self.live.request.store(view.number, Ordering::Relaxed);
        if self.live.tasks.newest().is_stale(view.number, QUIET, AGAIN) {
            self.remind(view.number).await;
        }
        Verdict::allow()
    }
}

impl Reminder {
    /// The mark goes in before the words, and whoever waits for the words has both written at once: a pod that is
    /// killed meanwhile has both or neither. Words that were refused are not tried again before [`AGAIN`].
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
    let named = unfinished.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join("\n");
    let rest = unfinished.len().saturating_sub(MAX_NAMED);
    let more = if rest > 0 { format!("\nand {rest} more") } else { String::new() };
    let quiet = tasks.quiet(request);
    format!("Unfinished tasks, untouched for {quiet} requests; TaskUpdate what is done or dropped:\n{named}{more}")
}
