//! Directories that are never added to a run's workspace: directories of keys, yoi's own, the home directory, and the
//! kernel's file systems for processes and devices. They are recognised by path and by file system, so that neither a
//! link nor another mount of the same directory gets around the check.

use crate::process::{ETC_GIVEN, ETC_WITHHELD, EnvPolicy, HOME_HIDDEN};
use crate::{Ambient, fs};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The most bytes read of the list of mounts and of the list of users.
const MAX_LIST: u64 = 16 << 20;

/// The most entries of a directory of keys that are checked for links to other places.
const MAX_ENTRIES: usize = 1024;

/// yoi's own directory below each of these, and the same below the home directory where the variable is not set.
const OWN: [(&str, &str); 3] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CACHE_HOME", ".cache"),
];

/// File systems through which the memory, environment and files of processes, or devices, are reached.
const KERNEL: [&str; 4] = ["proc", "sysfs", "devtmpfs", "devpts"];

/// The directories that may not be added to a workspace, as found when this value was created. `yoi` checks every added
/// directory with [`conflict`](Self::conflict).
#[derive(Debug)]
pub struct Withheld {
    places: Vec<WithheldDir>,
    mounts: Vec<Mount>,
}

#[derive(Debug)]
struct WithheldDir {
    path: PathBuf,
    why: WithheldReason,
    /// Whether what lies below it is withheld, too.
    below: bool,
}

/// The reason why a directory is never opened as a project or added to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithheldReason {
    /// The home directory, or a directory above it.
    Home,
    /// A directory of keys or passwords.
    Keys,
    /// A directory of yoi: configuration, sessions, notes, caches.
    Own,
    /// A directory with temporary directories of other runs.
    Temporary,
    /// A file system of the kernel for processes or devices.
    Kernel,
}

/// The reason why a directory cannot be added: the withheld directory that it overlaps; see [`Withheld::conflict`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub place: PathBuf,
    pub why: WithheldReason,
}

impl Withheld {
    /// Reads the home directory, the variables that name yoi's own directories, and the mounts.
    pub fn of(_: &Ambient, env: &EnvPolicy) -> Self {
        let mounts = read("/proc/self/mountinfo")
            .split(|byte| *byte == b'\n')
            .filter_map(Mount::parse)
            .collect();
        Self {
            places: places(env, &homes(env)),
            mounts,
        }
    }

    /// Checks a resolved directory; `None` if it may be added.
    pub fn conflict(&self, dir: &Path) -> Option<Conflict> {
        let own = self.mount_of(dir);
        let below = self
            .mounts
            .iter()
            .filter(|mount| mount.point != dir && mount.point.starts_with(dir));
        let roots: Vec<(&str, PathBuf)> = below
            .clone()
            .map(|mount| (mount.device.as_str(), mount.root.clone()))
            .collect();
        let given = ETC_GIVEN.iter().any(|given| dir.starts_with(given));
        let meets = |place: &&WithheldDir| {
            if given && place.path.starts_with("/etc") {
                return false;
            }
            let there = self.origin(&place.path);
            let same = |(device, path): &(&str, PathBuf)| {
                there
                    .as_ref()
                    .is_some_and(|(on, there)| on == device && overlap(path, there, place.below))
            };
            overlap(&folded(dir), &folded(&place.path), place.below)
                || self.origin(dir).as_ref().is_some_and(same)
                || roots.iter().any(same)
        };
        if let Some(WithheldDir { path, why, .. }) = self.places.iter().find(meets) {
            return Some(Conflict {
                place: path.clone(),
                why: *why,
            });
        }
        let kernel = own
            .into_iter()
            .chain(below)
            .find(|mount| KERNEL.contains(&mount.kind.as_str()))?;
        Some(Conflict {
            place: kernel.point.clone(),
            why: WithheldReason::Kernel,
        })
    }

    /// The mount that a path is on: of those above it the deepest, and of those at one place the last.
    fn mount_of(&self, path: &Path) -> Option<&Mount> {
        let above = self
            .mounts
            .iter()
            .filter(|mount| path.starts_with(&mount.point));
        above.max_by_key(|mount| mount.point.components().count())
    }

