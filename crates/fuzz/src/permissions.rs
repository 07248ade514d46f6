//! Permission rules, whatever they are, over calls, whatever these name.
//!
//! An input is lines: `off`, `locked` or `bare` for the sandbox; `2 deny Bash git push,pull`, `0 allow Write =src/**` or
//! `1 ask Fetch @x.org` for a rule and its layer; then what is called: `<path`, `>path`, `@host`, or `$` and a command to
//! the input's end. `%` parts two commands that are judged alone and joined.

use authority::{Access, SandboxMode, Workspace};
use llm_worker::ToolEffect;
use llm_worker::tool::Touch;
use pod::feature::FeatureId;
use pod::permission::{
    CallFacts, HostTerms, Layer, Policy, PolicyDecision, Rule, RuleDecision, SandboxState,
};
use shell::parse;
use std::path::PathBuf;

use crate::commands::{is_bash, opaque};

/// Layers, outermost first: the machine's, the user's, the project's, flags.
const LAYERS: usize = 4;
const PROJECT: usize = 2;
/// Most rules that are read: each promise judges anew.
const MAX_RULES: usize = 24;
/// What stands between two commands without hiding one.
const JOINERS: [&str; 6] = ["\n", "; ", " && ", " || ", " | ", " & "];

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let case = Case::read(&text);
    WORLD.with(|world| case.holds(&world.workspace, input.len()));
}

struct World {
    _dir: tempfile::TempDir,
    workspace: Workspace,
}

thread_local! {
    static WORLD: World = World::new();
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let project = dir.path().join("project");
        for name in ["project/.git", "project/src", "outside"] {
            std::fs::create_dir_all(dir.path().join(name)).expect("a directory");
        }
        std::os::unix::fs::symlink("../outside", project.join("out")).expect("a link");
        std::os::unix::fs::symlink(".git", project.join("innocent")).expect("a link");
        let workspace = Workspace::open(&ambient::claim(), &project, &project, Access::ReadWrite)
            .expect("a project");
        Self {
            _dir: dir,
            workspace,
        }
    }
}

/// Rules with their layer, and one call.
struct Case {
    now: SandboxState,
    rules: Vec<(usize, Rule)>,
    tool: &'static str,
    effect: ToolEffect,
    touch: Touch,
}

impl Case {
    fn read(text: &str) -> Self {
        let mut now = SandboxState {
            mode: SandboxMode::WorkspaceWrite,
            enforced: true,
        };
        let mut rules = Vec::new();
        let mut rest = text;
        while let Some((line, behind)) = rest.split_once('\n') {
            if line.starts_with(['$', '<', '>', '@']) {
                break;
            }
            match line {
                "off" => now.mode = SandboxMode::Off,
                "locked" => now.mode = SandboxMode::ReadOnly,
                "bare" => now.enforced = false,
                line if rules.len() < MAX_RULES => rules.extend(rule(line)),
                _ => {}
            }
            rest = behind;
        }
        let line = || {
            rest.get(1..)
                .unwrap_or_default()
                .lines()
                .next()
                .unwrap_or_default()
        };
        let (tool, effect, touch) = match rest.chars().next() {
            Some('<') => (
                "Read",
                ToolEffect::ReadOnly,
                Touch::Read(PathBuf::from(line())),
            ),
            Some('>') => (
                "Write",
                ToolEffect::Idempotent,
                Touch::Write(PathBuf::from(line())),
            ),
            Some('@') => (
                "Fetch",
                ToolEffect::ReadOnly,
                Touch::Host(line().to_owned()),
            ),
            Some('$') => (
                "Bash",
                ToolEffect::Effectful,
                Touch::Shell(rest[1..].to_owned()),
            ),
            Some(_) | None => ("Bash", ToolEffect::Effectful, Touch::Shell(rest.to_owned())),
        };
        Self {
            now,
            rules,
            tool,
            effect,
            touch,
        }
    }

    fn decide(
        &self,
        rules: &[(usize, Rule)],
        touch: &Touch,
        workspace: &Workspace,
    ) -> PolicyDecision {
        let layer = |number: usize| {
            let own = rules
                .iter()
                .filter(|(layer, _)| *layer == number)
                .map(|(_, rule)| rule.clone())
                .collect();
            Layer::new(number.to_string(), own).expect("rules that were read one by one")
        };
        let terms = HostTerms {
            read: "Read",
            shell: "Bash",
            jobs: "JobStart",
            run: |command| serde_json::json!({ "command": command }).to_string(),
            remedy: |remedy| format!("{remedy:?}"),
        };
        let policy = Policy::new(terms, (0..LAYERS).map(layer).collect());
        let feature = FeatureId::builtin("fuzz");
        let touches = std::slice::from_ref(touch);
        let call = CallFacts {
            tool: self.tool,
            effect: self.effect,
            touches,
            feature: &feature,
        };
        policy.judge(&call, workspace, self.now)
    }

    fn runs(&self, rules: &[(usize, Rule)], workspace: &Workspace) -> bool {
        runs(&self.decide(rules, &self.touch, workspace))
    }

    /// Each promise once: `choice` says for which rule, place and joiner.
    fn holds(&self, workspace: &Workspace, choice: usize) {
        let decision = self.decide(&self.rules, &self.touch, workspace);
        assert_eq!(
            decision,
            self.decide(&self.rules, &self.touch, workspace),
            "the same call, the same decision"
        );
        let ran = runs(&decision);
        self.outer_denials_stand(&decision, workspace);
        self.denying_more_allows_nothing(ran, workspace, choice);
        self.a_project_only_narrows(workspace);
        if let Touch::Shell(text) = &self.touch {
            self.opaque_is_allowed_by_no_program(text, ran, workspace);
            if let Some((one, other)) = text.split_once('%') {
                let joiner = JOINERS[choice % JOINERS.len()];
                self.joined_is_no_freer(one, other, joiner, workspace);
            }
        }
    }

