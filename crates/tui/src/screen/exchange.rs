//! What a screen and its driver tell each other. Knows no terminal, no connection and no clock.

use crate::line::Line;
use crate::note::Paragraph;
use crate::slash::Slash;
use protocol::method::{AllowOrDeny, AllowScope, OpenApprovals, PreviewedCall, RecordPage, Verb};
use protocol::status::{DeliveryMode, Status};

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    pub columns: u16,
    pub rows: u16,
}

/// What a terminal shows: exactly as many rows as it has, none wider than it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    pub rows: Vec<Line>,
    /// Column and row of the caret, from 0.
    pub cursor: Option<(u16, u16)>,
}

/// A key, or a turn of the wheel. A paste is no key: see [`crate::Screen::paste`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// With the letter in lower case.
    Ctrl(char),
    Alt(char),
    Enter,
    /// Alt-Enter or Shift-Enter.
    AltEnter,
    Tab,
    BackTab,
    Esc,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    /// Ctrl-Left or Alt-Left.
    WordLeft,
    /// Ctrl-Right or Alt-Right.
    WordRight,
    AltUp,
    AltDown,
    Home,
    End,
    CtrlHome,
    CtrlEnd,
    PageUp,
    PageDown,
    WheelUp,
    WheelDown,
    F(u8),
}

/// What the driver has to do. It answers with a [`Reply`] where one is named, and with [`Reply::Failed`] if it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Send an input, or with the mode `run` a command behind its `!`; [`Reply::SendFailed`] if it was not accepted.
    Send { text: String, mode: DeliveryMode },
    /// Replace the text of an input that waits; [`Reply::SendFailed`] if it does not wait any more.
    EditInput { input: u64, text: String },
    /// Have the pod do it; [`Reply::Failed`] if it does not, or changes nothing.
    Do(Verb),
    /// Withdraw an input that waits, and only if that succeeds send its text in mode `steer`; for one that a command made,
    /// what the person typed.
    SendNow {
        input: u64,
        text: String,
        typed: Option<String>,
    },
    /// Answer a question; [`Reply::ApproveFailed`] if that fails. With the scope `rule` the driver also writes the rules.
    Approve {
        id: u64,
        decision: AllowOrDeny,
        scope: AllowScope,
        words: Option<String>,
        arguments_digest: String,
    },
    /// Ask for the method `approvals`; [`Reply::Approvals`] or [`Reply::ApprovalsFailed`].
    FetchApprovals,
    /// What the call of this question would change in a file now; [`Reply::CallPreview`].
    PreviewCall { id: u64 },
    /// What the scope `rule` would write for this question; [`Reply::RulePreview`].
    PreviewRule { id: u64 },
    /// End the process of the pod, once what runs has ended.
    Stop,
    /// Ask for the records before this one; [`Reply::Page`] or [`Reply::PageFailed`].
    OlderPage { before: u64 },
    /// The draft is this text now. Only the newest one matters: send it when the one before is answered.
    SetDraft(String),
    /// To the clipboard; [`Reply::Note`] says how.
    Copy(String),
    /// Edit the text in the person's editor; [`Reply::Edited`].
    OpenEditor(String),
    /// Open the whole conversation in the person's editor; [`Reply::Note`].
    OpenConversation,
    /// Write the whole conversation above the screen, where the terminal keeps it; [`Reply::Note`].
    PrintConversation,
    /// Look up the files below this directory; [`Reply::Files`].
    ListFiles(String),
    /// Ask for the method `status`; [`Reply::Status`].
    FetchStatus,
    /// End a job with all of its processes; [`Reply::Note`] once that is recorded.
    StopJob(u64),
    /// Ask for the method `features`; [`Reply::Features`].
    FetchFeatures,
    /// What this change of a feature would write; [`Reply::FeaturePreview`].
    PreviewFeature { id: String, change: FeatureChange },
    /// Make the change that was previewed last; [`Reply::FeatureChanged`].
    ChangeFeature { id: String, change: FeatureChange },
    /// Look at all pods; [`Reply::Pods`].
    ListPods,
    /// What the pod changed in files after this record; [`Reply::Shown`].
    ShowDiff { since: u64 },
    /// What an undo of the changes after this record would do; [`Reply::Shown`].
    PreviewUndo { to: u64 },
    /// Undo the changes after this record; [`Reply::Shown`].
    Undo { to: u64 },
    /// The agents that a pod can start as; [`Reply::Shown`].
    ListAgents,
    /// The models that can answer; [`Reply::Shown`].
    ListModels,
    /// Stop the pod and start it again with these options; [`Reply::Note`].
    Restart { options: Vec<String>, said: String },
    /// Start a new pod in this directory with this model; [`Reply::Started`].
    NewPod { dir: String, model: String },
    /// Take the mouse from the terminal, or give it back; [`Reply::Note`].
    TurnMouse,
    /// The model's list of tasks; [`Reply::Tasks`].
    ListTasks,
    /// Start a pod that does not run; [`Reply::Started`].
    StartPod(String),
    /// Leave this pod for another one; it keeps running.
    Switch(String),
    /// Leave; the pod keeps running.
    Detach,
}