    /// The file system of a path, and the path in it.
    fn origin(&self, path: &Path) -> Option<(&str, PathBuf)> {
        let mount = self.mount_of(path)?;
        let rest = path.strip_prefix(&mount.point).ok()?;
        Some((&mount.device, mount.root.join(rest)))
    }
}

/// Whether a directory is the place, contains it, or, if `below`, is in it.
fn overlap(dir: &Path, place: &Path, below: bool) -> bool {
    place.starts_with(dir) || (below && dir.starts_with(place))
}

/// The path in lower case, because some file systems ignore case.
fn folded(path: &Path) -> PathBuf {
    path.to_string_lossy()
        .chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect::<String>()
        .into()
}

/// The home directory of the environment and that of the user database: they differ under `sudo`.
fn homes(env: &EnvPolicy) -> Vec<PathBuf> {
    let user = rustix::process::getuid().as_raw().to_string();
    let passwd = read("/etc/passwd");
    let listed = passwd.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        (fields.nth(2)? == user.as_bytes()).then(|| path(fields.nth(2).unwrap_or_default()))
    });
    // A service's `/` or `/nonexistent` is not a home directory.
    let listed = listed.filter(|home| home.is_dir() && home != Path::new("/"));
    env.place("HOME").into_iter().chain(listed).collect()
}

fn places(env: &EnvPolicy, homes: &[PathBuf]) -> Vec<WithheldDir> {
    let mut places = Vec::new();
    let mut add = |path: PathBuf, why: WithheldReason| {
        let below = !matches!(why, WithheldReason::Home | WithheldReason::Temporary);
        let resolved = fs::resolve(Path::new("/"), &path)
            .ok()
            .filter(|resolved| *resolved != path);
        let linked = if below { links(&path) } else { Vec::new() };
        let all = [Some(path), resolved].into_iter().flatten().chain(linked);
        places.extend(all.map(|path| WithheldDir { path, why, below }));
    };
    homes
        .iter()
        .for_each(|home| add(home.clone(), WithheldReason::Home));
    for (variable, default) in OWN {
        let set = env.place(variable).into_iter();
        let bases: Vec<PathBuf> = set
            .chain(homes.iter().map(|home| home.join(default)))
            .collect();
        bases
            .into_iter()
            .for_each(|base| add(base.join("yoi"), WithheldReason::Own));
    }
    add("/etc/yoi".into(), WithheldReason::Own);
    for home in homes {
        HOME_HIDDEN
            .iter()
            .for_each(|name| add(home.join(name), WithheldReason::Keys));
    }
    ETC_WITHHELD
        .iter()
        .for_each(|name| add(Path::new("/etc").join(name), WithheldReason::Keys));
    add(
        env.place("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp")),
        WithheldReason::Temporary,
    );
    places
}

/// The targets of the links in a directory: keys and configuration files are often links.
fn links(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_ENTRIES);
    let linked = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    linked
        .filter_map(|entry| fs::resolve(Path::new("/"), &entry.path()).ok())
        .collect()
}

#[derive(Debug)]
struct Mount {
    device: String,
    root: PathBuf,
    point: PathBuf,
    kind: String,
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = String::from_utf8_lossy(fields.nth(2)?).into_owned();
        let root = unescaped(fields.next()?);
        let point = unescaped(fields.next()?);
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        Some(Self {
            device,
            root,
            point,
            kind: String::from_utf8_lossy(kind).into_owned(),
        })
    }
}

/// Spaces and similar characters are written as `\040` there.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after
            .get(..3)
            .filter(|_| *byte == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(meant) => {
                out.push(meant);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    path(&out)
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

fn read(list: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A missing list counts as empty.
    if let Ok(file) = std::fs::File::open(list) {
        file.take(MAX_LIST).read_to_end(&mut bytes).ok();
    }
    bytes
}

#[cfg(test)]
mod tests;
