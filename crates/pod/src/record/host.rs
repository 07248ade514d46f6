//! Records of the process that holds the session: start, stop, recovery, refusals of the disk. Independent of turns.

use super::budget::{BudgetKind, BudgetScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Body of `host_started`: written with the first input of each start, after recovery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostStarted {
    pub version: String,
    /// The process id, for diagnosis only.
    pub pid: u32,
    /// The project root, absolute.
    pub project: String,
    /// The working directory, absolute.
    pub cwd: String,
    pub sandbox: String,
    /// BLAKE3 of the effective configuration, hex; a secret is represented by its name.
    pub config_digest: String,
    /// Directories that were added for reading, absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_dirs: Vec<String>,
    /// Directories that were added for reading and writing, absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_write_dirs: Vec<String>,
    /// The other options of this start; none in logs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
}

/// The options that a pod was started with, so that it can be started again the same way. An option that is absent was
/// left to the configuration. Never a secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The model that answered, also if the configuration chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Rules of the command line, as written there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wall_s: Option<u64>,
    /// Whether instruction files are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<bool>,
    /// Features that the command line attaches, as written there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Features that the command line switches off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Directories of plugins that the command line added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugin_dirs: Vec<String>,
    /// Whether every plugin that is found must be installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_plugins: Option<bool>,
    /// The agent of this run; its pod goes on as this agent only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<LaunchedAgent>,
    /// The options of one `yoi run`: of these, a later start takes the model only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
}

/// The agent file of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchedAgent {
    /// Its path, absolute, without links.
    pub file: String,
    /// BLAKE3 of its bytes, hex.
    pub digest: String,
}

/// Body of `host_stopped`: the last record of an orderly stop. If it is missing, the next start runs recovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStopped {
    /// The reason for people, one or two words.
    pub reason: String,
}

/// Body of `recovery`: what a start repaired after a stop that was not orderly. Written once, before the start's other
/// records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Damage at the end of the log: `clean`, `torn_tail`, `zero_tail` or `bad_tail`.
    pub class: String,
    /// Bytes cut from the end; the quarantine file has them.
    pub cut_bytes: u64,
    /// The quarantine file's name, if bytes were cut.
    pub quarantine: Option<String>,
    pub open_calls: u64,
    pub open_turn: bool,
    /// Runs of background tasks that had no end; each has an `orphaned` record in the same batch.
    #[serde(default, skip_serializing_if = "none")]
    pub open_tasks: u64,
    /// Child processes of the earlier start that were ended.
    pub ended_processes: u32,
    /// The reason why some of them may still run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survivors: Option<String>,
    /// Microseconds from the last record to this start.
    pub down_us: u64,
    /// Temporary files of unfinished changes that were removed.
    #[serde(default, skip_serializing_if = "none")]
    pub swept: u64,
    /// Records lost since the previous recovery that reported any; only in a copy of a damaged log.
    #[serde(default, skip_serializing_if = "none")]
    pub lost: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn none(count: &u64) -> bool {
    *count == 0
}

/// Body of `features`: the install report of a start, as `yoi features --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Features {
    pub report: serde_json::Value,
}

/// Body of `gap`: a range of lost records. The store writes it into a copy of a damaged log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first lost record.
    pub first: u64,
    pub last: u64,
    /// The damage; only in the first `gap` of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The person or program that asked for something, as the host knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The program, as in `yoi send`.
    pub client: String,
    pub role: String,
    /// The user id of its process.
    pub uid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Why no turn runs, or why the running one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldCause {
    /// A turn was cancelled. The next input ends the hold.
    Cancel,
    /// A person paused the pod.
    Person,
    /// A turn reached a limit, or the pod has used what it may.
    Budget,
    /// A gate at the end of a turn asked for a person.
    Gate,
    /// Something that the pod needs is missing, such as a key. The next start looks again.
    Required,
    /// The disk refuses commits. No record begins this hold, because none can be written.
    Disk,
    /// A fault of this program: the next start tries again, except after turns that ended the process again and again.
    Bug,
}

impl HoldCause {
    /// Whether a `suspended` record with this cause begins a hold; with the others the pod retries, or ends.
    pub(crate) fn holds(self) -> bool {
        match self {
            Self::Cancel
            | Self::Person
            | Self::Budget
            | Self::Gate
            | Self::Required
            | Self::Bug => true,
            Self::Disk => false,
        }
    }
}

/// Body of `suspended`: the pod is held (with a cause that holds), or ends because it cannot continue: then it is its last
/// record. The event `Suspended` is another thing: the disk refused one commit, and the pod retries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspended {
    /// The reason, for people.
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HoldCause>,
    /// Whose budget is used up, with the cause `budget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetScope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

/// Body of `resumed`: with a cause, the hold with that cause has ended. Without one, the disk had refused commits and
/// accepts them again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HoldCause>,
    /// The pod gets this of its budget once more, counted from this record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<BudgetKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
}

/// Body of `grants_used`: the use of all grants of a start so far. Written at the first turn after each hour, and when
/// the pod stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantsUsed {
    /// Each grant with a handle, by feature in install order; at most 4,096.
    pub grants: Vec<UsedGrant>,
}

/// One grant and its use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsedGrant {
    pub feature: String,
    /// What was granted, in words, as in `Process(*)`.
    pub grant: String,
    /// How often it was used.
    pub uses: u64,
    /// How often a use was refused.
    pub refused: u64,
    /// When it was last used, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_use_ms: Option<u64>,
}
