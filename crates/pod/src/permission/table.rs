//! The default policy, as data. Depends on no tool's name.

use super::explain::ActionKind;
use super::place::{AccessMode, Side, Target};
use super::remedy::Remedy;
use super::rule::RuleDecision::{self, Allow, Ask, Deny};
use llm_worker::ToolEffect;

/// One line of the default policy.
pub(super) struct DefaultRule {
    pub(super) text: &'static str,
    /// The decision if the sandbox confines commands.
    pub(super) confined: RuleDecision,
    pub(super) otherwise: RuleDecision,
    /// The remedy that a refusal names.
    pub(super) remedy: RowRemedy,
}

/// The remedy for a refusal by a default rule.
pub(super) enum RowRemedy {
    /// An allow rule for this tool.
    Rule,
    /// An allow rule for reading that file.
    Secret,
    /// Adding the path's directory for reading.
    AddDir,
    /// Adding the path's directory for writing.
    AddWriteDir,
    By(Remedy),
}

static READ_INSIDE: DefaultRule = row("reading inside the project", Allow, Allow, RowRemedy::Rule);
static READ_OUTSIDE: DefaultRule = row("reading outside the project", Ask, Ask, RowRemedy::AddDir);
static WRITE_INSIDE: DefaultRule = row("writing inside the project", Allow, Ask, RowRemedy::Rule);
static READ_SECRET: DefaultRule = row(
    "reading a file that may hold secrets",
    Ask,
    Ask,
    RowRemedy::Secret,
);
static WRITE_GUARDED: DefaultRule = row(
    "writing .git/**, .yoi/plugins/**, .env*, yoi.toml or a file that may hold secrets",
    Ask,
    Ask,
    RowRemedy::Rule,
);
static WRITE_READ_ONLY: DefaultRule = row(
    "writing to a directory added for reading",
    Deny,
    Deny,
    RowRemedy::AddWriteDir,
);
static WRITE_OUTSIDE: DefaultRule = row(
    "writing outside the project",
    Deny,
    Deny,
    RowRemedy::AddWriteDir,
);
static WRITE_IN_READ_ONLY_MODE: DefaultRule = row(
    "writing in read-only mode",
    Deny,
    Deny,
    RowRemedy::By(Remedy::LeaveReadOnly),
);
static COMMAND: DefaultRule = row(
    "running commands, and tools with unknown effects",
    Allow,
    Ask,
    RowRemedy::Rule,
);
static HOST: DefaultRule = row(
    "reading from a host that you allowed",
    Allow,
    Allow,
    RowRemedy::Rule,
);
static REMOTE: DefaultRule = row(
    "changing something on a host or in a service",
    Ask,
    Ask,
    RowRemedy::Rule,
);
static REMOTE_IN_READ_ONLY_MODE: DefaultRule = row(
    "changing something on a host or in a service, in read-only mode",
    Deny,
    Deny,
    RowRemedy::By(Remedy::LeaveReadOnly),
);
static ESCALATE: DefaultRule = row(
    "running a command outside the sandbox or with the network",
    Ask,
    Allow,
    RowRemedy::By(Remedy::AskPerson),
);
static CONNECT: DefaultRule = row(
    "letting a command connect to a host",
    Ask,
    Allow,
    RowRemedy::Rule,
);
static ESCALATE_IN_READ_ONLY_MODE: DefaultRule = row(
    "running a command outside the sandbox or with the network, in read-only mode",
    Deny,
    Deny,
    RowRemedy::By(Remedy::LeaveReadOnly),
);
static SESSION: DefaultRule = row(
    "changing only the pod's own state",
    Allow,
    Allow,
    RowRemedy::Rule,
);
static NOTHING: DefaultRule = row(
    "reading only the pod's own records",
    Allow,
    Allow,
    RowRemedy::Rule,
);
static LOST: DefaultRule = row(
    "a path that cannot be resolved",
    Deny,
    Deny,
    RowRemedy::By(Remedy::FixPath),
);

const fn row(
    text: &'static str,
    confined: RuleDecision,
    otherwise: RuleDecision,
    remedy: RowRemedy,
) -> DefaultRule {
    DefaultRule {
        text,
        confined,
        otherwise,
        remedy,
    }
}

/// Every default rule, in the order of reports.
pub(super) static ROWS: [&DefaultRule; 18] = [
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
    &REMOTE,
    &REMOTE_IN_READ_ONLY_MODE,
    &ESCALATE,
    &CONNECT,
    &ESCALATE_IN_READ_ONLY_MODE,
    &SESSION,
    &NOTHING,
    &LOST,
];

