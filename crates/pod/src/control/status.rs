//! The state of a live pod, for the people and programs that ask. Does not depend on turns.

use crate::record::{ApprovalRequested, ChildProcess};
use crate::session::approvals::AllowedRule;
use crate::session::context::ContextStatus;
use crate::session::fold::{EndVerdict, Hold};
use crate::session::queue::QueuedInput;
use llm_worker::effect::Outcome;
use llm_worker::{Cost, Usage};
use protocol::status::{BackgroundTaskStatus, ModelRetry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a live pod does now, from its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PodStatus {
    pub activity: Activity,
    /// Why no turn begins, or why the running one waits.
    pub held: Option<Hold>,
    /// Why the running turn waits for the model.
    pub model_wait: Option<ModelRetry>,
    /// Why the disk refused the newest commit; the pod tries again.
    pub disk: Option<String>,
    /// The inputs that wait, in order.
    pub queued: Vec<QueuedInput>,
    /// What waits for a person, by number.
    pub approvals: Vec<Arc<ApprovalRequested>>,
    /// The rules that were allowed for the pod, oldest first.
    pub rules: Vec<AllowedRule>,
    /// Notifications that wait for the next step.
    pub notices: usize,
    pub turns: u64,
    pub requests: u64,
    pub usage: Usage,
    /// Cost of all answers, as far as prices were known.
    pub cost: Option<Cost>,
    /// The tokens of the next request; none before the first turn.
    pub context: Option<ContextStatus>,
    /// Texts that stay in the context, by number.
    pub pins: BTreeMap<u64, String>,
    /// The next request shows as little as the rules allow.
    pub compact_due: bool,
    pub last_outcome: Option<Outcome>,
    pub end_verdict: EndVerdict,
    /// The model's name.
    pub model: String,
    /// The newest record that the pod has folded.
    pub folded: u64,
    /// Gates, tools and observers that did not return.
    pub stuck: usize,
    /// The background tasks of this start.
    pub tasks: Vec<BackgroundTaskStatus>,
    /// The first records of the jobs that run, oldest first.
    pub jobs: Vec<ChildProcess>,
}

/// What the actor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Idle,
    /// A turn runs; `requests` were sent in it.
    Working {
        turn: u64,
        requests: u64,
    },
    /// A turn waits for a person, and nothing else of it runs.
    Waiting {
        turn: u64,
        requests: u64,
    },
    /// A turn waits until the pod is resumed.
    Paused {
        turn: u64,
    },
    /// The pod ends.
    Closing,
}
