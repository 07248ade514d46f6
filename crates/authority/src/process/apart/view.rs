//! The file system that children see: what a rule gives them, at its place, and devices, `/proc`, `/tmp` and `/dev/shm` of
//! their own. All else does not exist, so no socket of another program has a name in it.

use crate::process::rules::{self, Given};
use landlock::AccessFs;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    UnmountFlags,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{CString, OsString};
use std::fs::Permissions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// What a view has of its own, with all below.
const OWN: &[&str] = &["/proc", "/dev/pts"];

/// What it has of its own around what is given below, where projects may be.
const WRITTEN: &[&str] = &[TMP, LASTING, rules::SHARED_MEMORY];
pub(in crate::process) const TMP: &str = "/tmp";
const LASTING: &str = "/var/tmp";

/// Programs expect it, whatever is in it.
const RUN: &str = "/run";

/// The terminal of the process that opens it.
const TERMINAL: &str = "/dev/tty";

/// The machine's files, while a view is built.
const MACHINE: &str = "/.machine";

/// Has sockets that ask a name server outside. The files in it are given where a link leads to them.
const SERVED: &str = "/run/systemd/resolve";

/// A socket in what is given: builds of Nix use the network.
const COVERED: &str = "/nix/var/nix/daemon-socket";

/// The file of name servers, and one that no route leads to: a look-up fails at once, and the kernel counts it.
const RESOLVER: &str = "/etc/resolv.conf";
const NO_RESOLVER: &[u8] = b"nameserver 192.0.2.1\n";

/// What a view shows of the kernel's files about devices: those of its network. Where they are, and where they are shown.
const DEVICES: &str = "/.devices";
const NETWORK: [(&str, &str); 2] = [
    ("class/net", "/sys/class/net"),
    ("devices/virtual/net", "/sys/devices/virtual/net"),
];

/// The most links on one path, and the most names in all.
const MAX_LINKS: usize = 40;
const MAX_STEPS: usize = 512;

const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// What is in the directory of a view alone.
const ROOT: &str = "root";
const OWN_TMP: &str = "tmp";
const OWN_LASTING: &str = "var-tmp";

/// Where the changes of a store are, and where it prepares them.
fn store_places(private: &Path, number: usize) -> [PathBuf; 2] {
    ["new", "work"].map(|part| private.join(format!("{part}-{number}")))
}

/// Makes what a view needs in its directory: in the pod, while its helper is being executed. `given` is in the order in which
/// the view gives it.
pub(super) fn make_places<'a>(
    private: &Path,
    given: impl IntoIterator<Item = &'a Given>,
) -> io::Result<()> {
    make_dir(&private.join(ROOT))?;
    for own in [OWN_TMP, OWN_LASTING].map(|name| private.join(name)) {
        make_dir(&own)?;
        std::fs::set_permissions(&own, Permissions::from_mode(0o1777))?;
    }
    let stores = given.into_iter().filter(|given| given.is_store);
    for (number, store) in stores.enumerate() {
        let [upper, work] = store_places(private, number);
        make_dir(&upper)?;
        if store.id != rules::ABSENT {
            put_aside(&work)?;
            make_dir(&work)?;
        }
    }
    Ok(())
}

