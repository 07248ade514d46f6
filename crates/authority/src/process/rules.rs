//! The paths that a confined child may use: lists, and the Landlock rules built from them once for each
//! [`super::Spawner`].

use super::confinement::{Confinement, SandboxMode, support};
use super::env::EnvPolicy;
use super::filter::Reach;
use super::public::public;
use super::trail::{End, Ground, Named, exactly, follow};
use crate::{Error, ErrorKind};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Programs, libraries and information of the kernel about the machine: children read and run them.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/run/current-system",
    "/run/systemd/resolve",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
    "/var/lib/dpkg",
    "/var/lib/alternatives",
    "/var/cache/fontconfig",
    "/dev/random",
    "/dev/urandom",
];

/// This program, whatever has its path meanwhile: a child may run it again, to read a script.
pub(super) const OWN_PROGRAM: &str = "/proc/self/exe";

/// Written as well: nothing is kept there. No terminals: with `/dev/tty` a child could ask the person and wait for
/// ever, and a new one from `/dev/ptmx` needs `/dev/pts`, where the person's own are.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// Written by children that may write the project: Python's locks are there. It is shared with the person's other
/// programs.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Of `/etc`, everything every user may read ([`super::public`]), except what is named here: keys live below these.
pub(crate) const ETC_WITHHELD: &[&str] = &[
    "ssh",
    "ssl",
    "sudoers",
    "sudoers.d",
    "letsencrypt",
    "pki",
    "NetworkManager",
    "netplan",
    "wpa_supplicant",
    "ppp",
    "wireguard",
    "openvpn",
    "ipsec.d",
    "krb5.keytab",
    "docker",
    "kubernetes",
];

/// Harmless files below the withheld ones that programs need.
pub(crate) const ETC_GIVEN: &[&str] = &[
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/ca-trust",
];

/// Toolchains below the home directory. Landlock cannot take a file out of an allowed directory, so a directory that
/// also holds credentials (`~/.cargo`, `~/.config/git`) is given in pieces.
const HOME_READ: &[&str] = &[
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
    ".gitignore",
    ".pyenv",
    ".nvm",
    ".fnm",
    ".local/share/fnm",
    ".volta/bin",
    ".volta/tools",
    ".asdf",
    ".local/share/mise/installs",
    ".local/share/mise/shims",
    ".rbenv",
    ".sdkman/candidates",
    ".jdks",
    ".ghcup/bin",
    ".ghcup/ghc",
    ".elan",
    ".juliaup",
    ".deno/bin",
    ".bun/bin",
    ".local/bin",
    ".local/lib",
    ".local/pipx/venvs",
    ".local/share/uv/python",
    ".local/share/pipx/venvs",
    ".local/share/pnpm",
    ".nix-profile",
    ".local/state/nix/profiles",
    "go/bin",
    "sdk",
    ".gem/ruby",
];

/// Where package managers keep what they get, below the home directory: children in namespaces add to a copy of their own,
/// others read. Not what is above these: credentials are there.
const HOME_STORES: &[&str] = &[
    ".rustup",
    "go/pkg",
    ".m2/repository",
    ".gradle/caches",
    ".gradle/daemon",
    ".gradle/native",
    ".gradle/workers",
    ".gradle/notifications",
    ".gradle/wrapper",
    ".gradle/.tmp",
    ".nuget/packages",
    ".local/share/NuGet",
    ".cache/pre-commit",
    ".cache/node-gyp",
];
const CARGO_STORES: &[&str] = &["registry", "git"];
const STORE_VARS: &[&str] = &["RUSTUP_HOME", "GOMODCACHE"];

/// Names mirrors; given where it holds no secret.
const MAVEN_SETTINGS: &str = ".m2/settings.xml";

/// Below `CARGO_HOME`. Not its locks, and not `.global-cache`, its record of what was used when: the next cargo that
/// cleans up removes the files that it names, and a process that can read a lock can hold it. Without access cargo
/// continues silently without them.
const CARGO: &[&str] = &["bin", "config.toml", "config", "env"];

/// Variables that name directories of toolchains.
const TOOLCHAIN_VARS: &[&str] = &[
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "NVM_DIR",
    "FNM_DIR",
    "GOROOT",
    "JAVA_HOME",
    "RBENV_ROOT",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
];

/// Directories of keys below the home directory: no directory above or below these is allowed to a child.
pub(crate) const HOME_HIDDEN: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
];

fn reading() -> BitFlags<AccessFs> {
    AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir
}

