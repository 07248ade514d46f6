//! Resolves what a call names into targets, which are judged. Does not depend on rules.

use super::secret::{self, Named};
use authority::{Access, Location, Place, Workspace};
use llm_worker::ToolEffect;
use llm_worker::tool::{Escalation, Landing, Touch};
use shell::base_name;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// One action of a call: the unit of authorization.
pub(super) enum Target {
    Path {
        way: AccessMode,
        side: Side,
        /// The path may hold secrets, or it configures other programs and would be written.
        guarded: bool,
        /// A shell command names it.
        command: bool,
        /// The resolved path: absolute, and relative to the project if inside it.
        resolved: Vec<PathBuf>,
        /// The path as written, without `.` and `..`: absolute, and relative to the project if inside it.
        written: Vec<PathBuf>,
        /// The root that contains it; for one outside of the roots, the directory to add.
        dir: PathBuf,
        /// For people.
        shown: String,
        /// Where it would be written.
        landing: Option<Landing>,
    },
    /// A path that cannot be resolved.
    Lost {
        shown: String,
        why: String,
    },
    Host(String),
    /// Changes something on a host or in a service.
    Remote(String),
    /// Runs its command beyond the sandbox, for a reason in the words of the model.
    Escalate(Escalation, String),
    /// Its command connects to a host, for a reason in the words of the model.
    Connect(String, String),
    /// Runs a shell command that was not split, or something equivalent.
    Command,
    /// Runs one part of a shell command; with the whole command for people, if it has more parts.
    Part(Box<shell::Part>, Option<String>),
    /// Changes the session's own state.
    Session,
    /// Changes nothing and names nothing.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessMode {
    Read,
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Inside,
    /// Would be written, below a directory that was added for reading only.
    ReadOnly,
    Outside,
}

/// All targets of a call. A call with effects that names none is judged like a command. Commands are split only if that
/// can change the decision: with the programs that rules refuse or ask about.
pub(super) fn targets(
    effect: ToolEffect,
    touches: &[Touch],
    workspace: &Workspace,
    parts: Option<BTreeSet<&str>>,
) -> Vec<Target> {
    let mut targets = Vec::with_capacity(touches.len());
    for touch in touches {
        match touch {
            Touch::Read(path) => {
                targets.push(path_target(AccessMode::Read, path, workspace, false))
            }
            Touch::Write(path) => {
                targets.push(path_target(AccessMode::Write, path, workspace, false))
            }
            Touch::Shell(text) => targets.extend(commands(text, workspace, parts.as_ref())),
            Touch::Host(host) => targets.push(Target::Host(host.clone())),
            Touch::Session => targets.push(Target::Session),
            Touch::RemoteWrite(name) => targets.push(Target::Remote(name.clone())),
            // First, so that no long question about another target hides it.
            Touch::Escalate(to, reason) => targets.insert(0, Target::Escalate(*to, reason.clone())),
            Touch::Connect(host, reason) => {
                targets.insert(0, Target::Connect(host.clone(), reason.clone()))
            }
        }
    }
    match effect {
        ToolEffect::ReadOnly if targets.is_empty() => targets.push(Target::Nothing),
        ToolEffect::ReadOnly => {}
        ToolEffect::Idempotent | ToolEffect::Effectful if says_what_changes(touches) => {}
        ToolEffect::Idempotent | ToolEffect::Effectful => targets.push(Target::Command),
    }
    targets
}

/// Whether a call with effects names what it changes.
pub(crate) fn says_what_changes(touches: &[Touch]) -> bool {
    let changes = |touch: &Touch| match touch {
        Touch::Write(_) | Touch::Shell(_) | Touch::Session | Touch::RemoteWrite(_) => true,
        Touch::Read(_) | Touch::Host(_) | Touch::Escalate(..) | Touch::Connect(..) => false,
    };
    touches.iter().any(changes)
}

/// Longest command that is shown whole beside its part, in characters.
const MAX_WHOLE: usize = 160;

fn commands(text: &str, workspace: &Workspace, parts: Option<&BTreeSet<&str>>) -> Vec<Target> {
    let script = shell::parse(text);
    let secrets = secret::named(text, &script, workspace)
        .into_iter()
        .map(|named| secret_target(named, workspace));
    let plugins = secret::plugins(text, &script, workspace)
        .into_iter()
        .filter_map(|named| match named {
            Named::At(path) => Some(path_target(AccessMode::Write, &path, workspace, false)),
            Named::Somewhere(_) => None,
        });
    let secrets: Vec<_> = secrets.chain(plugins).collect();
    let mut targets = match parts {
        Some(guarded) => split(text, through_links(script, guarded, workspace)),
        None => vec![Target::Command],
    };
    targets.extend(secrets);
    targets
}