/// Gives way to a new directory: that of a helper that was killed is marked, and no overlay takes it again.
fn put_aside(work: &Path) -> io::Result<()> {
    let mut aside = work.as_os_str().to_owned();
    while Path::new(&aside).symlink_metadata().is_ok() {
        aside.push("-");
    }
    match std::fs::rename(work, aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A handle on what needs a rule alone: what is read below `/etc`, which is shown as a whole, and has no link on its path; and
/// this program, which has no path in a view.
pub(super) fn open_shown(given: &Given) -> Option<OwnedFd> {
    let Given {
        path,
        id,
        access,
        is_store,
    } = given;
    if path == Path::new(rules::OWN_PROGRAM) {
        return open(path).ok().filter(|file| is_file(file, *id));
    }
    let etc = Path::new("/etc");
    let is_read = !is_store && !access.contains(AccessFs::WriteFile);
    let file = (is_read && path != etc && path.starts_with(etc)).then(|| open_exactly(path))?;
    file.ok().filter(|file| is_file(file, *id))
}

fn open_exactly(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(CWD, path, HANDLE, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

fn is_file(file: &OwnedFd, id: (u64, u64)) -> bool {
    rustix::fs::fstat(file).is_ok_and(|found| (found.st_dev, found.st_ino) == id)
}

/// A view that is being built: already the root of this process, so no link on it leads to the machine's files.
pub(super) struct View {
    /// The directories and files that lead to something, and whether that is mounted for writing.
    bound: BTreeMap<PathBuf, bool>,
    /// The directories that lead to these.
    made: BTreeSet<PathBuf>,
    /// A directory of this view alone, on a disk: where it is on the machine.
    private: PathBuf,
    /// Those of [`WRITTEN`] that it has.
    written: Vec<&'static str>,
    /// How many stores have a directory in it.
    stores: usize,
    /// Those of [`WRITTEN`] below which something may only be read: a rule for a directory counts for all below, also for
    /// what is mounted there.
    shut: Vec<&'static str>,
    /// What is read that no rule gives.
    read_dirs: Vec<OwnedFd>,
}

impl View {
    /// Begins one; [`make_places`] made what is in `private`.
    pub(super) fn begin(private: &Path) -> io::Result<Self> {
        let [place, tmp, lasting] = &[ROOT, OWN_TMP, OWN_LASTING].map(|name| private.join(name));
        rustix::mount::mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )?;
        rustix::mount::mount("tmpfs", place, "tmpfs", PLAIN, c"size=16m,mode=755")?;
        std::env::set_current_dir(place)?;
        std::fs::create_dir(MACHINE.trim_start_matches('/'))?;
        rustix::process::pivot_root(".", MACHINE.trim_start_matches('/'))?;
        std::env::set_current_dir("/")?;
        let terminals = c"newinstance,ptmxmode=0666,mode=620";
        for (place, kind, data) in [
            (rules::SHARED_MEMORY, "tmpfs", Some(c"mode=1777")),
            ("/proc", "proc", None),
            ("/dev/pts", "devpts", Some(terminals)),
        ] {
            let flags = if kind == "devpts" {
                MountFlags::NOSUID
            } else {
                PLAIN
            } | noexec(kind);
            make_dir(place.as_ref())?;
            rustix::mount::mount(kind, place, kind, flags, data)?;
        }
        let mut written = vec![TMP, rules::SHARED_MEMORY];
        make_dir(TMP.as_ref())?;
        rustix::mount::mount_bind(machine(tmp), TMP)?;
        // Not through a link: then it is another place.
        let there = machine(LASTING.as_ref());
        if there.canonicalize().is_ok_and(|real| real == there) {
            make_dir(LASTING.as_ref())?;
            rustix::mount::mount_bind(machine(lasting), LASTING)?;
            written.push(LASTING);
        }
        for (link, target) in [
            ("/dev/ptmx", "pts/ptmx"),
            ("/dev/fd", "/proc/self/fd"),
            ("/dev/stdin", "/proc/self/fd/0"),
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/stderr", "/proc/self/fd/2"),
        ] {
            symlink(target, link)?;
        }
        let bound = OWN.iter().map(|own| (PathBuf::from(own), true)).collect();
        Ok(Self {
            bound,
            made: BTreeSet::new(),
            private: machine(private),
            written,
            stores: 0,
            shut: Vec::new(),
            read_dirs: Vec::new(),
        })
    }

    fn is_bound(&self, path: &Path) -> bool {
        self.written_at(path).is_some()
    }

    /// Whether what a path leads to is mounted for writing; `None` if it leads to nothing yet.
    fn written_at(&self, path: &Path) -> Option<bool> {
        path.ancestors()
            .find_map(|dir| self.bound.get(dir).copied())
    }

    /// Gives what a path of the machine leads to, with the links on the way; returns a handle on it. `None` where that is
    /// not there, or is not the file with this device and number any more.
    pub(super) fn give(
        &mut self,
        path: &Path,
        id: (u64, u64),
        is_written: bool,
    ) -> io::Result<Option<OwnedFd>> {
        if [SERVED, rules::SHARED_MEMORY]
            .iter()
            .any(|own| path == Path::new(own))
        {
            return Ok(None);
        }
        // Most are in what was given before.
        let seen = open_exactly(path);
        let fits = |bound: Option<bool>| bound.is_some_and(|bound| bound || !is_written);
        let (file, end) = match seen {
            Ok(file) if fits(self.written_at(path)) => (file, path.to_owned()),
            _unseen => {
                let Ok(end) = self.follow(path) else {
                    return Ok(None);
                };
                if !fits(self.written_at(&end)) && !self.bind(&end, id, is_written)? {
                    return Ok(None);
                }
                (open(&end)?, end)
            }
        };
        if !is_written {
            self.shut
                .extend(WRITTEN.iter().filter(|place| end.starts_with(place)));
        }
        Ok(is_file(&file, id).then_some(file))
    }

    /// Gives a directory of the machine, so that what is changed in it is changed in a copy; or, if it is not there, a new one.
    /// `None` where that cannot be.
    pub(super) fn copy(&mut self, path: &Path, id: (u64, u64)) -> Option<OwnedFd> {
        self.try_copy(path, id).ok().flatten()
    }

    fn try_copy(&mut self, path: &Path, id: (u64, u64)) -> io::Result<Option<OwnedFd>> {
        let [upper, work] = store_places(&self.private, self.stores);
        self.stores += 1;
        let end = if id == rules::ABSENT {
            path.to_owned()
        } else {
            self.follow(path)?
        };
        if id == rules::ABSENT && self.is_bound(&end) {
            return Ok(None);
        }
        if id == rules::ABSENT {
            make_dir(&end)?;
            rustix::mount::mount_bind(&upper, &end)?;
        } else {
            let lower = open(machine(&end))?;
            if !is_file(&lower, id) {
                return Ok(None);
            }
            if !self.is_bound(&end) {
                make_dir(&end)?;
            }
            // By number, because a path may have characters that end an option.
            let upper = open(upper)?;
            let work = open(work)?;
            let [lower, upper, work] =
                [&lower, &upper, &work].map(|dir| format!("/proc/self/fd/{}", dir.as_raw_fd()));
            let attributes = if rustix::process::geteuid().is_root() {
                ""
            } else {
                ",userxattr"
            };
            // Without `volatile`, its end writes out all of the machine's file system.
            let options =
                format!("lowerdir={lower},upperdir={upper},workdir={work},volatile{attributes}");
            let options = CString::new(options).map_err(io::Error::other)?;
            rustix::mount::mount("overlay", &end, "overlay", PLAIN, Some(options.as_c_str()))?;
        }
        let file = open(&end)?;
        self.note_bound(end, true);
        Ok(Some(file))
    }

    /// Makes a path lead to what is there on the machine; false if that is not this file. Only what has a rule is bound: a rule
    /// is nothing to a socket.
    fn bind(&mut self, end: &Path, id: (u64, u64), is_written: bool) -> io::Result<bool> {
        let machine = machine(end);
        let Some(meta) = machine
            .metadata()
            .ok()
            .filter(|meta| (meta.dev(), meta.ino()) == id)
        else {
            return Ok(false);
        };
        if meta.is_dir() {
            make_dir(end)?;
        } else {
            make_file(end)?;
        }
        rustix::mount::mount_bind_recursive(&machine, end)?;
        let bound = end.metadata()?;
        if (bound.dev(), bound.ino()) != id {
            return Err(io::Error::other("it was moved meanwhile"));
        }
        // Of others' files nothing is changed in any case, with the error that is usual.
        if !is_written && bound.uid() == rustix::process::geteuid().as_raw() {
            // Rules are about content; this is about permissions, times and attributes, too. What the mount itself forbids stays so.
            let kept =
                StatVfsMountFlags::NOSUID | StatVfsMountFlags::NODEV | StatVfsMountFlags::NOEXEC;
            let kept = (rustix::fs::statvfs(end)?.f_flag & kept).bits();
            let kept = MountFlags::from_bits_retain(u32::try_from(kept).map_err(io::Error::other)?);
            rustix::mount::mount_remount(end, MountFlags::BIND | MountFlags::RDONLY | kept, c"")?;
        }
        self.note_bound(end.to_owned(), is_written);
        Ok(true)
    }

    /// What is bound to a path covers what was bound below it.
    fn note_bound(&mut self, end: PathBuf, is_written: bool) {
        self.bound.retain(|path, _| !path.starts_with(&end));
        self.bound.insert(end, is_written);
    }

    /// The end of a path, without links; makes the links and directories on the way.
    fn follow(&mut self, path: &Path) -> io::Result<PathBuf> {
        let mut todo = names(path);
        let mut at = PathBuf::from("/");
        let mut links = 0;
        for _ in 0..MAX_STEPS {
            let is_own = OWN.iter().any(|own| at.starts_with(own));
            let Some(name) = todo.pop_front().filter(|_| !is_own) else {
                return Ok(at);
            };
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(name);
            if self.made.contains(&next) {
                at = next;
                continue;
            }
            let is_new = !self.is_bound(&next);
            let kind = machine(&next).symlink_metadata()?.file_type();
            if !kind.is_symlink() {
                at = next;
                if is_new && !todo.is_empty() {
                    make_dir(&at)?;
                    self.made.insert(at.clone());
                }
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            let target = machine(&next).read_link()?;
            if is_new {
                symlink(&target, &next)
                    .or_else(|error| exists(&error).then_some(()).ok_or(error))?;
            }
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            for name in names(&target).into_iter().rev() {
                todo.push_front(name);
            }
        }
        Err(Errno::NAMETOOLONG.into())
    }

    /// Shows the devices of the network of the commands, of [`make_devices`].
    pub(super) fn show_devices(&mut self, devices: &OwnedFd) -> io::Result<()> {
        // A person who gives the machine's has these.
        if NETWORK
            .iter()
            .any(|(_, shown)| self.is_bound(shown.as_ref()))
        {
            return Ok(());
        }
        std::fs::create_dir(DEVICES)?;
        let from = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(devices, "", CWD, DEVICES, from)?;
        // A kernel need not have them, and no command fails for that.
        let has_all = NETWORK
            .iter()
            .all(|(kept, _)| Path::new(DEVICES).join(kept).is_dir());
        for (kept, shown) in NETWORK.into_iter().filter(|_| has_all) {
            make_dir(shown.as_ref())?;
            rustix::mount::mount_bind(Path::new(DEVICES).join(kept), shown)?;
            self.read_dirs.push(open(shown)?);
            self.note_bound(shown.into(), false);
        }
        rustix::mount::unmount(DEVICES, UnmountFlags::DETACH)?;
        std::fs::remove_dir(DEVICES)
    }

    /// Takes the machine's files away. Returns what a child may use of the view beside the rules: what it writes, and a file
    /// that it reads.
    pub(super) fn finish(mut self) -> io::Result<Own> {
        make_dir(RUN.as_ref())?;
        // Links on most machines.
        for link in ["/var/run", "/run/shm"] {
            self.follow(link.as_ref()).ok();
        }
        if Path::new(COVERED).is_dir() {
            rustix::mount::mount("tmpfs", COVERED, "tmpfs", PLAIN, c"size=4k,mode=755")?;
        }
        let resolver = cover_resolver()?;
        let terminal = Some(TERMINAL).filter(|terminal| machine(terminal.as_ref()).exists());
        if let Some(terminal) = terminal {
            make_file(terminal.as_ref())?;
            rustix::mount::mount_bind(machine(terminal.as_ref()), terminal)?;
        }
        rustix::mount::unmount(MACHINE, UnmountFlags::DETACH)?;
        std::fs::remove_dir(MACHINE)?;
        let open_written = self
            .written
            .iter()
            .filter(|place| !self.shut.contains(place) && !self.is_given(place));
        let has_tmp = open_written.clone().any(|place| *place == TMP);
        let written = open_written
            .chain(&["/dev/pts"])
            .map(open)
            .collect::<io::Result<_>>()?;
        let terminal = terminal.map(open).transpose()?;
        let read = resolver.as_ref().map(open).transpose()?;
        Ok(Own {
            written,
            terminal,
            read,
            read_dirs: self.read_dirs,
            resolver,
            has_tmp,
        })
    }

    /// Whether a place of [`WRITTEN`] is the machine's, because it was given itself.
    fn is_given(&self, place: &str) -> bool {
        self.bound.contains_key(Path::new(place))
    }
}

/// Where a path of the machine is while a view is built.
fn machine(path: &Path) -> PathBuf {
    Path::new(MACHINE).join(path.strip_prefix("/").unwrap_or(path))
}

fn cover_resolver() -> io::Result<Option<PathBuf>> {
    let Ok(end) = Path::new(RESOLVER).canonicalize() else {
        return Ok(None);
    };
    const OURS: &str = "/.resolv.conf";
    std::fs::write(OURS, NO_RESOLVER)?;
    rustix::mount::mount_bind(OURS, &end)?;
    Ok(Some(end))
}

/// What a view has of its own.
pub(super) struct Own {
    pub(super) written: Vec<OwnedFd>,
    pub(super) terminal: Option<OwnedFd>,
    pub(super) read: Option<OwnedFd>,
    /// Directories that it reads, with all below.
    pub(super) read_dirs: Vec<OwnedFd>,
    /// What covers the file of name servers.
    pub(super) resolver: Option<PathBuf>,
    pub(super) has_tmp: bool,
}

/// The kernel's files about devices, with those of the network of the calling process; at no place yet.
pub(super) fn make_devices() -> io::Result<OwnedFd> {
    let made = rustix::mount::fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&made)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    Ok(rustix::mount::fsmount(&made, flags, attributes)?)
}

/// Gives the calling process a `/proc` of its namespace of processes.
pub(super) fn own_proc() -> io::Result<OwnedFd> {
    rustix::mount::mount("proc", "/proc", "proc", PLAIN | noexec("proc"), None)?;
    open("/proc")
}

fn noexec(kind: &str) -> MountFlags {
    // Programs make and run others in /tmp, and map code in /dev/shm.
    if kind == "tmpfs" {
        MountFlags::empty()
    } else {
        MountFlags::NOEXEC
    }
}

pub(super) fn open(path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path.as_ref(), HANDLE, Mode::empty())?)
}

fn make_dir(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
}

/// What a file is bound to. Never through a link, and nothing is cut.
fn make_file(path: &Path) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::RUSR).map(drop)?)
}

fn exists(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}