/// Rules for writing: all but making devices (root could make the disk appear in the project) and commanding them.
fn writing(abi: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

/// What a rule gives: a path, the device and number of what it leads to, and the access to that.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) path: PathBuf,
    pub(super) id: (u64, u64),
    pub(super) access: BitFlags<AccessFs>,
    /// Whether children in namespaces get a copy, which they write.
    pub(super) is_store: bool,
}

/// Stands for the device and number of a store that is not there.
pub(super) const ABSENT: (u64, u64) = (0, 0);

/// A rule with an `O_PATH` handle on what it is for.
type Rule = (Given, OwnedFd);

/// Refuses directories that cannot be given.
///
/// # Errors
/// `Denied` for one that holds keys or yoi's own files, `FixInput` for one that does not exist.
pub(super) fn check(confinement: &Confinement, env: &EnvPolicy) -> Result<(), Error> {
    let hidden = hidden(env);
    resolved(&confinement.read, &hidden)?;
    resolved(&confinement.write, &hidden).map(drop)
}

/// The rules of a confinement, and the stores that are not there yet.
fn collect(
    confinement: &Confinement,
    env: &EnvPolicy,
    temp: &Path,
) -> Result<(Vec<Rule>, Vec<PathBuf>), Error> {
    let hidden = hidden(env);
    let read = resolved(&confinement.read, &hidden)?;
    let write = resolved(&confinement.write, &hidden)?;
    let abi = ABI::from(support().landlock_abi);
    let mut all = Vec::new();
    let etc = named(Path::new("/etc")).chain(ETC_GIVEN.iter().map(PathBuf::from));
    let system = SYSTEM
        .iter()
        .map(PathBuf::from)
        .chain(public(etc, rustix::process::geteuid().is_root()));
    let system = system
        .map(|path| (path, reading()))
        .chain([("/etc".into(), AccessFs::ReadDir.into())]);
    let shared = Some(SHARED_MEMORY).filter(|_| confinement.mode == SandboxMode::WorkspaceWrite);
    let devices = DEVICES
        .iter()
        .copied()
        .chain(shared)
        .map(|path| (PathBuf::from(path), written(abi)));
    let program = (
        PathBuf::from(OWN_PROGRAM),
        AccessFs::Execute | AccessFs::ReadFile,
    );
    for (path, access) in system.chain(devices).chain([program]) {
        all.extend(open(path, access, abi));
    }
    let (found, absent) = toolchains(env, &write, &hidden);
    for (end, is_store) in found {
        let rule = fitting(end.path, end.fd, reading(), abi);
        all.extend(rule.map(|(given, file)| (Given { is_store, ..given }, file)));
    }
    let wide = match confinement.mode {
        SandboxMode::WorkspaceWrite => written(abi),
        SandboxMode::ReadOnly | SandboxMode::Off => reading(),
    };
    let mine = [(temp.to_owned(), written(abi))];
    let own = read
        .into_iter()
        .map(|path| (path, reading()))
        .chain(write.into_iter().map(|path| (path, wide)));
    for (path, access) in own.chain(mine) {
        let moved = || {
            let text = format!(
                "sandbox: {} was moved while the sandbox was set up; try again",
                crate::escape(&path)
            );
            Error::new(ErrorKind::Unavailable, text)
        };
        let end = exactly(&path).ok_or_else(moved)?;
        all.extend(fitting(path, end.fd, access, abi));
    }
    Ok((all, absent))
}

/// Whether a rule gives a directory for reading alone.
pub(super) fn is_read_dir(access: BitFlags<AccessFs>) -> bool {
    access.contains(AccessFs::ReadDir)
        && access.contains(AccessFs::ReadFile)
        && !access.contains(AccessFs::WriteFile)
}

/// What is read and written.
fn written(abi: ABI) -> BitFlags<AccessFs> {
    reading() | writing(abi)
}

/// Landlock rules to be, for any number of threads. They handle every access right that this kernel supports,
/// so all are refused where no rule allows them; but those of the network only where all of it is refused. A namespace of
/// the children's own bounds their sockets by itself.
pub(super) fn begin_ruleset(
    reach: Reach,
    abi: ABI,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset = ruleset.handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V4 && reach == Reach::Nothing {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(if reach == Reach::Namespaces {
            Scope::Signal.into()
        } else {
            Scope::from_all(abi)
        })?;
    }
    ruleset.create()
}