    fn outer_denials_stand(&self, all: &PolicyDecision, workspace: &Workspace) {
        for depth in 0..LAYERS {
            let outer: Vec<_> = self
                .rules
                .iter()
                .filter(|(layer, _)| *layer < depth)
                .cloned()
                .collect();
            let decided = self.decide(&outer, &self.touch, workspace);
            assert!(
                !denies(&decided) || denies(all),
                "{decided:?} stands no more: {all:?} by {:?}",
                self.rules
            );
        }
    }

    /// One rule once more as a denial, somewhere in each layer.
    fn denying_more_allows_nothing(&self, ran: bool, workspace: &Workspace, choice: usize) {
        let Some((_, rule)) = self.rules.get(choice % self.rules.len().max(1)) else {
            return;
        };
        let deny = Rule {
            decision: RuleDecision::Deny,
            ..rule.clone()
        };
        for layer in 0..LAYERS {
            let mut more = self.rules.clone();
            more.insert(choice / 7 % (more.len() + 1), (layer, deny.clone()));
            let runs = self.runs(&more, workspace);
            assert!(
                ran || !runs,
                "{deny} in layer {layer} allows {:?} of {:?}",
                self.touch,
                self.rules
            );
        }
    }

    /// What is taken of a project's file denies and asks.
    fn a_project_only_narrows(&self, workspace: &Workspace) {
        let narrows = |(layer, rule): &&(usize, Rule)| {
            *layer != PROJECT || rule.decision != RuleDecision::Allow
        };
        let with: Vec<_> = self.rules.iter().filter(narrows).cloned().collect();
        let without: Vec<_> = self
            .rules
            .iter()
            .filter(|(layer, _)| *layer != PROJECT)
            .cloned()
            .collect();
        let with = self.runs(&with, workspace);
        let without = self.runs(&without, workspace);
        assert!(
            without || !with,
            "the project's layer allows {:?} of {:?}",
            self.touch,
            self.rules
        );
    }

    fn opaque_is_allowed_by_no_program(&self, text: &str, ran: bool, workspace: &Workspace) {
        let script = parse(text);
        if !opaque(&script) {
            return;
        }
        let allows = |rule: &Rule| rule.decision == RuleDecision::Allow && rule.program.is_some();
        let only: Vec<_> = self
            .rules
            .iter()
            .filter(|(_, rule)| allows(rule))
            .cloned()
            .collect();
        let by_table = self.runs(&[], workspace);
        assert_eq!(
            self.runs(&only, workspace),
            by_table,
            "{text:?} is opaque: {only:?}"
        );
        if script.parts.iter().all(|part| part.opaque.is_some()) {
            let others: Vec<_> = self
                .rules
                .iter()
                .filter(|(_, rule)| !allows(rule))
                .cloned()
                .collect();
            assert_eq!(
                self.runs(&others, workspace),
                ran,
                "{text:?} is opaque: {:?}",
                self.rules
            );
        }
    }

    /// Two commands that are whole by themselves.
    fn joined_is_no_freer(&self, one: &str, other: &str, joiner: &str, workspace: &Workspace) {
        let whole = |text: &str| {
            let script = parse(text);
            !script.parts.is_empty()
                && !opaque(&script)
                && !text.contains("<<")
                && !text.ends_with('\\')
        };
        if !whole(one) || !whole(other) {
            return;
        }
        let alone =
            |text: &str| runs(&self.decide(&self.rules, &Touch::Shell(text.to_owned()), workspace));
        // Behind a comment only a line of its own is a command.
        let joiner = if one.contains('#') { "\n" } else { joiner };
        let joined = format!("{one}{joiner}{other}");
        let freer = alone(&joined) && !(alone(one) && alone(other));
        assert!(
            !freer || ![one, other, &joined].into_iter().all(is_bash),
            "{joined:?} is allowed, not so {one:?} and {other:?}: {:?}",
            self.rules
        );
    }
}

fn runs(decision: &PolicyDecision) -> bool {
    decision.decision.allows()
}

/// Refused for good: not for want of a person who says yes, nor of a directory, which a rule can give.
fn denies(decision: &PolicyDecision) -> bool {
    let rule = &decision.rule;
    !runs(decision)
        && if rule.source == "default" {
            rule.text.ends_with(": deny") && !rule.text.starts_with("reading outside")
        } else {
            rule.text.starts_with("deny ")
        }
}

/// A line, if it is a rule that works.
fn rule(line: &str) -> Option<(usize, Rule)> {
    let mut words = line.splitn(4, ' ');
    let layer = words.next()?.parse::<usize>().ok()? % LAYERS;
    let decision = match words.next()? {
        "allow" => RuleDecision::Allow,
        "ask" => RuleDecision::Ask,
        "deny" => RuleDecision::Deny,
        _ => return None,
    };
    let mut rule = Rule::new(words.next()?, decision);
    if let Some(about) = words.next() {
        match (
            about.strip_prefix('='),
            about.strip_prefix('@'),
            about.split_once(' '),
        ) {
            (Some(path), ..) => rule.path = Some(path.to_owned()),
            (_, Some(host), _) => rule.host = Some(host.to_owned()),
            (.., Some((program, listed))) => {
                rule.program = Some(program.to_owned());
                rule.subcommand = Some(listed.split(',').map(str::to_owned).collect());
            }
            (None, None, None) => rule.program = Some(about.to_owned()),
        }
    }
    Layer::new("one", vec![rule.clone()])
        .ok()
        .map(|_| (layer, rule))
}
