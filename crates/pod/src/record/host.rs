//! Records of the process that holds the session: start, stop, recovery, the disk. They know no turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Body of `host_started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStarted {
    pub version: String,
    /// Its process id; diagnostic.
    pub pid: u32,
    /// The project root, absolute.
    pub project: String,
    /// The working directory, absolute.
    pub cwd: String,
    pub sandbox: String,
    /// BLAKE3 of the effective configuration, hex; secrets stand in it by name.
    pub config_digest: String,
    /// Directories that were added for reading, absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_dirs: Vec<String>,
    /// Directories that were added for reading and writing, absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_write_dirs: Vec<String>,
}

/// Body of `host_stopped`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStopped {
    /// Why, in a word or two.
    pub reason: String,
}

/// Body of `recovery`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// What the end of the log looked like: `clean`, `torn_tail`, `zero_tail` or `bad_tail`.
    pub class: String,
    /// Bytes cut from the end; they are in the quarantine file.
    pub cut_bytes: u64,
    /// The quarantine file's name, if bytes were cut.
    pub quarantine: Option<String>,
    pub open_calls: u64,
    pub open_turn: bool,
    /// Left-over child processes that were ended.
    pub ended_processes: u32,
    /// Why some may still run, when they could not be ended or looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survivors: Option<String>,
    /// Microseconds from the last record to this start.
    pub down_us: u64,
    /// Files that tools had written beside others, for changes that did not come about, and that were removed.
    #[serde(default, skip_serializing_if = "none")]
    pub swept: u64,
    /// Records that were lost since a recovery last spoke of any: only in a copy of a damaged log.
    #[serde(default, skip_serializing_if = "none")]
    pub lost: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn none(count: &u64) -> bool {
    *count == 0
}

/// Body of `features`: the registry's report, as `yoi features --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Features {
    pub report: serde_json::Value,
}

/// Body of `gap`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first record of the stretch that is lost.
    pub first: u64,
    pub last: u64,
    /// In the first one of a stretch: what is wrong there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Body of `suspended`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspended {
    /// What the disk said.
    pub reason: String,
}

/// Body of `resumed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {}

/// Body of `grants_used`: the ledger of a start, written when its host lets go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantsUsed {
    /// Each grant that was taken up, by feature in install order; at most 4,096.
    pub grants: Vec<UsedGrant>,
}

/// One grant and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsedGrant {
    /// Whose.
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
