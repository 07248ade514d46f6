//! Walking a directory tree in order, without the files that `.gitignore` excludes.
//!
//! The walk uses directory handles and does not follow links, so nothing outside of the root is listed. Ignore files
//! count only from the workspace root downwards.

use super::locate::{Located, Root};
use super::open::{FileKind, list, meta, open_dir, open_dir_at, parent, stat_at, trouble};
use super::workspace::{Access, Workspace};
use crate::{Error, ErrorKind};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The deepest level of a walk; each level keeps one file descriptor open.
pub const MAX_WALK_DEPTH: usize = 128;

/// The most bytes of one ignore file that are read.
pub const MAX_IGNORE_FILE: u64 = 1 << 20;

/// The options of [`Workspace::walk`]: which files it includes, and how deep it goes.
#[derive(Clone, Copy, Debug)]
pub struct WalkOptions {
    /// Skip files that `.gitignore` and `.git/info/exclude` name. `.git` is always skipped.
    pub gitignore: bool,
    /// How many levels down; 1 is the directory's own entries. Deeper than [`MAX_WALK_DEPTH`] nothing is walked: a
    /// directory there is an error of the walk, unless this ends it before.
    pub max_depth: usize,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self {
            gitignore: true,
            max_depth: usize::MAX,
        }
    }
}

/// A file or directory found by a walk.
#[derive(Clone, Debug)]
pub struct WalkEntry {
    /// Absolute.
    pub path: PathBuf,
    /// The type; links are not followed.
    pub kind: FileKind,
    /// Length in bytes; 0 unless it is a regular file.
    pub len: u64,
    /// 1 for an entry of the directory the walk started in, 0 for a file it started at.
    pub depth: usize,
    root: Arc<Root>,
}

impl WalkEntry {
    /// The path for opening it.
    ///
    /// # Errors
    /// `Bug` only.
    pub fn located(&self) -> Result<Located, Error> {
        Located::new(self.root.clone(), self.path.clone())
    }
}

/// Iterates over the files and directories below a directory, from [`Workspace::walk`]: parents before children, names
/// in byte order. An error concerns one directory or file, and the walk continues after it; `Revoked` ends the walk.
#[derive(Debug)]
pub struct Walk {
    workspace: Workspace,
    root: Arc<Root>,
    options: WalkOptions,
    /// From the root down to above the start.
    above: Vec<Gitignore>,
    levels: Vec<Level>,
    first: Option<Result<WalkEntry, Error>>,
}

#[derive(Debug)]
struct Level {
    dir: OwnedFd,
    path: PathBuf,
    names: std::vec::IntoIter<OsString>,
    ignore: Option<Gitignore>,
}

impl Workspace {
    /// Walks the tree below a directory; for a file, yields the file alone. Errors are items of the walk.
    pub fn walk(&self, at: &Located, options: WalkOptions) -> Walk {
        let mut walk = Walk {
            workspace: self.clone(),
            root: at.root().clone(),
            options,
            above: Vec::new(),
            levels: Vec::new(),
            first: None,
        };
        if let Err(error) = walk.start(at) {
            walk.first = Some(Err(error));
        }
        walk
    }
}

