//! What is said over the socket. Both ends are the same program, so nothing here is kept compatible.

use crate::exit::{Exit, Failure};
use llm_worker::effect::Outcome;
use llm_worker::{Cost, Usage};
use pod::control::{Activity, ModelWait, PodStatus, TurnEnd};
use pod::record::{InputId, InputLimits, InputMode};
use pod::session::fold::Hold;
use pod::session::queue::QueuedInput;
use serde::{Deserialize, Serialize};

/// One line of a client.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The number that the answer has, too.
    pub(crate) id: u64,
    /// The command that asks, for the journal.
    pub(crate) client: String,
    pub(crate) ask: Ask,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// The only request that every process of the user may make.
    Status,
    /// Answered once the input is durable; with `wait` a second time, when its turn has ended.
    Send(Send),
    /// Ends the running turn. Of an input: withdraws it, or ends its turn.
    Cancel {
        input: Option<InputId>,
    },
    Pause,
    Resume,
    /// Answered before the process ends, and a second time when the pod has ended.
    Stop {
        now: bool,
    },
    /// Undoes file changes after this record, if no turn runs.
    Undo {
        to: u64,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Send {
    pub(crate) text: String,
    pub(crate) mode: InputMode,
    pub(crate) key: Option<String>,
    pub(crate) limits: InputLimits,
    pub(crate) wait: bool,
}

/// One line of the pod.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) id: u64,
    pub(crate) answer: Answer,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Status(Box<LiveStatus>),
    Accepted {
        input: InputId,
    },
    /// The end of the turn that took the input. Every record up to `folded` can be read from the files.
    Ended {
        end: Box<TurnEnd>,
        folded: u64,
    },
    Done,
    Undone(Undone),
    Failed(Failure),
}

/// What `yoi undo` prints, and why it failed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Undone {
    pub(crate) lines: Vec<String>,
    pub(crate) failure: Option<Failure>,
}

impl Answer {
    pub(crate) fn failed(exit: Exit, message: impl Into<String>) -> Self {
        Self::Failed(Failure::new(exit, message))
    }
}

/// A live pod, as its process sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LiveStatus {
    pub(crate) state: LiveState,
    /// The number of the turn that runs, and the requests that were sent in it.
    pub(crate) turn: Option<u64>,
    pub(crate) step: Option<u64>,
    pub(crate) held: Option<Hold>,
    /// Why a turn that is due does not begin yet.
    pub(crate) model_wait: Option<ModelWait>,
    /// Why the disk refused the newest commit.
    pub(crate) disk: Option<String>,
    pub(crate) queued: Vec<Queued>,
    /// Notifications that no turn has delivered.
    pub(crate) notices: usize,
    pub(crate) turns: u64,
    pub(crate) requests: u64,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<Cost>,
    pub(crate) last_outcome: Option<Outcome>,
    pub(crate) model: String,
    /// Callbacks that did not return.
    pub(crate) stuck: usize,
    pub(crate) pid: u32,
    /// Microseconds since 1970.
    pub(crate) since: u64,
    pub(crate) version: String,
    pub(crate) sandbox: String,
    pub(crate) cwd: String,
    pub(crate) reload: ReloadReport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LiveState {
    Idle,
    Working,
    /// No turn begins, or the running one waits.
    Held,
    /// It is about to end.
    Stopping,
}

impl LiveState {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Held => "held",
            Self::Stopping => "stopping",
        }
    }
}

/// An input that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queued {
    pub(crate) input: InputId,
    pub(crate) mode: InputMode,
    /// Its first characters.
    pub(crate) text: String,
}

/// Characters of a waiting input's text in a status.
const SHOWN: usize = 200;

impl Queued {
    pub(crate) fn of(queued: &QueuedInput) -> Self {
        let QueuedInput { input, mode, text, .. } = queued;
        Self { input: *input, mode: *mode, text: text.chars().take(SHOWN).collect() }
    }
}

impl LiveStatus {
    pub(crate) fn of(status: PodStatus, host: &HostFacts, reload: ReloadReport) -> Self {
        let (state, turn, step) = match status.activity {
            Activity::Idle if status.held.is_some() => (LiveState::Held, None, None),
            Activity::Idle => (LiveState::Idle, None, None),
            Activity::Working { turn, requests } => (LiveState::Working, Some(turn), Some(requests)),
            Activity::Paused { turn } => (LiveState::Held, Some(turn), None),
            Activity::Closing => (LiveState::Stopping, None, None),
        };
        let HostFacts { pid, since, version, sandbox, cwd } = host.clone();
        Self {
            state,
            turn,
            step,
            held: status.held,
            model_wait: status.model_wait,
            disk: status.disk,
            queued: status.queued.iter().map(Queued::of).collect(),
            notices: status.notices,
            turns: status.turns,
            requests: status.requests,
            usage: status.usage,
            cost: status.cost,
            last_outcome: status.last_outcome,
            model: status.model,
            stuck: status.stuck,
            pid,
            since,
            version,
            sandbox,
            cwd,
            reload,
        }
    }
}

/// What the newest reload of the configuration left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReloadReport {
    /// Keys that have changed since the start and count from the next one on.
    pub(crate) next_start: Vec<String>,
    /// Why the configuration could not be used. The one before stays.
    pub(crate) refused: Option<String>,
}

/// What does not change while a process hosts a pod.
#[derive(Clone, Debug)]
pub(crate) struct HostFacts {
    pub(crate) pid: u32,
    /// When it took the pod, microseconds since 1970.
    pub(crate) since: u64,
    pub(crate) version: String,
    pub(crate) sandbox: String,
    pub(crate) cwd: String,
}