fn secret_target(named: Named, workspace: &Workspace) -> Target {
    match named {
        Named::At(path) => path_target(AccessMode::Read, &path, workspace, true),
        Named::Somewhere(shown) => Target::Path {
            way: AccessMode::Read,
            side: Side::Inside,
            guarded: true,
            command: true,
            // The path is unknown, so no rule that allows paths matches it.
            resolved: Vec::new(),
            written: vec![PathBuf::from(&shown)],
            dir: workspace.project().to_owned(),
            shown: authority::escape(Path::new(&shown)),
            landing: None,
        },
    }
}

/// Programs that do what the name says by which they are called.
#[rustfmt::skip]
const BY_NAME: [&str; 10] =
    ["busybox", "toybox", "coreutils", "rustup", "volta-shim", "mise", "kmod", "xtables-nft-multi", "pg_wrapper", "lvm"];

/// Programs that do less by another name: who refuses `pkill` does not refuse `pgrep`.
const LESS_BY_NAME: [&str; 9] = [
    "systemctl",
    "pgrep",
    "xz",
    "zstd",
    "setarch",
    "sudo",
    "killall5",
    "hostname",
    "whatis",
];

/// The parts, with what the links lead to that they are called by, and with the guarded programs that lead to the same.
fn through_links(
    script: shell::CommandLine,
    guarded: &BTreeSet<&str>,
    workspace: &Workspace,
) -> Vec<shell::Part> {
    let bases = secret::bases(&script, workspace);
    let leads = |name: &str| {
        let mut targets = targets_of(name, false, &[], workspace);
        targets.retain(|target| !LESS_BY_NAME.contains(&target.as_str()));
        (name.to_owned(), targets)
    };
    let guarded: Vec<_> = guarded.iter().map(|name| leads(base_name(name))).collect();
    let mut parts = script.parts;
    for part in &mut parts {
        let called =
            std::iter::once((&*part, false)).chain(part.also.iter().map(|file| (file, true)));
        let links = called.filter_map(|(part, is_file)| {
            let name = part.program.as_ref()?.literal()?;
            Some((part, targets_of(name, is_file, &bases, workspace)))
        });
        let through = links.flat_map(|(part, targets)| {
            let is_it = |name: &str| targets.contains(name) || part.program_name() == Some(name);
            let same = guarded
                .iter()
                .filter(|(_, leads)| leads.iter().any(|name| is_it(name)));
            let names: Vec<_> = targets
                .iter()
                .chain(same.map(|(name, _)| name))
                .cloned()
                .collect();
            names.into_iter().flat_map(|name| part.through_link(&name))
        });
        let also: Vec<shell::Part> = through.collect();
        part.also.extend(also);
    }
    parts
}

