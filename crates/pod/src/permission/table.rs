//! The default policy, as data. It knows no tool.

use super::explain::Matter;
use super::place::{Side, Target, Way};
use super::remedy::Remedy;
use super::rule::RuleDecision::{self, Allow, Ask, Deny};
use llm_worker::ToolEffect;

/// One line of the default policy.
pub(super) struct Row {
    /// What it is about.
    pub(super) text: &'static str,
    /// With the sandbox in force.
    pub(super) confined: RuleDecision,
    /// Without.
    pub(super) otherwise: RuleDecision,
    /// What a person does to allow it.
    pub(super) unlock: Unlock,
}

/// What allows what a row refuses.
pub(super) enum Unlock {
    /// An allow rule for this tool.
    Rule,
    /// An allow rule for reading that file.
    Secret,
    By(Remedy),
}

const READ_INSIDE: Row =
    Row { text: "reading inside the project", confined: Allow, otherwise: Allow, unlock: Unlock::Rule };
const READ_OUTSIDE: Row =
    Row { text: "reading outside the project", confined: Ask, otherwise: Ask, unlock: Unlock::By(Remedy::AddDir) };
const WRITE_INSIDE: Row =
    Row { text: "writing inside the project", confined: Allow, otherwise: Ask, unlock: Unlock::Rule };
const READ_SECRET: Row =
    Row { text: "reading a file that may hold secrets", confined: Ask, otherwise: Ask, unlock: Unlock::Secret };
const WRITE_GUARDED: Row = Row {
    text: "writing .git/**, .env*, yoi.toml or a file that may hold secrets",
    confined: Ask,
    otherwise: Ask,
    unlock: Unlock::Rule,
};
const WRITE_READ_ONLY: Row = Row {
    text: "writing to a directory added for reading",
    confined: Deny,
    otherwise: Deny,
    unlock: Unlock::By(Remedy::AddWriteDir),
};
const WRITE_OUTSIDE: Row = Row {
    text: "writing outside the project",
    confined: Deny,
    otherwise: Deny,
    unlock: Unlock::By(Remedy::AddWriteDir),
};
const WRITE_IN_READ_ONLY_MODE: Row = Row {
    text: "writing in read-only mode",
    confined: Deny,
    otherwise: Deny,
    unlock: Unlock::By(Remedy::LeaveReadOnly),
};
const COMMAND: Row = Row {
    text: "running commands, and effects a tool does not name",
    confined: Allow,
    otherwise: Ask,
    unlock: Unlock::Rule,
};
const HOST: Row =
    Row { text: "reading from a host that the user granted", confined: Allow, otherwise: Allow, unlock: Unlock::Rule };
const SESSION: Row = Row {
    text: "changing the session's own state, and nothing else",
    confined: Allow,
    otherwise: Allow,
    unlock: Unlock::Rule,
};
const NOTHING: Row = Row {
    text: "reading nothing but the session's own records",
    confined: Allow,
    otherwise: Allow,
    unlock: Unlock::Rule,
};
const LOST: Row = Row {
    text: "a path that cannot be resolved",
    confined: Deny,
    otherwise: Deny,
    unlock: Unlock::By(Remedy::FixPath),
};

/// Every row, in the order a report shows them.
pub(super) const ROWS: [&Row; 13] = [
    &READ_INSIDE,
    &READ_SECRET,
    &READ_OUTSIDE,
    &WRITE_INSIDE,
    &WRITE_GUARDED,
    &WRITE_READ_ONLY,
    &WRITE_OUTSIDE,
    &WRITE_IN_READ_ONLY_MODE,
    &COMMAND,
    &HOST,
    &SESSION,
    &NOTHING,
    &LOST,
];

/// The row that answers for a target.
pub(super) fn row(target: &Target, read_only: bool) -> &'static Row {
    match target {
        Target::Path { way: Way::Read, side: Side::Inside | Side::ReadOnly, guarded: true, .. } => &READ_SECRET,
        Target::Path { way: Way::Read, side: Side::Inside | Side::ReadOnly, guarded: false, .. } => &READ_INSIDE,
        Target::Path { way: Way::Read, side: Side::Outside, .. } => &READ_OUTSIDE,
        Target::Path { way: Way::Write, side: Side::Outside, .. } => &WRITE_OUTSIDE,
        Target::Path { way: Way::Write, .. } if read_only => &WRITE_IN_READ_ONLY_MODE,
        Target::Path { way: Way::Write, side: Side::ReadOnly, .. } => &WRITE_READ_ONLY,
        Target::Path { way: Way::Write, side: Side::Inside, guarded: true, .. } => &WRITE_GUARDED,
        Target::Path { way: Way::Write, side: Side::Inside, guarded: false, .. } => &WRITE_INSIDE,
        Target::Command | Target::Part(..) => &COMMAND,
        Target::Host(_) => &HOST,
        Target::Session => &SESSION,
        Target::Nothing => &NOTHING,
        Target::Lost { .. } => &LOST,
    }
}

/// What is said of commands, whatever they are.
pub(super) fn command(confined: bool) -> RuleDecision {
    COMMAND.decision(confined)
}

/// The rows that may answer for what calls of a tool do, when only its effect is known.
pub(super) fn expected(effect: ToolEffect, read_only: bool) -> Vec<(Matter, &'static Row)> {
    match effect {
        ToolEffect::ReadOnly => vec![
            (Matter::Reads, &READ_INSIDE),
            (Matter::Reads, &READ_SECRET),
            (Matter::Reads, &READ_OUTSIDE),
            (Matter::Hosts, &HOST),
            (Matter::Nothing, &NOTHING),
            (Matter::Lost, &LOST),
        ],
        ToolEffect::Idempotent | ToolEffect::Effectful if read_only => vec![
            (Matter::Writes, &WRITE_IN_READ_ONLY_MODE),
            (Matter::Writes, &WRITE_OUTSIDE),
            (Matter::Runs, &COMMAND),
            (Matter::Reads, &READ_SECRET),
            (Matter::Session, &SESSION),
            (Matter::Lost, &LOST),
        ],
        ToolEffect::Idempotent | ToolEffect::Effectful => vec![
            (Matter::Writes, &WRITE_INSIDE),
            (Matter::Writes, &WRITE_GUARDED),
            (Matter::Writes, &WRITE_READ_ONLY),
            (Matter::Writes, &WRITE_OUTSIDE),
            (Matter::Runs, &COMMAND),
            (Matter::Reads, &READ_SECRET),
            (Matter::Session, &SESSION),
            (Matter::Lost, &LOST),
        ],
    }
}

impl Row {
    pub(super) fn decision(&self, confined: bool) -> RuleDecision {
        if confined { self.confined } else { self.otherwise }
    }
}
