//! Records of the process that holds the session: start, stop, recovery, refusals of the disk. Independent of turns.

use super::budget::{BudgetKind, BudgetScope};
use crate::tool::Effort;
use schemars::JsonSchema;
use serde_json::Value;

bodies! {
    /// A process took the session.
    ///
    /// Body of `host_started`: written with the first input of each start, after recovery.
    HostStarted {
        version: String,
        // The process id, for diagnosis only.
        pid: u32,
        // The project root, absolute.
        project: String,
        // The working directory, absolute.
        cwd: String,
        sandbox: String,
        /// BLAKE3 of the effective configuration, hex; a secret is represented by its name.
        - config_digest: String,
        /// Directories that were added for reading, absolute.
        - add_dirs =: Vec<String>,
        /// Directories that were added for reading and writing, absolute.
        - add_write_dirs =: Vec<String>,
        /// The other options of this start; none in logs of older versions.
        - launch ?: Launch,
    }
    /// What a start repaired after a stop that was not orderly.
    ///
    /// Body of `recovery`. Written once, before the start's other records.
    Recovery: Eq {
        // Damage at the end of the log: `clean`, `torn_tail`, `zero_tail` or `bad_tail`.
        class: String,
        // Bytes cut from the end; the quarantine file has them.
        cut_bytes: u64,
        /// The quarantine file's name, if bytes were cut.
        - quarantine: Option<String>,
        open_calls: u64,
        open_turn: bool,
        /// Runs of background tasks that had no end; 0 if absent.
        // Runs of background tasks that had no end; each has an `orphaned` record in the same batch.
        open_tasks =: u64,
        /// Child processes of the earlier start that were ended.
        - ended_processes: u32,
        /// The reason why some of them may still run.
        - survivors ?: String,
        // Microseconds from the last record to this start.
        down_us: u64,
        /// Temporary files of unfinished changes that were removed.
        - swept =: u64,
        /// Records lost since the previous recovery that reported any; only in a copy of a damaged log.
        - lost =: u64,
    }
    /// The pod is held, or ends because it cannot continue.
    ///
    /// Body of `suspended`: the pod is held (with a cause that holds), or ends because it cannot continue: then it is its last
    /// record. The event `Suspended` is another thing: the disk refused one commit, and the pod retries it.
    Suspended: Eq {
        // The reason, for people.
        reason: String,
        cause ?: HoldCause,
        /// Whose budget is used up: `run` or `pod`.
        budget ?: BudgetScope,
        by ?: Who,
    }
    /// A hold has ended.
    ///
    /// Body of `resumed`: with a cause, the hold with that cause has ended. Without one, the disk had refused commits and
    /// accepts them again.
    Resumed: Default Eq {
        cause ?: HoldCause,
        /// What the pod gets of its budget once more: `steps`, `cost`, `tokens`, `time`.
        more =: Vec<BudgetKind>,
        by ?: Who,
    }
}

plain_bodies! {
    /// The process stopped in good order.
    // Body of `host_stopped`: the last record of an orderly stop. If it is missing, the next start runs recovery.
    HostStopped {
        // The reason for people, one or two words.
        reason: String,
    }
    /// Lost records; only in a copy of a damaged journal.
    // Body of `gap`: a range of lost records. The store writes it into a copy of a damaged log.
    Gap {
        // The first lost record.
        first: u64,
        last: u64,
        // The damage; only in the first `gap` of a range.
        reason ?: String,
    }
    /// The person or program that asked for something.
    // As the host knows it.
    Who {
        /// The program, as in `yoi send`.
        client: String,
        role: String,
        // The user id of its process.
        uid: u32,
        name ?: String,
    }
}

host_parts! {
    /// The options that a pod was started with, so that it can be started again the same way. An option that is absent was
    /// left to the configuration. Never a secret.
    Launch: Default {
        /// The model that answered, also if the configuration chose it.
        model ?: String,
        effort ?: Effort,
        sandbox ?: String,
        /// Rules of the command line, as written there.
        allow =: Vec<String>,
        max_steps ?: u32,
        /// US dollars.
        max_cost ?: f64,
        /// Read and written.
        max_tokens ?: u64,
        /// Seconds.
        max_wall_s ?: u64,
        /// Whether instruction files are read.
        instructions ?: bool,
        /// Features that the command line attaches, as written there.
        with =: Vec<String>,
        /// Features that the command line switches off.
        without =: Vec<String>,
        profile ?: String,
        /// Directories of plugins that the command line added.
        plugin_dirs =: Vec<String>,
        /// Whether every plugin that is found must be installed.
        strict_plugins ?: bool,
        /// The agent of this start; its pod goes on as this agent only.
        agent ?: LaunchedAgent,
        /// The options of one `yoi run`: of these, a later start takes the model and its effort only.
        run =: bool,
    }
    /// The agent of a start.
    LaunchedAgent: Eq Default {
        /// The path of its file, absolute, without links.
        file: String,
        /// BLAKE3 of its bytes, hex.
        digest: String,
        /// What it is called.
        name ?: String,
        /// The arguments of the start, each as NAME=VALUE.
        arguments =: Vec<String>,
    }
    /// Body of `features`: the install report of a start, as `yoi features --json` prints it.
    Features {
        report: Value,
    }
    /// Body of `grants_used`: the use of all grants of a start so far. Written at the first turn after each hour, and when
    /// the pod stops.
    GrantsUsed: Eq {
        /// Each grant with a handle, by feature in install order; at most 4,096.
        grants: Vec<UsedGrant>,
    }
    /// One grant and its use.
    UsedGrant: Eq JsonSchema {
        feature: String,
        /// What was granted, in words, as in `Process(*)`.
        grant: String,
        /// How often it was used.
        uses: u64,
        /// How often a use was refused.
        refused: u64,
        /// When it was last used, in milliseconds since 1970.
        last_use_ms ?: u64,
    }
}

words! {
    /// Why no turn runs, or why the running one waits.
    HoldCause {
        /// A turn was cancelled. The next input ends the hold.
        Cancel = "cancel",
        /// A person paused the pod.
        Person = "person",
        /// A turn reached a limit, or the pod has used what it may.
        Budget = "budget",
        /// A gate at the end of a turn asked for a person.
        Gate = "gate",
        /// Something that the pod needs is missing, such as a key. The next start looks again.
        Required = "required",
        /// The disk refuses commits. No record begins this hold, because none can be written.
        Disk = "disk",
        /// A fault of this program: the next start tries again, except after turns that ended the process again and again.
        Bug = "bug",
    }
}

impl HoldCause {
    /// Whether a `suspended` record with this cause begins a hold; with the others the pod retries, or ends.
    pub fn holds(self) -> bool {
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
