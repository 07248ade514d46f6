//! Shell commands and the rules about programs: what a command is taken for is what bash makes of it.
//!
//! `tricks.txt` has the rows and says which rules they are judged by.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: what fails here is a failed test"
)]

mod bash;
mod chance;
mod differential;
mod explained;
mod jail;
mod secrets;
mod starters;
mod tricks;

use authority::{Access, SandboxMode, Workspace};
use llm_worker::ToolEffect;
use llm_worker::tool::Touch;
use pod::feature::FeatureId;
use pod::permission::{CallFacts, Layer, Policy, PolicyDecision, Rule, RuleDecision, SandboxState};

const CONFINED: SandboxState = SandboxState {
    mode: SandboxMode::WorkspaceWrite,
    enforced: true,
};
const OFF: SandboxState = SandboxState {
    mode: SandboxMode::Off,
    enforced: true,
};

/// Which must answer what: `("+", "-", "git status")`.
struct Row {
    allowed: &'static str,
    denied: &'static str,
    text: String,
}

fn rows() -> Vec<Row> {
    let lines = include_str!("tricks.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let rows = lines.map(|line| {
        let mut fields = line.splitn(3, ' ');
        let allowed = fields.next().unwrap();
        let denied = fields.next().unwrap();
        Row {
            allowed,
            denied,
            text: fields.next().unwrap().replace('⏎', "\n"),
        }
    });
    rows.collect()
}

struct World {
    _dir: tempfile::TempDir,
    workspace: Workspace,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let workspace =
            Workspace::open(&ambient::claim(), dir.path(), dir.path(), Access::ReadWrite).unwrap();
        Self {
            _dir: dir,
            workspace,
        }
    }

    fn judge(&self, policy: &Policy, text: &str, now: SandboxState) -> PolicyDecision {
        let feature = FeatureId::builtin("shell");
        let touches = [Touch::Shell(text.to_owned())];
        let call = CallFacts {
            tool: "Bash",
            effect: ToolEffect::Effectful,
            touches: &touches,
            feature: &feature,
        };
        policy.judge(&call, &self.workspace, now)
    }

    fn runs(&self, policy: &Policy, text: &str, now: SandboxState) -> bool {
        self.judge(policy, text, now).decision.allows()
    }
}

/// `git status,diff` and its like, as a rule about Bash.
fn about(command: &str, decision: RuleDecision) -> Rule {
    let (program, subcommands) = command
        .split_once(' ')
        .map_or((command, None), |(p, s)| (p, Some(s)));
    let subcommand = subcommands.map(|listed| listed.split(',').map(str::to_owned).collect());
    Rule {
        program: Some(program.to_owned()),
        subcommand,
        ..Rule::new("Bash", decision)
    }
}

fn layer(source: &str, rules: Vec<Rule>) -> Layer {
    Layer::new(source, rules).unwrap()
}