/// The names of the files that a program's name leads to by links, where it differs. Hard links and copies are not seen.
fn targets_of(
    program: &str,
    is_file: bool,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> BTreeSet<String> {
    let dirs = || shell::SYSTEM.iter().map(PathBuf::from);
    let at: Vec<PathBuf> = match is_file || program.contains('/') {
        true => bases.iter().map(|base| base.join(program)).collect(),
        false => dirs().map(|dir| dir.join(program)).collect(),
    };
    let target = |path: PathBuf| {
        let target = match workspace.locate(&path).ok()? {
            Location::Inside(at) => at.path().to_owned(),
            Location::Outside(at) => at,
        };
        let name = target.file_name()?.to_str()?.to_owned();
        (name != base_name(program) && !BY_NAME.contains(&name.as_str())).then_some(name)
    };
    at.into_iter().filter_map(target).collect()
}

fn split(text: &str, parts: Vec<shell::Part>) -> Vec<Target> {
    let mut whole: Option<String> =
        (parts.len() > 1).then(|| text.split_whitespace().collect::<Vec<_>>().join(" "));
    if let Some(text) = &mut whole
        && let Some((cut, _)) = text.char_indices().nth(MAX_WHOLE)
    {
        text.truncate(cut);
        text.push('…');
    }
    let parts: Vec<_> = parts
        .into_iter()
        .map(|part| Target::Part(Box::new(part), whole.clone()))
        .collect();
    // A text without any part is still a command: a shell is started for it.
    if parts.is_empty() {
        vec![Target::Command]
    } else {
        parts
    }
}

fn path_target(way: AccessMode, path: &Path, workspace: &Workspace, command: bool) -> Target {
    let shown = workspace.show(path);
    let place = match workspace.locate(path) {
        // What commands only read is outside for who writes.
        Ok(Location::Inside(at)) if at.is_common() && way == AccessMode::Write => {
            Location::Outside(at.path().to_owned())
        }
        Ok(place) => place,
        Err(error) => {
            return Target::Lost {
                shown,
                why: unresolved(path, &error, workspace),
            };
        }
    };
    // Opened for the same resolution that is judged: a link that is made after it is an error.
    let opened = match &place {
        Location::Inside(at) if way == AccessMode::Write => workspace.place(at).map(Some),
        Location::Inside(_) | Location::Outside(_) => Ok(None),
    };
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            return Target::Lost {
                shown,
                why: unresolved(path, &error, workspace),
            };
        }
    };
    let absolute = plain(&workspace.cwd().join(path));
    let below_project = |path: &Path| {
        path.strip_prefix(workspace.project())
            .ok()
            .map(Path::to_owned)
    };
    let below_a_root = workspace
        .roots()
        .find_map(|(root, _)| absolute.strip_prefix(root).ok());
    let (side, settled, below, dir) = match &place {
        Location::Inside(at) => {
            let side = match (way, at.access()) {
                (AccessMode::Write, Access::Read) => Side::ReadOnly,
                (AccessMode::Write, Access::ReadWrite) | (AccessMode::Read, _) => Side::Inside,
            };
            let dir = if at.is_common() {
                directory_of(at.path(), workspace)
            } else {
                root_of(at.path(), workspace)
            };
            (side, at.path(), Some(at.relative()), dir)
        }
        Location::Outside(at) => (
            Side::Outside,
            at.as_path(),
            None,
            directory_of(at, workspace),
        ),
    };
    // Only names below a root are checked: a person chose the directories above it.
    let secret = matches!(&place, Location::Inside(at) if workspace.may_hold_secrets(at))
        || below_a_root.is_some_and(|below| workspace.secret_names().matches(below));
    let in_git_dir = opened.as_ref().is_some_and(Place::in_git_dir);
    let configures = || {
        in_git_dir || below.is_some_and(names_guarded) || below_a_root.is_some_and(names_guarded)
    };
    let guarded = secret || (way == AccessMode::Write && configures());
    let shown = if settled == absolute {
        shown
    } else {
        format!("{shown} (which is {})", workspace.show(settled))
    };
    let resolved = below_project(settled)
        .into_iter()
        .chain([settled.to_owned()])
        .collect();
    let written = below_project(&absolute)
        .into_iter()
        .chain([absolute.clone()])
        .collect();
    let landing = opened.map(|opened| Landing {
        path: settled.to_owned(),
        dir: opened.id(),
        born: opened.born(),
        missing: opened.missing().is_some(),
    });
    Target::Path {
        way,
        side,
        guarded,
        command,
        resolved,
        written,
        dir,
        shown,
        landing,
    }
}

/// Why a path cannot be resolved; names the file that is used as a directory.
fn unresolved(path: &Path, error: &authority::Error, workspace: &Workspace) -> String {
    let file = (error.io_kind() == Some(ErrorKind::NotADirectory))
        .then(|| {
            path.ancestors()
                .skip(1)
                .find(|above| workspace.locate(above).is_ok())
        })
        .flatten();
    file.map_or_else(
        || error.to_string(),
        |file| format!("{} is not a directory", workspace.show(file)),
    )
}

/// The innermost root that contains a path inside of the workspace.
fn root_of(path: &Path, workspace: &Workspace) -> PathBuf {
    let around = workspace
        .roots()
        .map(|(root, _)| root)
        .filter(|root| path.starts_with(root));
    around
        .max_by_key(|root| root.components().count())
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// The path itself if it is a directory, else its parent. A path resolves with `..` behind it only if it exists, and
/// with a name behind it only if it is not a file.
fn directory_of(path: &Path, workspace: &Workspace) -> PathBuf {
    let leads = |name: &str| workspace.locate(&path.join(name)).is_ok();
    let dir = if leads("..") && leads("_") {
        Some(path)
    } else {
        path.parent()
    };
    dir.unwrap_or(path).to_owned()
}

/// Removes `.` and `..` lexically, without reading the disk.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// Whether a component is a name that configures other programs or may hold secrets, in any case: some file systems
/// ignore case.
fn names_guarded(path: &Path) -> bool {
    path.components().any(|part| guarded_name(part.as_os_str())) || leads_to_plugins(path)
}

/// Whether a path is in a directory of plugins, or is one that holds it.
pub(super) fn leads_to_plugins(path: &Path) -> bool {
    let mut names = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy().to_ascii_lowercase());
    names.any(|name| name == ".yoi") && names.next().is_none_or(|name| name == "plugins")
}

fn guarded_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    name == ".git" || name == "yoi.toml" || name.starts_with(".env")
}