pub(super) fn add_rules<'a>(
    ruleset: RulesetCreated,
    given: impl IntoIterator<Item = (BorrowedFd<'a>, BitFlags<AccessFs>)>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    given
        .into_iter()
        .try_fold(ruleset, |ruleset, (file, access)| {
            ruleset.add_rule(PathBeneath::new(file, access))
        })
}

/// What children are given.
pub(super) fn given(
    confinement: &Confinement,
    env: &EnvPolicy,
    temp: &Path,
) -> Result<Vec<Given>, Error> {
    let (all, absent) = collect(confinement, env, temp)?;
    let absent = absent.into_iter().map(|path| Given {
        path,
        id: ABSENT,
        access: reading(),
        is_store: true,
    });
    let all = all.into_iter().map(|(given, _)| given);
    Ok(all.chain(absent).collect())
}

/// The rules of a child that is not in namespaces of its own.
pub(super) fn build(
    confinement: &Confinement,
    env: &EnvPolicy,
    temp: &Path,
    reach: Reach,
) -> Result<RulesetCreated, Error> {
    let (all, _absent) = collect(confinement, env, temp)?;
    let rules = all.iter().map(|(given, file)| (file.as_fd(), given.access));
    let ruleset = begin_ruleset(reach, ABI::from(support().landlock_abi));
    ruleset
        .and_then(|ruleset| add_rules(ruleset, rules))
        .map_err(|why| {
            Error::new(
                ErrorKind::Unavailable,
                format!("Landlock refused its rules: {why}; use sandbox mode off"),
            )
        })
}

/// A rule for a path of the system; `None` if the path does not exist.
fn open(path: PathBuf, access: BitFlags<AccessFs>, abi: ABI) -> Option<Rule> {
    let fd = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    fitting(path, fd, access, abi)
}

/// A rule with the part of `access` that applies to this kind of file.
fn fitting(path: PathBuf, file: OwnedFd, access: BitFlags<AccessFs>, abi: ABI) -> Option<Rule> {
    let stat = rustix::fs::fstat(&file).ok()?;
    let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let access = if is_dir {
        access
    } else {
        access & AccessFs::from_file(abi)
    };
    (!access.is_empty()).then_some((
        Given {
            path,
            id: (stat.st_dev, stat.st_ino),
            access,
            is_store: false,
        },
        file,
    ))
}

/// The toolchains and stores that the home directory and the environment name, and the stores that are not there yet. Paths
/// below a directory that children write are omitted, because they are allowed anyway, and links out of one are not followed;
/// no path leads to keys.
fn toolchains(
    env: &EnvPolicy,
    written: &[PathBuf],
    hidden: &[PathBuf],
) -> (Vec<(End, bool)>, Vec<PathBuf>) {
    let home = env.place("HOME").and_then(|home| home.canonicalize().ok());
    let mut written = written.to_vec();
    written.extend(Path::new(SHARED_MEMORY).canonicalize());
    let ground = Ground {
        written: &written,
        home: home.as_deref(),
        system: SYSTEM,
    };
    let ours = |name: &&str| home.as_ref().map(|home| (home.join(name), Named::ByUs));
    let theirs = |name: &&str| env.dir(name).map(|dir| (dir, Named::ByVariable));
    let cargo = match env.dir("CARGO_HOME") {
        Some(dir) => Some((dir, Named::ByVariable)),
        None => home.as_ref().map(|home| (home.join(".cargo"), Named::ByUs)),
    };
    let of_cargo = |name: &&str| cargo.as_ref().map(|(dir, named)| (dir.join(name), *named));
    let read = HOME_READ
        .iter()
        .filter_map(ours)
        .chain(TOOLCHAIN_VARS.iter().filter_map(theirs));
    let read = read
        .chain(CARGO.iter().filter_map(of_cargo))
        .map(|found| (found, false));
    let stores = HOME_STORES
        .iter()
        .filter_map(ours)
        .chain(STORE_VARS.iter().filter_map(theirs));
    let stores = stores
        .chain(CARGO_STORES.iter().filter_map(of_cargo))
        .map(|found| (found, true));
    let is_free = |path: &Path| {
        !written.iter().any(|root| path.starts_with(root))
            && !hidden.iter().any(|place| overlap(path, place))
    };
    let mut found = Vec::new();
    let mut absent = Vec::new();
    let settings = home
        .iter()
        .map(|home| ((home.join(MAVEN_SETTINGS), Named::ByUs), false));
    let settings = settings.filter(|((path, _), _)| holds_no_secret(path));
    for ((path, named), is_store) in read.chain(settings).chain(stores) {
        // The links on the way to the home directory are the system's.
        let path = match (env.place("HOME"), &home) {
            (Some(as_told), Some(home)) => path
                .strip_prefix(as_told)
                .map_or(path.clone(), |rest| home.join(rest)),
            _homeless => path,
        };
        match follow(&path, named, &ground) {
            Some(end) if is_free(&end.path) => found.push((end, is_store)),
            None if is_store && named == Named::ByUs && is_free(&path) => {
                let top = absent_top(&path, home.as_deref());
                let top = top.map(|top| if is_free(&top) { top } else { path });
                absent.extend(top.filter(|top| !absent.contains(top)));
            }
            Some(_) | None => {}
        }
    }
    (found, absent)
}

