//! Taking a snapshot of the files that decide what git runs, in every repository below the roots. Compares nothing.
//!
//! Repositories are the project's own, those in its directories (nested, bare, submodules, worktrees), and those that a
//! `.git` file, a `commondir` or a link leads to. Of each, its configuration with what that includes, its hooks where
//! they are, and the files that lead elsewhere are noted.

use super::borrowed::{ALTERNATES, lines};
use super::linked::{path_of, trimmed};
use super::memory::{Memory, State};
use crate::fs::{FileKind, Workspace};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The most repositories, the most names in all, and the deepest directory that a snapshot covers.
const MAX_REPOSITORIES: usize = 128;
const MAX_NAMES: usize = 2048;
const MAX_DEPTH: usize = 12;

/// The depth to which a directory of hooks is read: hook managers keep parts of a hook in a directory of its name.
const HOOK_DEPTH: usize = 2;

const CONFIGS: &[&str] = &["config", "config.worktree"];

/// Files of a repository that decide what runs, or whose objects are used, but run nothing themselves.
const REPORTED: &[&str] = &[
    "gitdir",
    "info/attributes",
    "objects/info/http-alternates",
    "rebase-merge/strategy",
    "rebase-merge/strategy_opts",
    "rebase-merge/gpg_sign_opt",
    "sequencer/opts",
];

/// To-do lists of git, which can contain commands.
const TODOS: &[&str] = &[
    "rebase-merge/git-rebase-todo",
    "rebase-merge/git-rebase-todo.backup",
    "sequencer/todo",
];

/// Directories of packages and build output: large, and seldom with repositories in use.
const LATER: &[&str] = &[
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".gradle",
    "Pods",
];

/// Old ways to name remotes: files with addresses.
const OLD_REMOTES: &[&str] = &["remotes", "branches"];

/// Directories of a repository with repositories inside: submodules, which may have more, and worktrees.
const INNER: &[&str] = &["modules", "worktrees"];

/// Files at the top of a root whose removal is reported.
const KEPT: &[&str] = &[".env", "yoi.toml"];

/// What a file or directory means to git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A repository's own configuration.
    Config,
    /// Configuration that another one names, or that a link leads to.
    Included,
    /// In a repository's own directory of hooks.
    Hook,
    /// A hook in a directory that the configuration names, or that a link leads to.
    LinkedHook,
    /// A directory of hooks that the configuration names.
    HookDir,
    /// A directory of a repository; a link there leads to another one.
    Location,
    /// A file that names other directories: `.git`, `commondir`, alternates.
    Pointer,
    Todo,
    /// Reported when it changes.
    Reported,
    /// Reported when it is removed.
    Kept,
}

#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) role: Role,
    pub(super) state: State,
    /// The paths that a pointer names.
    pub(super) leads: Vec<PathBuf>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) found: BTreeMap<PathBuf, Watched>,
    pub(super) repositories: BTreeSet<PathBuf>,
    /// A limit was reached, so the snapshot is incomplete.
    pub(super) bounded: bool,
}

impl Snapshot {
    /// Takes a snapshot. Known repositories come before newly found ones, so that a limit omits the same ones each
    /// time.
    pub(super) fn take(memory: &mut Memory, roots: &Workspace, known: &BTreeSet<PathBuf>) -> Self {
        memory.begin();
        let mut scan = Scan {
            memory,
            roots,
            snapshot: Self::default(),
            looks: 0,
        };
        let tops: Vec<PathBuf> = roots.roots().map(|(root, _)| root.to_owned()).collect();
        for top in &tops {
            scan.dot_git(&top.join(".git"));
            KEPT.iter()
                .for_each(|name| scan.note(&top.join(name), Role::Kept));
        }
        for git in known {
            if matches!(scan.memory.state(roots, git), State::Dir) && scan.is_repository(git) {
                scan.repository(git);
            }
        }
        scan.tree(tops);
        let snapshot = scan.snapshot;
        memory.end();
        snapshot
    }

    /// Whether a path is a root's or a repository's that is watched.
    pub(super) fn watches(&self, path: &Path) -> bool {
        self.repositories.contains(path)
    }
}