/// The default rule for a target.
pub(super) fn answering(target: &Target, read_only: bool) -> &'static DefaultRule {
    match target {
        Target::Path {
            way: AccessMode::Read,
            side: Side::Inside | Side::ReadOnly,
            guarded: true,
            ..
        } => &READ_SECRET,
        Target::Path {
            way: AccessMode::Read,
            side: Side::Inside | Side::ReadOnly,
            guarded: false,
            ..
        } => &READ_INSIDE,
        Target::Path {
            way: AccessMode::Read,
            side: Side::Outside,
            ..
        } => &READ_OUTSIDE,
        Target::Path {
            way: AccessMode::Write,
            side: Side::Outside,
            ..
        } => &WRITE_OUTSIDE,
        Target::Path {
            way: AccessMode::Write,
            ..
        } if read_only => &WRITE_IN_READ_ONLY_MODE,
        Target::Path {
            way: AccessMode::Write,
            side: Side::ReadOnly,
            ..
        } => &WRITE_READ_ONLY,
        Target::Path {
            way: AccessMode::Write,
            side: Side::Inside,
            guarded: true,
            ..
        } => &WRITE_GUARDED,
        Target::Path {
            way: AccessMode::Write,
            side: Side::Inside,
            guarded: false,
            ..
        } => &WRITE_INSIDE,
        Target::Command | Target::Part(..) => &COMMAND,
        Target::Host(_) => &HOST,
        Target::Remote(_) if read_only => &REMOTE_IN_READ_ONLY_MODE,
        Target::Remote(_) => &REMOTE,
        Target::Escalate(..) | Target::Connect(..) if read_only => &ESCALATE_IN_READ_ONLY_MODE,
        Target::Escalate(..) => &ESCALATE,
        Target::Connect(..) => &CONNECT,
        Target::Session => &SESSION,
        Target::Nothing => &NOTHING,
        Target::Lost { .. } => &LOST,
    }
}

/// The default decision about commands.
pub(super) fn command(confined: bool) -> RuleDecision {
    COMMAND.decision(confined)
}

/// The default rules that may apply to calls of a tool, when only its effect is known.
pub(super) fn expected(
    effect: ToolEffect,
    read_only: bool,
) -> Vec<(ActionKind, &'static DefaultRule)> {
    match effect {
        ToolEffect::ReadOnly => vec![
            (ActionKind::Reads, &READ_INSIDE),
            (ActionKind::Reads, &READ_SECRET),
            (ActionKind::Reads, &READ_OUTSIDE),
            (ActionKind::Hosts, &HOST),
            (ActionKind::Nothing, &NOTHING),
            (ActionKind::Lost, &LOST),
        ],
        ToolEffect::Idempotent | ToolEffect::Effectful if read_only => vec![
            (ActionKind::Writes, &WRITE_IN_READ_ONLY_MODE),
            (ActionKind::Writes, &WRITE_OUTSIDE),
            (ActionKind::Runs, &COMMAND),
            (ActionKind::Remote, &REMOTE_IN_READ_ONLY_MODE),
            (ActionKind::Reads, &READ_SECRET),
            (ActionKind::Session, &SESSION),
            (ActionKind::Lost, &LOST),
        ],
        ToolEffect::Idempotent | ToolEffect::Effectful => vec![
            (ActionKind::Writes, &WRITE_INSIDE),
            (ActionKind::Writes, &WRITE_GUARDED),
            (ActionKind::Writes, &WRITE_READ_ONLY),
            (ActionKind::Writes, &WRITE_OUTSIDE),
            (ActionKind::Runs, &COMMAND),
            (ActionKind::Remote, &REMOTE),
            (ActionKind::Reads, &READ_SECRET),
            (ActionKind::Session, &SESSION),
            (ActionKind::Lost, &LOST),
        ],
    }
}

impl DefaultRule {
    pub(super) fn decision(&self, confined: bool) -> RuleDecision {
        if confined {
            self.confined
        } else {
            self.otherwise
        }
    }
    /// Whether only an added directory makes the action possible, which no answer and no rule adds.
    pub(super) const fn needs_dir(&self) -> bool {
        matches!(self.remedy, RowRemedy::AddDir)
    }

    /// The decision for reports: no one is asked for what needs a directory.
    pub(super) fn stated(&self, confined: bool) -> RuleDecision {
        if self.needs_dir() {
            RuleDecision::Deny
        } else {
            self.decision(confined)
        }
    }
}
