//! Comparing two snapshots and reverting changes that run code.
//!
//! Configuration, links and `.git` files come before hooks: reverting them changes which files are hooks, so another
//! snapshot is taken in between.

use super::finding::{GitFinding, Handled};
use super::keyed;
use super::memory::{Content, Memory, State};
use super::quarantine::Quarantine;
use super::restore::{Wanted, restore};
use super::scan::{Role, Snapshot, Watched};
use crate::fs::{Workspace, resolve};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much older than the call's start a change before it is at least, in nanoseconds: the start is taken from a finer
/// clock than the times of files.
const SLACK: i128 = 100_000_000;

/// Which changes a person's rules allow, and how such a rule is written.
pub(super) struct Rules<'a> {
    pub(super) allows: &'a (dyn Fn(&Path) -> bool + Send + Sync),
    pub(super) help: &'a (dyn Fn(&Path) -> String + Send + Sync),
}

pub(super) struct Judge<'a> {
    pub(super) roots: &'a Workspace,
    pub(super) rules: Rules<'a>,
    pub(super) before: &'a Snapshot,
    pub(super) since: i128,
    pub(super) memory: &'a mut Memory,
    pub(super) quarantine: Quarantine<'a>,
    pub(super) findings: Vec<GitFinding>,
}

impl Judge<'_> {
    /// Reverts changed configuration, links and `.git` files. Returns whether there were any, so that a new snapshot is
    /// needed.
    pub(super) fn leading(&mut self, after: &Snapshot) -> bool {
        let count = self.findings.len();
        for (path, now) in self.changed(after) {
            let was = self.before.found.get(&path);
            match (now.role, &now.state) {
                (
                    Role::Config | Role::Included | Role::Location | Role::HookDir,
                    State::Link(_),
                ) => {
                    self.put_back(&path, was, &now.state, Vec::new());
                }
                (Role::Pointer, State::File(_) | State::Link(_))
                    if self.leads_away(&path, was, &now) =>
                {
                    self.put_back(&path, was, &now.state, Vec::new());
                }
                (Role::Config | Role::Included, State::File(content)) => {
                    self.config(&path, was, content)
                }
                (Role::Config | Role::Included, State::Dir | State::Other(_))
                | (Role::Pointer, State::Other(_)) => {
                    self.put_back(&path, was, &now.state, Vec::new())
                }
                _ => {}
            }
        }
        self.findings
            .iter()
            .skip(count)
            .any(|finding| matches!(finding.what, Handled::PutBack | Handled::Removed))
    }

    pub(super) fn rest(&mut self, after: &Snapshot) {
        for (path, now) in self.changed(after) {
            let was = self.before.found.get(&path).cloned();
            let old = was.as_ref().map(|was| &was.state);
            match now.role {
                Role::Hook | Role::LinkedHook => self.hook(&path, was.as_ref(), &now),
                Role::Kept if is_gone(old, &now.state) => self.gone(&path, old),
                Role::Pointer | Role::Config if is_gone(old, &now.state) => {
                    if self.has_repository(&path) {
                        self.gone(&path, old);
                    }
                }
                Role::Location
                    if self.before.watches(&path)
                        && !matches!(now.state, State::Dir | State::Link(_)) =>
                {
                    self.repository_gone(&path);
                }
                Role::Pointer if was.is_some() && !is_missing(&now.state) => {
                    self.tell(&path, Handled::Changed)
                }
                Role::Reported if self.is_old(&path, after) && !is_missing(&now.state) => {
                    self.tell(&path, Handled::Changed)
                }
                Role::Todo => self.todo(&path, old, &now.state),
                Role::Config
                | Role::Included
                | Role::HookDir
                | Role::Kept
                | Role::Location
                | Role::Pointer
                | Role::Reported => {}
            }
        }
        if after.bounded && !self.before.bounded {
            let top = self.roots.project().to_owned();
            self.tell(&top, Handled::Bound);
        }
    }

    /// Paths whose state changed, with their current state.
    fn changed(&mut self, after: &Snapshot) -> Vec<(PathBuf, Watched)> {
        let mut changed = Vec::new();
        for (path, now) in &after.found {
            let was = self.before.found.get(path);
            let same = was.map_or(matches!(now.state, State::Missing), |was| {
                was.state.same(&now.state)
            });
            if !same || was.is_some_and(|was| was.leads != now.leads) {
                changed.push((path.clone(), now.clone()));
            }
        }
        // Paths that are no longer watched, because the link or key that led to them was removed, count as unchanged.
        for (path, was) in self
            .before
            .found
            .iter()
            .filter(|(path, _)| !after.found.contains_key(*path))
        {
            let state = self.memory.state(self.roots, path);
            if !state.same(&was.state) {
                changed.push((
                    path.clone(),
                    Watched {
                        role: was.role,
                        state,
                        leads: Vec::new(),
                    },
                ));
            }
        }
        changed
    }

    /// Whether a `.git` file, or a link of that name, leads to a place that is not watched.
    fn leads_away(&self, path: &Path, was: Option<&Watched>, now: &Watched) -> bool {
        let before = was.map(|was| was.leads.as_slice()).unwrap_or_default();
        now.leads
            .iter()
            .any(|to| self.roots.literal(to).is_none() && !before.contains(to))
            && !self.is_unchanged(path)
    }

    fn config(&mut self, path: &Path, was: Option<&Watched>, now: &Arc<Content>) {
        if self.is_unchanged(path) {
            return;
        }
        let old = match was.map(|was| &was.state) {
            Some(State::File(content)) => Some(content),
            Some(_) => None,
            // The link or key that led here is reverted, or allowed by a rule; the file itself existed before.
            None if self.role(path) == Some(Role::Included) => return,
            None => None,
        };
        let entries = old.map_or(Ok(&[][..]), |old| old.config());
        let (Ok(entries), Ok(is)) = (entries, now.config()) else {
            return self.put_back(path, was, &State::File(now.clone()), Vec::new());
        };
        let dir = path.parent().unwrap_or(path);
        let roots = self.roots;
        let away = |entry: &super::config::Entry| {
            let to = || {
                resolve(
                    dir,
                    Path::new(OsStr::from_bytes(
                        entry.value.as_deref().unwrap_or_default(),
                    )),
                )
            };
            entry.key() == b"core.worktree" && !to().is_ok_and(|to| roots.literal(&to).is_some())
        };
        let difference = keyed::difference(entries, is, &away);
        let names = |keys: &std::collections::BTreeSet<Vec<u8>>| -> Vec<String> {
            keys.iter()
                .map(|key| String::from_utf8_lossy(key).into_owned())
                .collect()
        };
        if !difference.changed.is_empty() {
            let bytes = (
                old.and_then(|old| old.bytes.as_deref()).unwrap_or_default(),
                entries,
            );
            let text = keyed::put_back(
                bytes,
                (now.bytes.as_deref().unwrap_or_default(), is),
                &difference.changed,
            );
            self.restore(
                path,
                &State::File(now.clone()),
                Wanted::Content(&text, None),
                names(&difference.changed),
            );
        }
        if !difference.removed.is_empty() && !is_told(&self.findings, path) {
            let mut finding = GitFinding::new(path, Handled::Gone);
            finding.keys = names(&difference.removed);
            self.findings.push(finding);
        }
    }

    fn hook(&mut self, path: &Path, was: Option<&Watched>, now: &Watched) {
        let old = was.map(|was| &was.state);
        match (old, &now.state) {
            (Some(State::File(_) | State::Link(_)), State::Missing) => {
                if self.has_repository(path) {
                    self.gone(path, old);
                }
            }
            (_, State::Missing | State::Dir) => {}
            (None | Some(State::Missing), _) if self.is_unchanged(path) => {}
            // A file that existed before a link or key led to it is not a change: the link or key was reverted or
            // reported.
            (None, _) if now.role == Role::LinkedHook && !self.was_listed(path) => {}
            _ => self.put_back(path, was, &now.state, Vec::new()),
        }
    }

    /// Handles a changed to-do list of git: git runs the commands in its new lines.
    fn todo(&mut self, path: &Path, old: Option<&State>, now: &State) {
        let lines = |state: Option<&State>| match state {
            Some(State::File(content)) => commands(content.bytes.as_deref().unwrap_or_default()),
            Some(_) | None => Vec::new(),
        };
        let before = lines(old);
        if lines(Some(now)).iter().any(|line| !before.contains(line)) {
            self.tell(path, Handled::Changed);
        }
    }

    /// Handles a removed file: its content is copied to quarantine.
    fn gone(&mut self, path: &Path, old: Option<&State>) {
        let mut finding = GitFinding::new(path, Handled::Gone);
        if let Some(State::File(content)) = old {
            finding.kept = Some(match &content.bytes {
                Some(bytes) => self.keep(path, bytes),
                None => Err("it was too large".to_owned()),
            });
        }
        self.findings.push(finding);
    }

    /// Handles a removed repository: its configuration and its hooks are copied to quarantine; the guard has nothing
    /// else of it.
    fn repository_gone(&mut self, git: &Path) {
        let mut finding = GitFinding::new(git, Handled::Gone);
        for (path, was) in self
            .before
            .found
            .range(git.to_owned()..)
            .take_while(|(path, _)| path.starts_with(git))
        {
            let State::File(content) = &was.state else {
                continue;
            };
            if let Some(bytes) = &content.bytes {
                let kept = self.quarantine.keep(&below(self.roots, path), bytes);
                if path.parent() == Some(git) || finding.kept.is_none() {
                    finding.kept = Some(kept.map(|kept| {
                        let up = path
                            .strip_prefix(git)
                            .map_or(0, |rest| rest.components().count());
                        kept.ancestors().nth(up).unwrap_or(&kept).to_owned()
                    }));
                }
            }
        }
        finding.help =
            "only its configuration and hooks can be restored from there, not its commits"
                .to_owned();
        self.findings.push(finding);
    }

    fn tell(&mut self, path: &Path, what: Handled) {
        if !is_told(&self.findings, path) {
            self.findings.push(GitFinding::new(path, what));
        }
    }

    /// Restores a path to its earlier state as a whole.
    fn put_back(&mut self, path: &Path, was: Option<&Watched>, now: &State, keys: Vec<String>) {
        let wanted = match was.map(|was| &was.state) {
            Some(State::File(content)) => match &content.bytes {
                Some(bytes) => Wanted::Content(bytes, Some(content.mode)),
                None => {
                    let why = "it was too large to be copied".to_owned();
                    return self.tell(path, Handled::Failed(why));
                }
            },
            Some(State::Link(target)) => Wanted::Link(target),
            Some(State::Missing | State::Dir | State::Other(_)) | None => Wanted::Nothing,
        };
        self.restore(path, now, wanted, keys);
    }

    fn restore(&mut self, path: &Path, now: &State, wanted: Wanted<'_>, keys: Vec<String>) {
        let mut finding = GitFinding::new(path, Handled::Left);
        finding.keys = keys;
        if !(self.rules.allows)(path) {
            let copy = match now {
                State::File(content) => content
                    .bytes
                    .as_deref()
                    .map(<[u8]>::to_owned)
                    .ok_or("it is too large"),
                State::Link(target) => {
                    Ok([b"symbolic link to ", target.as_bytes(), b"\n"].concat())
                }
                State::Missing | State::Dir | State::Other(_) => Err("it was not a file"),
            };
            finding.kept = Some(
                copy.map_err(str::to_owned)
                    .and_then(|bytes| self.keep(path, &bytes)),
            );
            let removes = matches!(wanted, Wanted::Nothing);
            let done = restore(self.roots, path, now, wanted);
            finding.what = match done {
                Ok(()) if removes => Handled::Removed,
                Ok(()) => Handled::PutBack,
                Err(why) => Handled::Failed(why),
            };
            finding.help = (self.rules.help)(path);
        }
        // A failure that repeats in a later round is reported once.
        self.findings.retain(|told| {
            told.path != finding.path || !matches!(told.what, Handled::Failed(_) | Handled::Left)
        });
        self.findings.push(finding);
    }

    fn keep(&mut self, path: &Path, bytes: &[u8]) -> Result<PathBuf, String> {
        self.quarantine.keep(&below(self.roots, path), bytes)
    }

    fn role(&self, path: &Path) -> Option<Role> {
        self.before.found.get(path).map(|watched| watched.role)
    }

    /// Whether the repository of a path was in the snapshot before.
    fn is_old(&self, path: &Path, after: &Snapshot) -> bool {
        let git = path
            .ancestors()
            .find(|dir| after.watches(dir) || self.before.watches(dir));
        git.is_some_and(|git| self.before.watches(git))
    }

    /// Whether the repository of a name is still there.
    fn has_repository(&mut self, path: &Path) -> bool {
        let git = path.ancestors().find(|dir| self.before.watches(dir));
        git.is_none_or(|git| matches!(self.memory.state(self.roots, git), State::Dir))
    }

    /// Whether the directory of a hook was in the snapshot before.
    fn was_listed(&self, path: &Path) -> bool {
        path.ancestors()
            .skip(1)
            .take(3)
            .any(|dir| self.role(dir) == Some(Role::HookDir))
    }

    /// Whether a path that an earlier snapshot omitted because of a limit is unchanged: neither it nor a directory
    /// above it changed since.
    fn is_unchanged(&self, path: &Path) -> bool {
        if !self.before.bounded || self.before.found.contains_key(path) {
            return false;
        }
        let root = self.roots.literal(path);
        let top = root.map_or(0, |at| at.relative().components().count());
        path.ancestors().take(top).all(|name| {
            let meta = self
                .roots
                .literal(name)
                .and_then(|at| crate::fs::meta_at(&at).ok());
            meta.is_some_and(|meta| meta.stamp.changed() < self.since - SLACK)
        })
    }
}

fn is_missing(state: &State) -> bool {
    matches!(state, State::Missing)
}

fn is_gone(old: Option<&State>, now: &State) -> bool {
    matches!(old, Some(State::File(_) | State::Link(_))) && is_missing(now)
}

fn is_told(findings: &[GitFinding], path: &Path) -> bool {
    findings.iter().any(|finding| finding.path == path)
}

fn below(roots: &Workspace, path: &Path) -> PathBuf {
    roots
        .literal(path)
        .map_or_else(|| path.to_owned(), |at| at.relative().to_owned())
}

/// The lines that run commands.
fn commands(bytes: &[u8]) -> Vec<Vec<u8>> {
    let runs = |line: &&[u8]| {
        let word = line
            .trim_ascii_start()
            .split(u8::is_ascii_whitespace)
            .next();
        matches!(word, Some(b"exec" | b"x"))
    };
    bytes
        .split(|byte| *byte == b'\n')
        .filter(runs)
        .map(<[u8]>::to_owned)
        .collect()
}
