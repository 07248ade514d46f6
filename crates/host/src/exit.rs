//! Exit codes, and the one shape of an error. Prints nothing.

use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// How the program ends; the numbers stand in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Done,
    Failed,
    /// The command line is wrong.
    Usage,
    /// A gate ended the turn, or its last tool outcome was a refusal.
    Refused,
    /// A budget or step limit was reached.
    Limit,
    /// The model was not reachable after retries.
    Model,
    /// A call waits for a person.
    Waiting,
    /// Stored or given data is damaged or unusable.
    Data,
    /// Something needed is not there.
    Unavailable,
    /// A fault in this program.
    Internal,
    /// The journal could not be written.
    Journal,
    /// Another process holds it.
    Busy,
    Config,
    Signal(u8),
}

impl Exit {
    /// The process's exit status.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Limit => 4,
            Self::Model => 5,
            Self::Waiting => 6,
            Self::Data => 65,
            Self::Unavailable => 69,
            Self::Internal => 70,
            Self::Journal => 74,
            Self::Busy => 75,
            Self::Config => 78,
            Self::Signal(number) => 128 + number,
        }
    }

    /// The same, for `main`.
    #[must_use]
    pub fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }
}

/// What failed and where, and the next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub exit: Exit,
    /// One line.
    pub message: String,
    pub help: Option<Help>,
}

/// The next step. The face puts it into words, where a command or flag of it is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Help {
    /// One line, without the word `help`, about no command and no flag.
    Text(String),
    ListPods,
    RunOrRemove(String),
    Salvage(String),
    StopOwner(String),
    /// What must be done first, and the pod to continue then.
    Continue(String, String),
    AskForLess(String),
    WritableStateDir {
        local: bool,
    },
    GrantAgain,
    GrantPluginAgain,
    AddServerAgain,
    RevokeGrants,
    GrantForms,
    GrantPlugins,
    /// Where a plugin is required that is not granted.
    RequiredPlugin(String),
    AdoptLostRules,
    /// A model's name that may be meant.
    WriteModel(Option<String>),
    ListFeatures,
    /// An agent's name that may be meant.
    ListAgents(Option<String>),
    PlanFeatures,
    /// Only an agent file of one's own chooses such a model.
    ChooseModel,
    /// Only an agent file of one's own switches this feature on.
    AttachFeature(String),
    PodOfNoAgent,
    /// The agent file of a pod.
    AgentChanged {
        pod: String,
        file: String,
    },
    OtherAgent {
        pod: String,
        file: String,
    },
    AdoptDrift(String),
    StartByCommand,
    OwnConfigFile,
    StartRun,
    ScriptFile,
    /// Rules that a person can write, behind a text.
    RuleExamples(String),
    AttachmentExamples,
    /// Names of variables of which one holds a key.
    SetKey {
        names: String,
        or_other_model: bool,
    },
    RemainingChanges(String),
}

impl<T: Into<String>> From<T> for Help {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl Failure {
    /// A failure without a next step to name.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            help: None,
        }
    }

    /// The same with a next step.
    #[must_use]
    pub fn help(mut self, help: impl Into<Help>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A thread that cannot be started: the limit on processes counts threads.
pub fn no_thread(error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Unavailable,
        format!("no thread can be started: {}", authority::explain(error)),
    )
    .help("raise the limit on processes: `ulimit -u`, or the one of the service or the container")
}
