//! What git runs, watched around commands: which directories, where copies go, and which changes a person lets stay.

use super::Permission;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::project::Project;
use authority::{Access, Ambient, EnvPolicy, GitGuard, Withheld, borrowed_objects};
use llm_worker::ToolEffect;
use llm_worker::tool::Touch;
use pod::permission::CallFacts;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The tool whose rules say what may be written.
const WRITE: &str = "Write";

/// Below the state directory.
const QUARANTINE: &str = "quarantine";

/// The project's repository, where it is elsewhere and commands may use it: its own link back was seen when the run
/// started, and it holds nothing that is withheld from commands.
pub(super) fn elsewhere(
    ambient: &Ambient,
    project: &Project,
    inherited: &EnvPolicy,
) -> Option<PathBuf> {
    let whole = &project
        .linked
        .as_ref()
        .filter(|_| project.too_wide.is_none())?
        .whole;
    let fits = !whole.starts_with(&project.root)
        && Withheld::of(ambient, inherited).conflict(whole).is_none();
    fits.then(|| whole.clone())
}

/// The directories of other repositories' objects that the project's repository uses, for reading.
pub(super) fn borrowed(
    ambient: &Ambient,
    project: &Project,
    inherited: &EnvPolicy,
) -> Vec<PathBuf> {
    let whole = project.linked.as_ref().map(|linked| linked.whole.clone());
    let git = whole.or_else(|| Some(project.root.canonicalize().ok()?.join(".git")));
    let mut dirs = git
        .filter(|_| project.too_wide.is_none())
        .map(|git| borrowed_objects(&git))
        .unwrap_or_default();
    if !dirs.is_empty() {
        let withheld = Withheld::of(ambient, inherited);
        dirs.retain(|dir| !dir.starts_with(&project.root) && withheld.conflict(dir).is_none());
    }
    dirs
}

/// For the directories that commands may write, among them the repository that is `elsewhere`; none where they may write
/// nothing.
pub(super) fn guard(
    ambient: &Ambient,
    env: &Env,
    permission: &Permission,
    elsewhere: Option<PathBuf>,
) -> Result<Option<Arc<GitGuard>>, Failure> {
    let roots = permission
        .workspace
        .roots()
        .filter(|(_, access)| *access == Access::ReadWrite);
    let mut roots: Vec<PathBuf> = roots.map(|(root, _)| root.to_owned()).collect();
    if roots.is_empty() {
        return Ok(None);
    }
    roots.extend(elsewhere);
    let quarantine = env.state_dir().ok().map(|state| state.join(QUARANTINE));
    let project = permission.workspace.project().to_owned();
    let policy = permission.policy.clone();
    let workspace = permission.workspace.clone();
    let now = permission.sandbox;
    let allows = move |path: &Path| {
        let touches = [Touch::Write(path.to_owned())];
        let feature = &builtins::files::ID;
        let call = CallFacts {
            tool: WRITE,
            effect: ToolEffect::Idempotent,
            touches: &touches,
            feature,
        };
        policy.allows_by_rule(&call, &workspace, now)
    };
    let allow = env.words.allow;
    let help = move |path: &Path| {
        let below = path.strip_prefix(&project).unwrap_or(path);
        // The hooks of a repository are allowed together, its configuration by itself.
        let hooks = below
            .ancestors()
            .find(|dir| dir.file_name().is_some_and(|name| name == "hooks"));
        let glob = hooks.map_or_else(|| below.to_owned(), |hooks| hooks.join("**"));
        let plain = |c: char| c.is_alphanumeric() || "/._-*".contains(c);
        let glob = glob
            .to_str()
            .filter(|text| text.chars().all(plain))
            .unwrap_or(".git/**")
            .to_owned();
        format!(
            "to let commands change it, start with {}",
            allow(WRITE, Some(&glob))
        )
    };
    let guard = GitGuard::new(ambient, &roots, quarantine, allows, help);
    guard
        .map(|guard| Some(Arc::new(guard)))
        .map_err(|error| Failure::new(Exit::Unavailable, error.to_string()))
}