/// Whether no setting in a file of Maven is a secret. What cannot be read might be.
fn holds_no_secret(path: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else {
        return false;
    };
    let text = text.to_ascii_lowercase();
    ![
        "password",
        "passphrase",
        "privatekey",
        "token",
        "authorization",
    ]
    .iter()
    .any(|word| text.contains(word))
}

/// The first directory on the way to a path, below the home directory, that is not there; `None` if there is none, or a link is
/// before it. Where `.gradle` is missing, it is one new directory, not six in it.
fn absent_top(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let missing = |dir: &&Path| dir.symlink_metadata().is_err() && Some(*dir) != home;
    let top = path.ancestors().take_while(missing).last()?;
    let real = top.parent()?.canonicalize().ok()?;
    (real == top.parent()?).then(|| top.to_owned())
}

/// The entries of `/etc` that are not in [`ETC_WITHHELD`].
fn named(etc: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(etc).into_iter().flatten().flatten();
    let withheld = |name: &OsStr| {
        name.to_str()
            .is_some_and(|name| ETC_WITHHELD.contains(&name))
    };
    entries
        .filter(move |entry| !withheld(&entry.file_name()))
        .map(|entry| entry.path())
}

/// Existing paths that no child may read: keys, yoi's own state (other pods' sessions) and configuration.
fn hidden(env: &EnvPolicy) -> Vec<PathBuf> {
    let home = env.place("HOME");
    let below_home = |name: &str| home.as_ref().map(|home| home.join(name));
    let state = env
        .place("XDG_STATE_HOME")
        .or_else(|| below_home(".local/state"));
    let config = env
        .place("XDG_CONFIG_HOME")
        .or_else(|| below_home(".config"));
    let yoi = [state, config]
        .into_iter()
        .flatten()
        .map(|dir| dir.join("yoi"));
    let keys = HOME_HIDDEN.iter().filter_map(|name| below_home(name));
    // Most are not there, which one look tells.
    yoi.chain(keys)
        .filter(|path| path.symlink_metadata().is_ok())
        .filter_map(|path| path.canonicalize().ok())
        .collect()
}

/// These directories without links. Landlock cannot take anything out of an allowed directory, so one that holds keys
/// is not allowed at all.
fn resolved(paths: &[PathBuf], hidden: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let resolve = |path: &PathBuf| {
        let real = path
            .canonicalize()
            .map_err(|error| Error::io("confine to", path, error))?;
        if let Some(place) = hidden.iter().find(|place| overlap(&real, place)) {
            let what = if place.ends_with("yoi") {
                "yoi's files in"
            } else {
                "the keys in"
            };
            let path = crate::escape(path);
            let place = crate::escape(place);
            let text = format!(
                "a command that can read {path} could also read {what} {place}; start in a project directory, or use sandbox mode off"
            );
            return Err(Error::new(ErrorKind::Denied, text));
        }
        Ok(real)
    };
    paths.iter().map(resolve).collect()
}

fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_keys_below_etc_are_withheld() {
        let etc = tempfile::tempdir().unwrap();
        let names = [
            "letsencrypt",
            "pki",
            "netplan",
            "ppp",
            "ipsec.d",
            "wpa_supplicant",
            "NetworkManager",
            "ssh",
        ];
        for name in names.iter().chain(&["alternatives", "ppp-not"]) {
            std::fs::create_dir(etc.path().join(name)).unwrap();
        }
        let mut given: Vec<_> = named(etc.path()).collect();
        given.sort();
        assert_eq!(
            given,
            ["alternatives", "ppp-not"].map(|name| etc.path().join(name))
        );
    }
}