impl Iterator for Walk {
    type Item = Result<WalkEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let level = self.levels.last_mut()?;
            let Some(name) = level.names.next() else {
                self.levels.pop();
                continue;
            };
            if name == ".git" {
                continue;
            }
            match self.visit(&name) {
                Ok(Some(entry)) => return Some(Ok(entry)),
                Ok(None) => {}
                Err(error) => {
                    if error.kind() == ErrorKind::Revoked {
                        self.levels.clear();
                    }
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Walk {
    fn start(&mut self, at: &Located) -> Result<(), Error> {
        let workspace = self.workspace.clone();
        let _use = workspace.enter_at(at, Access::Read)?;
        let (dir, leaf) = parent(at)?;
        let found =
            meta(&stat_at(dir.as_fd(), leaf).map_err(|error| Error::io("walk", at.path(), error))?);
        if found.kind != FileKind::Dir {
            let path = at.path().to_owned();
            self.first = Some(Ok(WalkEntry {
                path,
                kind: found.kind,
                len: found.len,
                depth: 0,
                root: self.root.clone(),
            }));
            return Ok(());
        }
        if self.options.gitignore {
            self.above = rules_above(at)?;
        }
        self.levels
            .push(self.level(open_dir(at)?, at.path().to_owned())?);
        Ok(())
    }

    fn visit(&mut self, name: &OsStr) -> Result<Option<WalkEntry>, Error> {
        let depth = self.levels.len();
        let Some(level) = self.levels.last() else {
            return Ok(None);
        };
        let path = level.path.join(name);
        let _use = self
            .workspace
            .door()
            .enter()
            .map_err(|_| Error::revoked(&super::escape(&path)))?;
        let found = match stat_at(level.dir.as_fd(), name) {
            Ok(stat) => meta(&stat),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(Error::io("look at", &path, error)),
        };
        let is_dir = found.kind == FileKind::Dir;
        if self.options.gitignore && self.ignored(&path, is_dir) {
            return Ok(None);
        }
        if is_dir && depth < self.options.max_depth {
            if depth >= MAX_WALK_DEPTH {
                let text = format!(
                    "{}: more than {MAX_WALK_DEPTH} directories deep; start in a lower directory",
                    super::escape(&path)
                );
                return Err(Error::new(ErrorKind::Exhausted, text));
            }
            let dir = open_dir_at(level.dir.as_fd(), name)
                .map_err(|error| trouble("list", &path, error))?;
            let level = self.level(dir, path.clone())?;
            self.levels.push(level);
        }
        let len = if found.kind == FileKind::File {
            found.len
        } else {
            0
        };
        Ok(Some(WalkEntry {
            path,
            kind: found.kind,
            len,
            depth,
            root: self.root.clone(),
        }))
    }

    fn level(&self, dir: OwnedFd, path: PathBuf) -> Result<Level, Error> {
        let names = list(&dir, &path)?;
        let ignore = if self.options.gitignore {
            rules(
                dir.as_fd(),
                &path,
                Some(&*self.root).filter(|root| root.path == path),
            )
        } else {
            None
        };
        Ok(Level {
            dir,
            path,
            names: names.into_iter(),
            ignore,
        })
    }

    /// The innermost rule that matches decides.
    fn ignored(&self, path: &Path, is_dir: bool) -> bool {
        let inner = self
            .levels
            .iter()
            .rev()
            .filter_map(|level| level.ignore.as_ref());
        for rules in inner.chain(self.above.iter().rev()) {
            match rules.matched(path, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// The rules of the directories from the root down to above `at`.
fn rules_above(at: &Located) -> Result<Vec<Gitignore>, Error> {
    let mut found = Vec::new();
    let Some(parents) = at.relative().parent() else {
        return Ok(found);
    };
    let root = at.root();
    let mut dir = open_dir_at(root.dir(), OsStr::new("."))
        .map_err(|error| Error::io("walk", &root.path, error))?;
    let mut path = root.path.clone();
    found.extend(rules(dir.as_fd(), &path, Some(root)));
    for name in parents {
        path.push(name);
        dir = open_dir_at(dir.as_fd(), name).map_err(|error| trouble("walk", &path, error))?;
        found.extend(rules(dir.as_fd(), &path, None));
    }
    Ok(found)
}

/// The ignore rules of a directory; invalid lines are skipped, as git does.
pub(super) fn rules(dir: BorrowedFd<'_>, path: &Path, root: Option<&Root>) -> Option<Gitignore> {
    let mut text = String::new();
    if let Some(root) = root {
        // Lower than .gitignore: of two rules that match, the later one wins.
        let git = match &root.linked {
            Some(whole) => open_dir_at(rustix::fs::CWD, whole.as_os_str()).ok(),
            None => open_dir_at(dir, OsStr::new(".git")).ok(),
        };
        let info = git.and_then(|git| open_dir_at(git.as_fd(), OsStr::new("info")).ok());
        text.extend(info.and_then(|info| ignore_file(info.as_fd(), "exclude")));
        text.push('\n');
    }
    text.extend(ignore_file(dir, ".gitignore"));
    if text.trim().is_empty() {
        return None;
    }
    let mut builder = GitignoreBuilder::new(path);
    for line in text.lines() {
        builder.add_line(None, &as_git_reads(line)).ok();
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// Classes of characters that git knows by a name.
const CLASSES: &[(&str, &str)] = &[
    ("[:alnum:]", "a-zA-Z0-9"),
    ("[:alpha:]", "a-zA-Z"),
    ("[:digit:]", "0-9"),
    ("[:lower:]", "a-z"),
    ("[:upper:]", "A-Z"),
    ("[:xdigit:]", "0-9a-fA-F"),
    ("[:space:]", " \t"),
    ("[:blank:]", " \t"),
];

/// A rule in the notation of the library: to git braces are characters, classes have names, and only spaces behind a rule
/// mean nothing.
fn as_git_reads(rule: &str) -> Cow<'_, str> {
    if !rule.contains(['{', '}']) && !rule.contains("[:") && !rule.ends_with('\t') {
        return Cow::Borrowed(rule);
    }
    let mut out = String::new();
    let mut is_escaped = false;
    let mut is_class = false;
    for c in rule.chars() {
        let is_brace = matches!(c, '{' | '}') && !is_class && !is_escaped;
        is_class = !is_escaped && (c == '[' || is_class && c != ']');
        is_escaped = c == '\\' && !is_escaped;
        out.extend(is_brace.then_some('\\'));
        out.push(c);
    }
    for (name, characters) in CLASSES {
        out = out.replace(name, characters);
    }
    match out.strip_suffix('\t') {
        Some(rest) => Cow::Owned(format!("{rest}[\t]")),
        None => Cow::Owned(out),
    }
}

fn ignore_file(dir: BorrowedFd<'_>, name: &str) -> Option<String> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?);
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    file.take(MAX_IGNORE_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(crate::text::bytes_without_bom(&bytes)).into_owned())
}