struct Scan<'a> {
    memory: &'a mut Memory,
    roots: &'a Workspace,
    snapshot: Snapshot,
    looks: usize,
}

impl Scan<'_> {
    /// Counts one more name; `false` beyond the limit.
    fn look(&mut self) -> bool {
        self.looks += 1;
        let within = self.looks <= MAX_NAMES;
        self.snapshot.bounded |= !within;
        within
    }

    fn note(&mut self, path: &Path, role: Role) {
        if self.snapshot.found.contains_key(path) {
            return;
        }
        let state = self.memory.state(self.roots, path);
        self.insert(path, role, state, Vec::new());
    }

    /// Notes a name whose directory may be missing.
    fn note_below(&mut self, git: &Path, name: &str, role: Role) {
        let path = git.join(name);
        path.parent().map(|dir| self.memory.state(self.roots, dir));
        self.note(&path, role);
    }

    fn insert(&mut self, path: &Path, role: Role, state: State, leads: Vec<PathBuf>) {
        self.snapshot
            .found
            .insert(path.to_owned(), Watched { role, state, leads });
    }

    /// Resolves a path; `None` outside of the roots.
    fn resolved(&mut self, from: &Path, path: &Path) -> Option<PathBuf> {
        self.memory
            .leads(from, path)
            .filter(|path| self.roots.literal(path).is_some())
    }

    /// Handles the name `.git`: a repository, a file or a link that leads to one, or nothing.
    fn dot_git(&mut self, path: &Path) {
        let state = self.memory.state(self.roots, path);
        let dir = path.parent().unwrap_or(path);
        match &state {
            State::Dir => {
                self.insert(path, Role::Location, state, Vec::new());
                self.repository(path);
            }
            State::File(content) => {
                let named = content
                    .bytes
                    .as_deref()
                    .and_then(|bytes| bytes.strip_prefix(b"gitdir:"))
                    .map(trimmed);
                let leads = named.and_then(|named| self.memory.leads(dir, &named));
                self.pointer(path, state, leads);
            }
            State::Link(target) => {
                let leads = self.memory.leads(dir, Path::new(target));
                self.pointer(path, state, leads);
            }
            State::Missing | State::Other(_) => {
                self.insert(path, Role::Location, state, Vec::new())
            }
        }
    }

    fn pointer(&mut self, path: &Path, state: State, leads: Option<PathBuf>) {
        self.insert(path, Role::Pointer, state, leads.iter().cloned().collect());
        self.follow(leads);
    }

    fn follow(&mut self, leads: Option<PathBuf>) {
        if let Some(git) = leads.filter(|path| self.roots.literal(path).is_some())
            && matches!(self.memory.state(self.roots, &git), State::Dir)
        {
            self.repository(&git);
        }
    }

    /// Whether git would treat a directory as a repository.
    fn is_repository(&mut self, path: &Path) -> bool {
        let mut there = |name: &str| {
            !matches!(
                self.memory.state(self.roots, &path.join(name)),
                State::Missing
            )
        };
        there("HEAD") && (there("commondir") || (there("objects") && there("refs")))
    }

    /// Notes the watched files of one repository.
    fn repository(&mut self, git: &Path) {
        if self.snapshot.repositories.contains(git) {
            return;
        }
        if self.snapshot.repositories.len() >= MAX_REPOSITORIES {
            self.snapshot.bounded = true;
            return;
        }
        self.snapshot.repositories.insert(git.to_owned());
        self.place(git);
        let tops = self.worktrees(git);
        for name in CONFIGS {
            self.config(&git.join(name), Role::Config, &tops);
        }
        let hooks = git.join("hooks");
        if let Some(dir) = self.place(&hooks) {
            let role = if dir == hooks {
                Role::Hook
            } else {
                Role::LinkedHook
            };
            self.hooks(&dir, role, HOOK_DEPTH);
        }
        self.common(git);
        self.alternates(git);
        REPORTED
            .iter()
            .for_each(|name| self.note_below(git, name, Role::Reported));
        TODOS
            .iter()
            .for_each(|name| self.note_below(git, name, Role::Todo));
        for name in OLD_REMOTES {
            self.files(&git.join(name), Role::Reported);
        }
        for name in INNER {
            if let Some(dir) = self.place(&git.join(name)) {
                self.inner(&dir);
            }
        }
    }

    /// The directories in which its hooks run; relative hook paths are relative to these.
    fn worktrees(&mut self, git: &Path) -> BTreeSet<PathBuf> {
        let mut tops = BTreeSet::from([git.to_owned(), git.parent().unwrap_or(git).to_owned()]);
        if let State::File(content) = self.memory.state(self.roots, &git.join("config")) {
            let named = content
                .config()
                .unwrap_or_default()
                .iter()
                .filter(|entry| entry.key() == b"core.worktree");
            tops.extend(named.filter_map(|entry| {
                self.resolved(git, &path_of(entry.value.as_deref().unwrap_or_default()))
            }));
        }
        let linked = git.join("worktrees");
        for (name, _) in &self.list(&linked).names {
            let dir = linked.join(name);
            if let State::File(content) = self.memory.state(self.roots, &dir.join("gitdir")) {
                let named = content
                    .bytes
                    .as_deref()
                    .map(trimmed)
                    .and_then(|named| self.resolved(&dir, &named));
                tops.extend(named.and_then(|named| named.parent().map(Path::to_owned)));
            }
        }
        tops
    }

    /// Notes a directory, and says where it is.
    fn place(&mut self, path: &Path) -> Option<PathBuf> {
        self.note(path, Role::Location);
        match &self.snapshot.found.get(path)?.state {
            State::Dir => Some(path.to_owned()),
            State::Link(_) => self.resolved(path, path),
            State::Missing | State::File(_) | State::Other(_) => None,
        }
    }

    /// Handles the repository that a worktree shares.
    fn common(&mut self, git: &Path) {
        let path = git.join("commondir");
        let state = self.memory.state(self.roots, &path);
        let named = match &state {
            State::File(content) => content.bytes.as_deref().map(trimmed),
            State::Missing | State::Link(_) | State::Dir | State::Other(_) => None,
        };
        let leads = named.and_then(|named| self.memory.leads(git, &named));
        self.pointer(&path, state, leads);
    }

    /// Handles the file of the directories whose objects a repository uses: commands may read those from the next start on.
    fn alternates(&mut self, git: &Path) {
        self.note_below(git, ALTERNATES, Role::Pointer);
        let path = git.join(ALTERNATES);
        let Some(Watched {
            state: State::File(content),
            ..
        }) = self.snapshot.found.get(&path)
        else {
            return;
        };
        let content = content.clone();
        let named = lines(content.bytes.as_deref().unwrap_or_default());
        let leads = named
            .filter_map(|named| self.memory.leads(&git.join("objects"), &named))
            .collect();
        self.insert(&path, Role::Pointer, State::File(content), leads);
    }

    /// Handles a configuration file, the files that it includes, and the hooks that it names.
    fn config(&mut self, path: &Path, role: Role, tops: &BTreeSet<PathBuf>) {
        let mut todo = vec![(path.to_owned(), role)];
        while let Some((path, role)) = todo.pop() {
            if self.snapshot.found.contains_key(&path) || !self.look() {
                continue;
            }
            self.note(&path, role);
            let state = self
                .snapshot
                .found
                .get(&path)
                .map(|watched| watched.state.clone());
            let content = match state {
                Some(State::File(content)) => content,
                Some(State::Link(_)) => {
                    todo.extend(
                        self.resolved(&path, &path)
                            .map(|path| (path, Role::Included)),
                    );
                    continue;
                }
                Some(State::Missing | State::Dir | State::Other(_)) | None => continue,
            };
            for entry in content.config().unwrap_or_default() {
                let (Some(value), (section, _)) = (&entry.value, entry.parts()) else {
                    continue;
                };
                let named = path_of(value);
                match (section, entry.name.as_slice()) {
                    (b"include" | b"includeif", b"path") => {
                        let from = path.parent().unwrap_or(&path);
                        todo.extend(
                            self.resolved(from, &named)
                                .map(|path| (path, Role::Included)),
                        );
                    }
                    (b"core", b"hookspath") => {
                        for dir in tops
                            .iter()
                            .filter_map(|top| self.resolved(top, &named))
                            .collect::<BTreeSet<_>>()
                        {
                            self.note(&dir, Role::HookDir);
                            self.hooks(&dir, Role::LinkedHook, HOOK_DEPTH);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The files of a directory of hooks. Samples are not run.
    fn hooks(&mut self, dir: &Path, role: Role, depth: usize) {
        for (name, _) in &self.list(dir).names {
            let path = dir.join(name);
            if name.as_bytes().ends_with(b".sample") || self.snapshot.found.contains_key(&path) {
                continue;
            }
            if !self.look() {
                return;
            }
            self.note(&path, role);
            match self.snapshot.found.get(&path).map(|watched| &watched.state) {
                Some(State::Dir) if depth > 0 => self.hooks(&path, role, depth - 1),
                Some(State::Dir) => self.snapshot.bounded = true,
                Some(State::Link(_)) => {
                    if let Some(target) = self.resolved(&path, &path) {
                        self.note(&target, Role::LinkedHook);
                    }
                }
                Some(State::Missing | State::File(_) | State::Other(_)) | None => {}
            }
        }
    }

    fn files(&mut self, dir: &Path, role: Role) {
        for (name, _) in &self.list(dir).names {
            if !self.look() {
                return;
            }
            self.note(&dir.join(name), role);
        }
    }

    fn list(&mut self, dir: &Path) -> std::sync::Arc<super::memory::Listing> {
        if !matches!(self.memory.state(self.roots, dir), State::Dir) {
            return std::sync::Arc::default();
        }
        let listing = self.memory.listing(self.roots, dir, |_, _| true);
        self.snapshot.bounded |= listing.cut;
        listing
    }

    /// Submodules and worktrees, whose names may have several parts.
    fn inner(&mut self, dir: &Path) {
        let mut todo = vec![(dir.to_owned(), 0)];
        while let Some((dir, depth)) = todo.pop() {
            for (name, _) in &self.list(&dir).names {
                if !self.look() {
                    return;
                }
                let path = dir.join(name);
                match self.memory.state(self.roots, &path) {
                    State::Dir if self.is_repository(&path) => self.repository(&path),
                    State::Dir if depth < MAX_DEPTH => todo.push((path, depth + 1)),
                    State::Dir => self.snapshot.bounded = true,
                    State::Link(_) => {
                        self.note(&path, Role::Location);
                        let leads = self.resolved(&path, &path);
                        self.follow(leads);
                    }
                    State::Missing | State::File(_) | State::Other(_) => {}
                }
            }
        }
    }

    /// The directories of the roots, the nearest first and packages last, so that a bound cuts off what matters least.
    fn tree(&mut self, tops: Vec<PathBuf>) {
        let mut todo: VecDeque<(PathBuf, usize)> = tops.into_iter().map(|top| (top, 0)).collect();
        let mut later = VecDeque::new();
        while let Some((dir, depth)) = todo.pop_front().or_else(|| later.pop_front()) {
            if !self.look() {
                return;
            }
            let listing = self.memory.listing(self.roots, &dir, tells);
            self.snapshot.bounded |= listing.cut;
            let has = |wanted: &str| listing.names.iter().any(|(name, _)| name == wanted);
            if has("HEAD") && (has("commondir") || (has("objects") && has("refs"))) {
                self.repository(&dir);
                continue;
            }
            for (name, kind) in &listing.names {
                let path = dir.join(name);
                if name.eq_ignore_ascii_case(".git") {
                    if !self.snapshot.found.contains_key(&path) {
                        self.dot_git(&path);
                    }
                } else if matches!(kind, Some(FileKind::Dir) | None) {
                    match depth < MAX_DEPTH {
                        true if LATER.iter().any(|known| name == known) => {
                            later.push_back((path, depth + 1))
                        }
                        true => todo.push_back((path, depth + 1)),
                        false => self.snapshot.bounded = true,
                    }
                }
            }
        }
    }
}

/// Whether a name in a directory shows that the directory is a repository or contains one.
fn tells(name: &OsString, kind: Option<FileKind>) -> bool {
    let telling = [".git", "HEAD", "commondir", "objects", "refs"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known));
    telling || matches!(kind, Some(FileKind::Dir) | None)
}
