//! The state of a live pod, for the people and programs that ask. Does not depend on turns.

use crate::session::fold::Hold;
use crate::session::queue::QueuedInput;
use llm_worker::effect::Outcome;
use llm_worker::{Cost, Usage};
use serde::{Deserialize, Serialize};

/// What a live pod does now, from its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PodStatus {
    pub activity: Activity,
    /// Why no turn begins, or why the running one waits.
    pub held: Option<Hold>,
    /// Why a turn that is due does not begin yet.
    pub model_wait: Option<ModelWait>,
    /// Why the disk refused the newest commit; the pod tries again.
    pub disk: Option<String>,
    /// The inputs that wait, in order.
    pub queued: Vec<QueuedInput>,
    /// Notifications that wait for the next step.
    pub notices: usize,
    pub turns: u64,
    pub requests: u64,
    pub usage: Usage,
    /// Cost of all answers, as far as prices were known.
    pub cost: Option<Cost>,
    pub last_outcome: Option<Outcome>,
    /// The model's name.
    pub model: String,
    /// The newest record that the pod has folded.
    pub folded: u64,
    /// Gates, tools and observers that did not return.
    pub stuck: usize,
}

/// The model could not be reached; a pod that stays tries again by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelWait {
    pub reason: String,
    /// Seconds until then, rounded up.
    pub retry_in_s: u64,
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
    /// A turn waits until the pod is resumed.
    Paused {
        turn: u64,
    },
    /// The pod ends.
    Closing,
}