impl Intent {
    pub(super) fn verb(verb: impl Into<Verb>) -> Self {
        Self::Do(verb.into())
    }

    /// The start with other options that a command asks for; none if it asks for something else.
    #[must_use]
    pub fn restart(slash: &Slash) -> Option<Self> {
        let (flag, value, said) = match slash {
            Slash::Model(model) if !model.is_empty() => {
                ("-m", model.as_str(), format!("{model} answers from now on"))
            }
            Slash::Effort(effort) => {
                let word = effort.word();
                (
                    "--effort",
                    word,
                    format!("the effort is {word} from now on"),
                )
            }
            _ => return None,
        };
        let options = vec![flag.to_owned(), value.to_owned()];
        Some(Self::Restart { options, said })
    }
}

/// What came of an [`Intent`].
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A text for people: what failed and why.
    Failed(String),
    /// A text for people: what was done.
    Note(String),
    /// An input was not accepted; its text goes back to the composer.
    SendFailed {
        text: String,
        why: String,
    },
    ApproveFailed {
        id: u64,
        why: String,
    },
    Approvals(OpenApprovals),
    /// The questions could not be fetched; it is tried again when the pod tells something.
    ApprovalsFailed(String),
    /// What would be written and which past calls it would have matched, in lines; or why no rule can be written.
    RulePreview {
        id: u64,
        text: Result<String, String>,
    },
    CallPreview {
        id: u64,
        call: PreviewedCall,
    },
    Page(RecordPage),
    PageFailed(String),
    Edited(String),
    Files(FoundFiles),
    /// What each feature adds and may do, as `yoi features` says it; or why the pod does not tell.
    Features(Result<FeatureList, String>),
    /// What would be written and from when on it counts, in lines; or why it cannot be changed.
    FeaturePreview {
        id: String,
        change: FeatureChange,
        text: Result<String, String>,
    },
    /// What was written.
    FeatureChanged(String),
    Status(Box<Status>),
    /// For the panel that was opened for it; or why there is nothing to show.
    Shown(Result<ShownText, String>),
    /// What the model has to do yet, a line for each task.
    Tasks(Vec<String>),
    /// Other pods that wait for a person.
    OthersWait(usize),
    /// A pod runs now, and the screen goes there.
    Started(String),
    /// What needs a person first; or why they cannot be listed.
    Pods(Result<Vec<PodEntry>, String>),
}

/// The files below a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// Separated by `/`.
    pub paths: Vec<String>,
    /// There may be more.
    pub is_cut: bool,
}

/// A text that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownText {
    pub text: String,
    /// Lines that come and go have their signs.
    pub is_diff: bool,
    /// Lines that were left out.
    pub more: u64,
    /// What a `y` does, once the text was seen to its end.
    pub confirms: Option<Intent>,
    /// Rows, and what each does.
    pub choices: Vec<(String, Intent)>,
}

/// Lines of a text in a panel.
const MAX_SHOWN: usize = 5000;

impl ShownText {
    /// A text, cut where it is too long for a panel.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let kept: Vec<&str> = text.lines().take(MAX_SHOWN).collect();
        Self {
            text: kept.join("\n"),
            more: text.lines().count().saturating_sub(MAX_SHOWN) as u64,
            ..Self::default()
        }
    }
}

/// What the pod told of its features.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureList {
    pub rows: Vec<Paragraph>,
    pub entries: Vec<FeatureEntry>,
}

/// A feature that can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureEntry {
    pub id: String,
    /// The place of the row that it is in.
    pub row: usize,
    /// What a person can change about it.
    pub changes: Vec<FeatureChange>,
}

/// A change of a feature that a person makes; it counts from the next start of the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureChange {
    /// In the person's own configuration.
    Enable,
    Disable,
    /// What the project's file asks for it.
    Grant,
    Revoke,
}

/// A pod that runs or needs a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodEntry {
    pub name: String,
    /// In words.
    pub state: String,
    /// A process has it: it can be attached to.
    pub is_live: bool,
    /// A call waits for a person.
    pub waits: bool,
    /// What else there is to say, such as what the call is.
    pub details: Vec<String>,
}

/// The connection to the pod, as its driver sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    #[default]
    Live,
    /// It is being made again; why it was lost.
    Lost(String),
    /// The pod has ended, in good order or not.
    Ended(Option<String>),
    /// Its process has ended and did not say so; when that was seen.
    Died(u64),
    /// There is none: a screen of a log.
    Recorded,
}
